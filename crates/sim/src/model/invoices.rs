//! Invoices (contract §2.4, §4.4): what they charge, who may change them, and what is paid of them.

use serde_json::{Value, json};

use super::{Answer, Attempt, AttemptState, DAY, Fields, Invoice, InvoiceState, Kind, SECOND, Side, Step, tax, text};

#[derive(Debug, Clone)]
pub struct NewInvoice {
    pub lines: Vec<(i64, i64)>,
    pub tax_rate: i64,
    pub due_at: i64,
    pub is_draft: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Change {
    pub lines: Option<Vec<(i64, i64)>>,
    pub tax_rate: Option<i64>,
    pub due_at: Option<i64>,
    pub notes: Option<String>,
    pub based_on: Option<i64>,
}

impl Side {
    pub fn create_invoice(&mut self, id: &str, new: NewInvoice, month: &str, now: i64) {
        let number = self.number("INV", month, 4);
        let mut invoice = Invoice {
            number,
            state: InvoiceState::Draft,
            lines: new.lines,
            tax_rate: new.tax_rate,
            notes: String::new(),
            due_at: new.due_at,
            issued_at: None,
            overdue_at: 0,
            paid: 0,
            late: 0,
            revision: 1,
            seen_at: now,
            session: None,
            held: None,
            receipts: Vec::new(),
            sent_at: Vec::new(),
        };
        self.tell(id, "invoice.created");
        if !new.is_draft {
            invoice.issue(now);
            self.tell(id, "invoice.finalized");
        }
        self.invoices.insert(id.to_owned(), invoice);
    }

    pub fn finalize_invoice(&mut self, id: &str, now: i64) -> Answer<()> {
        let invoice = self.invoices.get_mut(id).ok_or("invoice_not_found")?;
        if invoice.state != InvoiceState::Draft {
            return Err("invoice_not_draft");
        }
        let at = invoice.touch(now);
        invoice.issue(at);
        self.tell(id, "invoice.finalized");
        Ok(())
    }

    pub fn update_invoice(&mut self, id: &str, change: Change, now: i64) -> Answer<()> {
        let invoice = self.invoices.get_mut(id).ok_or("invoice_not_found")?;
        if !matches!(invoice.shown_state(now), InvoiceState::Draft | InvoiceState::Pending) {
            return Err("invoice_not_updatable");
        }
        if invoice.held.is_some() {
            return Err("payment_in_progress");
        }
        if change.based_on.is_some_and(|revision| revision != invoice.revision) {
            return Err("invoice_version_conflict");
        }
        let mut changed = invoice.clone();
        changed.lines = change.lines.unwrap_or(changed.lines);
        changed.tax_rate = change.tax_rate.unwrap_or(changed.tax_rate);
        changed.notes = change.notes.unwrap_or(changed.notes);
        if let Some(due_at) = change.due_at.filter(|due_at| *due_at != changed.due_at) {
            changed.due_at = due_at;
            let set_at = now.max(changed.seen_at);
            if let (InvoiceState::Pending, Some(issued_at)) = (changed.state, changed.issued_at) {
                changed.overdue_at = overdue_at(due_at, issued_at, set_at);
            }
        }
        let is_changed = (&changed.lines, changed.tax_rate, &changed.notes, changed.due_at)
            != (&invoice.lines, invoice.tax_rate, &invoice.notes, invoice.due_at);
        if !is_changed {
            return Ok(());
        }
        let is_other_amount = changed.total() != invoice.total();
        changed.touch(now);
        *invoice = changed;
        let session = invoice.session.clone();
        if is_other_amount {
            self.close_session_of_object(session.as_deref(), false, now);
        }
        self.tell(id, "invoice.updated");
        self.invoice_timer(id, now);
        Ok(())
    }

    pub fn cancel_invoice(&mut self, id: &str, now: i64) -> Answer<()> {
        let invoice = self.invoices.get(id).ok_or("invoice_not_found")?;
        match invoice.shown_state(now) {
            InvoiceState::Draft | InvoiceState::Pending | InvoiceState::Overdue => {}
            InvoiceState::PartiallyPaid => return Err("invoice_has_payments"),
            InvoiceState::Paid => return Err("invoice_already_paid"),
            InvoiceState::Cancelled => return Err("invoice_already_cancelled"),
        }
        if invoice.held.is_some() {
            return Err("payment_in_progress");
        }
        self.invoice_timer(id, now);
        let invoice = self.invoices.get_mut(id).expect("it was looked up");
        invoice.touch(now);
        invoice.state = InvoiceState::Cancelled;
        let session = invoice.session.clone();
        self.close_session_of_object(session.as_deref(), false, now);
        self.tell(id, "invoice.cancelled");
        Ok(())
    }

