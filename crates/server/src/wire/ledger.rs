//! The ledger as its owner sees it: accounts, entries, the proof.

use domain::{Currency, Sum};
use serde::Serialize;
use serde_json::{Value, json};
use store::queries::ledger_batches::EntryRow;
use utoipa::ToSchema;

use super::words;
use crate::ledger_proof::{
    AccountTotals, Inclusion, Proof, SealedBatch, SealedEntry, SealedPosting, Totals, TransactionProof,
};
use crate::tokens::PublicKey;

/// What went to an account and what came from it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LedgerAccount)]
pub struct AccountView {
    #[schema(value_type = words::AccountName)]
    pub account: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    #[schema(value_type = words::Amount)]
    pub debits: String,
    #[schema(value_type = words::Amount)]
    pub credits: String,
    /// Debits minus credits: negative where you are owed, as of `merchant`.
    #[schema(value_type = words::SignedAmount)]
    pub balance: String,
}

impl AccountView {
    /// By currency and account.
    pub fn all(totals: &Totals) -> Result<Vec<Self>, String> {
        let view = |(code, name, debits, credits): (&str, &str, i128, i128)| {
            let currency = Currency::parse(code).ok_or_else(|| format!("{code:?} is no currency"))?;
            let shown = |minor| Sum::new(minor, currency).to_string();
            Ok(Self {
                account: name.into(),
                currency: code.into(),
                debits: shown(debits),
                credits: shown(credits),
                balance: shown(debits - credits),
            })
        };
        totals.iter().map(view).collect()
    }
}

/// A movement of money: postings that cancel out.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LedgerEntry)]
pub struct EntryView {
    #[schema(value_type = words::EntryId)]
    pub id: String,
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    pub postings: Vec<SealedPosting>,
    /// Its place in the sealed log; null until a batch holds it, a second or two after it was written.
    #[schema(minimum = 1)]
    pub log_no: Option<i64>,
    #[schema(value_type = words::MicroTime)]
    pub created_at: String,
}

impl EntryView {
    pub fn of(row: &EntryRow) -> Self {
        let sealed = SealedEntry::of(row, row.log_no);
        Self {
            id: sealed.id,
            transaction_id: sealed.transaction_id,
            currency: sealed.currency,
            postings: sealed.postings,
            log_no: (row.log_no > 0).then_some(row.log_no),
            created_at: sealed.created_at,
        }
    }
}

/// The chain of signed batches, and where a transaction stands in it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LedgerProof)]
pub struct ProofView {
    pub trial_balance: TrialBalance,
    /// So many batches there are.
    #[schema(minimum = 0)]
    pub batch_count: i64,
    #[schema(minimum = 0)]
    pub sealed_entries: i64,
    /// Written, and held by no batch yet.
    #[schema(minimum = 0)]
    pub unsealed_entries: i64,
    /// Part of the chain: the last batches, or those from `from_batch` on.
    pub batches: Vec<SealedBatch>,
    /// The public keys that ever signed, as a JSON Web Key Set. Keep a copy of your own.
    #[schema(value_type = words::KeySetRef)]
    pub keys: Value,
    /// With `transaction_id`: its entries, each with the way to its batch's root.
    pub transaction: Option<TransactionProofView>,
    /// What this proof does not cover.
    pub not_covered: Vec<&'static str>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrialBalance {
    /// All accounts after the last batch, as it was signed.
    pub sealed: Vec<AccountTotals>,
    /// The postings that no batch holds yet.
    pub unsealed: Vec<AccountTotals>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = LedgerTransactionProof)]
pub struct TransactionProofView {
    #[schema(value_type = words::TransactionId)]
    pub transaction_id: String,
    pub entries: Vec<Inclusion>,
    /// Of its entries, those that no batch holds yet.
    #[schema(minimum = 0)]
    pub unsealed_entries: i64,
}

/// Said in every proof and by `dalasi ledger verify`.
pub const NOT_COVERED: [&str; 3] = [
    "Entries that no batch holds yet (`unsealed_entries`): they are sealed within seconds.",
    "Anything against somebody who holds the signing key: they could sign another chain. Keep a copy of an older export \
     and of the keys elsewhere.",
    "The end of the chain: a chain that was cut short is as valid as the whole. Compare `batch_count` with what you saw before.",
];

/// Beside them, of an answer that was asked for with `from_batch`, where it ends before the chain does.
pub const WITHOUT_THE_END: &str = "`trial_balance`, `batch_count` and `sealed_entries`: the last batch is not in this answer. Ask without `from_batch`.";

impl ProofView {
    pub fn of(proof: &Proof) -> Result<Self, String> {
        let Proof { balances, batch_count, sealed_entries, unsealed_entries, batches, keys, transaction } = proof;
        Ok(Self {
            trial_balance: TrialBalance { sealed: balances.sealed.write()?, unsealed: balances.unsealed.write()? },
            batch_count: *batch_count,
            sealed_entries: *sealed_entries,
            unsealed_entries: *unsealed_entries,
            batches: batches.clone(),
            keys: key_set(keys),
            transaction: transaction.as_ref().map(TransactionProofView::of),
            not_covered: NOT_COVERED.to_vec(),
        })
    }
}

impl TransactionProofView {
    fn of(proof: &TransactionProof) -> Self {
        let TransactionProof { transaction_id, inclusions, unsealed_entries } = proof;
        Self {
            transaction_id: transaction_id.clone(),
            entries: inclusions.clone(),
            unsealed_entries: *unsealed_entries,
        }
    }
}

/// A JSON Web Key Set.
pub fn key_set(keys: &[PublicKey]) -> Value {
    json!({ "keys": keys.iter().map(PublicKey::jwk).collect::<Vec<_>>() })
}
