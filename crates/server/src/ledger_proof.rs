//! The sealed ledger: entries in batches, each batch under a hash tree's root, each root in a signed statement that names
//! the one before. Whoever holds a copy and the public keys checks it without asking anybody.
//!
//! Pure: what is stored is `store::queries::ledger_batches`, when it is sealed `app::ledger`. What it does not prove:
//! entries that no batch holds yet, and anything against somebody who has the signing key.

mod chain;
mod file;
pub mod merkle;

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use domain::{Currency, Money, Scope, Sum, Timestamp};
use serde::{Deserialize, Serialize};
use store::queries::ledger_batches::{BatchRow, EntryRow};
use utoipa::ToSchema;

use crate::tokens::{PublicKey, SigningKey};
use crate::wire::words;
use merkle::Hash;

pub use chain::{Chain, parse_key_set};
pub use file::{Checked, Fault, Line, Unsound, check};

const PURPOSE: &str = "dalasi ledger batch";
const FORMAT: &str = "dalasi-ledger-batch-1";

/// A movement of money and its place in the log, exactly as it is hashed: as JSON, in this order, without white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedEntry {
    /// 1, 2, 3 … in an organization and mode.
    #[schema(minimum = 1)]
    pub log_no: i64,
    #[schema(value_type = words::EntryId)]
    pub id: String,
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::MicroTime)]
    pub created_at: String,
    pub postings: Vec<SealedPosting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedPosting {
    #[schema(value_type = words::AccountName)]
    pub account: String,
    pub side: Side,
    #[schema(value_type = words::Amount)]
    pub amount: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Debit,
    Credit,
}

/// What went to one account, and what came from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountTotals {
    #[schema(value_type = words::AccountName)]
    pub account: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::Amount)]
    pub debits: String,
    #[schema(value_type = words::Amount)]
    pub credits: String,
}

/// What is signed of a batch. The text that was signed is kept; this is how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    format: String,
    pub organization_id: String,
    pub mode: String,
    /// 1, 2, 3 …
    pub batch: i64,
    /// The first and the last place in the log that it covers.
    pub first: i64,
    pub last: i64,
    /// Of the hash tree over its entries, in hex.
    pub root: String,
    /// The hash of the statement before it, in hex.
    pub previous: Option<String>,
    /// Of all accounts, after this batch.
    pub balances: Vec<AccountTotals>,
    pub sealed_at: String,
    pub key_id: String,
}

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedBatch {
    /// The very text that was signed, JSON: places in the log, the root over the entries, the hash of the statement
    /// before, the totals of all accounts.
    pub statement: String,
    /// Ed25519 over `dalasi ledger batch`, a zero byte and the statement; in hex.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    pub signature: String,
}

/// Where an entry is in its batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Inclusion {
    pub entry: SealedEntry,
    pub batch: SealedBatch,
    /// The hashes beside the way from the entry to the batch's root, from below (RFC 6962); in hex.
    #[schema(value_type = Vec<words::HashText>)]
    pub path: Vec<String>,
}

/// Debits and credits of every account, in whole minor units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals(BTreeMap<(String, String), (i128, i128)>);

/// More than all postings that a database can hold come to. A file that says more is none of ours, and its sums could overflow.
const MOST: i128 = 10_i128.pow(30);

/// What all accounts came to.
#[derive(Debug, Clone)]
pub struct Balances {
    /// After the last batch.
    pub sealed: Totals,
    /// What no batch holds yet.
    pub unsealed: Totals,
}

/// The signed chain or a part of it, and where a transaction stands in it.
#[derive(Debug, Clone)]
pub struct Proof {
    pub balances: Balances,
    pub batch_count: i64,
    pub sealed_entries: i64,
    pub unsealed_entries: i64,
    pub batches: Vec<SealedBatch>,
    /// Public halves of all keys that ever signed.
    pub keys: Vec<PublicKey>,
    pub transaction: Option<TransactionProof>,
}

#[derive(Debug, Clone)]
pub struct TransactionProof {
    pub transaction_id: String,
    pub inclusions: Vec<Inclusion>,
    /// Of its entries, those that no batch holds yet.
    pub unsealed_entries: i64,
}

