//! The steps of `cargo xtask test`, in the order in which they run: what costs least and fails most comes first.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::postgres::{self, Cluster, Storage};
use crate::{Result, command, install, prove, supply_chain};

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    run: fn(&mut Machine, &[String]) -> Result<()>,
    /// What the step checks; where it isn't there, there is nothing to run yet.
    subject: Option<&'static str>,
}

pub(crate) const STEPS: &[Step] = &[
    Step { name: "format", title: "formatting", run: format_check, subject: None },
    Step { name: "clippy", title: "lints, warnings denied", run: clippy, subject: None },
    Step { name: "test", title: "unit and API tests, on SQLite and PostgreSQL", run: test, subject: None },
    Step { name: "doctest", title: "examples in the documentation", run: doctest, subject: None },
    Step { name: "rustdoc", title: "documentation, warnings denied", run: rustdoc, subject: None },
    Step {
        name: "deny",
        title: "dependencies: bans, licences, sources, and how many there are",
        run: deny,
        subject: Some("deny.toml"),
    },
    Step { name: "openapi", title: "openapi.json is what the routes say", run: openapi, subject: Some("openapi.json") },
    Step {
        name: "sdk",
        title: "the published Python SDK, on SQLite and PostgreSQL",
        run: sdk,
        subject: Some("tests/sdk"),
    },
    Step {
        name: "prove",
        title: "the rows of the proof programme that are no test of another step",
        run: prove,
        subject: None,
    },
    Step { name: "browser", title: "the hosted pages in Chromium", run: browser, subject: Some("tests/browser") },
];

pub(crate) fn names() -> String {
    let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    names.join(", ")
}

impl Step {
    pub(crate) fn has_subject(&self, machine: &Machine) -> bool {
        self.subject.is_none_or(|path| machine.root.join(path).exists())
    }

    pub(crate) fn run(&self, machine: &mut Machine, arguments: &[String]) -> Result<()> {
        (self.run)(machine, arguments)
    }
}

/// Below the folder of builds: programs of tests that are optimized.
const OPTIMIZED: &str = "optimized";

/// What a simulation runs of ours.
const SIMULATED: &[&str] = &["dalasi", "dalasi-domain", "dalasi-pdf", "dalasi-sim", "dalasi-store"];

/// What a server runs of ours. One that is asked by thousands of tests, as the SDK's, is worth some optimizing: it saves more
/// time than it takes.
const SERVED: &[&str] = &["dalasi", "dalasi-store"];

/// Below the folder of builds: what nobody runs, since it is built while tests run another one of the same name.
const AHEAD: &str = "ahead";

/// What the steps share: where things are, and the database cluster, which starts when a step first asks for it.
pub(crate) struct Machine {
    root: PathBuf,
    target: PathBuf,
    cluster: Option<Cluster>,
    is_release: bool,
    /// The steps after the one that runs.
    pub(crate) later: Vec<&'static str>,
}

