//! The object that is being paid, whichever it is, loaded. Each kind answers the same questions by its own rules: one
//! exhaustive match a question, so that the compiler names every place where a further kind has to answer.

use domain::checkout::{Checkout, Status};
use domain::event::EventType;
use domain::invoice::{self, Invoice};
use domain::job::Job;
use domain::organization::Organization;
use domain::payment::{
    Payable, Payer, PaymentSession, SESSION_LIFETIME, SessionStatus, Settlement, Transaction, TransactionSummary,
};
use domain::payment_link::{NotThePrice, PaymentLink};
use domain::{Currency, Id, Metadata, Method, Money, Refusal, Scope, Timestamp};
use store::Tx;
use store::queries::{jobs, payment_links as links, transactions};

use super::payments::{Initialize, Target};
use super::{Context, checkouts, invoices, load, look_up, payment_links, receipts};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

#[derive(Debug, Clone)]
pub enum PaidObject {
    Checkout(Checkout),
    Invoice(Invoice),
    PaymentLink(PaymentLink),
}

/// What money that arrived means for the object, and what happened to it thereby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    pub settlement: Settlement,
    pub event: Option<EventType>,
}

impl PaidObject {
    /// Locked for a change: the first lock of every command that moves a payment.
    pub fn load(tx: &mut Tx<'_>, scope: Scope, payable: Payable) -> Result<Self, Failure> {
        Ok(match payable {
            Payable::Checkout(id) => Self::Checkout(load(tx, scope, id)?),
            Payable::Invoice(id) => Self::Invoice(load(tx, scope, id)?),
            Payable::PaymentLink(id) => Self::PaymentLink(load(tx, scope, id)?),
        })
    }

    /// For reading; not locked.
    pub fn look_up(tx: &mut Tx<'_>, scope: Scope, payable: Payable) -> Result<Self, Failure> {
        Ok(match payable {
            Payable::Checkout(id) => Self::Checkout(look_up(tx, scope, id)?),
            Payable::Invoice(id) => Self::Invoice(look_up(tx, scope, id)?),
            Payable::PaymentLink(id) => Self::PaymentLink(look_up(tx, scope, id)?),
        })
    }

    pub fn save(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        match self {
            Self::Checkout(checkout) => tx.save(checkout)?,
            Self::Invoice(invoice) => tx.save(invoice)?,
            // Only money changes a link, and `settled` saves it then.
            Self::PaymentLink(_) => {}
        }
        Ok(())
    }

    pub fn payable(&self) -> Payable {
        match self {
            Self::Checkout(checkout) => Payable::Checkout(checkout.id),
            Self::Invoice(invoice) => Payable::Invoice(invoice.id),
            Self::PaymentLink(link) => Payable::PaymentLink(link.id),
        }
    }

    pub fn scope(&self) -> Scope {
        match self {
            Self::Checkout(checkout) => checkout.scope,
            Self::Invoice(invoice) => invoice.scope,
            Self::PaymentLink(link) => link.scope,
        }
    }

