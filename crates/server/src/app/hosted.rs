//! What a hosted page needs to know of what is paid there, in one read, and the two commands that only a page has.
//!
//! A page has no credential: the object's id is all that its reader brings, and where many pay one object the id of the
//! payment. How anything looks is `pages`' to say.

use std::sync::Arc;

use domain::checkout::{self, Checkout};
use domain::invoice::{self, Invoice, InvoicePayment};
use domain::organization::Organization;
use domain::payment::{Payable, PaymentSession, SessionStatus, Step, Transaction, TransactionStatus};
use domain::payment_link::{self, FieldType, PaymentLink};
use domain::simulator::SimulatedPayment;
use domain::{Id, Metadata, Method, Mode, Money, Msisdn, Refusal, Scope, Timestamp, return_address};
use store::Tx;
use store::queries::{invoice_payments, locate, transactions};

use super::paid_object::PaidObject;
use super::payments::{self, Initialize, Target};
use super::sessions::{self, Payment};
use super::{Context, checkouts, load, organization_of};
use crate::error::Failure;

/// Which page: of an object, or of one of the many payments of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub payable: Payable,
    pub session: Option<Id<PaymentSession>>,
}

impl Place {
    /// What everything that belongs to this page is bound to.
    pub fn id(&self) -> String {
        self.session.map_or_else(|| self.payable.object_id(), |session| session.to_string())
    }

    /// What a payer who begins or goes on here is paying.
    pub fn target(&self) -> Target {
        self.session.map_or(Target::Object(self.payable), Target::Session)
    }
}

#[derive(Debug, Clone)]
pub struct Hosted {
    pub object: PaidObject,
    pub organization: Arc<Organization>,
    /// The methods that a payer can choose, in the page's order.
    pub methods: Vec<Method>,
    /// The page's own session, or the one that was opened last.
    pub payment: Option<Payment>,
    /// Every attempt that was handed to a rail, oldest first. Where many pay, those of this page's payer.
    pub attempts: Vec<Transaction>,
    /// Money that its merchant recorded by hand, oldest first: nobody's attempt.
    pub recorded: Vec<Transaction>,
    /// What an invoice was paid by, on its page or elsewhere, in the order in which it came.
    pub received: Vec<InvoicePayment>,
    /// Test mode: the far side of the current attempt.
    pub simulated: Option<SimulatedPayment>,
    /// The one clock reading by which the page is drawn.
    pub now: Timestamp,
}

/// How what is paid stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its merchant is still writing it.
    Draft,
    /// It waits for money.
    Open,
    Paid,
    Expired,
    Cancelled,
    /// Nobody can begin to pay it any more.
    Closed(Closed),
}

/// Why a payment link takes no more payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    ByMerchant,
    Expired,
    UsedUp,
}

impl Hosted {
    pub fn scope(&self) -> Scope {
        self.object.scope()
    }

    pub fn session(&self) -> Option<&PaymentSession> {
        self.payment.as_ref().map(|payment| &payment.session)
    }

    pub fn standing(&self) -> Standing {
        match &self.object {
            PaidObject::Checkout(checkout) => match checkout.status(self.now) {
                checkout::Status::Pending => Standing::Open,
                checkout::Status::Completed => Standing::Paid,
                checkout::Status::Expired => Standing::Expired,
                checkout::Status::Cancelled => Standing::Cancelled,
            },
            PaidObject::Invoice(invoice) => match invoice.status(self.now) {
                invoice::Status::Draft => Standing::Draft,
                invoice::Status::Pending | invoice::Status::PartiallyPaid | invoice::Status::Overdue => Standing::Open,
                invoice::Status::Paid => Standing::Paid,
                invoice::Status::Cancelled => Standing::Cancelled,
            },
            PaidObject::PaymentLink(link) => match self.session().map(PaymentSession::status) {
                Some(SessionStatus::Succeeded) => Standing::Paid,
                // They are done, whatever else they have begun.
                Some(_) if self.is_paid_before() => Standing::Paid,
                // What was begun goes on, whatever became of the link.
                Some(SessionStatus::Pending | SessionStatus::Processing) if self.is_begun() => Standing::Open,
                Some(
                    SessionStatus::Pending
                    | SessionStatus::Processing
                    | SessionStatus::Failed
                    | SessionStatus::Cancelled,
                )
                | None => self.standing_of(link),
            },
        }
    }

