//! Receipt statements as the installation signs and checks them: with the keys that it has stored.

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

/// The public half of every key there ever was: a receipt is as good as on the day it was signed.
pub fn verifying_keys(tx: &mut Tx<'_>, context: &Context) -> Result<Vec<PublicKey>, Failure> {
    let (_, keys) = keys::lasting_keys(context, &signing_keys::all(tx)?, tx.now())?;
    Ok(keys)
}
