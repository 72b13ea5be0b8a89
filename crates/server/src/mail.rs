//! The outbound rail for mail: a message goes to the operator's mail server, by SMTP.
//!
//! It translates; it decides nothing. Which mails are owed and when they are tried again is `domain::mail`'s to say.
//! SMTP confirms a message by the answer to its last line. When that answer is lost, nobody can tell whether it arrived:
//! it is sent again under the same Message-ID, by which receivers may drop the second one.

mod bounded;
mod fault;
mod line_by_line;
mod message;
mod settings;
mod smtp;

pub use fault::{Finality, MailFault, SendFault, Step};
pub use message::{Attachment, Message, is_answerable, is_mailable};
pub use settings::{MailSettings, Security};
pub use smtp::{Approached, LastLine, Mailer};

#[cfg(test)]
mod tests;
