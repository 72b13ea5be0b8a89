//! Money that came twice, rails that pay back little or nothing, and every way in which the answer to a refund gets lost:
//! whatever happens, the rail pays back once at most, and nobody guesses.

mod balances;
mod doubts;
mod restored;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dalasi::app::invoices::{self, NewInvoice, NewPayment};
use dalasi::app::organizations::SettingsChange;
use dalasi::app::products::NewItem;
use dalasi::app::{Context, balance, look_up, organizations, receipts, refunds};
use dalasi::error::Failure;
use dalasi::monotonic::Since;
use dalasi::rails::{Order, Rail, RefundOrder, Simulator};
use domain::invoice::Invoice;
use domain::job::{ClaimedJob, Job, Lane};
use domain::payment::{Step, Transaction, TransactionStatus};
use domain::rail::{Called, Capability, FailureReason, RefundReport, RefundSupport, Report, Started};
use domain::receipt::Receipt;
use domain::refund::{MOST_REFUNDS, Refund, RefundStatus, Source};
use domain::{Currency, Id, Metadata, Method, Money, OfflineMethod, Refusal, Sum, TaxRate};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use store::Tx;
use store::queries::{jobs, transactions};
use tokio::sync::Notify;

use crate::cli::place::Place;
use crate::world::World;

const HALF_A_MINUTE: Duration = Duration::from_secs(31);

/// Payments by the simulator; of refunds it does what a test says, and counts what it really paid back.
struct TestRail {
    simulator: Simulator,
    support: RefundSupport,
    is_idempotent: bool,
    /// What happens to the calls to come, one after the other; then each is answered.
    faults: Mutex<Vec<Fault>>,
    paid_back: Mutex<BTreeMap<Id<Refund>, u32>>,
    /// A query finds what was paid back.
    answers_questions: bool,
    /// Calls that no fault is left for say that they have begun, and wait.
    held: Option<Arc<Held>>,
}

#[derive(Default)]
struct Held {
    began: Notify,
    goes_on: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    LostBefore,
    LostAfter,
    Refused,
    /// The rail says that it knows of none.
    NotHeardOf,
    /// Another amount than was asked for is reported.
    WrongAmount,
}

impl TestRail {
    fn made_of(simulator: Simulator, is_idempotent: bool, faults: &[Fault]) -> Self {
        Self {
            simulator,
            support: RefundSupport::Partial,
            is_idempotent,
            faults: Mutex::new(faults.to_vec()),
            paid_back: Mutex::default(),
            answers_questions: true,
            held: None,
        }
    }

    fn call(&self, refund: &Refund) -> Called<RefundReport> {
        let mut faults = self.faults.lock().unwrap();
        let fault = if faults.is_empty() { None } else { Some(faults.remove(0)) };
        let lost = || Called::Lost("a timeout".into());
        match fault {
            Some(Fault::LostBefore) => return lost(),
            Some(Fault::Refused) => return Called::Refused(FailureReason::Declined),
            Some(Fault::NotHeardOf) => return Called::Answered(RefundReport::NotFound),
            Some(Fault::LostAfter | Fault::WrongAmount) | None => {}
        }
        let mut paid_back = self.paid_back.lock().unwrap();
        let times = paid_back.entry(refund.id).or_default();
        // What knows its references pays back once, however often it is asked.
        *times = if self.is_idempotent { 1 } else { *times + 1 };
        match fault {
            Some(Fault::LostAfter) => lost(),
            Some(Fault::WrongAmount) => Called::Answered(completed(refund.amount.minor - 1)),
            Some(Fault::LostBefore | Fault::Refused | Fault::NotHeardOf) | None => {
                Called::Answered(completed(refund.amount.minor))
            }
        }
    }

    fn times(&self, refund: Id<Refund>) -> u32 {
        self.paid_back.lock().unwrap().get(&refund).copied().unwrap_or(0)
    }
}

fn completed(minor: i64) -> RefundReport {
    RefundReport::Completed { amount: Money::new(minor, Currency::gmd()), rail_reference: None }
}

