//! Checking: signatures, the chain from batch to batch, roots against entries, totals against postings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Inclusion, PURPOSE, SealedBatch, SealedEntry, Statement, Totals, hex, leaves, merkle, unhex};
use crate::tokens::PublicKey;

/// Follows the batches of one organization and mode in their order.
#[derive(Debug, Clone)]
pub struct Chain {
    keys: BTreeMap<String, PublicKey>,
    last: Option<(Statement, String)>,
    totals: Totals,
    entries: u64,
}

impl Chain {
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let keys = keys.into_iter().map(|key| (key.id().to_owned(), key)).collect();
        Self { keys, last: None, totals: Totals::default(), entries: 0 }
    }

    pub fn trust(&mut self, key: PublicKey) {
        self.keys.insert(key.id().to_owned(), key);
    }

    /// The batch that was checked last.
    pub fn last(&self) -> Option<&Statement> {
        self.last.as_ref().map(|(statement, _)| statement)
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The next batch with all its entries: what it says, and that it is true.
    pub fn follow(&mut self, batch: &SealedBatch, entries: &[SealedEntry]) -> Result<(), String> {
        let statement = self.signed(batch)?;
        self.succeeds(&statement)?;
        let mut log_nos = statement.first..=statement.last;
        let in_order = entries.iter().all(|entry| log_nos.next() == Some(entry.log_no)) && log_nos.next().is_none();
        if !in_order {
            return Err(format!(
                "batch {} covers the entries {} to {}, and others are there",
                statement.batch, statement.first, statement.last
            ));
        }
        if hex(&merkle::root(&leaves(entries))) != statement.root {
            return Err(format!("an entry of batch {} is not what was sealed", statement.batch));
        }
        entries.iter().try_for_each(|entry| self.totals.add(entry))?;
        if self.totals.write()? != statement.balances {
            return Err(format!("the totals of batch {} are not those of the entries so far", statement.batch));
        }
        self.entries += u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.last = Some((statement, batch.hash()));
        Ok(())
    }

    /// The next batch by itself: its signature, and that it names the one before. A chain may begin anywhere.
    pub fn link(&mut self, batch: &SealedBatch) -> Result<(), String> {
        let statement = self.signed(batch)?;
        if self.last.is_some() {
            self.succeeds(&statement)?;
        }
        self.totals = Totals::read(&statement.balances)?;
        if let Some((currency, sum)) = self.totals.sums().iter().find(|(_, sum)| **sum != 0) {
            return Err(format!("the accounts of batch {} sum to {sum} {currency} and not to zero", statement.batch));
        }
        self.last = Some((statement, batch.hash()));
        Ok(())
    }

    fn succeeds(&self, statement: &Statement) -> Result<(), String> {
        let expected = match &self.last {
            None => (1, 1, None),
            Some((last, hash)) => (behind(last, last.batch)?, behind(last, last.last)?, Some(hash)),
        };
        let (batch, first, previous) = expected;
        if statement.batch != batch {
            return Err(format!("batch {batch} is missing: batch {} follows", statement.batch));
        }
        if statement.first != first || statement.last < statement.first {
            return Err(format!("batch {batch} does not begin behind the entries of the batch before"));
        }
        if statement.previous.as_ref() != previous {
            return Err(format!("batch {batch} names another batch before it"));
        }
        match &self.last {
            Some((last, _)) if (&last.organization_id, &last.mode) != (&statement.organization_id, &statement.mode) => {
                Err(format!("batch {batch} is of another organization or mode"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a statement says, if one of the keys signed it.
    pub fn signed(&self, batch: &SealedBatch) -> Result<Statement, String> {
        let statement = batch.statement()?;
        let number = statement.batch;
        let key = self.keys.get(&statement.key_id).ok_or_else(|| {
            format!(
                "batch {number} is signed with the key {}, which is none of those that are trusted",
                statement.key_id
            )
        })?;
        let signature =
            unhex::<64>(&batch.signature).ok_or_else(|| format!("the signature of batch {number} is malformed"))?;
        match key.verifies(PURPOSE, batch.statement.as_bytes(), &signature) {
            true => Ok(statement),
            false => Err(format!("the signature of batch {number} is not the key's")),
        }
    }

    /// That an entry is in its batch.
    pub fn includes(&self, inclusion: &Inclusion) -> Result<Statement, String> {
        let Inclusion { entry, batch, path } = inclusion;
        let statement = self.signed(batch)?;
        Totals::default().add(entry)?;
        let wrong = || format!("the entry {} is not in batch {} as it is shown", entry.id, statement.batch);
        let path: Option<Vec<merkle::Hash>> = path.iter().map(|hash| unhex(hash)).collect();
        let (index, size) = (entry.log_no.checked_sub(statement.first), statement.last.checked_sub(statement.first));
        let (index, size) = (index.and_then(whole).ok_or_else(wrong)?, size.and_then(whole).ok_or_else(wrong)?);
        let root = merkle::root_by_path(entry.hash(), index, size + 1, &path.ok_or_else(wrong)?).ok_or_else(wrong)?;
        if hex(&root) == statement.root { Ok(statement) } else { Err(wrong()) }
    }
}

/// The number behind one of a statement's. Whoever forges a file may have written the largest there is.
fn behind(statement: &Statement, number: i64) -> Result<i64, String> {
    number
        .checked_add(1)
        .ok_or_else(|| format!("batch {} has numbers behind which nothing can follow", statement.batch))
}

fn whole(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number < usize::MAX)
}

/// The Ed25519 keys of a JSON Web Key Set. A key's id has to be its thumbprint, so that it can't name another.
pub fn parse_key_set(set: &Value) -> Result<Vec<PublicKey>, String> {
    let keys = set["keys"].as_array().ok_or("a key set has a member \"keys\" with a list")?;
    let read = |key: &Value| {
        let public = PublicKey::parse(key["x"].as_str().unwrap_or_default());
        let public = public.map_err(|_| "a key of the set is no Ed25519 key")?;
        match key["kid"].as_str() {
            Some(kid) if kid != public.id() => Err(format!("the key {kid} of the set is not what its id says")),
            Some(_) | None => Ok(public),
        }
    };
    keys.iter().map(read).collect()
}
