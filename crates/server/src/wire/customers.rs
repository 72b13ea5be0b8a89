//! The customer as the API shows it.

use domain::customer::Customer;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Customer)]
pub struct CustomerView {
    #[schema(value_type = words::CustomerId)]
    pub id: String,
    /// As it was given; compared without its case.
    pub email: Option<String>,
    #[schema(value_type = Option<words::Phone>)]
    pub phone: Option<String>,
    pub name: Option<String>,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    pub livemode: bool,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

impl CustomerView {
    pub fn of(customer: &Customer) -> Self {
        Self {
            id: customer.id.to_string(),
            email: customer.contact.email().map(str::to_owned),
            phone: customer.contact.phone().map(|phone| phone.as_str().to_owned()),
            name: customer.name.clone(),
            metadata: super::raw(&customer.metadata),
            livemode: customer.scope.mode.is_live(),
            created_at: customer.created_at.to_text(),
            updated_at: customer.updated_at.to_text(),
        }
    }
}
