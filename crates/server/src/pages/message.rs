//! Pages that say one thing: not found, a form from elsewhere, too many requests, out of service, our fault.

use askama::Template;

use super::headers::Nonce;
use super::html::{Frame, address, render as draw};
use super::text::Text;
use super::view::{Message, MessagePage};

pub fn render(page: &MessagePage, nonce: &Nonce) -> String {
    let (title, body, can_retry) = match page.message {
        Message::NotFound => ("not-found-title", "not-found-body", false),
        Message::ForeignForm => ("foreign-title", "foreign-body", true),
        Message::TooLarge => ("too-large-title", "too-large-body", true),
        Message::TooMany => ("too-many-title", "too-many-body", true),
        Message::Unavailable => ("unavailable-title", "unavailable-body", true),
        Message::Fault { .. } => ("fault-title", "fault-body", true),
    };
    let t = Text::new(page.language.locale);
    draw(&Page {
        frame: Frame::new(nonce, None, page.language, &page.path, &[]),
        t,
        title: t.get(title),
        body: t.get(body),
        retry: can_retry.then(|| address(&page.path, page.language)),
        request_id: match &page.message {
            Message::Fault { request_id } => Some(request_id),
            Message::NotFound | Message::ForeignForm | Message::TooLarge | Message::TooMany | Message::Unavailable => {
                None
            }
        },
    })
}

#[derive(Template)]
#[template(path = "message.html")]
struct Page<'a> {
    frame: Frame,
    t: Text,
    title: String,
    body: String,
    retry: Option<String>,
    request_id: Option<&'a String>,
}
