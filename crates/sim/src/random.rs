//! The dice of a history: the same seed throws the same, on every machine and for ever.

/// SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[expect(clippy::should_implement_trait, reason = "it never ends, and nobody loops over it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        self.next() % bound
    }

    /// Once in so many throws.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        if of.is_empty() { None } else { of.get(self.below(of.len() as u64) as usize) }
    }

    /// What comes late in a list is picked more often: histories stay with what is new.
    pub fn pick_recent<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        if of.is_empty() {
            return None;
        }
        let back = self.below(of.len() as u64).min(self.below(of.len() as u64));
        of.get(of.len() - 1 - back as usize)
    }
}

/// Mixes a value into a hash of all before it (FNV-1a over its bytes).
pub fn mix(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

pub const FIRST_HASH: u64 = 0xcbf2_9ce4_8422_2325;
