//! Which file a backup becomes: the one that was meant, and never in the place of another installation's.

use std::os::unix::fs::symlink;

use super::backups::{another_shop, damage};
use super::on_both;
use super::place::{Place, text};

on_both!(a_backup_of_another_installation_stays, a_link_to_a_backup_stays_one);

/// As where a server installed itself anew, because the folder of its data was not mounted.
async fn a_backup_of_another_installation_stays(place: &Place) {
    place.init();
    let (_shop, theirs) = another_shop();
    let file = place.folder().join("kept");
    std::fs::copy(theirs, &file).unwrap();
    let earlier = std::fs::read(&file).unwrap();
    let refused = place.run(&["backup", "kept"]);
    assert_eq!((refused.code, refused.data.as_str()), (5, ""), "{refused:?}");
    for words in ["a backup of another installation", "name another file"] {
        assert!(refused.messages.contains(words), "{refused:?}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), earlier);
    for _ in 0..2 {
        assert_eq!(place.run(&["backup", "own"]).code, 0, "one's own makes room");
    }
    // As far as it can be read, there is no organization in it.
    let header = earlier.iter().position(|byte| *byte == b'\n').unwrap();
    std::fs::write(&file, &earlier[..=header]).unwrap();
    assert_eq!(place.run(&["backup", "kept"]).code, 0);
}

async fn a_link_to_a_backup_stays_one(place: &Place) {
    place.init();
    let path = |name: &str| place.folder().join(name);
    std::fs::create_dir(path("disk")).unwrap();
    symlink("disk/kept", path("link")).unwrap();
    assert_eq!(place.run(&["backup", "disk/kept"]).code, 0);
    let earlier = std::fs::read(path("disk/kept")).unwrap();
    let made = place.json(&["backup", "link"]);
    assert!(text(&made, "/file").ends_with("disk/kept"), "{made}");
    assert!(std::fs::symlink_metadata(path("link")).unwrap().is_symlink());
    assert_ne!(std::fs::read(path("disk/kept")).unwrap(), earlier);

    damage(place, "test").await;
    let beside = place.run(&["backup", "link"]);
    assert!(beside.code == 1 && beside.messages.contains("disk/kept.damaged"), "{beside:?}");
    assert!(path("disk/kept.damaged").exists() && !path("link.damaged").exists());
}
