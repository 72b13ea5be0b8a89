//! Receipt statements as the installation signs and checks them: with the keys that it has stored.

use domain::receipt::Receipt;
use store::Tx;
use store::queries::signing_keys;

use super::{Context, keys};
use crate::error::Failure;
use crate::receipt_statement::{self, Paid, Statement};
use crate::tokens::PublicKey;

/// The address for a receipt's QR code: where the statement about its payment is checked, with the statement.
pub fn address(tx: &mut Tx<'_>, context: &Context, paid: &Paid<'_>) -> Result<String, Failure> {
    let statement = Statement::of(paid).map_err(|fault| Failure::Broken(fault.to_string()))?;
    let (key, _) = keys::lasting_keys(context, &signing_keys::all(tx)?, tx.now())?;
    Ok(receipt_statement::address(&context.addresses.pay_url, &statement.sign(&key)))
}

/// The same for a receipt of ours. Its payer is a name and nothing else: a phone number is guessed from the proof in no time,
/// and of a receipt that opens without a key the mask and the validation code leave few to try.
pub fn address_of(tx: &mut Tx<'_>, context: &Context, receipt: &Receipt) -> Result<String, Failure> {
    let paid = Paid {
        mode: receipt.scope.mode,
        receipt_number: &receipt.number,
        amount: receipt.amount,
        merchant: &receipt.merchant.name,
        paid_at: receipt.payment_date,
        payer: &receipt.customer.name,
        validation_code: receipt.validation_code.as_str(),
    };
    address(tx, context, &paid)
}

/// The public half of every key there ever was: a receipt is as good as on the day it was signed.
pub fn verifying_keys(tx: &mut Tx<'_>, context: &Context) -> Result<Vec<PublicKey>, Failure> {
    let (_, keys) = keys::lasting_keys(context, &signing_keys::all(tx)?, tx.now())?;
    Ok(keys)
}
