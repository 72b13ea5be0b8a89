//! Attempts between transactions: intent committed, rail called, outcome committed.
//!
//! A request runs a job of its own inline and waits for a bounded time; if it dies, the worker runs the same function.

mod again;

use std::time::Duration;

use domain::job::{ClaimedJob, Job};
use domain::payment::{Moved, PaymentSession, Step, Transaction};
use domain::rail::{Called, FailureReason, Report};
use domain::{Id, Scope, Timestamp};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;
use store::queries::jobs;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::idempotency::{self, Answer, Outcome, Reply, Run};
use super::paid_object::PaidObject;
use super::payments::{self, Begun, Initialize, Target};
use super::sessions::{self, Payment};
use super::settlement::{self, settle};
use super::{App, Context, insist, load, look_up, organization_of};
use crate::error::Failure;
use crate::monotonic::{self, Since};
use crate::rails::Order;
use crate::way_back;
use crate::wire;
use crate::wire::payments::PaymentSessionView;

/// A request is answered after this, whatever the rail does.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A rail that says nothing for so long has lost the call.
const RAIL_TIMEOUT: Duration = Duration::from_secs(20);

impl App {
    /// Begins or continues a payment, calls the rail where one has to be called, and answers with the session.
    pub async fn initialize<R>(
        &self,
        scope: Scope,
        request: Initialize,
        code: Option<String>,
        key: Option<IdempotencyKey>,
        render: R,
    ) -> Result<Reply, Failure>
    where
        R: Fn(Result<&Payment, &Failure>) -> Reply + Send + Sync + Clone + 'static,
    {
        let goes_on = request.has_code || matches!(request.target, Target::Session(_));
        let begin = move |tx: &mut Tx<'_>, context: &Context, key| payments::begin(tx, context, scope, &request, key);
        self.begin_and_call(scope, begin, goes_on, code, key, render).await
    }

