//! Many histories on all cores, by their seeds.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::FutureExt as _;

use crate::disk::remove_folders;
use crate::world::Template;

/// In which world.
#[derive(Debug, Clone, Copy)]
pub enum Setting<'u> {
    Plain,
    SendingMail,
    /// On a disk that may lose its power.
    OnDisk,
    /// With a database in this PostgreSQL cluster.
    Beside(&'u str),
}

/// A thread's own world.
pub fn with_template<T>(setting: Setting<'_>, run: impl AsyncFnOnce(&Template) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let template = match setting {
            Setting::Plain => Template::build().await,
            Setting::SendingMail => Template::sending_mail().await,
            Setting::OnDisk => Template::on_disk().await,
            Setting::Beside(url) => Template::beside(url).await,
        };
        let done = run(&template).await;
        template.end().await;
        done
    })
}

pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Which seeds, and in which world.
#[derive(Debug, Clone, Copy)]
pub struct Seeds<'u> {
    pub first: u64,
    pub count: u64,
    pub setting: Setting<'u>,
}

/// Plays seeds on all cores until `look` has seen enough; how many were played. `prepare` is called when the world stands:
/// what it plants should do harm to histories, not to their beginning.
pub fn play_many<T>(
    seeds: Seeds<'_>,
    prepare: impl FnOnce(),
    play: impl AsyncFn(&Template, u64) -> T + Sync,
    look: impl Fn(u64, &T) -> bool + Sync,
) -> u64 {
    let (next, enough, played) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let (built, prepared) = (Barrier::new(threads() + 1), Barrier::new(threads() + 1));
    std::thread::scope(|scope| {
        let playing = || {
            scope.spawn(|| {
                with_template(seeds.setting, async |template| {
                    built.wait();
                    prepared.wait();
                    while !enough.load(Ordering::Relaxed) {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        if place >= seeds.count {
                            break;
                        }
                        let seed = seeds.first + place;
                        let outcome = AssertUnwindSafe(play(template, seed)).catch_unwind().await;
                        let outcome = outcome.unwrap_or_else(|panic| panic!("seed {seed}: {}", said(&*panic)));
                        played.fetch_add(1, Ordering::Relaxed);
                        if look(seed, &outcome) {
                            enough.store(true, Ordering::Relaxed);
                        }
                    }
                });
            })
        };
        let threads: Vec<_> = (0..threads()).map(|_| playing()).collect();
        built.wait();
        prepare();
        prepared.wait();
        for thread in threads {
            // A panic of theirs is told by nobody else: most are caught, and are what a history comes to.
            thread.join().unwrap_or_else(|panic| panic!("{}", said(&*panic)));
        }
    });
    remove_folders();
    played.into_inner()
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "seed 7: on purpose")]
    fn who_panics_outside_of_a_history_is_told_with_its_seed() {
        let seeds = Seeds { first: 5, count: 3, setting: Setting::Plain };
        play_many(seeds, || (), async |_, seed| assert!(seed != 7, "on purpose"), |_, ()| false);
    }
}
