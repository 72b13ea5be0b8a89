//! Something is paid online: a payer, a merchant, workers that die, and a rail that loses, repeats and reorders.

mod commits;
mod merchant;
mod object;
mod rail;
mod rules;
mod steps;
mod world;

use std::sync::Arc;

use domain::Method;
use stateright::{Model, Property};

pub(crate) use steps::Do;
pub(crate) use world::{CHECKOUT_TIMES, INVOICE_TIMES, World};

use crate::guard::Guard;
use crate::seen::Seen;

#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// What payers choose from.
    pub(crate) methods: &'static [Method],
    /// In microseconds after everything began.
    pub(crate) times: &'static [i64],
    pub(crate) attempts: usize,
    /// At work at one moment.
    pub(crate) runs: usize,
    /// How often a process dies (or is so slow that another one takes its work), a call or its answer is lost or late, a
    /// report comes twice, or the rail takes back a no.
    pub(crate) faults: u8,
}

#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) begin: fn(&Bounds) -> World,
    pub(crate) bounds: Bounds,
    pub(crate) without: Option<Guard>,
    pub(crate) seen: Arc<Seen>,
}

impl Model for Machine {
    type State = World;
    type Action = Do;

    fn init_states(&self) -> Vec<World> {
        vec![(self.begin)(&self.bounds)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Do>) {
        steps::possible(self, world, actions);
    }

    fn next_state(&self, world: &World, action: Do) -> Option<World> {
        steps::after(self, world, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::all()
    }
}
