//! A request that can't run because of its form: what it names is looked up all the same, so that its sender learns of all
//! faults at once (contract §1.4).

use domain::Scope;

use super::Api;
use super::answer::Problem;
use super::fault::Fault;
use crate::app::references::{self, Named};

/// What is wrong with the form of a request, and what it names.
pub(super) struct Faulty {
    pub(super) faults: Vec<Fault>,
    pub(super) named: Box<Named>,
}

impl Faulty {
    pub(super) async fn look_up(self, api: &Api, scope: Scope) -> Problem {
        let Self { mut faults, named } = self;
        match api.app.read(move |tx, context| references::faults(tx, context, scope, &named)).await {
            Ok(more) => {
                faults.extend(more);
                faults.into()
            }
            Err(failure) => failure.into(),
        }
    }
}
