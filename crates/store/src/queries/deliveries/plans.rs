//! How the database would go about its statements, for whoever checks that no index is missing.

use domain::webhook::Delivery;

use super::arrived::{HELD, NEXT_OF};
use super::{
    BEHIND, CALL, DUE, FIRST, INSERT, IS_BY_HAND, LEASE, NEXT_DUE, OWED, by_now, first_of, inserted, of_endpoint, ready,
};
use crate::entity::key;
use crate::error::Error;
use crate::queries::{explained, listed};
use crate::tx::Tx;

/// Its plan for each statement of a look at what is owed, and of holding some of it.
pub fn plans(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 8], Error> {
    let of_endpoint = of_endpoint(delivery.endpoint, tx.now());
    let with_limit = [of_endpoint.as_slice(), &[32.into()]].concat();
    let (events, id) = listed(4, [delivery.event.to_string()].into_iter());
    let mut held = Vec::from(key(delivery.scope, &delivery.endpoint.to_string()));
    held.extend(id);
    let (events_to_lease, _) = listed(7, [delivery.event.to_string()].into_iter());
    let [_, now, latest] = of_endpoint.clone();
    let mut leased = held.clone();
    leased.splice(3..3, [now.clone(), now.clone(), latest]);
    let mut one = Vec::from(key(delivery.scope, &delivery.event.to_string()));
    one.push(delivery.endpoint.to_string().into());
    let (events_called, _) = listed(5, [delivery.event.to_string()].into_iter());
    let mut called = held.clone();
    called.insert(3, now);
    Ok([
        ("owed", explained(tx, OWED, &by_now(tx.now()))?),
        ("due", explained(tx, &ready(DUE), &with_limit)?),
        ("next due", explained(tx, &ready(NEXT_DUE), &of_endpoint)?),
        ("lease", explained(tx, &LEASE.replace("{events}", &events_to_lease), &leased)?),
        ("held", explained(tx, &HELD.replace("{events}", &events), &held)?),
        ("by hand", explained(tx, IS_BY_HAND, &one)?),
        ("next", explained(tx, &NEXT_OF.replace("{events}", &events), &held)?),
        ("call", explained(tx, &CALL.replace("{events}", &events_called), &called)?),
    ])
}

/// The same for what is done to the one behind one that has ended, and for one that comes behind others.
pub fn plans_behind(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 2], Error> {
    let first = first_of(&key(delivery.scope, &delivery.endpoint.to_string()), &delivery.object_id);
    let due_at = BEHIND.replace("{lock}", tx.lock_suffix());
    Ok([
        ("first", explained(tx, FIRST, &first)?),
        ("publish", explained(tx, &INSERT.replace("{due_at}", &due_at), &inserted(delivery, false))?),
    ])
}
