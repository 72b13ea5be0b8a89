//! `dalasi organization`: what payers see of the merchant, and how payments are taken.

mod values;

use domain::money::BasisPoints;
use domain::organization::{Locale, Organization};
use domain::{Method, Mode, Scope};
use serde::Serialize;

use super::installation::{self, Installation, Part};
use super::output::{self, Format};
use super::problem::Problem;
use crate::app::organizations::{self, SettingsChange};
use crate::app::{keys, look_up};
use crate::config::StoreArguments;
use crate::error::Failure;

const EXAMPLES: &str = "\
Examples:
  dalasi organization show
  dalasi organization set --name 'Kairaba Books' --accent-color '#0b6e4f' --locale en
  dalasi organization set --live --fee wave=1.5% --fee card=3.25% --settlement-delay 2d
  dalasi organization set --logo-url ''                    an empty text clears a setting";

const SET_EXAMPLES: &str = "\
Examples:
  dalasi organization set --name 'Kairaba Books' --logo-url https://shop.example/logo.png   in both modes
  dalasi organization set --live --fee wave=1.5% --fee card=3.25% --settlement-delay 2d     in live mode only
  dalasi organization set --test --enabled-methods wave,card
  dalasi organization set --phone ''                                                        clears it";

/// Show and change the merchant's settings
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the settings of both modes
    Show(Show),
    /// Change what is given, in both modes unless one is named
    Set(Box<Set>),
}

#[derive(clap::Args)]
struct Show {
    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

#[derive(clap::Args)]
#[command(before_help = SET_EXAMPLES, help_template = super::TEMPLATE)]
struct Set {
    /// In test mode only
    #[arg(long, conflicts_with = "live")]
    test: bool,

    /// In live mode only
    #[arg(long)]
    live: bool,

    /// As payers see it
    #[arg(long, value_name = "NAME", value_parser = values::name)]
    name: Option<String>,

    /// The https address of a PNG, JPEG or WebP file, for pages and documents
    #[arg(long, value_name = "URL", value_parser = values::url)]
    logo_url: Option<values::Clearable>,

    /// Of the hosted pages, such as #0b6e4f
    #[arg(long, value_name = "COLOR", value_parser = values::color)]
    accent_color: Option<values::Clearable>,

    /// Postal address
    #[arg(long, value_name = "TEXT", value_parser = values::address)]
    address: Option<values::Clearable>,

    #[arg(long, value_name = "PHONE", value_parser = values::phone)]
    phone: Option<values::Clearable>,

    #[arg(long, value_name = "EMAIL", value_parser = values::email)]
    email: Option<values::Clearable>,

    #[arg(long, value_name = "TEXT", value_parser = values::tax_id)]
    tax_id: Option<values::Clearable>,

    /// Of the hosted pages: en or fr
    #[arg(long, value_name = "LOCALE", value_parser = values::locale)]
    locale: Option<Locale>,

    /// What a method costs the merchant, such as wave=2.5%; may be repeated
    #[arg(long, value_name = "METHOD=PERCENT", value_parser = values::fee)]
    fee: Vec<(Method, BasisPoints)>,

    /// From a payment until it counts as available: seconds, or such as 12h, 2d
    #[arg(long, value_name = "TIME", value_parser = values::delay)]
    settlement_delay: Option<u32>,

    /// Whether invoices may be paid in parts
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    allow_partial_payments: Option<bool>,

    /// Whether refunds may exceed what is there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    allow_negative_balance: Option<bool>,

    /// What payers can choose from: card, wave, afrimoney, qmoney
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::method)]
    enabled_methods: Option<Vec<Method>>,

    #[command(flatten)]
    store: StoreArguments,

    #[command(flatten)]
    format: Format,
}

impl Set {
    fn modes(&self) -> Vec<Mode> {
        match (self.test, self.live) {
            (true, false) => vec![Mode::Test],
            (false, true) => vec![Mode::Live],
            _ => vec![Mode::Test, Mode::Live],
        }
    }

    fn change(&self) -> SettingsChange {
        let text = |value: &Option<values::Clearable>| value.clone().map(|values::Clearable(value)| value);
        SettingsChange {
            enabled_methods: self.enabled_methods.clone(),
            name: self.name.clone(),
            logo_url: text(&self.logo_url),
            accent_color: text(&self.accent_color),
            address: text(&self.address),
            phone: text(&self.phone),
            email: text(&self.email),
            tax_id: text(&self.tax_id),
            locale: self.locale,
            allow_partial_payments: self.allow_partial_payments,
            settlement_delay_s: self.settlement_delay,
            allow_negative_balance: self.allow_negative_balance,
            fees: self.fee.clone(),
        }
    }

    /// The names of what is set: what the audit log says without repeating the merchant's data.
    fn names(&self) -> Vec<&'static str> {
        let given = [
            (self.name.is_some(), "name"),
            (self.logo_url.is_some(), "logo-url"),
            (self.accent_color.is_some(), "accent-color"),
            (self.address.is_some(), "address"),
            (self.phone.is_some(), "phone"),
            (self.email.is_some(), "email"),
            (self.tax_id.is_some(), "tax-id"),
            (self.locale.is_some(), "locale"),
            (!self.fee.is_empty(), "fee"),
            (self.settlement_delay.is_some(), "settlement-delay"),
            (self.allow_partial_payments.is_some(), "allow-partial-payments"),
            (self.allow_negative_balance.is_some(), "allow-negative-balance"),
            (self.enabled_methods.is_some(), "enabled-methods"),
        ];
        given.into_iter().filter_map(|(is_given, name)| is_given.then_some(name)).collect()
    }
}

