//! Commands: load, decide, save. And the handle through which the shell runs them.
//!
//! A function that takes a `Tx` is one short transaction and talks to nobody. What has to be asked of a rail is asked
//! between transactions, in `attempts`.

pub mod attempts;
pub mod balance;
pub mod checkouts;
pub mod customers;
pub mod delivery_outcomes;
pub mod delivery_places;
pub mod documents;
pub mod endpoint_tests;
pub mod hosted;
pub mod idempotency;
pub(crate) mod insist;
pub mod invariants;
pub mod invoices;
pub mod key_uses;
pub mod keys;
pub mod ledger;
mod list_turns;
pub mod logos;
pub mod mail_turns;
pub mod mails;
pub mod object_bells;
pub mod organizations;
pub mod paid_object;
pub mod payment_links;
pub mod payments;
pub mod products;
pub mod publish;
mod questions;
pub mod receipt_statements;
pub mod receipts;
pub mod references;
pub mod refund_calls;
pub mod refunds;
mod renderings;
pub mod repair;
pub mod sessions;
pub mod settlement;
pub mod shared_answers;
pub mod starts;
pub mod verify;
pub mod webhooks;

use std::sync::Arc;

use domain::api_key::{ApiKey, Right, Rights};
use domain::organization::Organization;
use domain::payment::Transaction;
use domain::rail::Capability;
use domain::{Currency, Id, Method, Mode, Refusal, Scope};
use store::{Entity, Store, Tx, Worker};
use tokio::sync::watch;

use crate::background::Background;
use crate::credentials::ClientSecretKeys;
use crate::egress::Egress;
use crate::error::Failure;
use crate::mail::Mailer;
use crate::rails::Rails;
use crate::secrets::{MasterKey, Purpose, Subkey};
use crate::wire::Addresses;
use crate::wire::settings::PayDashboard;

/// Who asks, and what they may do.
#[derive(Debug, Clone)]
pub struct Actor {
    pub scope: Scope,
    pub credential: Credential,
}

#[derive(Debug, Clone)]
pub enum Credential {
    /// A secret key, or a token that was minted with one.
    Secret { key: Id<ApiKey>, rights: Arc<Rights>, is_token: bool },
    /// A page in a payer's browser.
    Publishable { key: Id<ApiKey> },
}

impl Actor {
    /// The key behind the credential.
    pub fn key(&self) -> Id<ApiKey> {
        let (Credential::Secret { key, .. } | Credential::Publishable { key }) = &self.credential;
        *key
    }

    pub fn may(&self, right: Right) -> bool {
        match &self.credential {
            Credential::Secret { rights, .. } => rights.contains(right),
            Credential::Publishable { .. } => false,
        }
    }
}

/// What every command may need to know of its installation. Nothing in it changes while the process runs.
pub struct Context {
    pub addresses: Addresses,
    pub master: MasterKey,
    pub api_key_pepper: Subkey,
    pub client_secret_keys: ClientSecretKeys,
    pub form_token_key: Subkey,
    pub page_token_key: Subkey,
    pub kept_answer_key: Subkey,
    pub fingerprint_key: Arc<Subkey>,
    /// Mails are owed only where some process can send them.
    pub sends_mail: bool,
    offers: Vec<Offer>,
}

/// A rail that stands behind a method in a mode.
#[derive(Debug, Clone)]
pub struct Offer {
    pub mode: Mode,
    pub method: Method,
    pub rail: &'static str,
    pub capability: Capability,
}

impl Context {
    pub fn new(addresses: Addresses, master: MasterKey, offers: Vec<Offer>) -> Self {
        Self {
            addresses,
            api_key_pepper: master.subkey(Purpose::ApiKeyDigest),
            client_secret_keys: ClientSecretKeys::new(&master),
            form_token_key: master.subkey(Purpose::FormToken),
            page_token_key: master.subkey(Purpose::PageToken),
            kept_answer_key: master.subkey(Purpose::KeptAnswer),
            fingerprint_key: Arc::new(master.subkey(Purpose::RequestFingerprint)),
            master,
            sends_mail: false,
            offers,
        }
    }

    pub fn sending_mail(self) -> Self {
        Self { sends_mail: true, ..self }
    }