impl Rail for TestRail {
    fn name(&self) -> &'static str {
        self.simulator.name()
    }
    fn capabilities(&self) -> Vec<(Method, Capability)> {
        let mut all = self.simulator.capabilities();
        for (_, capability) in &mut all {
            (capability.refund, capability.refund_is_idempotent) = (self.support, self.is_idempotent);
        }
        all
    }
    fn start(&self, order: Order) -> BoxFuture<'_, Called<Started>> {
        self.simulator.start(order)
    }
    fn submit_code(&self, order: Order, code: String) -> BoxFuture<'_, Called<Report>> {
        self.simulator.submit_code(order, code)
    }
    fn query(&self, order: Order) -> BoxFuture<'_, Called<Report>> {
        self.simulator.query(order)
    }
    fn withdraw(&self, order: Order) -> BoxFuture<'_, Called<()>> {
        self.simulator.withdraw(order)
    }
    fn refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        async move {
            if let Some(held) = self.held.as_ref().filter(|_| self.faults.lock().unwrap().is_empty()) {
                held.began.notify_one();
                held.goes_on.notified().await;
            }
            self.call(&order.refund)
        }
        .boxed()
    }
    fn query_refund(&self, order: RefundOrder) -> BoxFuture<'_, Called<RefundReport>> {
        let was_paid_back = self.answers_questions && self.times(order.refund.id) > 0;
        let report = if was_paid_back { completed(order.refund.amount.minor) } else { RefundReport::NotFound };
        async move { Called::Answered(report) }.boxed()
    }
}

async fn behind(rail: impl FnOnce(Simulator) -> TestRail) -> (World, Arc<TestRail>) {
    let mut kept = None;
    let world = World::behind(|simulator| {
        let rail = Arc::new(rail(simulator));
        kept = Some(Arc::clone(&rail));
        rail
    });
    let world = world.await;
    (world, kept.unwrap())
}

async fn stored(world: &World, id: Id<Refund>) -> Refund {
    let scope = world.scope;
    world.app.read(move |tx, _| look_up::<Refund>(tx, scope, id)).await.unwrap()
}

async fn transaction(world: &World, id: Id<Transaction>) -> Transaction {
    let scope = world.scope;
    world.app.read(move |tx, _| look_up::<Transaction>(tx, scope, id)).await.unwrap()
}