    fn standing_of(&self, link: &PaymentLink) -> Standing {
        let terms = link.terms();
        match link.status(self.now) {
            payment_link::Status::Active => Standing::Open,
            payment_link::Status::Inactive | payment_link::Status::Deleted => {
                Standing::Closed(if terms.max_usage_count.is_some_and(|most| link.usage_count() >= most) {
                    Closed::UsedUp
                } else if terms.expiration_date.is_some_and(|end| end <= self.now) {
                    Closed::Expired
                } else {
                    Closed::ByMerchant
                })
            }
        }
    }

    /// Of an invoice: whether it has never counted. Nobody but its merchant knows it then, also when it is cancelled.
    pub fn is_unissued(&self) -> bool {
        matches!(&self.object, PaidObject::Invoice(invoice) if invoice.issued_date().is_none())
    }

    /// The page on which the payer of this one goes on, who gave it up for another payment and has not paid by it after all.
    pub fn successor(&self) -> Option<Place> {
        let session = self.session().filter(|session| session.status() != SessionStatus::Succeeded)?;
        match self.object {
            PaidObject::PaymentLink(_) => Some(Place { payable: session.payable, session: Some(session.replaced_by?) }),
            PaidObject::Checkout(_) | PaidObject::Invoice(_) => None,
        }
    }

