//! What the compiler can't enforce: who imports whom inside the server, where SQL may stand, what a domain may not know.

use std::fs;
use std::path::{Path, PathBuf};

/// In files below `folder` (or the file of that name), none of the texts may stand.
const RULES: &[(&str, &[&str], &str)] = &[
    ("server/src/http", &["crate::pages", "crate::jobs", "crate::cli"], "http imports neither pages nor jobs nor cli"),
    ("server/src/pages", &["crate::http", "crate::jobs", "crate::cli"], "pages import neither http nor jobs nor cli"),
    ("server/src/jobs", &["crate::http", "crate::pages", "crate::cli"], "jobs import neither http nor pages nor cli"),
    (
        "server/src/app",
        &["crate::http", "crate::pages", "crate::jobs", "crate::cli"],
        "commands know none of their callers",
    ),
    ("server/src/app/payments", &["crate::rails", "crate::egress"], "a command that takes a Tx imports no rail"),
    ("server/src/app/settlement.rs", &["crate::rails", "crate::egress"], "a command that takes a Tx imports no rail"),
    ("server/src/app/sessions.rs", &["crate::rails", "crate::egress"], "a command that takes a Tx imports no rail"),
    ("server/src/app/paid_object.rs", &["crate::rails", "crate::egress"], "a command that takes a Tx imports no rail"),
    (
        "server/src/app/payment_links.rs",
        &["crate::rails", "crate::egress"],
        "a command that takes a Tx imports no rail",
    ),
    ("server/src/app/checkouts.rs", &["crate::rails", "crate::egress"], "a command that takes a Tx imports no rail"),
    (
        "server/src/app/organizations.rs",
        &["crate::rails", "crate::egress"],
        "a command that takes a Tx imports no rail",
    ),
    ("server/src/wire", &["crate::http", "crate::app", "crate::rails"], "a view knows objects only"),
    ("server/src/rails.rs", &["store::", "crate::app", "crate::http"], "rails import domain only"),
    (
        "server/src/mail",
        &["store::", "crate::app", "crate::http", "crate::pages", "crate::letters", "crate::jobs", "crate::cli"],
        "the rail for mail knows messages only",
    ),
    (
        "server/src/letters",
        &["store::", "crate::app", "crate::http", "crate::jobs", "crate::cli", "crate::egress"],
        "a letter is rendering alone",
    ),
    (
        "domain/src",
        &[
            "std::env",
            "std::fs",
            "std::net",
            "std::thread",
            "SystemTime",
            "Instant::now",
            "HashMap",
            "HashSet",
            "f64",
            "f32",
        ],
        "the domain is pure",
    ),
    (
        "server/src/app",
        &["SystemTime::now", "Instant::now", "thread_rng", "std::env::", "std::fs::"],
        "commands take time and randomness as arguments",
    ),
];

/// Beginnings of statements that only the store may hold.
const SQL: &[&str] = &["\"select ", "\"insert into ", "\"update ", "\"delete from "];
/// The smallest question there is, asked to see whether anybody answers.
const PING: &str = "select 1 as one";

fn sources(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate stands in crates/").join(folder);
    if root.is_file() {
        return vec![root];
    }
    let (mut found, mut folders) = (Vec::new(), vec![root.clone(), root.with_extension("rs")]);
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a readable folder");
            folders.extend(entries.map(|entry| entry.expect("a readable entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.exists() {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "{folder} has sources: mend this list");
    found
}

/// Code without its line comments; tests may do what they like.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a readable source");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.file_name().is_some_and(|name| name == "tests.rs")
}

#[test]
fn imports_go_one_way() {
    let mut broken = Vec::new();
    for (folder, forbidden, rule) in RULES {
        for path in sources(folder).into_iter().filter(|path| !is_test(path)) {
            let code = code(&path);
            for text in forbidden.iter().filter(|text| code.contains(**text)) {
                broken.push(format!("{}: {text} ({rule})", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn sql_stands_in_the_store_only() {
    let mut broken = Vec::new();
    for path in sources("server/src").into_iter().chain(sources("domain/src")) {
        let code = code(&path).replace(PING, "");
        for text in SQL.iter().filter(|text| code.contains(**text)) {
            broken.push(format!("{}: {text}", path.display()));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_statement_selects_everything() {
    let broken: Vec<String> = sources("store/src/queries")
        .into_iter()
        .filter(|path| {
            let code = code(path);
            code.contains("select *") || code.contains("returning *")
        })
        .map(|path| path.display().to_string())
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
