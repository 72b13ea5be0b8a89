//! One request, one effect: the key, the effect and the stored answer commit together (contract §1.8).

mod before;
mod untold;
mod waits;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Refusal;
use store::queries::idempotency::{self, Claimed, IdempotencyKey, KeptBody};
use store::{Dialect, Tx};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{App, Context};
use crate::error::Failure;
use crate::monotonic;

pub(super) use untold::{Answer, Asked, Untold};
pub(super) use waits::KeyWaits;
use waits::Wait;

/// A second request with the same key waits so long for the first.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How soon it looks whether another process, which tells it nothing, has ended the first; later it looks less often.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// After so long nobody waits for an answer any more; until then a commit of unknown outcome is looked for.
pub(super) const LONGEST_ANSWER: Duration = Duration::from_secs(28);
const SETTLE_STEP: Duration = Duration::from_millis(250);
/// Stored under one of our own keys for a request that has not happened, so that it can't happen later. No answer that is kept has this
/// status.
const NOT_DONE: i64 = 503;

/// A finished answer: status and body, new or stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub body: String,
    pub replayed: bool,
}

impl Reply {
    pub fn new(status: u16, body: String) -> Self {
        Self { status, body, replayed: false }
    }
}

/// What a keyed run came to.
#[derive(Clone)]
pub(super) enum Run<T> {
    Done(Reply),
    /// The command left its answer to a later transaction: the key stays running.
    Open(T),
    /// Another request with this key is running.
    Wait,
}

#[derive(Clone, Copy)]
enum Kind {
    Change,
    /// A change whose refusal may pass: only what was done is kept, and a refusal leaves the key free.
    Unrefused,
    Addition,
    /// A change whose open answer nobody gives but this request, within so long.
    Alone(Duration),
}

fn answer_of(run: Run<()>) -> Result<Reply, Failure> {
    match run {
        Run::Done(reply) => Ok(reply),
        Run::Open(()) => Err(Failure::Broken("a command left its answer open".into())),
        Run::Wait => Err(Failure::KeyInUse),
    }
}

impl App {
    /// Runs `command` and stores `render`'s answer under `key`, in one transaction.
    ///
    /// A refusal undoes the command and is stored as well; an invalid request or a fault leaves the key free.
    pub async fn write<T, C, R>(&self, key: Option<IdempotencyKey>, command: C, render: R) -> Result<Reply, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
    {
        self.answer_once(Kind::Change, key, command, render).await
    }

    /// The same where a refusal is no answer to keep: it leaves the key free, as a fault does.
    pub async fn write_unless_refused<T, C, R>(
        &self,
        key: Option<IdempotencyKey>,
        command: C,
        render: R,
    ) -> Result<Reply, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
    {
        self.answer_once(Kind::Unrefused, key, command, render).await
    }

    /// The same, for a command that only adds: see [`store::Store::add`].
    pub async fn add<T, C, R>(&self, key: Option<IdempotencyKey>, command: C, render: R) -> Result<Reply, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
    {
        self.answer_once(Kind::Addition, key, command, render).await
    }

    /// The same, for a command that may leave its answer to a later transaction. `answer`: of a request with a key of ours.
    pub(super) async fn write_or_leave<T, O, C, R>(
        &self,
        begun: Instant,
        key: Option<IdempotencyKey>,
        answer: Option<&Answer>,
        command: C,
        render: R,
    ) -> Result<Run<O>, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
        O: Send + Clone + 'static,
    {
        match (key, answer) {
            (Some(own), Some(answer)) => self.run_own(begun, Kind::Change, own, answer, command, render).await,
            (key, _) => self.run(begun, Kind::Change, key, command, render).await,
        }
    }

    /// The same where no job gives the answer if this request does not: after `longest` its key is free again.
    pub(super) async fn write_or_leave_alone<T, O, C, R>(
        &self,
        begun: Instant,
        longest: Duration,
        key: Option<IdempotencyKey>,
        command: C,
        render: R,
    ) -> Result<Run<O>, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
        O: Send + Clone + 'static,
    {
        self.run(begun, Kind::Alone(longest), key, command, render).await
    }

