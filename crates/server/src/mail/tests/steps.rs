//! Where a conversation can end, and what that means for the mail.

use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::sink::{CUT, Reached, Script, Sink};
use super::{mailer, message};
use crate::mail::{Finality, SendFault, Step};

async fn send(script: Script) -> (Result<(), SendFault>, Sink) {
    let sink = Sink::start(script).await;
    let sent = mailer(&sink.url()).send(&message()).await;
    (sent, sink)
}

#[tokio::test]
async fn a_message_is_handed_over_whole() {
    let (sent, sink) = send(Script::default()).await;
    sent.expect("taken");
    let (commands, messages) = sink.heard(|heard| (heard.commands.clone(), heard.messages.clone()));
    assert_eq!(
        commands,
        ["EHLO pay.shop.example", "MAIL FROM:<bills@shop.example>", "RCPT TO:<awa@example.org>", "DATA", "QUIT"]
    );
    insta::assert_snapshot!(messages.concat().replace("\r\n", "\n"), @r#"
    From: "Kairaba Books" <bills@shop.example>
    To: "Awa Ceesay" <awa@example.org>
    Subject: Facture INV-2026-11-0001 =?utf-8?b?4oCUIMOg?= payer
    Date: Wed, 18 Nov 2026 11:06:40 +0000
    Message-ID: <mail_01h455vb4pex5vsknk084sn02q@shop.example>
    Auto-Submitted: auto-generated
    Content-Language: fr
    Reply-To: "Kairaba Books" <hello@kairaba.example>
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="mail_01h455vb4pex5vsknk084sn02q-2"

    --mail_01h455vb4pex5vsknk084sn02q-2
    Content-Type: multipart/alternative;
     boundary="mail_01h455vb4pex5vsknk084sn02q-1"

    --mail_01h455vb4pex5vsknk084sn02q-1
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: quoted-printable

    Bonjour,
    .
    =C3=A0 bient=C3=B4t
    --mail_01h455vb4pex5vsknk084sn02q-1
    Content-Type: text/html; charset=utf-8
    Content-Transfer-Encoding: quoted-printable

    <p>Bonjour,</p>
    .
    <p>=C3=A0 bient=C3=B4t</p>
    --mail_01h455vb4pex5vsknk084sn02q-1--
    --mail_01h455vb4pex5vsknk084sn02q-2
    Content-Disposition: attachment; filename="INV-2026-11-0001.pdf"
    Content-Type: application/pdf
    Content-Transfer-Encoding: base64

    JVBERi0xLjcgAP8NCi4NCg==
    --mail_01h455vb4pex5vsknk084sn02q-2--
    "#);
}

/// Before the host there is no way to write it in ASCII.
#[tokio::test]
async fn letters_beyond_ascii_go_to_a_server_that_knows_them() {
    let mut message = message();
    message.to = "äwa@bücher.example".into();
    let sink = Sink::start(Script { hello: "250-sink\r\n250-8BITMIME\r\n250 SMTPUTF8", ..Script::default() }).await;
    mailer(&sink.url()).send(&message).await.expect("taken");
    let (commands, messages) = sink.heard(|heard| (heard.commands.clone(), heard.messages.concat()));
    assert_eq!(
        commands[1..3],
        ["MAIL FROM:<bills@shop.example> SMTPUTF8 BODY=8BITMIME", "RCPT TO:<äwa@xn--bcher-kva.example>"]
    );
    assert!(messages.contains("<äwa@xn--bcher-kva.example>"), "{messages}");

    let sink = Sink::start(Script::default()).await;
    let refused = mailer(&sink.url()).send(&message).await.expect_err("it knows no such letters");
    assert_eq!((refused.step, refused.finality), (Step::Recipient, Finality::ForGood));
}

#[tokio::test]
async fn the_same_message_has_the_same_bytes() {
    let sink = Sink::start(Script::default()).await;
    let mailer = mailer(&sink.url());
    mailer.send(&message()).await.expect("taken");
    mailer.send(&message()).await.expect("taken");
    sink.heard(|heard| assert_eq!(heard.messages[0], heard.messages[1]));
}

#[tokio::test]
async fn each_step_says_what_went_wrong() {
    let fine = Script::default();
    let table = [
        (Script { greeting: "554 go away", ..fine }, Step::Connect, Finality::ForNow, Some(554)),
        (Script { greeting: CUT, ..fine }, Step::Connect, Finality::ForNow, None),
        (Script { hello: "421 too busy", ..fine }, Step::Connect, Finality::ForNow, Some(421)),
        (Script { sender: "550 not yours", ..fine }, Step::Sender, Finality::ForNow, Some(550)),
        (Script { sender: "530 log in first", ..fine }, Step::Sender, Finality::ForNow, Some(530)),
        (Script { recipient: "550 5.1.1 nobody", ..fine }, Step::Recipient, Finality::ForGood, Some(550)),
        (Script { recipient: "451 greylisted", ..fine }, Step::Recipient, Finality::ForNow, Some(451)),
        (Script { recipient: "530 log in first", ..fine }, Step::Recipient, Finality::ForNow, Some(530)),
        (Script { recipient: CUT, ..fine }, Step::Recipient, Finality::ForNow, None),
        // Of the sender, the client and its quota servers speak late.
        (Script { recipient: "554 5.7.1 Relay access denied", ..fine }, Step::Recipient, Finality::ForNow, Some(554)),
        (
            Script { recipient: "553-5.7.1 not owned\r\n553 5.7.1 by user", ..fine },
            Step::Recipient,
            Finality::ForNow,
            Some(553),
        ),
        (Script { recipient: "550 5.1.8 no such sender", ..fine }, Step::Recipient, Finality::ForNow, Some(550)),
        (Script { recipient: "550 5.4.5 enough for today", ..fine }, Step::Recipient, Finality::ForNow, Some(550)),
        (Script { recipient: "552 5.2.2 mailbox full", ..fine }, Step::Recipient, Finality::ForGood, Some(552)),
        (Script { recipient: "552 5.3.4 too large", ..fine }, Step::Message, Finality::ForGood, Some(552)),
        (Script { recipient: "550 5.4.4 no way there", ..fine }, Step::Recipient, Finality::ForGood, Some(550)),
        (Script { recipient: "550 5.0.0 nobody", ..fine }, Step::Recipient, Finality::ForGood, Some(550)),
        (Script { recipient: "550 nobody", ..fine }, Step::Recipient, Finality::ForGood, Some(550)),
        (Script { data: "452 disk full", ..fine }, Step::Message, Finality::ForNow, Some(452)),
        (Script { data: "554 no", ..fine }, Step::Message, Finality::ForGood, Some(554)),
        (Script { end: "550 5.7.60 may not send as this sender", ..fine }, Step::Message, Finality::ForNow, Some(550)),
        (Script { end: "550 5.1.1 nobody", ..fine }, Step::Recipient, Finality::ForGood, Some(550)),
        (Script { end: "554 5.6.0 not taken", ..fine }, Step::Message, Finality::ForGood, Some(554)),
        (Script { end: "554 5.7.1 unwanted", ..fine }, Step::Message, Finality::ForGood, Some(554)),
        (Script { end: "552 too large", ..fine }, Step::Message, Finality::ForGood, Some(552)),
        (Script { end: "451 later", ..fine }, Step::Message, Finality::ForNow, Some(451)),
        (Script { end: CUT, ..fine }, Step::Answer, Finality::ForNow, None),
    ];
    let sink = Sink::start(fine).await;
    let mailer = mailer(&sink.url());
    let mut sentences = Vec::new();
    for (script, step, finality, code) in table {
        sink.speak(script);
        let fault = mailer.send(&message()).await.expect_err("a fault");
        assert_eq!((fault.step, fault.finality, fault.code), (step, finality, code), "{fault} {script:?}");
        sentences.push(fault.to_string());
    }
    insta::assert_snapshot!(sentences.join("\n"), @r#"
    the mail server can't be reached: 554 go away
    the mail server can't be reached: it closed the connection
    the mail server can't be reached: 421 too busy
    the mail server refused the sender: 550 not yours
    the mail server refused the sender: 530 log in first
    the mail server refused the recipient: 550 5.1.1 nobody
    the mail server did not take the message: 451 greylisted
    the mail server did not take the message: 530 log in first
    the mail server did not take the message: it closed the connection
    the mail server did not take the message: 554 5.7.1 Relay access denied
    the mail server did not take the message: 553 5.7.1 not owned by user
    the mail server did not take the message: 550 5.1.8 no such sender
    the mail server did not take the message: 550 5.4.5 enough for today
    the mail server refused the recipient: 552 5.2.2 mailbox full
    the mail server did not take the message: 552 5.3.4 too large
    the mail server refused the recipient: 550 5.4.4 no way there
    the mail server refused the recipient: 550 5.0.0 nobody
    the mail server refused the recipient: 550 nobody
    the mail server did not take the message: 452 disk full
    the mail server did not take the message: 554 no
    the mail server did not take the message: 550 5.7.60 may not send as this sender
    the mail server refused the recipient: 550 5.1.1 nobody
    the mail server did not take the message: 554 5.6.0 not taken
    the mail server did not take the message: 554 5.7.1 unwanted
    the mail server did not take the message: 552 too large
    the mail server did not take the message: 451 later
    the message was sent, but its answer was lost: it may have arrived: it closed the connection
    "#);
}

/// More than the system takes before somebody reads it.
#[tokio::test]
async fn a_message_of_which_the_end_was_not_said_has_not_arrived() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("somebody");
        let mut stream = BufReader::new(stream);
        for answer in ["220 sink", "250 sink", "250 fine", "250 fine", "354 go on"] {
            stream.write_all(format!("{answer}\r\n").as_bytes()).await.expect("said");
            stream.read_line(&mut String::new()).await.expect("heard");
        }
    });
    let mut message = message();
    message.attachments[0].bytes = vec![b'x'; 32 << 20];
    let fault = mailer(&format!("smtp://127.0.0.1:{port}")).send(&message).await.expect_err("it is gone");
    assert_eq!((fault.step, fault.finality, fault.code), (Step::Message, Finality::ForNow, None), "{fault}");
}