impl SealedEntry {
    /// A stored entry at its place.
    pub fn of(row: &EntryRow, log_no: i64) -> Self {
        let EntryRow { id, transaction_id, currency, created_at, postings, .. } = row;
        Self::new(log_no, id.clone(), transaction_id.clone(), *currency, *created_at, postings)
    }

    /// `postings` are (account, minor units), debits positive.
    pub fn new(
        log_no: i64,
        id: String,
        transaction_id: String,
        currency: Currency,
        created_at: Timestamp,
        postings: &[(String, i64)],
    ) -> Self {
        let posting = |(account, minor): &(String, i64)| SealedPosting {
            account: account.clone(),
            side: if *minor < 0 { Side::Credit } else { Side::Debit },
            amount: Money::new(minor.saturating_abs(), currency).to_string(),
        };
        Self {
            log_no,
            id,
            transaction_id,
            currency: currency.code().into(),
            created_at: created_at.to_text_micros(),
            postings: postings.iter().map(posting).collect(),
        }
    }

    pub fn hash(&self) -> Hash {
        merkle::leaf(&serde_json::to_vec(self).expect("an entry is JSON"))
    }
}

impl Balances {
    /// Of every account, sealed or not.
    pub fn all(&self) -> Result<Totals, String> {
        let mut all = self.sealed.clone();
        for (currency, account, debits, credits) in self.unsealed.iter() {
            all.post(account, currency, Side::Debit, debits)?;
            all.post(account, currency, Side::Credit, credits)?;
        }
        Ok(all)
    }
}

impl SealedBatch {
    pub fn of(row: &BatchRow) -> Self {
        Self { statement: row.statement.clone(), signature: row.signature.clone() }
    }

    pub fn statement(&self) -> Result<Statement, String> {
        let statement: Statement =
            serde_json::from_str(&self.statement).map_err(|fault| format!("its statement does not parse: {fault}"))?;
        let is_canonical = serde_json::to_string(&statement).is_ok_and(|text| text == self.statement);
        match (is_canonical, statement.format == FORMAT) {
            (true, true) => Ok(statement),
            (_, false) => Err(format!("its statement is of the format {:?} and not {FORMAT:?}", statement.format)),
            (false, _) => Err("its statement is not written as statements are".into()),
        }
    }

    /// What the next statement names.
    pub fn hash(&self) -> String {
        hex(digest(&SHA256, self.statement.as_bytes()).as_ref())
    }
}

/// Signs the next batch over `entries`, which follow what `previous` covers.
pub fn seal(
    scope: Scope,
    previous: Option<&SealedBatch>,
    entries: &[SealedEntry],
    key: &SigningKey,
    now: Timestamp,
) -> Result<SealedBatch, String> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Err("a batch has entries".into());
    };
    let before = previous.map(SealedBatch::statement).transpose()?;
    let mut totals = Totals::read(before.as_ref().map_or(&[], |before| &before.balances))?;
    entries.iter().try_for_each(|entry| totals.add(entry))?;
    let statement = Statement {
        format: FORMAT.into(),
        organization_id: scope.organization.to_string(),
        mode: scope.mode.as_str().into(),
        batch: before.as_ref().map_or(1, |before| before.batch + 1),
        first: first.log_no,
        last: last.log_no,
        root: hex(&merkle::root(&leaves(entries))),
        previous: previous.map(SealedBatch::hash),
        balances: totals.write()?,
        sealed_at: now.to_text_micros(),
        key_id: key.public().id().to_owned(),
    };
    let statement = serde_json::to_string(&statement).expect("a statement is JSON");
    let signature = hex(&key.sign(PURPOSE, statement.as_bytes()));
    Ok(SealedBatch { statement, signature })
}

/// The proof that the entry at `index` is in its batch.
pub fn include(entries: &[SealedEntry], index: usize, batch: &SealedBatch) -> Inclusion {
    include_all(entries, &[index], batch).pop().expect("one for each")
}

/// The same for the entries at all of `indexes`, which are in order.
pub fn include_all(entries: &[SealedEntry], indexes: &[usize], batch: &SealedBatch) -> Vec<Inclusion> {
    let include = |(index, path): (&usize, Vec<Hash>)| Inclusion {
        entry: entries[*index].clone(),
        batch: batch.clone(),
        path: path.iter().map(|hash| hex(hash)).collect(),
    };
    indexes.iter().zip(merkle::paths(&leaves(entries), indexes)).map(include).collect()
}