    /// In one transaction. A request without a key of its caller's that repeats one which was never told what became of it is told.
    /// What sets a state is set anew, since it may have been set otherwise in between; where that is refused because it was done, its
    /// sender is told that it was.
    async fn answer_once<T, C, R>(
        &self,
        kind: Kind,
        key: Option<IdempotencyKey>,
        command: C,
        render: R,
    ) -> Result<Reply, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
    {
        let begun = monotonic::asked_at();
        let command = move |tx: &mut Tx<'_>, context: &Context| command(tx, context).map(Outcome::Answer);
        let own = match key {
            Some(own) if own.is_own() => own,
            key => return answer_of(self.run(begun, kind, key, command, render).await?),
        };
        let mut before = None;
        while before.is_none()
            && let Some(asked) = self.inner.untold.take(&own)
        {
            before = self.came_to(begun, asked).await?;
        }
        if !own.sets_state
            && let Some(reply) = before
        {
            return Ok(reply);
        }
        let asked = self.inner.untold.ask(own.clone());
        let answer = asked.answer().clone();
        let render = move |result: Result<&T, &Failure>| {
            let reply = match (result, &before) {
                (Err(failure), Some(before)) if is_done_already(failure, before) => before.clone(),
                _ => render(result),
            };
            answer.set(reply.clone());
            reply
        };
        let run = self.run_own(begun, kind, own, asked.answer(), command, render.clone()).await;
        if !is_unknown(&run) {
            asked.told();
        }
        match run {
            // Under a key that is not stored it is not an answer yet.
            Err(failure) if failure.is_final() => Ok(render(Err(&failure))),
            run => answer_of(run?),
        }
    }

