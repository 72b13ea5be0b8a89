//! Row B9.power: the power goes at any moment while a database of any earlier schema is migrated.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use power_cut::{Disk, Recording, Seeded, Step};
use proof::Proof;
use store::Schema;

use super::{Golden, SIZES, changed, filled, open};
use crate::power_cut::covering_nothing;
use crate::world::World;

/// Among the ordinary tests; the programme asks for more.
const IMAGES: u64 = 30;
/// Within so many images a control has to be caught.
const IMAGES_OF_A_CONTROL: u64 = 400;
/// Of which it is easily told which step committed: it builds `transactions` anew.
const FOURTH: usize = 4;

/// What a database held, and all that was written while it was migrated.
struct Recorded {
    before: Golden,
    steps: Vec<Step>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_while_migrating_loses_no_row() {
    let mut proof = Proof::begin("B9.power", Some("sqlite"), IMAGES);
    let earlier = Schema::product().migrations.len() - 2;
    let mut records = BTreeMap::new();
    for seed in proof.seed..proof.seed + proof.count {
        let schema = 2 + usize::try_from(seed).unwrap() % earlier;
        let recorded = match records.entry(schema) {
            Entry::Occupied(recorded) => recorded.into_mut(),
            Entry::Vacant(place) => place.insert(migrated_from(schema).await),
        };
        for fault in lost(recorded, seed).await {
            proof.violation(format!("from schema {schema}, seed {seed}: {fault}"));
        }
    }
    proof.control("sync_never", is_seen(&without_syncs(migrated_from(2).await), proof.seed).await);
    proof.control("step_outside_transaction", is_seen(&half_way_for_good().await, proof.seed).await);
    let count = proof.count;
    proof.finish(count);
}

async fn migrated_from(schema: usize) -> Recorded {
    let world = World::sqlite();
    let before = filled(&world.settings, schema, SIZES[0]).await;
    let recording = Recording::start(folder_of(&world));
    open(&world.settings, Schema::product()).await.unwrap().close().await;
    Recorded { before, steps: recording.steps() }
}

fn without_syncs(recorded: Recorded) -> Recorded {
    Recorded { before: recorded.before, steps: recorded.steps.iter().map(covering_nothing).collect() }
}

/// Each statement of a migration commits by itself.
async fn half_way_for_good() -> Recorded {
    let world = World::sqlite();
    let before = filled(&world.settings, FOURTH - 1, SIZES[0]).await;
    let recording = Recording::start(folder_of(&world));
    let sqlite = rusqlite::Connection::open(world.path()).unwrap();
    sqlite.execute_batch(Schema::product().migrations[FOURTH - 1].text).unwrap();
    drop(sqlite);
    Recorded { before, steps: recording.steps() }
}

async fn is_seen(recorded: &Recorded, seed: u64) -> bool {
    for number in 0..IMAGES_OF_A_CONTROL {
        if !lost(recorded, seed + number).await.is_empty() {
            return true;
        }
    }
    false
}

/// What is wrong after the next start, with an image of some moment.
async fn lost(recorded: &Recorded, seed: u64) -> Vec<String> {
    let mut seeded = Seeded::new(seed);
    // The first step finds the file that is there; before it, the record knows of none.
    let cut = 1 + seeded.below(recorded.steps.len());
    let mut disk = Disk::new(&recorded.steps);
    disk.advance(cut);
    let image = World::sqlite();
    power_cut::write(&disk.image(seeded.number()), folder_of(&image)).unwrap();
    let found = match open(&image.settings, Schema::product()).await {
        Err(error) => vec![format!("it does not start: {error}")],
        Ok(store) => {
            let found = changed(&store, &recorded.before).await;
            store.close().await;
            found
        }
    };
    image.end().await;
    found.into_iter().map(|fault| format!("cut at {cut}: {fault}")).collect()
}

fn folder_of(world: &World) -> &Path {
    world.path().parent().unwrap()
}
