//! Several real processes on one PostgreSQL, while processes, connections and the database itself fail, and its power: what
//! was acknowledged is there once, what was not is there once or not at all.
//!
//! Each test makes a PostgreSQL server of its own, because it restarts it.

#![expect(clippy::unwrap_used, reason = "a test that meets what can't be has to stop")]
#![expect(clippy::disallowed_methods, reason = "who looks after a process is a thread that waits")]

mod cluster;
mod faults;
mod guides;
mod kills;
mod limits;
mod load;
mod place;
mod pooler;
#[cfg(target_os = "linux")]
mod power;
mod processes;
mod proxy;
mod reconcile;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use cluster::{Cluster, Stop, free_port, programs};
use faults::{Fault, Faulty, connect};
use load::{Load, Receiver, random};
use place::{Place, client};
use processes::Fleet;
use proof::Proof;
use proxy::Proxy;
use reconcile::reconcile;

const SPLIT: &[&str] = &["api", "api", "worker", "worker"];
const BOTH: &[&str] = &["api,worker", "api,worker"];
const CUSTOMERS: u64 = 8;
/// Faults of one history; then its books are read as a whole.
const FAULTS_OF_A_HISTORY: u64 = 20;
const GATE_FAULTS: u64 = 6;
/// After a fault is over, a request is answered within this again.
const BACK: Duration = Duration::from_secs(5);

/// An installation of several processes, its receivers, and who uses it.
struct Scene {
    place: Place,
    fleet: Arc<Fleet>,
    load: Arc<Load>,
    receiver: Receiver,
}

impl Scene {
    async fn start(url: &str, roles: &'static [&'static str]) -> Self {
        Self::at(Place::on(url), roles).await
    }

    async fn at(place: Place, roles: &'static [&'static str]) -> Self {
        let (place, fleet) = tokio::task::spawn_blocking(move || {
            let fleet = Arc::new(Fleet::start(&place, roles, 0));
            (place, fleet)
        })
        .await
        .unwrap();
        let load = Load::new(&fleet, &shown_once(&fleet.said()));
        let receiver = Receiver::start().await;
        for name in ["first", "second"] {
            let endpoint = json!({ "url": receiver.url(name), "enabled_events": ["*"] });
            let url = format!("{}/v1/webhook_endpoints", fleet.addresses()[0]);
            let (status, body, _) = load.post(&url, None, &endpoint).await.unwrap();
            assert_eq!(status, 201, "{body}");
        }
        Self { place, fleet, load, receiver }
    }

    /// Nothing new, nothing left, and the comparison.
    async fn end(&self, database: &str, once: bool) -> Vec<String> {
        reconcile(&self.place, &connect(database).await, &self.load, &self.receiver, once).await;
        let fleet = Arc::clone(&self.fleet);
        tokio::task::spawn_blocking(move || fleet.stop()).await.unwrap();
        let promises = self.load.promises.lock().unwrap();
        say(&format!(
            "{} creations, {} payments and {} refunds were answered, {} requests repeated; {} went without a key",
            promises.created.len(),
            promises.started.len(),
            promises.refunded.len(),
            promises.repeated,
            promises.unkeyed.len()
        ));
        if !promises.found.is_empty() {
            self.fleet.log().iter().for_each(|line| say(line));
        }
        promises.found.clone()
    }
}

/// However many started at once, one of them made the installation and shows its keys.
fn shown_once(said: &[String]) -> String {
    let keys: Vec<_> = said.iter().filter_map(|line| line.trim().strip_prefix("secret key")).collect();
    assert_eq!(keys.len(), 1, "{said:?}");
    keys[0].trim().to_owned()
}

/// Without a fault each event comes exactly once, whoever of the four sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_do_everything_once() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("four processes", why),
    };
    let cluster = Cluster::start(&programs, "");
    let scene = Scene::start(&cluster.url(), SPLIT).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, 1));
    tokio::time::sleep(Duration::from_secs(6)).await;
    revoked_everywhere(&scene).await;
    guides::what_they_ask_for_is_served(&scene.fleet).await;
    load.end();
    running.await.unwrap();
    let found = scene.end(&cluster.url(), true).await;
    assert!(found.is_empty(), "{found:#?}");
    assert!(load.promises.lock().unwrap().created.len() > 20, "too little happened to prove anything");
}

