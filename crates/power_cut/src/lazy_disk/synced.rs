//! What the disk certainly holds of a file, where there is something newer.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::seeded::Seeded;

const SECTOR: u64 = 512;

/// Of a file that is synced as a whole there is nothing to remember.
#[derive(Default)]
pub(super) struct Synced {
    size: Option<u64>,
    /// By number. Behind the end of the file there are zeros.
    sectors: BTreeMap<u64, [u8; SECTOR as usize]>,
}

impl Synced {
    /// So many bytes are about to be written.
    pub(super) fn before_write(&mut self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.size.get_or_insert(file.metadata()?.len());
        self.keep(file, offset / SECTOR..(offset + length).div_ceil(SECTOR))
    }

    /// The file is about to end there.
    pub(super) fn before_resize(&mut self, file: &File, size: u64) -> io::Result<()> {
        let present = file.metadata()?.len();
        self.size.get_or_insert(present);
        // What is cut off. Where it grows there is nothing.
        self.keep(file, size / SECTOR..present.div_ceil(SECTOR))
    }

    fn keep(&mut self, file: &File, sectors: Range<u64>) -> io::Result<()> {
        for sector in sectors {
            if let Entry::Vacant(place) = self.sectors.entry(sector) {
                let mut content = [0; SECTOR as usize];
                read(file, &mut content, sector * SECTOR)?;
                place.insert(content);
            }
        }
        Ok(())
    }

    pub(super) fn is_all(&self) -> bool {
        self.size.is_none()
    }

    /// Of what is newer so many in a hundred stay.
    pub(super) fn restore(self, file: &File, chance: usize, random: &mut Seeded) -> io::Result<()> {
        let Some(synced) = self.size else { return Ok(()) };
        let newest = file.metadata()?.len();
        let mut stays = || random.in_hundred(chance);
        let size = if stays() { newest } else { synced };
        file.set_len(size)?;
        for (sector, content) in self.sectors {
            let at = sector * SECTOR;
            let length = size.saturating_sub(at).min(SECTOR);
            // Behind the end of a file that was cut off, where that was lost, there is nothing newer.
            let has_newer = size <= newest || at + SECTOR <= newest;
            if !(has_newer && stays()) {
                file.write_all_at(&content[..length as usize], at)?;
            }
        }
        Ok(())
    }
}

/// Fills the buffer up to the end of the file; how much that was.
pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// What is left of a file of three sectors when the power goes.
#[cfg(test)]
mod tests {
    use super::*;

    const OLD: [u8; 1_200] = [b'o'; 1_200];

    /// After `change`, with so many of a hundred that stay.
    fn left(name: &str, chance: usize, seed: u64, change: impl Fn(&mut Synced, &File)) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("dalasi-synced-{name}-{}", std::process::id()));
        std::fs::write(&path, OLD).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut synced = Synced::default();
        change(&mut synced, &file);
        synced.restore(&file, chance, &mut Seeded::new(seed)).unwrap();
        let left = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        left
    }

    fn write(synced: &mut Synced, file: &File, offset: u64, bytes: &[u8]) {
        synced.before_write(file, offset, bytes.len() as u64).unwrap();
        file.write_all_at(bytes, offset).unwrap();
    }

    fn resize(synced: &mut Synced, file: &File, size: u64) {
        synced.before_resize(file, size).unwrap();
        file.set_len(size).unwrap();
    }

    #[test]
    fn all_or_nothing_of_what_is_newer_stays() {
        let grown = |synced: &mut Synced, file: &File| write(synced, file, 500, &[b'n'; 2_000]);
        assert_eq!(left("lost", 0, 1, grown), OLD);
        assert_eq!(left("kept", 100, 1, grown), [&OLD[..500], &[b'n'; 2_000]].concat());
        let cut_off = |synced: &mut Synced, file: &File| {
            write(synced, file, 0, b"newer");
            resize(synced, file, 100);
            write(synced, file, 700, b"newest");
        };
        assert_eq!(left("cut-lost", 0, 1, cut_off), OLD);
        let kept = [&b"newer"[..], &[b'o'; 95], &[0; 600], b"newest"].concat();
        assert_eq!(left("cut-kept", 100, 1, cut_off), kept);
    }

    #[test]
    fn what_was_synced_is_not_lost() {
        let synced_between = |synced: &mut Synced, file: &File| {
            write(synced, file, 0, &[b's'; 1_200]);
            *synced = Synced::default();
            write(synced, file, 512, &[b'n'; 10]);
        };
        assert_eq!(left("synced", 0, 1, synced_between), [b's'; 1_200]);
    }

    /// Of each sector one or the other, and not always the same.
    #[test]
    fn any_subset_of_the_sectors_stays() {
        let newer = |synced: &mut Synced, file: &File| write(synced, file, 0, &[b'n'; 1_200]);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let left = left("subset", 50, seed, newer);
            let sectors: Vec<u8> = left.chunks(512).map(|sector| sector[0]).collect();
            assert!(left.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "{left:?}");
            seen.insert(sectors);
        }
        assert_eq!(seen.len(), 8, "{seen:?}");
    }

    /// A length that was cut off and is back has its old end.
    #[test]
    fn a_cut_that_is_lost_brings_all_back() {
        let cut_off = |synced: &mut Synced, file: &File| resize(synced, file, 100);
        for seed in 0..50 {
            let left = left("back", 50, seed, cut_off);
            assert!(left == OLD || left == OLD[..100], "{left:?}");
        }
    }
}
