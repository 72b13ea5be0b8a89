//! `dalasi serve`: opens the store, listens, works, and stops in good order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use domain::Mode;
use http::{StatusCode, header};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::{Dialect, Store};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::init::{LOST, Pair, pair};
use super::installation::{self, Part};
use super::output;
use super::problem::Problem;
use super::stop::Stop;
use crate::app::organizations::Installed;
use crate::app::{App, Context, Offer};
use crate::config::{Database, SET_PUBLIC_URL, ServeArguments, ServeSettings, host_of};
use crate::egress::{Egress, EgressSettings};
use crate::http::envelope::EdgeSettings;
use crate::http::{self as api, Api};
use crate::listener::ListenerSettings;
use crate::mail::Mailer;
use crate::metrics::Metrics;
use crate::pages::{self, PageSettings};
use crate::rails::{Rail, Rails, Simulator};
use crate::secrets::{MasterKey, Purpose};
use crate::wire::Addresses;
use crate::{jobs, listener, logging, metrics, runtime};

const EXAMPLES: &str = "\
Examples:
  dalasi serve                                        everything in ./dalasi-data, on http://127.0.0.1:8080
  dalasi serve --listen 127.0.0.1:0                   on a free port; the line `listening on …` names it
  dalasi serve --config /etc/dalasi/dalasi.toml
  dalasi serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem --public-url https://pay.shop.example";

/// Until it is renamed.
const FIRST_ORGANIZATION: &str = "My shop";
/// Connections that wait to be taken; the system may allow fewer.
const BACKLOG: u32 = 1024;
/// What was accepted is finished within this (promise P17).
const DRAIN: Duration = Duration::from_secs(25);
/// For what nobody is owed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// With the time to drain, well within systemd's (`docs/deploy`).
const CLOSING: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(flatten)]
    settings: ServeArguments,
}

pub(super) fn run(arguments: Arguments) -> Result<(), Problem> {
    let settings = ServeSettings::load(arguments.settings)?;
    logging::install(settings.log_format)
        .map_err(|error| Problem::failed(format!("the server can't start: {error}")))?;
    stay_small();
    open_many_files();
    leave_no_core();
    let runtime = runtime::start().map_err(|error| Problem::failed(format!("the server can't start: {error}")))?;
    let served = runtime.block_on(async {
        // From here on a signal ends the server in good order, however far it has come.
        let stop = stop_signal()?;
        let prepared = Prepared::of(&settings)?;
        let part =
            Part::Server { allow_unsafe: settings.allow_unsafe_database, connections: settings.database_connections };
        // A database may take long to answer, and a migration to end; one that is left is undone by the database.
        let store = tokio::select! {
            opened = installation::open_store(&settings.store, part) => opened?,
            () = stopped(stop.clone()) => {
                tracing::info!("stopped before the database was open");
                logging::flush();
                return Ok(());
            }
        };
        let served = serve(&settings, &store, prepared, stop).await;
        closed(&store).await;
        logging::flush();
        served
    });
    // A thread that waits for a database in vain is not waited for.
    runtime.shutdown_background();
    served
}

/// A file is left in good order. A server has what was acknowledged, and ends by itself what it does not answer.
async fn closed(store: &Store) {
    match store.dialect() {
        Dialect::Sqlite => store.close().await,
        Dialect::Postgres => {
            if tokio::time::timeout(CLOSING, store.close()).await.is_err() {
                tracing::warn!("the database does not answer, and is not waited for any longer");
            }
        }
    }
}

/// The allocator asks for memory in pages of 2 MB; an idle service would keep twice of what it needs.
fn stay_small() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages can't be declined");
    }
}

/// A shell allows 1,024 files, each connection is one, and systemd's limit may be raised by the process itself.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, files = limit.current, "no more files can be opened than the soft limit allows");
    }
}

/// A core would hold the master key, and whatever payers and programs have just sent.
fn leave_no_core() {
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        tracing::warn!(%error, "a core may be left where the process breaks");
    }
}

/// What a start is refused for without looking at the database, so that it is neither made nor migrated for a start that comes to
/// nothing.
struct Prepared {
    listener: ListenerSettings,
    socket: TcpSocket,
    address: SocketAddr,
    mailer: Option<Mailer>,
}