    /// Under a key of ours. Where it is not stored the driver tells what became of the commit, and whoever sends the same once more
    /// hears of it by `answer`.
    async fn run_own<T, O, C, R>(
        &self,
        begun: Instant,
        kind: Kind,
        own: IdempotencyKey,
        answer: &Answer,
        command: C,
        render: R,
    ) -> Result<Run<O>, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
        O: Send + Clone + 'static,
    {
        if own.is_stored() {
            return self.run(begun, kind, Some(own), command, render).await;
        }
        let (app, answer, (tell, told)) = (self.clone(), answer.clone(), oneshot::channel());
        let caller = Arc::new(());
        let waits = Arc::downgrade(&caller);
        let once = move |tx: &mut Tx<'_>, context: &Context| {
            // What has not begun when its caller is gone does not begin any more; what has may be done.
            if waits.strong_count() == 0 {
                return Ok(None);
            }
            once(tx, context, kind, None, &command, &render).map(Some)
        };
        // On its own: somebody has to hear of the end of a commit that lasts for longer than its caller waits.
        tokio::spawn(async move {
            let run = match kind {
                Kind::Change | Kind::Unrefused | Kind::Alone(_) => app.commit(once).await,
                Kind::Addition => app.commit_addition(once).await,
            };
            if !is_unknown(&run) {
                answer.ended(matches!(run, Ok(Some(_))));
            }
            // Nobody may wait for it any more.
            let _ = tell.send(run);
        });
        let run = tokio::time::timeout_at(begun + LONGEST_ANSWER, told).await;
        drop(caller);
        match run {
            Ok(Ok(run)) => run?.ok_or_else(|| Failure::Broken("a command was left out that somebody waits for".into())),
            Ok(Err(_)) => Err(Failure::Broken("a transaction ended without a word".into())),
            Err(_) => Err(store::Error::UnknownCommit.into()),
        }
    }

    async fn run<T, O, C, R>(
        &self,
        begun: Instant,
        kind: Kind,
        key: Option<IdempotencyKey>,
        command: C,
        render: R,
    ) -> Result<Run<O>, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
        O: Send + Clone + 'static,
    {
        if domain::planted!(Defect::KeyOutsideTransaction)
            && let (Kind::Addition, Some(key)) = (kind, &key)
        {
            return self.run_beside_key(key.clone(), command, render).await;
        }
        let deadline = begun + LONGEST_WAIT;
        // The last one, whose commit may be the unknown one.
        let last = Arc::new(Mutex::new(None));
        let mut waiting: Option<Wait> = None;
        loop {
            let (key_again, command, render) = (key.clone(), command.clone(), render.clone());
            let kept = Arc::clone(&last);
            let once = move |tx: &mut Tx<'_>, context: &Context| {
                let run = once(tx, context, kind, key_again.as_ref(), &command, &render)?;
                if key_again.as_ref().is_some_and(IdempotencyKey::is_own) {
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
                }
                Ok(run)
            };
            let commit = async {
                match kind {
                    Kind::Change | Kind::Unrefused | Kind::Alone(_) => self.commit(once).await,
                    Kind::Addition => self.commit_addition(once).await,
                }
            };
            // What has not begun by then does not begin any more; what has may be done.
            let run = tokio::time::timeout_at(begun + LONGEST_ANSWER, commit).await;
            let run = run.unwrap_or_else(|_| Err(store::Error::UnknownCommit.into()));
            let run = match (run, &key) {
                (run, Some(key)) if is_unknown(&run) => {
                    let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let settled = tokio::time::timeout_at(begun + LONGEST_ANSWER, self.settle_commit(key, last));
                    return settled.await.unwrap_or(Err(store::Error::UnknownCommit.into()));
                }
                (run, _) => run?,
            };
            let (Run::Wait, Some(key), true) = (&run, &key, monotonic::now() < deadline) else { return Ok(run) };
            let wait = match waiting.take() {
                Some(wait) => wait,
                None => self.inner.key_waits.begin(key.name()).ok_or(Failure::KeyInUse)?,
            };
            self.wait_for_end(key, &wait, deadline).await?;
            waiting = Some(wait);
        }
    }

    /// What [`Defect::KeyOutsideTransaction`](domain::planted::Defect) does: the key is looked for before, and stored afterwards.
    async fn run_beside_key<T, O, C, R>(&self, key: IdempotencyKey, command: C, render: R) -> Result<Run<O>, Failure>
    where
        C: Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure> + Send + Sync + Clone + 'static,
        R: Fn(Result<&T, &Failure>) -> Reply + Send + Sync + Clone + 'static,
        T: Send + 'static,
        O: Send + Clone + 'static,
    {
        if let Some(reply) = self.stored_answer(&key).await? {
            return Ok(Run::Done(reply));
        }
        let effect =
            move |tx: &mut Tx<'_>, context: &Context| once(tx, context, Kind::Addition, None, &command, &render);
        let run = self.commit(effect).await?;
        if let Run::Done(reply) = run.clone() {
            let store = move |tx: &mut Tx<'_>, context: &Context| match idempotency::claim(tx, &key)? {
                Claimed::First => finish(tx, context, &key, &reply),
                Claimed::Finished { .. } | Claimed::Running | Claimed::Reused => Ok(()),
            };
            self.commit(store).await?;
        }
        Ok(run)
    }

    /// Until the request that runs under the key has ended, or until then. In this process it is told. What ends elsewhere, or
    /// without anybody's knowing, is seen by looking.
    async fn wait_for_end(&self, key: &IdempotencyKey, wait: &Wait, deadline: Instant) -> Result<(), Failure> {
        let mut pause = FIRST_LOOK;
        loop {
            // From before the look, which may miss what ends meanwhile.
            let end = wait.end();
            let Ok(is_running) = tokio::time::timeout_at(deadline, self.is_running(key)).await else { return Ok(()) };
            if !is_running? {
                return Ok(());
            }
            let next_look = deadline.min(monotonic::now() + pause);
            if tokio::time::timeout_at(next_look, end).await.is_ok() || next_look == deadline {
                return Ok(());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn is_running(&self, key: &IdempotencyKey) -> Result<bool, Failure> {
        let key = key.clone();
        let look = move |tx: &mut Tx<'_>, _: &Context| Ok(idempotency::is_running(tx, &key)?);
        match self.inner.store.dialect() {
            Dialect::Sqlite => self.commit(look).await,
            Dialect::Postgres => self.look(look).await,
        }
    }
}

impl App {
    /// The connection broke during COMMIT: the key's row tells whether it happened, however long a failover takes. The answer
    /// under a key of the caller's may be that of another request with it; under one of ours only `last` can have been meant,
    /// and it goes on from there.
    async fn settle_commit<O>(&self, key: &IdempotencyKey, last: Option<Run<O>>) -> Result<Run<O>, Failure> {
        match self.settled(key).await {
            Some(_) if key.is_own() => last.ok_or_else(|| store::Error::UnknownCommit.into()),
            // It was committed, and its answer waits for a rail: a retry with the same key gets it.
            Some(Claimed::Running | Claimed::First) => Err(Failure::KeyInUse),
            Some(claimed @ (Claimed::Finished { .. } | Claimed::Reused)) => {
                Ok(Run::Done(Reply { replayed: false, ..answered(self.context(), key, claimed)? }))
            }
            None => Err(store::Error::Unavailable("the commit did not happen".into()).into()),
        }
    }

    /// What became of a commit, as soon as it can be known; `None`: it did not happen, and can't any more.
    async fn settled(&self, key: &IdempotencyKey) -> Option<Claimed> {
        loop {
            tokio::time::sleep(SETTLE_STEP).await;
            match self.became_of(key).await {
                Ok(Claimed::First) | Err(Unsettled::Unreachable) => {}
                Ok(claimed) => return Some(claimed),
                Err(Unsettled::Absent) => return None,
            }
        }
    }

    /// Claimed, not read: a commit that waits for its standby can't be seen and can still become true, and only who wants the
    /// same key waits for it. A key of the caller's is free again. One of ours stays taken where others write:
    /// its request may still be on its way, without having sent its key.
    async fn became_of(&self, key: &IdempotencyKey) -> Result<Claimed, Unsettled> {
        let key = key.clone();
        let looked = self.inner.store.write(move |tx| match idempotency::claim(tx, &key)? {
            Claimed::First if key.is_own() && tx.dialect() == Dialect::Postgres => {
                idempotency::finish(tx, &key, NOT_DONE, None)?;
                Ok(None)
            }
            Claimed::First => Err(Unsettled::Absent),
            Claimed::Finished { status: NOT_DONE, .. } if key.is_own() => Ok(None),
            claimed => Ok(Some(claimed)),
        });
        looked.await?.ok_or(Unsettled::Absent)
    }
}

/// Why nothing is known of a commit.
enum Unsettled {
    /// It did not happen, and can't any more.
    Absent,
    Unreachable,
}

impl From<store::Error> for Unsettled {
    fn from(_: store::Error) -> Self {
        Self::Unreachable
    }
}

impl App {
    /// The answer that a key has already.
    pub async fn stored_answer(&self, key: &IdempotencyKey) -> Result<Option<Reply>, Failure> {
        let key = key.clone();
        self.commit(move |tx, context| match idempotency::claim(tx, &key)? {
            Claimed::First => Ok(idempotency::release(tx, &key).map(|()| None)?),
            claimed => answered(context, &key, claimed).map(Some),
        })
        .await
    }
}

impl App {
    /// Frees a key that was left running, for what was not begun after all.
    pub(super) async fn free(&self, key: &IdempotencyKey) -> Result<(), Failure> {
        let key = key.clone();
        self.commit(move |tx, _| Ok(idempotency::release(tx, &key)?)).await
    }
}

/// Stores the answer to the request that holds `key`. It may have a client or webhook secret in it, so its body is sealed;
/// under a key that nobody will send again it isn't kept at all.
fn finish(tx: &mut Tx<'_>, context: &Context, key: &IdempotencyKey, reply: &Reply) -> Result<(), Failure> {
    Ok(idempotency::finish(tx, key, i64::from(reply.status), sealed(context, key, reply))?)
}

/// The same, for one that an earlier transaction left running.
pub(super) fn finish_left(
    tx: &mut Tx<'_>,
    context: &Context,
    key: &IdempotencyKey,
    reply: &Reply,
) -> Result<(), Failure> {
    Ok(idempotency::finish_left(tx, key, i64::from(reply.status), sealed(context, key, reply))?)
}

fn sealed(context: &Context, key: &IdempotencyKey, reply: &Reply) -> Option<Vec<u8>> {
    (!key.is_own()).then(|| context.kept_answer_key.seal(&key.name(), reply.body.as_bytes()))
}

fn answered(context: &Context, key: &IdempotencyKey, claimed: Claimed) -> Result<Reply, Failure> {
    match claimed {
        Claimed::Finished { status: NOT_DONE, .. } if key.is_own() => {
            Err(store::Error::Unavailable("whoever sent it was not waited for".into()).into())
        }
        Claimed::Finished { status, body } => {
            let known = u16::try_from(status).ok().filter(|status| http::StatusCode::from_u16(*status).is_ok());
            let status = known.ok_or_else(|| Failure::Broken(format!("the stored status {status} is no status")))?;
            let body = match body {
                KeptBody::Plain(body) => Some(body),
                KeptBody::Gone => None,
                KeptBody::Sealed(sealed) => {
                    let opened = context.kept_answer_key.open(&key.name(), &sealed).ok();
                    opened.and_then(|body| String::from_utf8(body).ok())
                }
            };
            let body =
                body.ok_or_else(|| Failure::Broken("a stored answer doesn't open with this master key".into()))?;
            Ok(Reply { status, body, replayed: true })
        }
        Claimed::Reused => Err(Failure::KeyReused),
        Claimed::Running | Claimed::First => Err(Failure::KeyInUse),
    }
}

/// Whether nobody can tell what became of it.
pub(super) fn is_unknown<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Store(store::Error::UnknownCommit)))
}