    pub fn send_invoice(&mut self, id: &str, now: i64) -> Answer<()> {
        let invoice = self.invoices.get(id).ok_or("invoice_not_found")?;
        invoice.refuse_if_closed(now)?;
        if !self.sends_mail {
            return Err("email_not_configured");
        }
        // Ten mails about one within ten minutes are enough.
        if invoice.sent_at.iter().rev().nth(9).is_some_and(|sent_at| now - sent_at < 600 * SECOND) {
            return Err("invoice_already_sent");
        }
        self.invoice_timer(id, now);
        let invoice = self.invoices.get_mut(id).expect("it was looked up");
        invoice.touch(now);
        invoice.sent_at.push(now);
        self.tell(id, "invoice.sent");
        Ok(())
    }

    pub fn refuse_recording(&self, id: &str, amount: i64, now: i64) -> Answer<()> {
        let invoice = self.invoices.get(id).ok_or("invoice_not_found")?;
        invoice.refuse_if_closed(now)?;
        let left = invoice.total() - invoice.paid;
        if amount > left {
            return Err("invoice_overpayment");
        }
        if amount > left - invoice.held.as_ref().map_or(0, |(_, held)| *held) {
            return Err("payment_in_progress");
        }
        Ok(())
    }

    /// `transaction` is the name that the recorded money got; it is learned from its receipt.
    pub fn record_payment(
        &mut self,
        id: &str,
        amount: i64,
        method: &'static str,
        transaction: &str,
        year: &str,
        now: i64,
    ) {
        self.invoice_timer(id, now);
        let event = self.take(id, amount, now);
        let session = self.invoices[id].session.clone();
        self.close_session_of_object(session.as_deref(), false, now);
        let attempt = Attempt {
            session: None,
            kind: Kind::Invoice,
            object: id.to_owned(),
            amount,
            fee: 0,
            method,
            state: AttemptState::Completed,
            step: Step::Settled,
            parked: None,
            is_late: false,
            is_duplicate: false,
            refunded: 0,
            refunding: 0,
        };
        self.attempts.insert(transaction.to_owned(), attempt);
        self.post("offline_received", amount);
        self.post("offline_sales", -amount);
        self.receipt(id, amount, year);
        self.tell(id, event);
    }

    fn take(&mut self, id: &str, amount: i64, now: i64) -> &'static str {
        let invoice = self.invoices.get_mut(id).expect("it is paid");
        invoice.touch(now);
        invoice.paid += amount;
        if invoice.paid == invoice.total() {
            invoice.state = InvoiceState::Paid;
            "invoice.paid"
        } else {
            invoice.state = InvoiceState::PartiallyPaid;
            "invoice.partially_paid"
        }
    }

    fn receipt(&mut self, id: &str, amount: i64, year: &str) {
        let number = self.number("RCT", year, 3);
        self.invoices.get_mut(id).expect("it is paid").receipts.push((number, amount));
    }

    /// An attempt of an invoice was paid.
    pub(super) fn invoice_money(&mut self, attempt_id: &str, session: &str, now: i64) {
        let (id, amount) = (self.attempts[attempt_id].object.clone(), self.attempts[attempt_id].amount);
        self.invoice_timer(&id, now);
        let rival = self.invoices[&id].session.clone().filter(|open| open != session);
        if self.invoices[&id].awaits_payment() {
            self.close_session_of_object(rival.as_deref(), false, now);
        }
        let invoice = self.invoices.get_mut(&id).expect("it is paid");
        if invoice.held.as_ref().is_some_and(|(held, _)| held == attempt_id) {
            invoice.held = None;
        }
        invoice.seen_at = invoice.seen_at.max(now);
        if invoice.state == InvoiceState::Cancelled {
            let is_second = invoice.late + amount > invoice.total();
            invoice.late += if is_second { 0 } else { amount };
            self.book(attempt_id, is_second, !is_second);
            self.tell(&id, "payment.succeeded");
            return;
        }
        if amount > invoice.total() - invoice.paid {
            self.book(attempt_id, true, false);
            self.tell(&id, "payment.succeeded");
            return;
        }
        let event = self.take(&id, amount, now);
        self.book(attempt_id, false, false);
        let year = year_of(now);
        self.receipt(&id, amount, &year);
        self.tell(&id, "payment.succeeded");
        self.tell(&id, event);
    }