impl Prepared {
    fn of(settings: &ServeSettings) -> Result<Self, Problem> {
        let listener = settings.listener()?;
        let (socket, address) = bind(settings.listen).map_err(|error| no_place(settings.listen, &error))?;
        installation::require_key_file(&settings.store)?;
        let host = host_of(&settings.addresses(address).public_url);
        let mailer = settings.mail.clone().map(|mail| Mailer::new(mail, host.as_deref())).transpose()?;
        Ok(Self { listener, socket, address, mailer })
    }
}

async fn serve(
    settings: &ServeSettings,
    store: &Store,
    prepared: Prepared,
    stop: watch::Receiver<bool>,
) -> Result<(), Problem> {
    let Prepared { listener: listener_settings, socket, address, mailer } = prepared;
    // Before anything is installed: keys that are shown once must not be lost to a port that is taken.
    let listener = socket.listen(BACKLOG).map_err(|error| no_place(settings.listen, &error))?;
    let key = installation::master_key(store, &settings.store).await?;
    let addresses = settings.addresses(address);
    let addresses = Addresses { public_url: addresses.public_url, pay_url: addresses.pay_url };
    let unreachable = settings.unreachable_address(address);
    if let Some(why) = &unreachable {
        tracing::warn!("{why}. {SET_PUBLIC_URL}");
    }
    let rails = rails(store, &addresses.pay_url, &key.key);
    let context = Context::new(addresses.clone(), key.key.clone(), offers(&rails));
    let context = Arc::new(if mailer.is_some() { context.sending_mail() } else { context });
    let goes_on = |why: &str| {
        tracing::warn!(why, "whether there is an installation can't be said yet");
        !*stop.borrow()
    };
    let installed = installation::install(store, &context, FIRST_ORGANIZATION, &key, goes_on).await?;
    if let Some(installed) = installed {
        welcome(settings, &addresses, unreachable.as_deref(), &installed).map_err(|problem| problem.or_lost(LOST))?;
    }

    let egress =
        Egress::new(EgressSettings { allow_loopback: settings.allow_loopback_webhooks, ..EgressSettings::default() });
    let app = App::new(store.clone(), context, rails, egress, mailer);
    // Before there is anything to count.
    let recorded = metrics::install();
    tokio::spawn(metrics::keep_up());
    let worker = settings.roles.worker.then(|| {
        metrics::invariants_unknown(app.store().wall_time());
        tokio::spawn(jobs::work(app.clone(), stop.clone()))
    });
    let uses = settings.roles.api.then(|| tokio::spawn(app.clone().keep_key_uses(stop.clone())));
    let router =
        if settings.roles.api { service(&app, settings, recorded, stop.clone()) } else { watched(&app, recorded) };

    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    output::line(&format!("listening on {scheme}://{address}"))
        .map_err(|problem| problem.or_lost("the server has stopped again"))?;
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "serving");
    // Both stop at the signal, side by side.
    let ending = finish(worker, stop.clone());
    let (served, ()) = tokio::join!(listener::serve(listener, router, listener_settings, stopped(stop)), ending);
    if let Some(uses) = uses {
        uses.abort();
        match tokio::time::timeout(LAST_WORDS, app.write_key_uses()).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => tracing::warn!(%failure, "when keys were last used was not written down"),
            Err(_) => tracing::warn!("when keys were last used could not be written down in time"),
        }
    }
    tracing::info!("stopped");
    served.map_err(|error| Problem::failed(format!("the server broke: {error}")))
}

