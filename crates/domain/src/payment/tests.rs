//! Contract §4.2 and §4.3 as tables, and the stories behind their footnotes.

use super::*;
use crate::rail::{Called, Report, Started};
use crate::sample::{OPEN_S, at, begin, checkout, dalasi, id, paid, seconds, session, started};
use crate::table::table;

mod stories;

/// A session and its attempt as one step after the other brought them here.
#[derive(Debug, Clone)]
struct Pair {
    session: PaymentSession,
    transaction: Transaction,
}

const FAILED: Report = Report::Failed { reason: FailureReason::Declined };
const WRONG_CODE: Report = Report::AwaitingCode { attempts_left: 2 };

impl Pair {
    /// The intent is committed; the call is on its way.
    fn sending(method: Method) -> Self {
        let mut session = session(id(3), &checkout(dalasi(10_000)), method, seconds(1));
        let transaction = begin(&mut session, id(4), 250, seconds(2));
        Self { session, transaction }
    }

    /// The rail took the order.
    fn waiting(method: Method) -> Self {
        let mut pair = Self::sending(method);
        assert_eq!(pair.started(Called::Answered(started(method))), Moved::On);
        pair
    }

    fn lost() -> Self {
        let mut pair = Self::sending(Method::Wave);
        assert_eq!(pair.started(Called::Lost("a timeout".into())), Moved::On);
        pair
    }

    fn with_code() -> Self {
        let mut pair = Self::waiting(Method::Qmoney);
        pair.code().expect("a code is expected");
        pair
    }

    fn reported_from(method: Method, report: &Report) -> Self {
        let mut pair = Self::waiting(method);
        pair.report(report);
        pair
    }

    fn closed(expired: bool) -> Self {
        let mut pair = Self::waiting(Method::Wave);
        pair.close(expired);
        pair
    }

    fn started(&mut self, called: Called<Started>) -> Moved {
        self.session.started(&mut self.transaction, called, seconds(3))
    }

    fn repeat(&mut self) -> bool {
        self.session.repeat_start(&mut self.transaction)
    }

    fn repeated(&mut self, called: Called<Started>) -> Moved {
        self.session.repeated(&mut self.transaction, called, seconds(5))
    }

    fn code(&mut self) -> Result<(), Refusal> {
        self.session.submit_code(Some(&mut self.transaction), seconds(4))
    }

    fn code_submitted(&mut self, called: Called<Report>) -> Moved {
        let sent_at = self.transaction.code_sent_at;
        self.session.code_submitted(&mut self.transaction, sent_at, called, seconds(5))
    }

    fn report(&mut self, report: &Report) -> Moved {
        self.session.reported(&mut self.transaction, report, seconds(6))
    }

    fn returned(&mut self) -> Moved {
        self.session.returned(&mut self.transaction, seconds(6))
    }

    fn resolve(&mut self, paid: bool) -> Result<Moved, Refusal> {
        self.session.resolved(&mut self.transaction, paid, seconds(7))
    }

    fn close(&mut self, expired: bool) {
        self.session.close(Some(&mut self.transaction), expired, seconds(8));
    }

