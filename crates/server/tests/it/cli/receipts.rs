//! Receipt statements: signed by the installation, checked with it or without.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;

use dalasi::app::{Context, receipt_statements};
use dalasi::receipt_statement::Paid;
use dalasi::secrets::load_key_file;
use dalasi::wire::Addresses;
use domain::{Currency, Mode, Money, Timestamp};
use serde_json::{Value, json};

use super::on_both;
use super::place::{Place, Ran, text};
use super::server::Server;

on_both!(
    a_statement_is_checked_with_the_installation_or_with_its_keys,
    a_receipt_outlives_the_key_that_signed_it,
    what_is_not_genuine_is_told_by_the_exit_code,
);

const CODE: &str = "0123456789abcdef0123456789abcdef";

/// The address in the QR code of a receipt that is signed so many days from now.
async fn signed(place: &Place, mode: Mode, days: i64) -> String {
    let addresses =
        Addresses { public_url: "https://api.example".to_owned(), pay_url: "https://pay.example".to_owned() };
    let context = Arc::new(Context::new(addresses, load_key_file(&place.key_file()).unwrap(), Vec::new()));
    let store = place.store_in(days).await;
    let address = store.read(move |tx| {
        let paid = Paid {
            mode,
            receipt_number: "RCT-2026-001",
            amount: Money::new(150_000, Currency::gmd()),
            merchant: "Kairaba Books",
            paid_at: Timestamp::from_micros(1_795_273_500_000_000),
            payer: "Fatou Ceesay",
            validation_code: CODE,
        };
        receipt_statements::address(tx, &context, &paid)
    });
    let address = address.await.unwrap();
    store.close().await;
    address
}

fn of(address: &str) -> &str {
    address.strip_prefix("https://pay.example/verify#").unwrap()
}

