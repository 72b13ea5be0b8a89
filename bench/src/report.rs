//! The table, and the page that is made of it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::goals::{GROWTH, LATENCY, LISTS_ON_POSTGRES, WRITERS};
use crate::options::{Options, Scale};
use crate::picture::Picture;
use crate::resume::Measured;
use crate::row::{Found, Row};
use crate::run::Bench;
use crate::{Result, product};

const HEADS: [&str; 7] = ["goal", "what", "wanted", "found", "spread", "count", "verdict"];

const INTRODUCTION: &str = "\
# Speed, memory, scale

What the goals are, and what was found on one machine. Absolute figures differ from machine to machine and from hour to hour, so nearly all
of these are ratios to a reference that ran in the same minute, interleaved with it, warmed up; the figure is the median of at least five repeats, the spread goes
from the lowest to the highest of them; lists are asked for so often one after the other, and how often an event is delivered (G11) and what is taken on disk
(without the room of rows that are gone) is counted once. The whole product is measured: authentication, validation, idempotency, event, job and
ledger rows, and every answered write synced to the disk. The load is a closed loop over 64 keep-alive connections unless it says otherwise.

- **E** is a bare server of the same framework that parses a JSON body of 420 bytes and answers one of 1 KB: same build profile, allocator, core and client.
- **S** is one write and sync of 1 KB on a file of zeros on the same disk.
- **P** is `pgbench` with prepared statements: one row of the same size and indexes in each transaction, 16 connections, the same cluster.

G10 runs beside what else one might pick, in the versions that `bench/peers` pins, each on the core that our server gets: `cargo xtask bench --peers` installs
them below the target folder. Their create is the nearest that they have to a checkout: a payment intent (localstripe), an order with its first item (Vendure),
a charge (stripe-stateful-mock), an invoice that nobody pays (LNbits on SQLite). Ours is `POST /v1/checkouts` on SQLite.
";

const WHY: &str = "Where a goal falls short, [Where the time goes](performance/profile.md) says why.";

/// Of each connection's page cache on SQLite, and how many connections read.
const CACHE_OF_WRITER_MB: usize = 16;
const CACHE_OF_READER_MB: usize = 4;
const READERS: usize = 8;

/// One row for the terminal.
pub(crate) fn line(row: &Row) -> String {
    let [goal, what, wanted, found, spread, count, verdict] = row.cells();
    format!("{goal:<4} {what:<52} {wanted:>11} {found:>11}  {spread:<23} {count:>9}  {verdict}")
}

pub(crate) fn table(rows: &[Row]) -> String {
    let [goal, what, wanted, found, spread, count, verdict] = HEADS;
    let mut text = format!("{goal:<4} {what:<52} {wanted:>11} {found:>11}  {spread:<23} {count:>9}  {verdict}\n");
    for row in rows {
        text.push_str(&line(row));
        text.push('\n');
    }
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict() == verdict).count();
    let _ = write!(text, "\n{} pass, {} short, {} not run", count("pass"), count("short"), count("NOT RUN"));
    text
}

fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|---|---|---|---|---|---|---|\n", HEADS.join(" | "));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.cells().join(" | "));
    }
    text
}

/// `performance.md` and its pictures.
pub(crate) fn write(folder: &Path, bench: &Bench<'_>, rows: &[Row]) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(folder.join("performance")).map_err(|error| format!("{}: {error}", folder.display()))?;
    let shared_buffers = match &bench.options.postgres {
        Some((url, programs)) => Some(product::psql(url, programs, &["show shared_buffers"])?),
        None => None,
    };
    let (origin, caches) = (origin(bench.options, rows), caches(shared_buffers.as_deref()));
    let mut page =
        format!("{INTRODUCTION}\n{}\n\n{WHY}\n\n{origin}\n\n{}\n{caches}\n\n{}", lists(), machine(), markdown(rows));
    let growth = bench.resume.points(GROWTH);
    if growth.len() > 1 {
        let points = growth.into_iter().map(|(stored, share)| (stored.log10(), rounded(stored), share * 100.0));
        let picture = Picture {
            title: "Creating a checkout while the store grows",
            x: "checkouts stored",
            y: "% of E",
            points: points.collect(),
        };
        put("performance/growth.svg", &picture.svg())?;
        page.push_str("\n![Creating a checkout while the store grows](performance/growth.svg)\n");
    }
    let latency = bench.resume.points(LATENCY);
    if latency.len() > 1 {
        let points = latency.into_iter().enumerate();
        let points = points.map(|(place, (share, milliseconds))| (place as f64, percentile(share), milliseconds));
        let picture = Picture {
            title: "How long a create takes with 64 connections",
            x: "of the answers",
            y: "ms",
            points: points.collect(),
        };
        put("performance/latency.svg", &picture.svg())?;
        page.push_str("\n![How long a create takes with 64 connections](performance/latency.svg)\n");
    }
    put("performance.md", &page)
}

/// Of what it was measured, when, and how to do it again.
fn origin(options: &Options, rows: &[Row]) -> String {
    let Measured { commit, profile, scale } = &options.measured;
    let room = if *scale == Scale::Full { " and has 60 GB of disk free" } else { "" };
    let had_peers = rows.iter().any(|row| row.goal == "G10" && matches!(row.found, Found::Figure { .. }));
    let peers = if had_peers { " --peers" } else { "" };
    format!(
        "Measured of commit {commit} on {}. To repeat it, on a machine that does nothing else{room}: \
         `cargo xtask bench {} --profile {profile}{peers} --write`.",
        options.date,
        scale.word()
    )
}

