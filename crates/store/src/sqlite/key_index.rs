//! Finds idempotency keys without a B-tree over them. They come in random order, so that each wrote a page of such an index for
//! itself: nearly half of what a create wrote to the log.
//!
//! Rows are appended, each with the next sequence. The digests of the newest are in memory. When there are enough of them they
//! become a run: stored in the order of the digests, in pages, with a filter that tells most digests which it doesn't hold. Some
//! short runs become a long one. What is in memory is read from the runs and from the rows behind the last of them, whenever it
//! isn't there.
//!
//! The index may hold what was undone or forgotten since, so whoever finds a sequence looks at its row. It never holds less than
//! there is: a row is known before it is inserted, it is read before rows are deleted ([`read_before_forgetting`]), a run is used
//! once it is committed, and no sequence is given to a second row as long as a run says where the first one stood.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{SHA256, digest};
use domain::planted;
use fastbloom::BloomFilter;

use crate::error::Error;
use crate::sql::{Row, Value};
use crate::tx::Tx;

/// Keys of a run when it is made. So many rows at most are read before the first look after a start.
pub(super) const RUN: usize = 8 * 1024;
/// Short runs that become a long one: each look asks the filters of all.
const MERGED: usize = 8;
/// So that a page of SQLite holds four of them, without any that overflow.
const PAGE: usize = 56;
const ENTRY_BYTES: usize = 16;
/// Of a filter, for each key: one digest in two thousand is taken for one that may be there.
const FILTER_BITS: usize = 16;
const FILTER_HASHES: u32 = 9;
const READ_AT_ONCE: usize = 4096;

const RUNS: &str = "\
select last_sequence
from idempotency_runs
order by last_sequence";

const RUN_OF: &str = "\
select last_sequence, filter
from idempotency_runs
where last_sequence = $1";

const SPANS: &str = "\
select first_sequence, last_sequence
from idempotency_runs
order by last_sequence desc";

const ALL_PAGES: &str = "\
select entries
from idempotency_run_pages
where last_sequence = $1";

const LAST_RUN: &str = "\
select max(last_sequence)
from idempotency_runs";

const LAST_ROW: &str = "\
select max(sequence)
from idempotency_keys";

const BEHIND: &str = "\
select organization_id, mode, space, idempotency_key, sequence
from idempotency_keys
where sequence > $1
order by sequence
limit $2";

const RUN_PAGE: &str = "\
select entries
from idempotency_run_pages
where last_sequence = $1 and first_digest <= $2
order by first_digest desc
limit 1";

const ADD_RUN: &str = "\
insert into idempotency_runs (last_sequence, first_sequence, filter)
values ($1, $2, $3)";

const ADD_PAGE: &str = "\
insert into idempotency_run_pages (last_sequence, first_digest, entries)
values ($1, $2, $3)";

const EMPTIED: &str = "\
select last_sequence
from idempotency_runs
where not exists (
    select 1
    from idempotency_keys
    where sequence >= first_sequence and sequence <= last_sequence)
order by last_sequence
limit 1";

const DROP_PAGES: &str = "\
delete from idempotency_run_pages
where last_sequence = $1";

const COVERING: &str = "\
select first_sequence, last_sequence, filter
from idempotency_runs
where first_sequence <= $1 and last_sequence >= $1
order by last_sequence desc
limit 1";

const DROP_RUN: &str = "\
delete from idempotency_runs
where last_sequence = $1";

/// Of organization, mode, space and key: the first eight bytes of their SHA-256.
type Digest = i64;
/// A digest, and the sequence of a row that has it.
type Entry = (Digest, i64);

/// On the connection that writes.
pub(crate) struct KeyIndex {
    run_length: usize,
    known: Option<Known>,
}

struct Known {
    runs: Vec<Run>,
    /// Rows behind the last run.
    newest: BTreeSet<Entry>,
    /// Of the next row.
    sequence: i64,
    /// From so many on, the newest become a run.
    due: usize,
    /// What was looked for last in the running closure, and the row that it has.
    looked: Option<(Digest, Option<i64>)>,
}

