//! What a request came to that nobody was told of, for whoever sends the same once more without a key.

use domain::Id;
use domain::payment::PaymentSession;
use store::Error;
use tokio::time::Instant;

use super::untold::Asked;
use super::{LONGEST_ANSWER, Reply};
use crate::app::App;
use crate::error::Failure;

impl App {
    /// What was answered to it, where it did something. A refusal may be none any more.
    pub(super) async fn came_to(&self, begun: Instant, before: Asked) -> Result<Option<Reply>, Failure> {
        let reply = match self.happened(begun, &before).await? {
            true => Some(Reply { replayed: true, ..before.answer().get().ok_or(Error::UnknownCommit)? }),
            false => None,
        };
        before.told();
        Ok(reply.filter(|reply| reply.status < 400))
    }

    /// The session that it began or went on with.
    pub(in crate::app) async fn session_before(
        &self,
        begun: Instant,
        before: &Asked,
    ) -> Result<Option<Id<PaymentSession>>, Failure> {
        Ok(if self.happened(begun, before).await? { before.answer().session() } else { None })
    }

    /// Whether it was committed, as soon as that can be known.
    async fn happened(&self, begun: Instant, before: &Asked) -> Result<bool, Failure> {
        let happened = async {
            match before.key().is_stored() {
                true => self.settled(before.key()).await.is_some(),
                false => before.answer().is_committed().await,
            }
        };
        let happened = tokio::time::timeout_at(begun + LONGEST_ANSWER, happened).await;
        happened.map_err(|_| Error::UnknownCommit.into())
    }
}