    fn is_begun(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.transaction.is_some())
    }

    /// Whether another payment may begin here. What was begun goes on without, whatever became of its link.
    pub fn takes_payments(&self) -> bool {
        self.object.refuse_unless_payable(false, self.now).is_ok()
    }

    /// Whether a payer may pay less than what is left.
    pub fn takes_parts(&self) -> bool {
        match &self.object {
            PaidObject::Invoice(invoice) => {
                self.organization.payments.allow_partial_payments
                    && self.standing() == Standing::Open
                    && invoice.takes_parts()
                    && invoice.remaining().minor > 1
            }
            PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => false,
        }
    }

    /// What an invoice asks for: all that is left, or the part of it for which its merchant has opened a payment that nobody
    /// has begun.
    pub fn due(&self) -> Option<Money> {
        let PaidObject::Invoice(invoice) = &self.object else { return None };
        let remaining = invoice.remaining();
        let is_part = |session: &&PaymentSession| {
            let is_open = session.status() == SessionStatus::Pending && !self.is_begun();
            is_open && session.amount.minor < remaining.minor && self.takes_parts()
        };
        Some(self.session().filter(is_part).map_or(remaining, |session| session.amount))
    }

    /// What the page is about: what is being paid now, or what was. Nothing where the payer has yet to choose, and of what was
    /// never issued: a draft may still become anything.
    pub fn amount(&self) -> Option<Money> {
        let begun = self.session().filter(|session| {
            self.is_begun() && matches!(session.status(), SessionStatus::Pending | SessionStatus::Processing)
        });
        match &self.object {
            PaidObject::Checkout(checkout) => Some(checkout.order.amount),
            PaidObject::Invoice(_) if self.is_unissued() => None,
            PaidObject::Invoice(invoice) => match (self.standing(), begun) {
                (Standing::Open, Some(session)) => Some(session.amount),
                (Standing::Open, None) => self.due(),
                (
                    Standing::Draft | Standing::Paid | Standing::Expired | Standing::Cancelled | Standing::Closed(_),
                    _,
                ) => Some(invoice.total()),
            },
            PaidObject::PaymentLink(link) => self.session().map(|session| session.amount).or(match link.price() {
                payment_link::Price::Fixed { amount } => Some(*amount),
                payment_link::Price::Variable { .. } => None,
            }),
        }
    }

    /// The payer's phone as the merchant told it, or the payer with this payment.
    pub fn told_phone(&self) -> Option<Msisdn> {
        self.object.payer(self.session()).phone
    }

    pub fn told_email(&self) -> Option<String> {
        self.object.payer(self.session()).email
    }

    /// Where the payer goes when it is paid.
    pub fn success_address(&self) -> Option<String> {
        let of_session = self.session().and_then(|session| session.success_url.as_deref());
        let url = match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.success_url.as_deref().or(of_session),
            PaidObject::Invoice(_) => of_session,
            // What is said of one of many payments goes before what is said of all.
            PaidObject::PaymentLink(link) => of_session.or(link.terms().success_url.as_deref()),
        };
        self.back(url, self.paying_session())
    }

    /// Where the payer goes who leaves unpaid: nowhere as long as nobody knows that, for they would pay again there.
    pub fn failure_address(&self) -> Option<String> {
        if self.unsettled().is_some() {
            return None;
        }
        let of_session = self.session().and_then(|session| session.failure_url.as_deref());
        let url = match &self.object {
            PaidObject::Checkout(checkout) => checkout.order.failure_url.as_deref().or(of_session),
            PaidObject::Invoice(_) => of_session,
            PaidObject::PaymentLink(link) => of_session.or(link.terms().failure_url.as_deref()),
        };
        self.back(url, self.session().map(|session| session.id))
    }

    /// The one that brought the money last; a payer who switched the method may have paid by the first one.
    fn paying_session(&self) -> Option<Id<PaymentSession>> {
        let current = self.session().map(|session| session.id);
        match &self.object {
            PaidObject::Checkout(checkout) => checkout.shown_session(),
            PaidObject::Invoice(_) => {
                let paid = self.is_paid_by().filter(|attempt| !attempt.duplicate).last();
                paid.and_then(|paid| paid.summary().session).or(current)
            }
            PaidObject::PaymentLink(_) => self.paid().and_then(|paid| paid.summary().session).or(current),
        }
    }

    fn back(&self, url: Option<&str>, session: Option<Id<PaymentSession>>) -> Option<String> {
        let checkout = match &self.object {
            PaidObject::Checkout(checkout) => Some(checkout.id),
            PaidObject::Invoice(_) | PaidObject::PaymentLink(_) => None,
        };
        url.map(|url| return_address(url, checkout, session))
    }

    /// An attempt of which no final word is known: money may still move.
    pub fn unsettled(&self) -> Option<&Transaction> {
        self.attempts.iter().rev().find(|attempt| attempt.step() != Step::Settled)
    }

    pub fn is_paid_by(&self) -> impl Iterator<Item = &Transaction> {
        self.attempts.iter().filter(|attempt| attempt.status().is_paid())
    }

    /// All money that came, by an attempt or by hand.
    pub fn came(&self) -> impl Iterator<Item = &Transaction> {
        self.is_paid_by().chain(&self.recorded)
    }

    /// The attempt that paid.
    pub fn paid(&self) -> Option<&Transaction> {
        match &self.object {
            PaidObject::Checkout(_) | PaidObject::Invoice(_) => self.is_paid_by().find(|attempt| !attempt.duplicate),
            // What its payer had given up counts as late; and what went back, as if it had not come.
            PaidObject::PaymentLink(_) => {
                self.is_paid_by().min_by_key(|attempt| (attempt.status() == TransactionStatus::Refunded, attempt.late))
            }
        }
    }

    /// Those that brought the payer's money once more.
    pub fn paid_more(&self) -> impl Iterator<Item = &Transaction> {
        let paid = self.paid().map(|paid| paid.id);
        self.is_paid_by().filter(move |attempt| match &self.object {
            PaidObject::Checkout(_) | PaidObject::Invoice(_) => attempt.duplicate,
            PaidObject::PaymentLink(_) => Some(attempt.id) != paid,
        })
    }

    /// Whether money of a link came when the time of its payment was over: others may have paid all that there was by then.
    /// What its payer gave up for another method, and paid all the same, is a payment like any as long as that other one could be paid.
    pub fn is_after_its_time(&self, paid: &Transaction) -> bool {
        let is_of_link = matches!(self.object, PaidObject::PaymentLink(_));
        let came = paid.reached(TransactionStatus::Completed);
        let was_over = |over: Timestamp| came.is_none_or(|came| over <= came);
        // What ran out before it was begun says nothing of its time.
        let since = self.attempts.iter().skip_while(|attempt| attempt.id != paid.id);
        let mut ends = since.filter_map(|attempt| attempt.reached(TransactionStatus::Expired));
        is_of_link && paid.late && ends.any(was_over)
    }

    /// Of one of many payments: whether its payer has paid by another one, which they had given up for it.
    pub fn is_paid_before(&self) -> bool {
        let own = self.session().and_then(|session| session.transaction);
        matches!(self.object, PaidObject::PaymentLink(_)) && self.is_paid_by().any(|attempt| Some(attempt.id) != own)
    }
}

