//! Money that came is paid back: a merchant who asks twice at once, workers that die, and a rail as of the payments.

mod commits;
mod rules;
mod steps;
mod world;

use std::sync::Arc;

use stateright::{Model, Property};

pub(crate) use steps::Do;
pub(crate) use world::World;

use crate::guard::Guard;
use crate::seen::Seen;

#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) refunds: usize,
    /// At work at one moment.
    pub(crate) runs: usize,
    /// As for payments.
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
