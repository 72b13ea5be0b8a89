//! `doctor`: well where all is well, and each check seen to fail by what it is there for.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use domain::audit::AuditRecord;
use domain::{Id, Mode, Scope, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;
use store::queries::audit;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::backups::{ended, signal, traced_by};
use super::on_both;
use super::place::{Place, Ran, text};
use super::server::{Receiver, Server};
use crate::mails::sink::{Script, Sink};

const NAMES: [&str; 10] =
    ["clock", "disk", "files", "database", "server", "tls", "smtp", "rails", "webhooks", "ledger"];
const SECRET: &str = "hunter2";

/// What it says, and its exit code. Never a secret.
fn doctor(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    let mut command = place.command(&[&["doctor", "--json"], arguments].concat());
    let ran = Ran::of(command.envs(variables.iter().copied()).output().unwrap());
    assert!(!ran.data.contains(SECRET) && !ran.messages.contains(SECRET), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.data).unwrap_or_else(|_| panic!("{ran:?}"));
    let names: Vec<&str> = report["checks"].as_array().unwrap().iter().map(|check| text(check, "/name")).collect();
    assert_eq!(names, NAMES);
    let failed: Vec<&str> = NAMES.into_iter().filter(|name| status(&report, name) == "failed").collect();
    assert_eq!(ran.code, i32::from(!failed.is_empty()), "{ran:?}");
    let told = failed.iter().all(|name| ran.messages.contains(name));
    assert!(told, "standard error names what failed: {ran:?}");
    (ran.code, report)
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

fn status<'r>(report: &'r Value, name: &str) -> &'r str {
    text(check(report, name), "/status")
}

