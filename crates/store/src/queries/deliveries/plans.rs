//! How the database would go about its statements, for whoever checks that no index is missing.

use domain::webhook::Delivery;

use super::{
    BEHIND, CALL_NEXT, DUE, HELD, INSERT, IS_BY_HAND, LEASE, NEXT_DUE, OWED, PUT_OFF_BEHIND, WAITED_FOR, by_now,
    inserted, of_endpoint, of_object, ready,
};
use crate::entity::key;
use crate::error::Error;
use crate::queries::{explained, listed};
use crate::sql::Value;
use crate::tx::Tx;

/// Its plan for each statement of a look at what is owed, and of holding some of it.
pub fn plans(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 7], Error> {
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
    let (events_tried, _) = listed(5, [delivery.event.to_string()].into_iter());
    let mut tried = held.clone();
    tried.insert(3, now);
    Ok([
        ("owed", explained(tx, OWED, &by_now(tx.now()))?),
        ("due", explained(tx, &ready(DUE), &with_limit)?),
        ("next due", explained(tx, &ready(NEXT_DUE), &of_endpoint)?),
        ("lease", explained(tx, &LEASE.replace("{events}", &events_to_lease), &leased)?),
        ("held", explained(tx, &HELD.replace("{events}", &events), &held)?),
        ("by hand", explained(tx, IS_BY_HAND, &one)?),
        ("waited for", explained(tx, &WAITED_FOR.replace("{events}", &events_tried), &tried)?),
    ])
}

/// The same for what is done to those behind one that was tried, and for one that comes behind others.
pub fn plans_behind(tx: &mut Tx<'_>, delivery: &Delivery) -> Result<[(&'static str, String); 3], Error> {
    let mut values = of_object(delivery);
    let now: Value = tx.now().micros().into();
    let mut put_off = values.clone();
    put_off.extend([delivery.sequence.into(), now.clone(), now.clone()]);
    values.push(now);
    let due_at = BEHIND.replace("{lock}", tx.lock_suffix());
    Ok([
        ("put off", explained(tx, PUT_OFF_BEHIND, &put_off)?),
        ("call", explained(tx, CALL_NEXT, &values)?),
        ("publish", explained(tx, &INSERT.replace("{due_at}", &due_at), &inserted(delivery, false))?),
    ])
}
