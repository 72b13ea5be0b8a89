//! Reference S: what one durable kilobyte costs on the disk that holds the data.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::sample::Sample;
use crate::{Result, clock};

const BLOCK: usize = 1024;
/// Written with zeros before, so that no sync has to store a new length or a new place.
const FILE_BLOCKS: usize = 4096;

/// Writes and syncs `count` blocks, one after the other.
pub(crate) fn measure(folder: &Path, count: usize) -> Result<Sample> {
    let path = folder.join("sync");
    let measured = blocks(&path, count).map_err(|error| format!("{}: {error}", path.display()));
    // Left behind it would only take space.
    let _ = std::fs::remove_file(&path);
    measured
}

fn blocks(path: &Path, count: usize) -> std::io::Result<Sample> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all_at(&vec![0; BLOCK * FILE_BLOCKS], 0)?;
    file.sync_all()?;
    let mut latencies = Vec::with_capacity(count);
    let mut total = Duration::ZERO;
    for number in 0..count {
        let block = [u8::try_from(number % 251).unwrap_or_default(); BLOCK];
        let began = clock::now();
        file.write_all_at(&block, ((number % FILE_BLOCKS) * BLOCK) as u64)?;
        file.sync_data()?;
        let took = began.elapsed();
        latencies.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        total += took;
    }
    Ok(Sample::new(total, latencies))
}
