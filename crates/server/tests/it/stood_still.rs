//! A process, or its machine, stands still between its look at what it owes and its call to the rail, for longer than it holds the job.
//! Another worker takes over, and a person decides and has it done anew: whoever stood still calls nobody any more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dalasi::app::{Context, look_up, refunds, settlement};
use dalasi::jobs;
use dalasi::rails::{Order, Rail, RefundOrder, Simulator};
use domain::job::{ClaimedJob, Job};
use domain::payment::{Step, Transaction};
use domain::rail::{Called, Capability, RefundReport, Report, Started};
use domain::refund::Refund;
use domain::{Id, Method};
use futures_util::future::BoxFuture;
use store::{Database, Tx};
use tokio::sync::Notify;

use crate::cli::place::Place;
use crate::world::{QUIET, World};

const LEASE: Duration = Duration::from_secs(31);
/// By the clock that measures waits: longer than a claim, or a code, is taken for fresh.
const STANDSTILL: Duration = Duration::from_secs(6);

#[derive(Clone, Copy)]
enum Standstill {
    /// The clocks of its machine go on.
    Process,
    /// It is suspended, and the clock that measures waits with it.
    Machine,
}

impl Standstill {
    /// For so long, and then for longer than a job is held.
    async fn lasts(self, world: &World, by: Duration) {
        match self {
            Self::Process => {
                tokio::time::sleep(by).await;
                world.clock.advance(LEASE);
            }
            Self::Machine => world.clock.suspend(by + LEASE),
        }
    }
}

/// Each on each database that is there.
async fn each(test: &str) -> Vec<(Place, Standstill)> {
    let mut all = Vec::new();
    for standstill in [Standstill::Process, Standstill::Machine] {
        all.extend(Place::each(test).await.map(|place| (place, standstill)));
    }
    all
}

/// The simulated rail as one that takes a second call for another payment or refund.
struct Network {
    simulator: Simulator,
    starts: AtomicUsize,
    codes: AtomicUsize,
    queries: AtomicUsize,
    refunds: Mutex<Vec<Id<Refund>>>,
    /// Whoever looks for this rail next stands still, when all else is read.
    is_armed: AtomicBool,
    stands: Notify,
    goes_on: Mutex<Receiver<()>>,
}

impl Network {
    async fn of(database: Database) -> (World, Arc<Self>, Sender<()>) {
        let (go_on, goes_on) = channel();
        let mut kept = None;
        let world = World::behind_on(database, |simulator| {
            let network = Arc::new(Self {
                simulator,
                starts: AtomicUsize::default(),
                codes: AtomicUsize::default(),
                queries: AtomicUsize::default(),
                refunds: Mutex::default(),
                is_armed: AtomicBool::default(),
                stands: Notify::new(),
                goes_on: Mutex::new(goes_on),
            });
            kept = Some(Arc::clone(&network));
            network
        });
        let world = world.await;
        (world, kept.unwrap(), go_on)
    }

    fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }
}

impl Rail for Network {
    fn name(&self) -> &'static str {
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.stands.notify_one();
            tokio::task::block_in_place(|| self.goes_on.lock().unwrap().recv().unwrap());
        }
        self.simulator.name()
    }
    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let mut all = self.simulator.capabilities();
        for (_, capability) in &mut all {
            (capability.start_is_idempotent, capability.refund_is_idempotent) = (false, false);
        }
        all
    }
    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        self.simulator.start(order)
    }
    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        self.codes.fetch_add(1, Ordering::SeqCst);
        self.simulator.submit_code(order, code)
    }
    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.simulator.query(order)
    }
    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        self.simulator.withdraw(order)
    }
    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.refunds.lock().unwrap().push(order.refund.id);
        self.simulator.refund(order)
    }
    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.simulator.query_refund(order)
    }
}

