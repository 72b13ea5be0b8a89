//! A proof as a file: the export of a whole ledger, line by line, or one answer of the API.

use std::cmp::Ordering;
use std::io::BufRead;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::{Chain, parse_key_set};
use super::{AccountTotals, Inclusion, SealedBatch, SealedEntry, Statement};
use crate::tokens::PublicKey;

/// A line of an export: the header, then each batch behind its entries, then the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    Header {
        organization_id: String,
        mode: String,
        exported_at: String,
        /// A JSON Web Key Set: what the server says its keys are.
        keys: Value,
    },
    Entry(SealedEntry),
    Batch(SealedBatch),
    End {
        /// Not in the file, because no batch held them yet.
        unsealed_entries: i64,
    },
}

/// What a sound file holds.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// An answer of the API names neither where nothing is sealed yet.
    pub organization_id: Option<String>,
    pub mode: Option<String>,
    /// All batches from the first one on, with all their entries; `false` for a part, or for a single proof.
    pub is_whole: bool,
    /// The last of all batches is in it, so that an answer's totals and counts were held against it.
    pub has_the_end: bool,
    /// 0, as the last one, where nothing is sealed yet.
    pub first_batch: i64,
    pub last_batch: i64,
    pub last_sealed_at: Option<String>,
    /// Entries that were held against the hashes.
    pub entries: u64,
    /// Of all accounts, after the last batch.
    pub balances: Vec<AccountTotals>,
    /// Entries that no batch held when the file was written: not covered.
    pub unsealed_entries: i64,
    /// The keys came with the file itself, so that it proves only that it agrees with itself.
    pub trusts_its_own_keys: bool,
}

/// Why a file was not found sound.
#[derive(Debug)]
pub enum Fault {
    /// Nothing is known of what is in it.
    Unreadable(std::io::Error),
    Unsound(Unsound),
}

/// What can't be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound {
    /// From 1; the whole file for an answer of the API.
    pub line: u64,
    pub what: String,
}

/// A batch never has more entries than are sealed at once; a file that goes on and on is none of ours.
const MOST_ENTRIES_OF_A_BATCH: usize = 100_000;

/// Checks a file against `trusted` keys, or against those that it brings.
pub fn check(mut file: impl BufRead, trusted: Option<Vec<PublicKey>>) -> Result<Checked, Fault> {
    let mut first = String::new();
    read_line(&mut file, &mut first, 1)?;
    match serde_json::from_str::<Line>(&first) {
        Ok(Line::Header { organization_id, mode, keys, .. }) => {
            let trusts_its_own_keys = trusted.is_none();
            let keys = trusted.map_or_else(|| parse_key_set(&keys), Ok).map_err(|what| Unsound { line: 1, what })?;
            export(file, Chain::new(keys), organization_id, mode, trusts_its_own_keys)
        }
        Ok(Line::Entry(_) | Line::Batch(_) | Line::End { .. }) => {
            Err(Unsound { line: 1, what: "the header is missing: an export begins with it".into() }.into())
        }
        Err(_) => {
            let mut text = first;
            file.read_to_string(&mut text).map_err(|error| unreadable(2, error))?;
            Ok(answer(&text, trusted).map_err(|what| Unsound { line: 1, what })?)
        }
    }
}

fn export(
    mut file: impl BufRead,
    mut chain: Chain,
    organization_id: String,
    mode: String,
    trusts_its_own_keys: bool,
) -> Result<Checked, Fault> {
    let mut entries: Vec<SealedEntry> = Vec::new();
    let mut text = String::new();
    for line in 2.. {
        read_line(&mut file, &mut text, line)?;
        let unsound = |what: String| Unsound { line, what };
        if text.is_empty() {
            return Err(unsound("the file ends too early: its last line is missing".into()).into());
        }
        let parsed =
            serde_json::from_str(&text).map_err(|fault| unsound(format!("this is no line of an export: {fault}")))?;
        match parsed {
            Line::Entry(entry) if entries.len() < MOST_ENTRIES_OF_A_BATCH => entries.push(entry),
            Line::Entry(_) => return Err(unsound("a batch never has so many entries".into()).into()),
            Line::Batch(batch) => {
                chain.follow(&batch, &entries).map_err(unsound)?;
                entries.clear();
            }
            Line::Header { .. } => return Err(unsound("a second header".into()).into()),
            Line::End { unsealed_entries } => {
                if !entries.is_empty() {
                    return Err(unsound("entries without their batch".into()).into());
                }
                read_line(&mut file, &mut text, line + 1)?;
                if !text.is_empty() {
                    return Err(Unsound { line: line + 1, what: "something follows the end".into() }.into());
                }
                let of_another = |(found, named): (&String, &String)| found != named;
                if let Some(last) = chain.last()
                    && [(&last.organization_id, &organization_id), (&last.mode, &mode)].into_iter().any(of_another)
                {
                    return Err(Unsound {
                        line: 1,
                        what: "the header names another organization or mode than the batches".into(),
                    }
                    .into());
                }
                let balances = chain.totals().write().map_err(unsound)?;
                let last = chain.last();
                return Ok(Checked {
                    is_whole: true,
                    has_the_end: true,
                    first_batch: last.map_or(0, |_| 1),
                    last_batch: last.map_or(0, |last| last.batch),
                    last_sealed_at: last.map(|last| last.sealed_at.clone()),
                    entries: chain.entries(),
                    organization_id: Some(organization_id),
                    mode: Some(mode),
                    balances,
                    unsealed_entries,
                    trusts_its_own_keys,
                });
            }
        }
    }
    unreachable!("a file has fewer lines than there are numbers")
}

