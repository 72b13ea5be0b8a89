//! How many durable writes a second: `cargo run --profile dist --example durable_writes -- [PATH or URL] [writers] [seconds]`.
//!
//! Each write is a transaction with one insert of about 1 KB under an id in time order, answered after its commit. Closed
//! loop: each writer waits for its answer. A tool to look with, not a test.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use store::{Clock, Database, EntropySource, Error, Migration, Schema, Settings, Store};

struct System;

#[expect(clippy::disallowed_methods, reason = "a clock has to take its time from somewhere")]
impl Clock for System {
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

impl EntropySource for System {
    fn fill(&self, bytes: &mut [u8; 32]) {
        bytes[..8].copy_from_slice(&self.now_us().to_le_bytes());
    }
}

const TABLE: &str = "create table notes (id text primary key, body text not null);";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "durable_writes.sqlite".to_owned());
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (writers, seconds) = (number(64), number(5));

    let database = if place.starts_with("postgres") {
        Database::Postgres { url: place }
    } else {
        Database::Sqlite { path: place.into() }
    };
    let schema = Schema {
        migrations: vec![Schema::product().migrations[0].clone(), Migration { number: 2, name: "notes", text: TABLE }]
            .leak(),
        tables: &["notes"],
    };
    let store = Store::open_with(Settings::new(database), schema, Arc::new(System), Arc::new(System)).await?;

    let (stop, next, done) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let run = System.now_us();
    let body = "x".repeat(1000);
    let mut tasks = Vec::new();
    for _ in 0..writers {
        let (store, stop, next, done, body) = (store.clone(), stop.clone(), next.clone(), done.clone(), body.clone());
        tasks.push(tokio::spawn(async move {
            let mut slowest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let id = format!("{run}-{:012}", next.fetch_add(1, Ordering::Relaxed));
                let body = body.clone();
                let before = System.now_us();
                let insert = "insert into notes (id, body) values ($1, $2)";
                store.write(move |tx| tx.append("notes", insert, &[(&id).into(), (&body).into()])).await?;
                slowest = slowest.max(Duration::from_micros(u64::try_from(System.now_us() - before).unwrap_or(0)));
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, Error>(slowest)
        }));
    }
    let mut before = 0;
    for second in 1..=seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let count = done.load(Ordering::Relaxed);
        println!("second {second}: {} writes", count - before);
        before = count;
    }
    stop.store(true, Ordering::Relaxed);
    let mut slowest = Duration::ZERO;
    for task in tasks {
        slowest = slowest.max(task.await.map_err(|error| Error::Panic(error.to_string()))??);
    }
    println!("{} writes/s with {writers} writers, slowest answer {slowest:?}", before / seconds.max(1));
    store.close().await;
    Ok(())
}
