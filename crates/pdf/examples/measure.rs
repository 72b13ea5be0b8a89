//! How long a document takes once everything is warm, and whether memory stays flat:
//! `cargo run --release -p dalasi-pdf --example measure -- 10000`
#![expect(clippy::print_stdout, reason = "an example speaks on its streams")]

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::time::{Duration, Instant};

type Rendering = Box<dyn Fn() -> Result<Vec<u8>, pdf::Unwritten>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(10_000), |it| it.parse())?;
    let (invoice, french, arabic, long) = (samples::invoice(), samples::french(), samples::arabic(), samples::long());
    let receipt = samples::receipt();

    let first = now();
    pdf::invoice(&invoice)?;
    println!("the first document of the process: {:.1} ms", milliseconds(first.elapsed()));

    let renderings: [(&str, usize, Rendering); 5] = [
        ("invoice, 4 lines", 300, Box::new(move || pdf::invoice(&invoice))),
        ("invoice, French", 300, Box::new(move || pdf::invoice(&french))),
        ("invoice, Arabic", 300, Box::new(move || pdf::invoice(&arabic))),
        ("invoice, 200 lines", 50, Box::new(move || pdf::invoice(&long))),
        ("receipt", 300, Box::new(move || pdf::receipt(&receipt))),
    ];
    for (name, times, render) in &renderings {
        let mut took = Vec::new();
        let mut size = 0;
        for _ in 0..*times {
            let start = now();
            size = render()?.len();
            took.push(start.elapsed());
        }
        took.sort();
        let (median, slowest) = (took[took.len() / 2], took[took.len() * 99 / 100]);
        println!(
            "{name:<20} median {:>5.1} ms, p99 {:>5.1} ms, {size} bytes",
            milliseconds(median),
            milliseconds(slowest)
        );
    }

    println!("resident memory after {count} documents:");
    for done in 0..=count {
        if done % (count / 10).max(1) == 0 {
            println!("{done:>6}: {:.1} MiB", resident()?);
        }
        // Of different text each time, so that nothing kept by text could hide.
        let number = format!("INV-{done:06}-{}", "Awa Ñjie Çeesay".repeat(done % 5));
        if done % 4 == 0 {
            pdf::receipt(&pdf::Receipt { number, ..samples::receipt() })?;
        } else {
            pdf::invoice(&pdf::Invoice { number, ..samples::invoice() })?;
        }
    }
    Ok(())
}

/// MiB, as Linux counts them.
fn resident() -> Result<f64, Box<dyn std::error::Error>> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages.split_whitespace().nth(1).ok_or("no resident pages in statm")?.parse()?;
    Ok(pages * 4096.0 / f64::from(1 << 20))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[expect(clippy::disallowed_methods, reason = "this is what is measured, and decides nothing")]
fn now() -> Instant {
    Instant::now()
}