/// What is read of an answer to `GET /v1/ledger/proof`, with or without its envelope.
#[derive(Deserialize)]
struct Answer {
    trial_balance: TrialBalance,
    batch_count: i64,
    sealed_entries: i64,
    unsealed_entries: i64,
    batches: Vec<SealedBatch>,
    keys: Value,
    transaction: Option<TransactionProof>,
}

#[derive(Deserialize)]
struct TrialBalance {
    sealed: Vec<AccountTotals>,
}

#[derive(Deserialize)]
struct TransactionProof {
    transaction_id: String,
    entries: Vec<Inclusion>,
}

fn answer(text: &str, trusted: Option<Vec<PublicKey>>) -> Result<Checked, String> {
    let strange =
        |fault: serde_json::Error| format!("this is neither an export nor an answer of /v1/ledger/proof: {fault}");
    let mut value: Value = serde_json::from_str(text).map_err(strange)?;
    if let Some(data) = value.get_mut("data") {
        value = data.take();
    }
    let answer: Answer = serde_json::from_value(value).map_err(strange)?;
    let Answer { unsealed_entries, batches, keys, transaction, .. } = &answer;
    let trusts_its_own_keys = trusted.is_none();
    let mut chain = Chain::new(trusted.map_or_else(|| parse_key_set(keys), Ok)?);
    batches.iter().try_for_each(|batch| chain.link(batch))?;
    let mut entries = 0;
    let mut proven = None;
    for inclusion in transaction.iter().flat_map(|transaction| &transaction.entries) {
        let statement = chain.includes(inclusion)?;
        if transaction.as_ref().is_some_and(|transaction| transaction.transaction_id != inclusion.entry.transaction_id)
        {
            return Err(format!("the entry {} is another transaction's", inclusion.entry.id));
        }
        let same = |last: &Statement| last.organization_id == statement.organization_id && last.mode == statement.mode;
        if !chain.last().is_none_or(same) {
            return Err(format!("the entry {} is another organization's or mode's", inclusion.entry.id));
        }
        entries += 1;
        proven = Some(statement);
    }
    let first = batches.first().map(SealedBatch::statement).transpose()?.or_else(|| proven.clone());
    let last = chain.last().cloned().or(proven);
    let has_the_end = answer.ends_with(last.as_ref())?;
    Ok(Checked {
        organization_id: last.as_ref().map(|last| last.organization_id.clone()),
        mode: last.as_ref().map(|last| last.mode.clone()),
        is_whole: false,
        has_the_end,
        first_batch: first.map_or(0, |first| first.batch),
        last_batch: last.as_ref().map_or(0, |last| last.batch),
        last_sealed_at: last.as_ref().map(|last| last.sealed_at.clone()),
        entries,
        balances: last.map(|last| last.balances).unwrap_or_default(),
        unsealed_entries: *unsealed_entries,
        trusts_its_own_keys,
    })
}

impl Answer {
    /// Whether `last` is the last of all batches. Then what the answer says in clear is what was signed.
    fn ends_with(&self, last: Option<&Statement>) -> Result<bool, String> {
        let nothing: &[AccountTotals] = &[];
        let (batch, entries, balances) = last.map_or((0, 0, nothing), |last| (last.batch, last.last, &last.balances));
        let (count, sealed) = (self.batch_count, self.sealed_entries);
        match count.cmp(&batch) {
            Ordering::Less => Err(format!("it says that there are {count} batches, and batch {batch} is in it")),
            // A batch has one entry at least.
            Ordering::Greater if sealed.saturating_sub(entries) >= count.saturating_sub(batch) => Ok(false),
            Ordering::Equal if sealed == entries && self.trial_balance.sealed == balances => Ok(true),
            Ordering::Equal if sealed == entries => {
                Err(format!("the sealed totals that it shows are not those of batch {batch}, its last"))
            }
            Ordering::Equal | Ordering::Greater => Err(format!(
                "it says that {sealed} entries are sealed, and batch {batch} of {count} ends with {entries}"
            )),
        }
    }
}

/// The next line, empty at the end of the file.
fn read_line(file: &mut impl BufRead, text: &mut String, line: u64) -> Result<(), Fault> {
    text.clear();
    file.read_line(text).map(drop).map_err(|error| unreadable(line, error))
}

/// Bytes that are no text are what is in the file; everything else is why nobody knows what is in it.
fn unreadable(line: u64, error: std::io::Error) -> Fault {
    match error.kind() {
        std::io::ErrorKind::InvalidData => Unsound { line, what: "this is no text".into() }.into(),
        _ => Fault::Unreadable(error),
    }
}

impl From<Unsound> for Fault {
    fn from(unsound: Unsound) -> Self {
        Self::Unsound(unsound)
    }
}

impl std::fmt::Display for Unsound {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.what)
    }
}
