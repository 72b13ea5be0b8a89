//! The letter that tells a merchant that an endpoint of theirs is switched off.

use askama::Template;
use domain::webhook::DisableReason;

use super::{Letter, Merchant, Row, Shown, clean, render, subject};
use crate::pages::moment;
use crate::pages::text::{Locale, Text};
use crate::wire::DEFAULT_API_URL;

#[derive(Debug, Clone)]
pub struct EndpointLetter {
    pub merchant: Merchant,
    pub locale: Locale,
    pub test_mode: bool,
    pub id: String,
    pub description: Option<String>,
    /// Of its address no more than this: the rest may be a secret.
    pub host: String,
    pub reason: DisableReason,
    /// RFC 3339: what it missed is not older, unless it waited for something else of its object.
    pub missing_since: String,
    /// Unix seconds.
    pub disabled_at: i64,
    /// Where the API is, for the command.
    pub api_url: String,
}

#[derive(Template)]
#[template(path = "letters/endpoint.html")]
struct Html<'a> {
    t: Text,
    subject: &'a str,
    test_mode: bool,
    merchant: &'a Shown,
    title: &'a str,
    lead: &'a str,
    rows: &'a [Row],
    request: &'a str,
    command: &'a str,
}

#[derive(Template)]
#[template(path = "letters/endpoint.txt")]
struct Plain<'a> {
    t: Text,
    test_mode: bool,
    merchant: &'a Shown,
    title: &'a str,
    lead: &'a str,
    rows: &'a [Row],
    request: &'a str,
    command: &'a str,
}

impl EndpointLetter {
    pub fn write(&self) -> Letter {
        let t = Text::new(self.locale);
        let merchant = Shown::of(&self.merchant);
        let host = clean(&self.host);
        let title = t.with("letter-endpoint-title", "host", &host);
        let subject = subject(title.clone(), self.test_mode, t);
        let lead = t.get(match self.reason {
            DisableReason::Gone => "letter-endpoint-gone",
            DisableReason::Failing => "letter-endpoint-failing",
        });
        let mut rows = vec![Row::new(t.get("letter-endpoint-when"), moment::in_words(self.disabled_at, t), t)];
        let described = self.description.as_deref().map(clean).filter(|description| !description.trim().is_empty());
        rows.extend(described.map(|description| Row::new(t.get("letter-endpoint-description"), description, t)));
        let request = format!("PATCH /v1/webhook_endpoints/{} {{\"status\": \"active\"}}", clean(&self.id));
        let command = self.command();
        let (merchant, title, lead, rows, test_mode) = (&merchant, &*title, &*lead, &*rows, self.test_mode);
        let (request, command) = (&*request, &*command);
        let html = Html { t, subject: &subject, test_mode, merchant, title, lead, rows, request, command };
        let text = Plain { t, test_mode, merchant, title, lead, rows, request, command };
        Letter { html: render(&html), text: render(&text), subject }
    }

    /// As a developer types it anywhere: with a key of the endpoint's mode, and with where the API is, unless that is taken
    /// anyway.
    fn command(&self) -> String {
        let (mode, live) = if self.test_mode { ("test", "") } else { ("live", " --live") };
        let api_url = match &*self.api_url {
            DEFAULT_API_URL => String::new(),
            api_url => format!(" --api-url {api_url}"),
        };
        let since = &self.missing_since;
        format!("DALASI_API_KEY=sk_{mode}_… dalasi events resend --since {since} --missed{live}{api_url}")
    }
}