/// How the lists of G6 are asked for.
fn lists() -> String {
    let millions = LISTS_ON_POSTGRES / 1_000_000;
    format!(
        "The lists of G6 are asked for on one connection while {WRITERS} others, in a closed loop, make checkouts of the same merchant and \
         cancel them, so that\neach list is counted anew; how many writes that were is told. A list's figure is the median of them all, \
         its spread goes from the shortest to the longest. The\nfirst after a start is the first answer of a server that was started \
         anew, whose machine still has in its memory what it had. On PostgreSQL lists are measured\nwith `--full` alone, on a store of \
         {millions} million, vacuumed once after it was filled: nobody has ten million there."
    )
}

/// What each database keeps in its own memory of what is stored. Without a cluster nothing is said of PostgreSQL's.
fn caches(shared_buffers: Option<&str>) -> String {
    let all = CACHE_OF_WRITER_MB + READERS * CACHE_OF_READER_MB;
    let mut text = format!(
        "Of what is stored the embedded database keeps at most {all} MB in its page caches: {CACHE_OF_WRITER_MB} MB for the connection \
         that writes,\n{CACHE_OF_READER_MB} MB for each of the {READERS} that read (`cache_size`)."
    );
    if let Some(shared_buffers) = shared_buffers {
        let _ = write!(text, " PostgreSQL's `shared_buffers` were {}.", shared_buffers.trim());
    }
    text
}

/// What the figures depend on, and nothing that names the machine.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let processor = value(&read("/proc/cpuinfo"), "model name");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kilobytes = value(&read("/proc/meminfo"), "MemTotal");
    let gigabytes = kilobytes.trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0 / 1024.0;
    let release = read("/proc/sys/kernel/osrelease");
    let system: Vec<&str> = release.trim().split('.').take(2).collect();
    format!("The machine: {cores} cores ({processor}), {gigabytes:.0} GB of memory, Linux {}.", system.join("."))
}

fn rounded(stored: f64) -> String {
    match stored {
        stored if stored >= 1e6 => format!("{:.0} M", stored / 1e6),
        stored if stored >= 1e3 => format!("{:.0} k", stored / 1e3),
        stored => format!("{stored:.0}"),
    }
}

fn percentile(share: f64) -> String {
    match share {
        share if share >= 1.0 => "worst".to_owned(),
        share if share <= 0.0 => "best".to_owned(),
        share => format!("{} %", (share * 1e4).round() / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Unit, Wanted};

    #[test]
    fn the_table_counts_its_verdicts() {
        let rows = [
            Row::new("G1", "create", &[0.5], Wanted::AtLeast(0.4, Unit::Share), 1),
            Row::new("G3", "get", &[0.5], Wanted::AtLeast(0.75, Unit::Share), 1),
            Row::not_run("G10", "a peer", "it is not installed"),
        ];
        assert!(table(&rows).ends_with("1 pass, 1 short, 1 not run"));
        assert_eq!(markdown(&rows).lines().count(), 2 + rows.len());
    }

    #[test]
    fn the_page_says_of_what_it_is_and_how_it_is_repeated() {
        let line = "--dalasi d --folder f --full --profile dist --commit 1a2b3c --date 2026-11-30";
        let options =
            Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).expect("a good line");
        let peer = Row::new("G10", "a peer", &[301.0], Wanted::AtLeast(300.0, Unit::Times), 1);
        let page = origin(&options, &[peer]);
        assert!(page.contains("commit 1a2b3c on 2026-11-30"), "{page}");
        assert!(page.contains("--full --profile dist --peers --write"), "{page}");
        assert!(!origin(&options, &[Row::not_run("G10", "a peer", "it is not installed")]).contains("--peers"));
    }

    #[test]
    fn the_page_says_how_lists_are_measured() {
        let said = lists();
        assert!(said.contains("while 4 others") && said.contains("a store of 1 million"), "{said}");
    }

    #[test]
    fn the_page_says_how_large_the_caches_are() {
        let said = caches(Some("128MB\n"));
        assert!(said.contains("at most 48 MB") && said.ends_with("`shared_buffers` were 128MB."), "{said}");
        assert!(!caches(None).contains("PostgreSQL"));
    }

    /// What the page says of the store's settings is written there.
    #[test]
    fn the_caches_are_those_of_the_store() {
        let (connections, driver, settings) = (
            include_str!("../../crates/store/src/sqlite/connection.rs"),
            include_str!("../../crates/store/src/sqlite.rs"),
            include_str!("../../crates/store/src/settings.rs"),
        );
        let body = |name: &str| connections.split_once(name).map_or("", |(_, behind)| behind);
        let first = |name: &str| body(name).split_once("Self::open(path, flags, ").map_or("", |(_, behind)| behind);
        assert!(first("fn writing(").starts_with(&format!("{CACHE_OF_WRITER_MB} * 1024)")));
        assert!(first("fn reading(").starts_with(&format!("{CACHE_OF_READER_MB} * 1024)")));
        let half = READERS / 2;
        assert!(driver.contains(&format!("const NEAR: usize = {half};")));
        assert!(settings.contains(&format!("connections: {half},")));
    }

    #[test]
    fn places_have_short_names() {
        assert_eq!([rounded(1e4), rounded(3e6)], ["10 k", "3 M"]);
        assert_eq!([percentile(0.0), percentile(0.999), percentile(1.0)], ["best", "99.9 %", "worst"]);
    }
}
