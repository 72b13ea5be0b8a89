use domain::{Id, Mode};
use serde_json::json;

use super::*;
use crate::tokens::PublicKey;

fn scope() -> Scope {
    Scope { organization: Id::new(Timestamp::from_micros(1_700_000_000_000_000), [7; 10]), mode: Mode::Test }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::generate(&[seed; 32])
}

fn entry(log_no: i64, amount: i64) -> SealedEntry {
    let postings =
        [("rail_clearing:simulator".to_owned(), amount), ("merchant".to_owned(), 3 - amount), ("fees".to_owned(), -3)];
    SealedEntry::new(
        log_no,
        format!("entry_{log_no}"),
        format!("txn_{log_no}"),
        Currency::gmd(),
        Timestamp::from_micros(1_700_000_000_000_000 + log_no),
        &postings,
    )
}

/// Batches of 1, 2, 3 … entries.
fn chain(batches: i64) -> Vec<(SealedBatch, Vec<SealedEntry>)> {
    let mut chain: Vec<(SealedBatch, Vec<SealedEntry>)> = Vec::new();
    let mut next = 1;
    for size in 1..=batches {
        let entries: Vec<SealedEntry> = (next..next + size).map(|log_no| entry(log_no, 100 + log_no)).collect();
        next += size;
        let previous = chain.last().map(|(batch, _)| batch);
        let now = Timestamp::from_micros(1_700_000_100_000_000 + size);
        let batch = seal(scope(), previous, &entries, &key(1), now).expect("sums fit");
        chain.push((batch, entries));
    }
    chain
}

fn export(chain: &[(SealedBatch, Vec<SealedEntry>)]) -> String {
    let scope = scope();
    let mut lines = vec![Line::Header {
        organization_id: scope.organization.to_string(),
        mode: scope.mode.as_str().into(),
        exported_at: "2026-01-31T12:00:00Z".into(),
        keys: json!({ "keys": [key(1).public().jwk()] }),
    }];
    for (batch, entries) in chain {
        lines.extend(entries.iter().cloned().map(Line::Entry));
        lines.push(Line::Batch(batch.clone()));
    }
    lines.push(Line::End { unsealed_entries: 2 });
    lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
}

fn trusted() -> Vec<PublicKey> {
    vec![key(1).public().clone()]
}

#[test]
fn a_whole_export_is_sound_and_says_what_it_does_not_cover() {
    let checked = check(export(&chain(5)).as_bytes(), Some(trusted())).expect("sound");
    assert_eq!((checked.first_batch, checked.last_batch, checked.entries, checked.unsealed_entries), (1, 5, 15, 2));
    assert!(checked.is_whole && !checked.trusts_its_own_keys);
    let shown: Vec<String> = checked
        .balances
        .iter()
        .map(|of| format!("{} {} {} {}", of.currency, of.account, of.debits, of.credits))
        .collect();
    assert_eq!(shown, ["GMD fees 0.00 0.45", "GMD merchant 0.00 15.75", "GMD rail_clearing:simulator 16.20 0.00"]);
    assert!(check(export(&chain(5)).as_bytes(), None).expect("sound").trusts_its_own_keys);
    let empty = check(export(&[]).as_bytes(), Some(trusted())).expect("nothing is sound");
    assert_eq!((empty.last_batch, empty.entries), (0, 0));
}

#[test]
fn any_flipped_bit_of_what_is_sealed_breaks_it() {
    let text = export(&chain(2));
    let header = text.find('\n').expect("a header");
    let end = text.rfind("{\"end\"").expect("an end");
    for at in header + 1..end {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let sound = check(bytes.as_slice(), Some(trusted()));
            // White space between tokens is the one thing that says nothing.
            assert!(sound.is_err(), "byte {at} ({:?}) bit {bit}", &text[at..=at]);
        }
    }
}

