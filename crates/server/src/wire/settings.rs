//! Payment methods, settings and the payments dashboard.

use domain::Method;
use domain::organization::Organization;
use serde::Serialize;
use utoipa::ToSchema;

use super::checkouts::SummaryView;
use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Methods {
    pub methods: Vec<MethodView>,
    #[schema(value_type = Vec<words::MethodName>)]
    pub enabled_methods: Vec<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PaymentMethod)]
pub struct MethodView {
    #[schema(value_type = words::MethodName)]
    pub id: String,
    pub name: String,
    pub enabled: bool,
    /// `redirect`, `push` or `otp`.
    #[schema(value_type = words::Flow)]
    pub flow: String,
    #[schema(value_type = Vec<words::CurrencyCode>)]
    pub currencies: Vec<String>,
}

impl Methods {
    /// `offered`: what a rail stands behind in this mode, and in which currencies.
    pub fn of(organization: &Organization, offered: &[(Method, &[&str])]) -> Self {
        let enabled = &organization.payments.enabled_methods;
        let view = |(method, currencies): &(Method, &[&str])| MethodView {
            id: method.as_str().into(),
            name: method.name().into(),
            enabled: enabled.contains(method),
            flow: method.flow().as_str().into(),
            currencies: currencies.iter().map(|code| (*code).into()).collect(),
        };
        Self {
            methods: offered.iter().map(view).collect(),
            enabled_methods: enabled.iter().map(|method| method.as_str().into()).collect(),
        }
    }
}

/// The answer to a change of settings: the methods and everything else that can be set.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Settings {
    #[serde(flatten)]
    pub methods: Methods,
    pub name: String,
    #[schema(value_type = Option<words::Url>)]
    pub logo_url: Option<String>,
    #[schema(pattern = "^#[0-9a-f]{6}$")]
    pub accent_color: Option<String>,
    pub address: Option<String>,
    #[schema(value_type = Option<words::Phone>)]
    pub phone: Option<String>,
    pub email: Option<String>,
    pub tax_id: Option<String>,
    #[schema(value_type = words::LocaleName)]
    pub locale: String,
    pub allow_partial_payments: bool,
    /// Seconds.
    pub settlement_delay: u32,
    pub allow_negative_balance: bool,
}

impl Settings {
    pub fn of(organization: &Organization, offered: &[(Method, &[&str])]) -> Self {
        let (profile, payments) = (&organization.profile, &organization.payments);
        Self {
            methods: Methods::of(organization, offered),
            name: profile.name.clone(),
            logo_url: profile.logo_url.clone(),
            accent_color: profile.accent_color.clone(),
            address: profile.address.clone(),
            phone: profile.phone.clone(),
            email: profile.email.clone(),
            tax_id: profile.tax_id.clone(),
            locale: profile.locale.as_str().into(),
            allow_partial_payments: payments.allow_partial_payments,
            settlement_delay: payments.settlement_delay_s,
            allow_negative_balance: payments.allow_negative_balance,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PayDashboard {
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    /// Completed payments of the period.
    #[schema(value_type = words::Amount)]
    pub total_amount: String,
    #[schema(value_type = words::Amount)]
    pub total_fees: String,
    #[schema(value_type = words::Amount)]
    pub total_net: String,
    #[schema(value_type = words::Amount)]
    pub refunded_amount: String,
    #[schema(minimum = 0)]
    pub transaction_count: i64,
    #[schema(minimum = 0)]
    pub completed_count: i64,
    #[schema(minimum = 0)]
    pub failed_count: i64,
    #[schema(minimum = 0)]
    pub pending_count: i64,
    pub by_method: Vec<MethodTotal>,
    /// The latest ten.
    #[schema(max_items = 10)]
    pub recent_transactions: Vec<SummaryView>,
    pub period: Period,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MethodTotal {
    #[schema(value_type = words::AnyMethodName)]
    pub payment_method: String,
    #[schema(minimum = 0)]
    pub count: i64,
    #[schema(value_type = words::Amount)]
    pub amount: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Period {
    #[schema(value_type = words::Time)]
    pub start: String,
    #[schema(value_type = words::Time)]
    pub end: String,
}