impl Machine {
    pub(crate) fn new() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?.to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => std::path::absolute(folder).map_err(|error| error.to_string())?,
            None => root.join("target"),
        };
        Ok(Self { root, target, cluster: None, is_release: false, later: Vec::new() })
    }

    /// From here on servers are of the release build: what takes long, and what is measured, is nearer to what is shipped.
    pub(crate) fn use_release(&mut self) {
        self.is_release = true;
    }

    pub(crate) fn cargo(&self) -> Command {
        command::cargo(&self.root)
    }

    /// Tests that draw their cases draw others for each commit; what is not committed yet has those of the commit that it
    /// follows, and what lies in no repository always the same.
    fn with_commit<'c>(&self, tests: &'c mut Command) -> &'c mut Command {
        match self.commit() {
            Ok(commit) => tests.env("DALASI_PROOF_COMMIT", commit),
            Err(_) => tests,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A database that is already there (`DALASI_TEST_POSTGRES_URL`) is used as it is.
    pub(crate) fn postgres_url(&mut self) -> Result<String> {
        if let Ok(url) = std::env::var("DALASI_TEST_POSTGRES_URL") {
            postgres::answers(&url).map_err(|why| {
                format!("DALASI_TEST_POSTGRES_URL: {why}; without it `cargo xtask` starts a cluster of its own")
            })?;
            return Ok(url);
        }
        let cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => Cluster::start(if self.is_release { Storage::Disk } else { Storage::Memory })?,
        };
        Ok(self.cluster.insert(cluster).url().to_owned())
    }

    /// What is checked out.
    pub(crate) fn commit(&self) -> Result<String> {
        self.git(&["describe", "--always", "--abbrev=12"])
    }

    /// Equal texts have equal names, and others have others.
    pub(crate) fn name_of(&self, text: &str) -> Result<String> {
        let file = self.scratch()?.join(format!("named-{}", std::process::id()));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = self.git(&["hash-object", "--no-filters", &file.to_string_lossy()]);
        let _ = fs::remove_file(&file);
        name
    }

    pub(crate) fn git(&self, words: &[&str]) -> Result<String> {
        let said = command::output(Command::new("git").args(words).current_dir(&self.root))?;
        Ok(said.trim_end().to_owned())
    }

    /// A folder for what is only wanted while we run.
    pub(crate) fn scratch(&self) -> Result<PathBuf> {
        let folder = self.target.join("tmp");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// The tests of the SDK's folder on one database, with all they need; the arguments are the caller's. Where faults can't be
    /// made the tests that want them say so themselves.
    pub(crate) fn pytest(&mut self, database: &str) -> Result<Command> {
        install::poppler()?;
        if let Err(message) = install::fault_tools() {
            eprintln!("{message}");
        }
        let chromium = install::chromium().inspect_err(|message| eprintln!("{message}")).ok();
        let binary = self.dalasi()?;
        let url = self.postgres_url()?;
        let folder = self.root.join("tests/sdk");
        let python = install::python(&self.target.join("venv"), &folder.join("requirements.txt"))?;
        let mut pytest = Command::new(&python);
        self.with_commit(&mut pytest)
            .args(["-m", "pytest", "--database", database])
            .current_dir(&folder)
            .env("DALASI_BIN", &binary)
            .env("DALASI_PLANTED_BIN", self.planted()?)
            .env("DALASI_TEST_POSTGRES_URL", &url)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(chromium.map(|program| ("CHROMIUM", program)));
        Ok(pytest)
    }

    /// The same with Patroni. Where it can't be had the tests say so themselves.
    pub(crate) fn pytest_with_patroni(&mut self) -> Result<Command> {
        let mut pytest = self.pytest("postgres")?;
        let requirements = self.root.join("tests/sdk/patroni.txt");
        match install::patroni(&self.target.join("patroni"), &requirements) {
            Ok(program) => drop(pytest.env("DALASI_TEST_PATRONI", program)),
            Err(message) => eprintln!("{message}"),
        }
        Ok(pytest)
    }

    /// The real binary, unless `DALASI_BIN` names another. Built for itself, so that its dependencies have the features
    /// that a user's build gives them and not those that the tests' own dependencies add.
    fn dalasi(&self) -> Result<PathBuf> {
        if let Some(path) = std::env::var_os("DALASI_BIN") {
            return Ok(path.into());
        }
        if self.is_release {
            command::run(self.cargo().args(["build", "--locked", "--package", "dalasi", "--release"]))?;
            return Ok(self.target.join("release/dalasi"));
        }
        command::run(built_to_serve(&mut self.cargo()))?;
        Ok(self.target.join("debug/dalasi"))
    }

    /// The same for later: what runs meanwhile finds its own program where it was.
    fn dalasi_ahead(&self) -> Result<()> {
        command::run(built_to_serve(&mut self.with_outcome_in(AHEAD)))
    }

    /// The one with defects on purpose, unless `DALASI_PLANTED_BIN` names another.
    pub(crate) fn planted(&self) -> Result<PathBuf> {
        match std::env::var_os("DALASI_PLANTED_BIN") {
            Some(path) => Ok(path.into()),
            None => self.with_defects("dalasi"),
        }
    }

    /// The simulation, of a service with defects on purpose.
    pub(crate) fn simulation(&self) -> Result<PathBuf> {
        self.with_defects("dalasi-sim")
    }

    /// Optimized as in the profile `sim`, with every assertion on; a release build refuses to have defects. What they depend on takes
    /// minutes to build, so it is what the tests depend on, with the same features: those of the whole workspace, and of tests since
    /// there is one among what is built. Only what comes out has a folder of its own.
    fn with_defects(&self, program: &str) -> Result<PathBuf> {
        let mut cargo = self.with_outcome_in(OPTIMIZED);
        cargo.args(["build", "--locked", "--workspace", "--bin=dalasi", "--bin=dalasi-sim", "--test=calendar"]);
        cargo.args(optimized_to(2, SIMULATED));
        command::run(cargo.arg("--features=dalasi/planted,dalasi/simulation,dalasi-sim/planted"))?;
        Ok(self.target.join(OPTIMIZED).join("debug").join(program))
    }

    /// Cargo that builds with all the others, and puts what comes out into a folder of its own.
    fn with_outcome_in(&self, folder: &str) -> Command {
        let mut cargo = self.cargo();
        cargo.env("CARGO_BUILD_BUILD_DIR", &self.target).env("CARGO_TARGET_DIR", self.target.join(folder));
        cargo
    }
}

