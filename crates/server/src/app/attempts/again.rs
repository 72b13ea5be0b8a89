//! The same request to pay once more, without a key, from whoever was not told what became of the one before: a link that many pay
//! would have a second payment of it, beside the one that was begun.

use std::time::Duration;

use domain::Scope;
use domain::payment::{SessionStatus, Step};
use store::Tx;
use store::queries::idempotency::IdempotencyKey;

use super::{Begun, Payment};
use crate::app::idempotency::{self, Asked, Reply};
use crate::app::{App, Context, sessions};
use crate::error::Failure;
use crate::monotonic::{self, Since};

/// Between two looks whether the call of the request before has ended.
const PAUSE: Duration = Duration::from_millis(250);

impl App {
    /// `goes_on`: with the session that it names, or with a code. Nothing else can be begun by it.
    pub(super) async fn begin_and_call<B, R>(
        &self,
        scope: Scope,
        begin: B,
        goes_on: bool,
        code: Option<String>,
        key: Option<IdempotencyKey>,
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
        let since = Since::now(self.store());
        let Some(own) = key.clone().filter(IdempotencyKey::is_own) else {
            return self.begin_once(since, scope, begin, code, key, None, render).await;
        };
        while let Some(before) = self.inner.untold.take(&own) {
            if let Some(payment) = self.begun_before(scope, goes_on, before).await? {
                return Ok(Reply { replayed: true, ..render(Ok(&payment)) });
            }
        }
        let asked = self.inner.untold.ask(own);
        let answer = Some(asked.answer().clone());
        let reply = self.begin_once(since, scope, begin, code, key, answer, render).await;
        if !idempotency::is_unknown(&reply) {
            asked.told();
        }
        reply
    }

    /// What was begun before, or gone on with, if that was committed: as it stands when its call has ended, or when nobody waits for
    /// that any longer.
    async fn begun_before(&self, scope: Scope, goes_on: bool, before: Asked) -> Result<Option<Payment>, Failure> {
        let asked_at = monotonic::asked_at();
        let Some(session) = self.session_before(asked_at, &before).await? else {
            before.told();
            return Ok(None);
        };
        let mut may_begin_anew = !goes_on;
        loop {
            let look = self.look(move |tx, _| {
                let payment = sessions::look_up_payment(tx, scope, session)?;
                let is_under_way = payment.transaction.as_ref().is_some_and(|transaction| match transaction.step() {
                    Step::Sending => true,
                    Step::Waiting => transaction.is_code_on_its_way(tx.now()),
                    // What was lost may arrive, but nobody waits for its call any more.
                    Step::Unknown | Step::Settled => false,
                });
                Ok((payment, is_under_way))
            });
            let (payment, is_under_way) = look.await?;
            // What ended since without a payment is no answer to who asks to pay; what ends while they wait is theirs.
            if std::mem::take(&mut may_begin_anew)
                && matches!(payment.session.status(), SessionStatus::Failed | SessionStatus::Cancelled)
            {
                before.told();
                return Ok(None);
            }
            if !is_under_way || monotonic::now() >= asked_at + idempotency::LONGEST_WAIT {
                before.told();
                return Ok(Some(payment));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
