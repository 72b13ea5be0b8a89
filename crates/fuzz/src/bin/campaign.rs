//! One target under libFuzzer: `DALASI_FUZZ_TARGET` names it, the words are libFuzzer's own. `dalasi-fuzz` builds and runs it.

#![no_main]

use std::sync::LazyLock;

use fuzz::{Target, find, watched};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("DALASI_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("DALASI_FUZZ_TARGET: no target is called {name:?}"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| watched(*TARGET, input));
