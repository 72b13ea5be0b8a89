//! The rail against servers that speak SMTP, each with another fault.

mod injection;
mod settings;
mod sink;
mod steps;

use domain::Timestamp;

use super::{Attachment, MailSettings, Mailer, Message};

fn settings(url: &str, from: &str) -> MailSettings {
    MailSettings::check(Some(url.into()), None, Some(from.into())).expect("sound").expect("configured")
}

fn mailer(url: &str) -> Mailer {
    let settings = settings(url, "bills@shop.example");
    Mailer::new(settings, Some("pay.shop.example")).expect("can be set up")
}

fn message() -> Message {
    Message {
        id: "mail_01h455vb4pex5vsknk084sn02q".into(),
        from_name: Some("Kairaba Books".into()),
        reply_to: Some("hello@kairaba.example".into()),
        to: "awa@example.org".into(),
        to_name: Some("Awa Ceesay".into()),
        subject: "Facture INV-2026-11-0001 — à payer".into(),
        text: "Bonjour,\r\n.\r\nà bientôt".into(),
        html: "<p>Bonjour,</p>\n.\n<p>à bientôt</p>".into(),
        language: "fr",
        date: Timestamp::from_micros(1_795_000_000_000_000),
        attachments: vec![Attachment {
            name: "INV-2026-11-0001.pdf".into(),
            media_type: "application/pdf",
            bytes: b"%PDF-1.7 \x00\xff\r\n.\r\n".to_vec(),
        }],
    }
}
