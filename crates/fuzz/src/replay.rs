//! All stored inputs once, in this build: the gate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::{CONTROLS, TARGETS, Target, escaped, stored, watched};

/// What panicked, in any thread: a server that catches a panic has had one.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Inputs that show each control.
const SHOWN: [&[u8]; 3] = [b"\x05ab", b"x", b"x"];

/// What is wrong, how many inputs there were, and which controls were seen.
#[derive(Debug, Default)]
pub struct Replayed {
    pub found: Vec<String>,
    pub inputs: u64,
    pub controls: Vec<(&'static str, bool)>,
}

/// Every stored input of every target, and the controls.
#[must_use]
pub fn replay() -> Replayed {
    std::panic::set_hook(Box::new(|panic| lock().push(panic.to_string())));
    let mut replayed = Replayed::default();
    for target in TARGETS {
        for input in stored(target.name) {
            replayed.inputs += 1;
            let about = |fault| format!("{} of {}: {fault}", escaped(&input), target.name);
            replayed.found.extend(faults(target, &input).into_iter().map(about));
        }
    }
    let controls = CONTROLS.iter().zip(SHOWN);
    replayed.controls = controls.map(|(control, input)| (control.name, !faults(control, input).is_empty())).collect();
    drop(std::panic::take_hook());
    replayed
}

fn faults(target: &Target, input: &[u8]) -> Vec<String> {
    let _ = catch_unwind(AssertUnwindSafe(|| watched(target, input)));
    std::mem::take(&mut *lock())
}

fn lock() -> std::sync::MutexGuard<'static, Vec<String>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stored_input_breaks_a_promise_and_each_control_is_seen() {
        let replayed = replay();
        assert!(replayed.found.is_empty(), "{}", replayed.found.join("\n"));
        assert!(replayed.controls.iter().all(|(_, is_seen)| *is_seen), "{:?}", replayed.controls);
        assert!(TARGETS.iter().all(|target| !stored(target.name).is_empty()), "a target has no input");
    }
}
