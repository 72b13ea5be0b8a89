//! A backup is whole or is none, and comes back into either database.

use std::os::unix::fs::PermissionsExt as _;

use super::on_both;
use super::place::{Place, text};
use super::server::Server;

on_both!(a_backup_beside_the_server_comes_back, a_backup_replaces_nothing_but_a_backup);

async fn a_backup_replaces_nothing_but_a_backup(place: &Place) {
    place.init();
    let path = |name: &str| place.folder().join(name);
    std::fs::write(path("notes"), "from before").unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::os::unix::fs::symlink(place.key_file(), path("link")).unwrap();
    std::os::unix::fs::symlink(path("nowhere"), path("dangling")).unwrap();
    std::fs::create_dir(path("folder")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    let key = std::fs::read(place.key_file()).unwrap();
    for name in ["data/master.key", "notes", "empty", "link", "dangling", "folder", "pipe"] {
        let refused = place.run(&["backup", name]);
        assert_eq!((refused.code, refused.data.as_str()), (5, ""), "{name}: {refused:?}");
        assert!(refused.messages.contains("name another file"), "{name}: {refused:?}");
    }
    assert_eq!(std::fs::read(place.key_file()).unwrap(), key);
    assert_eq!(std::fs::read(path("notes")).unwrap(), b"from before");
    assert!(std::fs::symlink_metadata(path("link")).unwrap().is_symlink());

    assert_eq!(place.run(&["backup", "kept"]).code, 0);
    let whole = std::fs::read(path("kept")).unwrap();
    // Half of one was one.
    std::fs::write(path("kept"), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(place.run(&["backup", "kept"]).code, 0);
    assert!(std::fs::read(path("kept")).unwrap().len() > whole.len() / 2);
}

async fn a_backup_beside_the_server_comes_back(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let id = server.pay(key, "afrimoney", "+2207000000").await;
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;

    let file = place.folder().join("shop.backup");
    assert_eq!(place.run(&["backup", "shop.backup"]).code, 0);
    let earlier = std::fs::read(&file).unwrap();
    let made = place.run(&["backup", "shop.backup"]);
    assert_ne!(std::fs::read(&file).unwrap(), earlier, "a backup from before is replaced");
    assert_eq!((made.code, made.data.as_str()), (0, ""), "{made:?}");
    assert!(made.messages.contains("master.key"), "{made:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let names = |folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert!(!names(place.folder()).iter().any(|name| name.to_string_lossy().contains("unfinished")));
    let piped = place.run(&["backup", "-"]);
    assert!(piped.code == 0 && piped.data.starts_with("{\"format\":\"dalasi-backup\""), "{}", piped.messages);

    let full = place.run(&["restore", "shop.backup"]);
    assert!(matches!(full.code, 1 | 5), "the database is in use or holds something: {full:?}");
    assert_eq!(server.stop(), 0);
    let full = place.run(&["restore", "shop.backup"]);
    assert_eq!(full.code, 5, "{full:?}");

    let other = Place::sqlite();
    let bytes = std::fs::read(&file).unwrap();
    assert!(
        !bytes.windows(9).any(|window| window == b"sk_test_\x00") && !String::from_utf8_lossy(&bytes).contains(key)
    );
    let half = other.folder().join("half.backup");
    std::fs::write(&half, &bytes[..bytes.len() * 2 / 3]).unwrap();
    assert_eq!(other.run(&["restore", "half.backup"]).code, 1);
    let restored = other.run(&["restore", file.to_str().unwrap()]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(restored.messages.contains("master.key"), "{restored:?}");
    assert_eq!(other.run(&["serve"]).code, 1, "its key is still missing");
    std::fs::copy(place.key_file(), other.key_file()).unwrap();
    let server = Server::start(&other);
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    assert_eq!(server.stop(), 0);
    assert_eq!(other.run(&["restore", "nowhere"]).code, 4);
    assert_eq!(other.run(&["backup", "no/such/folder/file"]).code, 1);
}