    /// Sends a new code in place of one that never came: a new attempt of the same method, counted like any.
    pub async fn start_again<R>(
        &self,
        scope: Scope,
        target: Target,
        key: Option<IdempotencyKey>,
        render: R,
    ) -> Result<Reply, Failure>
    where
        R: Fn(Result<&Payment, &Failure>) -> Reply + Send + Sync + Clone + 'static,
    {
        let counted = self.starts().counted();
        let begin = move |tx: &mut Tx<'_>, context: &Context, key| {
            payments::begin_again(tx, context, scope, target, &counted, key)
        };
        let goes_on = matches!(target, Target::Session(_));
        self.begin_and_call(scope, begin, goes_on, None, key, render).await
    }

    /// `answer`: of a request with a key of ours, which hears of what was begun.
    #[expect(clippy::too_many_arguments, reason = "all of it belongs to one request")]
    async fn begin_once<B, R>(
        &self,
        since: Since,
        scope: Scope,
        begin: B,
        code: Option<String>,
        key: Option<IdempotencyKey>,
        answer: Option<Answer>,
        render: R,
    ) -> Result<Reply, Failure>
    where
        B: Fn(&mut Tx<'_>, &Context, Option<(String, String)>) -> Result<Begun, Failure>
            + Send
            + Sync
            + Clone
            + 'static,
        R: Fn(Result<&Payment, &Failure>) -> Reply + Send + Sync + Clone + 'static,
    {
        // One that the caller may come with again.
        let kept_key = key.clone().filter(|key| !key.is_own());
        let is_keyed = kept_key.is_some();
        let stored_key = key.as_ref().filter(|key| key.is_stored()).map(|key| (key.space.clone(), key.key.clone()));
        let heard = answer.clone();
        let begin = move |tx: &mut Tx<'_>, context: &Context| {
            let begun = begin(tx, context, stored_key.clone());
            if let Some(heard) = &heard {
                heard.begun(begun.as_ref().ok().map(|begun| begun.payment().session.id));
            }
            Ok(match begun? {
                Begun::Nothing(payment) => Outcome::Answer(*payment),
                outside @ (Begun::Start(..) | Begun::SubmitCode(..)) => Outcome::Leave(outside),
            })
        };
        let asked_at = monotonic::asked_at();
        let answered_by = asked_at + idempotency::LONGEST_ANSWER;
        let (tell, told) = oneshot::channel();
        let (app, render_ended, key_ended) = (self.clone(), render.clone(), kept_key.clone());
        // Both on their own: a payer who goes away in between takes the call along no more than the commit.
        let mut work = tokio::spawn(async move {
            let begun = match app.write_or_leave(asked_at, key, answer.as_ref(), begin, render_ended.clone()).await? {
                Run::Done(reply) => return Ok(reply),
                Run::Wait => return Err(Failure::KeyInUse),
                Run::Open(begun) => begun,
            };
            let payment = begun.payment().clone();
            let _ = tell.send(payment.clone());
            let told = match app.call(scope, begun, code, since).await {
                Ok(ended) => app.reply(ended, key_ended, &render_ended).await,
                Err(failure) => Err(failure),
            };
            told.or_else(|failure| Ok(render_ended(Ok(&as_begun(failure, payment, is_keyed)?))))
        });
        let Ok(begun) = told.await else {
            // Nothing was begun that has to be called for.
            return work.await.unwrap_or_else(|_| Err(Failure::Broken("a payment broke before it began".into())));
        };
        let until = answered_by.min(monotonic::now() + LONGEST_WAIT);
        let answered = match tokio::time::timeout_at(until, &mut work).await {
            Ok(Ok(ended)) => return ended,
            Ok(Err(_)) => Err(Failure::Broken("a call to a rail ended without an outcome".into())),
            // The call goes on; the session as it stands is the answer, unless it can't be read while somebody waits.
            Err(_) => {
                let answer = async { self.reply(self.answer(scope, &begun.session).await?, kept_key, &render).await };
                match tokio::time::timeout_at(answered_by, answer).await {
                    Ok(answered) => answered,
                    Err(_) => Err(store::Error::Unavailable("the session can't be read in time".into()).into()),
                }
            }
        };
        answered.or_else(|failure| Ok(render(Ok(&as_begun(failure, begun, is_keyed)?))))
    }

    async fn call(&self, scope: Scope, begun: Begun, code: Option<String>, since: Since) -> Result<Ended, Failure> {
        match begun {
            Begun::Start(job, _) => self.start_attempt(&job, since).await,
            Begun::SubmitCode(id, payment) => {
                let sent_at = payment.transaction.as_ref().and_then(|transaction| transaction.code_sent_at());
                let key = payment.session.unanswered_key;
                self.submit_code(scope, id, code.unwrap_or_default(), since, sent_at, key).await
            }
            Begun::Nothing(payment) => Ok(Ended { payment: *payment, is_kept: true }),
        }
    }

    /// The session as it stands; the key of the request that `begun` it gets that answer if it has none yet.
    async fn answer(&self, scope: Scope, begun: &PaymentSession) -> Result<Ended, Failure> {
        let (session, key) = (begun.id, begun.unanswered_key.clone());
        let payment = self.look(move |tx, _| sessions::look_up_payment(tx, scope, session)).await?;
        if key.is_none() || payment.session.unanswered_key != key {
            return Ok(Ended { payment, is_kept: false });
        }
        self.commit(move |tx, context| {
            let mut payment = sessions::load_payment(tx, scope, session)?;
            let is_kept = payment.session.unanswered_key == key && finish_key(tx, context, &mut payment)?;
            if is_kept {
                tx.save(&mut payment.session)?;
            }
            Ok(Ended { payment, is_kept })
        })
        .await
    }

    /// The payment as it ended, unless somebody was faster and another answer is kept under the key: a key has one.
    async fn reply<R>(&self, ended: Ended, key: Option<IdempotencyKey>, render: &R) -> Result<Reply, Failure>
    where
        R: Fn(Result<&Payment, &Failure>) -> Reply,
    {
        if let Some(key) = key.filter(|_| !ended.is_kept)
            && let Some(kept) = self.stored_answer(&key).await?
        {
            return Ok(Reply { replayed: false, ..kept });
        }
        Ok(render(Ok(&ended.payment)))
    }

    /// Hands an attempt to its rail: the job `StartAttempt`, run inline or by the worker, and claimed after `since`.
    pub(crate) async fn start_attempt(&self, claimed: &ClaimedJob, since: Since) -> Result<Ended, Failure> {
        let (scope, id, mut until) = (claimed.scope, transaction_of(claimed), insist::while_held());
        let order = self.order(scope, id).await?;
        let session = order.transaction.attempt().session;
        let (has_next_action, over) = self
            .look(move |tx, _| {
                let session = look_up::<PaymentSession>(tx, scope, session)?;
                Ok((session.next_action.is_some(), why_over(tx, &session)?))
            })
            .await?;
        let over = over.filter(|_| !domain::planted!(Defect::StartedForNobody));
        let rerun = claimed.attempts > 1 && !domain::planted!(Defect::ChargedAgain);
        let idempotent = self.context().starts_once(&order.transaction);
        let called = match (order.transaction.step(), self.rails().named(scope.mode, &order.transaction.attempt().rail))
        {
            (Step::Settled, _) => None,
            // Nobody waits for it any more. Where nobody has called the rail before, that is the end of it.
            (Step::Sending, _) if over.is_some() => over.map(Called::Refused),
            (Step::Unknown, _) if over.is_some() => Some(Called::Lost("nobody waits for it any more".into())),
            // Otherwise it is asked for again: the answer with the way on was lost.
            (Step::Waiting, _) if over.is_some() || has_next_action || !idempotent => None,
            (Step::Waiting, None) => None,
            // Whether the first call arrived is not known, and this rail would take a second one for another payment.
            (Step::Sending | Step::Unknown, _) if rerun && !idempotent => {
                Some(Called::Lost("the process that called the rail died".into()))
            }
            (Step::Sending | Step::Unknown, None) => Some(Called::Lost("the rail is not configured any more".into())),
            // Whoever took over calls, or has called: they say what came of it.
            (Step::Sending | Step::Waiting | Step::Unknown, Some(_)) if !self.may_call(claimed, since).await? => None,
            (Step::Sending | Step::Waiting | Step::Unknown, Some(rail)) => {
                until = insist::while_held();
                Some(in_time(rail.start(order)).await)
            }
        };
        let claim = claimed.clone();
        self.settle_and_tell(scope, id, Heard::Start(claimed.clone()), until, move |tx, session, transaction, now| {
            let called = match &called {
                // Whoever took over meanwhile may have called first, or be calling: they say what came of it.
                Some(Called::Refused(_) | Called::Lost(_)) if !jobs::is_held(tx, &claim)? => return Ok(Moved::Nowhere),
                // No to the second call says nothing of the first.
                Some(Called::Refused(_)) if rerun => {
                    Called::Lost("the rail refused it, and it was not the only call".into())
                }
                Some(called) => called.clone(),
                None => return Ok(Moved::Nowhere),
            };
            Ok(session.started(transaction, called, now))
        })
        .await
    }

    /// Hands a code to the rail, of a request that came at `since`. It exists only here and in the payer's request.
    async fn submit_code(
        &self,
        scope: Scope,
        id: Id<Transaction>,
        code: String,
        since: Since,
        sent_at: Option<Timestamp>,
        key: Option<(String, String)>,
    ) -> Result<Ended, Failure> {
        let until = insist::while_held();
        let order = self.order(scope, id).await?;
        let called = match self.rails().named(scope.mode, &order.transaction.attempt().rail) {
            None => Called::Lost("the rail is not configured any more".into()),
            // By the end of its call nobody would wait for it: others may have asked, and the payer have paid in another way.
            Some(_) if since.elapsed(self.store()) > insist::LATEST_BEGINNING => {
                Called::Lost("the code could not be handed over in time".into())
            }
            Some(rail) => in_time(rail.submit_code(order, code)).await,
        };
        self.settle_and_tell(scope, id, Heard::Code(key), until, move |_, session, transaction, now| {
            Ok(session.code_submitted(transaction, sent_at, called.clone(), now))
        })
        .await
    }

    /// Asks the rail what became of an attempt: the job `AskRail`, or a payer who says "I approved it".
    pub async fn ask_rail(
        &self,
        scope: Scope,
        id: Id<Transaction>,
        claimed: Option<ClaimedJob>,
    ) -> Result<(), Failure> {
        let order = self.order(scope, id).await?;
        let called = match self.rails().named(scope.mode, &order.transaction.attempt().rail) {
            None => Called::Lost("the rail is not configured any more".into()),
            Some(rail) => in_time(rail.query(order.clone())).await,
        };
        let report = match (called, &claimed) {
            (Called::Answered(Report::NotFound), Some(claimed)) if self.may_repeat_start(&order, claimed).await? => {
                return self.repeat_start(claimed, order).await;
            }
            (Called::Answered(report), _) => report,
            // A question without an answer changes nothing.
            (Called::Refused(_) | Called::Lost(_), _) => Report::NotFound,
        };
        self.report(scope, id, report, claimed).await
    }

    /// What was lost on the way may never have arrived: a rail that knows the second call for the first gets it again, while
    /// somebody waits to pay, unless a person has to look at it or has decided. Commits the intent, so that nobody decides while the
    /// rail is called; for as long nobody else takes the job over.
    async fn may_repeat_start(&self, order: &Order, claimed: &ClaimedJob) -> Result<bool, Failure> {
        let (scope, id) = (claimed.scope, order.transaction.id);
        let knows_again = self.context().starts_once(&order.transaction) || domain::planted!(Defect::ChargedAgain);
        if !knows_again || !matches!(order.transaction.step(), Step::Sending | Step::Unknown) || !is_question(claimed) {
            return Ok(false);
        }
        let (claim, since) = (claimed.clone(), Since::now(self.store()));
        let is_repeated = self.commit(move |tx, _| {
            let mut transaction = load::<Transaction>(tx, scope, id)?;
            let session = look_up::<PaymentSession>(tx, scope, transaction.attempt().session)?;
            let is_repeated = why_over(tx, &session)?.is_none()
                && jobs::renew(tx, &claim, tx.now().plus(insist::LEASE))?
                && session.repeat_start(&mut transaction);
            if is_repeated {
                tx.save(&mut transaction)?;
            }
            Ok(is_repeated)
        });
        // The answer to the commit may have come late.
        Ok(is_repeated.await? && self.may_call(claimed, since).await?)
    }

    async fn repeat_start(&self, claimed: &ClaimedJob, order: Order) -> Result<(), Failure> {
        let (scope, id, until) = (claimed.scope, order.transaction.id, insist::while_held());
        let called = match self.rails().named(scope.mode, &order.transaction.attempt().rail) {
            None => Called::Lost("the rail is not configured any more".into()),
            Some(rail) => in_time(rail.start(order)).await,
        };
        let claim = claimed.clone();
        let heard = Heard::Word(Some(claimed.clone()));
        self.settle_and_tell(scope, id, heard, until, move |tx, session, transaction, now| match &called {
            // Whoever took over meanwhile may be repeating it.
            Called::Refused(_) | Called::Lost(_) if !jobs::is_held(tx, &claim)? => Ok(Moved::Nowhere),
            called => Ok(session.repeated(transaction, called.clone(), now)),
        })
        .await
        .map(drop)
    }

    /// Whether what is heard would change nothing. A payer who asks or comes back in vain, or a rail that says the same again,
    /// however often, does not put off the worker's own question.
    async fn is_known(
        &self,
        scope: Scope,
        id: Id<Transaction>,
        apply: impl Fn(&mut PaymentSession, &mut Transaction, Timestamp) -> Moved + Send + Sync + 'static,
    ) -> Result<bool, Failure> {
        self.look(move |tx, _| {
            let mut transaction = look_up::<Transaction>(tx, scope, id)?;
            if transaction.is_recorded() {
                return Ok(false);
            }
            let mut session = look_up::<PaymentSession>(tx, scope, transaction.attempt().session)?;
            Ok(apply(&mut session, &mut transaction, tx.now()) == Moved::Nowhere)
        })
        .await
    }

    /// A rail's verified word, by callback or query.
    pub async fn report(
        &self,
        scope: Scope,
        id: Id<Transaction>,
        report: Report,
        claimed: Option<ClaimedJob>,
    ) -> Result<(), Failure> {
        let is_unknown_there = report == Report::NotFound;
        let reported = move |session: &mut PaymentSession, transaction: &mut Transaction, now| {
            session.reported(transaction, &report, now)
        };
        if claimed.is_none() && self.is_known(scope, id, reported.clone()).await? {
            return Ok(());
        }
        let until = if claimed.is_some() { insist::while_held() } else { insist::once() };
        // Whoever repeated the call that starts it may have died; then nobody else knows that it ended.
        let unheard = claimed.clone().filter(|claimed| is_question(claimed) && is_unknown_there);
        self.settle_and_tell(
            scope,
            id,
            Heard::Word(claimed),
            until,
            move |tx, session, transaction, now| match &unheard {
                Some(claimed) if jobs::is_held(tx, claimed)? => {
                    Ok(session.repeated(transaction, Called::Lost("nobody heard its answer".into()), now))
                }
                _ => Ok(reported(session, transaction, now)),
            },
        )
        .await
        .map(drop)
    }

    /// The payer came back from the rail's page.
    pub async fn payer_returned(&self, scope: Scope, id: Id<Transaction>) -> Result<(), Failure> {
        if self.is_known(scope, id, PaymentSession::returned).await? {
            return Ok(());
        }
        let returned = |_: &mut Tx<'_>, session: &mut PaymentSession, transaction: &mut Transaction, now| {
            Ok(session.returned(transaction, now))
        };
        self.settle_and_tell(scope, id, Heard::Word(None), insist::once(), returned).await.map(drop)
    }

    /// Tells the rail that nobody waits for an attempt any more: the job `WithdrawAttempt`, claimed after `since`.
    pub async fn withdraw_attempt(&self, claimed: &ClaimedJob, since: Since) -> Result<(), Failure> {
        let (scope, id) = (claimed.scope, transaction_of(claimed));
        let order = self.order(scope, id).await?;
        if let (false, Some(rail)) = (
            order.transaction.step() == Step::Settled || domain::planted!(Defect::NothingWithdrawn),
            self.rails().named(scope.mode, &order.transaction.attempt().rail),
        ) && let Called::Lost(why) = in_time(rail.withdraw(order)).await
        {
            return Err(Failure::Broken(why));
        }
        // That may have taken most of the lease. Whoever took over asks.
        if !self.may_call(claimed, since).await? {
            return Ok(());
        }
        // Whether it was paid in the last moment only the rail knows.
        self.ask_rail(scope, id, Some(claimed.clone())).await
    }

    async fn settle_and_tell(
        &self,
        scope: Scope,
        id: Id<Transaction>,
        heard: Heard,
        until: Instant,
        apply: impl Fn(&mut Tx<'_>, &mut PaymentSession, &mut Transaction, domain::Timestamp) -> Result<Moved, Failure>
        + Send
        + Sync
        + 'static,
    ) -> Result<Ended, Failure> {
        self.commit_until(Some(until), move |tx, context| {
            let mut payment = settle(tx, context, scope, id, &apply)?;
            if let Heard::Start(claimed) | Heard::Word(Some(claimed)) = &heard {
                jobs::done(tx, claimed)?;
            }
            if let Heard::Word(Some(claimed)) = &heard
                && is_question(claimed)
            {
                sessions::withdraw_again(tx, &payment)?;
            }
            owe_way_on(tx, context, &payment)?;
            let is_kept = answers_key(tx, &payment, &heard)? && finish_key(tx, context, &mut payment)?;
            if is_kept {
                tx.save(&mut payment.session)?;
            }
            Ok(Ended { payment, is_kept })
        })
        .await
    }

    /// What the rail is told of the attempt.
    async fn order(&self, scope: Scope, id: Id<Transaction>) -> Result<Order, Failure> {
        self.read(move |tx, context| {
            let transaction = look_up::<Transaction>(tx, scope, id)?;
            let organization = organization_of(tx, scope)?;
            let session = transaction.attempt().session;
            let way = way_back::of(&context.form_token_key, session);
            let return_url = context.addresses.returned(transaction.payable, session, &way);
            Ok(Order { transaction, merchant: organization.profile.name.clone(), return_url })
        })
        .await
    }
}

