//! Payment rails: the outside services that move money, behind one trait.
//!
//! A rail translates; it decides nothing. What its word means for an attempt is `domain::payment`'s to say. The caller
//! commits its intent before each call and the outcome after it.

pub mod simulator;

use std::sync::Arc;

use domain::payment::Transaction;
use domain::rail::{Called, Capability, RefundReport, Report, Started};
use domain::refund::Refund;
use domain::{Method, Mode};
use futures_util::future::BoxFuture;

pub use simulator::Simulator;

/// What a rail is told of one attempt. The transaction's id is the reference under which nothing happens twice.
#[derive(Debug, Clone)]
pub struct Order {
    pub transaction: Transaction,
    pub merchant: String,
    /// Where the rail's own page sends the payer back to.
    pub return_url: String,
}

/// What a rail is told of one refund. The refund's id is the reference under which nothing is paid back twice.
#[derive(Debug, Clone)]
pub struct RefundOrder {
    pub refund: Refund,
    pub transaction: Transaction,
}

pub trait Rail: Send + Sync {
    fn name(&self) -> &'static str;
    /// The methods that it stands behind, and how.
    fn capabilities(&self) -> Vec<(Method, Capability)>;
    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>>;
    /// The answer is the rail's word about the code.
    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>>;
    /// What became of the payment that has our reference.
    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>>;
    /// Nobody waits for it any more. Whether it still gets paid is for `query` to say.
    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>>;
    /// Pays back. `Refused` is a clear no before anything happened.
    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>>;
    /// What became of the refund that has our reference.
    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>>;
}

/// The rails that are configured.
#[derive(Clone)]
pub struct Rails {
    rails: Vec<(Mode, Arc<dyn Rail>)>,
}

impl Rails {
    pub fn new(rails: Vec<(Mode, Arc<dyn Rail>)>) -> Self {
        Self { rails }
    }

    pub fn named(&self, mode: Mode, name: &str) -> Option<&Arc<dyn Rail>> {
        self.rails.iter().find(|(of, rail)| *of == mode && rail.name() == name).map(|(_, rail)| rail)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Mode, &Arc<dyn Rail>)> {
        self.rails.iter().map(|(mode, rail)| (*mode, rail))
    }
}