/// Beside it a tool of the tests, which wants of `libc` what nobody else does: what both depend on has it then as the tests' own
/// dependencies do, and what is written in C, among others, is not built once more.
fn built_to_serve(cargo: &mut Command) -> &mut Command {
    cargo.args(["build", "--locked", "--package=dalasi", "--package=dalasi-power-cut"]).args(optimized_to(1, SERVED))
}

fn optimized_to(level: u8, packages: &[&str]) -> impl Iterator<Item = String> {
    packages.iter().map(move |package| format!("--config=profile.dev.package.{package}.opt-level={level}"))
}

fn format_check(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    command::run(machine.cargo().args(["fmt", "--all", "--check"]).args(arguments))
}

fn clippy(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    command::run(
        machine
            .cargo()
            .args(["clippy", "--workspace", "--all-targets", "--locked"])
            .args(["--", "--deny", "warnings"])
            .args(arguments),
    )
}

fn test(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    install::poppler()?;
    install::pgbouncer()?;
    install::promtool()?;
    let url = machine.postgres_url()?;
    let mut cargo = machine.cargo();
    let mut ahead = None;
    if command::find(&["cargo-nextest"]).is_none() {
        cargo.args(["test", "--tests", "--no-fail-fast", "--workspace", "--locked"]);
    } else {
        // Two more than there are cores: many wait for a time limit. Whoever gives an argument of their own decides.
        let tests = std::thread::available_parallelism().map_or(2, usize::from) + 2;
        cargo.args(["nextest", "run", "--no-fail-fast"]).env("NEXTEST_TEST_THREADS", tests.to_string());
        if arguments.is_empty() && !machine.later.is_empty() {
            cargo.args(built_tests(machine)?);
            ahead = prepare_ahead(machine)?;
        } else {
            cargo.args(["--workspace", "--locked"]);
        }
    }
    let tested = command::run(
        machine
            .with_commit(&mut cargo)
            .args(arguments)
            .env("DALASI_TEST_POSTGRES_URL", url)
            .env("DALASI_TEST_ALL", "1"),
    );
    if let Some(mut ahead) = ahead {
        // What could not be built says so where it is wanted.
        let _ = ahead.wait();
    }
    tested
}

/// Builds the tests, and says how to run them without a look at what is to be built, for which they would wait while something is.
fn built_tests(machine: &Machine) -> Result<[OsString; 4]> {
    let (packages, binaries) = (machine.scratch()?.join("packages.json"), machine.scratch()?.join("tests.json"));
    command::run_into(
        &packages,
        machine.cargo().args(["metadata", "--format-version", "1", "--all-features", "--locked"]),
    )?;
    let list =
        ["nextest", "list", "--workspace", "--locked", "--list-type", "binaries-only", "--message-format", "json"];
    command::run_into(&binaries, machine.cargo().args(list))?;
    Ok(["--cargo-metadata".into(), packages.into(), "--binaries-metadata".into(), binaries.into()])
}