/// Whether what was answered with `before` is refused once more for no other reason: what it named is deleted by it, or the version
/// that it was based on is the one before it.
fn is_done_already(refused: &Failure, before: &Reply) -> bool {
    match refused {
        Failure::Refused(Refusal::NotFound { .. }) => before.status == 204,
        Failure::Refused(refusal) => matches!(refusal, Refusal::InvoiceVersionConflict { .. }),
        _ => false,
    }
}

pub(super) enum Outcome<T, O> {
    Answer(T),
    Leave(O),
}

fn once<T, O>(
    tx: &mut Tx<'_>,
    context: &Context,
    kind: Kind,
    key: Option<&IdempotencyKey>,
    command: &impl Fn(&mut Tx<'_>, &Context) -> Result<Outcome<T, O>, Failure>,
    render: &impl Fn(Result<&T, &Failure>) -> Reply,
) -> Result<Run<O>, Failure> {
    let Some(key) = key else {
        return Ok(match command(tx, context)? {
            Outcome::Answer(value) => Run::Done(render(Ok(&value))),
            Outcome::Leave(open) => Run::Open(open),
        });
    };
    let claimed = match kind {
        Kind::Change | Kind::Unrefused | Kind::Addition => idempotency::claim(tx, key)?,
        Kind::Alone(longest) => idempotency::claim_after(tx, key, longest)?,
    };
    match claimed {
        Claimed::First => {}
        Claimed::Finished { .. } if domain::planted!(Defect::KeylessAnswers) => {
            let Outcome::Answer(value) = command(tx, context)? else { return Ok(Run::Wait) };
            return Ok(Run::Done(Reply { replayed: true, ..render(Ok(&value)) }));
        }
        Claimed::Running => return Ok(Run::Wait),
        claimed => return answered(context, key, claimed).map(Run::Done),
    }
    let keeps_refusals = !matches!(kind, Kind::Unrefused) && !domain::planted!(Defect::RefusalNotKept);
    let reply = match tx.savepoint(|tx| command(tx, context)) {
        Ok(Outcome::Answer(value)) => render(Ok(&value)),
        Ok(Outcome::Leave(open)) => {
            match kind {
                Kind::Change | Kind::Unrefused | Kind::Addition => idempotency::leave(tx, key)?,
                Kind::Alone(_) => idempotency::leave_alone(tx, key)?,
            }
            return Ok(Run::Open(open));
        }
        Err(failure) if failure.is_final() && keeps_refusals => render(Err(&failure)),
        // A shared transaction takes each key for new: whoever was answered under theirs is told that, whatever has changed since.
        Err(_) if idempotency::is_taken(tx, key).unwrap_or(false) => return Err(tx.conflict().into()),
        // The whole transaction is undone, the key with it.
        Err(failure) => return Err(failure),
    };
    if !domain::planted!(Defect::AnswerNotKept) {
        finish(tx, context, key, &reply)?;
    }
    Ok(Run::Done(reply))
}
