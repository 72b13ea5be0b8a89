//! The product as the API shows it.

use domain::product::Product;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductView {
    #[schema(value_type = words::ProductId)]
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// Of one.
    #[schema(value_type = words::Amount)]
    pub price: String,
    #[schema(value_type = words::CurrencyCode)]
    pub currency: String,
    /// Whether new lines may name it.
    pub active: bool,
    /// The same as `active`.
    pub is_active: bool,
    #[schema(value_type = Vec<words::Url>)]
    pub images: Vec<String>,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    pub livemode: bool,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

impl ProductView {
    pub fn of(product: &Product) -> Self {
        Self {
            id: product.id.to_string(),
            name: product.name.clone(),
            description: product.description.clone(),
            price: product.price.to_string(),
            currency: product.price.currency.code().into(),
            active: product.active,
            is_active: product.active,
            images: product.images.clone(),
            metadata: super::raw(&product.metadata),
            livemode: product.scope.mode.is_live(),
            created_at: product.created_at.to_text(),
            updated_at: product.updated_at.to_text(),
        }
    }
}
