//! Which endpoints are asked what is due to them, where many are slow.

use std::time::Duration;

use domain::event::{Event, EventType};
use domain::webhook::{Delivery, WebhookEndpoint};
use domain::{Id, Mode, Scope, Timestamp};
use store::queries::deliveries;
use store::{Error, Schema, Tx};

use crate::on_both;
use crate::world::World;

on_both!(who_has_all_that_is_due_under_way_is_not_asked, whoever_could_get_nothing_is_asked_so_often_and_no_more,);

const LEASE: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(60);

/// Owes an event of an object to each endpoint.
fn owe(
    tx: &mut Tx<'_>,
    scope: Scope,
    endpoints: &[Id<WebhookEndpoint>],
    (object, sequence): (&str, i64),
    due_at: Timestamp,
) -> Result<(), Error> {
    let now = tx.now();
    let (id, kind, body) = (tx.entropy().id(now), EventType::CheckoutCancelled.into(), "{}".to_owned());
    let event = Event { id, scope, kind, object_id: object.to_owned(), sequence, body, created_at: now };
    endpoints.iter().try_for_each(|endpoint| deliveries::insert(tx, &Delivery::owed(&event, *endpoint, due_at)))
}

/// Holds all that is due to these and waits for no other.
fn hold(tx: &mut Tx<'_>, endpoints: &[Id<WebhookEndpoint>]) -> Result<usize, Error> {
    let until = tx.now().plus(LEASE);
    let due = deliveries::due(tx, 1_000, endpoints, &mut Vec::new(), false)?;
    let held: Result<Vec<_>, Error> = due.iter().map(|due| deliveries::lease(tx, due, until)).collect();
    Ok(held?.into_iter().flatten().count())
}

/// An endpoint that takes its time has many under way.
async fn who_has_all_that_is_due_under_way_is_not_asked(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let looked = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        let [slow, slower, quick]: [Id<WebhookEndpoint>; 3] = std::array::from_fn(|_| tx.entropy().id(now));
        let before = now.minus(SOON);
        owe(tx, scope, &[slow, slower], ("cs_one", 1), before)?;
        owe(tx, scope, &[slow, slower], ("cs_two", 1), before)?;
        assert_eq!(hold(tx, &[slow, slower])?, 4);
        assert_eq!((deliveries::endpoints_due(tx)?, deliveries::next_due(tx, &[])?), (Vec::new(), None));
        owe(tx, scope, &[slower], ("cs_three", 1), now.plus(SOON))?;
        owe(tx, scope, &[quick], ("cs_four", 1), now)?;
        assert_eq!((deliveries::endpoints_due(tx)?, deliveries::next_due(tx, &[])?), (vec![quick], Some(now)));
        assert_eq!(deliveries::next_due(tx, &[quick])?, Some(now.plus(SOON)));
        // Whoever held them says nothing any more.
        tx.execute("update webhook_deliveries set lease_until = 1 where lease_until > 0", &[])?;
        let mut due = deliveries::endpoints_due(tx)?;
        assert_eq!((due.pop(), deliveries::next_due(tx, &[])?), (Some(quick), Some(before)));
        due.sort_unstable();
        let mut both = vec![slow, slower];
        both.sort_unstable();
        assert_eq!(due, both, "they have been due for longer");
        // Nobody writes that, and it keeps nobody waiting.
        tx.execute("update webhook_deliveries set next_retry_at = null where object_id in ('cs_one', 'cs_four')", &[])?;
        assert_eq!(deliveries::endpoints_due(tx)?.len(), 2);
        assert_eq!(deliveries::due(tx, 10, &both, &mut Vec::new(), false)?.len(), 2);
        assert_eq!(deliveries::next_due(tx, &[])?, Some(before));
        Ok::<_, Error>(())
    });
    looked.await.unwrap();
    store.close().await;
}

/// What is due to them waits for what is under way: of each object's two events the second for the first.
async fn whoever_could_get_nothing_is_asked_so_often_and_no_more(world: &World) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let asked = store.write(|tx| {
        let now = tx.now();
        let scope = Scope { organization: tx.entropy().id(now), mode: Mode::Test };
        let slow: [Id<WebhookEndpoint>; 40] = std::array::from_fn(|_| tx.entropy().id(now));
        let quick: Id<WebhookEndpoint> = tx.entropy().id(now);
        owe(tx, scope, &slow, ("cs_one", 1), now)?;
        owe(tx, scope, &slow, ("cs_one", 2), now)?;
        assert_eq!(hold(tx, &slow)?, 40);
        owe(tx, scope, &[quick], ("cs_two", 1), now)?;
        for (line, in_vain) in [
            // Whoever could get something comes before all that can't.
            ([&[quick][..], &slow[..]].concat(), &slow[..32]),
            ([&slow[..10], &[quick][..], &slow[10..]].concat(), &slow[..32]),
            // Or behind them, and is found all the same.
            ([&slow[..], &[quick][..]].concat(), &slow[..]),
            (slow.to_vec(), &slow[..]),
        ] {
            let mut asked = Vec::new();
            let due = deliveries::due(tx, 32, &line, &mut asked, false)?;
            let found: Vec<_> = due.iter().map(|due| (due.endpoint, due.events.len())).collect();
            assert_eq!(found, if line.contains(&quick) { vec![(quick, 1)] } else { Vec::new() });
            assert_eq!(asked, in_vain);
            // A claim that goes round again, with what it has already, asks nobody twice.
            let again = deliveries::due(tx, 32, &line, &mut asked, true)?;
            assert_eq!(asked, in_vain, "and no more than so many");
            assert!(again.is_empty());
        }
        Ok::<_, Error>(())
    });
    asked.await.unwrap();
    store.close().await;
}