#[derive(Serialize)]
struct BothModes {
    organization_id: String,
    test: OrganizationView,
    live: OrganizationView,
}

#[derive(Serialize)]
struct OrganizationView {
    name: String,
    logo_url: Option<String>,
    accent_color: Option<String>,
    address: Option<String>,
    phone: Option<String>,
    email: Option<String>,
    tax_id: Option<String>,
    locale: &'static str,
    enabled_methods: Vec<&'static str>,
    /// Percent.
    fees: std::collections::BTreeMap<&'static str, String>,
    /// Seconds.
    settlement_delay: u32,
    allow_partial_payments: bool,
    allow_negative_balance: bool,
}

impl OrganizationView {
    fn of(organization: &Organization) -> Self {
        let (profile, payments) = (organization.profile.clone(), &organization.payments);
        Self {
            name: profile.name,
            logo_url: profile.logo_url,
            accent_color: profile.accent_color,
            address: profile.address,
            phone: profile.phone,
            email: profile.email,
            tax_id: profile.tax_id,
            locale: profile.locale.as_str(),
            enabled_methods: payments.enabled_methods.iter().map(|method| method.as_str()).collect(),
            fees: Method::ALL.map(|method| (method.as_str(), values::percent(payments.fees.rate(method)))).into(),
            settlement_delay: payments.settlement_delay_s,
            allow_partial_payments: payments.allow_partial_payments,
            allow_negative_balance: payments.allow_negative_balance,
        }
    }

    /// Setting and value, in the order of the flags.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let fees: Vec<String> = self.fees.iter().map(|(method, percent)| format!("{method}={percent}%")).collect();
        vec![
            ("name", self.name.clone()),
            ("logo-url", text(&self.logo_url)),
            ("accent-color", text(&self.accent_color)),
            ("address", text(&self.address)),
            ("phone", text(&self.phone)),
            ("email", text(&self.email)),
            ("tax-id", text(&self.tax_id)),
            ("locale", self.locale.into()),
            ("fee", fees.join(" ")),
            ("settlement-delay", format!("{} s", self.settlement_delay)),
            ("allow-partial-payments", self.allow_partial_payments.to_string()),
            ("allow-negative-balance", self.allow_negative_balance.to_string()),
            ("enabled-methods", self.enabled_methods.join(",")),
        ]
    }
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Problem> {
    match arguments.command {
        Command::Show(arguments) => show(arguments).await,
        Command::Set(arguments) => set(*arguments).await,
    }
}

async fn show(arguments: Show) -> Result<(), Problem> {
    let settings = arguments.store.check()?;
    let store = installation::open_store(&settings, Part::Guest).await?;
    let found = async {
        let id = installation::only_organization(&store).await?;
        let of = move |tx: &mut store::Tx<'_>, mode| look_up::<Organization>(tx, Scope { organization: id, mode }, id);
        Ok(store.read(move |tx| Ok::<_, Failure>((of(tx, Mode::Test)?, of(tx, Mode::Live)?))).await?)
    };
    let found: Result<_, Problem> = found.await;
    store.close().await;
    let (test, live) = found?;
    answer(&test, &live, &arguments.format)
}

async fn set(arguments: Set) -> Result<(), Problem> {
    let (modes, change, names) = (arguments.modes(), arguments.change(), arguments.names());
    if names.is_empty() {
        return Err(Problem::usage(
            "nothing to set: name at least one setting. `dalasi organization set --help` lists them.",
        ));
    }
    let installation = Installation::open(&arguments.store.check()?).await?;
    let (organization, actor) = (installation.organization, installation::actor());
    let changed = installation
        .write(move |tx, context| {
            for mode in &modes {
                let scope = Scope { organization, mode: *mode };
                organizations::change_settings(tx, context, scope, &change)?;
                let what = Some(names.join(", "));
                keys::record(tx, scope, "organization.changed", organization.to_string(), &actor, what)?;
            }
            let of =
                |tx: &mut store::Tx<'_>, mode| look_up::<Organization>(tx, Scope { organization, mode }, organization);
            Ok::<_, Failure>((of(tx, Mode::Test)?, of(tx, Mode::Live)?))
        })
        .await;
    let (test, live) = installation.close(changed).await?;
    answer(&test, &live, &arguments.format)
}

fn answer(test: &Organization, live: &Organization, format: &Format) -> Result<(), Problem> {
    let (id, test, live) = (test.id.to_string(), OrganizationView::of(test), OrganizationView::of(live));
    if format.json {
        return output::json(&BothModes { organization_id: id, test, live });
    }
    let both = test.rows().into_iter().zip(live.rows());
    let rows: Vec<Vec<String>> =
        both.map(|((setting, test), (_, live))| vec![setting.to_owned(), test, live]).collect();
    output::table(&[&id, "test", "live"], &rows)
}
