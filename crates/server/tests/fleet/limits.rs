//! The rate limit counts in each process: of several a key gets as many times as much, and no more.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::cluster::{Cluster, programs};
use crate::place::{Place, client};
use crate::processes::Fleet;
use crate::{not_run, shown_once};

const PROCESSES: u64 = 3;
const PER_SECOND: u64 = 5;
/// What may come at once after a rest.
const BURST: u64 = 2 * PER_SECOND;
const FLOOD: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
struct Counted {
    answered: u64,
    refused: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_processes_a_key_gets_three_times_its_rate_and_no_more() {
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return not_run("the rate limit of several processes", why),
    };
    let cluster = Cluster::start(&programs, "");
    let url = cluster.url();
    let fleet = tokio::task::spawn_blocking(move || {
        let place = Place::on(&url);
        let fleet = Fleet::start(&place, &["api,worker"; PROCESSES as usize], PER_SECOND);
        (place, Arc::new(fleet))
    });
    let (_place, fleet) = fleet.await.unwrap();
    let key = shown_once(&fleet.said());
    let addresses = fleet.addresses();
    assert_eq!(addresses.len() as u64, PROCESSES, "{addresses:?}");

    let begun = dalasi::monotonic::now();
    let counted = join_all(addresses.iter().map(|address| flood(address, &key))).await;
    let of_one = BURST + (begun.elapsed().as_millis() as u64 * PER_SECOND).div_ceil(1000);

    let answered: u64 = counted.iter().map(|one| one.answered).sum();
    assert!(answered <= PROCESSES * of_one, "{answered} answers, and {of_one} for each: {counted:?}");
    assert!(of_one < answered, "{answered} answers are one's worth, which is {of_one}: {counted:?}");
    assert!(counted.iter().all(|one| one.refused > 0), "too few were asked to prove anything: {counted:?}");
}

/// One request after the other.
async fn flood(address: &str, key: &str) -> Counted {
    let (client, begun) = (client(), dalasi::monotonic::now());
    let mut counted = Counted::default();
    while begun.elapsed() < FLOOD {
        let answer = client.get(format!("{address}/v1/checkouts")).bearer_auth(key).send().await.unwrap();
        match answer.status().as_u16() {
            200 => counted.answered += 1,
            429 => counted.refused += 1,
            other => panic!("{other}: {}", answer.text().await.unwrap()),
        }
    }
    counted
}