/// The check has this status, by a finding that says this and, if anything is wrong, what to do.
#[track_caller]
fn finds(report: &Value, name: &str, wanted: &str, words: &str) {
    let check = check(report, name);
    assert_eq!(check["status"], wanted, "{check:#}");
    let says = |finding: &&Value| finding["status"] == wanted && text(finding, "/found").contains(words);
    let found = check["findings"].as_array().unwrap().iter().find(says);
    assert!(found.is_some(), "{words:?} is not in {check:#}");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

on_both!(
    beside_a_server_that_is_well_it_finds_nothing,
    a_clock_that_went_back_is_seen,
    receivers_are_reached_as_deliveries_reach_them,
    a_receiver_that_takes_nothing_is_told_of,
    somebody_elses_master_key_is_seen,
);

async fn beside_a_server_that_is_well_it_finds_nothing(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    let id = server.pay(key, "wave", "+2207000000").await;
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    let (code, report) = doctor(place, &["--public-url", &server.url], &[]);
    assert_eq!(code, 0, "{report:#}");
    finds(&report, "server", "ok", "is well");
    finds(&report, "ledger", "ok", "the ledger sums to zero");
    finds(&report, "database", "ok", "the master key belongs to it");
    finds(&report, "rails", "warning", "live: no rail");
    match place.is_postgres() {
        true => {
            finds(&report, "clock", "ok", "agrees with that of the database server");
            finds(&report, "database", "ok", "no standby");
        }
        false => {
            finds(&report, "disk", "ok", "a sync takes");
            // The server's own time is this machine's.
            finds(&report, "clock", "ok", "there is no other clock");
        }
    }
    // As lines of four cells where nobody looks.
    let plain = place.run(&["doctor", "--public-url", &server.url]);
    assert_eq!((plain.code, plain.messages.as_str()), (0, ""), "{plain:?}");
    assert!(plain.data.lines().all(|line| line.split('\t').count() == 4), "{plain:?}");
    assert_eq!(server.stop(), 0);
    place.has_clean_books();
}

async fn a_clock_that_went_back_is_seen(place: &Place) {
    let installed = place.init();
    let organization = text(&installed, "/organization_id").parse().unwrap();
    finds(&doctor(place, &[], &[]).1, "clock", "ok", "");
    // By a process whose clock is three days ahead.
    let store = place.store_in(3).await;
    let written = store.write(move |tx| {
        let now: Timestamp = tx.now();
        let id: Id<AuditRecord> = tx.entropy().id(now);
        let record = AuditRecord {
            id,
            scope: Scope { organization, mode: Mode::Live },
            action: "key.created".into(),
            object_id: "key_1".into(),
            actor: "cli:test".into(),
            reason: None,
            created_at: now,
        };
        audit::append(tx, &record)
    });
    written.await.unwrap();
    store.close().await;
    finds(&doctor(place, &[], &[]).1, "clock", "failed", "ahead of this machine's clock");
}

async fn receivers_are_reached_as_deliveries_reach_them(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_with(place, &["--allow-loopback-webhooks"]);
    let receiver = Receiver::start().await;
    let url = format!("{}?token={SECRET}", receiver.url);
    let body = serde_json::json!({ "url": url, "enabled_events": ["*"] });
    assert_eq!(server.call("POST", "/v1/webhook_endpoints", key, body).await.0, 201);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let body = serde_json::json!({
        "url": format!("http://127.0.0.1:{}/", gone.local_addr().unwrap().port()), "enabled_events": ["*"]
    });
    assert_eq!(server.call("POST", "/v1/webhook_endpoints", key, body).await.0, 201);
    assert_eq!(server.stop(), 0);

    // Who does not let this machine be called sees an inner address.
    let (_, report) = doctor(place, &[], &[]);
    finds(&report, "webhooks", "failed", "127.0.0.1");
    let open = ["--allow-loopback-webhooks"];
    finds(&doctor(place, &open, &[]).1, "webhooks", "ok", "2 of 2 enabled endpoints");
    drop(gone);
    let (_, report) = doctor(place, &open, &[]);
    finds(&report, "webhooks", "warning", "No connection to 127.0.0.1");
    assert!(check(&report, "webhooks").to_string().contains("1 of 2 enabled endpoints"), "{report:#}");
    assert!(receiver.got().is_empty(), "nothing is sent to anybody");
}

/// Whoever runs the service sees it, where its merchant has no address and there is no mail server.
async fn a_receiver_that_takes_nothing_is_told_of(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start_unread(place, &["--allow-loopback-webhooks"]);
    let receiver = Receiver::start().await;
    let body = serde_json::json!({ "url": format!("{}?token={SECRET}", receiver.url), "enabled_events": ["*"] });
    let (_, made) = server.call("POST", "/v1/webhook_endpoints", key, body).await;
    let id = text(&made, "/data/id");
    let attempts = async |count, status| {
        receiver.answer(status);
        for _ in 0..count {
            let path = format!("/v1/webhook_endpoints/{id}/test");
            assert_eq!(server.call("POST", &path, key, Value::Null).await.0, 200);
        }
    };
    let open = ["--allow-loopback-webhooks"];
    attempts(4, 500).await;
    assert_eq!(status(&doctor(place, &open, &[]).1, "webhooks"), "ok", "that may be a restart");
    attempts(1, 500).await;
    finds(&doctor(place, &open, &[]).1, "webhooks", "warning", "in 5 tries");
    attempts(1, 200).await;
    assert_eq!(status(&doctor(place, &open, &[]).1, "webhooks"), "ok");
    attempts(1, 410).await;
    let (_, report) = doctor(place, &open, &[]);
    finds(&report, "webhooks", "warning", "because its receiver answered 410");
    assert!(check(&report, "webhooks").to_string().contains(id), "{report:#}");
    let (code, log) = server.stop_and_read();
    assert!(code == 0 && !log.contains(SECRET), "{log}");
    let is_told = |line: &&str| line.contains(id) && line.contains("a webhook endpoint");
    let told: Vec<&str> = log.lines().filter(is_told).collect();
    let words = ["failed several times in a row", "takes webhooks again", "was switched off"];
    assert!(told.len() == 3 && told.iter().zip(words).all(|(line, words)| line.contains(words)), "{log}");
}

async fn somebody_elses_master_key_is_seen(place: &Place) {
    place.init();
    let other = Place::sqlite();
    other.init();
    std::fs::copy(other.key_file(), place.key_file()).unwrap();
    finds(&doctor(place, &[], &[]).1, "database", "failed", "does not belong");
    std::fs::remove_file(place.key_file()).unwrap();
    let (_, report) = doctor(place, &[], &[]);
    finds(&report, "files", "failed", "there is no key file");
    finds(&report, "rails", "warning", "not looked at");
}

#[test]
fn files_that_others_reach_are_seen() {
    let place = Place::sqlite();
    place.init();
    finds(&doctor(&place, &[], &[]).1, "files", "ok", "only its owner");
    for (file, mode, words) in [
        (place.key_file(), 0o644, "only its owner may reach the key"),
        (place.file(), 0o640, "read or write the data"),
        (place.folder().join("data"), 0o777, "put files into the data folder"),
    ] {
        let before = std::fs::metadata(&file).unwrap().permissions().mode();
        set_mode(&file, mode);
        finds(&doctor(&place, &[], &[]).1, "files", "failed", words);
        set_mode(&file, before);
    }
    let config = place.folder().join("dalasi.toml");
    let name = config.display().to_string();
    std::fs::write(&config, "rate-limit = 7\n").unwrap();
    set_mode(&config, 0o644);
    finds(&doctor(&place, &["--config", &name], &[]).1, "files", "ok", "dalasi.toml");
    set_mode(&config, 0o664);
    finds(&doctor(&place, &["--config", &name], &[]).1, "files", "failed", "change the settings");
    let mail = format!("smtp-url = 'smtp://shop:{SECRET}@127.0.0.1:1'\nmail-from = 'bills@shop.example'\n");
    std::fs::write(&config, mail).unwrap();
    set_mode(&config, 0o644);
    finds(&doctor(&place, &["--config", &name], &[]).1, "files", "failed", "holds a password");
    set_mode(&config, 0o640);
    finds(&doctor(&place, &["--config", &name], &[]).1, "files", "ok", "dalasi.toml");
    let password = place.folder().join("password");
    std::fs::write(&password, SECRET).unwrap();
    let by_file = [
        ("DALASI_SMTP_URL", "smtp://shop@127.0.0.1:1"),
        ("DALASI_SMTP_PASSWORD_FILE", password.to_str().unwrap()),
        ("DALASI_MAIL_FROM", "bills@shop.example"),
    ];
    set_mode(&password, 0o644);
    finds(&doctor(&place, &[], &by_file).1, "files", "failed", "holds a secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_is_greeted_and_told_nothing_more() {
    let place = Place::sqlite();
    place.init();
    let ask = |port: u16, more: &[&str]| {
        let url = format!("smtp://shop:{SECRET}@127.0.0.1:{port}");
        doctor(&place, more, &[("DALASI_SMTP_URL", &url), ("DALASI_MAIL_FROM", "bills@shop.example")]).1
    };
    let sink = Sink::start(Script::default()).await;
    finds(&ask(sink.port, &[]), "smtp", "ok", "is ready for mail");
    sink.heard(|heard| {
        let words: Vec<&str> = heard.commands.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(words, ["EHLO", "AUTH", "QUIT"]);
    });
    let sink = Sink::start(Script { login: "535 no", ..Script::default() }).await;
    finds(&ask(sink.port, &[]), "smtp", "failed", "refused the login: 535");
    finds(&ask(1, &[]), "smtp", "failed", "can't be reached");
    // One that takes the connection and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let patience = Duration::from_secs(20);
    let port = silent.local_addr().unwrap().port();
    let asked = tokio::time::timeout(
        patience,
        tokio::task::spawn_blocking({
            let place = Place::sqlite();
            move || {
                place.init();
                let url = format!("smtp://127.0.0.1:{port}");
                let variables = [("DALASI_SMTP_URL", url.as_str()), ("DALASI_MAIL_FROM", "bills@shop.example")];
                doctor(&place, &["--time-limit", "1"], &variables).1
            }
        }),
    );
    finds(&asked.await.unwrap().unwrap(), "smtp", "failed", "no end to it within 1 s");
}

/// The mail server's address holds a password, and stands where the unit alone reads it.
#[test]
fn a_sender_without_a_mail_server_is_no_reason_to_look_at_nothing() {
    let place = Place::sqlite();
    place.init();
    std::fs::write(place.folder().join("dalasi.toml"), "mail-from = 'bills@shop.example'\n").unwrap();
    let (code, report) = doctor(&place, &["--config", "dalasi.toml"], &[]);
    assert_eq!(code, 0, "{report:#}");
    finds(&report, "smtp", "warning", "smtp-url is not seen here");
    let (_, report) = doctor(&place, &[], &[("DALASI_SMTP_PASSWORD_FILE", "absent")]);
    finds(&report, "smtp", "warning", "smtp-url is not seen here");
    // The server itself takes no half of it.
    assert_eq!(place.run(&["serve", "--listen", "127.0.0.1:0", "--config", "dalasi.toml"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_books_are_seen() {
    let place = Place::sqlite();
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(&place);
    let id = server.pay(key, "wave", "+2207000000").await;
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    assert_eq!(server.stop(), 0);
    let shift = "update ledger_postings set amount_minor = amount_minor + 1 where line = 1";
    assert_eq!(place.raw_sqlite().execute(shift, []).unwrap(), 1);
    finds(&doctor(&place, &[], &[]).1, "ledger", "failed", "ledger_postings");
}

#[test]
fn a_database_or_a_disk_that_can_not_be_used_is_seen() {
    let place = Place::sqlite();
    let (_, report) = doctor(&place, &[], &[]);
    finds(&report, "database", "failed", "there is no installation");
    finds(&report, "disk", "failed", "there is no folder");
    finds(&report, "ledger", "warning", "not looked at");
    assert!(!place.folder().join("data").exists(), "it makes nothing");
    place.init();
    std::fs::write(place.file(), "no database".repeat(1000)).unwrap();
    let (_, report) = doctor(&place, &[], &[]);
    finds(&report, "database", "failed", "not a database");

    let mut away = place.command(&["doctor", "--json"]);
    away.env_remove("DALASI_DATA_DIR").env("DALASI_KEY_FILE", place.key_file());
    let away = away.env("DALASI_DATABASE_URL", format!("postgres://shop:{SECRET}@127.0.0.1:1/shop")).output().unwrap();
    let away = Ran::of(away);
    assert!(away.code == 1 && !away.data.contains(SECRET), "{away:?}");
    finds(&serde_json::from_str(&away.data).unwrap(), "database", "failed", "refused");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_without_room_that_takes_no_file_is_seen() {
    let place = Place::sqlite();
    let (_, report) = doctor(&place, &["--data-dir", "/proc"], &[]);
    finds(&report, "disk", "failed", "/proc can't be written");
    finds(&report, "disk", "failed", "0 MB are free");
    assert_eq!(std::fs::read_dir(place.folder()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_at_the_public_address_is_looked_at() {
    let place = Place::sqlite();
    place.init();
    let nobody = doctor(&place, &["--public-url", "http://127.0.0.1:1"], &[]).1;
    finds(&nobody, "server", "warning", "can't be reached");
    let late = async || ([("date", "Sun, 22 Nov 2026 08:00:00 GMT")], "welcome to nginx");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(late)).await });
    let other = doctor(&place, &["--public-url", &url], &[]).1;
    finds(&other, "server", "failed", "not as Dalasi does");
    finds(&other, "clock", "ok", "there is no other clock");
    let open = doctor(&place, &["--public-url", "http://pay.shop.invalid"], &[]).1;
    finds(&open, "tls", "failed", "in the clear");
    let everywhere = doctor(&place, &["--listen", "0.0.0.0:1"], &[]).1;
    finds(&everywhere, "tls", "warning", "others can reach");
    finds(&everywhere, "server", "warning", "public-url is not set, and others can come by any address");
    let behind = doctor(&place, &["--listen", "127.0.0.1:0", "--trusted-proxies", "1"], &[]).1;
    finds(&behind, "server", "warning", "public-url is not set, and there is a proxy in front");
    let files = ["--tls-cert", "absent.pem", "--tls-key", "absent.pem"];
    finds(&doctor(&place, &files, &[]).1, "tls", "failed", "absent.pem");
}

/// A server for localhost whose certificate holds so many days, and who vouches for it.
async fn by_tls(days: u64) -> (String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(["localhost".to_owned()]).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a certificate is of a day on the calendar")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // An hour more than so many days.
    server.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + Duration::from_secs(days * 24 * 3600 + 3600);
    let server = server.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Whoever doesn't trust it goes away.
            tokio::spawn(acceptor.accept(stream));
        }
    });
    (url, authority.pem())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_judged_as_a_client_will() {
    let place = Place::sqlite();
    place.init();
    let trusted = place.folder().join("authority.pem");
    for (days, wanted, words) in [
        (90, "ok", "does for 90 days more"),
        (3, "warning", "does for 3 days more"),
        (0, "warning", "does for 0 days more"),
    ] {
        let (url, authority) = by_tls(days).await;
        std::fs::write(&trusted, authority).unwrap();
        let trust = [("SSL_CERT_FILE", trusted.to_str().unwrap())];
        finds(&doctor(&place, &["--public-url", &url], &trust).1, "tls", wanted, words);
        let other = url.replace("localhost", "127.0.0.1");
        finds(&doctor(&place, &["--public-url", &other], &trust).1, "tls", "failed", "does not verify");
    }
    // Nobody vouches for this one.
    let (url, _) = by_tls(90).await;
    let trust = [("SSL_CERT_FILE", trusted.to_str().unwrap())];
    finds(&doctor(&place, &["--public-url", &url], &trust).1, "tls", "failed", "does not verify");
}

/// What it writes to see whether the disk takes it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_leaves_nothing_in_the_data_folder() {
    let place = Place::sqlite();
    place.init();
    let slow = ["--output=/dev/null", "--trace=fsync", "--inject=fsync:delay_enter=150000"];
    let Some(mut command) = place.traced(&slow, &["doctor"]) else { return };
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let is_written = || {
        let mut entries = std::fs::read_dir(place.folder().join("data")).unwrap().map(|entry| entry.unwrap());
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with(".doctor."))
    };
    for _ in 0..200 {
        if is_written() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_written(), "nothing was written");
    signal(traced_by(&child), "-INT");
    let (code, said) = ended(child).await;
    assert!(code == 1 && said.contains("interrupted"), "{code}: {said}");
    assert!(!is_written(), "it is still there");
}
