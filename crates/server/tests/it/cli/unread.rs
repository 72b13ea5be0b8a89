//! Commands whose output nobody reads: what they decide is their exit code all the same, and what was lost is no success.

use std::os::unix::fs::PermissionsExt as _;

use super::place::{Place, Ran, text};

/// Whoever was to read it has gone before it begins.
fn unread(place: &Place, arguments: &[&str]) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(arguments);
    let child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(command);
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn a_verdict_is_said_to_nobody_too() {
    let place = Place::sqlite();
    place.init();
    for clean in [&["verify"] as &[&str], &["verify", "--json"], &["doctor"], &["doctor", "--json"]] {
        let ran = unread(&place, clean);
        // Doctor finds that no server runs, which fails nothing.
        assert_eq!(ran.code, place.run(clean).code, "{clean:?}: {ran:?}");
    }
    let forged = unread(&place, &["receipt", "verify", "nonsense", "--json"]);
    assert!(forged.code == 1 && forged.messages.contains("not valid: "), "{forged:?}");
    let unbound = "pragma foreign_keys = off; delete from organizations where mode = 'live'";
    place.raw_sqlite().execute_batch(unbound).unwrap();
    std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(place.folder().join("forged.jsonl"), "{\"end\":{\"unsealed_entries\":0}}\n").unwrap();
    let verdicts: [(&[&str], &str); 5] = [
        (&["verify"], "the books are not right"),
        (&["verify", "--json"], "the books are not right"),
        (&["doctor"], "not well: "),
        (&["doctor", "--json"], "not well: "),
        (&["ledger", "verify", "forged.jsonl", "--json"], "the header is missing"),
    ];
    for (command, said) in verdicts {
        let ran = unread(&place, command);
        assert!(ran.code == 1 && ran.messages.contains(said), "{command:?}: {ran:?}");
    }
}

#[test]
fn what_nobody_has_was_not_made_for_nothing() {
    let place = Place::sqlite();
    let installed = unread(&place, &["init", "--organization", "Kairaba Books"]);
    assert!(installed.code == 1 && installed.messages.contains("nobody has its keys"), "{installed:?}");
    for format in [&["--json"] as &[&str], &[]] {
        let made = unread(&place, &[&["keys", "create", "--name", "shop"], format].concat());
        assert!(made.code == 1 && made.messages.contains("nobody has it. Revoke it"), "{made:?}");
        let listed = place.json(&["keys", "list"]);
        let is_named = |key: &serde_json::Value| made.messages.contains(text(key, "/id"));
        assert!(listed.as_array().unwrap().iter().any(is_named), "{made:?}");
    }
    for (command, said) in [("export", "the export is not whole"), ("keys", "the key set is not whole")] {
        let file: &[&str] = if command == "export" { &["-"] } else { &[] };
        let cut = unread(&place, &[&["ledger", command], file].concat());
        assert!(cut.code == 1 && cut.messages.contains(said), "{cut:?}");
    }
    let server = unread(&Place::sqlite(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(server.code == 1 && server.messages.contains("nobody has its keys"), "{server:?}");
    // A list was read as far as somebody wanted.
    for list in [&["keys", "list"] as &[&str], &["signing-keys", "list", "--json"], &["organization", "show"]] {
        let ran = unread(&place, list);
        assert_eq!((ran.code, ran.messages.as_str()), (0, ""), "{list:?}");
    }
}