/// One after the other ends in good order and comes back, as in an upgrade, while the others go on. Who stops finishes what it
/// does, so that no event comes twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_stopped_in_turn_do_everything_once() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("processes stopped in turn", why),
    };
    let cluster = Cluster::start(&programs, "");
    let scene = Scene::start(&cluster.url(), SPLIT).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed()));
    for number in [0, 2, 1, 3, 2, 0, 3, 1] {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let fleet = Arc::clone(&scene.fleet);
        let stopped = tokio::task::spawn_blocking(move || {
            fleet.members[number].terminate();
            fleet.until_listening(&fleet.members[number]);
        });
        stopped.await.unwrap();
    }
    load.end();
    running.await.unwrap();
    let found = scene.end(&cluster.url(), true).await;
    assert!(found.is_empty(), "{found:#?}");
}

/// A key that is revoked beside the servers works on none of them a second later.
async fn revoked_everywhere(scene: &Scene) {
    let made = scene.place.json(&["keys", "create", "--name", "lost"]);
    let ask = async |url: &str| {
        let secret = made["secret"].as_str().unwrap();
        let answer = client().get(format!("{url}/v1/checkouts")).bearer_auth(secret).send().await;
        answer.unwrap().status().as_u16()
    };
    for url in scene.fleet.addresses() {
        assert_eq!(ask(&url).await, 200);
    }
    scene.place.json(&["keys", "revoke", made["id"].as_str().unwrap(), "--yes"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for url in scene.fleet.addresses() {
        assert_eq!(ask(&url).await, 401);
    }
}

/// C8: whatever happens between the servers and their database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "nothing else runs meanwhile: a step of its own of `cargo xtask test` runs it, and `cargo xtask prove --only C8`"]
async fn a_database_that_fails_loses_and_doubles_nothing() {
    let mut proof = Proof::begin("C8", Some("postgres"), GATE_FAULTS);
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return proof.not_run(why),
    };
    let mut reached = 0;
    while reached < proof.count {
        let seed = proof.seed.wrapping_add(reached);
        let faults = FAULTS_OF_A_HISTORY.min(proof.count - reached);
        for found in history(&programs, seed, faults).await {
            proof.violation(format!("seed {seed}: {found}"));
        }
        reached += faults;
        say(&format!("C8: {reached} of {} faults", proof.count));
    }
    proof.control("commit_answered_and_not_done", !forged(&programs, proof.seed).await.is_empty());
    proof.finish(reached);
}

async fn history(programs: &Path, seed: u64, faults: u64) -> Vec<String> {
    // Few enough connections that a stranger can take them all within a fault.
    let cluster = Arc::new(Cluster::start(programs, "-c deadlock_timeout=100ms -c max_connections=40"));
    let proxy = Proxy::start(cluster.port).await;
    let scene = Scene::start(&proxy.url(), BOTH).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    let mut random = random(seed, u64::MAX);
    let place = Faulty { fleet: &scene.fleet, cluster: &cluster, proxy: &proxy };
    // Each kind comes before any comes again, in an order of the seed's.
    let mut waiting: Vec<Fault> = Vec::new();
    for number in 0..faults {
        if waiting.is_empty() {
            waiting.extend(Fault::ALL);
        }
        let next = random.below(u64::try_from(waiting.len()).unwrap());
        let fault = waiting.swap_remove(usize::try_from(next).unwrap());
        tokio::time::sleep(Duration::from_millis(random.below(600))).await;
        fault.happen(&place, &mut random).await;
        if fault != Fault::KillServer {
            let took = load.probe(&format!("{seed}-after-{number}"), &mut random).await;
            if took > BACK {
                load.note(format!("after {fault:?} it took {took:?} until a request was answered"));
            }
        }
    }
    load.end();
    running.await.unwrap();
    scene.end(&cluster.url(), false).await
}

/// C8, standby: the primary is lost under load, its synchronous standby takes over, and the servers find it by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_loses_nothing_that_was_acknowledged() {
    let mut proof = Proof::begin("C8.standby", Some("postgres"), 2);
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return proof.not_run(why),
    };
    let mut primary = Cluster::start(&programs, "");
    let mut standby = following(&primary, free_port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", primary.port, standby.port);
    let scene = Scene::start(&url, BOTH).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, proof.seed));
    let mut random = random(proof.seed, u64::MAX);
    for number in 0..proof.count {
        wait_for_each_commit(&primary).await;
        // A commit that is answered from here on has everything before it on the standby as well.
        load.probe(&format!("{number}-before"), &mut random).await;
        tokio::time::sleep(Duration::from_millis(500 + random.below(2_000))).await;
        primary.stop(Stop::Immediate);
        standby.promote();
        set(&standby, "reset synchronous_standby_names").await;
        let took = load.probe(&format!("{number}-after"), &mut random).await;
        say(&format!("failover {} of {}: answered {took:?} after the promotion", number + 1, proof.count));
        if took > BACK {
            load.note(format!("after failover {number} it took {took:?} until a request was answered"));
        }
        // What the lost machine had is lost; in its place comes a new one.
        let port = primary.port;
        drop(primary);
        primary = standby;
        standby = following(&primary, port).await;
    }
    load.end();
    running.await.unwrap();
    let reached = proof.count;
    for found in scene.end(&primary.url(), false).await {
        proof.violation(found);
    }
    proof.control("asynchronous_replication", !overtaken(&programs, proof.seed).await.is_empty());
    proof.finish(reached);
}

