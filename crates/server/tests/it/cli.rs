//! The commands as a person types them: real processes of the real binary, on both databases.
//!
//! The PostgreSQL half needs `DALASI_TEST_POSTGRES_URL`, of a role that may create databases.

mod attempts;
mod backup_files;
mod backups;
mod books;
mod damaged_rows;
mod developer;
mod disks;
mod doctor;
mod installation;
mod invoice_books;
mod ledger;
mod mail;
mod missed;
mod operator;
pub(crate) mod place;
mod receipts;
mod refunds;
mod server;
mod unread;

/// Each named test once for each database.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::cli::place::Place::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(place) = crate::cli::place::Place::postgres(stringify!($name)).await else { return };
                super::$name(&place).await;
                place.end().await;
            })+
        }
    };
}
use on_both;
