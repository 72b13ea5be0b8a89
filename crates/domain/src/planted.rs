//! Defects on purpose, so that a check that finds nothing can be seen to find something.
//!
//! Product code asks `planted!(Defect::…)` where a defect would sit: a constant `false` without the feature `planted`,
//! and with it the one that [`plant`] chose for this process. No build for use can hold one.

#[cfg(all(feature = "planted", not(debug_assertions)))]
compile_error!("a build with planted defects is for tests: it needs debug assertions");

macro_rules! defects {
    ($($(#[$meaning:meta])* $variant:ident => $name:literal,)*) => {
        /// What can be wrong, one at a time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Defect {
            $($(#[$meaning])* $variant,)*
        }

        impl Defect {
            pub const ALL: &[Defect] = &[$(Defect::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Defect::$variant => $name,)*
                }
            }
        }
    };
}

defects! {
    /// A checkout can still be paid in the very microsecond in which it expires.
    CheckoutExpiryInclusive => "checkout_expiry_inclusive",
    /// What earlier refunds took is forgotten when the next one is asked for.
    RefundBoundForgotten => "refund_bound_forgotten",
    /// SQLite syncs its log before a checkpoint only, as is often advised.
    SynchronousNormal => "synchronous_normal",
    /// SQLite never syncs.
    SynchronousOff => "synchronous_off",
    /// Writes are answered before they are committed.
    AnswerBeforeCommit => "answer_before_commit",
}

impl Defect {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|defect| defect.as_str() == text)
    }
}

#[cfg(feature = "planted")]
mod chosen {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Defect;

    /// One above its place in the list; 0 is none.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);

    /// Chooses the defect of this process.
    pub fn plant(defect: Option<Defect>) {
        CHOSEN.store(defect.map_or(0, |defect| defect as usize + 1), Ordering::Relaxed);
    }

    pub fn is_planted(defect: Defect) -> bool {
        CHOSEN.load(Ordering::Relaxed) == defect as usize + 1
    }
}

#[cfg(feature = "planted")]
pub use chosen::{is_planted, plant};

/// Never: this build has no defects on purpose.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is_planted(_: Defect) -> bool {
    false
}

/// Whether this defect is the one that was planted.
#[macro_export]
macro_rules! planted {
    (Defect::$variant:ident) => {
        $crate::planted::is_planted($crate::planted::Defect::$variant)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_has_a_name_of_its_own() {
        for (place, defect) in Defect::ALL.iter().enumerate() {
            assert_eq!(*defect as usize, place);
            assert_eq!(Defect::parse(defect.as_str()), Some(*defect));
        }
    }

    #[test]
    #[cfg(not(feature = "planted"))]
    fn nothing_is_planted_without_the_feature() {
        assert!(Defect::ALL.iter().all(|defect| !is_planted(*defect)));
    }
}