/// Where it was heard what became of an attempt.
enum Heard {
    /// In the call that starts it: the job `StartAttempt`.
    Start(ClaimedJob),
    /// In the call that hands over the code of the request with this key.
    Code(Option<(String, String)>),
    /// By callback or query, which may have been a job.
    Word(Option<ClaimedJob>),
}

/// A payment after what was known of it last.
pub(crate) struct Ended {
    payment: Payment,
    /// Whether this is the answer that is kept under the key that waited for one.
    is_kept: bool,
}

/// Why nobody waits for a payment of this session any more, if that is so: its time ran out, or something else ended what it
/// is for.
fn why_over(tx: &mut Tx<'_>, session: &PaymentSession) -> Result<Option<FailureReason>, Failure> {
    if session.refuse_if_closed().is_err() {
        return Ok(Some(FailureReason::Cancelled));
    }
    if session.expires_at <= tx.now() {
        return Ok(Some(FailureReason::Expired));
    }
    let object = PaidObject::look_up(tx, session.scope, session.payable)?;
    Ok((!sessions::has_use(tx, &object, session)?).then_some(FailureReason::Cancelled))
}

/// The answer with the way on was lost once more, or refused: as long as somebody waits to pay it is asked for again. What is owed
/// already comes by itself.
fn owe_way_on(tx: &mut Tx<'_>, context: &Context, payment: &Payment) -> Result<(), Failure> {
    let Payment { session, transaction: Some(transaction) } = payment else { return Ok(()) };
    let job = Job::StartAttempt(transaction.id);
    let is_missing = settlement::lacks_way_on(context, session, transaction)
        && !jobs::is_owed(tx, job)?
        && why_over(tx, session)?.is_none();
    if is_missing {
        jobs::schedule(tx, session.scope, job, tx.now().plus(transaction.pause()))?;
    }
    Ok(())
}

