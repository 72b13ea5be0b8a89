//! What the checks need and a machine may lack: found, or installed, or named in one line with the way to install it.
//!
//! Debian packages are installed for root only. Everything else goes below the target folder or `node_modules` and is
//! gone with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Result;
use crate::command::{self, find};

const CARGO_DENY_VERSION: &str = "0.20.2";
const CARGO_CYCLONEDX_VERSION: &str = "0.5.9";
const CARGO_MUTANTS_VERSION: &str = "27.1.0";

/// The oldest that playwright-core and Vendure run on.
const NODE_VERSION: u32 = 20;

/// Keeps Debian's package from starting a cluster of its own on port 5432 while it is being installed.
const NO_MAIN_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/dalasi-checks.conf";

const SYSTEM_PYTHON: &str = "/usr/bin/python3";

/// Asked by Debian's packages before they start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The folder with `initdb` and `pg_ctl`, which Debian keeps off the path; `DALASI_TEST_POSTGRES_PROGRAMS` names another
/// version's.
pub(crate) fn postgresql() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("DALASI_TEST_POSTGRES_PROGRAMS") {
        return Ok(folder.into());
    }
    if let Some(folder) = postgresql_folder() {
        return Ok(folder);
    }
    let conf = Path::new(NO_MAIN_CLUSTER);
    if is_root()
        && let Some(folder) = conf.parent()
    {
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(conf, "create_main_cluster = false\n"))
            .map_err(|error| format!("{NO_MAIN_CLUSTER}: {error}"))?;
    }
    let installed = debian("PostgreSQL", &["postgresql"]);
    if is_root() {
        // A leftover would only keep a later installation from making its cluster; nothing here depends on it.
        let _ = fs::remove_file(conf);
    }
    installed?;
    postgresql_folder().ok_or_else(|| "PostgreSQL was installed, but initdb is nowhere".to_owned())
}

fn postgresql_folder() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, folder)| folder.join("initdb").is_file())
        .max();
    newest.map(|(_, folder)| folder).or_else(|| {
        let initdb = fs::canonicalize(find(&["initdb"])?).ok()?;
        initdb.parent().map(Path::to_path_buf)
    })
}

/// A Chromium, rather without its windows: it shows a page as the whole one does, for half of the work.
pub(crate) fn chromium() -> Result<PathBuf> {
    const HEADLESS: &str = "chromium-headless-shell";
    const WHOLE: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
    // Asked for several times in one run, and not every system can install it.
    static FOUND: OnceLock<Result<PathBuf>> = OnceLock::new();
    let look = || {
        if let Some(path) = std::env::var_os("CHROMIUM") {
            return Ok(path.into());
        }
        if let Some(path) = find(&[HEADLESS]) {
            return Ok(path);
        }
        let installed = debian("Chromium", &[HEADLESS, "fonts-dejavu-core"]);
        match find(&[HEADLESS]).or_else(|| find(WHOLE)) {
            Some(path) => Ok(path),
            None => Err(installed.err().unwrap_or_else(|| "Chromium was installed, but is not on the path".to_owned())),
        }
    };
    FOUND.get_or_init(look).clone()
}

/// pdftotext and its kin, which read our documents back: `poppler-utils` on Debian.
pub(crate) fn poppler() -> Result<()> {
    if find(&["pdftotext"]).is_some() { Ok(()) } else { debian("Poppler", &["poppler-utils"]) }
}

/// Where Debian's package puts it, which keeps it off the path of who is not root.
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

/// The pooler that several processes of ours are tested behind; none is started here.
pub(crate) fn pgbouncer() -> Result<()> {
    if Path::new(PGBOUNCER).is_file() || find(&["pgbouncer"]).is_some() {
        return Ok(());
    }
    debian_without_its_services("PgBouncer", &["pgbouncer"])
}

/// Prometheus' judge of rules and metrics; its server is not started.
pub(crate) fn promtool() -> Result<()> {
    if find(&["promtool"]).is_some() { Ok(()) } else { debian_without_its_services("promtool", &["prometheus"]) }
}

/// What fails a process's system calls and moves its clock: strace and libfaketime.
pub(crate) fn fault_tools() -> Result<()> {
    let has_faketime = fs::read_dir("/usr/lib").is_ok_and(|mut folders| {
        folders.any(|folder| folder.is_ok_and(|folder| folder.path().join("faketime/libfaketimeMT.so.1").is_file()))
    });
    if has_faketime && find(&["strace"]).is_some() {
        return Ok(());
    }
    debian("strace or libfaketime", &["strace", "libfaketime"])
}

/// `node_modules` of a folder with a package-lock.json, made anew when the lock file has changed.
pub(crate) fn node_modules(folder: &Path) -> Result<()> {
    if find(&["node"]).is_none() || find(&["npm"]).is_none() {
        debian("Node.js", &["nodejs", "npm"])?;
    }
    let version = command::output(Command::new("node").arg("--version"))?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|word| word.parse().ok());
    if major.is_none_or(|major: u32| major < NODE_VERSION) {
        return Err(format!("Node.js {NODE_VERSION} or newer is needed; this is {}", version.trim()));
    }
    let modules = folder.join("node_modules");
    unless_current(&folder.join("package-lock.json"), &modules.join(".installed-from"), || {
        command::run(
            Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder),
        )
    })
}

