//! Row C6: more requests than the server can answer, at their own pace, whether or not the earlier ones were answered.
//! What it can do it still does, what it can't it says at once, and afterwards it is as before.
//!
//! The figures are shares of what the same server did a moment before on the same machine. Where other work shares the
//! cores (the gate) only what must hold anyway is asked for; the longer tiers ask for what is promised, and need a machine
//! for it: a create takes some 200 microseconds of a core and a refusal some 25, so that at five times the peak refusing
//! alone takes half of a server's only core.
//!
//! Row C6.memory: the same in as little memory as a server may be given, beside clients that want more. On any machine it lives.

#![expect(clippy::unwrap_used, reason = "a test that meets what can't be has to stop")]
#![expect(clippy::disallowed_methods, reason = "who loads a server looks at the clock")]

mod crowd;
mod group;
mod senders;
mod server;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crowd::{Crowd, Sample};
use group::Group;
use proof::{Proof, Tier};
use server::{Server, Stub};

/// So that what comes in them can be answered in the patience after them, by code that takes a third of a millisecond to refuse.
const GATE_SECONDS: u64 = 5;
/// Of the peak, how many requests are made.
const GATE_FACTORS: &[f64] = &[5.0];
const FACTORS: &[f64] = &[2.0, 5.0, 20.0];
/// For the server to have one beside the one that writes, and the load its own.
const CORES: u32 = 3;
/// Connections of a peak.
const BUSY: usize = 64;
/// The systemd unit's `MemoryMax` allows no less.
const MOST_MEMORY: u64 = 256 * MIB;
/// Idle it holds half of this beside its files' pages, and under load several times as much.
const TOO_LITTLE: u64 = 24 * MIB;
const MIB: u64 = 1024 * 1024;
/// Of bodies that were sent: twice what a server keeps of them at once.
const LEAST_SENT: u64 = 128 * MIB;
/// Longer than any of them takes; a server that neither lives nor dies is killed then.
const LONGEST: Duration = Duration::from_secs(240);
/// Connections that send bodies which a server keeps until their end.
const SENDERS: u32 = 400;
/// Requests that wait for a connection, twice as many as there are: with more it is the load that can do no more.
const MOST_WAITING: usize = 4_000;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Promise {
    /// Requests that did what they were for, of the peak.
    goodput: f64,
    /// Of what was let in: times the 99th percentile at the peak, or this long if that is more.
    slower: f64,
    admitted: Duration,
    /// The 99th percentile of being refused.
    refused: Duration,
    /// Of the peak, what is done again within five seconds after.
    recovered: f64,
    /// Who has no answer so long after the last request gets none.
    patience: Duration,
}

/// Beside other work, and of code that isn't optimized, to which five times the peak is more than it can even refuse.
const GATE: Promise = Promise {
    goodput: 0.3,
    slower: 3.0,
    admitted: Duration::from_secs(20),
    refused: Duration::from_secs(20),
    recovered: 0.3,
    patience: Duration::from_secs(20),
};
const PROMISED: Promise = Promise {
    goodput: 0.9,
    slower: 3.0,
    admitted: Duration::ZERO,
    refused: Duration::from_millis(50),
    recovered: 0.9,
    patience: Duration::from_secs(1),
};
/// To live: how well is the other row's to ask.
const ALIVE: Promise = Promise {
    goodput: 0.0,
    slower: f64::MAX,
    admitted: Duration::MAX,
    refused: Duration::MAX,
    recovered: 0.05,
    patience: Duration::from_secs(60),
};

/// Where tests share a process, they load a server one after the other.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn more_than_it_can_answer() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut proof = Proof::begin("C6", None, GATE_SECONDS);
    let is_gate = proof.tier == Tier::Gate;
    if !is_gate && server::cores() < CORES {
        return proof.not_run("it takes two cores for the server and one for the load");
    }
    let (promise, factors) = if is_gate { (GATE, GATE_FACTORS) } else { (PROMISED, FACTORS) };
    let each = Duration::from_secs((proof.count / factors.len() as u64).max(2));
    server::keep_apart();
    let mut reached = 0;
    for &factor in factors {
        let server = Server::start();
        let (found, told) = overload(&mut Crowd::new(server.address, &server.key), factor, each, promise);
        say(&told);
        for fault in found {
            proof.violation(format!("at {factor} times the peak: {fault}"));
        }
        let memory = server.most_memory();
        say(&format!("  {:.0} MiB resident at most", mib(memory)));
        if memory > MOST_MEMORY {
            proof.violation(format!("at {factor} times the peak: {memory} bytes of memory"));
        }
        if let Some(fault) = server.stop() {
            proof.violation(fault);
        }
        reached += each.as_secs();
    }
    let stub = Stub::start();
    let hurried = Promise { patience: Duration::from_secs(4), ..GATE };
    let (found, _) = overload(&mut Crowd::new(stub.address, ""), 10.0, Duration::from_secs(3), hurried);
    proof.control("a_queue_without_an_end", found.iter().any(|fault| fault.ends_with("got no answer under overload")));
    proof.finish(reached);
}

#[test]
fn it_lives_within_256_mib() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut proof = Proof::begin("C6.memory", None, GATE_SECONDS);
    if Group::new(MOST_MEMORY).is_none() {
        let reason = "it takes a memory cgroup with a limit, which root can make where /sys/fs/cgroup can be written";
        // Nothing that can be installed brings one, so that the gate does without; the record says that it was not run.
        return if proof.tier == Tier::Gate { say(reason) } else { proof.not_run(reason) };
    }
    server::keep_apart();
    let (factors, each) = turns(&proof);
    let mut reached = 0;
    for factor in factors {
        for fault in live_within(MOST_MEMORY, factor, each) {
            proof.violation(format!("at {factor} times the peak: {fault}"));
        }
        reached += each.as_secs();
    }
    let found = live_within(TOO_LITTLE, 5.0, Duration::from_secs(2));
    proof.control("a_limit_that_kills", found.iter().any(|fault| fault.ends_with("killed for want of memory")));
    proof.finish(reached);
}

