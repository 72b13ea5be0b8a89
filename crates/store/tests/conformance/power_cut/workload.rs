//! What is written while the record runs: transactions that each leave rows in several tables and count on from the one
//! before, so that a gap, a half and a loss can all be told from what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use power_cut::{Recording, Seeded, Step};
use store::{Database, Error, Settings, Store, Tx};

use super::image::{FILE, scratch};
use crate::world::{System, entropy};

/// A second of life of a database: opened for the first time, opened again and written to, closed, opened beside a second process.
pub(crate) struct Recorded {
    pub(crate) steps: Vec<Step>,
    /// A transaction's number, and after which step the caller had its answer.
    acknowledged: Vec<(i64, usize)>,
}

impl Recorded {
    /// The last of the transactions that were acknowledged by then.
    pub(crate) fn acknowledged_at(&self, position: usize) -> i64 {
        let by_then = self.acknowledged.iter().filter(|(_, answered)| *answered <= position);
        by_then.map(|(number, _)| *number).max().unwrap_or(0)
    }

    /// A disk that lies once: it reports one sync of the log done and has not done it. Until the next one that can be seen.
    pub(crate) fn without_one_sync(&self, seed: u64) -> (Self, Range<usize>) {
        let logs = self.steps.iter().filter_map(|step| match step {
            Step::Open { file, name, .. } if name.ends_with("-wal") => Some(*file),
            _ => None,
        });
        let logs: BTreeSet<usize> = logs.collect();
        let log = |step: &Step| match step {
            Step::Sync { file, .. } if logs.contains(file) => Some(*file),
            _ => None,
        };
        // One that stood before an answer, so that something hangs on it: of several answers the one to the last transaction,
        // because one that was heard late hangs on an earlier sync.
        let mut last: BTreeMap<usize, (i64, Range<usize>)> = BTreeMap::new();
        for (number, answered) in &self.acknowledged {
            let Some(synced) = (0..*answered).rev().find(|at| log(&self.steps[*at]).is_some()) else { continue };
            let file = log(&self.steps[synced]);
            let next = (synced + 1..self.steps.len()).find(|at| log(&self.steps[*at]) == file);
            if let Some(next) = next.filter(|next| answered < next)
                && last.get(&synced).is_none_or(|(known, _)| known < number)
            {
                last.insert(synced, (*number, *answered..next));
            }
        }
        let candidates: Vec<_> = last.into_iter().map(|(synced, (_, seen))| (synced, seen)).collect();
        let (synced, seen) = candidates[Seeded::new(seed).below(candidates.len())].clone();
        let without = |at, step: &Step| if at == synced { covering_nothing(step) } else { step.clone() };
        let steps = self.steps.iter().enumerate().map(|(at, step)| without(at, step)).collect();
        (Self { steps, acknowledged: self.acknowledged.clone() }, seen)
    }

    pub(crate) fn without_syncs(&self) -> Self {
        Self { steps: self.steps.iter().map(covering_nothing).collect(), acknowledged: self.acknowledged.clone() }
    }
}

pub(crate) fn covering_nothing(step: &Step) -> Step {
    match step {
        Step::Sync { file, .. } => Step::Sync { file: *file, began: 0 },
        other => other.clone(),
    }
}

#[derive(Clone, Copy)]
struct Shape {
    postings: usize,
    body_bytes: usize,
    is_refused: bool,
}

impl Shape {
    fn draw(seeded: &mut Seeded) -> Self {
        Self {
            postings: 2 + seeded.below(4),
            body_bytes: if seeded.in_hundred(5) { 20_000 } else { 100 + seeded.below(3_000) },
            is_refused: seeded.in_hundred(10),
        }
    }
}

/// `prepare` is called once the schema is there: whoever is told too early that it is doesn't get past opening.
pub(crate) fn record(seed: u64, prepare: impl FnOnce()) -> Recorded {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = scratch();
        let recording = Recording::start(&folder);
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let mut life = Life { seeded: Seeded::new(seed), recording: recording.clone(), acknowledged };

        open(&folder, false).await.unwrap().close().await;
        prepare();
        let store = open(&folder, false).await.unwrap();
        for _ in 0..3 {
            life.burst(&store, 12).await;
            life.pause(300).await;
        }
        // Enough for the log to be cut off in the lull behind it.
        life.burst(&store, 60).await;
        tokio::time::sleep(Duration::from_millis(800)).await;
        life.burst(&store, 8).await;
        store.close().await;

        let store = open(&folder, false).await.unwrap();
        life.burst(&store, 12).await;
        let second = open(&folder, true).await.unwrap();
        let writing = tokio::spawn({
            let (mut life, store) = (life.another(), store.clone());
            async move { life.burst(&store, 16).await }
        });
        life.burst(&second, 8).await;
        writing.await.unwrap();
        second.close().await;
        life.pause(300).await;
        life.burst(&store, 12).await;
        store.close().await;

        let steps = recording.steps();
        drop(recording);
        std::fs::remove_dir_all(&folder).unwrap();
        let acknowledged = life.acknowledged.lock().unwrap().clone();
        Recorded { steps, acknowledged }
    })
}