struct Run {
    last_sequence: i64,
    filter: BloomFilter,
}

impl KeyIndex {
    pub(super) fn new() -> Self {
        Self { run_length: RUN, known: None }
    }

    /// For histories, which are short.
    #[cfg(feature = "inline")]
    pub(super) fn of_short_runs() -> Self {
        Self { run_length: 12, known: None }
    }

    /// Somebody else may have written anything.
    pub(crate) fn forget(&mut self) {
        self.known = None;
    }

    /// Whether it is time for [`build`].
    pub(crate) fn is_due(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.newest.len() >= known.due)
    }

    /// What [`build`] did is committed.
    pub(crate) fn built(&mut self, built: Built) {
        let Some(known) = &mut self.known else { return };
        known.newest.retain(|(_, sequence)| *sequence > built.run.last_sequence);
        known.runs.retain(|run| built.others.contains(&run.last_sequence));
        known.runs.push(built.run);
        known.due = self.run_length;
    }

    /// It is not, and what is known is right without it: a while later it is tried again.
    pub(crate) fn not_built(&mut self) {
        if let Some(known) = &mut self.known {
            known.due = known.newest.len() + self.run_length / 8 + 1;
        }
    }
}

/// A run that is stored, and those that are stored beside it.
pub(crate) struct Built {
    run: Run,
    others: BTreeSet<i64>,
}

/// Where a key's row stands, or would.
pub(crate) enum Place {
    Taken(i64),
    Free(i64),
}

/// The row that `select` finds by organization, mode, space and key, `$1` to `$4`, and by its `sequence`, `$5`.
pub(crate) fn find(tx: &mut Tx<'_>, select: &str, key: &[Value]) -> Result<Option<Row>, Error> {
    let digest = digest_of(key);
    let mut found = None;
    for sequence in candidates(tx, digest)? {
        let mut values = key.to_vec();
        values.push(sequence.into());
        if let Some(row) = tx.query_opt(select, &values)? {
            found = Some((sequence, row));
            break;
        }
    }
    known(tx)?.looked = Some((digest, found.as_ref().map(|(sequence, _)| *sequence)));
    Ok(found.map(|(_, row)| row))
}

/// Where to store what `find` looked for in this transaction, just before.
pub(crate) fn place(tx: &mut Tx<'_>, select: &str, key: &[Value]) -> Result<Place, Error> {
    let digest = digest_of(key);
    let looked = known(tx)?.looked.filter(|looked| looked.0 == digest);
    let sequence = match looked {
        Some((_, sequence)) => sequence,
        None => find(tx, select, key)?.map(|row| row.get("sequence")).transpose()?,
    };
    let known = known(tx)?;
    known.looked = None;
    Ok(match sequence {
        Some(sequence) => Place::Taken(sequence),
        None => {
            let sequence = known.sequence;
            known.sequence += 1;
            known.newest.insert((digest, sequence));
            Place::Free(sequence)
        }
    })
}

