//! What an endpoint missed comes to it, and to nobody else, by the command that its merchant was told.

use std::time::Duration;

use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, Ran, text};
use super::server::{Receiver, Server};
use crate::mails::sink::{Script, Sink};

on_both!(the_command_of_the_letter_brings_what_failed_first,);

async fn the_command_of_the_letter_brings_what_failed_first(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    place.json(&["organization", "set", "--email", "books@kairaba.example"]);
    let sink = Sink::start(Script::default()).await;
    let mail = ["--smtp-url", &sink.url(), "--mail-from", "bills@shop.example"];
    let server = Server::start_with(place, &[&["--allow-loopback-webhooks"] as &[&str], &mail].concat());
    let (well, unwell) = (Receiver::start().await, Receiver::start().await);
    unwell.answer(410);
    let mut ids = Vec::new();
    for endpoint in [&well, &unwell] {
        let body = json!({ "url": endpoint.url, "enabled_events": ["*"] });
        let (status, made) = server.call("POST", "/v1/webhook_endpoints", key, body).await;
        assert_eq!(status, 201, "{made}");
        ids.push(text(&made, "/data/id").to_owned());
    }
    let (_, made) = server.call("POST", "/v1/checkouts", key, json!({ "amount": "1.00" })).await;
    let path = format!("/v1/checkouts/{}/cancel", text(&made, "/data/id"));
    assert_eq!(server.call("POST", &path, key, Value::Null).await.0, 200);
    let event = well.until(1).await.remove(0).0["webhook-id"].to_str().unwrap().to_owned();
    unwell.until(1).await;

    let line = told(&sink).await;
    let (needed, command) = line.split_once(" dalasi ").unwrap_or_else(|| panic!("no command in {line}"));
    // As quoted-printable has it.
    assert!(needed.starts_with("DALASI_API_KEY=3Dsk_test_"), "{line}");
    unwell.answer(200);
    let on = json!({ "status": "active" });
    let path = format!("/v1/webhook_endpoints/{}", ids[1]);
    assert_eq!(server.call("PATCH", &path, key, on).await.0, 200);
    // It names where the API is, which is not where a command looks that is told nothing.
    let mut resend = place.command(&command.split(' ').chain(["--yes"]).collect::<Vec<_>>());
    let ran = Ran::of(resend.env("DALASI_API_KEY", key).output().unwrap());
    assert_eq!((ran.code, ran.data.split('\t').next()), (0, Some(&*event)), "{command}: {ran:?}");
    let got = unwell.until(2).await;
    assert_eq!(got[1].0["webhook-id"], *event);

    let retry = format!("/v1/events/{event}/retry");
    for (id, code) in [
        ("we_01h455vb4pex5vsknk084sn02q", "validation_failed"),
        (&event, "validation_failed"),
        (&*ids[0], "no_active_endpoint"),
    ] {
        if code == "no_active_endpoint" {
            let off = json!({ "status": "inactive" });
            let path = format!("/v1/webhook_endpoints/{id}");
            assert_eq!(server.call("PATCH", &path, key, off).await.0, 200);
        }
        let (status, refused) = server.call("POST", &retry, key, json!({ "webhook_endpoint_id": id })).await;
        assert_eq!((status, text(&refused, "/code")), (400, code), "{refused}");
    }
    assert_eq!(server.stop(), 0);
    assert_eq!((well.got().len(), unwell.got().len()), (1, 2), "nobody got what it had");
    place.has_clean_books();
}

/// The line with the command in the letter.
async fn told(sink: &Sink) -> String {
    for _ in 0..200 {
        let letter = sink.heard(|heard| heard.messages.first().cloned());
        if let Some(letter) = letter {
            // As it stands in the text, without what it takes to write it in a mail.
            let text = letter.replace("=\r\n", "").replace("=20\r\n", " \r\n");
            let line = text.lines().find(|line| line.contains("dalasi events resend"));
            return line.unwrap_or_else(|| panic!("no command in {text}")).trim_end().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no letter came");
}