pub(super) async fn open(folder: &Path, secondary: bool) -> Result<Store, Error> {
    let settings = Settings::new(Database::Sqlite { path: folder.join(FILE) });
    let settings = Settings { secondary, connections: 1, ..settings };
    Store::open(settings, Arc::new(System), entropy()).await
}

struct Life {
    seeded: Seeded,
    recording: Arc<Recording>,
    acknowledged: Arc<Mutex<Vec<(i64, usize)>>>,
}

impl Life {
    fn another(&mut self) -> Self {
        let seeded = Seeded::new(self.seeded.number());
        Self { seeded, recording: self.recording.clone(), acknowledged: self.acknowledged.clone() }
    }

    async fn pause(&mut self, most_ms: usize) {
        let ms = u64::try_from(self.seeded.below(most_ms)).unwrap();
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Several at once, so that commits are shared.
    async fn burst(&mut self, store: &Store, count: usize) {
        let writes: Vec<_> = (0..count)
            .map(|_| {
                let shape = Shape::draw(&mut self.seeded);
                let (store, recording, acknowledged) =
                    (store.clone(), self.recording.clone(), self.acknowledged.clone());
                tokio::spawn(async move {
                    let written = store.write(move |tx| transaction(tx, shape)).await;
                    let position = recording.position();
                    match written {
                        Ok(number) => acknowledged.lock().unwrap().push((number, position)),
                        Err(Error::Panic(message)) if message == REFUSED => {}
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        for write in writes {
            write.await.unwrap();
        }
    }
}

const REFUSED: &str = "refused";

const LAST: &str = "select last_number from counters where series = 'invoice' and period = 'cut'";
const FIRST: &str = "
insert into counters (organization_id, mode, series, period, last_number)
values ('org', 'test', 'invoice', 'cut', 1)";
const NEXT: &str = "update counters set last_number = $1 where series = 'invoice' and period = 'cut'";
const KEY: &str = "
insert into idempotency_keys (organization_id, mode, space, idempotency_key, fingerprint, state, status, body, created_at)
values ('org', 'test', 'cut', $1, $2, 'finished', $3, $4, $5)";
const POSTING: &str = "
insert into ledger_postings (organization_id, mode, entry_id, line, transaction_id, account, currency, amount_minor,
    created_at)
values ('org', 'test', $1, $2, $1, 'cash', 'XOF', $3, $4)";
const OWE: &str = "
insert into jobs (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
values ('cut', $1, 'org', 'test', $2, 0, 0, 0, 0)";
const FINISH: &str = "delete from jobs where kind = 'cut' and object_id = $1";

/// So many jobs are owed at most.
pub(super) const JOBS: i64 = 7;

/// Returns its number. What is refused writes just as much first.
fn transaction(tx: &mut Tx<'_>, shape: Shape) -> Result<i64, Error> {
    let number = match tx.query(LAST, &[])?.first() {
        None => {
            tx.execute(FIRST, &[])?;
            1
        }
        Some(row) => {
            let number = row.get::<i64>(0)? + 1;
            tx.execute(NEXT, &[number.into()])?;
            number
        }
    };
    let name = format!("{number:06}");
    let lines = i64::try_from(shape.postings).unwrap();
    for line in 1..=lines {
        // The last line makes up for the others.
        let amount =
            if line < lines { number * 10 + line } else { -(1..lines).map(|line| number * 10 + line).sum::<i64>() };
        let values = [name.as_str().into(), line.into(), amount.into(), tx.now_us().into()];
        tx.append("ledger_postings", POSTING, &values)?;
    }
    let body = "x".repeat(shape.body_bytes);
    let now = tx.now_us();
    let values = [name.as_str().into(), vec![7; 32].into(), lines.into(), body.into(), now.into()];
    tx.append("idempotency_keys", KEY, &values)?;
    tx.append("jobs", OWE, &[name.as_str().into(), number.into()])?;
    tx.execute(FINISH, &[format!("{:06}", number - JOBS).into()])?;
    if shape.is_refused { Err(Error::Panic(REFUSED.to_owned())) } else { Ok(number) }
}
