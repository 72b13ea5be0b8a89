//! One suite for both drivers: what a command may rely on, whichever database runs.
//!
//! The PostgreSQL half needs `DALASI_TEST_POSTGRES_URL`, of a role that may create databases; each test makes one of its own.

#![expect(clippy::unwrap_used, reason = "a test that can't go on should panic where it stands")]

mod additions;
mod api_keys;
mod backups;
mod broken_commits;
mod customers;
mod damage;
mod deliveries;
mod deliveries_ahead;
mod delivery_calls;
mod delivery_plans;
mod delivery_turns;
mod documents;
mod events;
mod held;
mod idempotency;
mod invoices;
mod key_index;
mod leases;
mod mails;
mod older_schemas;
mod plans;
mod postgres_only;
mod power_cut;
mod reads;
mod repair;
mod savepoints;
mod schemas;
mod settled;
mod sqlite_only;
mod strays;
mod totals;
mod values;
mod world;
mod writes;

/// Each named test once for each database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let world = crate::world::World::sqlite();
                super::$name(&world).await;
                world.end().await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(world) = crate::world::World::postgres(stringify!($name)).await else { return };
                super::$name(&world).await;
                world.end().await;
            })+
        }
    };
}
pub(crate) use on_both;
