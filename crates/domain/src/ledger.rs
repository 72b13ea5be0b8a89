//! Double entry. An [`Entry`] is balanced by construction, so the ledger sums to zero.
//!
//! Accounts are those of contract §5, per (organization, mode, currency).

use std::fmt;

use crate::id::{Id, Object};
use crate::money::{Currency, Money};
use crate::payment::{Transaction, TransactionStatus};
use crate::refund::{Refund, RefundStatus, Source};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// What a rail holds for the merchant until it settles.
    RailClearing {
        rail: String,
    },
    Merchant,
    Fees,
    /// Money that arrived twice for one object: not the merchant's to pay out, refundable.
    Unapplied,
    /// Asked back and not decided.
    RefundsPending,
    /// Money that changed hands elsewhere, as the merchant recorded it: in the books, and outside the balance.
    OfflineReceived,
    OfflineSales,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::RailClearing { rail } => write!(f, "rail_clearing:{rail}"),
            Account::Merchant => f.write_str("merchant"),
            Account::Fees => f.write_str("fees"),
            Account::Unapplied => f.write_str("unapplied"),
            Account::RefundsPending => f.write_str("refunds_pending"),
            Account::OfflineReceived => f.write_str("offline_received"),
            Account::OfflineSales => f.write_str("offline_sales"),
        }
    }
}

/// One line of an entry. Debits are positive, credits negative, in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    pub amount_minor: i64,
}

/// One movement of money: postings of one currency that sum to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Id<Entry>,
    pub transaction: Id<Transaction>,
    /// `None`: the payment itself.
    pub refund: Option<Id<Refund>>,
    pub currency: Currency,
    postings: Vec<Posting>,
}

impl Object for Entry {
    const PREFIX: &'static str = "entry";
    const NOUN: &'static str = "ledger_entry";
}

impl Entry {
    fn balanced(
        id: Id<Entry>,
        transaction: Id<Transaction>,
        currency: Currency,
        debit: Posting,
        credits: Vec<Posting>,
    ) -> Self {
        let mut postings = vec![debit];
        // A free method has no fee line: a posting of nothing says nothing.
        postings.extend(credits.into_iter().filter(|posting| posting.amount_minor != 0));
        let sum: i128 = postings.iter().map(|posting| i128::from(posting.amount_minor)).sum();
        assert_eq!(sum, 0, "an entry is balanced");
        assert!(postings[0].amount_minor > 0, "money moves forward");
        assert!(postings.len() >= 2, "money goes somewhere");
        assert!(postings[1..].iter().all(|posting| posting.amount_minor < 0), "what is not the debit is a credit");
        Self { id, transaction, refund: None, currency, postings }
    }

    /// An online payment completed: the rail holds the gross, the merchant is owed the net.
    pub fn payment_completed(id: Id<Entry>, transaction: &Transaction) -> Self {
        assert_eq!(transaction.status(), TransactionStatus::Completed, "only money that arrived is posted");
        let (amount, fee, net) = (transaction.amount, transaction.fee(), transaction.net());
        assert!(net.minor >= 0, "a fee is a part of the amount");
        let credits = vec![
            Posting { account: Account::Merchant, amount_minor: -net.minor },
            Posting {
                account: if crate::planted!(Defect::FeeToMerchant) { Account::Merchant } else { Account::Fees },
                amount_minor: -fee.minor,
            },
        ];
        Self::balanced(id, transaction.id, amount.currency, rail_debit(transaction), credits)
    }

    /// The object was paid already: the money waits outside the available balance.
    pub fn second_money(id: Id<Entry>, transaction: &Transaction) -> Self {
        assert_eq!(transaction.status(), TransactionStatus::Completed, "only money that arrived is posted");
        assert!(transaction.duplicate, "second money is marked as such");
        let amount = transaction.amount;
        let credits = vec![Posting {
            account: if crate::planted!(Defect::SecondMoneyCredited) { Account::Merchant } else { Account::Unapplied },
            amount_minor: -amount.minor,
        }];
        Self::balanced(id, transaction.id, amount.currency, rail_debit(transaction), credits)
    }

