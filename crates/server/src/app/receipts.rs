//! Receipts: issued with every payment of an invoice, and checked by whoever was given one.

use std::time::Duration;

use domain::invoice::{Invoice, InvoicePayment};
use domain::job::Job;
use domain::number::Series;
use domain::payment::{Source, Transaction};
use domain::receipt::{Receipt, ValidationCode};
use domain::{Money, Scope, Timestamp};
use store::Tx;
use store::queries::documents::{self, DocumentStates};
use store::queries::{counters, invoice_payments, jobs, locate, transactions};

use super::{Context, look_up, mails, organization_of};
use crate::error::Failure;

/// For money that `invoice` has just taken, in the same transaction: the payment and its receipt. The number is locked
/// until the end, so that nothing is locked after this.
pub fn issue(
    tx: &mut Tx<'_>,
    context: &Context,
    invoice: &mut Invoice,
    transaction: &Transaction,
    notes: Option<String>,
) -> Result<Receipt, Failure> {
    let scope = invoice.scope;
    // Behind the one before, whoever dated that: they are listed by their ids, which begin with their time.
    let behind = invoice.receipts().last().map(|last| last.payment_date.plus(Duration::from_micros(1)));
    let now = invoice.clock(tx.now());
    let now = behind.map_or(now, |behind| now.max(behind));
    let recorded_by = match &transaction.source {
        Source::Provider(_) => None,
        Source::Manual(recording) => recording.recorded_by.clone(),
    };
    let mut payment = InvoicePayment {
        id: tx.entropy().id(now),
        scope,
        version: 0,
        invoice: invoice.id,
        transaction: transaction.id,
        receipt: tx.entropy().id(now),
        amount: transaction.amount,
        method: transaction.method(),
        notes,
        recorded_by,
        payment_date: now,
        created_at: now,
    };
    let due = tx.now();
    jobs::schedule(tx, scope, Job::RenderReceipt(payment.receipt), due)?;
    let merchant = organization_of(tx, scope)?.profile.clone();
    let code = validation_code(tx);
    let number = counters::next(tx, scope, Series::Receipt, now)?;
    let mut receipt = Receipt::issue(&payment, number, code, invoice, merchant, now);
    invoice.receipt_issued(receipt.summary());
    tx.insert(&mut payment)?;
    tx.insert(&mut receipt)?;
    mails::owe_receipt(tx, context, &receipt)?;
    Ok(receipt)
}

/// What became of the files of these invoices' receipts.
pub fn files<'i>(
    tx: &mut Tx<'_>,
    scope: Scope,
    invoices: impl IntoIterator<Item = &'i Invoice>,
) -> Result<DocumentStates, Failure> {
    let ids = |invoice: &Invoice| invoice.receipts().iter().map(|receipt| receipt.id.to_string()).collect::<Vec<_>>();
    let receipts: Vec<String> = invoices.into_iter().flat_map(ids).collect();
    Ok(documents::states(tx, scope, &receipts)?)
}

/// The receipt with this code, and what of its payment went back since.
pub fn validate(tx: &mut Tx<'_>, code: &ValidationCode) -> Result<Option<(Receipt, Money)>, Failure> {
    let Some(receipt) = locate::receipt(tx, code)? else { return Ok(None) };
    let refunded = look_up::<Transaction>(tx, receipt.scope, receipt.transaction)?.refunded();
    Ok(Some((receipt, refunded)))
}

/// What went back of an invoice's payments, and when that last moved. Money that came twice is none of them.
pub fn refunded(tx: &mut Tx<'_>, invoice: &Invoice) -> Result<Option<(Money, Timestamp)>, Failure> {
    if invoice.receipts().is_empty() {
        return Ok(None);
    }
    let mut back = transactions::paid_back_of_object(tx, invoice.scope, &invoice.id.to_string())?;
    if back.is_empty() {
        return Ok(None);
    }
    let payments = invoice_payments::of_invoice(tx, invoice.scope, invoice.id)?;
    back.retain(|transaction| payments.iter().any(|payment| payment.transaction == transaction.id));
    let minor: i64 = back.iter().map(|transaction| transaction.refunded().minor).sum();
    let last = back.iter().map(|transaction| transaction.updated_at).max();
    Ok(last.map(|at| (Money::new(minor, invoice.paid().currency), at)))
}

fn validation_code(tx: &mut Tx<'_>) -> ValidationCode {
    let secret = tx.entropy().secret();
    let (half, _) = secret.split_at(16);
    ValidationCode::new(half.try_into().expect("half of 32 bytes is 16"))
}
