//! One merchant, and what the machines begin with.

use domain::{Currency, Id, Mode, Money, Object, Scope, Timestamp};

pub(crate) const SECOND_US: i64 = 1_000_000;

/// `offset_us` after everything began.
pub(crate) fn at(offset_us: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000 + offset_us)
}

/// Ids sort as they are numbered.
pub(crate) fn id<T: Object>(number: u8) -> Id<T> {
    Id::new(at(0), [number; 10])
}

pub(crate) fn scope() -> Scope {
    Scope { organization: id(1), mode: Mode::Test }
}

pub(crate) fn dalasi(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}
