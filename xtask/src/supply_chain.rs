//! Row D14: what the program is made of, where that comes from, and what is known against it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proof::Proof;
use serde_json::Value;

use crate::steps::Machine;
use crate::{Result, checkout, command, install};

/// What is shipped; what it is built from stands in crates of ours that only it uses, and in others'.
const PROGRAM: &str = "dalasi";
const BILL: &str = "dalasi.cdx.json";
/// How many crates are to be looked at, unless it is said.
const CRATES: u64 = 200;
/// Where the numbers of dependencies are written down.
const WRITTEN_DOWN: &str = "docs/security/README.md";
/// Something is said against this one by the control; it is in every lock file of ours.
const ACCUSED: &str = "rusqlite";
const DATABASE: &str = "https://planted.invalid/advisories";
const ACCUSATION: &str = "RUSTSEC-2999-0001";

/// Writes the bill of materials of the commit, and says where.
pub(crate) fn bill() -> Result<()> {
    let machine = Machine::new()?;
    let bill = made_bill(&machine, &made_of(&machine)?)?;
    let path = machine.target().join(BILL);
    fs::write(&path, format!("{bill:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

pub(crate) fn run() -> Result<()> {
    let mut proof = Proof::begin("D14", None, CRATES);
    let machine = Machine::new()?;
    for check in ["bans", "licenses", "sources"] {
        let (is_well, said) = command::heard(deny(&machine)?.args(["--offline", "--locked", "check", check]))?;
        if !is_well {
            proof.violation(format!("{check}: {said}"));
        }
    }
    let made_of = made_of(&machine)?;
    let mut billed = billed(&made_bill(&machine, &made_of)?)?;
    for missing in made_of.difference(&billed) {
        proof.violation(format!("{missing} goes into the program and is not in the bill of materials"));
    }
    if let Err(wrong) = are_written_down(&machine, &made_of) {
        proof.violation(wrong);
    }
    billed.pop_first();
    proof.control("a_crate_left_out_of_the_bill", made_of != billed);
    proof.control("a_crate_with_an_advisory", is_an_accusation_heard(&machine)?);
    proof.end(u64::try_from(made_of.len()).unwrap_or(u64::MAX))
}

/// Asks the public database, where it can be reached.
pub(crate) fn advisories() -> Result<()> {
    let mut proof = Proof::begin("D14.advisories", None, CRATES);
    let machine = Machine::new()?;
    let (is_well, said) = command::heard(deny(&machine)?.args(["--locked", "check", "advisories"]))?;
    if !is_well && said.contains("failed to fetch advisory database") {
        proof.not_run("the database of advisories can't be reached");
        return Ok(());
    }
    if !is_well {
        proof.violation(said);
    }
    proof.control("a_crate_with_an_advisory", is_an_accusation_heard(&machine)?);
    proof.end(u64::try_from(made_of(&machine)?.len()).unwrap_or(u64::MAX))
}

fn deny(machine: &Machine) -> Result<Command> {
    // What is looked at offline has to be there, with what is only built elsewhere.
    command::run(machine.cargo().args(["fetch", "--locked", "--quiet"]))?;
    let mut deny = Command::new(install::cargo_deny(machine.root(), machine.target())?);
    deny.current_dir(machine.root());
    Ok(deny)
}

/// Every crate of the program for this system, with its version: as cargo says it.
fn made_of(machine: &Machine) -> Result<BTreeSet<String>> {
    let mut tree = machine.cargo();
    tree.args(["tree", "--locked", "--package", PROGRAM, "--edges", "normal,build", "--prefix", "none"]);
    let lines = command::output(tree.args(["--format", "{p}"]))?;
    let crates = lines.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(format!("{name} {version}"))
    });
    Ok(crates.filter(|name| !name.starts_with(&format!("{PROGRAM} "))).collect())
}

/// As cargo-cyclonedx makes it of the commit, without the crates that an option of a dependency's could bring and does not.
fn made_bill(machine: &Machine, made_of: &BTreeSet<String>) -> Result<Value> {
    let program = install::cargo_cyclonedx(machine.root(), machine.target())?;
    // It writes beside what it describes.
    let tree = checkout::of_commit(machine, &machine.target().join("bill"))?;
    let committed_at = command::output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&tree))?;
    let manifest = tree.join("crates/server/Cargo.toml");
    let mut cyclonedx = Command::new(program);
    cyclonedx
        .args(["cyclonedx", "--quiet", "--all", "--format", "json", "--spec-version", "1.5"])
        .args(["--override-filename", BILL.trim_end_matches(".json"), "--manifest-path"])
        .arg(&manifest)
        .env("SOURCE_DATE_EPOCH", committed_at.trim());
    command::run(&mut cyclonedx)?;
    // The same on every machine: what ours are called in it begins with where they lie.
    let text = read(&manifest.with_file_name(BILL))?.replace(&*tree.to_string_lossy(), "/dalasi");
    let mut bill: Value = serde_json::from_str(&text).map_err(|error| format!("{BILL}: {error}"))?;
    narrow(&mut bill, made_of)?;
    Ok(bill)
}

/// Takes out the crates that are not named, and what is said of what they need.
fn narrow(bill: &mut Value, made_of: &BTreeSet<String>) -> Result<()> {
    let mut gone = BTreeSet::new();
    for component in bill["components"].as_array().ok_or_else(|| format!("{BILL} has no components"))? {
        if !made_of.contains(&named(component)?) {
            gone.extend(component["bom-ref"].as_str().map(str::to_owned));
        }
    }
    let is_kept = |name: &Value| !name.as_str().is_some_and(|name| gone.contains(name));
    for (list, reference) in [("components", "bom-ref"), ("dependencies", "ref")] {
        if let Some(entries) = bill[list].as_array_mut() {
            entries.retain(|entry| is_kept(&entry[reference]));
        }
    }
    for dependency in bill["dependencies"].as_array_mut().into_iter().flatten() {
        if let Some(needed) = dependency.get_mut("dependsOn").and_then(Value::as_array_mut) {
            needed.retain(is_kept);
        }
    }
    Ok(())
}

