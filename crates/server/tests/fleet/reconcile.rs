//! Afterwards: what was promised against what is there. Read from the database past the store, so that a fault of the store
//! can't hide itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_postgres::Client;

use crate::load::{Arrived, Load, Receiver, random};
use crate::place::Place;

/// Leases of a killed process run out after thirty seconds.
const PATIENCE: Duration = Duration::from_secs(150);

const ASK_NOW: &str = "
update jobs set due_at = (extract(epoch from now()) * 1000000)::bigint
where kind in ('ask_rail', 'ask_refund') and lease_until < (extract(epoch from now()) * 1000000)::bigint
and due_at > (extract(epoch from now()) * 1000000)::bigint + 2000000";

/// Whoever looks into a fault begins with these.
const IN_DOUBT: &str = "
select t.doc || coalesce(s.doc, 'the wallet knows nothing') || coalesce(j.kind || ' ' || j.attempts, 'nobody asks')
from transactions as t left join simulated_payments as s on s.transaction_id = t.id left join jobs as j on j.object_id = t.id
where t.step <> 'settled'
union all
select r.doc || coalesce(s.doc, 'the wallet knows nothing') || coalesce(j.kind || ' ' || j.attempts, 'nobody asks')
from refunds as r left join simulated_refunds as s on s.refund_id = r.id left join jobs as j on j.object_id = r.id
where r.status in ('pending', 'processing')";

/// What is still owed, by name; nothing is left when each is 0. Jobs of the far future aside.
const OWED: &[(&str, &str)] = &[
    ("events without a place in the log", "select count(*) from events_unlogged"),
    ("entries that are not sealed", "select count(*) from ledger_unsealed"),
    ("deliveries", "select count(*) from webhook_deliveries where status = 'pending'"),
    (
        "jobs",
        "select count(*) from jobs where due_at < (extract(epoch from now()) * 1000000)::bigint + 20000000
         and (kind <> 'ask_rail' or object_id in (select transaction_id from simulated_payments))",
    ),
    // One that the wallet never heard of stays in doubt: the call may still arrive, and a person decides.
    (
        "transactions in doubt",
        "select count(*) from transactions where step <> 'settled'
         and id in (select transaction_id from simulated_payments)",
    ),
    ("refunds in doubt", "select count(*) from refunds where status in ('pending', 'processing')"),
];

/// True of every installation, whatever happened; each query counts what is wrong.
const NEVER: &[(&str, &str)] = &[
    (
        "objects whose events have a gap",
        "select count(*) from (select 1 from events group by organization_id, mode, object_id
         having max(sequence) <> count(*) or min(sequence) <> 1) as wrong",
    ),
    (
        "logs with a gap",
        "select count(*) from (select 1 from event_log group by organization_id, mode
         having max(log_no) <> count(*) or min(log_no) <> 1) as wrong",
    ),
    (
        "transactions in doubt that nobody asks about",
        "select count(*) from transactions where step <> 'settled' and id not in (select object_id from jobs)",
    ),
    ("events that are not in the log", "select count(*) from events where id not in (select event_id from event_log)"),
    (
        "deliveries that never succeeded",
        "select count(*) from webhook_deliveries where status <> 'delivered'",
    ),
    (
        "events that no endpoint was owed",
        "select count(*) from events where id not in (select event_id from webhook_deliveries)",
    ),
    (
        "checkouts with two payments",
        "select count(*) from (select 1 from transactions where status in ('completed', 'refunded', 'partially_refunded')
         group by object_id having count(*) > 1) as wrong",
    ),
    (
        "paid transactions that the wallet knows nothing of",
        "select count(*) from transactions as t where status in ('completed', 'refunded', 'partially_refunded')
         and not exists (select 1 from simulated_payments as s where s.transaction_id = t.id
         and s.doc like '%\"state\":\"done\",\"outcome\":\"paid\"%')",
    ),
    (
        "wallets that paid for nothing",
        "select count(*) from simulated_payments as s where s.doc like '%\"state\":\"done\",\"outcome\":\"paid\"%'
         and not exists (select 1 from transactions as t where s.transaction_id = t.id
         and status in ('completed', 'refunded', 'partially_refunded'))",
    ),
    (
        "refunds whose wallet says otherwise",
        "select count(*) from refunds as r left join simulated_refunds as s on s.refund_id = r.id
         where (r.status = 'completed') <> coalesce(s.doc like '%\"paid_back\":true%', false)",
    ),
    ("numbers of migrations that were applied twice", "select count(*) - count(distinct number) from schema_migrations"),
    ("organizations too many", "select count(distinct organization_id) - 1 from organizations"),
];

