//! B4 on PostgreSQL: the machine of the database loses its power under load, and sometimes that of the servers with it. On its
//! disk is what was synced, and of the rest any subset of the sectors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Entropy;
use power_cut::{LazyDisk, Seeded};
use proof::Proof;

use crate::cluster::{Cluster, Stop, programs};
use crate::faults::connect;
use crate::load::random;
use crate::place::Place;
use crate::{BOTH, CUSTOMERS, Scene, not_run, reconcile, say};

/// Losses of one history; then its books are read as a whole.
const LOSSES_OF_A_HISTORY: u64 = 20;
const GATE_LOSSES: u64 = 3;
/// One loss in so many takes the servers as well, whose leases somebody has to wait for.
const WITH_THE_SERVERS: u64 = 3;
/// How many in a hundred of the sectors that no sync covers are on the disk all the same.
const CHANCES: [usize; 5] = [0, 100, 50, 5, 95];
/// Pages go out long before they are synced, by `fdatasync`, which is what the disk hears of.
const WRITES_EARLY: &str =
    "-c shared_buffers=4MB -c bgwriter_delay=10ms -c bgwriter_lru_maxpages=1000 -c wal_sync_method=fdatasync";
/// The controls: what a server refuses to work with has to lose something. Nobody syncs what waits in the second.
const UNSAFE: [(&str, &str); 2] =
    [("fsync_off", "-c fsync=off"), ("synchronous_commit_off", "-c synchronous_commit=off -c wal_writer_delay=10s")];
/// What each control is asked for.
const ORDERS: usize = 20;

/// A PostgreSQL whose disk can lose its power.
struct Machine {
    cluster: Cluster,
    disk: Option<LazyDisk>,
}

impl Machine {
    /// Of one that does not run; what it has is on the disk.
    fn of(cluster: Cluster) -> Self {
        let machine = Self { cluster, disk: None };
        fs::rename(machine.cluster.data(), machine.below()).unwrap();
        fs::create_dir(machine.cluster.data()).unwrap();
        machine
    }

    /// What the disk is made of.
    fn below(&self) -> PathBuf {
        self.cluster.folder().join("disk")
    }

    /// With power. Or why PostgreSQL does not start.
    fn start(&mut self) -> Result<(), String> {
        // After a boot there are none of the processes whose numbers stand here, and no others with these yet.
        let socket = format!(".s.PGSQL.{}.lock", self.cluster.port);
        for left in [self.below().join("postmaster.pid"), self.cluster.folder().join(socket)] {
            let _ = fs::remove_file(left);
        }
        self.disk = Some(LazyDisk::mount(&self.below(), &self.cluster.data()).unwrap());
        self.cluster.try_to_begin()
    }