    pub(super) fn observe_invoice(&mut self, id: &str, now: i64) -> bool {
        let Some(invoice) = self.invoices.get_mut(id) else { return false };
        if invoice.state != InvoiceState::Pending || invoice.shown_state(now) != InvoiceState::Overdue {
            return false;
        }
        invoice.touch(now);
        invoice.state = InvoiceState::Overdue;
        true
    }

    /// The timer of an invoice, and whoever looks at it before that does.
    pub fn invoice_timer(&mut self, id: &str, now: i64) {
        if self.observe_invoice(id, now) {
            self.tell(id, "invoice.overdue");
        }
    }

    pub fn invoice_fields(&self, id: &str, now: i64) -> Answer<Fields> {
        let invoice = self.invoices.get(id).ok_or("invoice_not_found")?;
        let state = invoice.shown_state(now);
        let payment_status = match state {
            InvoiceState::Draft | InvoiceState::Pending | InvoiceState::Overdue => "unpaid",
            InvoiceState::PartiallyPaid => "partial",
            InvoiceState::Paid => "paid",
            InvoiceState::Cancelled => "cancelled",
        };
        let receipts: Vec<Value> = invoice.receipts.iter().map(|(number, _)| json!(number)).collect();
        let sums: Vec<Value> = invoice.receipts.iter().map(|(_, amount)| json!(text(*amount))).collect();
        Ok(vec![
            ("id", json!(id)),
            ("invoice_number", json!(invoice.number)),
            ("status", json!(state.as_str())),
            ("payment_status", json!(payment_status)),
            ("amount", json!(text(invoice.net()))),
            ("tax_amount", json!(text(tax(invoice.net(), invoice.tax_rate)))),
            ("total_amount", json!(text(invoice.total()))),
            ("paid_amount", json!(text(invoice.paid))),
            ("remaining_amount", json!(text(invoice.total() - invoice.paid))),
            ("notes", json!(invoice.notes)),
            ("version", json!(invoice.revision)),
            ("receipts/*/receipt_number", Value::Array(receipts)),
            ("receipts/*/amount", Value::Array(sums)),
            ("livemode", json!(self.is_live)),
        ])
    }
}

pub(super) fn year_of(now: i64) -> String {
    domain::Timestamp::from_micros(now).to_text()[..4].to_owned()
}

pub(super) fn overdue_at(due_at: i64, issued_at: i64, set_at: i64) -> i64 {
    if due_at > set_at { due_at } else { due_at.max(issued_at + DAY) }
}

impl Invoice {
    pub fn net(&self) -> i64 {
        self.lines.iter().map(|(quantity, price)| quantity * price).sum()
    }

    pub fn total(&self) -> i64 {
        self.net() + tax(self.net(), self.tax_rate)
    }

    pub fn shown_state(&self, now: i64) -> InvoiceState {
        match self.state {
            InvoiceState::Pending if now.max(self.seen_at) >= self.overdue_at => InvoiceState::Overdue,
            state => state,
        }
    }

    pub fn awaits_payment(&self) -> bool {
        matches!(self.state, InvoiceState::Pending | InvoiceState::PartiallyPaid | InvoiceState::Overdue)
    }

    pub fn refuse_if_closed(&self, now: i64) -> Answer<()> {
        match self.shown_state(now) {
            InvoiceState::Pending | InvoiceState::PartiallyPaid | InvoiceState::Overdue => Ok(()),
            InvoiceState::Draft => Err("invoice_is_draft"),
            InvoiceState::Paid => Err("invoice_already_paid"),
            InvoiceState::Cancelled => Err("invoice_already_cancelled"),
        }
    }

    fn issue(&mut self, at: i64) {
        self.state = InvoiceState::Pending;
        self.issued_at = Some(at);
        self.overdue_at = overdue_at(self.due_at, at, at);
    }

    fn touch(&mut self, now: i64) -> i64 {
        self.seen_at = self.seen_at.max(now);
        self.revision += 1;
        self.seen_at
    }
}

impl InvoiceState {
    pub fn as_str(self) -> &'static str {
        match self {
            InvoiceState::Draft => "draft",
            InvoiceState::Pending => "pending",
            InvoiceState::PartiallyPaid => "partially_paid",
            InvoiceState::Overdue => "overdue",
            InvoiceState::Paid => "paid",
            InvoiceState::Cancelled => "cancelled",
        }
    }
}