    /// The time for what happens to it next: what it has seen already does not become the future again (P9).
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Checkout(checkout) => checkout.clock(now),
            Self::Invoice(invoice) => invoice.clock(now),
            Self::PaymentLink(link) => link.clock(now),
        }
    }

    /// Whether a payment may begin, or go on, at `now`. `ends_attempt`: it is only the code of an attempt that began.
    pub fn refuse_unless_payable(&self, ends_attempt: bool, now: Timestamp) -> Result<(), Refusal> {
        match self {
            Self::Checkout(checkout) => checkout.payable(now),
            Self::Invoice(invoice) => invoice.payable(None, true, now).map(drop),
            // What began while the link was there has its use, whatever became of the link since.
            Self::PaymentLink(_) if ends_attempt => Ok(()),
            Self::PaymentLink(link) => link.payable(now),
        }
    }

    /// The session that a request goes on with: the one that was opened last, where one payer pays at a time; the one
    /// that the request names, where many do.
    pub fn session_for(&self, target: Target) -> Option<Id<PaymentSession>> {
        match (self, target) {
            (Self::Checkout(checkout), _) => checkout.payment_session,
            (Self::Invoice(invoice), _) => invoice.payment_session,
            (Self::PaymentLink(_), Target::Session(id)) => Some(id),
            (Self::PaymentLink(_), Target::Object(_)) => None,
        }
    }

    /// What a payment is for that asks for this amount, or for none.
    pub fn amount(&self, asked: Option<Money>, organization: &Organization, now: Timestamp) -> Result<Money, Failure> {
        let refuse = |code, message: String| Err(Fault::new("amount", code, message).into());
        match self {
            Self::Checkout(checkout) => {
                let whole = checkout.order.amount;
                if asked.is_none_or(|asked| asked == whole) {
                    return Ok(whole);
                }
                refuse(FaultCode::Conflict, format!("`amount` is {whole} for this checkout; leave it out."))
            }
            Self::Invoice(invoice) => Ok(invoice.payable(asked, organization.payments.allow_partial_payments, now)?),
            Self::PaymentLink(link) => link.price().of_payment(asked).or_else(|not| match not {
                NotThePrice::Other(price) => {
                    refuse(FaultCode::Conflict, format!("`amount` is {price} for this payment link; leave it out."))
                }
                NotThePrice::Missing => {
                    refuse(FaultCode::Required, "`amount` is required: the payer of this link chooses it.".into())
                }
                NotThePrice::TooLittle(least) => {
                    refuse(FaultCode::OutOfRange, format!("`amount` must be at least {least} for this payment link."))
                }
                NotThePrice::TooMuch(most) => {
                    refuse(FaultCode::OutOfRange, format!("`amount` must be at most {most} for this payment link."))
                }
            }),
        }
    }

    /// The method that the merchant chose, where no other is taken.
    pub fn fixed_method(&self) -> Option<Method> {
        match self {
            Self::Checkout(checkout) => checkout.order.fixed_method,
            Self::Invoice(_) | Self::PaymentLink(_) => None,
        }
    }

    pub fn offers(&self, method: Method, context: &Context, organization: &Organization) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.order.available_methods.contains(&method),
            Self::Invoice(_) | Self::PaymentLink(_) => {
                organization.payments.enabled_methods.contains(&method)
                    && context.takes(organization.mode, method, self.currency())
            }
        }
    }

    /// What it is paid in.
    pub fn currency(&self) -> Currency {
        match self {
            Self::Checkout(checkout) => checkout.order.amount.currency,
            Self::Invoice(invoice) => invoice.bill().currency(),
            Self::PaymentLink(link) => link.price().currency(),
        }
    }

    /// Who pays, as far as the merchant told; where many do, as the payer told with the session `before`. What was told with
    /// an open session of an invoice goes into the one that takes its place.
    pub fn payer(&self, before: Option<&PaymentSession>) -> Payer {
        match self {
            Self::Checkout(checkout) => checkouts::payer_of(checkout),
            Self::Invoice(invoice) => match before.filter(|before| before.refuse_if_closed().is_ok()) {
                Some(before) => before.payer.clone(),
                None => invoice.payer(),
            },
            Self::PaymentLink(_) => before.map(|before| before.payer.clone()).unwrap_or_default(),
        }
    }

    /// The metadata of a payment that `known` is known of so far; nothing after pushing what is wrong with the request's.
    pub fn metadata(
        &self,
        known: &Metadata,
        request: &Initialize,
        is_beginning: bool,
        faults: &mut Vec<Fault>,
    ) -> Option<Metadata> {
        let sent = request.metadata.as_ref();
        match self {
            Self::Checkout(_) | Self::Invoice(_) if request.answers == Metadata::default() => {
                Some(sent.unwrap_or(known).clone())
            }
            Self::Checkout(_) | Self::Invoice(_) => {
                let message = "`custom_field_values` belong to payment links; leave them out here.";
                faults.push(Fault::new("custom_field_values", FaultCode::NotAllowed, message));
                None
            }
            Self::PaymentLink(link) => {
                let questions = link.terms().custom_fields.as_deref().unwrap_or_default();
                payment_links::join(questions, known, sent, &request.answers, is_beginning, faults)
            }
        }
    }

    /// Until when a session that opens at `now` can be used.
    pub fn session_expires_at(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Checkout(checkout) => checkout.expires_at,
            Self::Invoice(_) => now.plus(SESSION_LIFETIME),
            Self::PaymentLink(link) => link.session_expires_at(now),
        }
    }

    pub fn session_opened(&mut self, session: Id<PaymentSession>, now: Timestamp) {
        match self {
            Self::Checkout(checkout) => checkout.session_opened(session, now),
            Self::Invoice(invoice) => invoice.session_opened(session, now),
            Self::PaymentLink(_) => {}
        }
    }

    /// Whether there is room for one more attempt. It is taken as soon as the attempt is committed.
    pub fn refuse_unless_room(&self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        match self {
            Self::Checkout(_) | Self::Invoice(_) => Ok(()),
            Self::PaymentLink(link) => {
                let open = match link.terms().max_usage_count {
                    Some(_) => links::open_attempts(tx, link.scope, link.id)?,
                    None => 0,
                };
                Ok(link.has_room(open, tx.now())?)
            }
        }
    }

    /// The attempt of a session moved. `with_provider` tells whether its outcome is open over there.
    pub fn attempt_moved(
        &mut self,
        session: Id<PaymentSession>,
        transaction: TransactionSummary,
        with_provider: bool,
        now: Timestamp,
    ) {
        match self {
            // What a session of before is still told of concerns the checkout as long as it shows that attempt.
            Self::Checkout(checkout)
                if checkout.payment_session != Some(session)
                    && checkout.transaction.as_ref().is_none_or(|shown| shown.id != transaction.id) => {}
            Self::Checkout(checkout) => checkout.attempt_moved(transaction, with_provider, now),
            Self::Invoice(invoice) => invoice.attempt_moved(transaction, with_provider, now),
            Self::PaymentLink(_) => {}
        }
    }

    /// Which attempt to pay it the one is that begins now. What many people pay counts none: each of them has their own.
    pub fn next_attempt(&self, tx: &mut Tx<'_>) -> Result<i64, Failure> {
        match self {
            Self::Checkout(checkout) => Ok(checkout.attempt_count + 1),
            Self::Invoice(invoice) => {
                Ok(transactions::attempts_of_object(tx, invoice.scope, &invoice.id.to_string())? + 1)
            }
            Self::PaymentLink(_) => Ok(1),
        }
    }

    /// Money of an attempt was paid back; whether the object shows it.
    pub fn refund_moved(&mut self, transaction: TransactionSummary, now: Timestamp) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.refund_moved(transaction, now),
            Self::Invoice(invoice) => invoice.refund_moved(transaction, now),
            Self::PaymentLink(_) => false,
        }
    }

    /// Whether somebody waits for a payment: what is paid, expired or cancelled does not hear of attempts that fail.
    pub fn awaits_payment(&self) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.stored_status() == Status::Pending,
            Self::Invoice(invoice) => match invoice.stored_status() {
                invoice::Status::Pending | invoice::Status::PartiallyPaid | invoice::Status::Overdue => true,
                invoice::Status::Draft | invoice::Status::Paid | invoice::Status::Cancelled => false,
            },
            Self::PaymentLink(_) => true,
        }
    }

    /// Whether a payment of so much that waits for its payer has its use.
    pub fn has_use_for(&self, amount: Money) -> bool {
        match self {
            Self::Checkout(_) => self.awaits_payment(),
            Self::Invoice(invoice) => self.awaits_payment() && amount.minor <= invoice.remaining().minor,
            // What began while the link was there goes on, whatever became of the link since.
            Self::PaymentLink(_) => true,
        }
    }

    /// Whether an attempt that is with its provider keeps it open beyond its time.
    pub fn is_held(&self) -> bool {
        match self {
            Self::Checkout(checkout) => checkout.attempt_with_provider(),
            Self::Invoice(_) | Self::PaymentLink(_) => false,
        }
    }

    /// What an attempt that failed is called, beside `payment.failed`.
    pub fn failed_event(&self) -> Option<EventType> {
        match self {
            Self::Invoice(_) => Some(EventType::InvoicePaymentFailed),
            Self::Checkout(_) | Self::PaymentLink(_) => None,
        }
    }

    /// Another session than this one that waits, or waited, for the same money.
    pub fn rival_of(&self, session: Id<PaymentSession>) -> Option<Id<PaymentSession>> {
        let latest = match self {
            Self::Checkout(checkout) => checkout.payment_session,
            Self::Invoice(invoice) => invoice.payment_session,
            Self::PaymentLink(_) => None,
        };
        latest.filter(|latest| *latest != session)
    }

    /// A provider confirmed an attempt, whose session was `before`: it is late or duplicate, or it pays. Call
    /// [`PaidObject::observe`] first.
    pub fn money_arrived(&mut self, transaction: &mut Transaction, before: SessionStatus, now: Timestamp) -> Arrived {
        let arrived = match self {
            Self::Checkout(checkout) => {
                let settlement = checkout.money_arrived(transaction.summary(), now);
                let event = (settlement == Settlement::Paid).then_some(EventType::CheckoutCompleted);
                Arrived { settlement, event }
            }
            Self::Invoice(invoice) => {
                let settlement = invoice.money_arrived(transaction.summary(), now);
                let event = (settlement == Settlement::Paid).then(|| invoice.settled_event());
                Arrived { settlement, event }
            }
            Self::PaymentLink(link) => {
                let was_given_up = before == SessionStatus::Cancelled;
                let settlement = if was_given_up { Settlement::Late } else { Settlement::Paid };
                Arrived { settlement, event: link.money_arrived(now) }
            }
        };
        transaction.late = arrived.settlement == Settlement::Late;
        transaction.duplicate = arrived.settlement == Settlement::Second;
        if let (Self::Invoice(invoice), true) = (self, transaction.duplicate) {
            // It shows the attempt that came last, whichever that is: of this one nobody takes a fee.
            invoice.transaction = Some(transaction.summary());
        }
        arrived
    }

    /// What is made for the payer of money that pays, before it is told.
    pub fn issue_receipt(
        &mut self,
        tx: &mut Tx<'_>,
        context: &Context,
        transaction: &Transaction,
    ) -> Result<(), Failure> {
        match self {
            Self::Invoice(invoice) => receipts::issue(tx, context, invoice, transaction, None).map(drop),
            Self::Checkout(_) | Self::PaymentLink(_) => Ok(()),
        }
    }

    /// What follows from money once it is told.
    pub fn settled(&mut self, tx: &mut Tx<'_>, settlement: Settlement) -> Result<(), Failure> {
        match self {
            Self::Checkout(checkout) if settlement == Settlement::Paid => {
                jobs::cancel(tx, Job::ExpireCheckout(checkout.id))?;
            }
            Self::Checkout(_) => {}
            Self::Invoice(invoice) => invoices::watch(tx, invoice)?,
            Self::PaymentLink(link) => {
                tx.save(link)?;
                payment_links::watch(tx, link)?;
            }
        }
        Ok(())
    }

    /// Stores what the clock has decided.
    pub fn observe(&mut self, now: Timestamp) -> Option<EventType> {
        match self {
            Self::Checkout(checkout) => checkout.observe(now),
            Self::Invoice(invoice) => invoice.observe(now),
            // Its own timer does, and what was begun before goes on.
            Self::PaymentLink(_) => None,
        }
    }
}