/// The crates of a bill. Each of another's has to come with its checksum.
fn billed(bill: &Value) -> Result<BTreeSet<String>> {
    let mut crates = BTreeSet::new();
    for component in bill["components"].as_array().into_iter().flatten() {
        let name = named(component)?;
        let is_ours = component["purl"].as_str().is_some_and(|purl| purl.contains("download_url=file"));
        if !is_ours && component["hashes"][0]["content"].as_str().is_none() {
            return Err(format!("{BILL}: no checksum: {name}"));
        }
        crates.insert(name);
    }
    Ok(crates)
}

fn named(component: &Value) -> Result<String> {
    let text = |field: &str| component[field].as_str().ok_or_else(|| format!("{BILL}: no {field}: {component}"));
    Ok(format!("{} {}", text("name")?, text("version")?))
}

/// Whether it is written down how many crates the program is made of.
pub(crate) fn counted(machine: &Machine) -> Result<()> {
    are_written_down(machine, &made_of(machine)?)
}

fn are_written_down(machine: &Machine, made_of: &BTreeSet<String>) -> Result<()> {
    let numbers = numbers(machine, made_of)?;
    let text = read(&machine.root().join(WRITTEN_DOWN))?;
    if text.contains(&numbers) { Ok(()) } else { Err(format!("{WRITTEN_DOWN} has not: {numbers}")) }
}

/// As they stand where they are written down.
fn numbers(machine: &Machine, made_of: &BTreeSet<String>) -> Result<String> {
    let told = command::output(machine.cargo().args(["metadata", "--locked", "--no-deps", "--format-version", "1"]))?;
    let told: Value = serde_json::from_str(&told).map_err(|error| format!("cargo metadata: {error}"))?;
    let is_in = |package: &&Value| {
        let name = package["name"].as_str().unwrap_or_default();
        name == PROGRAM || made_of.iter().any(|other| other.split(' ').next() == Some(name))
    };
    let ours = told["packages"].as_array().into_iter().flatten().filter(is_in);
    let dependencies = ours.flat_map(|package| package["dependencies"].as_array().into_iter().flatten());
    let named: BTreeSet<&str> = dependencies
        .filter(|dependency| dependency["kind"].as_str() != Some("dev") && !dependency["source"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .collect();
    Ok(format!("names {} crates of others; {} go into it in all", named.len(), made_of.len()))
}

/// Whether cargo-deny fails for a crate of the lock file against which a database says something.
fn is_an_accusation_heard(machine: &Machine) -> Result<bool> {
    let folder = machine.scratch()?.join(format!("advisories-{}", std::process::id()));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let database = folder.join("database");
    let about = database.join("crates").join(ACCUSED);
    let write = |path: PathBuf, text: String| {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display())).map(|()| path)
    };
    fs::create_dir_all(&about).map_err(|error| format!("{}: {error}", about.display()))?;
    write(
        about.join(format!("{ACCUSATION}.md")),
        format!(
            "```toml\n[advisory]\nid = \"{ACCUSATION}\"\npackage = \"{ACCUSED}\"\ndate = \"2999-01-01\"\n\
             [versions]\npatched = []\n```\n\n# Planted\n\nTo be found.\n"
        ),
    )?;
    for words in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=planted", "-c", "user.email=planted@localhost", "commit", "--quiet", "--message=planted"],
    ] {
        command::run(Command::new("git").args(words).current_dir(&database))?;
    }
    let config = write(
        folder.join("deny.toml"),
        format!(
            "[advisories]\ndb-path = {:?}\ndb-urls = [\"{DATABASE}\"]\nyanked = \"allow\"\n",
            folder.join("fetched").display().to_string()
        ),
    )?;
    let mut deny = deny(machine)?;
    deny.args(["--locked", "--config"]).arg(&config).args(["check", "advisories"]);
    // It wants the address of a host; git goes to the folder instead.
    deny.env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", database.display()))
        .env("GIT_CONFIG_VALUE_0", DATABASE);
    let (is_well, said) = command::heard(&mut deny)?;
    Ok(!is_well && said.contains(ACCUSATION))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_go_into_the_program_leaves_the_bill_with_all_that_names_it() {
        let component = |name: &str| json!({ "bom-ref": name, "name": name, "version": "1.0.0" });
        let mut bill = json!({
            "components": [component("kept"), component("gone")],
            "dependencies": [
                { "ref": "program", "dependsOn": ["kept", "gone"] },
                { "ref": "gone", "dependsOn": ["kept"] },
                { "ref": "kept" },
            ],
        });
        narrow(&mut bill, &BTreeSet::from(["kept 1.0.0".to_owned()])).expect("a bill");
        let dependencies = json!([{ "ref": "program", "dependsOn": ["kept"] }, { "ref": "kept" }]);
        assert_eq!(bill["components"], json!([component("kept")]));
        assert_eq!(bill["dependencies"], dependencies);
    }

    #[test]
    fn a_crate_of_anothers_has_a_checksum() {
        let component = |purl: &str| json!({ "components": [{ "name": "a", "version": "1.0.0", "purl": purl }] });
        assert!(billed(&component("pkg:cargo/a@1.0.0?download_url=file://../a")).is_ok());
        assert!(billed(&component("pkg:cargo/a@1.0.0")).is_err());
    }
}
