//! One merchant, one checkout of 100.00 GMD and whatever is needed around it. Tests only.

use std::time::Duration;

use crate::checkout::{Checkout, Customer, Order};
use crate::entropy::Entropy;
use crate::id::{Id, Object};
use crate::method::Method;
use crate::money::{BasisPoints, Currency, Money};
use crate::organization::FeeSchedule;
use crate::payment::{Payable, Payer, PaymentSession, Transaction};
use crate::phone::Msisdn;
use crate::rail::{NextAction, Report, Started};
use crate::scope::{Mode, Scope};
use crate::time::Timestamp;

/// So long a sample can be paid.
pub(crate) const OPEN_S: u32 = 600;

/// `offset_us` after the samples began.
pub(crate) fn at(offset_us: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000 + offset_us)
}

pub(crate) fn seconds(offset_s: i64) -> Timestamp {
    at(offset_s * 1_000_000)
}

pub(crate) fn id<T: Object>(number: u8) -> Id<T> {
    Entropy::from_seed([number; 32]).id(at(0))
}

pub(crate) fn scope() -> Scope {
    Scope { organization: id(1), mode: Mode::Test }
}

pub(crate) fn dalasi(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}

pub(crate) fn checkout(amount: Money) -> Checkout {
    let order = Order {
        amount,
        items: None,
        available_methods: Method::ALL.to_vec(),
        automatic_payment_methods: true,
        fixed_method: None,
        customer: Customer::default(),
        description: None,
        reference: None,
        metadata: Default::default(),
        success_url: None,
        failure_url: None,
    };
    Checkout::create(id(2), scope(), order, "digest".into(), OPEN_S, at(0))
}

pub(crate) fn session(id: Id<PaymentSession>, checkout: &Checkout, method: Method, now: Timestamp) -> PaymentSession {
    PaymentSession::open(
        id,
        scope(),
        Payable::Checkout(checkout.id),
        checkout.order.amount,
        Some(method),
        payer("7123456"),
        checkout.expires_at,
        now,
    )
}

pub(crate) fn payer(phone: &str) -> Payer {
    Payer { phone: Some(Msisdn::parse(phone).expect("a sample is right")), ..Payer::default() }
}

pub(crate) fn begin(session: &mut PaymentSession, id: Id<Transaction>, rate: u32, now: Timestamp) -> Transaction {
    let method = session.method.expect("a sample has a method");
    let rate = BasisPoints::new(rate).expect("a sample is right");
    let fee = FeeSchedule::default().with(method, rate).fee(method, session.amount);
    session.begin(id, method, "simulator".into(), fee, now)
}

/// What a rail answers that takes the order.
pub(crate) fn started(method: Method) -> Started {
    let next_action = match method {
        Method::Wave | Method::Card => NextAction::Redirect { url: "https://rail.example/pay".into() },
        Method::Afrimoney => NextAction::ApproveOnPhone { instructions: "Approve it.".into(), poll_after_s: 2 },
        Method::Qmoney => NextAction::Otp { length: 6, resend_after_s: 30, attempts_left: 3 },
    };
    Started { next_action, rail_reference: Some("R-1".into()) }
}

pub(crate) fn paid(amount: Money) -> Report {
    Report::Paid { amount, rail_reference: "R-1".into() }
}

pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);
