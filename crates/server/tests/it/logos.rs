//! Merchants' pictures, fetched by the worker among what it makes ahead.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use dalasi::app::organizations::{self, SettingsChange};
use dalasi::app::{App, look_up};
use dalasi::rails::Rails;
use domain::job::{Job, Lane};
use domain::organization::Organization;
use image::{DynamicImage, ImageFormat};
use store::queries::jobs;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::cli::place::Place;
use crate::invoices::{create, rice};
use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_does_not_come_keeps_no_other_merchants_files_waiting() {
    for place in Place::each("a picture that does not come keeps no other merchant's files waiting").await {
        let mut world = World::complete(place.settings()).await;
        // Takes the connection, and says nothing.
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        name_picture(&world, &silent).await;
        let asked = asked_for(&silent).await;
        name_picture(&world, &silent).await;
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

/// The worker that fetches is slower than its lease, and another process has stored what the address shows by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_was_overtaken_is_not_stored() {
    for place in Place::each("a picture that was overtaken is not stored").await {
        let world = World::complete(place.settings()).await;
        world.rest().await;
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        name_picture(&world, &server).await;
        let claim = async || {
            let claimed = world.app.commit(|tx, _| Ok(jobs::claim(tx, Lane::Aside, 1, tx.now().plus(LEASE))?));
            claimed.await.unwrap().remove(0)
        };
        let (slow, first) = (world.app.clone(), claim().await);
        let slow = tokio::spawn(async move { slow.fetch_logo(&first).await });
        let held_up = asked_for(&server).await;

        world.clock.advance(LEASE + Duration::from_secs(1));
        let second = claim().await;
        assert_eq!(second.attempts, 2);
        let (store, context) = (world.app.store().clone(), Arc::clone(world.app.context()));
        let other = App::new(store, context, Rails::new(Vec::new()), world.app.egress().clone(), None);
        let answered = async { answer(asked_for(&server).await, &picture(20)).await };
        let (fetched, ()) = tokio::join!(other.fetch_logo(&second), answered);
        fetched.unwrap();
        let newer = shown(&world).await;
        assert!(newer.is_some());

        answer(held_up, &picture(40)).await;
        slow.await.unwrap().unwrap();
        assert_eq!(shown(&world).await, newer);
        world.app.store().close().await;
        place.end().await;
    }
}

/// It comes, or is drawn, later than its lease would have ended: nobody else begins anew as long as somebody is at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_takes_longer_than_its_lease_is_fetched_once() {
    let places = Place::each("a picture that takes longer than its lease is fetched once").await;
    let kept = places.map(async |place| {
        let world = World::complete(place.settings()).await;
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        name_picture(&world, &server).await;
        let held_up = asked_for(&server).await;
        // What is left of its lease is over before anybody gives up asking.
        world.clock.advance(LEASE - Duration::from_millis(11_500));
        tokio::time::sleep(Duration::from_millis(13_500)).await;
        answer(held_up, &picture(20)).await;
        let kept = async {
            while shown(&world).await.is_none() {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        };
        tokio::time::timeout(PATIENCE, kept).await.expect("what was fetched is kept");
        let again = tokio::time::timeout(Duration::from_secs(2), server.accept()).await;
        assert!(again.is_err(), "once");
        world.close().await;
        place.end().await;
    });
    futures_util::future::join_all(kept).await;
}

/// Again, too: it may show something new.
async fn name_picture(world: &World, server: &TcpListener) {
    let (scope, address) = (world.scope, format!("http://{}/logo.png", server.local_addr().unwrap()));
    let change = SettingsChange { logo_url: Some(Some(address)), ..SettingsChange::default() };
    let changed =
        world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change).map(drop));
    changed.await.unwrap();
}

async fn asked_for(server: &TcpListener) -> TcpStream {
    tokio::time::timeout(PATIENCE, server.accept()).await.expect("it is asked for").unwrap().0
}

async fn answer(mut connection: TcpStream, picture: &[u8]) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert!(connection.read_buf(&mut request).await.unwrap() > 0, "it hung up");
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", picture.len());
    connection.write_all(&[head.as_bytes(), picture].concat()).await.unwrap();
}

fn picture(width: u32) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::new_rgb8(width, 10).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

/// The digest of the picture that pages show.
async fn shown(world: &World) -> Option<String> {
    let scope = world.scope;
    let stored = world.app.read(move |tx, _| look_up::<Organization>(tx, scope, scope.organization));
    stored.await.unwrap().profile.logo_digest
}
