//! When API keys were last used: noted in memory by whoever answers requests, and written down a moment later.
//!
//! It is coarse on purpose: for an hour after a use that is noted, no other of the same key is. No request writes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::api_key::ApiKey;
use domain::{Id, Scope, Timestamp};
use store::queries::api_keys;
use tokio::sync::{Notify, watch};

use super::App;
use crate::error::Failure;

const COARSE: Duration = Duration::from_secs(3600);
/// After the first use that is to be written: others come with it.
const GATHERED: Duration = Duration::from_secs(5);
/// After a fault.
const PAUSE: Duration = Duration::from_secs(60);
/// Keys that are remembered.
const MOST: usize = 10_000;
/// In one transaction.
const PART: usize = 500;

#[derive(Default)]
pub struct KeyUses {
    noted: Mutex<HashMap<Id<ApiKey>, Noted>>,
    bell: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    scope: Scope,
    at: Timestamp,
    is_written: bool,
}

impl KeyUses {
    fn noted(&self) -> MutexGuard<'_, HashMap<Id<ApiKey>, Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, key: &ApiKey, at: Timestamp) {
        let mut noted = self.noted();
        if noted.get(&key.id).is_some_and(|before| at.since(before.at) < COARSE) {
            return;
        }
        if noted.len() >= MOST {
            noted.retain(|_, one| !one.is_written);
        }
        // What can't be written for so long is worth no more room.
        if noted.len() < MOST || noted.contains_key(&key.id) {
            noted.insert(key.id, Noted { scope: key.scope, at, is_written: false });
            self.bell.notify_one();
        }
    }

    /// In one order, whoever writes: of two processes neither waits for the other's rows.
    fn unwritten(&self) -> Vec<(Id<ApiKey>, Noted)> {
        let noted = self.noted();
        let mut unwritten: Vec<_> =
            noted.iter().filter(|(_, one)| !one.is_written).map(|(id, one)| (*id, *one)).collect();
        unwritten.sort_unstable_by_key(|(id, one)| (one.scope, *id));
        unwritten
    }

    fn written(&self, uses: &[(Id<ApiKey>, Noted)]) {
        let mut noted = self.noted();
        for (id, written) in uses {
            if let Some(one) = noted.get_mut(id).filter(|one| one.at == written.at) {
                one.is_written = true;
            }
        }
    }
}

impl App {
    /// Writes down what was noted, a moment after it was, until `stop` says true. What is noted then is the caller's to
    /// write.
    pub async fn keep_key_uses(self, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            tokio::select! {
                () = self.key_uses().bell.notified() => {}
                _ = stop.changed() => continue,
            }
            let mut pause = GATHERED;
            loop {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = stop.changed() => break,
                }
                match self.write_key_uses().await {
                    Ok(()) => break,
                    Err(failure) => tracing::warn!(%failure, "when keys were last used can't be written down yet"),
                }
                pause = PAUSE;
            }
        }
    }

    pub async fn write_key_uses(&self) -> Result<(), Failure> {
        for part in self.key_uses().unwritten().chunks(PART) {
            let uses = part.to_vec();
            // Nobody is owed anything by it: the worker sleeps on.
            let written = self.store().write(move |tx| {
                uses.iter().try_for_each(|(id, one)| api_keys::used(tx, one.scope, *id, one.at)).map_err(Failure::from)
            });
            written.await?;
            self.key_uses().written(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::Mode;
    use domain::api_key::{KeyKind, Rights};

    use super::*;

    const HOUR_US: i64 = 3_600_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + micros)
    }

    fn key(number: u32) -> ApiKey {
        let mut random = [0; 10];
        random[..4].copy_from_slice(&number.to_be_bytes());
        ApiKey {
            id: Id::new(at(0), random),
            scope: Scope { organization: Id::new(at(0), [1; 10]), mode: Mode::Test },
            version: 1,
            kind: KeyKind::Secret,
            digest: String::new(),
            last4: String::new(),
            rights: Rights::all(),
            name: None,
            created_at: at(0),
            revoked_at: None,
        }
    }

    fn unwritten(uses: &KeyUses) -> Vec<Timestamp> {
        uses.unwritten().into_iter().map(|(_, one)| one.at).collect()
    }

    #[test]
    fn one_use_an_hour_is_written() {
        let (uses, key) = (KeyUses::default(), key(1));
        uses.note(&key, at(0));
        uses.note(&key, at(HOUR_US - 1));
        assert_eq!(unwritten(&uses), [at(0)]);
        uses.written(&uses.unwritten());
        uses.note(&key, at(HOUR_US - 1));
        assert_eq!(unwritten(&uses), []);
        uses.note(&key, at(HOUR_US));
        assert_eq!(unwritten(&uses), [at(HOUR_US)]);
    }

    #[test]
    fn a_use_that_comes_while_one_is_written_is_not_lost() {
        let (uses, key) = (KeyUses::default(), key(1));
        uses.note(&key, at(0));
        let under_way = uses.unwritten();
        uses.note(&key, at(HOUR_US));
        uses.written(&under_way);
        assert_eq!(unwritten(&uses), [at(HOUR_US)]);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let uses = KeyUses::default();
        let most = u32::try_from(MOST).unwrap();
        (0..=most).for_each(|number| uses.note(&key(number), at(0)));
        assert_eq!(uses.unwritten().len(), MOST, "nothing of it is written yet");
        uses.written(&uses.unwritten());
        uses.note(&key(most), at(0));
        assert_eq!(unwritten(&uses), [at(0)]);
        assert_eq!(uses.noted().len(), 1);
    }
}
