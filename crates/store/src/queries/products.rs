//! Lists of products.

use domain::product::Product;
use domain::{Currency, Id, Scope};

use super::{Filter, Page, PageRequest};
use crate::entity::key;
use crate::error::Error;
use crate::tx::Tx;

const CURRENCY: &str = "\
select currency
from products
where organization_id = $1 and mode = $2 and id = $3";

pub fn list(tx: &mut Tx<'_>, scope: Scope, active: Option<bool>, page: &PageRequest) -> Result<Page<Product>, Error> {
    let mut conditions = Filter::within(scope);
    conditions.and("deleted_at is null", []);
    if let Some(active) = active {
        conditions.and("active = {}", [active.into()]);
    }
    conditions.entities(tx, page)
}

/// That of its price, which never changes; of a deleted product as well.
pub fn currency(tx: &mut Tx<'_>, scope: Scope, id: Id<Product>) -> Result<Option<Currency>, Error> {
    let Some(row) = tx.query_opt(CURRENCY, &key(scope, &id.to_string()))? else { return Ok(None) };
    let code: String = row.get("currency")?;
    let currency = Currency::parse(&code).ok_or_else(|| Error::Corrupt(format!("{code:?} is no currency")))?;
    Ok(Some(currency))
}