/// The one job that may make a lost call once more, so that its lease keeps two such calls apart.
fn is_question(claimed: &ClaimedJob) -> bool {
    matches!(claimed.job, Job::AskRail(_))
}

async fn in_time<T>(call: impl Future<Output = Called<T>>) -> Called<T> {
    tokio::time::timeout(RAIL_TIMEOUT, call)
        .await
        .unwrap_or_else(|_| Called::Lost("the rail did not answer in time".into()))
}

/// What was begun is committed, and the worker ends it: a fault of ours would not be true of it. A caller with a key of its own
/// may come again and gets the answer; any other would begin once more, and is told of the payment as it was committed.
fn as_begun(failure: Failure, begun: Payment, is_keyed: bool) -> Result<Payment, Failure> {
    if !failure.is_fault() {
        return Err(failure);
    }
    let session = begun.session.id;
    tracing::warn!(%session, error = %failure, "a payment was begun, and what came of it can't be told");
    if is_keyed { Err(Failure::KeyInUse) } else { Ok(begun) }
}

/// Whether this is the answer to the request that waits for one, if one does. A word that overtakes a call may know of no way on
/// for the payer: it leaves the answer to the call, or to the job that runs in its place if it died.
fn answers_key(tx: &mut Tx<'_>, payment: &Payment, heard: &Heard) -> Result<bool, Failure> {
    let (Some(waiting), Some(transaction)) = (&payment.session.unanswered_key, &payment.transaction) else {
        return Ok(false);
    };
    Ok(match heard {
        Heard::Start(_) => true,
        Heard::Word(_) if domain::planted!(Defect::WordAnswersForCall) => true,
        // Another code may have been handed over meanwhile; when all is over nobody asks any more.
        Heard::Code(own) => own.as_ref() == Some(waiting) || transaction.step() == Step::Settled,
        Heard::Word(_) => {
            // Said before the rail had the code, or in the middle of its call: who handed it over tells, or the question at its end.
            let may_ask = transaction.is_code_on_its_way(tx.now()) && transaction.step() != Step::Settled;
            let is_left = jobs::is_owed(tx, Job::StartAttempt(transaction.id))?
                || (may_ask && jobs::is_owed(tx, Job::AskRail(transaction.id))?);
            !is_left
        }
    })
}

