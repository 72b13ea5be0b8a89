//! `dalasi mail test` against servers that are reached by TLS.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::place::{Place, Ran};
use crate::mails::sink::{Reached, Script, Sink};

/// A certificate for localhost, and the PEM of who vouches for it.
fn localhost() -> (TlsAcceptor, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![server.der().clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_out_by_tls_where_the_certificate_is_trusted() {
    let place = Place::sqlite();
    let (acceptor, authority) = localhost();
    let trusted = place.folder().join("authority.pem");
    std::fs::write(&trusted, authority).unwrap();
    for (scheme, host, reached) in [
        ("smtps", "localhost", Reached::ByTls(acceptor.clone())),
        ("smtp", "localhost", Reached::ByStartTls(acceptor.clone())),
        // The certificate is for another name.
        ("smtps", "127.0.0.1", Reached::ByTls(acceptor)),
    ] {
        let sink = Sink::reached(reached, Script::default()).await;
        let url = format!("{scheme}://shop:hunter2@{host}:{}", sink.port);
        let mut command =
            place.command(&["mail", "test", "--to", "awa@example.org", "--mail-from", "bills@shop.example"]);
        command.env("DALASI_SMTP_URL", url).env("SSL_CERT_FILE", &trusted);
        let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap();
        let messages = sink.heard(|heard| heard.messages.len());
        if host == "localhost" {
            assert_eq!((ran.code, messages), (0, 1), "{ran:?}");
            assert!(ran.data.contains("has taken the message"), "{ran:?}");
            sink.heard(|heard| assert!(heard.commands.iter().any(|line| line.starts_with("AUTH PLAIN"))));
        } else {
            assert_eq!((ran.code, messages), (1, 0), "{ran:?}");
            assert!(ran.messages.contains("certificate not valid for name"), "{ran:?}");
        }
        assert!(!ran.messages.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn a_list_of_authorities_that_cannot_be_read_is_named() {
    let place = Place::sqlite();
    let trusted = place.folder().join("nothing.pem");
    let mut command = place.command(&["mail", "test", "--to", "awa@example.org", "--mail-from", "bills@shop.example"]);
    command.env("DALASI_SMTP_URL", "smtps://localhost:9").env("SSL_CERT_FILE", &trusted).env("DALASI_LOG", "warn");
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.messages.contains("could not be read") && ran.messages.contains("nothing.pem"), "{ran:?}");
}

/// Somebody on the way puts the answers of a whole conversation behind the server's go-ahead.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_tls_is_no_answer_under_it() {
    let place = Place::sqlite();
    let (acceptor, authority) = localhost();
    let trusted = place.folder().join("authority.pem");
    std::fs::write(&trusted, authority).unwrap();
    let starttls = "220 go on\r\n250 AUTH PLAIN\r\n235 welcome\r\n250 fine\r\n250 fine\r\n354 go on\r\n250 taken";
    let sink = Sink::reached(Reached::ByStartTls(acceptor), Script { starttls, ..Script::default() }).await;
    let mut command = place.command(&["mail", "test", "--to", "awa@example.org", "--mail-from", "bills@shop.example"]);
    let url = format!("smtp://shop:hunter2@localhost:{}", sink.port);
    command.env("DALASI_SMTP_URL", url).env("SSL_CERT_FILE", &trusted);
    let ran = tokio::task::spawn_blocking(move || Ran::of(command.output().unwrap())).await.unwrap();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.messages.contains("the connection to the mail server can't be encrypted"), "{ran:?}");
    sink.heard(|heard| {
        assert_eq!(heard.commands.iter().filter(|line| !line.starts_with("EHLO")).collect::<Vec<_>>(), ["STARTTLS"])
    });
}

#[test]
fn wrong_settings_are_explained() {
    let place = Place::sqlite();
    let test = |extra: &[&str]| place.run(&[&["mail", "test", "--to", "awa@example.org"], extra].concat());
    let ran = test(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.messages.contains("no mail server is configured"), "{ran:?}");
    let ran = test(&["--smtp-url", "smtp://shop:hunter2@mail.example?tls=none"]);
    assert_eq!(ran.code, 2);
    assert!(ran.messages.contains("mail-from: it is missing") && ran.messages.contains("in the clear"), "{ran:?}");
    assert!(!ran.messages.contains("hunter2"), "{ran:?}");
    let settings = ["--smtp-url", "smtps://mail.example", "--mail-from", "bills@shop.example"];
    let ran = place.run(&[&["mail", "test", "--to", "awa at example.org"], settings.as_slice()].concat());
    assert_eq!((ran.code, ran.messages.contains("--to: ")), (2, true), "{ran:?}");
}

/// The sender stands in the file, and the mail server's address where the unit alone reads it: who took the sender out of the
/// file would keep the service from its next start.
#[test]
fn settings_that_are_half_seen_are_nothing_to_leave_out() {
    let place = Place::sqlite();
    std::fs::write(place.folder().join("dalasi.toml"), "mail-from = 'bills@shop.example'\n").unwrap();
    let test = ["mail", "test", "--to", "awa@example.org"];
    let by_file = place.run(&[&test as &[&str], &["--config", "dalasi.toml"]].concat());
    let mut by_variable = place.command(&test);
    let by_variable = Ran::of(by_variable.env("DALASI_SMTP_PASSWORD_FILE", "absent").output().unwrap());
    for ran in [by_file, by_variable] {
        assert_eq!(ran.code, 2, "{ran:?}");
        for words in ["smtp-url: it is not seen here", "with the environment of the service", "systemd-run"] {
            assert!(ran.messages.contains(words), "{words} is not in {ran:?}");
        }
        assert!(!ran.messages.contains("leave") && !ran.messages.contains("of no use"), "{ran:?}");
    }
}
