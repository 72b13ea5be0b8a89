//! How long an input took, and how much memory.

use std::time::Duration;

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// Of the processor, where the code is optimized.
pub const MOST_TIME: Duration = Duration::from_millis(100);
/// Bytes, beyond what was held before.
pub const MOST_MEMORY: usize = 64 * 1024 * 1024;
/// Code that isn't optimized takes so many times as long, and code that counts where it was still some.
const SLOWER: u32 = match (cfg!(feature = "campaign"), cfg!(debug_assertions)) {
    (true, _) => 3,
    (false, true) => 10,
    (false, false) => 1,
};
/// What is done once, at the first input, is not the second one's.
const TRIES: usize = 2;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Runs a target on an input.
///
/// # Panics
/// When the target does, and when the input takes more than [`MOST_TIME`] or [`MOST_MEMORY`] however often it is tried.
pub fn watched(target: &Target, input: &[u8]) {
    let input = &input[..input.len().min(target.longest)];
    let (mut least_time, mut least_memory) = (Duration::MAX, usize::MAX);
    for _ in 0..TRIES {
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let began = processor_time();
        (target.run)(input);
        least_time = least_time.min(processor_time().saturating_sub(began));
        least_memory = least_memory.min(MEMORY.peak_usage().saturating_sub(held));
        if least_time <= MOST_TIME * SLOWER && least_memory <= MOST_MEMORY {
            return;
        }
    }
    assert!(least_time <= MOST_TIME * SLOWER, "{}: {least_time:?} for {} bytes", target.name, input.len());
    assert!(least_memory <= MOST_MEMORY, "{}: {least_memory} bytes of memory for {}", target.name, input.len());
}

/// Keeps the processor busy for so long, and as much longer as code in this build may take.
pub(crate) fn spend(time: Duration) {
    let began = processor_time();
    while processor_time().saturating_sub(began) < time * SLOWER {}
}

/// Of this thread: another process that is busy takes none of it.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