async fn a_statement_is_checked_with_the_installation_or_with_its_keys(place: &Place) {
    place.init();
    let address = signed(place, Mode::Live, 0).await;
    let shown = place.json(&["receipt", "verify", &address]);
    let key_id = text(&shown, "/key_id");
    assert_eq!(key_id, text(&place.json(&["signing-keys", "list"]), "/0/kid"));
    assert_eq!(
        shown,
        json!({
            "valid": true, "receipt_number": "RCT-2026-001", "amount": "1500.00", "currency": "GMD",
            "merchant": "Kairaba Books", "payment_date": "2026-11-21T15:05:00Z", "livemode": true, "key_id": key_id,
            "payer_matches": null,
        })
    );
    assert_eq!(place.json(&["receipt", "verify", of(&address)]), shown);
    let ran = place.run(&["receipt", "verify", &address]);
    assert!(ran.data.contains("amount\t1500.00 GMD\nmerchant\tKairaba Books\n"), "{ran:?}");
    assert_eq!((ran.code, ran.messages.as_str()), (0, ""));
    let test = signed(place, Mode::Test, 0).await;
    let ran = place.run(&["receipt", "verify", &test]);
    assert_eq!((ran.code, ran.messages.as_str()), (0, "Test mode: no real money moved.\n"));

    // Elsewhere, with nothing but the keys that the server gives to anybody.
    let server = Server::start(place);
    let (status, keys) = server.call("GET", "/.well-known/receipt-keys.json", "", Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(server.stop(), 0);
    let elsewhere = Place::sqlite();
    let file = elsewhere.folder().join("keys.json");
    std::fs::write(&file, keys.to_string()).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(elsewhere.json(&["receipt", "verify", &address, "--keys", file]), shown);
    let mut piped = elsewhere.command(&["receipt", "verify", &address, "--keys", "-", "--json"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(keys.to_string().as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(serde_json::from_str::<Value>(&ran.data).unwrap(), shown);

    let payer =
        |name, code| place.run(&["receipt", "verify", &address, "--payer", name, "--validation-code", code, "--json"]);
    for (name, code, matches) in [
        ("Fatou Ceesay", CODE, true),
        ("fatou  CEESAY", "0123456789ABCDEF0123456789ABCDEF", true),
        ("Fatou Ceesay", " 01234567 89ABCDEF-01234567 89abcdef\n", true),
        ("Fatou Sanyang", CODE, false),
        ("Fatou Ceesay", "0123456789abcdef0123456789abcdee", false),
        ("", CODE, false),
    ] {
        let ran = payer(name, code);
        let shown: Value = serde_json::from_str(&ran.data).unwrap();
        assert_eq!((&shown["valid"], &shown["payer_matches"]), (&json!(true), &json!(matches)), "{name} {code}");
        assert_eq!(ran.code, i32::from(!matches), "{name} {code}");
    }
    // What is no code says nothing of the payer.
    for code in ["", "0", &CODE[1..], &format!("{CODE}0"), &CODE.replace('f', "g"), "RCT-2026-001"] {
        let ran = payer("Fatou Ceesay", code);
        assert_eq!((ran.code, ran.data.as_str()), (2, ""), "{code:?}: {ran:?}");
        assert!(ran.messages.contains("a validation code has 32 digits of 0 to 9 and a to f"), "{code:?}: {ran:?}");
    }
}

async fn a_receipt_outlives_the_key_that_signed_it(place: &Place) {
    place.init();
    let old = signed(place, Mode::Live, 0).await;
    let next = place.json(&["signing-keys", "rotate"]);
    let new = signed(place, Mode::Live, 2).await;
    let (old, new) = (place.json(&["receipt", "verify", &old]), place.json(&["receipt", "verify", &new]));
    assert_eq!(new["key_id"], next["kid"]);
    assert_ne!(old["key_id"], new["key_id"]);
    // Long after the key retired, when tokens know it no more.
    let late = place.store_in(3650).await;
    let addresses = Addresses { public_url: String::new(), pay_url: String::new() };
    let context = Context::new(addresses, load_key_file(&place.key_file()).unwrap(), Vec::new());
    let keys = late.read(move |tx| receipt_statements::verifying_keys(tx, &context)).await.unwrap();
    late.close().await;
    let ids: Vec<&str> = keys.iter().map(|key| key.id()).collect();
    assert_eq!(ids, [text(&old, "/key_id"), text(&new, "/key_id")]);
}

async fn what_is_not_genuine_is_told_by_the_exit_code(place: &Place) {
    place.init();
    let address = signed(place, Mode::Live, 0).await;
    let statement = of(&address);
    let other = Place::sqlite();
    other.init();
    let forged = if statement.ends_with('0') { "G" } else { "0" };
    let altered =
        format!("{}{}{}", &statement[..30], if &statement[30..31] == "7" { "8" } else { "7" }, &statement[31..]);
    for (what, text, reason) in [
        ("altered", altered.as_str(), "forged"),
        ("cut", &statement[..192], "forged"),
        ("its end altered", &format!("{}{forged}", &statement[..statement.len() - 1]), "forged"),
        ("lower case", &statement.to_lowercase(), "malformed"),
        ("nothing", "", "malformed"),
        ("an address without one", "https://pay.example/verify", "malformed"),
        ("of a later version", &format!("08{}", &statement[2..]), "unknown_version"),
    ] {
        let ran = place.run(&["receipt", "verify", text, "--json"]);
        assert_eq!(ran.data, format!("{{\"valid\":false,\"reason\":\"{reason}\"}}\n"), "{what}");
        assert_eq!(ran.code, 1, "{what}");
        assert!(ran.messages.starts_with("dalasi: not valid: "), "{what}: {}", ran.messages);
        let ran = place.run(&["receipt", "verify", text]);
        assert_eq!((ran.code, ran.data.as_str()), (1, ""), "{what}");
    }
    let ran = other.run(&["receipt", "verify", &address, "--json"]);
    assert_eq!((ran.code, ran.data.as_str()), (1, "{\"valid\":false,\"reason\":\"unknown_key\"}\n"));

    // That it could not be checked is something else.
    let nowhere = Place::sqlite();
    assert_eq!(nowhere.run(&["receipt", "verify", &address]).code, 4);
    let file = nowhere.folder().join("keys.json");
    for keys in ["", "[]", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\"}]}"] {
        std::fs::write(&file, keys).unwrap();
        let ran = nowhere.run(&["receipt", "verify", &address, "--keys", file.to_str().unwrap()]);
        assert_eq!((ran.code, ran.data.as_str()), (2, ""), "{keys}: {ran:?}");
    }
    assert_eq!(nowhere.run(&["receipt", "verify", &address, "--keys", "missing.json"]).code, 2);
    assert_eq!(place.run(&["receipt", "verify", &address, "--payer", "Fatou Ceesay"]).code, 2);
    assert_eq!(place.run(&["receipt", "verify"]).code, 2);
    for unknown in ["RCT-2026-001", "rec_01h455vb4pex5vsknk084sn02q", "everything"] {
        let ran = place.run(&["receipt", "address", unknown]);
        assert_eq!((ran.code, ran.data.as_str()), (4, ""), "{unknown}");
        assert!(ran.messages.ends_with("Live receipts need --live.\n"), "{}", ran.messages);
    }
}