/// The Python of a virtual environment with exactly what `requirements` pins.
pub(crate) fn python(environment: &Path, requirements: &Path) -> Result<PathBuf> {
    python_of("python3", environment, requirements)
}

fn python_of(interpreter: &str, environment: &Path, requirements: &Path) -> Result<PathBuf> {
    let has_venv = || command::succeeds(Command::new(interpreter).args(["-c", "import ensurepip, venv"]));
    if !has_venv() {
        debian("Python", &["python3", "python3-venv"])?;
    }
    let python = environment.join("bin/python");
    unless_current(requirements, &environment.join("installed-from"), || {
        if environment.exists() {
            fs::remove_dir_all(environment).map_err(|error| format!("{}: {error}", environment.display()))?;
        }
        command::run(Command::new(interpreter).args(["-m", "venv"]).arg(environment))?;
        command::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg("--requirement")
                .arg(requirements),
        )
    })?;
    Ok(python)
}

/// A Patroni that asks who leads before it says that it does, which Debian's does not; `DALASI_TEST_PATRONI` names another.
pub(crate) fn patroni(environment: &Path, requirements: &Path) -> Result<PathBuf> {
    if find(&["etcd"]).is_none() {
        debian_without_its_services("etcd", &["etcd-server"])?;
    }
    if let Some(path) = std::env::var_os("DALASI_TEST_PATRONI") {
        return Ok(path.into());
    }
    // PostgreSQL's account runs it, who can't enter the home of whoever brought a Python of their own.
    let interpreter = if Path::new(SYSTEM_PYTHON).is_file() { SYSTEM_PYTHON } else { "python3" };
    Ok(python_of(interpreter, environment, requirements)?.with_file_name("patroni"))
}

pub(crate) fn cargo_deny(root: &Path, target: &Path) -> Result<PathBuf> {
    cargo_tool(root, target, "cargo-deny", &["--no-default-features", "--version", CARGO_DENY_VERSION])
}

pub(crate) fn cargo_cyclonedx(root: &Path, target: &Path) -> Result<PathBuf> {
    cargo_tool(root, target, "cargo-cyclonedx", &["--version", CARGO_CYCLONEDX_VERSION])
}

pub(crate) fn cargo_mutants(root: &Path, target: &Path) -> Result<PathBuf> {
    cargo_tool(root, target, "cargo-mutants", &["--version", CARGO_MUTANTS_VERSION])
}

/// The one on the path, or our own below the target folder. Built without optimisation: that takes about a minute on two
/// cores, and none has much to do itself.
fn cargo_tool(root: &Path, target: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let tools = target.join("tools");
    let own = tools.join("bin").join(name);
    // Thrown away below: these half-optimised crates are of no use to anyone else, nor to another tool that is made meanwhile.
    let build = tools.join("build").join(name);
    if own.is_file() {
        return Ok(own);
    }
    if let Some(path) = find(&[name]) {
        return Ok(path);
    }
    command::run(
        command::cargo(root)
            .args(["install", "--quiet", "--locked", name])
            .args(options)
            .arg("--root")
            .arg(&tools)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
            .env("CARGO_TARGET_DIR", &build),
    )?;
    // The binary is there; a build folder that can't be removed costs disk space only.
    let _ = fs::remove_dir_all(build);
    Ok(own)
}

pub(crate) fn is_root() -> bool {
    command::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Runs `install` unless `marker` holds a copy of what `source` says now.
fn unless_current(source: &Path, marker: &Path, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read(source).map_err(|error| format!("{}: {error}", source.display()))?;
    if fs::read(marker).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(marker, wanted).map_err(|error| format!("{}: {error}", marker.display()))
}

/// Installs what would otherwise be started and stay.
fn debian_without_its_services(what: &str, packages: &[&str]) -> Result<()> {
    let policy = Path::new(POLICY);
    if !is_root() || policy.exists() {
        return debian(what, packages);
    }
    fs::write(policy, "#!/bin/sh\nexit 101\n")
        .and_then(|()| fs::set_permissions(policy, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{POLICY}: {error}"))?;
    let installed = debian(what, packages);
    let removed = fs::remove_file(policy).map_err(|error| format!("{POLICY}: {error}"));
    installed.and(removed)
}

fn debian(what: &str, packages: &[&str]) -> Result<()> {
    if !is_root() || find(&["apt-get"]).is_none() {
        return Err(format!("{what} is missing. Install it, on Debian with: apt-get install {}", packages.join(" ")));
    }
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    command::run(apt_get().args(["--quiet", "--quiet", "update"]))?;
    command::run(apt_get().args(["install", "--quiet", "--yes", "--no-install-recommends"]).args(packages))
}
