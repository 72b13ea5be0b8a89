//! From what is stored to what a page shows. Pure: it decides which state is true at the moment of the read, never what
//! happens next.
//!
//! *Nothing was taken* is said only when every attempt has its final word and none of them took money.

mod ends;

use aws_lc_rs::digest::{SHA256, digest};
use domain::method::Flow;
use domain::payment::{PaymentSession, SessionStatus, Step, Transaction, TransactionStatus};
use domain::rail::{FailureReason, NextAction};
use domain::simulator::{RIGHT_CODE, Screen, Script};
use domain::{Currency, Money, Msisdn};

use super::note::{CodeFault, Note, Noted, PhoneFault};
use super::questions;
use super::typed::Typed;
use super::view::{
    Amount, Apart, Closed, CodeError, End, Method, PhoneError, Problem, Reason, Receipt, Received, Refunded, Standing,
    State,
};
use crate::app::hosted::{Closed as StandsClosed, Hosted, Standing as Stands};
use crate::app::paid_object::PaidObject;
use crate::mask;
use crate::rails::simulator;
use crate::secrets::Subkey;

/// Where the simulator's pages are, and the key under their tokens.
pub(super) struct Simulator<'a> {
    pub(super) pay_url: &'a str,
    pub(super) token_key: &'a Subkey,
}

/// What is true for everybody who looks now.
pub(super) fn stored(hosted: &Hosted, simulator: &Simulator<'_>) -> State {
    match hosted.standing() {
        Stands::Draft => State::Draft,
        Stands::Closed(closed) => {
            State::Closed { reason: shown_end(closed), standing: unpaid(hosted), return_url: hosted.failure_address() }
        }
        Stands::Paid => ends::completed(hosted),
        Stands::Expired => ends::ended(hosted, End::Expiry),
        Stands::Cancelled => ends::ended(hosted, End::Cancellation),
        Stands::Open => pending(hosted, simulator),
    }
}