/// The control: commits that wait for no standby, and one that is behind when it takes over.
async fn overtaken(programs: &Path, seed: u64) -> Vec<String> {
    let primary = Cluster::start(programs, "");
    let standby = following(&primary, free_port()).await;
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", primary.port, standby.port);
    let scene = Scene::start(&url, &["api,worker"]).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    let mut random = random(seed, u64::MAX);
    load.probe(&format!("{seed}-before"), &mut random).await;
    receives_no_more(&standby).await;
    for number in 0..20 {
        load.probe(&format!("{seed}-behind-{number}"), &mut random).await;
    }
    primary.stop(Stop::Immediate);
    standby.promote();
    load.probe(&format!("{seed}-after"), &mut random).await;
    load.end();
    running.await.unwrap();
    // Jobs may be owed for ever now: only what was promised is looked for.
    reconcile::checkouts(&connect(&standby.url()).await, &load).await;
    load.promises.lock().unwrap().found.clone()
}

/// A commit that waits for its standby can't be seen and is done all the same. When its connection breaks meanwhile, nobody
/// may be told that nothing was changed: who sends no key would order again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_for_its_standby_is_not_denied() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("a commit that waits", why),
    };
    let cluster = Cluster::start(&programs, "");
    let proxy = Proxy::start(cluster.port).await;
    let scene = Scene::start(&proxy.url(), &["api"]).await;
    set(&cluster, "set synchronous_standby_names = 'nobody'").await;
    until_commits_wait(&cluster).await;
    let (load, url) = (Arc::clone(&scene.load), format!("{}/v1/checkouts", scene.fleet.addresses()[0]));
    let order = json!({ "amount": "1.00", "items": null, "reference": "held" });
    let asked = tokio::spawn(async move { load.post(&url, None, &order).await });
    let database = connect(&cluster.url()).await;
    let waiting = "select count(*) from pg_stat_activity where application_name = 'dalasi' and wait_event = 'SyncRep'";
    while database.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    proxy.cut();
    // Longer than it takes to find that nothing of it can be seen.
    tokio::time::sleep(Duration::from_secs(4)).await;
    set(&cluster, "reset synchronous_standby_names").await;
    let (status, body, _) = asked.await.unwrap().unwrap();
    for _ in 0..250 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if database.query_one("select count(*) from checkouts", &[]).await.unwrap().get::<_, i64>(0) == 1 {
            return assert_eq!(status, 201, "it is there, and this was said: {body}");
        }
    }
    panic!("the commit that waited is not there: {body}");
}

/// Where the address is that of one server, which is no primary any more, or a pooler's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_became_a_standby_is_away_and_not_at_fault() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("a server that became a standby", why),
    };
    let cluster = Cluster::start(&programs, "");
    let scene = Scene::start(&cluster.url(), &["api"]).await;
    let url = format!("{}/v1/checkouts", scene.fleet.addresses()[0]);
    let order = async || scene.load.post(&url, None, &json!({ "amount": "1.00" })).await.map(|(status, ..)| status);
    assert_eq!(order().await, Some(201));
    cluster.demote();
    for _ in 0..20 {
        assert_eq!(order().await, Some(503));
    }
    cluster.promote();
    let deadline = async {
        while order().await != Some(201) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(BACK * 4, deadline).await.expect("it takes writes again");
}

