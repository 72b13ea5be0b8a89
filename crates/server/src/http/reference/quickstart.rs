//! From nothing to a paid checkout and a verified webhook, as plain HTML. The samples are the files that the tests run.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::{Frame, html};
use crate::http::Api;

#[derive(Template)]
#[template(path = "reference/quickstart.html")]
struct Page {
    version: &'static str,
    frame: Frame,
    create: String,
    pay: String,
    status: String,
    python: String,
    endpoint: String,
    receiver: String,
    phones: [(&'static str, &'static str); 7],
}

/// What each test number does, by the methods that ask for a phone.
const PHONES: [(&str, &str); 7] = [
    ("+2207000000", "approves"),
    ("+2207000001", "has too little money"),
    ("+2207000002", "refuses"),
    ("+2207000003", "never answers"),
    ("+2207000004", "pays, but the answer is lost for a while"),
    ("+2207000005", "approves after 30 seconds"),
    ("+2207000006", "approves, and is reported twice"),
];

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../../../docs/samples/", $name))
    };
}

pub(super) async fn page(State(api): State<Api>) -> Response {
    let base_url = &api.app.context().addresses.public_url;
    let shown = |sample: &str| {
        sample
            .trim_end()
            .replace("{{base_url}}", base_url)
            .replace("{{key}}", "sk_test_YOUR_KEY")
            .replace("{{checkout_id}}", "cs_FROM_STEP_1")
            .replace("{{webhook_url}}", "http://127.0.0.1:9000/")
            .replace("{{webhook_port}}", "9000")
            .replace("{{webhook_secret}}", "whsec_FROM_THE_ANSWER")
    };
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        frame: Frame::new(),
        create: shown(sample!("quickstart_create.sh")),
        pay: shown(sample!("quickstart_pay.sh")),
        status: shown(sample!("quickstart_status.sh")),
        python: shown(sample!("quickstart.py")),
        endpoint: shown(sample!("quickstart_endpoint.sh")),
        receiver: shown(sample!("quickstart_receiver.py")),
        phones: PHONES,
    };
    html(&page, "'self'")
}
