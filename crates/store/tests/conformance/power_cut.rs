//! Row B4: a loss of power at any moment, with any subset of the unsynced sectors on the disk, loses nothing that was
//! acknowledged and leaves nothing half done.
//!
//! The real driver migrates, writes, commits in groups, checkpoints and closes; its record is then cut at every moment.
//! What is asked of an image is always the same: SQLite finds it whole, the transactions in it are the first ones without a
//! gap, each with all its rows, and the acknowledged ones are among them.

mod image;
mod workload;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use power_cut::{Disk, Seeded};
use proof::Proof;

use self::image::Bench;
use self::workload::Recorded;
pub(crate) use self::workload::covering_nothing;

/// Among the ordinary tests; the programme's gate asks for more.
const IMAGES: u64 = 300;
/// Of one record; then another one is made, from the next seed.
const IMAGES_OF_A_RECORD: usize = 1_000;
/// That many images are made at each moment that is cut.
const IMAGES_OF_A_CUT: usize = 5;
/// Within so many images a control has to be caught.
const IMAGES_OF_A_CONTROL: usize = 200;
/// Of so many syncs one has to be missed: on a busy machine every answer may be heard after the next commit's sync, on
/// which it does not hang.
const SYNCS_OF_A_CONTROL: u64 = 20;
/// In one of so many records what was planted has to be seen: on a busy machine every answer of one may be heard after the
/// checkpoint's sync, which saves it.
#[cfg(feature = "planted")]
const RECORDS_OF_A_CONTROL: u64 = 20;
const WORKERS: usize = 2;

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let mut proof = Proof::begin("B4", Some("sqlite"), IMAGES);
    let wanted = usize::try_from(proof.count).unwrap();
    let mut reached = 0;
    while reached < wanted {
        let seed = proof.seed + reached as u64;
        let recorded = workload::record(seed, || ());
        let count = IMAGES_OF_A_RECORD.min(wanted - reached);
        for fault in cut(&recorded, 0..recorded.steps.len() + 1, count, seed) {
            proof.violation(fault);
        }
        reached += count;
    }
    controls(&mut proof);
    proof.finish(reached as u64);
}

fn controls(proof: &mut Proof) {
    let seed = proof.seed;
    let recorded = workload::record(seed, || ());
    let is_seen = (0..SYNCS_OF_A_CONTROL).any(|number| {
        let (dropped, seen) = recorded.without_one_sync(seed + number);
        loses(&dropped, seen, seed)
    });
    proof.control("sync_dropped", is_seen);
    let never = recorded.without_syncs();
    proof.control("sync_never", loses(&never, 0..never.steps.len() + 1, seed));
    #[cfg(feature = "planted")]
    planted(proof);
}

/// The settings that are often advised, and an answer that comes too early.
#[cfg(feature = "planted")]
fn planted(proof: &mut Proof) {
    use domain::planted::{Defect, plant};

    for defect in [Defect::SynchronousNormal, Defect::SynchronousOff, Defect::AnswerBeforeCommit] {
        let is_seen = (0..RECORDS_OF_A_CONTROL).any(|number| {
            let seed = proof.seed + number;
            let recorded = workload::record(seed, || plant(Some(defect)));
            plant(None);
            loses(&recorded, 0..recorded.steps.len() + 1, seed)
        });
        proof.control(defect.as_str(), is_seen);
    }
}

/// Whether an image is wrong: it misses what was acknowledged, or SQLite can't even read it.
fn loses(recorded: &Recorded, moments: Range<usize>, seed: u64) -> bool {
    !cut(recorded, moments, IMAGES_OF_A_CONTROL, seed).is_empty()
}

/// What is wrong with `count` images of moments in `moments`.
fn cut(recorded: &Recorded, moments: Range<usize>, count: usize, seed: u64) -> Vec<String> {
    let mut seeded = Seeded::new(seed);
    let mut cuts: Vec<usize> =
        (0..count.div_ceil(IMAGES_OF_A_CUT)).map(|_| moments.start + seeded.below(moments.len())).collect();
    cuts.sort_unstable();
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let (mut disk, mut bench) = (Disk::new(&recorded.steps), Bench::new());
                while let Some(position) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    disk.advance(*position);
                    for number in 0..IMAGES_OF_A_CUT {
                        let image_seed =
                            seed.wrapping_mul(31).wrapping_add((position * IMAGES_OF_A_CUT + number) as u64);
                        let acknowledged = recorded.acknowledged_at(*position);
                        if let Err(fault) = bench.check(&disk.image(image_seed), acknowledged) {
                            let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
                            faults.push(format!("seed {seed}, step {position}, image {image_seed}: {fault}"));
                        }
                    }
                }
            });
        }
    });
    faults.into_inner().unwrap()
}
