//! What is paid online beside checkouts, with a clock that moves: invoices in parts, payment links by many, sessions that
//! nobody uses. Each story ends with books that are right.

mod of_checkouts;
mod of_invoices;
mod of_links;
mod unused;
mod withdrawn;

use std::time::Duration;

use dalasi::app::idempotency::Reply;
use dalasi::app::invoices::{self, NewInvoice};
use dalasi::app::organizations::{self, SettingsChange};
use dalasi::app::payment_links::{self, LinkChange, NewPaymentLink};
use dalasi::app::payments::{Initialize, Target};
use dalasi::app::products::NewItem;
use dalasi::app::sessions::{self, Payment};
use dalasi::app::{checkouts, look_up, settlement, verify};
use dalasi::error::Failure;
use domain::checkout::Checkout;
use domain::event::Event;
use domain::invoice::{Invoice, Status};
use domain::payment::{Moved, Payable, Payer, PaymentSession, SessionStatus, Transaction, TransactionStatus};
use domain::payment_link::{self, CustomField, FieldType, PaymentLink, Price, Terms};
use domain::rail::{Called, FailureReason, Report};
use domain::{Currency, Id, Metadata, Method, Money, Msisdn, Refusal, TaxRate};
use store::queries::PageRequest;
use store::queries::events::{self, EventsFilter};
use store::queries::transactions::{self, TransactionFilter};

use crate::world::World;

const APPROVES: &str = "7000000";
const POOR: &str = "7000001";
const SILENT: &str = "7000003";
const QUIET: &str = "7654321";
const DAY: Duration = Duration::from_secs(24 * 3600);

fn dalasi(minor: i64) -> Money {
    Money::new(minor, Currency::gmd())
}

fn pay(payable: Payable, method: Method, phone: &str) -> Initialize {
    Initialize {
        target: Target::Object(payable),
        method: Some(method),
        amount: None,
        faults: Vec::new(),
        payer: Payer { phone: Some(Msisdn::parse(phone).unwrap()), ..Payer::default() },
        metadata: None,
        answers: Metadata::default(),
        success_url: None,
        failure_url: None,
        replaces: None,
        has_code: false,
        counted: None,
    }
}

impl World {
    /// Of 100.00, payable at once.
    async fn invoice(&self) -> Payable {
        let item = NewItem {
            product_id: None,
            description: Some("Atlas".into()),
            quantity: 4,
            unit_price: Some(dalasi(2_500)),
        };
        let new = NewInvoice {
            customer_id: None,
            customer_email: Some("awa@example.gm".into()),
            customer_name: Some("Awa Ceesay".into()),
            customer_address: None,
            customer_phone: None,
            currency: Currency::gmd(),
            tax_rate: TaxRate::default(),
            due_date: self.app.read(|tx, _| Ok(tx.now())).await.unwrap().plus(DAY * 30),
            notes: String::new(),
            items: vec![item],
            is_draft: false,
            metadata: Metadata::default(),
        };
        let scope = self.scope;
        let created = self.app.commit(move |tx, context| invoices::create(tx, context, scope, &new)).await;
        Payable::Invoice(created.unwrap().invoice.id)
    }

    async fn link(&self, change: impl FnOnce(&mut Terms)) -> Payable {
        let mut terms = Terms {
            title: "Concert".into(),
            description: None,
            expiration_date: None,
            max_usage_count: None,
            success_url: None,
            failure_url: None,
            collect_customer_info: false,
            custom_fields: None,
            metadata: None,
        };
        change(&mut terms);
        let new = NewPaymentLink { price: Price::Fixed { amount: dalasi(10_000) }, terms };
        let scope = self.scope;
        let created = self.app.commit(move |tx, context| payment_links::create(tx, context, scope, &new)).await;
        Payable::PaymentLink(created.unwrap().link.id)
    }

    async fn allow_parts(&self) {
        let change = SettingsChange {
            enabled_methods: None,
            name: None,
            logo_url: None,
            accent_color: None,
            address: None,
            phone: None,
            email: None,
            tax_id: None,
            locale: None,
            allow_partial_payments: Some(true),
            settlement_delay_s: None,
            allow_negative_balance: None,
            fees: Vec::new(),
        };
        let scope = self.scope;
        let changed =
            self.app.commit(move |tx, context| organizations::change_settings(tx, context, scope, &change)).await;
        changed.unwrap();
    }