    pub fn offer(&self, mode: Mode, method: Method) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.mode == mode && offer.method == method)
    }

    /// What the rail of this name offers for a method.
    pub fn offer_of(&self, mode: Mode, method: Method, rail: &str) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.mode == mode && offer.method == method && offer.rail == rail)
    }

    /// Whether the rail takes a second start of the same attempt for the first.
    pub fn starts_once(&self, transaction: &Transaction) -> bool {
        let attempt = transaction.attempt();
        let offer = self.offer_of(transaction.scope.mode, attempt.method, &attempt.rail);
        offer.is_some_and(|offer| offer.capability.start_is_idempotent)
    }

    /// Whether any rail is configured for a mode.
    pub fn has_rails(&self, mode: Mode) -> bool {
        self.offers.iter().any(|offer| offer.mode == mode)
    }

    /// Why none of the methods that a merchant has enabled takes a currency.
    pub fn no_method(&self, mode: Mode, currency: Currency) -> Refusal {
        if !self.has_rails(mode) {
            return Refusal::NoPaymentProvider;
        }
        let could_be_enabled = Method::ALL.into_iter().any(|method| self.takes(mode, method, currency));
        Refusal::NoPaymentMethodAvailable { currency, could_be_enabled }
    }

    pub fn takes(&self, mode: Mode, method: Method, currency: Currency) -> bool {
        self.offer(mode, method).is_some_and(|offer| offer.capability.currencies.contains(&currency.code()))
    }

    /// The methods of a mode with their currencies, in the page's order.
    pub fn offered(&self, mode: Mode) -> Vec<(Method, &'static [&'static str])> {
        let offer = |method| Some((method, self.offer(mode, method)?.capability.currencies));
        Method::ALL.into_iter().filter_map(offer).collect()
    }
}

/// The running service, shared by all its parts.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    context: Arc<Context>,
    rails: Rails,
    egress: Egress,
    mailer: Option<Mailer>,
    /// By [`Worker::place`].
    bells: [watch::Sender<u64>; Worker::ALL.len()],
    object_bells: object_bells::ObjectBells,
    invariants: invariants::LatestInvariants,
    renderings: renderings::Renderings,
    logo_fetches: logos::Fetches,
    background: Background,
    starts: Arc<starts::Starts>,
    dashboards: shared_answers::SharedAnswers<Scope, PayDashboard>,
    list_turns: list_turns::ListTurns,
    endpoint_tests: endpoint_tests::EndpointTests,
    key_waits: idempotency::KeyWaits,
    untold: idempotency::Untold,
    questions: questions::Questions,
    key_uses: key_uses::KeyUses,
}

