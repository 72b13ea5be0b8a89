//! C8.processes: several processes beside one PostgreSQL, each killed at any moment of its work and started again at once, on the
//! database itself and behind PgBouncer, which hands out another connection for each transaction.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use proof::Proof;

use crate::cluster::{Cluster, programs};
use crate::faults::{connect, kill_one};
use crate::load::random;
use crate::pooler::{self, Pooler};
use crate::proxy::Proxy;
use crate::reconcile::checkouts;
use crate::{BOTH, CUSTOMERS, SPLIT, Scene, say};

/// Kills of one history; then its books are read as a whole.
const KILLS_OF_A_HISTORY: u64 = 20;
/// Eight on the database itself and eight behind PgBouncer.
const GATE_KILLS: u64 = 16;
/// The longest that what is committed goes unanswered in a control: each client asks several times meanwhile.
const UNANSWERED: Duration = Duration::from_secs(2);

/// The key of a creation is there until its transaction ends, and no longer.
const FORGET: &str = "
create function forget() returns trigger language plpgsql as $$
begin
    delete from idempotency_keys where organization_id = new.organization_id and mode = new.mode and space = new.space
        and idempotency_key = new.idempotency_key;
    return null;
end $$;
create constraint trigger forgets after insert on idempotency_keys deferrable initially deferred
for each row when (new.idempotency_key like 'create-%') execute function forget()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_killed_lose_and_double_nothing() {
    let mut proof = Proof::begin("C8.processes", Some("postgres"), GATE_KILLS);
    let found = programs().and_then(|programs| Ok((programs, pooler::program()?)));
    let (programs, pgbouncer) = match found {
        Ok(found) => found,
        Err(why) => return proof.not_run(why),
    };
    let mut reached = 0;
    while reached < proof.count {
        let left = proof.count - reached;
        let direct = KILLS_OF_A_HISTORY.min(left.div_ceil(2));
        let pooled = KILLS_OF_A_HISTORY.min(left - direct);
        let seed = proof.seed.wrapping_add(reached);
        // They wait more than they work, so one runs beside the other.
        let histories = [
            history(&programs, None, seed, direct),
            history(&programs, Some(&pgbouncer), seed.wrapping_add(direct), pooled),
        ];
        for found in join_all(histories).await.concat() {
            proof.violation(found);
        }
        reached += direct + pooled;
        say(&format!("C8.processes: {reached} of {} kills", proof.count));
    }
    let frauds = [Fraud::CommitForged, Fraud::KeyForgotten];
    let seen = join_all(frauds.map(|fraud| is_seen(&programs, proof.seed, fraud))).await;
    for (fraud, is_seen) in frauds.into_iter().zip(seen) {
        proof.control(fraud.name(), is_seen);
    }
    proof.finish(reached);
}

/// What is wrong after so many kills, on the database itself or through this PgBouncer.
async fn history(programs: &Path, pgbouncer: Option<&Path>, seed: u64, kills: u64) -> Vec<String> {
    let cluster = Cluster::start(programs, "");
    let pooler = pgbouncer.map(|program| Pooler::start(program, &cluster));
    let url = pooler.as_ref().map_or_else(|| cluster.url(), |pooler| pooler.url.clone());
    let scene = Scene::start(&url, SPLIT).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    let mut random = random(seed, u64::MAX);
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(500 + random.below(1_000))).await;
        kill_one(&scene.fleet, &mut random);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    load.end();
    running.await.unwrap();
    let found = scene.end(&cluster.url(), false).await;
    let answered = load.promises.lock().unwrap().created.len();
    assert!(kills <= answered as u64, "too little happened to prove anything: {kills} kills, {answered} creations");
    let way = if pooler.is_some() { "through PgBouncer" } else { "on the database itself" };
    found.into_iter().map(|found| format!("seed {seed}, {kills} kills, {way}: {found}")).collect()
}

/// What the controls have a database do that must be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fraud {
    /// COMMITs are answered and undone: what was acknowledged is lost.
    CommitForged,
    /// COMMITs are done and not answered, and no key says that they are: whoever asks again has it done twice.
    KeyForgotten,
}

impl Fraud {
    fn name(self) -> &'static str {
        match self {
            Self::CommitForged => "commit_answered_and_not_done",
            Self::KeyForgotten => "key_forgotten",
        }
    }

    /// Whether that is what was found, and not something that comes with it.
    fn is_told_by(self, found: &str) -> bool {
        let there = found.split_once(", and there is ").map(|(_, there)| there);
        match self {
            Self::CommitForged => there == Some("[]"),
            Self::KeyForgotten => there.is_some_and(|ids| ids.contains(", ")),
        }
    }
}

/// The control: a process is killed in the midst of it.
async fn is_seen(programs: &Path, seed: u64, fraud: Fraud) -> bool {
    let cluster = Cluster::start(programs, "");
    let proxy = Proxy::start(cluster.port).await;
    let scene = Scene::start(&proxy.url(), BOTH).await;
    let database = connect(&cluster.url()).await;
    let load = Arc::clone(&scene.load);
    if fraud == Fraud::KeyForgotten {
        database.batch_execute(FORGET).await.unwrap();
    }
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    let mut random = random(seed, u64::MAX);
    match fraud {
        Fraud::CommitForged => {
            proxy.forge_commits(u32::MAX);
            load.probe(&format!("{seed}-forged"), &mut random).await;
        }
        Fraud::KeyForgotten => {
            proxy.swallow_answers(u32::MAX);
            tokio::time::sleep(UNANSWERED).await;
        }
    }
    kill_one(&scene.fleet, &mut random);
    proxy.heal();
    load.end();
    running.await.unwrap();
    // Deliveries and jobs may be owed for ever now: only what was promised is looked for.
    checkouts(&database, &load).await;
    let promises = load.promises.lock().unwrap();
    promises.found.iter().any(|found| fraud.is_told_by(found))
}