    /// The session, or the code of the refusal.
    async fn initialize(&self, request: Initialize) -> Result<Id<PaymentSession>, String> {
        let render = |result: Result<&Payment, &Failure>| match result {
            Ok(payment) => Reply::new(200, payment.session.id.to_string()),
            Err(failure) => Reply::new(400, failure.code().into_owned()),
        };
        match self.app.initialize(self.scope, request, None, None, render).await {
            Ok(reply) if reply.status == 200 => Ok(reply.body.parse().unwrap()),
            Ok(reply) => Err(reply.body),
            Err(failure) => Err(failure.code().into_owned()),
        }
    }

    async fn payment(&self, session: Id<PaymentSession>) -> Payment {
        let scope = self.scope;
        self.app.read(move |tx, _| sessions::look_up_payment(tx, scope, session)).await.unwrap()
    }

    async fn reach(&self, session: Id<PaymentSession>, status: SessionStatus) -> Transaction {
        for _ in 0..400 {
            let payment = self.payment(session).await;
            if payment.session.status() == status {
                return payment.transaction.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{session} is still {:?}", self.payment(session).await.session.status());
    }

    async fn attempt(&self, session: Id<PaymentSession>) -> Transaction {
        self.payment(session).await.transaction.unwrap()
    }

    /// The rail's verified word, whatever the attempt has come to.
    async fn report(&self, transaction: Id<Transaction>, report: Report) {
        self.app.report(self.scope, transaction, report, None).await.unwrap();
    }

    async fn confirm(&self, transaction: &Transaction) {
        let report = Report::Paid { amount: transaction.amount, rail_reference: "R-9".into() };
        self.report(transaction.id, report).await;
    }

    async fn stored_invoice(&self, payable: Payable) -> Invoice {
        let (scope, Payable::Invoice(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        self.app.read(move |tx, _| look_up::<Invoice>(tx, scope, id)).await.unwrap()
    }

    async fn stored_link(&self, payable: Payable) -> PaymentLink {
        let (scope, Payable::PaymentLink(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        self.app.read(move |tx, _| look_up::<PaymentLink>(tx, scope, id)).await.unwrap()
    }

    async fn cancel_invoice(&self, payable: Payable) -> Result<(), String> {
        let (scope, Payable::Invoice(id)) = (self.scope, payable) else { panic!("{payable:?}") };
        let cancelled = self.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await;
        cancelled.map(drop).map_err(|failure| failure.code().into_owned())
    }

    /// An object's events, in order.
    async fn events(&self, object: impl ToString) -> Vec<Event> {
        let (scope, object) = (self.scope, object.to_string());
        let page = PageRequest { offset: 0, limit: 100, after: None };
        let found = self.app.read(move |tx, _| Ok(events::list(tx, scope, &EventsFilter::default(), &page)?)).await;
        let mut told: Vec<_> = found.unwrap().items.into_iter().filter(|event| event.object_id == object).collect();
        told.sort_by_key(|event| event.sequence);
        told
    }

    async fn told(&self, object: impl ToString) -> Vec<&'static str> {
        self.events(object).await.iter().map(|event| event.kind.known().unwrap().as_str()).collect()
    }

    /// What receivers were told.
    async fn bodies(&self, object: impl ToString) -> Vec<serde_json::Value> {
        let events = self.events(object).await;
        events.iter().map(|event| serde_json::from_str(&event.body).unwrap()).collect()
    }

    async fn books_are_right(&self) {
        let report = self.app.read(|tx, _| verify::everything(tx, &verify::Progress::default())).await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.faults);
    }

    /// As it is kept, once somebody closed it.
    async fn stored_attempt(&self, session: Id<PaymentSession>) -> Transaction {
        for _ in 0..400 {
            let scope = self.scope;
            let stored = self.app.read(move |tx, _| {
                let session = look_up::<PaymentSession>(tx, scope, session)?;
                look_up::<Transaction>(tx, scope, session.transaction.unwrap())
            });
            let stored = stored.await.unwrap();
            if stored.status() != TransactionStatus::Pending {
                return stored;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("nobody closed {session}");
    }
}
