//! The power goes while something is done, or as soon as it was: what somebody was told is there, and the rest is said again.

use super::{Check, History};
use crate::world::Answer;

/// On a disk that can lose it, the power goes in one of so many steps.
pub(super) const GOES_IN: u64 = 4;

impl History {
    /// If it goes in this step, it does after some of what the disk has done since, or behind all of it: whether what was answered
    /// was heard.
    pub(super) async fn power_goes_since(&mut self, began: Option<usize>) -> Option<bool> {
        let began = began?;
        if !std::mem::take(&mut self.loses_power) {
            return None;
        }
        let is_heard = self.dice.one_in(2);
        if is_heard {
            self.world.crash().await;
        } else {
            let ended = self.world.written().unwrap_or(began);
            let done = self.dice.below((ended - began) as u64 + 1) as usize;
            self.world.lose_power(began + done).await;
        }
        Some(is_heard)
    }
}

/// The request that was under way is asked again with its key. Whoever had heard an answer hears the same, and that it is one.
pub(super) fn answered_again(is_heard: bool, first: Option<&Answer>, again: Option<&Answer>) -> Check {
    let first = first.ok_or("a request was not answered before the power went")?;
    let again = again.ok_or("a request was not answered after the power had gone")?;
    if first.status >= 500 {
        return Err(format!("before the power went {first:?} was answered"));
    }
    // What is not valid is refused anew each time, and a refusal holds the request's id.
    let is_kept = first.code() != "validation_failed";
    let is_alike = (first.status, first.code(), first.status < 400 && first.body != again.body)
        == (again.status, again.code(), false);
    if is_heard && (!is_alike || again.is_replayed != is_kept) {
        return Err(format!("before the power went {first:?} was answered, and afterwards {again:?}"));
    }
    Ok(())
}