    /// Money that changed hands elsewhere was recorded.
    pub fn offline_recorded(id: Id<Entry>, transaction: &Transaction) -> Self {
        assert!(transaction.is_recorded(), "what a rail brought is not recorded by hand");
        assert_eq!(transaction.fee().minor, 0, "nobody takes a fee of what went elsewhere");
        let Money { minor, currency } = transaction.amount;
        let debit = Posting { account: Account::OfflineReceived, amount_minor: minor };
        let credits = vec![Posting { account: Account::OfflineSales, amount_minor: -minor }];
        Self::balanced(id, transaction.id, currency, debit, credits)
    }

    /// A refund was asked for: its money can be used for nothing else.
    pub fn refund_asked(id: Id<Entry>, refund: &Refund) -> Self {
        Self::of_refund(id, refund, source_of(refund), Account::RefundsPending)
    }

    /// The rail paid it back.
    pub fn refund_completed(id: Id<Entry>, refund: &Refund) -> Self {
        assert_eq!(refund.status(), RefundStatus::Completed, "only what went through leaves the rail");
        Self::of_refund(id, refund, Account::RefundsPending, rail_of(refund))
    }

    /// It did not go through: the money is back where it was taken from.
    pub fn refund_failed(id: Id<Entry>, refund: &Refund) -> Self {
        assert_eq!(refund.status(), RefundStatus::Failed, "only what failed is released");
        Self::of_refund(id, refund, Account::RefundsPending, source_of(refund))
    }

    /// It had failed and was released, and the rail paid it back after all.
    pub fn refund_corrected(id: Id<Entry>, refund: &Refund) -> Self {
        assert_eq!(refund.status(), RefundStatus::Completed, "only what went through leaves the rail");
        match crate::planted!(Defect::CorrectionFromPending) {
            true => Self::of_refund(id, refund, Account::RefundsPending, rail_of(refund)),
            false => Self::of_refund(id, refund, source_of(refund), rail_of(refund)),
        }
    }

    /// Money that changed hands elsewhere went back there.
    pub fn offline_refunded(id: Id<Entry>, refund: &Refund) -> Self {
        assert_eq!(refund.source, Source::Offline, "what a rail has goes back by it");
        Self::of_refund(id, refund, Account::OfflineSales, Account::OfflineReceived)
    }

    fn of_refund(id: Id<Entry>, refund: &Refund, debit: Account, credit: Account) -> Self {
        let (Money { minor, currency }, transaction) = (refund.amount, refund.transaction);
        let debit = Posting { account: debit, amount_minor: minor };
        let credits = vec![Posting { account: credit, amount_minor: -minor }];
        Self { refund: Some(refund.id), ..Self::balanced(id, transaction, currency, debit, credits) }
    }

    pub fn postings(&self) -> &[Posting] {
        &self.postings
    }
}

fn source_of(refund: &Refund) -> Account {
    match refund.source {
        Source::Merchant { .. } => Account::Merchant,
        Source::Unapplied { .. } if crate::planted!(Defect::RefundOfSecondMoneyFromMerchant) => Account::Merchant,
        Source::Unapplied { .. } => Account::Unapplied,
        Source::Offline => panic!("{} was given back by hand: nothing of it is on its way", refund.id),
    }
}

fn rail_of(refund: &Refund) -> Account {
    let rail = refund.source.rail().expect("what is given back by hand leaves no rail");
    Account::RailClearing { rail: rail.to_owned() }
}

fn rail_debit(transaction: &Transaction) -> Posting {
    let Money { minor, .. } = transaction.amount;
    Posting { account: Account::RailClearing { rail: transaction.attempt().rail.clone() }, amount_minor: minor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_the_names_of_the_chart() {
        let named = [
            (Account::RailClearing { rail: "wave".into() }, "rail_clearing:wave"),
            (Account::Merchant, "merchant"),
            (Account::Fees, "fees"),
            (Account::Unapplied, "unapplied"),
            (Account::RefundsPending, "refunds_pending"),
            (Account::OfflineReceived, "offline_received"),
            (Account::OfflineSales, "offline_sales"),
        ];
        for (account, name) in named {
            assert_eq!(account.to_string(), name);
        }
    }
}
