//! One message, and its bytes as MIME. Every header is encoded by `lettre`; a line break in a name or a subject has no
//! way to end a header, and is taken out before.

use std::time::{Duration, SystemTime};

use domain::Timestamp;
use lettre::Address;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Attached, Body, Mailbox, MultiPart, MultiPartKind, SinglePart};

use super::fault::{Finality, SendFault, Step};
use super::settings::From;

/// What a customer gets. The names are anybody's text; the addresses are checked when it is written.
#[derive(Debug, Clone)]
pub struct Message {
    /// Names the message, the same at every attempt: a TypeID.
    pub id: String,
    /// Stands beside the operator's address; nothing: as the operator set it.
    pub from_name: Option<String>,
    pub reply_to: Option<String>,
    pub to: String,
    pub to_name: Option<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// The language of all of it, as `Content-Language` says it.
    pub language: &'static str,
    pub date: Timestamp,
    pub attachments: Vec<Attachment>,
}

#[derive(Debug, Clone)]
pub struct Attachment {
    pub name: String,
    /// Such as `application/pdf`.
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

/// Whether mail can be sent there, as far as its syntax tells.
pub fn is_mailable(address: &str) -> bool {
    parse_address(address).is_some()
}

/// Whether a mail can say that answers go there. A merchant's address is no reason for a server to refuse what a customer is
/// owed, so it is one that every server takes.
pub fn is_answerable(address: &str) -> bool {
    parse_reply_to(address).is_some()
}

fn parse_reply_to(address: &str) -> Option<Address> {
    parse_address(address).filter(|address| !is_beyond_ascii(address))
}

/// Quoted local parts may hold spaces and more: nobody has one, and they are where injections hide.
pub(super) fn parse_address(address: &str) -> Option<Address> {
    let is_plain =
        !address.chars().any(|letter| letter.is_control() || letter.is_whitespace() || "\"<>".contains(letter));
    if is_plain { in_dns(address.parse().ok()?) } else { None }
}

/// A host beyond ASCII is written as the DNS has it, which every mail server takes (RFC 5891).
pub(super) fn in_dns(address: Address) -> Option<Address> {
    if address.domain().is_ascii() {
        return Some(address);
    }
    match url::Host::parse(address.domain()).ok()? {
        url::Host::Domain(host) => Address::new(address.user(), host).ok(),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
    }
}

/// Whether only a mail server that knows SMTPUTF8 takes it (RFC 6531).
pub(super) fn is_beyond_ascii(address: &Address) -> bool {
    !address.user().is_ascii() || !address.domain().is_ascii()
}

impl Message {
    pub(super) fn write(&self, from: &From) -> Result<Written, SendFault> {
        let refuse = |cause: &str| SendFault::new(Step::Compose, Finality::ForGood, None, cause);
        let to = parse_address(&self.to).ok_or_else(|| refuse("the recipient is not a mail address"))?;
        let name = from.name.clone().or_else(|| self.from_name.clone());
        let mailbox = |name: Option<&String>, address: &Address| {
            let name = name.map(|name| one_name(name)).filter(|name| !name.is_empty());
            Mailbox::new(name, address.clone())
        };
        let mut builder = lettre::Message::builder()
            .from(mailbox(name.as_ref(), &from.address))
            .to(mailbox(self.to_name.as_ref(), &to))
            .subject(one_line(&self.subject))
            .date(system_time(self.date))
            .message_id(Some(self.message_id(from)))
            // A machine wrote it: no machine is to answer (RFC 3834).
            .raw_header(header("Auto-Submitted", "auto-generated"))
            .raw_header(header("Content-Language", self.language));
        if let Some(reply_to) = self.reply_to.as_deref().and_then(parse_reply_to) {
            builder = builder.reply_to(mailbox(self.from_name.as_ref(), &reply_to));
        }
        let message = builder.multipart(self.body()).map_err(|error| refuse(&error.to_string()))?;
        let bytes = message.formatted();
        let is_utf8 = is_beyond_ascii(&from.address) || is_beyond_ascii(&to);
        assert!(is_utf8 || bytes.is_ascii(), "every part is encoded, so that no server has to know more than ASCII");
        Ok(Written { from: from.address.clone(), to, bytes })
    }

    pub(super) fn message_id(&self, from: &From) -> String {
        format!("<{}@{}>", self.id, from.address.domain())
    }

    /// The boundaries follow from the id: the same message has the same bytes at every attempt.
    fn body(&self) -> MultiPart {
        let part = |kind: MultiPartKind, number: u8| {
            MultiPart::builder().kind(kind.clone()).boundary(format!("{}-{number}", self.id))
        };
        let words = part(MultiPartKind::Alternative, 1)
            .singlepart(text_part(ContentType::TEXT_PLAIN, &self.text))
            .singlepart(text_part(ContentType::TEXT_HTML, &self.html));
        if self.attachments.is_empty() {
            return words;
        }
        let whole = part(MultiPartKind::Mixed, 2).multipart(words);
        self.attachments.iter().fold(whole, |whole, attachment| {
            let media_type = ContentType::parse(attachment.media_type).expect("media types are constants");
            whole.singlepart(Attached::new(one_line(&attachment.name)).body(attachment.bytes.clone(), media_type))
        })
    }
}

/// Ready to be sent.
pub(super) struct Written {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) bytes: Vec<u8>,
}

fn text_part(content_type: ContentType, text: &str) -> SinglePart {
    let encoding = ContentTransferEncoding::QuotedPrintable;
    let body = Body::new_with_encoding(text.to_owned(), encoding).expect("any text is quoted-printable");
    SinglePart::builder().header(content_type).body(body)
}

fn header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

/// Control characters end lines and do worse; a header has no use for any. What looks like an encoded word would be read
/// as what it encodes, line breaks and all.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("=?", "= ?")
}

/// A name stands beside its address: it has none of the marks that would turn the direction of both, or that nobody sees.
fn one_name(name: &str) -> String {
    let is_mark = |letter: &char| {
        matches!(letter,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    one_line(&name.chars().filter(|letter| !is_mark(letter)).collect::<String>())
}

fn system_time(timestamp: Timestamp) -> SystemTime {
    let seconds = u64::try_from(timestamp.seconds()).expect("business time is after 1970");
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}