/// Opaque; the same as long as the state and what is to be paid are, whoever looks and whenever.
pub(super) fn revision(hosted: &Hosted, state: &State) -> String {
    let mut state = state.clone();
    match &mut state {
        State::EnterCode { can_resend_in, .. } => *can_resend_in = can_resend_in.map(|_| 0),
        State::Choose { .. }
        | State::NeedsPhone { .. }
        | State::ApproveOnPhone { .. }
        | State::Redirecting { .. }
        | State::Checking { .. }
        | State::Leaving { .. }
        | State::Paid { .. }
        | State::NotPaid { .. }
        | State::Draft
        | State::Closed { .. }
        | State::Expired { .. }
        | State::Cancelled { .. }
        | State::PaidLate { .. }
        | State::AlreadyPaid { .. } => {}
    }
    let content = match &hosted.object {
        PaidObject::Invoice(invoice) => invoice.revision(),
        PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => 0,
    };
    // A page that says that it is paid leads back to the shop once no attempt can change that.
    let unsettled = if matches!(state, State::Paid { .. }) && hosted.unsettled().is_some() { " unsettled" } else { "" };
    // An invoice's payments stand below its state.
    let back: i64 = hosted.came().map(|transaction| transaction.refunded().minor).sum();
    let back = if back > 0 { format!(" refunded {back}") } else { String::new() };
    // A payment that another one replaced leads there.
    let next = hosted.successor().map(|next| format!(" {}", next.id())).unwrap_or_default();
    let hash = digest(&SHA256, format!("{state:?} {:?} {content}{unsettled}{back}{next}", hosted.amount()).as_bytes());
    hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Money that is nobody's yet: second, and not paid back as a whole.
fn kept_apart(hosted: &Hosted) -> impl Iterator<Item = &Transaction> {
    hosted.is_paid_by().filter(|attempt| attempt.duplicate && attempt.status() != TransactionStatus::Refunded)
}

fn all_kept_apart(hosted: &Hosted) -> Vec<Apart> {
    kept_apart(hosted).map(apart).collect()
}

/// Whether nothing of the payer's has been taken, here or by hand, and nothing can be yet.
pub(super) fn is_untouched(hosted: &Hosted) -> bool {
    hosted.unsettled().is_none() && hosted.came().next().is_none()
}

/// What is certain of what ended without money.
fn unpaid(hosted: &Hosted) -> Standing {
    match hosted.unsettled() {
        Some(attempt) => Standing::Unknown(shown(attempt.attempt().method)),
        None => Standing::NothingTaken,
    }
}

fn pending(hosted: &Hosted, simulator: &Simulator<'_>) -> State {
    let Some(payment) = &hosted.payment else {
        return unstarted(hosted);
    };
    let session = &payment.session;
    match (session.status(), &payment.transaction) {
        (SessionStatus::Pending | SessionStatus::Processing, Some(attempt)) => open(hosted, attempt, simulator),
        (SessionStatus::Failed, Some(attempt)) => not_paid(hosted, attempt),
        (SessionStatus::Pending, None) | (SessionStatus::Failed | SessionStatus::Cancelled, _) => unstarted(hosted),
        (SessionStatus::Succeeded, Some(attempt)) if matches!(hosted.object, PaidObject::Invoice(_)) => {
            // What went back whole stands in the list of payments alone.
            let went_back = attempt.status() == TransactionStatus::Refunded;
            let received = match attempt.duplicate {
                true => Some(Received::Apart(apart(attempt))),
                false => (!went_back)
                    .then(|| Received::Part { amount: amount(attempt.amount), return_url: hosted.success_address() }),
            };
            // What came before it stands beside it.
            let kept_apart = kept_apart(hosted).filter(|kept| kept.id != attempt.id).map(apart).collect();
            State::Choose { methods: methods(hosted), problem: in_progress(hosted), received, kept_apart }
        }
        (SessionStatus::Succeeded | SessionStatus::Processing, _) => checking(hosted, None),
    }
}

fn in_progress(hosted: &Hosted) -> Option<Problem> {
    hosted.unsettled().map(|_| Problem::InProgress)
}

/// Nothing is with a rail: the payer chooses, or says which phone the fixed method is to ask. What came of an attempt before may not
/// be known.
fn unstarted(hosted: &Hosted) -> State {
    let problem = in_progress(hosted);
    match hosted.object.fixed_method() {
        Some(method) if method.needs_phone() => State::NeedsPhone {
            method: shown(method),
            known: known_phone(hosted).map(masked),
            typed: None,
            error: None,
            problem,
            other_methods: false,
        },
        Some(_) | None => {
            State::Choose { methods: methods(hosted), problem, received: None, kept_apart: all_kept_apart(hosted) }
        }
    }
}

fn open(hosted: &Hosted, attempt: &Transaction, simulator: &Simulator<'_>) -> State {
    let Some(payment) = &hosted.payment else {
        return unstarted(hosted);
    };
    let session = &payment.session;
    let method = shown(attempt.attempt().method);
    let phone = attempt.payer.phone.clone().map(masked).unwrap_or_default();
    let is_waiting = attempt.step() == Step::Waiting && !session.outcome_unknown;
    let simulator_url = simulator_url(hosted, attempt, simulator);
    match (&session.next_action, session.status()) {
        (Some(NextAction::Redirect { url }), SessionStatus::Pending) if is_waiting => {
            let (url, other_methods) = (url.clone(), can_choose(hosted));
            State::Redirecting { method, url, automatic: false, problem: None, other_methods }
        }
        (Some(NextAction::Otp { length, attempts_left, .. }), SessionStatus::Pending) if is_waiting => {
            State::EnterCode {
                method,
                phone,
                length: *length,
                attempts_left: *attempts_left,
                error: (session.failure_reason == Some(FailureReason::WrongCode)).then_some(CodeError::Wrong),
                can_resend_in: session
                    .code_again_at(attempt)
                    .filter(|_| hosted.takes_payments() && hosted.methods.contains(&attempt.attempt().method))
                    .map(|at| seconds_until(at, hosted.now)),
                other_methods: can_choose(hosted),
                simulator_code: hosted.simulated.as_ref().map(|_| RIGHT_CODE.to_owned()),
            }
        }
        // The request is with the payer; sending another one would be a second payment.
        (Some(NextAction::ApproveOnPhone { .. }), _) if is_waiting => {
            State::ApproveOnPhone { method, phone, problem: None, other_methods: false, simulator_url }
        }
        (
            None
            | Some(
                NextAction::Redirect { .. }
                | NextAction::Otp { .. }
                | NextAction::ApproveOnPhone { .. }
                | NextAction::ConfirmDone {}
                | NextAction::DialUssd { .. }
                | NextAction::ShowQr { .. },
            ),
            _,
        ) => {
            let held = held_page(session).filter(|_| is_waiting && hosted.simulated.is_none());
            checking(hosted, simulator_url.or(held))
        }
    }
}

fn not_paid(hosted: &Hosted, attempt: &Transaction) -> State {
    if hosted.unsettled().is_some() {
        // An attempt before this one has no final word: then nobody can say that nothing was taken.
        return State::Choose {
            methods: methods(hosted),
            problem: Some(Problem::InProgress),
            received: None,
            kept_apart: all_kept_apart(hosted),
        };
    }
    State::NotPaid {
        method: shown(attempt.attempt().method),
        reason: match attempt.failure_reason.unwrap_or(FailureReason::ProviderError) {
            FailureReason::InsufficientFunds => Reason::InsufficientFunds,
            FailureReason::Declined => Reason::Declined,
            FailureReason::WrongCode => Reason::WrongCode,
            FailureReason::Expired => Reason::Expired,
            FailureReason::Cancelled => Reason::Cancelled,
            FailureReason::ProviderError => Reason::ProviderError,
        },
        methods: methods(hosted),
        kept_apart: all_kept_apart(hosted),
    }
}

/// Where the payer can still approve the same attempt who came back without: nothing else begins until its rail has spoken.
fn held_page(session: &PaymentSession) -> Option<String> {
    match &session.next_action {
        Some(NextAction::Redirect { url }) => Some(url.clone()),
        None
        | Some(
            NextAction::Otp { .. }
            | NextAction::ApproveOnPhone { .. }
            | NextAction::ConfirmDone {}
            | NextAction::DialUssd { .. }
            | NextAction::ShowQr { .. },
        ) => None,
    }
}

fn checking(hosted: &Hosted, attempt_url: Option<String>) -> State {
    let session_method = hosted.payment.as_ref().and_then(|payment| payment.session.method);
    // What is open or paid was begun with some method; the word stands for it where none is known.
    let method = session_method.or_else(|| hosted.methods.first().copied()).unwrap_or(domain::Method::Wave);
    State::Checking { method: shown(method), attempt_url }
}

/// What this one showing says beyond the state, where the state allows it.
pub(super) fn noted(
    state: State,
    hosted: &Hosted,
    noted: Option<&Noted>,
    typed: &Typed,
    chosen: Option<domain::Method>,
) -> State {
    let (note, automatic) = (noted.map(|it| &it.note), noted.is_some_and(|it| it.is_fresh(hosted.now)));
    match (state, note) {
        (State::Redirecting { method, url, problem, other_methods, .. }, Some(Note::Go {})) => {
            State::Redirecting { method, url, automatic: true, problem, other_methods }
        }
        (
            State::Cancelled { standing: Standing::NothingTaken, return_url: Some(return_url), .. },
            Some(Note::Leaving {}),
        ) => State::Leaving { return_url, automatic },
        (State::ApproveOnPhone { method, simulator_url, .. }, Some(Note::Approved {})) => {
            State::Checking { method, attempt_url: simulator_url }
        }
        (state @ (State::ApproveOnPhone { .. } | State::Redirecting { .. }), Some(note)) => with_problem(state, note),
        (
            State::EnterCode {
                method,
                phone,
                length,
                attempts_left,
                can_resend_in,
                other_methods,
                simulator_code,
                error,
            },
            note,
        ) => {
            let error = match note {
                Some(Note::Code { fault: CodeFault::Missing }) => Some(CodeError::Missing),
                Some(Note::Code { fault: CodeFault::Format }) => Some(CodeError::Format),
                Some(Note::Code { fault: CodeFault::TooOften } | Note::TooOften {}) => Some(CodeError::TooOften),
                Some(Note::Code { fault: CodeFault::NotSentAgain }) => Some(CodeError::NotSentAgain),
                Some(Note::StaleForm {}) => Some(CodeError::StaleForm),
                Some(Note::AmountChanged {}) => Some(CodeError::AmountChanged),
                Some(Note::NoNewPayment {}) => Some(CodeError::NoNewPayment),
                Some(Note::InProgress {}) => Some(CodeError::InProgress),
                Some(_) | None => error,
            };
            State::EnterCode {
                method,
                phone,
                length,
                attempts_left,
                error,
                can_resend_in,
                other_methods,
                simulator_code,
            }
        }
        (state @ (State::Choose { .. } | State::NeedsPhone { .. } | State::NotPaid { .. }), note) => {
            match (note, hosted.failure_address()) {
                // They would be told that they did not pay.
                (Some(Note::Leaving {}), Some(return_url)) if is_untouched(hosted) => {
                    State::Leaving { return_url, automatic }
                }
                (note, _) => unstarted_noted(state, hosted, note, typed, chosen),
            }
        }
        (state, _) => state,
    }
}

fn unstarted_noted(
    state: State,
    hosted: &Hosted,
    note: Option<&Note>,
    typed: &Typed,
    chosen: Option<domain::Method>,
) -> State {
    let error = match note {
        // The warning beside it says what is true of all attempts.
        Some(Note::Phone { fault: PhoneFault::NotStarted, .. }) if hosted.unsettled().is_some() => None,
        Some(Note::Phone { fault, .. }) => Some(match fault {
            PhoneFault::Missing => PhoneError::Missing,
            PhoneFault::Format => PhoneError::Format,
            PhoneFault::NotStarted => PhoneError::NotStarted,
            PhoneFault::TooOften => PhoneError::TooOften,
        }),
        Some(_) | None => None,
    };
    // A form that did nothing is the newest word.
    let state = match state {
        State::NotPaid { methods, kept_apart, .. } if note.is_some_and(Note::is_of_form) => {
            State::Choose { methods, problem: None, received: None, kept_apart }
        }
        state => state,
    };
    let problem = match &state {
        State::Choose { problem, .. } | State::NeedsPhone { problem, .. } => *problem,
        _ => None,
    };
    let chosen = match note {
        Some(Note::Phone { method, .. }) => Some(*method),
        // What is wrong with a field stands beside it, on the page on which it was filled in.
        Some(Note::Part { .. } | Note::Fields { .. }) => None,
        Some(_) | None => chosen,
    };
    let mut state = match chosen.filter(|method| method.needs_phone() && hosted.methods.contains(method)) {
        Some(method) => State::NeedsPhone {
            method: shown(method),
            known: known_phone(hosted).map(masked),
            typed: None,
            error: None,
            problem,
            other_methods: can_choose(hosted),
        },
        None => state,
    };
    if let State::NeedsPhone { typed: in_field, error: at_field, .. } = &mut state {
        *in_field = typed.get(questions::PHONE).map(str::to_owned);
        *at_field = error;
    }
    match note {
        Some(note) => with_problem(state, note),
        None => state,
    }
}

fn with_problem(mut state: State, note: &Note) -> State {
    let said = match note {
        Note::NotStarted { method } => Problem::NotStarted(shown(*method)),
        Note::InProgress {} => Problem::InProgress,
        Note::TooOften {} => Problem::TooOften,
        Note::StaleForm {} => Problem::StaleForm,
        Note::AmountChanged {} => Problem::AmountChanged,
        Note::NoNewPayment {} => Problem::NoNewPayment,
        Note::LastPlaceHeld {} => Problem::LastPlaceHeld,
        Note::Go {}
        | Note::Leaving {}
        | Note::Approved {}
        | Note::Phone { .. }
        | Note::Part { .. }
        | Note::Fields { .. }
        | Note::Code { .. } => return state,
    };
    if let State::Choose { problem, .. }
    | State::NeedsPhone { problem, .. }
    | State::ApproveOnPhone { problem, .. }
    | State::Redirecting { problem, .. } = &mut state
    {
        // It would say that nothing was taken, and an attempt before it may have taken money.
        if !(matches!(said, Problem::NotStarted(_)) && *problem == Some(Problem::InProgress)) {
            *problem = Some(said);
        }
    }
    state
}

/// The number that is named on a button instead of asked for, where a Gambian wallet can have it: the one with which a payment was
/// opened and not begun yet, or the one that the shop gave. What an attempt of before was sent to may have been a mistake.
pub(super) fn known_phone(hosted: &Hosted) -> Option<Msisdn> {
    let payment = hosted.payment.as_ref().filter(|_| hosted.object.fixed_method().is_some());
    let opened =
        payment.filter(|payment| payment.session.status() == SessionStatus::Pending && payment.transaction.is_none());
    let of_session = opened.and_then(|payment| payment.session.payer.phone.clone());
    of_session.or_else(|| hosted.told_phone()).filter(Msisdn::is_gambian)
}

fn masked(phone: Msisdn) -> String {
    mask::phone(phone.as_str())
}

/// Only while a click over there decides something.
fn simulator_url(hosted: &Hosted, attempt: &Transaction, simulator: &Simulator<'_>) -> Option<String> {
    let simulated = hosted.simulated.as_ref()?;
    let decides = match simulated.screen() {
        Screen::Approve => simulated.script() == Script::Wait,
        Screen::Card | Screen::CardHolder => true,
        Screen::WaitingForCode | Screen::Decided { .. } | Screen::Withdrawn => false,
    };
    let token = || simulator::page_token(simulator.token_key, &attempt.id.to_string());
    decides.then(|| format!("{}/simulator/{}", simulator.pay_url, token()))
}

fn receipt(attempt: &Transaction) -> Receipt {
    let paid_at = attempt.reached(TransactionStatus::Completed).unwrap_or(attempt.updated_at);
    Receipt {
        amount: amount(attempt.amount),
        method: shown(attempt.attempt().method),
        paid_at: paid_at.seconds(),
        payment: attempt.id.to_string(),
        refunded: refunded(attempt),
    }
}

fn apart(attempt: &Transaction) -> Apart {
    Apart {
        amount: amount(attempt.amount),
        payment: attempt.id.to_string(),
        is_kept: attempt.duplicate,
        refunded: refunded(attempt),
    }
}

/// As much as came, where a page is about that: it may be less than was asked for, or more.
pub(super) fn came(state: &State) -> Option<Amount> {
    let (State::PaidLate { receipts, .. } | State::AlreadyPaid { receipts, .. }) = state else { return None };
    let first = receipts.first()?;
    let minor: i64 = receipts.iter().map(|receipt| receipt.amount.minor).sum();
    Some(Amount { minor, ..first.amount.clone() })
}

pub(super) fn refunded(attempt: &Transaction) -> Option<Refunded> {
    let (back, is_whole) = (attempt.refunded(), attempt.status() == TransactionStatus::Refunded);
    (back.minor > 0).then(|| Refunded { amount: amount(back), is_whole })
}

fn shown_end(closed: StandsClosed) -> Closed {
    match closed {
        StandsClosed::ByMerchant => Closed::ByMerchant,
        StandsClosed::Expired => Closed::Expired,
        StandsClosed::UsedUp => Closed::UsedUp,
    }
}

fn methods(hosted: &Hosted) -> Vec<Method> {
    hosted.methods.iter().copied().map(shown).collect()
}

fn can_choose(hosted: &Hosted) -> bool {
    hosted.object.fixed_method().is_none() && hosted.methods.len() > 1 && hosted.takes_payments()
}

fn seconds_until(at: domain::Timestamp, now: domain::Timestamp) -> u32 {
    u32::try_from(at.since(now).as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Whether the rail's own page sends the payer back to us.
pub(super) fn leads_outward(method: domain::Method) -> bool {
    method.flow() == Flow::Redirect
}

pub(super) fn shown(method: domain::Method) -> Method {
    match method {
        domain::Method::Wave => Method::Wave,
        domain::Method::Afrimoney => Method::Afrimoney,
        domain::Method::Qmoney => Method::Qmoney,
        domain::Method::Card => Method::Card,
    }
}

pub(super) fn amount(money: Money) -> Amount {
    let Money { minor, currency } = money;
    Amount { minor, exponent: exponent(currency), currency: currency.code().to_owned() }
}

pub(super) fn exponent(currency: Currency) -> u8 {
    u8::try_from(currency.exponent()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use domain::organization::Organization;
    use domain::payment::{Payable, Payer};
    use domain::payment_link::{PaymentLink, Price, Terms};
    use domain::rail::{Called, Started};
    use domain::{Currency, Entropy, Mode, Scope, Timestamp};

    use super::*;
    use crate::app::sessions::Payment;
    use crate::secrets::{MasterKey, Purpose};

    const WAVE: &str = "https://pay.wave.com/c/1";

    /// A payment by Wave of a link, in live mode, of which the rail has told where to go.
    fn sent_away(now: Timestamp) -> Hosted {
        let mut entropy = Entropy::from_seed([1; 32]);
        let organization = Organization::new(entropy.id(now), Mode::Live, "Kairaba Books".into(), now);
        let scope = Scope { organization: organization.id, mode: Mode::Live };
        let terms = Terms {
            title: "Tea".into(),
            description: None,
            expiration_date: None,
            max_usage_count: None,
            success_url: None,
            failure_url: None,
            collect_customer_info: false,
            custom_fields: None,
            metadata: None,
        };
        let amount = Money::new(100, Currency::gmd());
        let link = PaymentLink::create(entropy.id(now), scope, Price::Fixed { amount }, terms, now);
        let (payable, wave) = (Payable::PaymentLink(link.id), domain::Method::Wave);
        let until = Timestamp::from_micros(now.micros() + 600_000_000);
        let mut session =
            PaymentSession::open(entropy.id(now), scope, payable, amount, Some(wave), Payer::default(), until, now);
        let fee = Money::new(0, amount.currency);
        let mut attempt = session.begin(entropy.id(now), wave, "wave".into(), fee, now);
        let next_action = NextAction::Redirect { url: WAVE.into() };
        session.started(&mut attempt, Called::Answered(Started { rail_reference: None, next_action }), now);
        Hosted {
            object: PaidObject::PaymentLink(link),
            organization: organization.into(),
            methods: vec![wave],
            attempts: vec![attempt.clone()],
            payment: Some(Payment { session, transaction: Some(attempt) }),
            recorded: Vec::new(),
            received: Vec::new(),
            simulated: None,
            now,
        }
    }

    #[test]
    fn who_came_back_can_go_to_the_same_page_again() {
        let mut hosted = sent_away(Timestamp::from_micros(1_790_000_000_000_000));
        let token_key = MasterKey::from_bytes([1; 32]).subkey(Purpose::PageToken);
        let shown =
            |hosted: &Hosted| stored(hosted, &Simulator { pay_url: "https://pay.example", token_key: &token_key });
        assert!(matches!(shown(&hosted), State::Redirecting { url, .. } if url == WAVE));
        let Some(Payment { session, transaction: Some(attempt) }) = &mut hosted.payment else { unreachable!() };
        session.returned(attempt, hosted.now);
        assert!(matches!(shown(&hosted), State::Checking { attempt_url: Some(url), .. } if url == WAVE));
        // Nobody knows what became of it: one who pays there may have paid already.
        let Some(Payment { session, .. }) = &mut hosted.payment else { unreachable!() };
        session.outcome_unknown = true;
        assert!(matches!(shown(&hosted), State::Checking { attempt_url: None, .. }));
    }
}