/// Nobody gets a connection so far: while a database is migrated, whoever comes is better off with another process.
fn bind(wanted: SocketAddr) -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = match wanted {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // What lingers of the process before is no reason to wait.
    socket.set_reuseaddr(true)?;
    socket.bind(wanted)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

fn no_place(wanted: SocketAddr, error: &io::Error) -> Problem {
    let sentence = format!("can't listen on {wanted}: {error}. --listen takes another address; port 0 a free port.");
    Problem::of_address(sentence, error.kind())
}

/// Those that are configured.
pub(super) fn rails(store: &Store, pay_url: &str, key: &MasterKey) -> Rails {
    let simulator = Simulator::new(store.clone(), pay_url.to_owned(), key.subkey(Purpose::PageToken));
    Rails::new(vec![(Mode::Test, Arc::new(simulator) as Arc<dyn Rail>)])
}

/// What each rail stands behind.
pub(super) fn offers(rails: &Rails) -> Vec<Offer> {
    let of_rail = |(mode, rail): (Mode, &Arc<dyn Rail>)| {
        let name = rail.name();
        let offer = move |(method, capability)| Offer { mode, method, rail: name, capability };
        rail.capabilities().into_iter().map(offer).collect::<Vec<_>>()
    };
    rails.iter().flat_map(of_rail).collect()
}

/// Everything that is served over HTTP by the role `api`.
fn service(app: &App, settings: &ServeSettings, recorded: &'static Metrics, stopping: watch::Receiver<bool>) -> Router {
    let Addresses { public_url, pay_url } = &app.context().addresses;
    // What browsers see, which a proxy in front may have made so.
    let is_https = |address: &str| address.starts_with("https://");
    let pages = PageSettings { is_https: is_https(pay_url), rate: settings.rate, stopping: stopping.clone() };
    let api = Api::new(app.clone(), settings.rate, recorded).stopping_with(stopping);
    let router = api::router(api.clone()).merge(pages::router(app.clone(), pages));
    api::wrap(router, &api, EdgeSettings { is_https: is_https(public_url) })
}

/// A worker serves nobody, but can be watched.
fn watched(app: &App, recorded: &'static Metrics) -> Router {
    let health = async |State(app): State<App>| {
        let well = app.read(|tx, _| Ok(tx.query("select 1 as one", &[]).map(drop)?)).await.is_ok();
        let (status, body) = match well {
            true => (StatusCode::OK, r#"{"data":{"status":"ok"}}"#),
            false => (StatusCode::SERVICE_UNAVAILABLE, r#"{"error":"The store is down.","code":"unavailable"}"#),
        };
        (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let shown = async |State(app): State<App>| {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], recorded.render(app.store()))
    };
    Router::new().route("/health", get(health)).route("/metrics", get(shown)).with_state(app.clone())
}

/// Turns true at the first signal that asks for it; SIGTERM or SIGINT after that ends the process as it stands.
fn stop_signal() -> Result<watch::Receiver<bool>, Problem> {
    let mut signals = Stop::new()?;
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        signals.asked().await;
        tracing::info!("stopping: finishing what was accepted; a second signal ends at once");
        stop.send_replace(true);
        signals.insisted().await;
        tracing::warn!("ended at once");
        std::process::exit(1);
    });
    Ok(stopping)
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the other end is gone: stop as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The worker ends what it has begun; whatever takes longer is leased and runs again elsewhere.
async fn finish(worker: Option<JoinHandle<()>>, stop: watch::Receiver<bool>) {
    let Some(mut worker) = worker else { return };
    stopped(stop).await;
    match tokio::time::timeout(DRAIN, &mut worker).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the worker broke"),
        Err(_) => {
            tracing::warn!("the worker is not waited for any longer");
            worker.abort();
        }
    }
}

fn welcome(
    settings: &ServeSettings,
    addresses: &Addresses,
    unreachable: Option<&str>,
    installed: &Installed,
) -> Result<(), Problem> {
    let Pair { secret, publishable } = pair(installed, Mode::Test);
    let place = match &settings.store.database {
        Database::Sqlite { data_dir } => format!("in {}", data_dir.display()),
        Database::Postgres { .. } => "in PostgreSQL".to_owned(),
    };
    let Addresses { public_url, .. } = addresses;
    let before_payers_come = unreachable.map(|why| format!("\nBefore payers come:  {why}. {SET_PUBLIC_URL}\n"));
    let before_payers_come = before_payers_come.unwrap_or_default();
    output::line(&format!(
        "\
A new installation {place}. Its test keys, shown only now:

  secret key       {secret}
  publishable key  {publishable}

Create a checkout session:

  curl {public_url}/v1/checkouts -H 'Authorization: Bearer {secret}' -H 'Content-Type: application/json' \
-d '{{\"amount\": \"100.00\", \"description\": \"First payment\"}}'

Open the `payment_url` of its answer in a browser: with the phone +2207000000 the payment is approved.
The API, explained:  {public_url}/docs
See webhooks arrive: dalasi listen, and at your receiver with --forward-to URL
Keys for live mode:  dalasi keys create --live
{before_payers_come}"
    ))
}