fn leaves(entries: &[SealedEntry]) -> Vec<Hash> {
    entries.iter().map(SealedEntry::hash).collect()
}

impl Totals {
    pub fn read(balances: &[AccountTotals]) -> Result<Self, String> {
        let mut totals = Self::default();
        for AccountTotals { account, currency, debits, credits } in balances {
            let both = (total(debits, currency)?, total(credits, currency)?);
            if totals.0.insert((currency.clone(), account.clone()), both).is_some() {
                return Err(format!("the account {account} stands twice"));
            }
        }
        Ok(totals)
    }

    /// The entry's postings must cancel out.
    pub fn add(&mut self, entry: &SealedEntry) -> Result<(), String> {
        let mut sum: i128 = 0;
        for posting in &entry.postings {
            let amount = minor(&posting.amount, &entry.currency)?;
            sum += match posting.side {
                Side::Debit => i128::from(amount),
                Side::Credit => -i128::from(amount),
            };
            self.post(&posting.account, &entry.currency, posting.side, i128::from(amount))?;
        }
        match (sum, entry.postings.is_empty()) {
            (0, false) => Ok(()),
            (_, true) => Err(format!("the entry {} has no postings", entry.id)),
            (sum, _) => Err(format!("the postings of the entry {} sum to {sum} and not to zero", entry.id)),
        }
    }

    pub fn post(&mut self, account: &str, currency: &str, side: Side, amount: i128) -> Result<(), String> {
        let (debits, credits) = self.0.entry((currency.to_owned(), account.to_owned())).or_default();
        let total = match side {
            Side::Debit => debits,
            Side::Credit => credits,
        };
        let sum = total.checked_add(amount).filter(|sum| *sum <= MOST);
        *total = sum.ok_or_else(|| format!("the account {account} holds more than can be"))?;
        Ok(())
    }

    /// By currency and account.
    pub fn write(&self) -> Result<Vec<AccountTotals>, String> {
        let line = |((currency, account), (debits, credits)): (&(String, String), &(i128, i128))| {
            let of = currency_of(currency)?;
            Ok(AccountTotals {
                account: account.clone(),
                currency: currency.clone(),
                debits: Sum::new(*debits, of).to_string(),
                credits: Sum::new(*credits, of).to_string(),
            })
        };
        self.0.iter().map(line).collect()
    }

    /// (currency, debits minus credits over all its accounts): zero each.
    pub fn sums(&self) -> BTreeMap<&str, i128> {
        let mut sums = BTreeMap::new();
        for ((currency, _), (debits, credits)) in &self.0 {
            *sums.entry(currency.as_str()).or_default() += *debits - *credits;
        }
        sums
    }

    /// Debits and credits of an account, which may have none.
    pub fn of(&self, account: &str, currency: &str) -> (i128, i128) {
        self.0.get(&(currency.to_owned(), account.to_owned())).copied().unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, i128, i128)> {
        self.0
            .iter()
            .map(|((currency, account), (debits, credits))| (currency.as_str(), account.as_str(), *debits, *credits))
    }
}

fn currency_of(code: &str) -> Result<Currency, String> {
    Currency::parse(code).ok_or_else(|| format!("{code:?} is no currency"))
}

/// Whole minor units of one amount.
fn minor(text: &str, currency: &str) -> Result<i64, String> {
    let minor = total(text, currency)?;
    i64::try_from(minor).map_err(|_| format!("{text:?} is no amount of {currency}"))
}

/// Whole minor units of a text that we printed: exactly the currency's digits, no sign.
fn total(text: &str, currency: &str) -> Result<i128, String> {
    let of = currency_of(currency)?;
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let minor = digits.parse::<i128>().ok().filter(|minor| *minor <= MOST && Sum::new(*minor, of).to_string() == text);
    minor.ok_or_else(|| format!("{text:?} is no amount of {currency}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.len() == 2 * N && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate().filter(|_| is_hex) {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    is_hex.then_some(bytes)
}

#[cfg(test)]
mod tests;
