//! Products: what a merchant sells again and again, with its price (contract §3).
//!
//! A line of a checkout or an invoice copies name and price, so that a change here reaches only what is made afterwards.

use serde::{Deserialize, Serialize};

use crate::id::{Id, Object};
use crate::metadata::Metadata;
use crate::money::Money;
use crate::scope::Scope;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Product {
    pub id: Id<Product>,
    pub scope: Scope,
    pub version: i64,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    /// Of one. Its currency does not change.
    pub price: Money,
    /// Whether new lines may name it.
    pub active: bool,
    /// Addresses of pictures, in the merchant's order.
    #[serde(default)]
    pub images: Vec<String>,
    #[serde(default)]
    pub metadata: Metadata,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Kept for what refers to it; nobody finds it any more.
    #[serde(default)]
    pub deleted_at: Option<Timestamp>,
}

impl Object for Product {
    const PREFIX: &'static str = "prod";
    const NOUN: &'static str = "product";
}

impl Product {
    pub fn delete(&mut self, now: Timestamp) {
        assert_eq!(self.deleted_at, None, "nobody finds a deleted product");
        self.updated_at = self.updated_at.max(now);
        self.deleted_at = Some(self.updated_at);
    }
}