async fn until(world: &World, id: Id<Refund>, wanted: impl Fn(&Refund) -> bool) -> Refund {
    for _ in 0..400 {
        let refund = stored(world, id).await;
        if wanted(&refund) {
            return refund;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("not what was waited for: {:?}", stored(world, id).await);
}

fn is_over(refund: &Refund) -> bool {
    refund.step() == Step::Settled
}

async fn available(world: &World) -> i64 {
    let scope = world.scope;
    let found = world.app.read(move |tx, _| balance::of(tx, scope, Currency::gmd(), None)).await.unwrap();
    i64::try_from(found.total.minor).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_has_so_many_refunds_and_no_more() {
    for place in Place::each("a transaction has so many refunds").await {
        let world = World::on(place.settings()).await;
        let (paid, other) = (world.paid(100_000).await, world.paid(1_000).await);
        world.rest().await;
        let mut asked = Vec::new();
        for _ in 0..MOST_REFUNDS {
            asked.push(world.refund(paid, Some(100)).await.unwrap().id);
        }
        let refused = Err(Failure::Refused(Refusal::TooManyRefunds { most: MOST_REFUNDS }));
        assert_eq!(world.refund(paid, Some(100)).await, refused);
        world.refund(other, Some(100)).await.unwrap();
        let failed = RefundReport::Failed { reason: FailureReason::Declined };
        world.app.report_refund(world.scope, asked[7], failed.clone()).await.unwrap();
        world.refund(paid, Some(100)).await.unwrap();
        assert_eq!(world.refund(paid, Some(100)).await, refused);
        assert_eq!(transaction(&world, paid).await.refunding().minor, 100 * MOST_REFUNDS, "a refusal takes nothing");
        // All that is left is not one too many, so that whatever was paid can be given back.
        let rest = world.refund(paid, None).await.unwrap();
        assert_eq!(rest.amount.minor, 100_000 - 100 * MOST_REFUNDS);
        world.app.report_refund(world.scope, rest.id, failed).await.unwrap();
        assert_eq!(world.refund(paid, Some(100)).await, refused);
        world.refund(paid, Some(rest.amount.minor)).await.unwrap();
        assert_eq!(transaction(&world, paid).await.refundable().minor, 0);
        world.has_clean_books().await;
        world.app.store().close().await;
        place.end().await;
    }
}

/// What is there can be given back, and not a hundredth more; what was paid of late is not there yet.
#[tokio::test]
async fn a_refund_takes_what_is_available_and_no_more() {
    let world = World::new().await;
    let delay = Duration::from_secs(3_600);
    let change = SettingsChange {
        allow_negative_balance: Some(false),
        settlement_delay_s: Some(3_600),
        ..SettingsChange::default()
    };
    let scope = world.scope;
    world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await.unwrap();
    let paid = world.paid(10_000).await;
    let short = |available: i128, required: i64| {
        let (available, required) = (Sum::new(available, Currency::gmd()), Money::new(required, Currency::gmd()));
        Err(Failure::Refused(Refusal::InsufficientBalance { available, required }))
    };
    assert_eq!(world.refund(paid, Some(100)).await, short(0, 100));
    world.clock.advance(delay);
    world.paid(10_000).await;
    let net = 9_750;
    assert_eq!(world.refund(paid, Some(net + 1)).await, short(net.into(), net + 1));
    world.refund(paid, Some(net)).await.unwrap();
    assert_eq!(world.refund(paid, Some(1)).await, short(0, 1));
    world.has_clean_books().await;
    world.close().await;
}

/// Each way a call ends, at a rail that knows its references and at one that does not: what is stored, and how often
/// money really went back.
#[tokio::test]
async fn whatever_is_lost_is_paid_back_once_at_most() {
    use Fault::{LostAfter, LostBefore, Refused, WrongAmount};
    let cases: [(bool, &[Fault], RefundStatus, u32); 9] = [
        (true, &[], RefundStatus::Completed, 1),
        (true, &[LostAfter], RefundStatus::Completed, 1),
        // The rail has never heard of it, and would know a second call for the first: it is sent again.
        (true, &[LostBefore], RefundStatus::Completed, 1),
        (true, &[Refused], RefundStatus::Failed, 0),
        // A person has to look at it, whatever the rail knows of it later.
        (true, &[WrongAmount], RefundStatus::Processing, 1),
        (false, &[], RefundStatus::Completed, 1),
        (false, &[LostAfter], RefundStatus::Completed, 1),
        (false, &[LostBefore], RefundStatus::Processing, 0),
        (false, &[WrongAmount], RefundStatus::Processing, 1),
    ];
    for (is_idempotent, faults, wanted, times) in cases {
        let (world, rail) = behind(|simulator| TestRail {
            // What a person has to look at is not cleared by the query that would tell otherwise.
            answers_questions: faults != [WrongAmount],
            ..TestRail::made_of(simulator, is_idempotent, faults)
        })
        .await;
        let paid = world.paid(10_000).await;
        let refund = world.refund(paid, Some(4_000)).await.unwrap();
        let found = match wanted {
            RefundStatus::Completed | RefundStatus::Failed => until(&world, refund.id, is_over).await,
            RefundStatus::Pending | RefundStatus::Processing => {
                let unknown = until(&world, refund.id, |refund| refund.step() == Step::Unknown).await;
                // It is asked again and again, and silence proves nothing.
                tokio::time::sleep(Duration::from_millis(1_500)).await;
                assert_eq!(stored(&world, refund.id).await.status(), unknown.status());
                unknown
            }
        };
        assert_eq!((found.status(), rail.times(refund.id)), (wanted, times), "{is_idempotent} {faults:?}");
        assert_eq!(found.parked.is_some(), faults == [WrongAmount], "{:?}", found.parked);
        let left = transaction(&world, paid).await.refundable().minor;
        assert_eq!(left, if wanted == RefundStatus::Failed { 10_000 } else { 6_000 }, "{is_idempotent} {faults:?}");
        world.has_clean_books().await;
    }
}

/// Whoever looks a lost refund up at the wallet may see nothing, while the call that is made once more is on its way.
#[tokio::test]
async fn nobody_decides_while_a_refund_is_sent_again() {
    let (world, rail, held) = behind_held(&[Fault::LostBefore]).await;
    let paid = world.paid(10_000).await;
    let id = world.refund(paid, Some(4_000)).await.unwrap().id;
    held.began.notified().await;
    is_paid_back_once(&world, &rail, &held, id, "processing").await;
}

/// The worker that calls is slower than its lease, and another one has begun: what the slow one never heard says nothing. So it
/// is with the first call and with one that is made once more.
#[tokio::test]
async fn nobody_decides_while_another_worker_sends_a_refund() {
    let cases: [(&[Fault], Fault, &str); 4] = [
        (&[], Fault::LostBefore, "pending"),
        (&[], Fault::Refused, "pending"),
        (&[], Fault::NotHeardOf, "pending"),
        (&[Fault::LostBefore], Fault::LostBefore, "processing"),
    ];
    for (faults, of_the_slow_one, status) in cases {
        let (world, rail, held) = behind_held(faults).await;
        let paid = world.paid(10_000).await;
        let id = world.refund(paid, Some(4_000)).await.unwrap().id;
        for _ in 0..2 {
            held.began.notified().await;
            world.clock.advance(HALF_A_MINUTE);
        }
        rail.faults.lock().unwrap().push(of_the_slow_one);
        held.goes_on.notify_one();
        while !rail.faults.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        is_paid_back_once(&world, &rail, &held, id, status).await;
    }
}

async fn behind_held(faults: &[Fault]) -> (World, Arc<TestRail>, Arc<Held>) {
    let held = Arc::new(Held::default());
    let (world, rail) =
        behind(|simulator| TestRail { held: Some(Arc::clone(&held)), ..TestRail::made_of(simulator, true, faults) })
            .await;
    (world, rail, held)
}

/// A call for it is under way: nobody decides meanwhile, and then it ends.
async fn is_paid_back_once(world: &World, rail: &TestRail, held: &Held, id: Id<Refund>, status: &'static str) {
    assert_eq!(stored(world, id).await.step(), Step::Sending);
    let decided = decided_as_failed(world, id).await;
    assert_eq!(decided, Err(Failure::Refused(Refusal::RefundNotUnknown { status })));
    held.goes_on.notify_one();
    // Another may have begun by now.
    held.goes_on.notify_one();
    let found = until(world, id, is_over).await;
    assert_eq!((found.status(), rail.times(id)), (RefundStatus::Completed, 1));
    world.has_clean_books().await;
}

/// By a person who has looked it up.
async fn decided_as_failed(world: &World, id: Id<Refund>) -> Result<(), Failure> {
    let scope = world.scope;
    let decide = move |tx: &mut Tx<'_>, _: &Context| {
        let resolve = |_: &mut Tx<'_>, refund: &mut Refund, transaction: &mut Transaction, now| {
            Ok(refund.resolved(transaction, false, now)?)
        };
        refunds::settle(tx, scope, id, None, resolve).map(drop)
    };
    world.app.commit(decide).await
}

/// The process died between the call and its outcome; the next one finds the intent, and an effect or none.
#[tokio::test]
async fn a_process_that_died_in_the_call_leaves_a_refund_that_ends_once() {
    for (is_idempotent, had_effect, wanted) in [
        (true, true, Some(RefundStatus::Completed)),
        (true, false, Some(RefundStatus::Completed)),
        (false, true, Some(RefundStatus::Completed)),
        // Nobody knows whether the call went out, and this rail would take a second one for another refund.
        (false, false, None),
    ] {
        let (world, rail) = behind(|simulator| TestRail::made_of(simulator, is_idempotent, &[])).await;
        let paid = world.paid(10_000).await;
        let scope = world.scope;
        // Asked for and taken by a worker that never came back.
        let new = dalasi::app::refunds::NewRefund { transaction: paid, amount: None, reason: None };
        let refund = world
            .app
            .commit(move |tx, context| {
                let refund = dalasi::app::refunds::ask(tx, context, scope, &new)?;
                let until = tx.now().plus(Duration::from_secs(30));
                let claimed = jobs::claim(tx, Lane::Test, 32, until)?;
                assert!(claimed.iter().any(|claimed| claimed.job == Job::SendRefund(refund.id)));
                Ok(refund)
            })
            .await
            .unwrap();
        if had_effect {
            assert!(matches!(rail.call(&refund), Called::Answered(_)));
        }
        assert_eq!(stored(&world, refund.id).await.status(), RefundStatus::Pending);
        world.clock.advance(HALF_A_MINUTE);
        match wanted {
            Some(status) => {
                let found = until(&world, refund.id, is_over).await;
                assert_eq!((found.status(), rail.times(refund.id)), (status, 1), "{is_idempotent} {had_effect}");
            }
            None => {
                until(&world, refund.id, |refund| refund.step() == Step::Unknown).await;
                assert_eq!(rail.times(refund.id), 0);
            }
        }
        world.has_clean_books().await;
    }
}

/// No to the second call says nothing of the first.
#[tokio::test]
async fn a_refusal_after_a_lost_process_decides_nothing() {
    let (world, rail) =
        behind(|simulator| TestRail::made_of(simulator, true, &[Fault::LostAfter, Fault::Refused])).await;
    let paid = world.paid(10_000).await;
    let refund = world.refund(paid, None).await.unwrap();
    let claimed = ClaimedJob {
        job: Job::SendRefund(refund.id),
        scope: world.scope,
        due_at: refund.updated_at,
        attempts: 2,
        lease_token: 99,
    };
    until(&world, refund.id, |refund| refund.step() != Step::Sending).await;
    world.app.send_refund(&claimed, Since::now(world.app.store())).await.unwrap();
    let found = until(&world, refund.id, is_over).await;
    assert_eq!((found.status(), rail.times(refund.id)), (RefundStatus::Completed, 1));
    world.has_clean_books().await;
}

#[tokio::test]
async fn a_rail_refunds_as_much_as_it_can() {
    let (world, _) =
        behind(|simulator| TestRail { support: RefundSupport::Full, ..TestRail::made_of(simulator, true, &[]) }).await;
    let paid = world.paid(10_000).await;
    match world.refund(paid, Some(9_999)).await {
        Err(Failure::Invalid(faults)) => assert_eq!(faults[0].field, "amount"),
        other => panic!("{other:?}"),
    }
    assert_eq!(transaction(&world, paid).await.refunding().minor, 0, "what is refused leaves nothing behind");
    let whole = world.refund(paid, Some(10_000)).await.unwrap();
    until(&world, whole.id, is_over).await;

    let (world, _) =
        behind(|simulator| TestRail { support: RefundSupport::None, ..TestRail::made_of(simulator, true, &[]) }).await;
    let paid = world.paid(10_000).await;
    assert_eq!(world.refund(paid, None).await, Err(Failure::Refused(Refusal::RefundNotSupported)));
    world.has_clean_books().await;
}

/// Money that came twice goes back whole, however little the merchant has.
#[tokio::test]
async fn second_money_goes_back_without_fee_and_balance() {
    let world = World::new().await;
    let change = SettingsChange { allow_negative_balance: Some(false), ..SettingsChange::default() };
    let scope = world.scope;
    world.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await.unwrap();
    let checkout = world.create(|_| {}).await;
    // The payer leaves the card's page and takes a wallet instead, whose answer is lost …
    world.start(checkout.id, Method::Card, "").await;
    let card = world.shown(checkout.id).await.unwrap().id;
    world.start(checkout.id, Method::Afrimoney, "+2207000004").await;
    let wallet = world.shown(checkout.id).await.unwrap().id;
    // … and the card's money arrives in the meantime.
    let amount = checkout.order.amount;
    let report = Report::Paid { amount, rail_reference: "CARD-1".into() };
    world.app.report(scope, card, report, None).await.unwrap();
    let mut second = transaction(&world, wallet).await;
    while second.status() != TransactionStatus::Completed {
        tokio::time::sleep(Duration::from_millis(50)).await;
        second = transaction(&world, wallet).await;
    }
    assert!(second.duplicate, "the checkout was paid before");
    assert_eq!((second.fee().minor, second.net()), (0, amount), "the whole of it goes back");
    let net = available(&world).await;
    assert_eq!(net, amount.minor - amount.minor / 40, "only one payment is the merchant's");

    // The merchant has less than the whole: their own money stays, the second goes back.
    let refused = world.refund(card, None).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::InsufficientBalance { .. }))), "{refused:?}");
    // Somebody has to see to it until the last of it has gone back.
    let waiting = async || {
        let twice = world.app.read(move |tx, _| {
            Ok::<_, Failure>(transactions::for_attention(tx, scope, transactions::CAME_TWICE, "", 10)?)
        });
        twice.await.unwrap().iter().map(|transaction| transaction.id).collect::<Vec<_>>()
    };
    assert_eq!(waiting().await, [wallet]);
    let first = world.refund(wallet, Some(1_000)).await.unwrap();
    until(&world, first.id, is_over).await;
    assert_eq!(waiting().await, [wallet]);
    let refund = world.refund(wallet, None).await.unwrap();
    let rest = Money::new(amount.minor - 1_000, amount.currency);
    assert_eq!((refund.amount, &refund.source), (rest, &Source::Unapplied { rail: "simulator".into() }));
    assert_eq!(until(&world, refund.id, is_over).await.status(), RefundStatus::Completed);
    assert_eq!(waiting().await, []);
    assert_eq!(available(&world).await, net);
    let shown = world.shown(checkout.id).await.unwrap();
    assert_eq!((shown.id, shown.status.as_str()), (card, "completed"), "the checkout shows the money that stays");
    world.has_clean_books().await;
}