    fn lose_power(&mut self, chance: usize, random: &mut Entropy) {
        // From here on nothing that PostgreSQL does is kept, so that it may end a little later.
        self.disk.as_ref().unwrap().cut(chance, &mut Seeded::new(random.below(u64::MAX))).unwrap();
        assert!(self.cluster.kill(), "PostgreSQL outlives its power");
        self.disk = None;
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cluster.halt();
        self.cluster.kill();
        // Before its folder is removed.
        self.disk = None;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_the_power() {
    let mut proof = Proof::begin("B4.postgres", Some("postgres"), GATE_LOSSES);
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return proof.not_run(why),
    };
    if let Err(why) = LazyDisk::can_be_had() {
        // Nothing that can be installed brings it, so that who has installed all does without.
        let has_all = std::env::var_os("DALASI_TEST_ALL").is_some();
        return if has_all { not_run("a loss of power below PostgreSQL", why) } else { proof.not_run(why) };
    }
    // Beside each other: both wait more than they work.
    let (played, controls) =
        tokio::join!(histories(&programs, proof.seed, proof.count), controls(&programs, proof.seed));
    for found in played {
        proof.violation(found);
    }
    for (control, is_caught) in controls {
        proof.control(control, is_caught);
    }
    let reached = proof.count;
    proof.finish(reached);
}

async fn histories(programs: &Path, first_seed: u64, count: u64) -> Vec<String> {
    let (mut reached, mut violations) = (0, Vec::new());
    while reached < count {
        let seed = first_seed.wrapping_add(reached);
        let losses = LOSSES_OF_A_HISTORY.min(count - reached);
        violations.extend(history(programs, seed, losses).await.iter().map(|found| format!("seed {seed}: {found}")));
        reached += losses;
        say(&format!("B4.postgres: {reached} of {count} losses"));
    }
    violations
}

async fn history(programs: &Path, seed: u64, losses: u64) -> Vec<String> {
    let mut machine = Machine::of(Cluster::make(programs, WRITES_EARLY));
    machine.start().unwrap();
    let url = machine.cluster.url();
    let scene = Scene::start(&url, BOTH).await;
    let load = Arc::clone(&scene.load);
    let running = tokio::spawn(Arc::clone(&load).run(CUSTOMERS, seed));
    let mut random = random(seed, u64::MAX);
    for number in 0..losses {
        tokio::time::sleep(Duration::from_millis(300 + random.below(1_500))).await;
        if random.below(2) == 0 {
            tokio::spawn(checkpoint(url.clone()));
            tokio::time::sleep(Duration::from_millis(random.below(100))).await;
        }
        let chance = CHANCES[usize::try_from(random.below(CHANCES.len() as u64)).unwrap()];
        machine.lose_power(chance, &mut random);
        if number % WITH_THE_SERVERS == 0 {
            scene.fleet.members.iter().for_each(|member| member.kill());
        }
        if let Err(why) = machine.start() {
            return vec![format!("loss {number}, {chance} of 100 kept: PostgreSQL does not start again: {why}")];
        }
        let took = load.probe(&format!("{seed}-after-{number}"), &mut random).await;
        say(&format!("loss {number}, {chance} of 100 kept: answered after {took:?}"));
    }
    load.end();
    running.await.unwrap();
    scene.end(&url, false).await
}

/// In the midst of which the power may go: pages of the tables are written and synced.
async fn checkpoint(url: String) {
    if let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await {
        tokio::spawn(connection);
        // Who has no power answers nobody.
        let _ = client.batch_execute("checkpoint").await;
    }
}

async fn controls(programs: &Path, seed: u64) -> Vec<(&'static str, bool)> {
    let mut played = Vec::new();
    for (name, settings) in UNSAFE {
        let lost = lost_by(programs, settings, seed).await;
        say(&format!("{name}: {} of {ORDERS} orders are lost", lost.len()));
        played.push((name, !lost.is_empty()));
    }
    played
}

/// Orders that were acknowledged, when nothing is left that was not synced.
async fn lost_by(programs: &Path, settings: &str, seed: u64) -> Vec<String> {
    let cluster = Cluster::start(programs, settings);
    let url = cluster.url();
    let scene = Scene::at(Place::on(&url).though_it_is_unsafe(), &["api,worker"]).await;
    let load = &scene.load;
    // The installation itself is on the disk.
    cluster.stop(Stop::Fast);
    let mut machine = Machine::of(cluster);
    machine.start().unwrap();
    let mut random = random(seed, u64::MAX);
    for number in 0..ORDERS {
        load.probe(&format!("{seed}-{number}"), &mut random).await;
    }
    machine.lose_power(0, &mut random);
    {
        let mut promises = load.promises.lock().unwrap();
        let acknowledged = promises.created.values().filter(|kept| kept.status == 201).count();
        assert_eq!(acknowledged, ORDERS, "{:?}", promises.found);
        promises.found.clear();
    }
    if let Err(why) = machine.start() {
        // No order is lost by that: the control is not seen then.
        say(&why);
        return Vec::new();
    }
    reconcile::checkouts(&connect(&url).await, load).await;
    let promises = load.promises.lock().unwrap();
    promises.found.iter().filter(|found| found.ends_with(", and there is []")).cloned().collect()
}