/// The factors that have their turn, and for how long: all of them, or as many as there are seconds for, from where the
/// last run left off.
fn turns(proof: &Proof) -> (Vec<f64>, Duration) {
    let all = if proof.tier == Tier::Gate { GATE_FACTORS } else { FACTORS };
    let turns = (proof.count / GATE_SECONDS).clamp(1, all.len() as u64);
    let first = proof.seed / GATE_SECONDS;
    let factors = (first..first + turns).map(|turn| all[(turn % all.len() as u64) as usize]).collect();
    (factors, Duration::from_secs(proof.count.div_ceil(turns).max(2)))
}

/// An overload of a server that has so much memory, beside senders that want all of it: what was wrong.
fn live_within(limit: u64, factor: f64, length: Duration) -> Vec<String> {
    let group = Group::new(limit).expect("a group that could be made before");
    let _end = group.killed_after(length + LONGEST);
    let mut found = Vec::new();
    if let Some(server) = Server::start_in(&group) {
        if !server.is_in(&group) {
            found.push("it is not in its group".to_owned());
        }
        let mut crowd = Crowd::new(server.address, &server.key);
        (crowd.senders, crowd.most_waiting) = (SENDERS, MOST_WAITING);
        let (faults, told) = overload(&mut crowd, factor, length, ALIVE);
        found.extend(faults);
        let sent = crowd.sent.get();
        if sent < LEAST_SENT {
            found.push(format!("the senders got rid of {:.0} MiB, too little to ask for memory", mib(sent)));
        }
        say(&told);
        say(&format!("  {:.0} MiB resident at most, beside {:.0} MiB of bodies", mib(server.most_memory()), mib(sent)));
        found.extend(server.stop());
    } else {
        found.push("it did not start".to_owned());
    }
    if let Some(used) = group.most_used() {
        say(&format!("  {:.0} of {:.0} MiB at most, with the pages of its files", mib(used), mib(limit)));
    }
    let kills = group.kills();
    if kills > 0 {
        found.push(format!("{kills} killed for want of memory"));
    }
    found
}

/// A peak, an overload, and a peak again.
fn overload(crowd: &mut Crowd, factor: f64, length: Duration, promise: Promise) -> (Vec<String>, String) {
    crowd.closed(BUSY, Duration::from_secs(1));
    let peak = crowd.closed(BUSY, Duration::from_secs(3));
    let sample = crowd.open(peak.goodput() * factor, length, promise.patience);
    // Five seconds: three to recover in, two to be measured.
    std::thread::sleep(Duration::from_secs(3));
    let after = crowd.closed(BUSY, Duration::from_secs(2));
    let told = format!(
        "{factor} times {:.0} a second for {} s: {} made and {} left out, {} done ({:.0} a second, {:.0} % of the peak), \
         {} refused, 99th percentiles {:.1} ms done, {:.1} ms refused, {:.1} ms at the peak, made {:.1} ms late; \
         {:.0} % of the peak afterwards",
        peak.goodput(),
        length.as_secs(),
        sample.made,
        sample.left_out,
        sample.done.len(),
        sample.goodput(),
        100.0 * sample.goodput() / peak.goodput(),
        sample.refused.len(),
        milliseconds(&sample.done),
        milliseconds(&sample.refused),
        milliseconds(&peak.done),
        milliseconds(&sample.late),
        100.0 * after.goodput() / peak.goodput(),
    );
    (judge(&peak, &sample, &after, promise), told)
}

fn judge(peak: &Sample, sample: &Sample, after: &Sample, promise: Promise) -> Vec<String> {
    let mut found = Vec::new();
    let mut ask = |holds: bool, fault: String| {
        if !holds {
            found.push(fault);
        }
    };
    let share = sample.goodput() / peak.goodput();
    ask(share >= promise.goodput, format!("{:.0} % of the peak are done", share * 100.0));
    let most = (milliseconds(&peak.done) * promise.slower).max(promise.admitted.as_secs_f64() * 1000.0);
    let took = milliseconds(&sample.done);
    ask(took <= most, format!("what is let in waits {took:.1} ms, more than {most:.1}"));
    let took = milliseconds(&sample.refused);
    ask(took <= promise.refused.as_secs_f64() * 1000.0, format!("who is refused waits {took:.1} ms"));
    let share = after.goodput() / peak.goodput();
    ask(share >= promise.recovered, format!("afterwards {:.0} % of the peak are done", share * 100.0));
    for (when, sample) in [("at the peak", peak), ("under overload", sample), ("afterwards", after)] {
        ask(sample.broken.is_empty(), format!("{} broken {when}: {:?}", sample.broken.len(), sample.broken.first()));
        let lost = sample.made - sample.answered();
        ask(lost == 0, format!("{lost} got no answer {when}"));
    }
    for (when, sample) in [("at the peak", peak), ("afterwards", after)] {
        ask(sample.refused.is_empty(), format!("{} refused {when}", sample.refused.len()));
    }
    found
}

/// The 99th percentile.
fn milliseconds(latencies: &[Duration]) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

#[expect(clippy::print_stdout, reason = "whoever reads a proof wants its figures")]
fn say(what: &str) {
    println!("{what}");
}
