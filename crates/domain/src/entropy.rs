//! Randomness as an argument: one 32-byte seed per command, from which ids, tokens and jitter
//! derive. The same seed gives the same values, so a command that runs again repeats itself.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::id::{Id, Object};
use crate::time::Timestamp;

pub struct Entropy(ChaCha20Rng);

impl Entropy {
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    pub fn id<T: Object>(&mut self, now: Timestamp) -> Id<T> {
        let mut random = [0; 10];
        self.0.fill_bytes(&mut random);
        Id::new(now, random)
    }

    /// 256 bits for a secret.
    pub fn secret(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A number from 0 to `bound` - 1; good enough for jitter, not for lotteries.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        self.0.next_u64() % bound
    }
}
