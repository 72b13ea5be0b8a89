//! Money for an invoice that changed hands elsewhere, as the merchant records it.

use domain::invoice::Invoice;
use domain::ledger::Entry;
use domain::payment::{Payable, Recording, Transaction};
use domain::{Id, Money, OfflineMethod, Scope};
use store::Tx;
use store::queries::ledger;

use super::{Billed, billed, close_session, observe, watch};
use crate::app::{Context, load, publish, receipts};
use crate::error::Failure;

#[derive(Debug, Clone)]
pub struct NewPayment {
    pub amount: Money,
    pub method: OfflineMethod,
    /// The merchant's own name for it.
    pub transaction_id: Option<String>,
    pub notes: Option<String>,
}

pub fn record_payment(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    id: Id<Invoice>,
    new: &NewPayment,
    recorded_by: &str,
) -> Result<Billed, Failure> {
    let mut invoice = load::<Invoice>(tx, scope, id)?;
    observe(tx, context, &mut invoice)?;
    let now = invoice.clock(tx.now());
    let event = invoice.record(new.amount, now)?;
    if !domain::planted!(Defect::RecordingKeepsSession) {
        close_session(tx, &mut invoice)?;
    }
    let recording = Recording {
        method: new.method,
        reference: new.transaction_id.clone(),
        recorded_by: Some(recorded_by.to_owned()),
    };
    let transaction_id = tx.entropy().id(now);
    let payable = Payable::Invoice(id);
    let mut transaction =
        Transaction::recorded(transaction_id, scope, payable, recording, new.amount, invoice.payer(), now);
    let entry = Entry::offline_recorded(tx.entropy().id(now), &transaction);
    tx.insert(&mut transaction)?;
    ledger::append(tx, scope, &entry, now)?;
    receipts::issue(tx, context, &mut invoice, &transaction, new.notes.clone())?;
    publish::invoice_event(tx, context, &mut invoice, event)?;
    watch(tx, &invoice)?;
    tx.save(&mut invoice)?;
    billed(tx, invoice)
}