/// As another worker claims it.
async fn hold(world: &World, job: Job) -> ClaimedJob {
    let due = jobs::claim_due(&world.app, 32).await;
    due.into_iter().find(|claimed| claimed.job == job).expect("it is due, and nobody holds it")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_is_not_sent_by_whoever_stood_still() {
    for (place, standstill) in each("a refund is not sent by whoever stood still").await {
        let (world, network, go_on) = Network::of(place.settings()).await;
        let (scope, paid) = (world.scope, world.paid(10_000).await);
        world.rest().await;
        let refund = world.refund(paid, Some(4_000)).await.unwrap().id;
        let (app, first) = (world.app.clone(), hold(&world, Job::SendRefund(refund)).await);
        network.arm();
        let slow = tokio::spawn(async move { jobs::run_one(&app, first).await });
        network.stands.notified().await;
        standstill.lasts(&world, STANDSTILL).await;

        let second = hold(&world, Job::SendRefund(refund)).await;
        assert!(jobs::run_one(&world.app, second).await);
        let lost = world.app.read(move |tx, _| look_up::<Refund>(tx, scope, refund)).await.unwrap();
        assert_eq!(lost.step(), Step::Unknown, "nobody knows whether it was sent");
        let decided = world.app.commit(move |tx, _| {
            let resolve = |_: &mut Tx<'_>, refund: &mut Refund, transaction: &mut Transaction, now| {
                Ok(refund.resolved(transaction, false, now)?)
            };
            refunds::settle(tx, scope, refund, None, resolve).map(drop)
        });
        decided.await.unwrap();
        let anew = world.refund(paid, Some(4_000)).await.unwrap().id;
        let third = hold(&world, Job::SendRefund(anew)).await;
        assert!(jobs::run_one(&world.app, third).await);

        go_on.send(()).unwrap();
        assert!(slow.await.unwrap(), "it is no fault");
        assert_eq!(*network.refunds.lock().unwrap(), [anew]);
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_not_started_by_whoever_stood_still() {
    for (place, standstill) in each("a payment is not started by whoever stood still").await {
        let (world, network, go_on) = Network::of(place.settings()).await;
        let (scope, checkout) = (world.scope, world.create(|_| {}).await.id);
        world.rest().await;
        network.arm();
        let others = async {
            network.stands.notified().await;
            standstill.lasts(&world, STANDSTILL).await;

            let id = world.shown(checkout).await.unwrap().id;
            let second = hold(&world, Job::StartAttempt(id)).await;
            assert!(jobs::run_one(&world.app, second).await);
            let lost = world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, id)).await.unwrap();
            assert_eq!(lost.step(), Step::Unknown, "nobody knows whether it was started");
            let decide = move |tx: &mut Tx<'_>, context: &Context| {
                settlement::settle(tx, context, scope, id, |_, session, transaction, now| {
                    Ok(session.resolved(transaction, false, now)?)
                })
                .map(drop)
            };
            world.app.commit(decide).await.unwrap();
            world.start(checkout, Method::Wave, "+2207654321").await;
            assert_eq!(network.starts.load(Ordering::SeqCst), 1);
            go_on.send(()).unwrap();
        };
        tokio::join!(world.start(checkout, Method::Wave, "+2207654321"), others);
        // The request may have been answered before its call was to be made.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(network.starts.load(Ordering::SeqCst), 1, "the new one");
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_not_handed_over_by_whoever_stood_still() {
    for (place, standstill) in each("a code is not handed over by whoever stood still").await {
        let (world, network, go_on) = Network::of(place.settings()).await;
        let (scope, checkout) = (world.scope, world.create(|_| {}).await.id);
        let pay = async |code| world.go_on(checkout, Method::Qmoney, "+2207000000", code).await;
        pay(None).await;
        world.rest().await;
        let asked_for_it = world.shown(checkout).await.unwrap().id;
        network.arm();
        let others = async {
            network.stands.notified().await;
            standstill.lasts(&world, STANDSTILL).await;

            let question = hold(&world, Job::AskRail(asked_for_it)).await;
            assert!(jobs::run_one(&world.app, question).await);
            world.start(checkout, Method::Wave, "+2207654321").await;
            assert_ne!(world.shown(checkout).await.unwrap().id, asked_for_it, "the payer pays in another way");
            go_on.send(()).unwrap();
        };
        tokio::join!(pay(Some("123456")), others);
        // The request may have been answered before its call was to be made.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(network.codes.load(Ordering::SeqCst), 0);
        let read = world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, asked_for_it)).await;
        assert!(!read.unwrap().status().is_paid(), "and is charged once");
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

/// Telling the rail that nobody waits may take most of what the job is held for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_withdrawn_is_not_asked_for_by_whoever_stood_still() {
    for (place, standstill) in each("what is withdrawn is not asked for by whoever stood still").await {
        let (world, network, go_on) = Network::of(place.settings()).await;
        let (scope, checkout) = (world.scope, world.create(|_| {}).await.id);
        world.rest().await;
        world.start(checkout, Method::Wave, QUIET).await;
        let id = world.shown(checkout).await.unwrap().id;
        world.cancel(checkout).await;
        let (app, first) = (world.app.clone(), hold(&world, Job::WithdrawAttempt(id)).await);
        network.arm();
        let slow = tokio::spawn(async move { jobs::run_one(&app, first).await });
        network.stands.notified().await;
        standstill.lasts(&world, STANDSTILL).await;

        let second = hold(&world, Job::WithdrawAttempt(id)).await;
        assert!(jobs::run_one(&world.app, second).await);
        let settled = world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, id)).await.unwrap();
        assert_eq!(settled.step(), Step::Settled, "the rail has said what became of it");
        go_on.send(()).unwrap();
        assert!(slow.await.unwrap(), "it is no fault");
        assert_eq!(network.queries.load(Ordering::SeqCst), 1);
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}