/// It offers far more than what two systems keep for somebody who does not read.
#[tokio::test]
async fn a_greeting_without_an_end_is_not_kept() {
    const OFFERED: usize = 64 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let greeting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("somebody");
        let (bytes, mut written) = (vec![b'a'; 64 << 10], 0);
        while written < OFFERED {
            let Ok(more) = stream.write(&bytes).await else { break };
            written += more;
        }
        written
    });
    let fault = mailer(&format!("smtp://127.0.0.1:{port}")).send(&message()).await.expect_err("no greeting");
    assert_eq!((fault.step, fault.finality, fault.code), (Step::Connect, Finality::ForNow, None), "{fault}");
    assert_eq!(fault.to_string(), "the mail server can't be reached: it sent a line of more than 4 KiB");
    let written = greeting.await.expect("no panic");
    assert!(written < OFFERED / 2, "{written} bytes were taken");
}

#[tokio::test]
async fn nobody_at_home_is_told() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        listener.local_addr().expect("an address").port()
    };
    let fault = mailer(&format!("smtp://127.0.0.1:{port}")).send(&message()).await.expect_err("nobody listens");
    assert_eq!((fault.step, fault.finality), (Step::Connect, Finality::ForNow));
    assert_eq!(fault.to_string(), "the mail server can't be reached: Connection refused (os error 111)");
}

