//! Mails to customers, and to merchants of what they have to know: owed in the transaction of what they are about, written when
//! they are sent, so that they say what is true then, and repeated until the mail server has them or refuses them for good.

mod held;

pub use held::{HeldMail, LEASE};

use std::time::Duration;

use domain::invoice::{Invoice, Status};
use domain::mail::{Mail, MailAttempted, MailKind, MailStatus};
use domain::payment::Transaction;
use domain::receipt::Receipt;
use domain::webhook::WebhookEndpoint;
use domain::{Id, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::mails::{self, ClaimedMail};

use super::documents::{self, Asker, File, Reader, Subject, Wanted};
use super::{App, Context, invoices, look_up, organization_of, receipts};
use crate::error::Failure;
use crate::letters::{EndpointLetter, InvoiceLetter, Letter, ReceiptLetter};
use crate::mail::{Attachment, Finality, LastLine, Mailer, Message, SendFault, Step, is_mailable};
use crate::metrics;

/// Mails about one object within a time: more than that tells nobody anything.
const MOST_OF_OBJECT: usize = 10;
const RECENTLY: Duration = Duration::from_secs(600);
/// Of what a mail is about, which may change each time while its file is made.
const MOST_READINGS: usize = 3;

/// In the transaction that would owe one more about an invoice, which is locked.
pub fn refuse_one_too_many(tx: &mut Tx<'_>, scope: Scope, invoice: Id<Invoice>) -> Result<(), Failure> {
    match full_until(tx, scope, &invoice.to_string())? {
        Some(until) => {
            // What is told in whole seconds is not told too early.
            let again_at = until.plus(Duration::from_micros(999_999)).floor_to_second();
            Err(Refusal::InvoiceAlreadySent { most: MOST_OF_OBJECT, again_at }.into())
        }
        None => Ok(()),
    }
}

/// From when on there may be one more, where there may be none now.
fn full_until(tx: &mut Tx<'_>, scope: Scope, object_id: &str) -> Result<Option<Timestamp>, Failure> {
    let newest = mails::newest_of_object(tx, scope, object_id, MOST_OF_OBJECT)?;
    let until = newest.get(MOST_OF_OBJECT - 1).map(|oldest| oldest.plus(RECENTLY));
    Ok(until.filter(|until| tx.now() < *until))
}

/// Owes a mail about an object to an address that mail can be sent to.
pub fn owe(tx: &mut Tx<'_>, scope: Scope, kind: MailKind, object_id: String, recipient: &str) -> Result<(), Failure> {
    assert!(is_mailable(recipient), "whoever owes a mail has looked at its address");
    let now = tx.now();
    let id = tx.entropy().id(now);
    Ok(mails::insert(tx, &Mail::owed(id, scope, kind, object_id, recipient.to_owned(), now))?)
}

/// A receipt goes to the customer by itself, where there is an address and a mail server.
pub fn owe_receipt(tx: &mut Tx<'_>, context: &Context, receipt: &Receipt) -> Result<(), Failure> {
    let recipient = &receipt.customer.email;
    if !context.sends_mail || !is_mailable(recipient) {
        return Ok(());
    }
    owe(tx, receipt.scope, MailKind::Receipt, receipt.id.to_string(), recipient)
}

/// The merchant hears of it where there is an address and a mail server: what isn't delivered any more is missed by nobody else.
/// The endpoint is locked.
pub fn owe_endpoint_disabled(tx: &mut Tx<'_>, context: &Context, endpoint: &WebhookEndpoint) -> Result<(), Failure> {
    assert!(!endpoint.is_active(), "an endpoint to which nothing is sent any more");
    let (scope, object_id) = (endpoint.scope, endpoint.id.to_string());
    if !context.sends_mail || full_until(tx, scope, &object_id)?.is_some() {
        return Ok(());
    }
    let organization = organization_of(tx, scope)?;
    match organization.profile.email.as_deref().filter(|email| is_mailable(email)) {
        Some(email) => owe(tx, scope, MailKind::EndpointDisabled, object_id, email),
        None => Ok(()),
    }
}

/// Stores what an attempt brought: sent, again later, or given up. A holder that was overtaken stores nothing, unless the mail
/// server has the mail.
pub fn attempted(tx: &mut Tx<'_>, claimed: &ClaimedMail, outcome: &MailAttempted) -> Result<(), Failure> {
    let now = tx.now();
    let mut claimed = claimed.clone();
    let jitter = tx.entropy().below(2_001);
    claimed.mail.attempted(outcome, now, jitter);
    if !mails::finish(tx, &claimed)? {
        return Ok(());
    }
    match claimed.mail.kind {
        MailKind::Invoice | MailKind::EndpointDisabled => Ok(()),
        MailKind::Receipt => receipt_attempted(tx, &claimed.mail),
    }
}

fn receipt_attempted(tx: &mut Tx<'_>, mail: &Mail) -> Result<(), Failure> {
    let Some(mut receipt) = tx.find::<Receipt>(mail.scope, id_of(mail)?)? else { return Ok(()) };
    match mail.status {
        MailStatus::Pending => return Ok(()),
        MailStatus::Sent => receipt.emailed(tx.now()),
        MailStatus::Failed => receipt.email_failed(tx.now()),
    }
    Ok(tx.save(&mut receipt)?)
}

/// What a mail says, or why it is not worth sending any more.
enum Content {
    Ready(Box<Ready>),
    Pointless(&'static str),
}

struct Ready {
    letter: Letter,
    /// Whose file is attached.
    subject: Option<Subject>,
    language: &'static str,
    merchant: String,
    reply_to: Option<String>,
    /// To whom what it says now is to go: an address that was corrected since it was asked for gets it, and the one before does not.
    to: String,
    recipient: String,
}

fn content(tx: &mut Tx<'_>, context: &Context, mail: &Mail) -> Result<Content, Failure> {
    let (scope, now) = (mail.scope, tx.now());
    match mail.kind {
        MailKind::Invoice => {
            let invoice = look_up::<Invoice>(tx, scope, id_of(mail)?)?;
            if invoice.status(now) == Status::Cancelled {
                return Ok(Content::Pointless("the invoice was cancelled before the mail could be sent"));
            }
            let refunded = receipts::refunded(tx, &invoice)?.map(|(amount, _)| amount);
            if refunded == Some(invoice.total()) {
                return Ok(Content::Pointless(
                    "all that was paid for the invoice went back before the mail could be sent",
                ));
            }
            if !is_mailable(&invoice.customer.email) {
                return Ok(Content::Pointless("the invoice names no address any more to which mail can be sent"));
            }
            let organization = organization_of(tx, scope)?;
            let merchant = &organization.profile;
            let pay_url = invoices::pay_address(context, &organization, &invoice, now);
            let letter = InvoiceLetter::of(&invoice, merchant, refunded, pay_url, now).write();
            let subject = Some(Subject::Invoice(invoice.id));
            Ok(Content::Ready(Box::new(Ready {
                letter,
                subject,
                language: merchant.locale.as_str(),
                merchant: merchant.name.clone(),
                reply_to: merchant.email.clone(),
                to: invoice.customer.email,
                recipient: invoice.customer.name,
            })))
        }
        MailKind::Receipt => {
            let receipt = look_up::<Receipt>(tx, scope, id_of(mail)?)?;
            let invoice = look_up::<Invoice>(tx, scope, receipt.invoice)?;
            let organization = organization_of(tx, scope)?;
            let pay_url = invoices::pay_address(context, &organization, &invoice, now);
            let refunded = look_up::<Transaction>(tx, scope, receipt.transaction)?.refunded();
            let letter = ReceiptLetter::of(&receipt, &invoice, refunded, pay_url, now).write();
            let subject = Some(Subject::Receipt(receipt.id));
            Ok(Content::Ready(Box::new(Ready {
                letter,
                subject,
                language: receipt.merchant.locale.as_str(),
                merchant: receipt.merchant.name,
                reply_to: receipt.merchant.email,
                to: mail.recipient.clone(),
                recipient: receipt.customer.name,
            })))
        }
        MailKind::EndpointDisabled => {
            let endpoint = tx.peek::<WebhookEndpoint>(scope, id_of(mail)?)?.filter(|endpoint| !endpoint.is_active());
            let Some(endpoint) = endpoint else {
                return Ok(Content::Pointless(
                    "the endpoint was deleted or made active again before the mail was sent",
                ));
            };
            let organization = organization_of(tx, scope)?;
            let merchant = &organization.profile;
            let Some(letter) = EndpointLetter::of(&endpoint, merchant, &context.addresses.public_url) else {
                return Ok(Content::Pointless(
                    "the endpoint was made inactive by its merchant before the mail was sent",
                ));
            };
            Ok(Content::Ready(Box::new(Ready {
                letter: letter.write(),
                subject: None,
                language: merchant.locale.as_str(),
                merchant: merchant.name.clone(),
                reply_to: None,
                to: mail.recipient.clone(),
                recipient: merchant.name.clone(),
            })))
        }
    }
}

/// The same with what its file is to show, as both are at one moment.
fn content_with_file(tx: &mut Tx<'_>, context: &Context, mail: &Mail) -> Result<(Content, Option<Wanted>), Failure> {
    let content = content(tx, context, mail)?;
    let subject = match &content {
        Content::Ready(ready) => ready.subject,
        Content::Pointless(_) => None,
    };
    let wanted = match subject {
        Some(subject) => Some(documents::wanted(tx, context, mail.scope, subject, Reader::Party)?),
        None => None,
    };
    Ok((content, wanted))
}

fn id_of<T: domain::Object>(mail: &Mail) -> Result<domain::Id<T>, Failure> {
    mail.object_id.parse().map_err(|_| Failure::Broken(format!("the mail {} is about no {}", mail.id, T::NOUN)))
}

impl App {
    /// One attempt to send a mail that this worker holds, outside any transaction.
    pub async fn send_mail(&self, mailer: &Mailer, mut held: HeldMail) -> Result<(), Failure> {
        let Some(outcome) = self.attempt_mail(mailer, &mut held).await else {
            tracing::warn!(mail = %held.mail().id, "a mail is left to the next claim, which may be another worker's");
            return Ok(());
        };
        held.store(self, outcome).await
    }

    /// A letter and its file, of one reading. What changed while the file was made is in neither, so both are made anew, and
    /// what became pointless meanwhile is not sent.
    async fn letter(&self, mail: &Mail) -> Result<Result<(Ready, Option<File>), &'static str>, Failure> {
        let (mut made, mut readings) = (None::<(String, File)>, 0);
        loop {
            readings += 1;
            let about = mail.clone();
            let (content, wanted) = self.read(move |tx, context| content_with_file(tx, context, &about)).await?;
            let ready = match content {
                Content::Ready(ready) => *ready,
                Content::Pointless(why) => return Ok(Err(why)),
            };
            let Some(wanted) = wanted else { return Ok(Ok((ready, None))) };
            let edition = wanted.edition.clone();
            let file = match made.take() {
                Some((of, file)) if of == edition => return Ok(Ok((ready, Some(file)))),
                Some(_) | None => self.file(Asker::Worker, mail.scope, wanted).await?,
            };
            if readings == MOST_READINGS {
                return Ok(Ok((ready, Some(file))));
            }
            made = Some((edition, file));
        }
    }

    async fn message(&self, mail: &Mail) -> Result<Result<Message, &'static str>, Failure> {
        let (ready, file) = match self.letter(mail).await? {
            Ok(letter) => letter,
            Err(why) => return Ok(Err(why)),
        };
        let attach =
            |file: File| Attachment { name: file.name, media_type: "application/pdf", bytes: file.bytes.into() };
        let attachments = file.map(attach).into_iter().collect();
        let Letter { subject, text, html } = ready.letter;
        Ok(Ok(Message {
            id: mail.id.to_string(),
            from_name: Some(ready.merchant),
            reply_to: ready.reply_to,
            to: ready.to,
            to_name: Some(ready.recipient),
            subject,
            text,
            html,
            language: ready.language,
            date: mail.created_at,
            attachments,
        }))
    }

    /// Nothing where the mail is not this worker's any more, and the mail server does not have it.
    async fn attempt_mail(&self, mailer: &Mailer, held: &mut HeldMail) -> Option<MailAttempted> {
        let (mail, last_line) = (held.mail().clone(), LastLine::default());
        if mail.is_spent() {
            tracing::warn!(mail = %mail.id, object = mail.object_id, "a mail was sent as often as it may be");
            return Some(MailAttempted::Spent);
        }
        let message = match held.during(self, &last_line, self.message(&mail)).await? {
            Ok(Ok(message)) => message,
            Ok(Err(why)) => return Some(MailAttempted::Refused { error: why.to_owned() }),
            Err(failure) => {
                tracing::error!(mail = %mail.id, %failure, "a mail can't be written");
                let error = "the mail could not be written; the log says why".into();
                return Some(MailAttempted::Failed { error, may_have_arrived: false });
            }
        };
        let attempt = mail.attempts + 1;
        let sent = match held.during(self, &last_line, mailer.approach(&message)).await? {
            Ok(approached) => {
                // What a machine does that stood still until here would be done once more. And a server that could not be reached
                // has no mail that would have to be counted.
                if !held.begin(self).await {
                    return None;
                }
                let Some(sent) = held.during(self, &last_line, approached.hand_over(&last_line)).await else {
                    // Broken off before its last line. Whoever has the mail by now has it counted as sent; nobody else may.
                    tracing::warn!(mail = %mail.id, attempt, "a mail is not sent, because another worker may have it");
                    let error = "the database did not say in time whose the mail was".into();
                    return Some(MailAttempted::Failed { error, may_have_arrived: false });
                };
                sent
            }
            Err(fault) => Err(fault),
        };
        let has_worked = sent.as_ref().map_or_else(SendFault::has_server_worked, |()| Some(true));
        if let Some(has_worked) = has_worked {
            metrics::mail_server_spoken_to(self.store().wall_time(), has_worked);
        }
        Some(match sent {
            Ok(()) => {
                tracing::info!(mail = %mail.id, object = mail.object_id, attempt, "a mail was sent");
                MailAttempted::Accepted
            }
            Err(fault) => {
                let why = fault.without_words();
                tracing::warn!(mail = %mail.id, object = mail.object_id, attempt, why, "a mail was not sent");
                match fault.finality {
                    Finality::ForGood => MailAttempted::Refused { error: fault.to_string() },
                    Finality::ForNow => {
                        let may_have_arrived = fault.step == Step::Answer;
                        MailAttempted::Failed { error: fault.to_string(), may_have_arrived }
                    }
                }
            }
        })
    }
}
