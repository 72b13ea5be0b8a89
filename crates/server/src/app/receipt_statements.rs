//! Receipt statements as the installation signs and checks them: with the keys that it has stored.

use domain::invoice::BillTo;
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

/// The same for a receipt of ours.
pub fn address_of(tx: &mut Tx<'_>, context: &Context, receipt: &Receipt) -> Result<String, Failure> {
    let paid = Paid {
        mode: receipt.scope.mode,
        receipt_number: &receipt.number,
        amount: receipt.amount,
        merchant: &receipt.merchant.name,
        paid_at: receipt.payment_date,
        payer: payer(&receipt.customer),
        validation_code: receipt.validation_code.as_str(),
    };
    address(tx, context, &paid)
}

/// Who paid, as a receipt prints it first: what was not given is empty, and what nobody sees is as good as that.
fn payer(customer: &BillTo) -> &str {
    let phone = customer.phone.as_ref().map_or("", |phone| phone.as_str());
    let shown = |text: &&str| !receipt_statement::fold(text).is_empty();
    [customer.name.as_str(), customer.email.as_str(), phone].into_iter().find(shown).unwrap_or_default()
}

/// The public half of every key there ever was: a receipt is as good as on the day it was signed.
pub fn verifying_keys(tx: &mut Tx<'_>, context: &Context) -> Result<Vec<PublicKey>, Failure> {
    let (_, keys) = keys::lasting_keys(context, &signing_keys::all(tx)?, tx.now())?;
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payer_is_the_first_of_what_can_be_seen() {
        let table = [
            ("Awa", "awa@example.gm", "Awa"),
            ("", "awa@example.gm", "awa@example.gm"),
            (" ", "awa@example.gm", "awa@example.gm"),
            ("\u{200b}\u{202e}\t", "awa@example.gm", "awa@example.gm"),
            ("\u{a0}", "", ""),
        ];
        for (name, email, expected) in table {
            let customer = BillTo { name: name.into(), email: email.into(), ..BillTo::default() };
            assert_eq!(payer(&customer), expected, "{name:?}");
        }
    }
}