#[tokio::test]
async fn without_starttls_nothing_is_said_where_it_is_required() {
    let sink = Sink::start(Script::default()).await;
    let url = format!("smtp://shop:hunter2@127.0.0.1:{}?tls=required", sink.port);
    let fault = mailer(&url).send(&message()).await.expect_err("no STARTTLS");
    assert_eq!((fault.step, fault.finality), (Step::Encrypt, Finality::ForNow));
    sink.heard(|heard| {
        assert!(heard.commands.iter().all(|line| line.starts_with("EHLO")), "{:?}", heard.commands);
    });
}

#[tokio::test]
async fn the_login_comes_before_the_message() {
    let sink = Sink::start(Script::default()).await;
    let url = format!("smtp://shop%40example:p%40ss@127.0.0.1:{}", sink.port);
    mailer(&url).send(&message()).await.expect("taken");
    // \0shop@example\0p@ss
    sink.heard(|heard| assert_eq!(heard.commands[1], "AUTH PLAIN AHNob3BAZXhhbXBsZQBwQHNz"));

    for (script, code) in [
        (Script { login: "535 wrong password", ..Script::default() }, Some(535)),
        (Script { hello: "250 sink", ..Script::default() }, None),
    ] {
        let sink = Sink::start(script).await;
        let url = format!("smtp://shop:hunter2@127.0.0.1:{}", sink.port);
        let fault = mailer(&url).send(&message()).await.expect_err("no login");
        assert_eq!((fault.step, fault.finality, fault.code), (Step::LogIn, Finality::ForNow, code));
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
    }
}

/// For a certificate that nobody vouches for.
fn stranger() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they fit");
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn a_certificate_is_checked() {
    for (scheme, reached) in [("smtps", Reached::ByTls(stranger())), ("smtp", Reached::ByStartTls(stranger()))] {
        let sink = Sink::reached(reached, Script::default()).await;
        let mailer = mailer(&format!("{scheme}://shop:hunter2@localhost:{}", sink.port));
        let fault = mailer.send(&message()).await.expect_err("a stranger");
        assert_eq!((fault.step, fault.finality), (Step::Encrypt, Finality::ForNow), "{fault}");
        assert!(fault.to_string().contains("UnknownIssuer"), "{fault}");
        sink.heard(|heard| {
            let told = heard.commands.iter().any(|line| line.starts_with("AUTH") || line.starts_with("MAIL"));
            assert!(!told, "{:?}", heard.commands);
        });
    }
}
