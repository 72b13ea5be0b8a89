//! Numbers that follow from a seed (SplitMix64), so that every image can be made again.

#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("a usize has at most 64 bits");
        usize::try_from(self.number() % limit).expect("it is below a usize")
    }

    pub fn in_hundred(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}