pub fn look_up_hosted(tx: &mut Tx<'_>, context: &Context, place: Place) -> Result<Hosted, Failure> {
    let Place { payable, session } = place;
    let scope = scope_of(tx, payable)?;
    let object = PaidObject::look_up(tx, scope, payable)?;
    let organization = organization_of(tx, scope)?;
    let payment = match object.session_for(place.target()) {
        Some(session) => Some(sessions::look_up_payment(tx, scope, session)?),
        None => None,
    };
    let is_of_another = |payment: &Payment| payment.session.payable != payable;
    let is_gone =
        matches!(&object, PaidObject::PaymentLink(link) if session.is_none() && link.refuse_if_deleted().is_err());
    if payment.as_ref().is_some_and(is_of_another) || is_gone {
        return Err(not_found(payable).into());
    }
    let current = payment.as_ref().and_then(|payment| payment.transaction.clone());
    let simulated = match &current {
        Some(transaction) if scope.mode == Mode::Test => tx.peek::<SimulatedPayment>(scope, transaction.id)?,
        Some(_) | None => None,
    };
    let found = match (payable, &payment) {
        (Payable::Checkout(_) | Payable::Invoice(_), _) => transactions::of_object(tx, scope, &payable.object_id())?,
        (Payable::PaymentLink(_), Some(payment)) => attempts_of(tx, scope, payment)?,
        (Payable::PaymentLink(_), None) => Vec::new(),
    };
    let (recorded, attempts) = found.into_iter().partition(Transaction::is_recorded);
    let received = match &object {
        PaidObject::Invoice(invoice) if !invoice.receipts().is_empty() => {
            invoice_payments::of_invoice(tx, scope, invoice.id)?
        }
        PaidObject::Invoice(_) | PaidObject::Checkout(_) | PaidObject::PaymentLink(_) => Vec::new(),
    };
    Ok(Hosted {
        methods: Method::ALL.into_iter().filter(|method| object.offers(*method, context, &organization)).collect(),
        organization,
        attempts,
        recorded,
        received,
        now: tx.now(),
        object,
        payment,
        simulated,
    })
}

/// Of one of many payments and of those that its payer gave up for it, by which money may still come. Those of others are
/// nobody's business here.
fn attempts_of(tx: &mut Tx<'_>, scope: Scope, payment: &Payment) -> Result<Vec<Transaction>, Failure> {
    let mut attempts: Vec<_> = payment.transaction.iter().cloned().collect();
    let mut replaced = payment.session.replaces;
    for _ in 0..sessions::MOST_REPLACED {
        let Some(id) = replaced else { break };
        let before = sessions::look_up_payment(tx, scope, id)?;
        replaced = before.session.replaces;
        attempts.extend(before.transaction);
    }
    attempts.reverse();
    Ok(attempts)
}

fn scope_of(tx: &mut Tx<'_>, payable: Payable) -> Result<Scope, Failure> {
    let scope = match payable {
        Payable::Checkout(id) => locate::checkout(tx, id)?,
        Payable::Invoice(id) => locate::invoice(tx, id)?,
        Payable::PaymentLink(id) => locate::payment_link(tx, id)?,
    };
    Ok(scope.ok_or_else(|| not_found(payable))?)
}

fn not_found(payable: Payable) -> Refusal {
    match payable {
        Payable::Checkout(_) => Refusal::not_found::<Checkout>(),
        Payable::Invoice(_) => Refusal::not_found::<Invoice>(),
        Payable::PaymentLink(_) => Refusal::not_found::<PaymentLink>(),
    }
}