    /// `session/transaction/step`, and what a payer or a person has to know.
    fn stand(&self) -> String {
        let words = [
            Some(format!("{}/{}", self.session.status.as_str(), self.transaction.status.as_str())),
            Some(self.transaction.step.as_str().to_owned()),
            self.session.outcome_unknown.then(|| "outcome_unknown".to_owned()),
            self.session.failure_reason.map(|reason| reason.as_str().to_owned()),
            self.session.next_action.as_ref().map(|next| match next {
                NextAction::Redirect { .. } => "redirect".to_owned(),
                NextAction::ApproveOnPhone { .. } => "approve_on_phone".to_owned(),
                NextAction::Otp { attempts_left, .. } => format!("otp, {attempts_left} left"),
                NextAction::ConfirmDone {} | NextAction::DialUssd { .. } | NextAction::ShowQr { .. } => {
                    "other".to_owned()
                }
            }),
            self.transaction.parked.is_some().then(|| "parked".to_owned()),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Everything but the clock and the count of questions.
    fn frozen(&self) -> Self {
        let mut pair = self.clone();
        pair.session.updated_at = at(0);
        pair.transaction.updated_at = at(0);
        pair
    }
}

enum Action {
    Again(fn(&PaymentSession) -> Method),
    Code,
    Returned,
    Report(Report),
    Close { expired: bool },
}

fn same(session: &PaymentSession) -> Method {
    session.method.expect("it was begun")
}

fn other(session: &PaymentSession) -> Method {
    if same(session) == Method::Card { Method::Wave } else { Method::Card }
}

/// Applies an action; the refusal's code, or whether the action was taken.
fn act(pair: &mut Pair, action: &Action) -> Result<&'static str, Refusal> {
    let moved = match action {
        Action::Again(method) => {
            return Ok(
                match pair.session.again(Some(&pair.transaction), Some(method(&pair.session)), pair.session.amount)? {
                    Again::Same => "=",
                    Again::New => "new session",
                    Again::Replace => {
                        pair.close(false);
                        "new session"
                    }
                },
            );
        }
        Action::Code => return pair.code().map(|()| "="),
        Action::Close { expired } => {
            pair.close(*expired);
            return Ok("=");
        }
        Action::Returned => pair.returned(),
        Action::Report(report) => pair.report(report),
    };
    // A provider that says nothing is asked again, as long as there is something to ask.
    let is_watched = pair.transaction.step != Step::Settled && matches!(action, Action::Report(Report::NotFound));
    Ok(if moved == Moved::Nowhere && !is_watched { "–" } else { "=" })
}

/// `closed` is what the contract's table says where an object ends that is over for this one already.
fn cell(before: &Pair, action: &Action, status: fn(&Pair) -> &'static str, closed: &str) -> String {
    let mut after = before.clone();
    let taken = match act(&mut after, action) {
        Ok(taken) => taken,
        Err(refusal) => {
            assert_eq!(after.frozen().session, before.frozen().session, "a refusal changes nothing");
            return refusal.code();
        }
    };
    if taken == "–" {
        assert_eq!(after.frozen().session, before.frozen().session, "what is ignored changes nothing");
        assert_eq!(after.frozen().transaction, before.frozen().transaction, "what is ignored changes nothing");
    }
    let is_over = !matches!(status(before), "pending" | "processing");
    match (status(before) != status(&after), taken) {
        (false, "=") if is_over => match action {
            Action::Close { .. } => closed.to_owned(),
            Action::Again(_) | Action::Code | Action::Returned | Action::Report(_) => "–".to_owned(),
        },
        (true, "new session") => format!("{}, new session", status(&after)),
        (true, _) => status(&after).to_owned(),
        (false, taken) => taken.to_owned(),
    }
}

/// Rows beyond the contract's: each way of being `processing`, what is being handed over among them. A code or
/// a lost answer that turns out to be with the provider is `=` under "handed over", because the attempt behind the session
/// moves.
#[test]
fn sessions_go_as_the_contract_says() {
    let states = [
        ("processing, sending", Pair::sending(Method::Wave)),
        ("pending, wave", Pair::waiting(Method::Wave)),
        ("pending, qmoney", Pair::waiting(Method::Qmoney)),
        ("processing, push", Pair::waiting(Method::Afrimoney)),
        ("processing, code", Pair::with_code()),
        ("processing, lost", Pair::lost()),
        ("succeeded", Pair::reported_from(Method::Wave, &paid(dalasi(10_000)))),
        ("failed", Pair::reported_from(Method::Wave, &FAILED)),
        ("cancelled", Pair::closed(false)),
        ("cancelled, expired", Pair::closed(true)),
    ];
    let actions = [
        ("same method", Action::Again(same)),
        ("other method", Action::Again(other)),
        ("code", Action::Code),
        ("returned", Action::Returned),
        ("handed over", Action::Report(Report::Processing)),
        ("paid", Action::Report(paid(dalasi(10_000)))),
        ("failed", Action::Report(FAILED)),
        ("wrong code", Action::Report(WRONG_CODE)),
        ("silent", Action::Report(Report::NotFound)),
        ("cancel", Action::Close { expired: false }),
        ("expire", Action::Close { expired: true }),
    ];
    insta::assert_snapshot!(table(&states, &actions, |state, action| cell(state, action, |pair| pair.session.status.as_str(), "=")), @r"
                        | same method               | other method              | code                      | returned   | handed over | paid      | failed | wrong code | silent | cancel    | expire
    processing, sending | =                         | payment_in_progress       | payment_in_progress       | –          | =           | succeeded | failed | –          | =      | =         | =
    pending, wave       | =                         | cancelled, new session    | code_not_expected         | processing | processing  | succeeded | failed | –          | =      | cancelled | cancelled
    pending, qmoney     | =                         | cancelled, new session    | processing                | –          | processing  | succeeded | failed | =          | =      | cancelled | cancelled
    processing, push    | payment_in_progress       | payment_in_progress       | payment_in_progress       | –          | –           | succeeded | failed | –          | =      | =         | =
    processing, code    | payment_in_progress       | payment_in_progress       | payment_in_progress       | –          | =           | succeeded | failed | pending    | =      | =         | =
    processing, lost    | payment_in_progress       | payment_in_progress       | payment_in_progress       | –          | =           | succeeded | failed | –          | =      | =         | =
    succeeded           | payment_already_succeeded | payment_already_succeeded | payment_already_succeeded | –          | –           | –         | –      | –          | –      | =         | =
    failed              | new session               | new session               | payment_session_closed    | –          | –           | succeeded | –      | –          | –      | =         | =
    cancelled           | new session               | new session               | payment_session_closed    | –          | –           | succeeded | –      | –          | –      | =         | =
    cancelled, expired  | new session               | new session               | payment_session_closed    | –          | –           | succeeded | –      | –          | –      | =         | =
    ");
}

#[test]
fn transactions_go_as_the_contract_says() {
    let states = [
        ("pending", Pair::waiting(Method::Wave)),
        ("pending, sending", Pair::sending(Method::Wave)),
        ("processing", Pair::waiting(Method::Afrimoney)),
        ("completed", Pair::reported_from(Method::Wave, &paid(dalasi(10_000)))),
        ("failed", Pair::reported_from(Method::Wave, &FAILED)),
        ("cancelled", Pair::closed(false)),
        ("expired", Pair::closed(true)),
    ];
    let actions = [
        ("handed over", Action::Report(Report::Processing)),
        ("paid", Action::Report(paid(dalasi(10_000)))),
        ("failed", Action::Report(FAILED)),
        ("session cancelled", Action::Close { expired: false }),
        ("session expired", Action::Close { expired: true }),
    ];
    insta::assert_snapshot!(table(&states, &actions, |state, action| cell(state, action, |pair| pair.transaction.status.as_str(), "–")), @r"
                     | handed over | paid      | failed | session cancelled | session expired
    pending          | processing  | completed | failed | cancelled         | expired
    pending, sending | processing  | completed | failed | =                 | =
    processing       | –           | completed | failed | =                 | =
    completed        | –           | –         | –      | –                 | –
    failed           | –           | completed | –      | –                 | –
    cancelled        | –           | completed | –      | –                 | –
    expired          | –           | completed | –      | –                 | –
    ");
}

/// What becomes of an attempt whose answer was lost, for each word of the rail.
#[test]
fn a_lost_answer_is_settled_by_the_rail_only() {
    let lost_code = || {
        let mut pair = Pair::with_code();
        assert_eq!(pair.code_submitted(Called::Lost("a reset".into())), Moved::On);
        pair
    };
    let lost_start = |method| {
        let mut pair = Pair::sending(method);
        pair.started(Called::Lost("a timeout".into()));
        pair
    };
    let cancelled = || {
        let mut pair = Pair::sending(Method::Wave);
        pair.close(false);
        pair.started(Called::Lost("a timeout".into()));
        pair
    };
    let states = [
        ("start, wave", lost_start(Method::Wave)),
        ("start, afrimoney", lost_start(Method::Afrimoney)),
        ("start, qmoney", lost_start(Method::Qmoney)),
        ("code", lost_code()),
        ("start, then cancelled", cancelled()),
    ];
    let reports = [
        ("open", Report::Open),
        ("awaiting code, 3", Report::AwaitingCode { attempts_left: 3 }),
        ("awaiting code, 2", WRONG_CODE),
        ("processing", Report::Processing),
        ("paid", paid(dalasi(10_000))),
        ("other amount", paid(dalasi(9_999))),
        ("failed", FAILED),
        ("not found", Report::NotFound),
    ];
    let text = reports.iter().map(|(name, report)| {
        let rows = states.iter().map(|(state, pair)| {
            let mut pair = pair.clone();
            let moved = pair.report(report);
            format!("  {state}: {moved:?} → {}", pair.stand())
        });
        format!("{name}\n{}", rows.collect::<Vec<_>>().join("\n"))
    });
    insta::assert_snapshot!(text.collect::<Vec<_>>().join("\n"), @r"
    open
      start, wave: On → processing/processing, waiting
      start, afrimoney: On → processing/processing, waiting
      start, qmoney: On → processing/processing, waiting
      code: On → processing/processing, waiting, otp, 3 left
      start, then cancelled: On → processing/processing, waiting
    awaiting code, 3
      start, wave: Nowhere → processing/processing, unknown, outcome_unknown
      start, afrimoney: Nowhere → processing/processing, unknown, outcome_unknown
      start, qmoney: On → pending/processing, waiting, otp, 3 left
      code: Nowhere → processing/processing, unknown, outcome_unknown, otp, 3 left
      start, then cancelled: Nowhere → processing/processing, unknown, outcome_unknown
    awaiting code, 2
      start, wave: Nowhere → processing/processing, unknown, outcome_unknown
      start, afrimoney: Nowhere → processing/processing, unknown, outcome_unknown
      start, qmoney: On → pending/processing, waiting, otp, 2 left
      code: On → pending/processing, waiting, wrong_code, otp, 2 left
      start, then cancelled: Nowhere → processing/processing, unknown, outcome_unknown
    processing
      start, wave: On → processing/processing, waiting
      start, afrimoney: On → processing/processing, waiting
      start, qmoney: On → processing/processing, waiting
      code: On → processing/processing, waiting
      start, then cancelled: On → processing/processing, waiting
    paid
      start, wave: ToPaid → succeeded/completed, settled
      start, afrimoney: ToPaid → succeeded/completed, settled
      start, qmoney: ToPaid → succeeded/completed, settled
      code: ToPaid → succeeded/completed, settled
      start, then cancelled: ToPaid → succeeded/completed, settled
    other amount
      start, wave: On → processing/processing, unknown, outcome_unknown, parked
      start, afrimoney: On → processing/processing, unknown, outcome_unknown, parked
      start, qmoney: On → processing/processing, unknown, outcome_unknown, parked
      code: On → processing/processing, unknown, outcome_unknown, otp, 3 left, parked
      start, then cancelled: On → processing/processing, unknown, outcome_unknown, parked
    failed
      start, wave: ToFailed → failed/failed, settled, declined
      start, afrimoney: ToFailed → failed/failed, settled, declined
      start, qmoney: ToFailed → failed/failed, settled, declined
      code: ToFailed → failed/failed, settled, declined
      start, then cancelled: ToFailed → failed/failed, settled, declined
    not found
      start, wave: Nowhere → processing/processing, unknown, outcome_unknown
      start, afrimoney: Nowhere → processing/processing, unknown, outcome_unknown
      start, qmoney: Nowhere → processing/processing, unknown, outcome_unknown
      code: Nowhere → processing/processing, unknown, outcome_unknown, otp, 3 left
      start, then cancelled: Nowhere → processing/processing, unknown, outcome_unknown
    ");
}

/// A callback can be faster than the answer to the call that started the payment.
#[test]
fn a_callback_before_the_answer() {
    let answers = [
        ("answered", Called::Answered(started(Method::Wave))),
        ("refused", Called::Refused(FailureReason::ProviderError)),
        ("lost", Called::Lost("a timeout".into())),
    ];
    let states: Vec<(&str, Pair)> = [
        ("nothing yet", None),
        ("open", Some(Report::Open)),
        ("processing", Some(Report::Processing)),
        ("paid", Some(paid(dalasi(10_000)))),
        ("other amount", Some(paid(dalasi(1)))),
        ("failed", Some(FAILED)),
        ("not found", Some(Report::NotFound)),
    ]
    .into_iter()
    .map(|(name, report)| {
        let mut pair = Pair::sending(Method::Wave);
        report.iter().for_each(|report| {
            pair.report(report);
        });
        (name, pair)
    })
    .collect();
    let cell = |state: &Pair, called: &Called<Started>| {
        let mut pair = state.clone();
        pair.started(called.clone());
        pair.stand()
    };
    insta::assert_snapshot!(table(&states, &answers, cell), @r"
                 | answered                                                | refused                                                 | lost
    nothing yet  | pending/pending, waiting, redirect                      | failed/failed, settled, provider_error                  | processing/processing, unknown, outcome_unknown
    open         | pending/pending, waiting, redirect                      | pending/pending, waiting                                | pending/pending, waiting
    processing   | processing/processing, waiting, redirect                | processing/processing, waiting                          | processing/processing, waiting
    paid         | succeeded/completed, settled                            | succeeded/completed, settled                            | succeeded/completed, settled
    other amount | processing/processing, unknown, outcome_unknown, parked | processing/processing, unknown, outcome_unknown, parked | processing/processing, unknown, outcome_unknown, parked
    failed       | failed/failed, settled, declined                        | failed/failed, settled, declined                        | failed/failed, settled, declined
    not found    | pending/pending, waiting, redirect                      | failed/failed, settled, provider_error                  | processing/processing, unknown, outcome_unknown
    ");
}

/// Every report a second time, in every state that the first one led to.
#[test]
fn a_report_that_comes_twice_changes_nothing_the_second_time() {
    let states = [
        Pair::sending(Method::Wave),
        Pair::waiting(Method::Wave),
        Pair::waiting(Method::Afrimoney),
        Pair::waiting(Method::Qmoney),
        Pair::with_code(),
        Pair::lost(),
        Pair::closed(false),
        Pair::closed(true),
    ];
    let reports =
        [Report::Open, Report::Processing, WRONG_CODE, paid(dalasi(10_000)), paid(dalasi(1)), FAILED, Report::NotFound];
    for pair in &states {
        for report in &reports {
            let mut pair = pair.clone();
            pair.report(report);
            let before = pair.clone();
            assert_eq!(pair.report(report), Moved::Nowhere, "{report:?} on {}", before.stand());
            assert_eq!(pair.session, before.session, "{report:?}");
            assert_eq!(pair.transaction, before.transaction, "{report:?}");
        }
    }
}

#[test]
fn a_session_nobody_used_is_expired_by_the_clock() {
    let end = i64::from(OPEN_S) * 1_000_000;
    let mut lines = Vec::new();
    for (name, now) in [("t − 1 µs", at(end - 1)), ("t", at(end)), ("t + 1 µs", at(end + 1))] {
        let stand = |apply: &dyn Fn(&mut Pair)| {
            let mut pair = Pair::waiting(Method::Wave);
            apply(&mut pair);
            format!("{}/{}", pair.session.status.as_str(), pair.transaction.status.as_str())
        };
        lines.push(format!(
            "{name}: returned → {}, rail says processing → {}, another amount → {}, failed → {}",
            stand(&|pair| {
                pair.session.returned(&mut pair.transaction, now);
            }),
            stand(&|pair| {
                pair.session.reported(&mut pair.transaction, &Report::Processing, now);
            }),
            stand(&|pair| {
                pair.session.reported(&mut pair.transaction, &paid(dalasi(1)), now);
            }),
            stand(&|pair| {
                pair.session.reported(&mut pair.transaction, &FAILED, now);
            }),
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    t − 1 µs: returned → processing/processing, rail says processing → processing/processing, another amount → processing/processing, failed → failed/failed
    t: returned → pending/pending, rail says processing → pending/pending, another amount → pending/pending, failed → cancelled/expired
    t + 1 µs: returned → pending/pending, rail says processing → pending/pending, another amount → pending/pending, failed → cancelled/expired
    ");
}

/// From the last that was asked of a payer, or that they did.
#[test]
fn who_began_late_has_a_while_to_end_it() {
    let (late, later) = (seconds(i64::from(OPEN_S) - 2), seconds(i64::from(OPEN_S) - 1));
    let waits = |pair: &Pair| pair.session.waits_until(&pair.transaction);
    let mut early = Pair::waiting(Method::Afrimoney);
    early.session.expires_at = seconds(3_600);
    assert_eq!(waits(&early), early.session.expires_at);

    let mut prompted = Pair::sending(Method::Afrimoney);
    prompted.session.started(&mut prompted.transaction, Called::Answered(started(Method::Afrimoney)), late);
    assert_eq!(waits(&prompted), late.plus(PATIENCE));

    let mut repeated = Pair::lost();
    assert!(repeated.repeat());
    repeated.session.repeated(&mut repeated.transaction, Called::Answered(started(Method::Afrimoney)), late);
    assert_eq!(waits(&repeated), late.plus(PATIENCE));

    let mut returned = Pair::waiting(Method::Wave);
    returned.session.returned(&mut returned.transaction, late);
    assert_eq!(waits(&returned), late.plus(PATIENCE));

    let mut typed = Pair::waiting(Method::Qmoney);
    typed.session.submit_code(Some(&mut typed.transaction), late).unwrap();
    assert_eq!(waits(&typed), late.plus(PATIENCE), "it is on its way");
    let taken = Called::Answered(Report::Processing);
    assert_eq!(typed.session.code_submitted(&mut typed.transaction, Some(late), taken, later), Moved::On);
    assert_eq!(waits(&typed), later.plus(PATIENCE));
}