#[test]
fn what_is_left_out_put_in_or_moved_is_seen() {
    let whole = chain(4);
    let without = |index: usize| {
        let mut chain = whole.clone();
        chain.remove(index);
        chain
    };
    for index in 0..3 {
        check(export(&without(index)).as_bytes(), Some(trusted())).expect_err("a batch is missing");
    }
    let shorter = check(export(&without(3)).as_bytes(), Some(trusted())).expect("a shorter chain is a chain");
    assert_eq!(shorter.last_batch, 3, "what was cut off at the end is seen by its last batch only");
    let mut swapped = whole.clone();
    swapped.swap(1, 2);
    check(export(&swapped).as_bytes(), Some(trusted())).expect_err("the order counts");
    let mut fewer = whole.clone();
    fewer[3].1.pop();
    check(export(&fewer).as_bytes(), Some(trusted())).expect_err("an entry is missing");
    let mut more = whole.clone();
    more[3].1.push(entry(11, 500));
    check(export(&more).as_bytes(), Some(trusted())).expect_err("an entry too many");
    let cut = export(&whole);
    check(&cut.as_bytes()[..cut.rfind("{\"end\"").unwrap()], Some(trusted())).expect_err("the end is missing");
    check(format!("{cut}{cut}").as_bytes(), Some(trusted())).expect_err("something follows the end");
    check("".as_bytes(), Some(trusted())).expect_err("nothing");
    check("{}".as_bytes(), Some(trusted())).expect_err("no answer");
}

#[test]
fn another_key_another_merchant_or_an_unbalanced_entry_is_refused() {
    let whole = chain(2);
    let foreign = vec![key(2).public().clone()];
    let fault = check(export(&whole).as_bytes(), Some(foreign)).expect_err("not that key");
    let Fault::Unsound(fault) = fault else { panic!("{fault:?}") };
    assert_eq!((fault.line, fault.what.contains("none of those that are trusted")), (3, true), "{fault}");
    let forged = seal(scope(), Some(&whole[0].0), &whole[1].1, &key(2), Timestamp::from_micros(0)).unwrap();
    check(export(&[whole[0].clone(), (forged, whole[1].1.clone())]).as_bytes(), Some(trusted())).expect_err("forged");
    let other = Scope { mode: Mode::Live, ..scope() };
    let moved = seal(other, Some(&whole[0].0), &whole[1].1, &key(1), Timestamp::from_micros(0)).unwrap();
    check(export(&[whole[0].clone(), (moved, whole[1].1.clone())]).as_bytes(), Some(trusted()))
        .expect_err("other mode");
    let mut unbalanced = entry(1, 100);
    unbalanced.postings[0].amount = "1.01".into();
    let fault = seal(scope(), None, &[unbalanced], &key(1), Timestamp::from_micros(0)).expect_err("not sealed at all");
    assert_eq!(fault, "the postings of the entry entry_1 sum to 1 and not to zero");
    assert!(seal(scope(), None, &[], &key(1), Timestamp::from_micros(0)).is_err());
}

#[test]
fn one_entry_is_proven_without_the_others() {
    let whole = chain(6);
    let (batch, entries) = &whole[5];
    let verifier = Chain::new(trusted());
    for index in 0..entries.len() {
        let inclusion = include(entries, index, batch);
        assert_eq!(verifier.includes(&inclusion).expect("included").batch, 6);
        let mut other = inclusion.clone();
        other.entry.postings[1].account = "fees".into();
        verifier.includes(&other).expect_err("another account");
        let mut other = inclusion.clone();
        other.entry.log_no += 1;
        verifier.includes(&other).expect_err("another place");
        let mut other = inclusion;
        other.batch = whole[4].0.clone();
        verifier.includes(&other).expect_err("another batch");
    }
    let sealed = whole[5].0.statement().unwrap().balances;
    let answer = json!({ "data": {
        "trial_balance": { "sealed": sealed, "unsealed": [] }, "batch_count": 6, "sealed_entries": 21, "unsealed_entries": 0,
        "batches": whole[3..].iter().map(|(batch, _)| batch).collect::<Vec<_>>(),
        "keys": { "keys": [key(1).public().jwk()] },
        "transaction": { "transaction_id": entries[2].transaction_id, "entries": [include(entries, 2, batch)] },
    } });
    let checked = check(answer.to_string().as_bytes(), Some(trusted())).expect("sound");
    assert_eq!((checked.is_whole, checked.first_batch, checked.last_batch, checked.entries), (false, 4, 6, 1));
    let mut broken = answer.clone();
    broken["data"]["transaction"]["transaction_id"] = "txn_1".into();
    check(broken.to_string().as_bytes(), Some(trusted())).expect_err("another transaction's entry");
    let mut broken = answer;
    broken["data"]["batches"].as_array_mut().unwrap().remove(1);
    check(broken.to_string().as_bytes(), Some(trusted())).expect_err("a batch is missing");
}

