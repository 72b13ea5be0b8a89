//! The merchant's installation and settings.

use std::sync::Arc;

use domain::api_key::{KeyKind, Rights};
use domain::organization::{Locale, Organization};
use domain::{Currency, Id, Method, Mode, OfflineMethod, Scope, Sum};
use store::queries::{organizations, transactions};
use store::{Tx, lease};

use super::keys::{self, CreatedKey};
use super::{App, Context, load, organization_of};
use super::{logos, sessions};
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};
use crate::wire::checkouts::SummaryView;
use crate::wire::settings::{MethodTotal, Methods, PayDashboard, Period, Settings};

/// The dashboard looks back so far.
const DASHBOARD_PERIOD: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);

/// What `init` hands over. The keys are shown this once.
#[derive(Debug, Clone)]
pub struct Installed {
    pub organization: Id<Organization>,
    pub keys: Vec<CreatedKey>,
}

/// Whether anybody is installed here, also where nobody can read who.
pub fn is_installed(tx: &mut Tx<'_>) -> Result<bool, Failure> {
    Ok(organizations::are_any(tx)?)
}

/// The first organization, in both modes, with its keys, and the key that signs tokens. `None`: there is one already.
pub fn install(tx: &mut Tx<'_>, context: &Context, name: &str) -> Result<Option<Installed>, Failure> {
    // Several processes may start on an empty database at once, or while a backup is loaded into it.
    lease::take(tx, lease::INSTALLATION, lease::INSTALLATION, 0)?;
    if is_installed(tx)? {
        return Ok(None);
    }
    let now = tx.now();
    let id: Id<Organization> = tx.entropy().id(now);
    let mut created = Vec::new();
    for mode in [Mode::Test, Mode::Live] {
        let mut organization = Organization::new(id, mode, name.to_owned(), now);
        tx.insert(&mut organization)?;
        for kind in [KeyKind::Secret, KeyKind::Publishable] {
            let scope = Scope { organization: id, mode };
            created.push(keys::create(tx, context, scope, kind, Rights::all(), None)?);
        }
    }
    keys::add_signing_key(tx, context)?;
    Ok(Some(Installed { organization: id, keys: created }))
}

/// A change of some settings: `None` leaves one as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default)]
pub struct SettingsChange {
    pub enabled_methods: Option<Vec<Method>>,
    pub name: Option<String>,
    pub logo_url: Option<Option<String>>,
    pub accent_color: Option<Option<String>>,
    pub address: Option<Option<String>>,
    pub phone: Option<Option<String>>,
    pub email: Option<Option<String>>,
    pub tax_id: Option<Option<String>>,
    pub locale: Option<Locale>,
    pub allow_partial_payments: Option<bool>,
    pub settlement_delay_s: Option<u32>,
    pub allow_negative_balance: Option<bool>,
    /// Not on the wire: an operator's setting.
    pub fees: Vec<(Method, domain::money::BasisPoints)>,
}

pub fn change_settings(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    change: &SettingsChange,
) -> Result<Organization, Failure> {
    let mut organization = load::<Organization>(tx, scope, scope.organization)?;
    let before = organization.clone();
    let (profile, payments) = (&mut organization.profile, &mut organization.payments);
    if let Some(methods) = &change.enabled_methods {
        check_offered(context, scope, methods)?;
        payments.enabled_methods = Method::ALL.into_iter().filter(|method| methods.contains(method)).collect();
    }
    set(&mut profile.name, change.name.as_ref());
    set(&mut profile.logo_url, change.logo_url.as_ref());
    set(&mut profile.accent_color, change.accent_color.as_ref());
    set(&mut profile.address, change.address.as_ref());
    set(&mut profile.phone, change.phone.as_ref());
    set(&mut profile.email, change.email.as_ref());
    set(&mut profile.tax_id, change.tax_id.as_ref());
    set(&mut profile.locale, change.locale.as_ref());
    set(&mut payments.allow_partial_payments, change.allow_partial_payments.as_ref());
    set(&mut payments.settlement_delay_s, change.settlement_delay_s.as_ref());
    set(&mut payments.allow_negative_balance, change.allow_negative_balance.as_ref());
    for (method, rate) in &change.fees {
        payments.fees = std::mem::take(&mut payments.fees).with(*method, *rate);
    }
    if organization.profile.logo_url != before.profile.logo_url {
        organization.profile.logo_digest = None;
    }
    if change.logo_url.is_some() {
        logos::owe(tx, &organization)?;
    }
    if organization != before {
        organization.updated_at = organization.updated_at.max(tx.now());
        tx.save(&mut organization)?;
    }
    Ok(organization)
}