/// Waits until nothing is owed, then compares. Every violation is a line.
pub(crate) async fn reconcile(place: &Place, database: &Client, load: &Arc<Load>, receiver: &Receiver, once: bool) {
    for left in settle(database).await {
        load.note(left);
    }
    for (name, sql) in NEVER {
        match count(database, sql).await {
            0 => {}
            count => load.note(format!("{count} {name}")),
        }
    }
    checkouts(database, load).await;
    refunds(database, load).await;
    repeat_some(load).await;
    let arrivals = receiver.got();
    let events: BTreeSet<String> = texts(database, "select id from events").await.into_iter().collect();
    for (endpoint, arrived) in &arrivals {
        deliveries(load, endpoint, arrived, &events, once);
    }
    let endpoints = count(database, "select count(*) from webhook_endpoints").await;
    if !events.is_empty() && i64::try_from(arrivals.len()).unwrap() != endpoints {
        load.note(format!("of {endpoints} endpoints {} got something", arrivals.len()));
    }
    let verified = place.run(&["verify"]);
    if !verified.status.success() {
        load.note(format!("dalasi verify: {verified:?}"));
    }
}

async fn settle(database: &Client) -> Vec<String> {
    let begun = dalasi::monotonic::now();
    loop {
        // The longer a rail says nothing, the less often it is asked; here that time passes at once.
        database.execute(ASK_NOW, &[]).await.unwrap();
        let mut left = Vec::new();
        for (name, sql) in OWED {
            match count(database, sql).await {
                0 => {}
                count => left.push(format!("{count} {name} are left")),
            }
        }
        if left.is_empty() || begun.elapsed() > PATIENCE {
            if !left.is_empty() {
                left.extend(texts(database, IN_DOUBT).await);
            }
            return left;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// One for each key that was answered, with the answer's id; at most one for each that was sent without a key.
pub(crate) async fn checkouts(database: &Client, load: &Load) {
    let mut of_reference: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for doc in texts(database, "select doc from checkouts").await {
        let doc: Value = serde_json::from_str(&doc).unwrap();
        let reference = doc.pointer("/order/reference").or(doc.get("reference")).and_then(Value::as_str);
        of_reference.entry(reference.unwrap().to_owned()).or_default().push(doc["id"].as_str().unwrap().to_owned());
    }
    let promises = load.promises.lock().unwrap();
    let mut found = Vec::new();
    for (key, kept) in &promises.created {
        let reference = key.strip_prefix("create-").unwrap();
        let there = of_reference.remove(reference).unwrap_or_default();
        if there != [kept.data("id")] {
            found.push(format!("{key} was answered by {}, and there is {there:?}", kept.data("id")));
        }
    }
    for (reference, acknowledged) in &promises.unkeyed {
        let there = of_reference.remove(reference).unwrap_or_default().len();
        if there > 1 || (*acknowledged && there != 1) {
            found.push(format!("{reference}, acknowledged: {acknowledged}, is there {there} times"));
        }
    }
    found.extend(of_reference.keys().map(|reference| format!("nobody was promised {reference}")));
    drop(promises);
    found.into_iter().for_each(|line| load.note(line));
}

async fn refunds(database: &Client, load: &Load) {
    let there: BTreeSet<String> = texts(database, "select id from refunds").await.into_iter().collect();
    let promised: Vec<String> = {
        let promises = load.promises.lock().unwrap();
        promises.refunded.values().filter(|kept| kept.status == 201).map(|kept| kept.data("id")).collect()
    };
    let distinct: BTreeSet<String> = promised.iter().cloned().collect();
    if distinct != there || distinct.len() != promised.len() {
        load.note(format!("{} refunds were promised, {} are there", promised.len(), there.len()));
    }
}

/// A repeated request gets the very bytes of the first answer.
async fn repeat_some(load: &Load) {
    let some: Vec<_> = {
        let promises = load.promises.lock().unwrap();
        let all = promises.created.iter().chain(&promises.refunded);
        all.step_by(7).map(|(key, kept)| (key.clone(), kept.clone())).collect()
    };
    let mut random = random(0, 0);
    for (key, kept) in some {
        let Some(url) = load.address(&mut random).await else { return };
        let again = load.post(&format!("{url}{}", kept.path), Some(&key), &kept.request).await;
        if again.as_ref() != Some(&(kept.status, kept.body.clone(), true)) {
            load.note(format!("{key} was answered by {} {}, then by {again:?}", kept.status, kept.body));
        }
    }
}

/// Each event came, none that isn't, n+1 never before n, and nothing earlier again once n+1 was sent.
fn deliveries(load: &Load, endpoint: &str, arrived: &[Arrived], events: &BTreeSet<String>, once: bool) {
    let mut latest: BTreeMap<&str, i64> = BTreeMap::new();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for Arrived { event, object, sequence } in arrived {
        *seen.entry(event).or_default() += 1;
        let before = latest.insert(object, *sequence).unwrap_or(0);
        if *sequence != before && *sequence != before + 1 {
            load.note(format!("{endpoint} got {sequence} of {object} after {before}"));
        }
        if !events.contains(event) {
            load.note(format!("{endpoint} got {event}, which is not there"));
        }
        if once && seen[event.as_str()] > 1 {
            load.note(format!("{endpoint} got {event} {} times", seen[event.as_str()]));
        }
    }
    let missing = events.iter().filter(|event| !seen.contains_key(event.as_str())).count();
    if missing > 0 {
        load.note(format!("{endpoint} misses {missing} of {} events", events.len()));
    }
}

async fn count(database: &Client, sql: &str) -> i64 {
    database.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{error:?}: {sql}")).get(0)
}

async fn texts(database: &Client, sql: &str) -> Vec<String> {
    database.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}
