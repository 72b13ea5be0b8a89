//! A backup is whole or is none, and comes back into either database.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use domain::audit::AuditRecord;
use domain::{Id, Mode, Scope};
use serde_json::json;
use store::queries::audit;

use super::on_both;
use super::place::{Place, Ran, text};
use super::server::Server;

on_both!(
    a_backup_beside_the_server_comes_back,
    a_backup_replaces_nothing_but_a_backup,
    a_damaged_backup_that_has_another_row_right_stays,
    a_damaged_row_is_named_and_the_earlier_backups_stay,
    a_failed_restore_leaves_nothing_that_passes_for_an_installation,
    a_restore_beside_somebody_elses_key_does_not_pass,
    a_signal_ends_a_backup_that_nobody_reads,
    large_rows_are_not_held_together,
);

/// Another shop, and a backup of it.
pub(super) fn another_shop() -> (Place, PathBuf) {
    let shop = Place::sqlite();
    shop.init();
    assert_eq!(shop.run(&["backup", "shop.backup"]).code, 0);
    let file = shop.folder().join("shop.backup");
    (shop, file)
}

async fn a_failed_restore_leaves_nothing_that_passes_for_an_installation(place: &Place) {
    let (_shop, file) = another_shop();
    let whole = std::fs::read_to_string(&file).unwrap();
    let fails = |name: &str, content: &str, code: i32| {
        std::fs::write(place.folder().join(name), content).unwrap();
        let failed = place.run(&["restore", name]);
        assert_eq!((failed.code, failed.data.as_str()), (code, ""), "{name}: {failed:?}");
        assert!(failed.messages.contains("nothing was restored"), "{name}: {failed:?}");
    };
    fails("half", &whole[..whole.len() * 2 / 3], 1);
    let nothing_there: [&[&str]; 4] =
        [&["verify"], &["verify", "--json"], &["backup", "none.backup"], &["backup", "-"]];
    for command in nothing_there {
        let refused = place.run(command);
        assert_eq!((refused.code, refused.data.as_str()), (4, ""), "{command:?}: {refused:?}");
        assert!(refused.messages.contains("no installation"), "{command:?}: {refused:?}");
    }
    assert!(!place.folder().join("none.backup").exists());
    let restored = place.run(&["restore", file.to_str().unwrap()]);
    assert_eq!(restored.code, 0, "{restored:?}");
    fails("again", &whole, 5);
    assert_eq!(place.run(&["verify"]).code, 0);
}

async fn a_restore_beside_somebody_elses_key_does_not_pass(place: &Place) {
    let (shop, file) = another_shop();
    let other = Place::sqlite();
    other.init();
    std::fs::create_dir_all(place.key_file().parent().unwrap()).unwrap();
    std::fs::copy(other.key_file(), place.key_file()).unwrap();
    let restored = place.run(&["restore", file.to_str().unwrap()]);
    assert_eq!((restored.code, restored.data.as_str()), (1, ""), "{restored:?}");
    let place_is_told = match place.is_postgres() {
        true => "restored into PostgreSQL",
        false => "data/dalasi.db",
    };
    assert!(restored.messages.contains(place_is_told), "{restored:?}");
    assert!(restored.messages.contains("It holds what was stored by"), "{restored:?}");
    for refused in [restored, place.run(&["verify"]), place.run(&["verify", "--json"])] {
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.messages.contains("does not belong"), "{refused:?}");
    }
    std::fs::copy(shop.key_file(), place.key_file()).unwrap();
    place.has_clean_books();
    std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(place.run(&["verify"]).code, 1, "a key that everybody may read");
    std::fs::remove_file(place.key_file()).unwrap();
    let verified = place.run(&["verify"]);
    assert!(verified.code == 0 && verified.messages.contains("was not checked"), "{verified:?}");
}

