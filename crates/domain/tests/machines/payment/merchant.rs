//! What the merchant and the clock do to what is paid; each function is one transaction, as in `commits`.

use domain::checkout;
use domain::event::EventType;
use domain::invoice::Invoice;
use domain::ledger::Entry;
use domain::payment::{Payable, Recording, Transaction};
use domain::{Money, OfflineMethod, Timestamp};

use super::object::{Object, issue_receipt};
use super::world::World;
use crate::sample::{id, scope};

impl World {
    pub(crate) fn cancel(&mut self) -> Option<()> {
        let now = self.now();
        let mut object = self.object.load();
        if let Object::Invoice(_) = object
            && let Some(event) = object.observe(now)
        {
            self.tell(&mut object, event);
        }
        let event = match &mut object {
            Object::Checkout(checkout) => checkout.cancel(now),
            Object::Invoice(invoice) => invoice.cancel(now),
        };
        let event = event.ok()?;
        self.close_session(&mut object);
        self.tell(&mut object, event);
        self.timer = None;
        self.object = object.save();
        Some(())
    }

    /// The object's timer: stores what readers were told already, or looks again later.
    pub(crate) fn timer(&mut self) -> Option<()> {
        let now = self.now();
        self.timer.filter(|due_at| *due_at <= now)?;
        let mut object = self.object.load();
        let observed = object.observe(now);
        self.timer = match (&object, observed) {
            (_, Some(_)) => None,
            (Object::Checkout(checkout), None) => {
                (checkout.status(now) == checkout::Status::Pending).then(|| checkout.next_deadline())
            }
            (Object::Invoice(invoice), None) => invoice.overdue_at(),
        };
        if let Some(event) = observed {
            if object.payable().ends_its_sessions()
                && let Some(session) = self.object.session()
            {
                let place = self.place(session);
                self.close(&mut object, place, true);
                self.withdraw(place);
            }
            self.tell(&mut object, event);
        }
        self.object = object.save();
        Some(())
    }

    /// The timer of a session whose object has none.
    pub(crate) fn session_timer(&mut self, place: usize) -> Option<()> {
        let (now, attempt) = (self.now(), &self.attempts[place]);
        if !attempt.has_timer || now < attempt.session.expires_at {
            return None;
        }
        if attempt.session.has_expired(now) {
            let mut object = self.object.load();
            self.close(&mut object, place, true);
            self.object = object.save();
        } else {
            let (mut session, transaction) = (attempt.session.load(), attempt.transaction.load());
            session.observe(now);
            self.attempts[place].save(session, transaction);
            self.withdraw(place);
        }
        self.attempts[place].has_timer = false;
        Some(())
    }

    /// What only an invoice knows: the merchant changes it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Invoice, Timestamp) -> Option<EventType>) -> Option<()> {
        let now = self.now();
        let Object::Invoice(mut invoice) = self.object.load() else { return None };
        let remaining = invoice.remaining();
        let event = change(&mut invoice, now)?;
        self.timer = invoice.overdue_at();
        let mut object = Object::Invoice(invoice);
        if let Object::Invoice(invoice) = &object
            && invoice.remaining() != remaining
        {
            self.close_session(&mut object);
        }
        self.tell(&mut object, event);
        self.object = object.save();
        Some(())
    }

    /// The merchant writes down money that changed hands elsewhere.
    pub(crate) fn record(&mut self, amount: Money) -> Option<()> {
        let now = self.now();
        if let Some(read) = self.merchant_read.take() {
            self.object = read;
        }
        let mut object = self.object.load();
        if let Some(event) = object.observe(now) {
            self.tell(&mut object, event);
        }
        let Object::Invoice(invoice) = &mut object else { return None };
        let event = invoice.record(amount, now).ok()?;
        let recording = Recording { method: OfflineMethod::Cash, reference: None, recorded_by: None };
        let payable = Payable::Invoice(invoice.id);
        let transaction = Transaction::recorded(id(90), scope(), payable, recording, amount, invoice.payer(), now);
        self.books.post(&Entry::offline_recorded(id(1), &transaction));
        self.close_session(&mut object);
        if let Object::Invoice(invoice) = &mut object {
            issue_receipt(invoice, amount, now);
            self.timer = invoice.overdue_at();
        }
        self.tell(&mut object, event);
        self.object = object.save();
        Some(())
    }
}