impl Hosted {
    /// What opens another payment in the place of one of many that is over unpaid, with all that its payer has told.
    pub fn anew(&self) -> Option<Initialize> {
        let PaidObject::PaymentLink(link) = &self.object else { return None };
        let session = self.session().filter(|session| match session.status() {
            SessionStatus::Failed | SessionStatus::Cancelled => true,
            SessionStatus::Pending | SessionStatus::Processing | SessionStatus::Succeeded => false,
        })?;
        let (metadata, answers) = told(link, &session.metadata);
        Some(Initialize {
            amount: Some(session.amount),
            payer: session.payer.clone(),
            metadata: Some(metadata),
            answers,
            success_url: session.success_url.clone(),
            failure_url: session.failure_url.clone(),
            replaces: Some(session.id),
            ..Initialize::of(Target::Object(Payable::PaymentLink(link.id)))
        })
    }
}

/// The metadata of a payment of a link, apart: what the merchant sent with it, and what the payer answered.
fn told(link: &PaymentLink, metadata: &Metadata) -> (Metadata, Metadata) {
    let questions = link.terms().custom_fields.as_deref().unwrap_or_default();
    let question = |name: &str| questions.iter().find(|question| question.name == name);
    let (answers, sent): (Vec<_>, Vec<_>) =
        metadata.members().into_iter().partition(|(name, _)| question(name).is_some());
    let answers = answers.into_iter().map(|(name, json)| match (question(&name).map(|it| it.kind), json.as_str()) {
        (Some(FieldType::Checkbox), "\"true\"") => (name, "true".to_owned()),
        (Some(FieldType::Checkbox), "\"false\"") => (name, "false".to_owned()),
        _ => (name, json),
    });
    (Metadata::of_members(sent), Metadata::of_members(answers))
}

/// The payer leaves: a checkout is cancelled by it, unless they may have paid it, and of anything else what was begun is closed. While an
/// attempt is with its rail only the merchant may. `shown` is the payment from which the payer leaves, where that is known.
pub fn leave(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    place: Place,
    shown: Option<Id<PaymentSession>>,
) -> Result<(), Failure> {
    match place.payable {
        Payable::Checkout(id) => {
            let checkout = load::<Checkout>(tx, scope, id)?;
            refuse_another(shown, checkout.payment_session)?;
            // Also what they gave up may have been paid.
            let attempts = transactions::of_object(tx, scope, &place.payable.object_id())?;
            if attempts.iter().any(|attempt| attempt.step() != Step::Settled) {
                return Err(Refusal::PaymentInProgress.into());
            }
            checkouts::cancel(tx, context, scope, id).map(drop)
        }
        Payable::Invoice(_) | Payable::PaymentLink(_) => choose_again(tx, scope, place, shown),
    }
}

/// The payer wants to choose again: what was begun and is not with its rail is closed.
pub fn choose_again(
    tx: &mut Tx<'_>,
    scope: Scope,
    place: Place,
    shown: Option<Id<PaymentSession>>,
) -> Result<(), Failure> {
    let mut object = PaidObject::load(tx, scope, place.payable)?;
    object.refuse_unless_payable(false, tx.now())?;
    let current = object.session_for(place.target());
    refuse_another(shown, current)?;
    let Some(session) = current else { return Ok(()) };
    let mut payment = sessions::load_payment(tx, scope, session)?;
    match payment.session.status() {
        SessionStatus::Processing => return Err(Refusal::PaymentInProgress.into()),
        SessionStatus::Pending if payment.transaction.is_some() => {}
        SessionStatus::Pending | SessionStatus::Succeeded | SessionStatus::Failed | SessionStatus::Cancelled => {
            return Ok(());
        }
    }
    // What readers were told, whether or not its timer came first.
    let is_expired = payment.session.has_expired(tx.now());
    payments::close(tx, &mut object, &mut payment, is_expired)?;
    object.save(tx)
}

/// What is said of the payment that a page showed is said of no other.
fn refuse_another(shown: Option<Id<PaymentSession>>, current: Option<Id<PaymentSession>>) -> Result<(), Refusal> {
    if shown.is_some() && shown != current { Err(Refusal::PaymentSessionClosed) } else { Ok(()) }
}