/// Until a connection to its database is in that state.
async fn until_postgres(place: &Place, state: &str) {
    let sql = format!("select count(*) from pg_stat_activity where datname = current_database() and {state}");
    let client = place.raw_postgres().await;
    for _ in 0..400 {
        let found: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
        if found > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody is there for whom {state}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_installs_where_a_backup_is_being_loaded() {
    let Some(place) = Place::postgres("nobody_installs_where_a_backup_is_being_loaded").await else { return };
    let (shop, file) = another_shop();
    std::fs::create_dir_all(place.key_file().parent().unwrap()).unwrap();
    std::fs::copy(shop.key_file(), place.key_file()).unwrap();
    let whole = std::fs::read(file).unwrap();
    let (begin, rest) = whole.split_at(whole.len() / 2);

    let piped = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut restoring = piped(&["restore", "-"]);
    let mut input = restoring.stdin.take().unwrap();
    input.write_all(begin).unwrap();
    until_postgres(&place, "state = 'idle in transaction' and now() - state_change > interval '1 s'").await;
    let installing = piped(&["init", "--organization", "Another shop"]);
    until_postgres(&place, "wait_event_type = 'Lock'").await;
    input.write_all(rest).unwrap();
    drop(input);
    let (code, said) = ended(restoring).await;
    assert_eq!(code, 0, "{said}");
    let (code, said) = ended(installing).await;
    assert_eq!(code, 5, "{said}");
    place.has_clean_books();
    place.end().await;
}

/// The address of the database may stand where this command doesn't see it.
#[test]
fn a_settings_file_that_names_a_key_and_no_place_is_refused() {
    let (shop, file) = another_shop();
    let place = Place::sqlite();
    let key = format!("key-file = {:?}\n", shop.key_file());
    std::fs::write(place.folder().join("dalasi.toml"), key).unwrap();
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 4] = [&["restore", file], &["verify"], &["doctor"], &["serve", "--listen", "127.0.0.1:0"]];
    for command in commands {
        let mut command = place.command(&[command, &["--config", "dalasi.toml"]].concat());
        let refused = Ran::of(command.env_remove("DALASI_DATA_DIR").output().unwrap());
        assert_eq!((refused.code, refused.data.as_str()), (2, ""), "{refused:?}");
        assert!(refused.messages.contains("data-dir") && refused.messages.contains("database-url"), "{refused:?}");
    }
    assert!(!place.folder().join("dalasi-data").exists());
    let restored = place.run(&["restore", file, "--config", "dalasi.toml"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(
        restored.messages.contains("restored into") && restored.messages.contains("data/dalasi.db"),
        "{restored:?}"
    );
}

/// Until the command takes these signals itself.
pub(super) async fn takes_signals(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    for _ in 0..200 {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        // SIGTERM is number 15.
        if u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0 {
            return tokio::time::sleep(Duration::from_millis(500)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no signal is taken");
}

pub(super) fn signal(id: u32, name: &str) {
    assert!(Command::new("kill").args([name, &id.to_string()]).status().unwrap().success());
}

/// Its exit code, and what it said.
pub(super) async fn ended(mut child: Child) -> (i32, String) {
    for _ in 0..200 {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            return (status.code().unwrap_or(-1), said);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("it did not end");
}

#[cfg(target_os = "linux")]
async fn a_signal_ends_a_backup_that_nobody_reads(place: &Place) {
    place.init();
    for (name, by) in [("-TERM", None), ("-INT", None), ("-HUP", None), ("-TERM", Some("nohup"))] {
        // Full from the start, and never read.
        let (mut full, _unread) = UnixStream::pair().unwrap();
        full.set_nonblocking(true).unwrap();
        while full.write(&[0; 65536]).is_ok() {}
        full.set_nonblocking(false).unwrap();
        let mut command = match by {
            None => place.command(&["backup", "-"]),
            Some(program) => place.command_by(&[program], &["backup", "-"]),
        };
        let mut child = command.stdout(OwnedFd::from(full)).stderr(Stdio::piped()).spawn().unwrap();
        takes_signals(&child).await;
        if by.is_some() {
            signal(child.id(), "-HUP");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(child.try_wait().unwrap().is_none(), "it was to outlive its terminal");
        }
        signal(child.id(), name);
        let (code, said) = ended(child).await;
        assert_eq!(code, 1, "{name}: {said}");
        assert!(said.contains("interrupted"), "{name}: {said}");
    }
}

/// The process that strace runs, which it does not pass signals on to.
#[cfg(target_os = "linux")]
pub(super) fn traced_by(strace: &Child) -> u32 {
    let id = strace.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.split_whitespace().next().expect("it runs").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_a_backup_that_the_disk_takes_its_time_for() {
    let place = Place::sqlite();
    place.init();
    let slow = ["--output=/dev/null", "--trace=fsync", "--inject=fsync:delay_enter=30000000"];
    let Some(mut command) = place.traced(&slow, &["backup", "slow.backup"]) else { return };
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let unfinished = || {
        let mut entries = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap());
        entries.find(|entry| entry.file_name().to_string_lossy().ends_with(".unfinished"))
    };
    let mut is_written = false;
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        is_written = unfinished().is_some_and(|file| {
            std::fs::File::open(file.path()).is_ok_and(|file| store::check_backup(BufReader::new(file)).is_ok())
        });
        if is_written {
            break;
        }
    }
    assert!(is_written, "nothing was written");
    // Then it waits for the disk.
    tokio::time::sleep(Duration::from_millis(500)).await;
    signal(traced_by(&child), "-TERM");
    // strace keeps the thread of a process that has ended for as long as it was told to delay it: the last words count.
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || tell.send(said.map_while(Result::ok).next()));
    let said = tokio::time::timeout(Duration::from_secs(10), told).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let said = said.expect("it ends before the disk is ready").unwrap();
    assert!(said.as_ref().is_some_and(|said| said.contains("interrupted; no backup was made")), "{said:?}");
    assert!(unfinished().is_none() && !place.folder().join("slow.backup").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_told_as_far_as_it_goes() {
    let place = Place::sqlite();
    place.init();
    let name = |end: &str| OsString::from_vec([b"caf\xe9.", end.as_bytes()].concat());
    let told = |place: &Place, arguments: &[&str], file: &OsStr| {
        let ran = Ran::of(place.command(arguments).arg(file).arg("--json").output().unwrap());
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        let answer: serde_json::Value = serde_json::from_str(&ran.data).unwrap();
        assert!(text(&answer, "/file").contains("caf\u{fffd}."), "{arguments:?}: {answer}");
    };
    told(&place, &["backup"], &name("backup"));
    told(&place, &["ledger", "export"], &name("ledger"));
    told(&Place::sqlite(), &["restore"], place.folder().join(name("backup")).as_os_str());
}

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

pub(super) async fn change(place: &Place, sql: &str) {
    match place.is_postgres() {
        true => place.raw_postgres().await.batch_execute(sql).await.unwrap(),
        false => place.raw_sqlite().execute_batch(sql).unwrap(),
    }
}

/// What it holds parses as before: nothing but its checksum tells.
pub(super) async fn damage(place: &Place, mode: &str) {
    let damage = "update organizations set doc = replace(doc, ',\"crc32\":', ' ,\"crc32\":')";
    change(place, &format!("{damage} where mode = '{mode}'")).await;
}

async fn a_damaged_row_is_named_and_the_earlier_backups_stay(place: &Place) {
    let installed = place.init();
    let organization = text(&installed, "/organization_id");
    let path = |name: &str| place.folder().join(name);
    let kept = place.json(&["backup", "kept.backup"]);
    assert_eq!((&kept["damaged"], &kept["damaged_count"]), (&json!([]), &json!(0)));
    let whole = std::fs::read(path("kept.backup")).unwrap();
    damage(place, "test").await;

    let row = format!("organizations {organization}: ");
    let is_told = |ran: &Ran| {
        let words = [row.as_str(), "1 damaged row in the database", "Keep every earlier backup", "`dalasi repair`"];
        ran.code == 1 && words.iter().all(|words| ran.messages.contains(words))
    };
    // Twice: a damaged one makes room for the next.
    for _ in 0..2 {
        let beside = place.run(&["backup", "kept.backup"]);
        assert!(is_told(&beside) && beside.messages.contains("this one is kept.backup.damaged"), "{beside:?}");
        assert_eq!(std::fs::read(path("kept.backup")).unwrap(), whole);
        let held = std::fs::File::open(path("kept.backup.damaged")).unwrap();
        assert_eq!(store::check_backup(BufReader::new(held)).unwrap().damage.count, 1);
        assert_eq!(std::fs::metadata(path("kept.backup.damaged")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let fresh = place.run(&["backup", "fresh.backup", "--json"]);
    assert!(is_told(&fresh), "{fresh:?}");
    let answer: serde_json::Value = serde_json::from_str(&fresh.data).unwrap();
    assert_eq!(text(&answer, "/file"), "fresh.backup");
    assert_eq!(answer["damaged"], json!([{ "table": "organizations", "mode": "test", "id": organization }]));
    assert_eq!((&answer["damaged_count"], &answer["rows"]), (&json!(1), &kept["rows"]));
    let piped = place.run(&["backup", "-"]);
    assert!(is_told(&piped), "{}", piped.messages);
    assert_eq!(store::check_backup(piped.data.as_bytes()).unwrap().damage.count, 1);
    std::fs::write(path("notes.damaged"), "from before").unwrap();
    std::fs::copy(path("kept.backup"), path("notes")).unwrap();
    let refused = place.run(&["backup", "notes"]);
    assert!(refused.code == 5 && refused.messages.contains("a backup with damaged rows"), "{refused:?}");
    assert_eq!(std::fs::read(path("notes.damaged")).unwrap(), b"from before");

    // All of it comes back, and is not taken for right.
    let damaged = path("fresh.backup");
    let restored = |format: &[&str]| {
        let restored = Place::sqlite().run(&[&["restore", damaged.to_str().unwrap()][..], format].concat());
        assert_eq!(restored.code, 1, "{restored:?}");
        assert!(restored.messages.contains(&row) && restored.messages.contains("restored as it is"), "{restored:?}");
        restored.data
    };
    assert_eq!(restored(&[]), "");
    let told: serde_json::Value = serde_json::from_str(&restored(&["--json"])).unwrap();
    for name in ["damaged", "damaged_count", "rows", "sha256"] {
        assert_eq!(told[name], answer[name], "{name}");
    }
}

async fn a_damaged_backup_that_has_another_row_right_stays(place: &Place) {
    place.init();
    let path = |name: &str| place.folder().join(name);
    place.json(&["backup", "kept"]);
    let backed_up = || {
        let made = place.run(&["backup", "kept", "--json"]);
        assert_eq!(made.code, 1, "{made:?}");
        let answer: serde_json::Value = serde_json::from_str(&made.data).unwrap();
        let file = text(&answer, "/file").to_owned();
        assert!(made.messages.contains(&format!("this one is {file}.")), "{made:?}");
        (file, text(&answer, "/created_at").replace('T', "-").replace([':', 'Z'], ""))
    };
    // Moved away at once, as the next may be made in the same second.
    let is_put_beside = |moved: &str| {
        let (file, at) = backed_up();
        assert_eq!(file, format!("kept.damaged-{at}"));
        std::fs::rename(path(&file), path(moved)).unwrap();
    };
    damage(place, "test").await;
    assert_eq!(backed_up().0, "kept.damaged");
    let first = std::fs::read(path("kept.damaged")).unwrap();
    damage(place, "live").await;
    is_put_beside("both");
    // The same id, and another row.
    let mend = "update organizations set doc = replace(doc, ' ,\"crc32\":', ',\"crc32\":') where mode = 'test'";
    change(place, mend).await;
    is_put_beside("live");
    assert_eq!(std::fs::read(path("kept.damaged")).unwrap(), first);

    let both = std::fs::read(path("both")).unwrap();
    let half = &both[..both.len() / 2];
    std::fs::write(path("kept.damaged"), half).unwrap();
    is_put_beside("beside half of one");
    assert_eq!(std::fs::read(path("kept.damaged")).unwrap(), half);

    // Nothing that is damaged now was right in it.
    std::fs::rename(path("both"), path("kept.damaged")).unwrap();
    assert_eq!(backed_up().0, "kept.damaged");
    let held = std::fs::File::open(path("kept.damaged")).unwrap();
    assert_eq!(store::check_backup(BufReader::new(held)).unwrap().damage.count, 1);
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
    assert!(restored.messages.contains("revoked, rotated or decided after that"), "{restored:?}");
    assert_eq!(other.run(&["serve"]).code, 2, "its key is still missing, and starting again brings none");
    std::fs::copy(place.key_file(), other.key_file()).unwrap();
    let server = Server::start(&other);
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    assert_eq!(server.stop(), 0);
    assert_eq!(other.run(&["restore", "nowhere"]).code, 4);
    assert_eq!(other.run(&["backup", "no/such/folder/file"]).code, 1);
}

/// A copy takes what a few rows take, however many there are of a megabyte.
#[cfg(target_os = "linux")]
async fn large_rows_are_not_held_together(place: &Place) {
    const ROWS: usize = 96;
    const MOST_KB: u64 = 125_000;
    let installed = place.init();
    let scope = Scope { organization: text(&installed, "/organization_id").parse().unwrap(), mode: Mode::Test };
    let store = place.store_in(0).await;
    for _ in 0..ROWS {
        let written = store.write(move |tx| {
            let now = tx.now();
            let (id, reason): (Id<AuditRecord>, _) = (tx.entropy().id(now), Some("x".repeat(1 << 20)));
            let (action, object_id, actor) = ("key.created".into(), "key_1".into(), "cli:test".into());
            audit::append(tx, &AuditRecord { id, scope, action, object_id, actor, reason, created_at: now })
        });
        written.await.unwrap();
    }
    store.close().await;
    assert_eq!(place.run(&["backup", "large.backup"]).code, 0);
    let whole = std::fs::read(place.folder().join("large.backup")).unwrap();
    let (most, rest) = whole.split_at(whole.len() - (1 << 20));

    // Both wait for this test, which looks at them meanwhile.
    let mut backing_up = place.command(&["backup", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut read = vec![0; most.len()];
    let mut out = backing_up.stdout.take().unwrap();
    out.read_exact(&mut read).unwrap();
    let backup_kb = highest_memory_kb(&backing_up);
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert_eq!(ended(backing_up).await.0, 0);

    let other = if place.is_postgres() { Place::postgres("large rows").await.unwrap() } else { Place::sqlite() };
    let mut restoring = other.command(&["restore", "-"]);
    let mut restoring = restoring.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = restoring.stdin.take().unwrap();
    input.write_all(most).unwrap();
    let restore_kb = highest_memory_kb(&restoring);
    input.write_all(rest).unwrap();
    drop(input);
    let (code, said) = ended(restoring).await;
    assert_eq!(code, 0, "{said}");
    other.end().await;
    assert!(backup_kb < MOST_KB && restore_kb < MOST_KB, "{backup_kb} KB to back up, {restore_kb} KB to restore");
}

#[cfg(target_os = "linux")]
fn highest_memory_kb(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let highest = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    highest.trim().trim_end_matches(" kB").parse().unwrap()
}
