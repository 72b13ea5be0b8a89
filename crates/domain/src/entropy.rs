//! Randomness as an argument: one 32-byte seed per command, from which ids, tokens and jitter
//! derive. The same seed gives the same values, so a command that runs again repeats itself.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::id::{Id, Object};
use crate::time::Timestamp;

pub struct Entropy {
    random: ChaCha20Rng,
    /// The 14 bits of an id behind its time: they count, so that ids drawn by one command sort as drawn.
    id_counter: Option<u16>,
}

impl Entropy {
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self { random: ChaCha20Rng::from_seed(seed), id_counter: None }
    }

    /// Ids sort by the microsecond of `now`, as what is read with them does: the 12 bits behind the milliseconds hold it
    /// (RFC 9562, section 6.2, method 3).
    pub fn id<T: Object>(&mut self, now: Timestamp) -> Id<T> {
        let mut random = [0; 10];
        let (behind_millis, rest) = random.split_at_mut(2);
        let micros = u16::try_from(now.micros().rem_euclid(1000)).expect("less than a thousand");
        behind_millis.copy_from_slice(&micros.to_be_bytes());
        self.random.fill_bytes(rest);
        // The first is random with its highest bit free, so that eight thousand more fit.
        let counter = match self.id_counter {
            None => u16::from_be_bytes([rest[0], rest[1]]) & 0x1fff,
            Some(counter) => (counter + 1) & 0x3fff,
        };
        self.id_counter = Some(counter);
        rest[..2].copy_from_slice(&counter.to_be_bytes());
        Id::new(now, random)
    }

    /// 256 bits for a secret.
    pub fn secret(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// 128 bits that are drawn once.
    pub fn nonce(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// A number from 0 to `bound` - 1; good enough for jitter, not for lotteries.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        self.random.next_u64() % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing;
    impl Object for Thing {
        const PREFIX: &'static str = "cs";
        const NOUN: &'static str = "thing";
    }

    #[test]
    fn ids_of_one_command_sort_as_drawn() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        for seed in 0..100 {
            let mut entropy = Entropy::from_seed([seed; 32]);
            let ids: Vec<Id<Thing>> = (0..500).map(|_| entropy.id(now)).collect();
            assert!(ids.is_sorted_by(|one, next| one < next), "seed {seed}");
        }
    }

    #[test]
    fn ids_of_several_commands_sort_by_the_microsecond() {
        let ids: Vec<Id<Thing>> = (0..5_000_u32)
            .map(|after| {
                let mut seed = [7; 32];
                seed[..4].copy_from_slice(&after.to_be_bytes());
                Entropy::from_seed(seed).id(Timestamp::from_micros(1_700_000_000_000_000 + i64::from(after)))
            })
            .collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
    }
}