/// After what a person decided: whoever still waits is told, unless the job that starts the attempt will tell them.
pub(crate) fn decided(tx: &mut Tx<'_>, context: &Context, payment: &mut Payment) -> Result<(), Failure> {
    if answers_key(tx, payment, &Heard::Word(None))? && finish_key(tx, context, payment)? {
        tx.save(&mut payment.session)?;
    }
    Ok(())
}

/// Stores the session as the answer to the request that waits for it; whether there was one.
pub(super) fn finish_key(tx: &mut Tx<'_>, context: &Context, payment: &mut Payment) -> Result<bool, Failure> {
    let Some((space, key)) = payment.session.unanswered_key.take() else { return Ok(false) };
    if domain::planted!(Defect::KeyStaysRunning) {
        return Ok(true);
    }
    // The fingerprint was stored when the key was claimed.
    let key = IdempotencyKey {
        scope: payment.session.scope,
        space,
        key,
        fingerprint: Vec::new(),
        former_fingerprint: None,
        sets_state: false,
    };
    let view = PaymentSessionView::of(&payment.session, payment.transaction.as_ref(), &context.addresses);
    let view = if key.is_of_page() { view.without_payer() } else { view };
    idempotency::finish_left(tx, context, &key, &Reply::new(200, wire::data(&view)))?;
    Ok(true)
}

fn transaction_of(claimed: &ClaimedJob) -> Id<Transaction> {
    match claimed.job {
        Job::StartAttempt(id) | Job::AskRail(id) | Job::WithdrawAttempt(id) | Job::SimulatePayer(id) => id,
        Job::ExpireCheckout(_)
        | Job::OverdueInvoice(_)
        | Job::ExpireSession(_)
        | Job::ExpirePaymentLink(_)
        | Job::RenderInvoice(_)
        | Job::RenderReceipt(_)
        | Job::FetchLogo(..)
        | Job::GiveUpDeliveries(_)
        | Job::SendRefund(_)
        | Job::AskRefund(_)
        | Job::SimulateRefund(_) => unreachable!("that job names no attempt"),
    }
}
