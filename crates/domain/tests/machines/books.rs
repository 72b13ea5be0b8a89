//! What was posted and what was told, summed up.

use domain::event::EventType;
use domain::ledger::{Account, Entry};

/// The balance of each account, in minor units; debits are positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Books {
    pub(crate) rail: i64,
    pub(crate) merchant: i64,
    pub(crate) fees: i64,
    pub(crate) unapplied: i64,
    pub(crate) refunds_pending: i64,
    pub(crate) offline_received: i64,
    pub(crate) offline_sales: i64,
}

impl Books {
    pub(crate) fn post(&mut self, entry: &Entry) {
        for posting in entry.postings() {
            let balance = match posting.account {
                Account::RailClearing { .. } => &mut self.rail,
                Account::Merchant => &mut self.merchant,
                Account::Fees => &mut self.fees,
                Account::Unapplied => &mut self.unapplied,
                Account::RefundsPending => &mut self.refunds_pending,
                Account::OfflineReceived => &mut self.offline_received,
                Account::OfflineSales => &mut self.offline_sales,
            };
            *balance += posting.amount_minor;
        }
    }

    pub(crate) fn sum(&self) -> i64 {
        let Self { rail, merchant, fees, unapplied, refunds_pending, offline_received, offline_sales } = *self;
        rail + merchant + fees + unapplied + refunds_pending + offline_received + offline_sales
    }
}

/// How often each event was told, in the order of [`EventType::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Told(Vec<(EventType, u8)>);

impl Told {
    /// # Panics
    /// Where the sequence has a gap.
    pub(crate) fn tell(&mut self, kind: EventType, sequence: i64) {
        let sum: i64 = self.0.iter().map(|(_, times)| i64::from(*times)).sum();
        assert_eq!(sequence, sum + 1, "events are counted without a gap");
        match self.0.binary_search_by_key(&kind, |(known, _)| *known) {
            Ok(place) => self.0[place].1 += 1,
            Err(place) => self.0.insert(place, (kind, 1)),
        }
    }

    pub(crate) fn times(&self, kind: EventType) -> u8 {
        self.0.iter().find(|(known, _)| *known == kind).map_or(0, |(_, times)| *times)
    }
}
