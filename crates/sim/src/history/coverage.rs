//! What a history reached: each transition, and what had gone wrong for it.

use std::collections::{BTreeMap, BTreeSet};

use super::History;
use crate::network::Heard;
use crate::operation::Fault;

/// Every transition of the contract's tables that these histories can make.
pub const TRANSITIONS: &[&str] = &[
    "checkout new pending",
    "checkout pending completed",
    "checkout pending expired",
    "checkout pending cancelled",
    "session new pending",
    "session new processing",
    "session pending processing",
    "session pending succeeded",
    "session pending failed",
    "session pending cancelled",
    "session processing succeeded",
    "session processing failed",
    "session processing pending",
    "session failed succeeded",
    "session cancelled succeeded",
    "transaction pending processing",
    "transaction pending completed",
    "transaction pending failed",
    "transaction pending cancelled",
    "transaction pending expired",
    "transaction processing completed",
    "transaction processing failed",
    "transaction failed completed",
    "transaction cancelled completed",
    "transaction expired completed",
    "transaction completed partially_refunded",
    "transaction completed refunded",
    "transaction partially_refunded refunded",
    "refund new pending",
    "refund pending processing",
    "refund pending completed",
    "refund pending failed",
    "refund processing completed",
    "refund processing failed",
    "refund failed completed",
    "invoice new draft",
    "invoice new pending",
    "invoice draft pending",
    "invoice draft cancelled",
    "invoice pending partially_paid",
    "invoice pending paid",
    "invoice pending overdue",
    "invoice pending cancelled",
    "invoice partially_paid paid",
    "invoice overdue partially_paid",
    "invoice overdue paid",
    "invoice overdue cancelled",
    "payment_link new active",
    "payment_link active inactive",
    "payment_link inactive active",
    "payment_link active deleted",
    "payment_link inactive deleted",
];

/// Something has to have an attempt before a call can go wrong for it.
const WITHOUT_A_CALL: [&str; 9] = [
    "checkout new pending",
    "refund new pending",
    "invoice new draft",
    "invoice new pending",
    "invoice draft pending",
    "invoice draft cancelled",
    "payment_link new active",
    "session new pending",
    "transaction new pending",
];

/// Every transition by everything that can have gone wrong for it: at the storage in that very step, or before at a call to
/// the network.
pub fn cells() -> impl Iterator<Item = (&'static str, Fault)> {
    let can_be = |transition: &str, fault: Fault| {
        fault.is_of_storage()
            || !(WITHOUT_A_CALL.contains(&transition) || NEVER_TOGETHER.contains(&(transition, fault)))
    };
    TRANSITIONS.iter().flat_map(move |transition| {
        let faults = Fault::ALL.iter().filter(move |fault| **fault == Fault::None || can_be(transition, **fault));
        faults.map(|fault| (*transition, *fault))
    })
}

/// What became of a refund whose call was lost or refused is not told by that call. A session that is seen first when its call was
/// refused has failed.
const NEVER_TOGETHER: &[(&str, Fault)] = &[
    ("session new processing", Fault::CallRefused),
    ("refund pending completed", Fault::CallLost),
    ("refund pending completed", Fault::CallRefused),
    ("refund pending failed", Fault::CallLost),
];

#[derive(Default)]
pub(super) struct Coverage {
    states: BTreeMap<String, &'static str>,
    /// The calls that went wrong, by what they were about.
    met: BTreeMap<String, BTreeSet<Fault>>,
    pub(super) seen: BTreeMap<(String, Fault), u64>,
}

impl History {
    /// A call that went wrong is met by its attempt, and by all that hangs on it.
    pub(super) fn meet(&mut self, heard: &[Heard]) {
        let Some(coverage) = &mut self.coverage else { return };
        if self.struck == Fault::None || self.struck.is_of_storage() {
            return;
        }
        for word in heard {
            let (id, attempt) = match word {
                Heard::Started { transaction, .. }
                | Heard::Code { transaction, .. }
                | Heard::Asked { transaction, .. }
                | Heard::Early { transaction, .. } => (transaction.to_string(), transaction.to_string()),
                Heard::Refunded { refund, .. }
                | Heard::AskedRefund { refund, .. }
                | Heard::EarlyRefund { refund, .. } => {
                    let of = self.sides.iter().find_map(|side| side.refunds.get(&refund.to_string()));
                    (refund.to_string(), of.map(|one| one.attempt.clone()).unwrap_or_default())
                }
                Heard::Withdrawn => continue,
            };
            let attempt = self.sides.iter().find_map(|side| Some((attempt.clone(), side.attempts.get(&attempt)?)));
            let on_it = attempt.map(|(id, one)| [Some(id), one.session.clone(), Some(one.object.clone())]);
            for id in on_it.into_iter().flatten().flatten().chain([id]) {
                coverage.met.entry(id).or_default().insert(self.struck);
            }
        }
    }

    /// Counts what moved since it was counted last.
    pub(super) fn count(&mut self) {
        let Some(coverage) = &mut self.coverage else { return };
        for side in &self.sides {
            let checkouts = side.checkouts.iter().map(|(id, one)| (id, "checkout", one.state.as_str()));
            let invoices = side.invoices.iter().map(|(id, one)| (id, "invoice", one.state.as_str()));
            let sessions = side.sessions.iter().map(|(id, one)| (id, "session", one.state.as_str()));
            let attempts = side.attempts.iter().map(|(id, one)| (id, "transaction", one.status()));
            let refunds = side.refunds.iter().map(|(id, one)| (id, "refund", one.state.as_str()));
            let links = side.links.iter().map(|(id, one)| {
                let state = if one.is_deleted {
                    "deleted"
                } else if one.is_active {
                    "active"
                } else {
                    "inactive"
                };
                (id, "payment_link", state)
            });
            for (id, machine, state) in
                checkouts.chain(invoices).chain(sessions).chain(attempts).chain(refunds).chain(links)
            {
                let before = coverage.states.get(id).copied().unwrap_or("new");
                if before == state {
                    continue;
                }
                coverage.states.insert(id.clone(), state);
                let mut faults = coverage.met.get(id).cloned().unwrap_or_default();
                if self.struck.is_of_storage() || faults.is_empty() {
                    faults.insert(if self.struck.is_of_storage() { self.struck } else { Fault::None });
                }
                for fault in faults {
                    *coverage.seen.entry((format!("{machine} {before} {state}"), fault)).or_default() += 1;
                }
            }
        }
    }
}
