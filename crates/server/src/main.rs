//! The `dalasi` binary: everything is in the library, so that tests can reach it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(feature = "planted")]
    plant();
    dalasi::cli::main()
}

/// A build for tests has the defect that is named, if one is.
#[cfg(feature = "planted")]
fn plant() {
    use domain::planted::{self, Defect};
    if let Ok(name) = std::env::var("DALASI_PLANTED") {
        let defect = Defect::parse(&name);
        assert!(defect.is_some(), "DALASI_PLANTED: no defect is called {name:?}");
        planted::plant(defect);
    }
}
