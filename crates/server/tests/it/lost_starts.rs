//! The call that starts a payment is lost on its way, so that the rail has never heard of it, or it comes late, behind that of
//! somebody who took over; and the payer waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dalasi::rails::{Order, Rail, RefundOrder, Simulator};
use domain::job::{ClaimedJob, Job};
use domain::payment::TransactionSummary;
use domain::rail::{Called, Capability, FailureReason, RefundReport, Report, Started};
use domain::{Id, Method};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(20);

/// What the network does to the first calls.
enum Trouble {
    /// So many starts are lost before they arrive.
    Lost(usize),
    /// The first start arrives behind the second, and is refused as one too many.
    Late(Notify),
    /// What is withdrawn is never answered.
    Deaf,
}

/// The simulated rail behind a bad network.
struct Lossy {
    simulator: Simulator,
    starts: AtomicUsize,
    trouble: Trouble,
    is_idempotent: bool,
}

impl Rail for Lossy {
    fn name(&self) -> &'static str {
        self.simulator.name()
    }
    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let mut all = self.simulator.capabilities();
        all.iter_mut().for_each(|(_, capability)| capability.start_is_idempotent = self.is_idempotent);
        all
    }
    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        let earlier = self.starts.fetch_add(1, Ordering::SeqCst);
        match &self.trouble {
            Trouble::Lost(lost) if earlier < *lost => async { Called::Lost("the network is away".into()) }.boxed(),
            Trouble::Late(second) if earlier == 0 => async {
                second.notified().await;
                Called::Refused(FailureReason::ProviderError)
            }
            .boxed(),
            Trouble::Late(second) if earlier == 1 => async {
                let called = self.simulator.start(order).await;
                second.notify_one();
                // The answer to the first is there before this one's.
                tokio::time::sleep(Duration::from_millis(500)).await;
                called
            }
            .boxed(),
            Trouble::Lost(_) | Trouble::Late(_) | Trouble::Deaf => self.simulator.start(order),
        }
    }
    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        self.simulator.submit_code(order, code)
    }
    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        self.simulator.query(order)
    }
    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        match self.trouble {
            Trouble::Deaf => std::future::pending().boxed(),
            Trouble::Lost(_) | Trouble::Late(_) => self.simulator.withdraw(order),
        }
    }
    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.simulator.refund(order)
    }
    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        self.simulator.query_refund(order)
    }
}

async fn behind(trouble: Trouble, is_idempotent: bool) -> (World, Arc<Lossy>) {
    let mut kept = None;
    let world = World::behind(|simulator| {
        let rail = Arc::new(Lossy { simulator, starts: AtomicUsize::new(0), trouble, is_idempotent });
        kept = Some(Arc::clone(&rail));
        rail
    });
    let world = world.await;
    (world, kept.unwrap())
}

#[tokio::test]
async fn a_rail_that_knows_the_call_again_gets_it_again() {
    let (world, rail) = behind(Trouble::Lost(2), true).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it was started again");
    assert_eq!(rail.starts.load(Ordering::SeqCst), 3, "lost, lost again, and taken");
    world.has_clean_books().await;
    world.close().await;
}

#[tokio::test]
async fn a_rail_that_would_charge_again_is_only_asked() {
    let (world, rail) = behind(Trouble::Lost(1), false).await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    assert!(!is_paid(&world, checkout.id).await, "nobody knows");
    world.close().await;
}

#[tokio::test]
async fn nothing_is_started_for_a_payer_who_has_gone() {
    let (world, rail) = behind(Trouble::Lost(1), true).await;
    let checkout = world.create(|new| new.expires_in_s = 60).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    world.clock.advance(Duration::from_secs(61));
    for _ in 0..100 {
        world.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(rail.starts.load(Ordering::SeqCst), 1);
    world.close().await;
}

#[tokio::test]
async fn a_no_to_a_call_that_was_overtaken_is_not_believed() {
    let (world, rail) = behind(Trouble::Late(Notify::new()), true).await;
    let checkout = world.create(|_| {}).await;
    let overtaken = async {
        while rail.starts.load(Ordering::SeqCst) < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.clock.advance(Duration::from_secs(31));
    };
    tokio::join!(world.start(checkout.id, Method::Wave, "+2207000000"), overtaken);
    assert_eq!(rail.starts.load(Ordering::SeqCst), 2, "the worker took over");
    let shown = world.shown(checkout.id).await.expect("an attempt");
    assert_ne!(shown.status, "failed", "the rail has taken it");
    let paid = async {
        while !is_paid(&world, checkout.id).await {
            world.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, paid).await.expect("it is paid");
    world.has_clean_books().await;
    world.close().await;
}

/// It would keep a place of the worker's for ever.
#[tokio::test]
async fn a_rail_that_never_answers_a_withdrawal_is_not_waited_for() {
    let (world, _) = behind(Trouble::Deaf, true).await;
    world.rest().await;
    let checkout = world.create(|_| {}).await;
    world.start(checkout.id, Method::Wave, "+2207000000").await;
    let attempt = world.shown(checkout.id).await.unwrap();
    let job = Job::WithdrawAttempt(attempt.id);
    let claimed = ClaimedJob { job, scope: world.scope, due_at: world.now(), attempts: 1, lease_token: 1 };
    let withdrawn = tokio::time::timeout(Duration::from_secs(25), world.app.withdraw_attempt(&claimed)).await;
    assert!(withdrawn.expect("it ends").is_err());
    world.app.store().close().await;
}

async fn is_paid(world: &World, checkout: Id<domain::checkout::Checkout>) -> bool {
    world.shown(checkout).await.is_some_and(|shown: TransactionSummary| shown.is_paid())
}