impl App {
    pub fn new(store: Store, context: Arc<Context>, rails: Rails, egress: Egress, mailer: Option<Mailer>) -> Self {
        let inner = Inner {
            store,
            context,
            rails,
            egress,
            mailer,
            bells: std::array::from_fn(|_| watch::Sender::new(0)),
            object_bells: object_bells::ObjectBells::default(),
            invariants: invariants::LatestInvariants::default(),
            renderings: renderings::Renderings::default(),
            logo_fetches: logos::Fetches::default(),
            background: Background::default(),
            starts: Arc::default(),
            dashboards: shared_answers::SharedAnswers::default(),
            list_turns: list_turns::ListTurns::default(),
            endpoint_tests: endpoint_tests::EndpointTests::default(),
            key_waits: idempotency::KeyWaits::default(),
            untold: idempotency::Untold::default(),
            questions: questions::Questions::default(),
            key_uses: key_uses::KeyUses::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    pub fn rails(&self) -> &Rails {
        &self.inner.rails
    }

    pub fn egress(&self) -> &Egress {
        &self.inner.egress
    }

    /// Nothing: no mail server is configured.
    pub fn mailer(&self) -> Option<&Mailer> {
        self.inner.mailer.as_ref()
    }

    /// What the background check found last.
    pub fn invariants(&self) -> &invariants::LatestInvariants {
        &self.inner.invariants
    }

    /// Documents and pictures that are being made.
    fn renderings(&self) -> &renderings::Renderings {
        &self.inner.renderings
    }

    /// For what nobody waits for.
    fn background(&self) -> &Background {
        &self.inner.background
    }

    /// The phones that were asked to pay of late, where many pay.
    pub fn starts(&self) -> &Arc<starts::Starts> {
        &self.inner.starts
    }

    /// The tests of webhook endpoints that are under way.
    pub fn endpoint_tests(&self) -> &endpoint_tests::EndpointTests {
        &self.inner.endpoint_tests
    }

    /// When keys were last used, as far as this process knows.
    pub fn key_uses(&self) -> &key_uses::KeyUses {
        &self.inner.key_uses
    }

    /// One transaction; afterwards those workers are woken to which it leaves something to do, who waits for a request that it ended,
    /// and the open pages of what it changed.
    pub async fn commit<T, F>(&self, command: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let context = Arc::clone(&self.inner.context);
        let object_bells = self.inner.object_bells.clone();
        let write = move |tx: &mut Tx<'_>| {
            let result = command(tx, &context)?;
            let changed = object_bells.changed(tx.take_changed_pages());
            Ok::<_, Failure>((result, tx.wakes(), tx.take_ended_keys(), changed))
        };
        let (result, wakes, ended_keys, changed) = self.inner.store.write(write).await?;
        drop(changed);
        self.inner.key_waits.tell(&ended_keys);
        Worker::ALL.into_iter().filter(|worker| wakes.has(*worker)).for_each(|worker| self.ring(worker));
        Ok(result)
    }

    /// The same, for a command that only adds: see [`store::Store::add`]. What is new owes nothing before the worker looks by itself.
    pub async fn commit_addition<T, F>(&self, command: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let context = Arc::clone(&self.inner.context);
        self.inner.store.add(move |tx| command(tx, &context)).await
    }

    pub async fn read<T, F>(&self, query: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let context = Arc::clone(&self.inner.context);
        self.inner.store.read(move |tx| query(tx, &context)).await
    }

    /// The same, for a page of a list, whose length is the caller's choice: it waits for its turn. It runs to its end on its own:
    /// whoever goes away leaves none behind that the next would not wait for.
    pub async fn read_list<T, F>(&self, scope: Scope, query: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let turn = self.inner.list_turns.begin(scope).await?;
        let app = self.clone();
        let read = tokio::spawn(async move {
            let _turn = turn;
            app.read(query).await
        });
        read.await.unwrap_or_else(|_| Err(Failure::Broken("a list was not read to its end".into())))
    }

    /// The same, for a query that looks at a few rows by their keys: see [`store::Store::look`].
    pub async fn look<T, F>(&self, query: F) -> Result<T, Failure>
    where
        F: Fn(&mut Tx<'_>, &Context) -> Result<T, Failure> + Send + Sync + 'static,
        T: Send + 'static,
    {
        let context = Arc::clone(&self.inner.context);
        self.inner.store.look(move |tx| query(tx, &context)).await
    }

    fn ring(&self, worker: Worker) {
        self.inner.bells[worker.place()].send_modify(|rings| *rings += 1);
    }

    /// Rings when a commit of this process has left `worker` something to do, an addition's aside, which owes nothing yet.
    pub fn bell(&self, worker: Worker) -> watch::Receiver<u64> {
        self.inner.bells[worker.place()].subscribe()
    }

    /// Follows an object by its public id: whoever does so before they look at it miss no change that this process commits.
    pub fn follow(&self, object_id: String) -> object_bells::Following {
        self.inner.object_bells.follow(object_id)
    }
}

/// The object, locked for a change, or the domain's "not found".
pub fn load<E: Entity + domain::Object>(tx: &mut Tx<'_>, scope: Scope, id: E::Id) -> Result<E, Failure> {
    Ok(tx.find(scope, id)?.ok_or_else(Refusal::not_found::<E>)?)
}

/// The merchant, as nearly every command needs it.
pub fn organization_of(tx: &mut Tx<'_>, scope: Scope) -> Result<Arc<Organization>, Failure> {
    Ok(tx.settled(scope, scope.organization)?.ok_or_else(Refusal::not_found::<Organization>)?)
}

/// The object, without a lock.
pub fn look_up<E: Entity + domain::Object>(tx: &mut Tx<'_>, scope: Scope, id: E::Id) -> Result<E, Failure> {
    Ok(tx.peek(scope, id)?.ok_or_else(Refusal::not_found::<E>)?)
}
