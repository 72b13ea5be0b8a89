//! Merchants' pictures, fetched by the worker among what it makes ahead.

use std::time::Duration;

use dalasi::app::organizations::{self, SettingsChange};
use domain::job::Job;
use store::queries::jobs;
use tokio::net::TcpListener;

use crate::cli::place::Place;
use crate::invoices::{create, rice};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_does_not_come_keeps_no_other_merchants_files_waiting() {
    for place in Place::each("a picture that does not come keeps no other merchant's files waiting").await {
        let mut world = World::complete(place.settings()).await;
        // Takes the connection, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/logo.png", silent.local_addr().unwrap());
        let save = async || {
            let scope = world.scope;
            let change = SettingsChange { logo_url: Some(Some(address.clone())), ..SettingsChange::default() };
            let changed = world
                .app
                .commit(move |tx, context| organizations::change_settings(tx, context, scope, &change).map(drop));
            changed.await.unwrap();
        };
        save().await;
        let asked = tokio::time::timeout(PATIENCE, silent.accept()).await.expect("it is asked for").unwrap();
        save().await;
        world.scope.organization = world.another().await;
        let invoice = create(&world, rice(&world)).await.unwrap();
        let job = Job::RenderInvoice(invoice.id);
        let made = async {
            while world.app.read(move |tx, _| Ok(jobs::is_owed(tx, job)?)).await.unwrap() {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        };
        // Sooner than anybody gives up asking.
        tokio::time::timeout(Duration::from_secs(5), made).await.expect("there is a place for it");
        drop((asked, silent));
        world.close().await;
        place.end().await;
    }
}