/// A follower by another name, or one too few, is as good as none: every commit hangs, and who is asked what is wrong says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_sees_that_commits_wait_for_nobody_who_is_there() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("the doctor beside standbys", why),
    };
    let primary = Cluster::start(&programs, "");
    let standby = following(&primary, free_port()).await;
    let client = connect(&primary.url()).await;
    for made in ["create role shop login", "create database shop owner shop"] {
        client.batch_execute(made).await.unwrap();
    }
    let at = |user: &str| format!("postgres://{user}@127.0.0.1:{}/shop", primary.port);
    let (seeing, blind) = (Place::on(&at("postgres")), Place::on(&at("shop")));
    seeing.json(&["init", "--organization", "Shop"]);
    let rights = "grant all on all tables in schema public to shop";
    connect(&at("postgres")).await.batch_execute(rights).await.unwrap();
    for (names, of_seeing, of_blind) in [
        ("ANY 1 (b, standby)", "ok", "warning"),
        ("ANY 1 (b, c)", "failed", "warning"),
        ("ANY 2 (standby, c)", "failed", "failed"),
    ] {
        set(&primary, &format!("set synchronous_standby_names = '{names}'")).await;
        for (place, wanted) in [(&seeing, of_seeing), (&blind, of_blind)] {
            told_by_the_doctor(place, names, wanted).await;
        }
    }
    set(&primary, "reset synchronous_standby_names").await;
    drop(standby);
}

async fn told_by_the_doctor(place: &Place, names: &str, wanted: &str) {
    let mut told = Value::Null;
    for _ in 0..50 {
        let ran = place.run(&["doctor", "--json", "--time-limit", "2"]);
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let database = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "database");
        let of_commits = |finding: &&Value| finding["found"].as_str().is_some_and(|found| found.contains(names));
        told = database.unwrap()["findings"].as_array().unwrap().iter().find(of_commits).cloned().unwrap_or_default();
        if told["status"] == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{names}: {told}, and not {wanted}");
}

/// A setting takes effect a while after it was reloaded.
async fn until_commits_wait(cluster: &Cluster) {
    for number in 0..200 {
        let client = connect(&cluster.url()).await;
        let create = format!("create table probe_{number} ()");
        if tokio::time::timeout(Duration::from_millis(500), client.batch_execute(&create)).await.is_err() {
            return;
        }
    }
    panic!("commits wait for nobody");
}

async fn following(primary: &Cluster, port: u16) -> Cluster {
    let standby = primary.standby(port);
    let client = connect(&primary.url()).await;
    for _ in 0..200 {
        let found = client.query_one("select count(*) from pg_stat_replication where state = 'streaming'", &[]);
        if found.await.unwrap().get::<_, i64>(0) == 1 {
            return standby;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the standby does not follow");
}

async fn receives_no_more(standby: &Cluster) {
    set(standby, "set primary_conninfo = ''").await;
    let client = connect(&standby.url()).await;
    for _ in 0..200 {
        let found = client.query_one("select count(*) from pg_stat_wal_receiver", &[]);
        if found.await.unwrap().get::<_, i64>(0) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the standby goes on receiving");
}

async fn wait_for_each_commit(primary: &Cluster) {
    set(primary, "set synchronous_standby_names = 'standby'").await;
    let client = connect(&primary.url()).await;
    for _ in 0..200 {
        let found = client.query_one("select count(*) from pg_stat_replication where sync_state = 'sync'", &[]);
        if found.await.unwrap().get::<_, i64>(0) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the standby is not synchronous");
}

async fn set(cluster: &Cluster, setting: &str) {
    let client = connect(&cluster.url()).await;
    client.batch_execute(&format!("alter system {setting}")).await.unwrap();
    client.batch_execute("select pg_reload_conf()").await.unwrap();
}

/// The control: a database that answers a few COMMITs and does not do them has to be found out.
async fn forged(programs: &Path, seed: u64) -> Vec<String> {
    let cluster = Cluster::start(programs, "");
    let proxy = Proxy::start(cluster.port).await;
    let scene = Scene::start(&proxy.url(), &["api,worker"]).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    proxy.forge_commits(u32::MAX);
    load.probe(&format!("{seed}-forged"), &mut random(seed, u64::MAX)).await;
    proxy.heal();
    load.end();
    running.await.unwrap();
    // Deliveries and jobs may be owed for ever now: only what was promised is looked for.
    reconcile::checkouts(&connect(&cluster.url()).await, &load).await;
    load.promises.lock().unwrap().found.clone()
}

/// Of a test that is no row of its own: said, and another for each commit.
fn seed() -> u64 {
    let proof = Proof::begin("", None, 1);
    say(&format!("seed {}", proof.seed));
    proof.seed
}

fn not_run(what: &str, why: &str) {
    say(&format!("NOT RUN: {what}: {why}"));
}

/// Past the harness, which keeps for itself what a test prints that passes.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
