//! What anybody can write into a name or a subject, and that it stays there.

use super::message;
use crate::mail::settings::From;
use crate::mail::{Message, is_answerable, is_mailable};

const HOSTILE: [&str; 10] = [
    "Awa\r\nBcc: all@example.org",
    "Awa\nBcc: all@example.org",
    "Awa\r\n\r\n<h1>Body</h1>",
    "Awa\u{2028}Bcc: x\u{2029}\u{85}\u{0}\u{b}\u{c}",
    "\"Awa\" <thief@example.org>, x",
    "=?utf-8?q?Awa=0D=0ABcc:_x?=",
    "Awa\\\"; filename=\"evil.exe",
    "a@example.org, b@example.org",
    "é\r\nBcc: x",
    "Awa\u{202e}gro.elpmaxe@feiht\u{2066}\u{200f}",
];

fn written(message: &Message, from_name: Option<&str>) -> String {
    let address = "bills@shop.example".parse().expect("an address");
    let from = From { name: from_name.map(str::to_owned), address };
    String::from_utf8(message.write(&from).expect("written").bytes).expect("text")
}

/// The names of the headers, continuation lines left out.
fn names(message: &str) -> Vec<&str> {
    let head = message.split("\r\n\r\n").next().expect("a head");
    let lines = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
    lines.map(|line| line.split(':').next().expect("a name")).collect()
}

#[test]
fn no_text_becomes_a_header_or_an_address() {
    let harmless = written(&message(), None);
    let expected = names(&harmless);
    assert_eq!(
        expected,
        [
            "From",
            "To",
            "Subject",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "Content-Language",
            "Reply-To",
            "MIME-Version",
            "Content-Type",
        ]
    );
    for text in HOSTILE {
        let mut message = message();
        message.from_name = Some(text.into());
        message.to_name = Some(text.into());
        message.subject = text.into();
        message.attachments[0].name = text.into();
        for from_name in [None, Some(text)] {
            let bytes = written(&message, from_name);
            assert_eq!(names(&bytes), expected, "{text:?}: {bytes}");
            assert!(!bytes.replace("\r\n", "").contains(['\r', '\n']), "{text:?}: bare line breaks in {bytes}");
            assert!(!bytes.contains("=?utf-8?q?Awa"), "{text:?} is read as what it encodes: {bytes}");
            let unfolded = bytes.replace("\r\n ", " ").replace("\r\n\t", " ");
            for (header, address) in [("From: ", "<bills@shop.example>"), ("To: ", "<awa@example.org>")] {
                let line = unfolded.split("\r\n").find(|line| line.starts_with(header)).expect("the header");
                assert!(line.ends_with(address), "{line}");
                // Outside of quotes and encoded words there is one address only.
                let outside: String = line.split('"').step_by(2).collect();
                assert_eq!((outside.matches('@').count(), outside.matches('<').count()), (1, 1), "{line}");
            }
        }
    }
}

/// Where a name is shown before its address, it would have that read from its end.
#[test]
fn no_name_turns_the_address_beside_it() {
    let turned = "Awa\u{202e}\u{2067}\u{200f}\u{61c} \u{200b}Ceesay\u{2069}\u{202c}\u{feff}";
    let mut message = message();
    message.from_name = Some(turned.into());
    message.to_name = Some(turned.into());
    for from_name in [None, Some(turned)] {
        let bytes = written(&message, from_name);
        assert!(bytes.starts_with("From: \"Awa Ceesay\" <bills@shop.example>\r\n"), "{bytes}");
        assert!(bytes.contains("\r\nTo: \"Awa Ceesay\" <awa@example.org>\r\n"), "{bytes}");
        assert!(bytes.contains("\r\nReply-To: \"Awa Ceesay\" <hello@kairaba.example>\r\n"), "{bytes}");
    }
    // Nothing but marks is no name.
    message.to_name = Some("\u{202e}\u{2066}".into());
    assert!(written(&message, None).contains("\r\nTo: awa@example.org\r\n"));
}

#[test]
fn no_address_can_hold_a_command() {
    for address in ["awa@example.org", "awa+shop@example.org", "a.b@xn--bcher-kva.example", "äwa@bücher.example"] {
        assert!(is_mailable(address), "{address}");
    }
    for address in [
        "",
        "awa",
        "@example.org",
        "awa@",
        "awa@example.org>\r\nRCPT TO:<x@example.org",
        "awa@example.org\r\n",
        " awa@example.org",
        "\"a b\"@example.org",
        "\"a\r\nb\"@example.org",
        "<awa@example.org>",
        "a@b@example.org",
        "awa@exa mple.org",
        "awa@example.org,x@example.org",
    ] {
        assert!(!is_mailable(address), "{address:?}");
    }
}

/// A server that knows nothing of such letters gets none where that can be helped.
#[test]
fn a_host_beyond_ascii_is_written_as_the_dns_has_it() {
    let mut message = message();
    message.to = "fatou@münchen.example".into();
    message.reply_to = Some("info@bücher.example".into());
    let bytes = written(&message, None);
    assert!(bytes.is_ascii(), "{bytes}");
    assert!(bytes.contains("<fatou@xn--mnchen-3ya.example>\r\n"), "{bytes}");
    assert!(bytes.contains("\r\nReply-To: \"Kairaba Books\" <info@xn--bcher-kva.example>\r\n"), "{bytes}");
    // Before the host there is no other way to write it.
    message.reply_to = Some("äwa@kairaba.example".into());
    let bytes = written(&message, None);
    assert!(bytes.is_ascii() && !bytes.contains("Reply-To"), "{bytes}");
    message.to = "äwa@bücher.example".into();
    assert!(written(&message, None).contains("<äwa@xn--bcher-kva.example>\r\n"));
}

#[test]
fn a_reply_goes_to_the_merchant_or_to_the_operator() {
    let mut message = message();
    assert!(written(&message, None).contains("\r\nReply-To: \"Kairaba Books\" <hello@kairaba.example>\r\n"));
    for none in [None, Some("not an address".to_owned())] {
        message.reply_to = none;
        assert!(!written(&message, None).contains("Reply-To"));
    }
    // What the letter says of it.
    for address in ["hello@kairaba.example", "info@bücher.example", "äwa@kairaba.example", "not an address"] {
        message.reply_to = Some(address.to_owned());
        assert_eq!(is_answerable(address), written(&message, None).contains("\r\nReply-To: "), "{address}");
    }
    assert!(is_answerable("info@bücher.example") && !is_answerable("äwa@kairaba.example"));
}

#[test]
fn the_operators_name_stands_before_the_merchants() {
    assert!(written(&message(), None).starts_with("From: \"Kairaba Books\" <bills@shop.example>\r\n"));
    assert!(written(&message(), Some("Bills")).starts_with("From: Bills <bills@shop.example>\r\n"));
}