/// Sequences of rows that may have it, the newest first.
fn candidates(tx: &mut Tx<'_>, digest: Digest) -> Result<Vec<i64>, Error> {
    let known = known(tx)?;
    let mut found: Vec<i64> =
        known.newest.range((digest, i64::MIN)..=(digest, i64::MAX)).map(|entry| entry.1).collect();
    let may_have = |run: &&Run| run.filter.contains_hash(digest.cast_unsigned());
    let runs: Vec<i64> = known.runs.iter().filter(may_have).map(|run| run.last_sequence).collect();
    for run in runs {
        if !planted!(Defect::RunsNotSearched) {
            found.extend(sequences_in(tx, run, digest)?);
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

fn sequences_in(tx: &mut Tx<'_>, run: i64, digest: Digest) -> Result<Vec<i64>, Error> {
    let Some(page) = tx.query_opt(RUN_PAGE, &[run.into(), digest.into()])? else { return Ok(Vec::new()) };
    let entries = entries(&page.get::<Vec<u8>>("entries")?)?;
    Ok(entries.into_iter().filter(|entry| entry.0 == digest).map(|entry| entry.1).collect())
}

fn known<'t>(tx: &'t mut Tx<'_>) -> Result<&'t mut Known, Error> {
    if index(tx)?.known.is_none() {
        let read = read(tx)?;
        index(tx)?.known = Some(read);
    }
    index(tx)?.known.as_mut().ok_or_else(|| Error::Corrupt("an index that was just read is gone".to_owned()))
}

fn index<'t>(tx: &'t mut Tx<'_>) -> Result<&'t mut KeyIndex, Error> {
    tx.key_index().ok_or_else(|| Error::Corrupt("idempotency keys are looked for where nobody writes".to_owned()))
}

fn read(tx: &mut Tx<'_>) -> Result<Known, Error> {
    // One after the other: of all of them together there would be two copies for a moment.
    let mut runs = Vec::new();
    for run in &tx.query(RUNS, &[])? {
        let last_sequence: i64 = run.get("last_sequence")?;
        runs.push(run_of(&tx.query_one(RUN_OF, &[last_sequence.into()])?)?);
    }
    let mut last = runs.last().map_or(0, |run| run.last_sequence);
    let mut newest = BTreeSet::new();
    loop {
        let rows = behind(tx, last, READ_AT_ONCE)?;
        last = rows.last().map_or(last, |entry| entry.1);
        newest.extend(&rows);
        if rows.len() < READ_AT_ONCE {
            break;
        }
    }
    Ok(Known { runs, newest, sequence: last + 1, due: index(tx)?.run_length, looked: None })
}

/// Entries of at most `limit` rows, in the order of their sequences.
fn behind(tx: &mut Tx<'_>, sequence: i64, limit: usize) -> Result<Vec<Entry>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = tx.query(BEHIND, &[sequence.into(), limit.into()])?;
    rows.iter().map(|row| Ok((digest_of(&row.values()[..4]), row.get("sequence")?))).collect()
}

/// Stores the newest as a run, together with the short ones before it when there are enough of them; in a transaction of its
/// own, and then it is time for [`KeyIndex::built`] or [`KeyIndex::not_built`].
pub(crate) fn build(tx: &mut Tx<'_>) -> Result<Built, Error> {
    let known = known(tx)?;
    let mut entries: Vec<Entry> = known.newest.iter().copied().collect();
    let last = known.sequence - 1;
    let long = i64::try_from(index(tx)?.run_length * MERGED / 2).unwrap_or(i64::MAX);
    let span = |row: &Row| Ok::<(i64, i64), Error>((row.get("first_sequence")?, row.get("last_sequence")?));
    let mut others = tx.query(SPANS, &[])?.iter().map(span).collect::<Result<Vec<_>, _>>()?;
    let short = others.iter().take_while(|(first, last)| last - first < long).count();
    if short + 1 >= MERGED {
        for (_, run) in others.drain(..short) {
            for page in tx.query(ALL_PAGES, &[run.into()])? {
                entries.extend(self::entries(&page.get::<Vec<u8>>("entries")?)?);
            }
            drop_run(tx, run)?;
        }
        entries.sort_unstable();
    }
    let run = store(tx, last, &entries)?;
    Ok(Built { run, others: others.into_iter().map(|(_, run)| run).collect() })
}

/// Before anybody looks: stores a long run of rows that were restored or migrated; true while there may be more of them.
pub(crate) fn catch_up(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let mut last = |sql| Ok(tx.query_one(sql, &[])?.get::<Option<i64>>(0)?.unwrap_or(0));
    let (in_runs, of_all) = (last(LAST_RUN)?, last(LAST_ROW)?);
    if usize::try_from(of_all - in_runs).is_ok_and(|most| most < RUN) {
        return Ok(false);
    }
    tx.unhurried();
    let mut entries = behind(tx, in_runs, RUN * MERGED)?;
    let Some(last) = entries.last().map(|entry| entry.1).filter(|_| entries.len() >= RUN) else { return Ok(false) };
    entries.sort_unstable();
    store(tx, last, &entries)?;
    Ok(true)
}

/// What is read behind a deletion lacks what is there again if the transaction is undone.
pub(crate) fn read_before_forgetting(tx: &mut Tx<'_>) -> Result<(), Error> {
    known(tx).map(drop)
}

/// Deletes a run that has no row any more; whether there was one.
pub(crate) fn drop_emptied(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let Some(run) = tx.query_opt(EMPTIED, &[])? else { return Ok(false) };
    drop_run(tx, run.get("last_sequence")?)?;
    Ok(true)
}

fn drop_run(tx: &mut Tx<'_>, run: i64) -> Result<(), Error> {
    tx.execute(DROP_PAGES, &[run.into()])?;
    tx.execute(DROP_RUN, &[run.into()]).map(drop)
}

/// Entries in their order, of all rows from behind the last run to `last`.
fn store(tx: &mut Tx<'_>, last: i64, entries: &[Entry]) -> Result<Run, Error> {
    let before = tx.query_one(LAST_RUN, &[])?.get::<Option<i64>>(0)?.unwrap_or(0);
    let filter = filter_for(entries);
    let bits: Vec<u8> = filter.iter().flat_map(u64::to_le_bytes).collect();
    tx.append("idempotency_runs", ADD_RUN, &[last.into(), (before + 1).into(), bits.into()])?;
    for page in pages(entries) {
        let bytes: Vec<u8> = page
            .iter()
            .flat_map(|(digest, sequence)| [digest.to_le_bytes(), sequence.to_le_bytes()])
            .flatten()
            .collect();
        tx.append("idempotency_run_pages", ADD_PAGE, &[last.into(), page[0].0.into(), bytes.into()])?;
    }
    Ok(Run { last_sequence: last, filter })
}

/// All entries of one digest stand in one page.
fn pages(entries: &[Entry]) -> Vec<&[Entry]> {
    let mut pages = Vec::with_capacity(entries.len() / PAGE + 1);
    let mut rest = entries;
    while !rest.is_empty() {
        let mut length = rest.len().min(PAGE);
        while length < rest.len() && rest[length].0 == rest[length - 1].0 {
            length += 1;
        }
        let (page, behind) = rest.split_at(length);
        pages.push(page);
        rest = behind;
    }
    pages
}

fn entries(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
    let broken = || Error::Corrupt("a page of a run of idempotency keys is cut short".to_owned());
    let number = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map_err(|_| broken());
    if !bytes.len().is_multiple_of(ENTRY_BYTES) {
        return Err(broken());
    }
    bytes.chunks_exact(ENTRY_BYTES).map(|entry| Ok((number(&entry[..8])?, number(&entry[8..])?))).collect()
}

fn filter_for(entries: &[Entry]) -> BloomFilter {
    let mut filter = BloomFilter::with_num_bits(entries.len().max(1) * FILTER_BITS).hashes(FILTER_HASHES);
    for (digest, _) in entries {
        filter.insert_hash(digest.cast_unsigned());
    }
    filter
}

fn run_of(row: &Row) -> Result<Run, Error> {
    Ok(Run { last_sequence: row.get("last_sequence")?, filter: filter_of(&row.get::<Vec<u8>>("filter")?)? })
}

fn filter_of(bytes: &[u8]) -> Result<BloomFilter, Error> {
    let (words, rest) = bytes.as_chunks::<8>();
    if words.is_empty() || !rest.is_empty() {
        return Err(Error::Corrupt("the filter of a run of idempotency keys is cut short".to_owned()));
    }
    Ok(BloomFilter::from_vec(words.iter().copied().map(u64::from_le_bytes).collect()).hashes(FILTER_HASHES))
}

/// A line break is in none of them.
fn digest_of(key: &[Value]) -> Digest {
    let mut named = String::with_capacity(128);
    for part in key {
        if let Value::Text(text) = part {
            named.push_str(text);
        }
        named.push('\n');
    }
    let hashed = digest(&SHA256, named.as_bytes());
    hashed.as_ref().first_chunk().copied().map_or(0, i64::from_be_bytes)
}

/// A row of the table: organization, mode, space and key, and its sequence.
pub(crate) type Named = (Vec<Value>, i64);

/// Sequences of those among `rows` that would not be found by their keys.
pub(crate) fn unfound(tx: &mut Tx<'_>, rows: &[Named]) -> Result<BTreeSet<i64>, Error> {
    let mut unfound = BTreeSet::new();
    let last = tx.query_one(LAST_RUN, &[])?.get::<Option<i64>>(0)?.unwrap_or(0);
    let mut covering: Option<(i64, Run)> = None;
    for (key, sequence) in rows {
        if !covering.as_ref().is_some_and(|(first, run)| (*first..=run.last_sequence).contains(sequence)) {
            covering = tx
                .query_opt(COVERING, &[(*sequence).into()])?
                .map(|row| Ok::<_, Error>((row.get("first_sequence")?, run_of(&row)?)))
                .transpose()?;
        }
        let digest = digest_of(key);
        let is_found = match &covering {
            Some((_, run)) => {
                run.filter.contains_hash(digest.cast_unsigned())
                    && sequences_in(tx, run.last_sequence, digest)?.contains(sequence)
            }
            // Behind the last run: the row itself is looked at when the index is read.
            None => *sequence > last,
        };
        if !is_found {
            unfound.insert(*sequence);
        }
    }
    Ok(unfound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: i64) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            (1..=count).map(|number| (digest_of(&[number.to_string().into()]), number)).collect();
        entries.sort_unstable();
        entries
    }

    /// What is stored is read by every later version: whatever another filter, another digest or another order would make of it
    /// would be keys that are not found.
    #[test]
    fn what_was_stored_is_found_for_ever() {
        let key = ["org_1", "test", "secret", "order-1"].map(Value::from);
        assert_eq!(digest_of(&key), 7_507_902_949_837_397_871);
        let filter = filter_for(&numbered(8));
        assert_eq!(filter.iter().collect::<Vec<_>>(), [4_935_978_206_611_809_549, 227_804_152_576_295_626]);
    }

    #[test]
    fn a_filter_knows_its_own_and_few_others() {
        let entries = numbered(50_000);
        let (own, others) = entries.split_at(30_000);
        let stored: Vec<u8> = filter_for(own).iter().flat_map(u64::to_le_bytes).collect();
        let filter = filter_of(&stored).unwrap();
        assert!(own.iter().all(|entry| filter.contains_hash(entry.0.cast_unsigned())));
        let wrong = others.iter().filter(|entry| filter.contains_hash(entry.0.cast_unsigned())).count();
        assert!(wrong < 40, "{wrong} of 20,000");
    }

    #[test]
    fn one_digest_stands_in_one_page() {
        let mut all: Vec<Entry> = (0..500).map(|number| (number / 7, number)).collect();
        all.extend((0..200).map(|number| (100, number)));
        let pages = pages(&all);
        assert_eq!(pages.concat(), all);
        assert!(pages.len() > 8 && pages.iter().all(|page| !page.is_empty()));
        assert!(pages.windows(2).all(|two| two[0].last().unwrap().0 < two[1][0].0));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        assert!(matches!(entries(&[0; 17]), Err(Error::Corrupt(_))));
        assert_eq!(entries(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]), Ok(vec![(1, 2)]));
        assert!(matches!(filter_of(&[0; 12]), Err(Error::Corrupt(_))));
        assert!(matches!(filter_of(&[]), Err(Error::Corrupt(_))));
    }
}