/// Prepares what later steps need while the tests run, which wait for time limits for a quarter of two cores' time: at the lowest
/// priority, so that it takes from nobody. A machine without `nice` does it in its turn.
fn prepare_ahead(machine: &Machine) -> Result<Option<Child>> {
    let Some(nice) = command::find(&["nice"]) else { return Ok(None) };
    let told = machine.scratch()?.join("prepared.txt");
    let told = File::create(&told).map_err(|error| format!("{}: {error}", told.display()))?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut ahead = Command::new(nice);
    ahead.args(["-n", "19"]).arg(own).args(["prepare", &machine.later.join(",")]).stdin(Stdio::null());
    ahead.stderr(told.try_clone().map_err(|error| error.to_string())?).stdout(told);
    ahead.spawn().map(Some).map_err(|error| format!("nice: {error}"))
}

/// Installs and builds what steps need (`STEP,…`), and runs none of them.
pub(crate) fn prepare(steps: &str) -> Result<()> {
    let machine = Machine::new()?;
    for step in steps.split(',') {
        match step {
            "deny" => drop(install::cargo_deny(&machine.root, &machine.target)?),
            "openapi" | "browser" => machine.dalasi_ahead()?,
            "sdk" => {
                machine.dalasi_ahead()?;
                machine.planted()?;
            }
            "prove" => drop(machine.planted()?),
            _ => {}
        }
    }
    Ok(())
}

fn doctest(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    let url = machine.postgres_url()?;
    command::run(
        machine
            .cargo()
            .args(["test", "--workspace", "--locked", "--doc", "--quiet"])
            .args(arguments)
            .env("DALASI_TEST_POSTGRES_URL", url),
    )
}

fn rustdoc(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    command::run(
        machine
            .cargo()
            // With the examples, what they depend on has the features with which it was checked for the lints.
            .args(["doc", "--workspace", "--locked", "--no-deps", "--lib", "--bins", "--examples"])
            .arg("--document-private-items")
            .args(arguments)
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

fn deny(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    let cargo_deny = install::cargo_deny(&machine.root, &machine.target)?;
    // The offline check reads every crate of the lock file, those for other systems too.
    command::run(machine.cargo().args(["fetch", "--locked", "--quiet"]))?;
    command::run(
        Command::new(cargo_deny)
            .args(["--offline", "--locked", "check"])
            .args(arguments)
            .args(["bans", "licenses", "sources"])
            .current_dir(&machine.root),
    )?;
    supply_chain::counted(machine)
}

fn openapi(machine: &mut Machine, _arguments: &[String]) -> Result<()> {
    let binary = machine.dalasi()?;
    let path = machine.root.join("openapi.json");
    let committed = fs::read_to_string(&path).map_err(|error| format!("openapi.json: {error}"))?;
    let generated = command::output(Command::new(binary).arg("openapi"))?;
    if committed.trim_end() == generated.trim_end() {
        return Ok(());
    }
    let line = committed.lines().zip(generated.lines()).take_while(|(old, new)| old == new).count();
    Err(format!(
        "openapi.json is stale from line {} on; write it anew: cargo run --package dalasi -- openapi > openapi.json",
        line + 1
    ))
}

fn sdk(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    let mut on = |database: &str| -> Result<Command> {
        let mut pytest = machine.pytest(database)?;
        // By files, which have what their tests share, and in their order: what waits for something else comes last.
        pytest.args(["--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder"]).args(arguments);
        Ok(pytest)
    };
    // They wait more than they work, so one database runs beside the other, and half of its tests beside the other half.
    command::run_together(vec![on("sqlite")?, on("postgres")?])
}

fn prove(machine: &mut Machine, _arguments: &[String]) -> Result<()> {
    prove::gate(machine)
}

fn browser(machine: &mut Machine, arguments: &[String]) -> Result<()> {
    let binary = machine.dalasi()?;
    let folder = machine.root.join("tests/browser");
    let chromium = install::chromium()?;
    install::node_modules(&folder)?;
    command::run(
        Command::new("node")
            .args(["--test", "--test-reporter=spec", "--test-concurrency=3", "--test-timeout=900000"])
            .args(arguments)
            .args(tests_in(&folder)?)
            .current_dir(&folder)
            .env("DALASI_BIN", binary)
            .env("CHROMIUM", chromium)
            .env("SCREENSHOTS", machine.target.join("screenshots")),
    )
}

/// `*.test.mjs`, by name: what `node --test` makes of a folder has changed between its versions.
fn tests_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("no *.test.mjs in {}", folder.display()));
    }
    Ok(files)
}
