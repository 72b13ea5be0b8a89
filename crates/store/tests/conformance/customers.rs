//! One customer for an e-mail address and for a phone, however many come at once.

use std::sync::Arc;

use domain::customer::{Contact, Customer};
use domain::organization::Organization;
use domain::{Id, Mode, Msisdn, Scope};
use store::queries::PageRequest;
use store::queries::customers::{self, CustomerFilter};
use store::{Error, Schema, Store, Tx};

use crate::on_both;
use crate::world::World;

on_both!(
    many_at_once_make_one,
    of_many_who_want_an_address_one_gets_it,
    a_deleted_one_is_found_by_nobody_and_leaves_its_address,
    modes_share_no_customer,
);

const AT_ONCE: usize = 64;

async fn open(world: &World) -> (Arc<Store>, Scope) {
    let store = world.try_open(Schema::product()).await.unwrap();
    let organization = store
        .write(|tx| {
            let (now, id) = (tx.now(), id(tx));
            for mode in [Mode::Test, Mode::Live] {
                tx.insert(&mut Organization::new(id, mode, "Kairaba Books".into(), now))?;
            }
            Ok::<_, Error>(id)
        })
        .await
        .unwrap();
    (Arc::new(store), Scope { organization, mode: Mode::Test })
}

fn id<T: domain::Object>(tx: &mut Tx<'_>) -> Id<T> {
    let now = tx.now();
    tx.entropy().id(now)
}

fn contact(email: Option<&str>, phone: Option<&str>) -> Contact {
    let phone = phone.map(|phone| Msisdn::parse(phone).unwrap());
    Contact::new(email.map(str::to_owned), phone).unwrap()
}

/// Whether it was new.
fn insert(tx: &mut Tx<'_>, scope: Scope, contact: Contact) -> Result<Option<Customer>, Error> {
    let (id, now) = (id(tx), tx.now());
    let mut customer = Customer {
        id,
        scope,
        version: 0,
        contact,
        name: None,
        metadata: Default::default(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    Ok(customers::insert_if_new(tx, &mut customer)?.then_some(customer))
}

async fn many_at_once_make_one(world: &World) {
    let (store, scope) = open(world).await;
    for (email, phone) in
        [(Some("Awa@example.gm"), None), (None, Some("7000001")), (Some("binta@example.gm"), Some("7000002"))]
    {
        let runs = (0..AT_ONCE).map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store
                    .write(move |tx| {
                        let upper = email.map(str::to_uppercase);
                        let email = if number % 2 == 0 { email } else { upper.as_deref() };
                        match insert(tx, scope, contact(email, phone))? {
                            Some(customer) => Ok((true, customer.id)),
                            None => {
                                let found = match (email, phone) {
                                    (Some(email), _) => customers::by_email(tx, scope, email)?,
                                    (None, phone) => {
                                        customers::by_phone(tx, scope, &Msisdn::parse(phone.unwrap()).unwrap())?
                                    }
                                };
                                // Who did not make it sees who did, in the same transaction.
                                Ok::<_, Error>((false, found.unwrap().id))
                            }
                        }
                    })
                    .await
                    .unwrap()
            })
        });
        let mut answers = Vec::new();
        for run in runs.collect::<Vec<_>>() {
            answers.push(run.await.unwrap());
        }
        let news: Vec<_> = answers.iter().filter(|(is_new, _)| *is_new).collect();
        assert_eq!(news.len(), 1, "{email:?} {phone:?}");
        assert!(answers.iter().all(|(_, id)| *id == news[0].1));
    }
    assert_eq!(world.count("customers").await, 3);
    store.close().await;
}

/// The check is before the save, so some find the address free and lose it at the save: they run again and see it taken.
async fn of_many_who_want_an_address_one_gets_it(world: &World) {
    let (store, scope) = open(world).await;
    let mut ids = Vec::new();
    for number in 0..16 {
        let own = format!("c{number}@example.gm");
        let made = store.write(move |tx| insert(tx, scope, contact(Some(&own), None))).await.unwrap();
        ids.push(made.unwrap().id);
    }
    let runs = ids.into_iter().map(|id| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store
                .write(move |tx| {
                    if customers::by_email(tx, scope, "wanted@example.gm")?.is_some() {
                        return Ok::<_, Error>(false);
                    }
                    let mut customer = tx.find::<Customer>(scope, id)?.unwrap();
                    customer.contact = contact(Some("Wanted@example.gm"), None);
                    customers::save(tx, &mut customer)?;
                    Ok(true)
                })
                .await
        })
    });
    let mut winners = 0;
    for run in runs.collect::<Vec<_>>() {
        winners += usize::from(run.await.unwrap().unwrap());
    }
    assert_eq!(winners, 1);
    assert_eq!(world.count("customers where email_key = 'wanted@example.gm' and version = 2").await, 1);
    assert_eq!(world.count("customers where version = 1").await, 15);
    store.close().await;
}

async fn a_deleted_one_is_found_by_nobody_and_leaves_its_address(world: &World) {
    let (store, scope) = open(world).await;
    let (email, phone) = ("awa@example.gm", "+2207000001");
    let mut last = None;
    for round in 1..=3 {
        let made = store.write(move |tx| insert(tx, scope, contact(Some(email), Some(phone)))).await.unwrap();
        let made = made.expect("its address is free again");
        assert_ne!(last.replace(made.id), Some(made.id));
        let (found, listed) = store
            .write(move |tx| {
                let mut customer = tx.find::<Customer>(scope, made.id)?.unwrap();
                customer.delete(tx.now());
                tx.save(&mut customer)?;
                let found = [
                    tx.peek::<Customer>(scope, made.id)?,
                    customers::by_email(tx, scope, email)?,
                    customers::by_phone(tx, scope, &Msisdn::parse(phone).unwrap())?,
                ];
                let page = PageRequest { offset: 0, limit: 10, after: None };
                Ok::<_, Error>((found, customers::list(tx, scope, &CustomerFilter::default(), &page)?))
            })
            .await
            .unwrap();
        assert_eq!(found, [None, None, None]);
        assert_eq!((listed.items.len(), listed.total), (0, 0));
        assert_eq!(world.count("customers where deleted_at is not null").await, round);
    }
    store.close().await;
}

async fn modes_share_no_customer(world: &World) {
    let (store, test) = open(world).await;
    let live = Scope { mode: Mode::Live, ..test };
    for scope in [test, live] {
        let made = store.write(move |tx| insert(tx, scope, contact(Some("awa@example.gm"), None))).await.unwrap();
        let other = Scope { mode: if scope == test { Mode::Live } else { Mode::Test }, ..scope };
        let id = made.expect("another mode is another world").id;
        assert_eq!(store.read(move |tx| tx.peek::<Customer>(other, id)).await, Ok(None));
    }
    store.close().await;
}