fn set<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

/// Enabling what no rail stands behind would promise too much; without any rail it is the merchant's plan and harmless.
fn check_offered(context: &Context, scope: Scope, methods: &[Method]) -> Result<(), Failure> {
    if !context.has_rails(scope.mode) {
        return Ok(());
    }
    let missing: Vec<Fault> = methods
        .iter()
        .enumerate()
        .filter(|(_, method)| context.offer(scope.mode, **method).is_none())
        .map(|(index, method)| {
            let message = format!("No payment provider is configured for {}.", method.as_str());
            Fault::new(format!("enabled_methods[{index}]"), FaultCode::NotAllowed, message)
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.into()) }
}

pub fn methods(tx: &mut Tx<'_>, context: &Context, scope: Scope) -> Result<Methods, Failure> {
    let organization = organization_of(tx, scope)?;
    Ok(Methods::of(&organization, &context.offered(scope.mode)))
}

pub fn settings(context: &Context, organization: &Organization) -> Settings {
    Settings::of(organization, &context.offered(organization.mode))
}

impl App {
    /// The last 30 days, in dalasi. It adds up every transaction of them, so those who ask at once share it.
    pub async fn dashboard(&self, scope: Scope) -> Result<Arc<PayDashboard>, Failure> {
        let app = self.clone();
        let compute = async move { app.read(move |tx, _| dashboard(tx, scope)).await };
        self.inner.dashboards.ask(scope, compute).await
    }
}

fn dashboard(tx: &mut Tx<'_>, scope: Scope) -> Result<PayDashboard, Failure> {
    let (now, currency) = (tx.now(), Currency::gmd());
    let start = now.minus(DASHBOARD_PERIOD);
    let totals = transactions::totals(tx, scope, currency, start)?;
    let money = |minor| Sum::new(minor, currency).to_string();
    let of =
        |status: &'static [&'static str]| totals.iter().filter(move |total| status.contains(&total.status.as_str()));
    let sum = |pick: fn(&transactions::Totals) -> i128, status| -> i128 { of(status).map(pick).sum() };
    let count = |status| -> i64 { of(status).map(|total| total.transactions).sum() };
    let paid: &'static [&'static str] = &["completed", "partially_refunded", "refunded"];
    let (amount, fees) = (sum(|total| total.amount_minor, paid), sum(|total| total.fee_minor, paid));
    let refunded = sum(|total| total.refunded_minor, paid);
    let mut by_method: Vec<MethodTotal> = Vec::new();
    for method in Method::ALL.map(Method::as_str).into_iter().chain(OfflineMethod::ALL.map(OfflineMethod::as_str)) {
        let of_method =
            totals.iter().filter(|total| total.payment_method == method && paid.contains(&total.status.as_str()));
        let (count, minor) =
            of_method.fold((0, 0), |(count, minor), total| (count + total.transactions, minor + total.amount_minor));
        if count > 0 {
            by_method.push(MethodTotal { payment_method: method.into(), count, amount: money(minor) });
        }
    }
    let mut recent = Vec::new();
    for stored in transactions::recent(tx, scope, currency, start, 10)? {
        recent.push(SummaryView::from(&sessions::shown(tx, stored)?.summary()));
    }
    Ok(PayDashboard {
        currency: currency.code().into(),
        total_amount: money(amount),
        total_fees: money(fees),
        total_net: money(amount - fees),
        refunded_amount: money(refunded),
        transaction_count: totals.iter().map(|total| total.transactions).sum(),
        completed_count: count(paid),
        failed_count: count(&["failed", "cancelled", "expired"]),
        pending_count: count(&["pending", "processing"]),
        by_method,
        recent_transactions: recent,
        period: Period { start: start.to_text(), end: now.to_text() },
    })
}
