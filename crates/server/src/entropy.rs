//! Where randomness enters the process: 32 bytes at a time, drawn by the shell and handed on as data, so that
//! whatever derives from them (ids, keys, jitter) can be repeated in a test.
//!
//! It does not derive anything itself and is not a general random number generator.

pub use store::EntropySource;

/// The operating system's generator, by way of aws-lc.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl EntropySource for SystemEntropy {
    fn fill(&self, into: &mut [u8; 32]) {
        // Going on with predictable keys would be worse than stopping.
        aws_lc_rs::rand::fill(into).expect("the operating system always has randomness to give");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ_and_fill_everything() {
        let mut seen = std::collections::BTreeSet::new();
        let mut or = [0_u8; 32];
        for _ in 0..64 {
            let mut bytes = [0_u8; 32];
            SystemEntropy.fill(&mut bytes);
            for (all, byte) in or.iter_mut().zip(bytes) {
                *all |= byte;
            }
            assert!(seen.insert(bytes), "a draw came back twice");
        }
        assert!(or.iter().all(|byte| *byte != 0), "a byte was never filled");
    }
}