#[test]
fn a_signature_is_for_ledgers_only() {
    let (batch, entries) = chain(1).remove(0);
    let signature = hex(&key(1).sign("dalasi receipt", batch.statement.as_bytes()));
    let fault =
        Chain::new(trusted()).follow(&SealedBatch { signature, ..batch }, &entries).expect_err("another purpose");
    assert_eq!(fault, "the signature of batch 1 is not the key's");
}

#[test]
fn amounts_are_read_as_they_were_printed() {
    assert_eq!(minor("100.00", "GMD"), Ok(10_000));
    assert_eq!(minor("100", "XOF"), Ok(100));
    for wrong in ["100", "100.0", "0100.00", "-1.00", "+1.00", "1e2", "1 00.00", "", "100.000", "٣.٠٠"] {
        minor(wrong, "GMD").expect_err(wrong);
    }
    minor("1.00", "gmd").expect_err("no currency");
}

#[test]
fn sums_may_be_larger_than_any_amount() {
    let mut chain: Vec<(SealedBatch, Vec<SealedEntry>)> = Vec::new();
    for log_no in 1..=3 {
        let (previous, entries) = (chain.last().map(|(batch, _)| batch), vec![entry(log_no, i64::MAX)]);
        let sealed = seal(scope(), previous, &entries, &key(1), Timestamp::from_micros(log_no)).expect("sums fit");
        chain.push((sealed, entries));
    }
    let checked = check(export(&chain).as_bytes(), Some(trusted())).expect("sound");
    assert_eq!(checked.balances[2].debits, "276701161105643274.21");
    // What a file says beyond everything that there can be is refused, and overflows nothing.
    for digits in [31, 39, 50] {
        let balance = |account: &str| {
            let debits = format!("{}.00", "9".repeat(digits));
            AccountTotals { account: account.into(), currency: "GMD".into(), debits, credits: "0.00".into() }
        };
        Totals::read(&[balance("fees"), balance("merchant")]).expect_err("more than there is");
    }
    let mut totals = Totals::default();
    totals.post("fees", "GMD", Side::Debit, MOST).expect("the most");
    totals.post("fees", "GMD", Side::Debit, 1).expect_err("more than there is");
}

/// Whoever has a key may sign what never was. An answer of the API may begin with any batch.
#[test]
fn numbers_behind_which_there_are_none_are_refused() {
    let forged = |batch: i64, first: i64, last: i64, previous: Option<String>| {
        let statement = Statement { batch, first, last, previous, ..chain(1)[0].0.statement().unwrap() };
        let statement = serde_json::to_string(&statement).unwrap();
        let signature = hex(&key(1).sign(PURPOSE, statement.as_bytes()));
        SealedBatch { statement, signature }
    };
    for (batch, last) in [(i64::MAX, 1), (1, i64::MAX), (i64::MAX, i64::MAX)] {
        let end = forged(batch, 1, last, None);
        for next in [i64::MIN, 1, i64::MAX] {
            let behind = forged(next, next, next, Some(end.hash()));
            let mut verifier = Chain::new(trusted());
            verifier.link(&end).expect("it says nothing of what comes behind it");
            let fault = verifier.link(&behind).expect_err("nothing can come behind it");
            assert_eq!(fault, format!("batch {batch} has numbers behind which nothing can follow"));
            let answer = json!({
                "trial_balance": { "sealed": [] }, "batch_count": next, "sealed_entries": next, "unsealed_entries": 0,
                "batches": [end, behind], "keys": { "keys": [key(1).public().jwk()] }, "transaction": null,
            });
            for trusted in [Some(trusted()), None] {
                let fault = check(answer.to_string().as_bytes(), trusted).expect_err("nothing can come behind it");
                assert!(matches!(fault, Fault::Unsound(_)), "{fault:?}");
            }
        }
    }
    // A single proof from a batch that has all places there are.
    for (first, last) in [(i64::MIN, i64::MAX), (0, i64::MAX), (i64::MAX, i64::MIN)] {
        let batch = forged(1, first, last, None);
        for log_no in [i64::MIN, 0, 1, i64::MAX] {
            let entry = SealedEntry { log_no, ..entry(1, 100) };
            let inclusion = Inclusion { entry, batch: batch.clone(), path: vec!["0".repeat(64); 64] };
            Chain::new(trusted()).includes(&inclusion).expect_err("it is not in there");
        }
    }
}
