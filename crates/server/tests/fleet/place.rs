//! Where an installation under test keeps its master key, and the commands that are run on it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Place {
    folder: PathBuf,
    url: String,
    is_unsafe: bool,
}

impl Place {
    /// On a database that the test looks after itself.
    pub(crate) fn on(url: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dalasi-fleet-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, url: url.to_owned(), is_unsafe: false }
    }

    /// Whose settings may lose what is acknowledged.
    pub(crate) fn though_it_is_unsafe(mut self) -> Self {
        self.is_unsafe = true;
        self
    }

    /// A command on this installation, with nobody at the keyboard.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dalasi"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DALASI_")) {
            command.env_remove(name);
        }
        command.env("DALASI_DATABASE_URL", &self.url).env("DALASI_KEY_FILE", self.folder.join("master.key"));
        if self.is_unsafe {
            command.env("DALASI_UNSAFE", "true");
        }
        command.args(arguments).current_dir(&self.folder).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command that has to work; what it says in JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert!(ran.status.success(), "{arguments:?}: {ran:?}");
        serde_json::from_slice(&ran.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may be gone already; nothing of ours hangs on it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn client() -> reqwest::Client {
    #[expect(clippy::disallowed_methods, reason = "the servers under test are on this machine")]
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}
