//! What an invoice charges: its lines, the tax on them, and sums that always agree.

use serde::{Deserialize, Serialize};

use crate::checkout::{Item, stored_sum, sum};
use crate::money::{Currency, Money};
use crate::tax_rate::TaxRate;

/// The amounts are computed and never stored, so that they can't disagree with the lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Lines", into = "Lines")]
pub struct Bill {
    items: Vec<Item>,
    tax_rate: TaxRate,
    amount: Money,
    tax: Money,
    total: Money,
}

#[derive(Serialize, Deserialize)]
struct Lines {
    items: Vec<Item>,
    tax_rate: TaxRate,
}

impl Bill {
    /// `None` where the total is above what one object may cost.
    pub fn new(items: Vec<Item>, tax_rate: TaxRate) -> Option<Self> {
        assert!(!items.is_empty(), "an invoice charges something");
        let amount = sum(&items)?;
        Self::taxed(items, tax_rate, amount).filter(|bill| bill.total.fits())
    }

    /// One that is stored, by whichever version: some took more than is taken today.
    fn stored(items: Vec<Item>, tax_rate: TaxRate) -> Option<Self> {
        let amount = stored_sum(&items)?;
        Self::taxed(items, tax_rate, amount).filter(|bill| bill.total.fits_stored())
    }

    fn taxed(items: Vec<Item>, tax_rate: TaxRate, amount: Money) -> Option<Self> {
        let tax = tax_rate.tax_half_up(amount);
        let total = amount.checked_add(tax)?;
        assert!(total.minor > 0, "an invoice charges something");
        Some(Self { items, tax_rate, amount, tax, total })
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub fn tax_rate(&self) -> TaxRate {
        self.tax_rate
    }

    /// Before tax.
    pub fn amount(&self) -> Money {
        self.amount
    }

    pub fn tax(&self) -> Money {
        self.tax
    }

    pub fn total(&self) -> Money {
        self.total
    }

    pub fn currency(&self) -> Currency {
        self.total.currency
    }
}

impl TryFrom<Lines> for Bill {
    type Error = &'static str;
    fn try_from(Lines { items, tax_rate }: Lines) -> Result<Self, Self::Error> {
        let Some(first) = items.first() else { return Err("a bill has lines") };
        let currency = first.total.currency;
        let agree = |item: &Item| {
            let is_its_product = item.unit_price.checked_times(item.quantity) == Some(item.total);
            item.unit_price.currency == currency && is_its_product && item.total.minor > 0
        };
        if !items.iter().all(agree) {
            return Err("a line of a bill does not add up");
        }
        Self::stored(items, tax_rate).ok_or("a bill is above what one object may cost")
    }
}

impl From<Bill> for Lines {
    fn from(Bill { items, tax_rate, .. }: Bill) -> Self {
        Self { items, tax_rate }
    }
}