/// What somebody recorded by hand is given back by hand, whatever the balance; and its receipt says so.
#[tokio::test]
async fn a_recorded_payment_is_given_back_at_once() {
    let world = World::new().await;
    let change = SettingsChange { allow_negative_balance: Some(false), ..SettingsChange::default() };
    let scope = world.scope;
    let new = NewInvoice {
        customer_id: None,
        customer_email: Some("awa@example.gm".into()),
        customer_name: Some("Awa Ceesay".into()),
        customer_address: None,
        customer_phone: None,
        currency: Currency::gmd(),
        tax_rate: TaxRate::parse("0").unwrap(),
        due_date: world.now().plus(Duration::from_secs(86_400)),
        notes: String::new(),
        items: vec![NewItem {
            product_id: None,
            description: Some("Rice".into()),
            quantity: 1,
            unit_price: Some(Money::new(10_000, Currency::gmd())),
        }],
        is_draft: false,
        metadata: Metadata::default(),
    };
    let cash = NewPayment {
        amount: Money::new(6_000, Currency::gmd()),
        method: OfflineMethod::Cash,
        transaction_id: None,
        notes: None,
    };
    let recorded = world.app.commit(move |tx, context| {
        organizations::change_settings(tx, context, scope, &change)?;
        let invoice = invoices::create(tx, context, scope, &new)?.invoice.id;
        Ok(invoices::record_payment(tx, context, scope, invoice, &cash, "key_of_the_till")?.invoice)
    });
    let invoice = recorded.await.unwrap();
    let receipt_id = invoice.receipts()[0].id;
    let receipt = world.app.read(move |tx, _| look_up::<Receipt>(tx, scope, receipt_id)).await.unwrap();

    let refund = world.refund(receipt.transaction, Some(2_500)).await.unwrap();
    assert_eq!((refund.status(), &refund.source), (RefundStatus::Completed, &Source::Offline));
    let paid = transaction(&world, receipt.transaction).await;
    assert_eq!((paid.status(), paid.refunded().minor), (TransactionStatus::PartiallyRefunded, 2_500));
    assert_eq!(available(&world).await, 0, "it never was in the balance");
    let code = receipt.validation_code.clone();
    let checked = world.app.read(move |tx, _| receipts::validate(tx, &code)).await.unwrap();
    assert_eq!(checked.map(|(_, refunded)| refunded.minor), Some(2_500));
    let invoice = world.app.read(move |tx, _| look_up::<Invoice>(tx, scope, invoice.id)).await.unwrap();
    assert_eq!(invoice.stored_status().as_str(), "partially_paid", "an invoice keeps its state");

    let left = Money::new(3_500, Currency::gmd());
    assert_eq!(
        world.refund(receipt.transaction, Some(3_501)).await,
        Err(Failure::Refused(Refusal::RefundExceedsAmount { left }))
    );
    assert_eq!(world.refund(receipt.transaction, None).await.unwrap().amount, left);
    assert_eq!(transaction(&world, receipt.transaction).await.status(), TransactionStatus::Refunded);
    world.has_clean_books().await;
}
