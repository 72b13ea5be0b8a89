//! Products: create, update, delete; and the lines that are made of them.

use std::collections::HashMap;

use domain::checkout::{self, Item};
use domain::product::Product;
use domain::{Currency, Id, Metadata, Money, Scope};
use store::Tx;

use super::load;
use crate::error::Failure;
use crate::fault::{Fault, FaultCode};

#[derive(Debug, Clone)]
pub struct NewProduct {
    pub name: String,
    pub description: Option<String>,
    pub price: Money,
    pub active: bool,
    pub images: Vec<String>,
    pub metadata: Metadata,
}

pub fn create(tx: &mut Tx<'_>, scope: Scope, new: &NewProduct) -> Result<Product, Failure> {
    assert!(new.price.minor > 0, "prices are read as positive");
    let now = tx.now();
    let mut product = Product {
        id: tx.entropy().id(now),
        scope,
        version: 0,
        name: new.name.clone(),
        description: new.description.clone(),
        price: new.price,
        active: new.active,
        images: new.images.clone(),
        metadata: new.metadata.clone(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    tx.insert(&mut product)?;
    Ok(product)
}

/// `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default)]
pub struct ProductChange {
    pub name: Option<String>,
    pub description: Option<Option<String>>,
    /// In the product's own currency.
    pub price: Option<Money>,
    pub active: Option<bool>,
    pub images: Option<Vec<String>>,
    pub metadata: Option<Metadata>,
}

pub fn update(tx: &mut Tx<'_>, scope: Scope, id: Id<Product>, change: &ProductChange) -> Result<Product, Failure> {
    let mut product = load::<Product>(tx, scope, id)?;
    let before = product.clone();
    if let Some(name) = &change.name {
        product.name.clone_from(name);
    }
    if let Some(description) = &change.description {
        product.description.clone_from(description);
    }
    if let Some(price) = change.price {
        assert_eq!(price.currency, before.price.currency, "a price is read in its product's currency");
        product.price = price;
    }
    if let Some(active) = change.active {
        product.active = active;
    }
    if let Some(images) = &change.images {
        product.images.clone_from(images);
    }
    if let Some(metadata) = &change.metadata {
        product.metadata.clone_from(metadata);
    }
    if product != before {
        product.updated_at = product.updated_at.max(tx.now());
        tx.save(&mut product)?;
    }
    Ok(product)
}

/// Lines that name the product keep its name and price. What goes on charging for a product is asked here, under the lock
/// of its row, and nowhere else.
pub fn delete(tx: &mut Tx<'_>, scope: Scope, id: Id<Product>) -> Result<(), Failure> {
    let mut product = load::<Product>(tx, scope, id)?;
    product.delete(tx.now());
    Ok(tx.save(&mut product)?)
}

/// A line as a request asks for it, each value readable by itself.
#[derive(Debug, Clone)]
pub struct NewItem {
    pub product_id: Option<Id<Product>>,
    pub description: Option<String>,
    pub quantity: i64,
    pub unit_price: Option<Money>,
}

impl NewItem {
    /// Whether it says itself all that this line says of one of them.
    fn is_of(&self, line: &Item) -> bool {
        (self.product_id, &self.description, self.unit_price)
            == (line.product_id, &line.description, Some(line.unit_price))
    }
}

/// The lines of a request that can't run, as far as they could be read.
#[derive(Debug, Clone)]
pub enum Lines {
    All(Vec<NewItem>),
    /// Each with its place, where others could not be read.
    Sound(Vec<(usize, NewItem)>),
}

impl Lines {
    pub fn of(all: Option<Vec<NewItem>>, sound: Vec<(usize, NewItem)>) -> Self {
        match all {
            Some(all) => Self::All(all),
            None => Self::Sound(sound),
        }
    }
}

/// The lines with their prices, and their sum: what a line does not say comes from its product, and stays when the product
/// changes (contract §2.1 rule 2). What is `held` already stays as well when the product is no longer sold. `None` after pushing
/// everything that is wrong with the field `items`.
pub fn price_lines(
    tx: &mut Tx<'_>,
    scope: Scope,
    currency: Currency,
    held: &[Item],
    requested: &[NewItem],
    faults: &mut Vec<Fault>,
) -> Result<Option<(Money, Vec<Item>)>, Failure> {
    let items = price_each(tx, scope, currency, held, requested.iter().enumerate(), faults)?;
    if items.len() < requested.len() {
        return Ok(None);
    }
    let total = checkout::sum(&items);
    if total.is_none() {
        let message = "The sum of `items` is above the largest amount.";
        faults.push(Fault::new("items", FaultCode::AmountTooLarge, message));
    }
    Ok(total.map(|total| (total, items)))
}

/// Pushes everything that is wrong with lines, also beside one that could not be read; what they come to is not known then.
pub fn refuse_lines(
    tx: &mut Tx<'_>,
    scope: Scope,
    currency: Currency,
    held: &[Item],
    lines: &Lines,
    faults: &mut Vec<Fault>,
) -> Result<(), Failure> {
    match lines {
        Lines::All(lines) => price_lines(tx, scope, currency, held, lines, faults).map(drop),
        Lines::Sound(lines) => {
            let lines = lines.iter().map(|(index, line)| (*index, line));
            price_each(tx, scope, currency, held, lines, faults).map(drop)
        }
    }
}

/// Those lines that have a price. What is wrong with the others is pushed.
fn price_each<'l>(
    tx: &mut Tx<'_>,
    scope: Scope,
    currency: Currency,
    held: &[Item],
    requested: impl Iterator<Item = (usize, &'l NewItem)>,
    faults: &mut Vec<Fault>,
) -> Result<Vec<Item>, Failure> {
    let mut products = HashMap::new();
    let mut items = Vec::with_capacity(requested.size_hint().0);
    for (index, item) in requested {
        if held.iter().any(|line| item.is_of(line))
            && let Some(line) =
                item.unit_price.and_then(|price| Item::new(item.description.clone(), item.quantity, price))
        {
            items.push(Item { product_id: item.product_id, ..line });
            continue;
        }
        if let Some(id) = item.product_id
            && !products.contains_key(&id)
        {
            products.insert(id, tx.peek::<Product>(scope, id)?);
        }
        let product = item.product_id.map(|id| products[&id].as_ref());
        match price_line(currency, item, product) {
            Ok(item) => items.push(item),
            Err(of_line) => faults.extend(of_line.into_iter().map(|(field, code, message)| {
                let field = format!("items[{index}].{field}");
                Fault::new(&field, code, format!("`{field}` {message}"))
            })),
        }
    }
    Ok(items)
}

type LineFault = (&'static str, FaultCode, String);

/// `product` is the one that the line names, as far as it is there. All its fields that are wrong are told, each once.
fn price_line(currency: Currency, item: &NewItem, product: Option<Option<&Product>>) -> Result<Item, Vec<LineFault>> {
    let mut faults: Vec<LineFault> = Vec::new();
    let mut refuse = |field, code, message: &str| faults.push((field, code, message.to_owned()));
    match product {
        Some(None) => refuse("product_id", FaultCode::NotFound, "names no product of yours."),
        Some(Some(product)) if !product.active => {
            refuse("product_id", FaultCode::Inactive, "names an inactive product; activate it first.");
        }
        Some(Some(product)) if product.price.currency != currency => {
            let message = format!("is sold in {}, not in {currency}.", product.price.currency);
            refuse("product_id", FaultCode::CurrencyMismatch, &message);
        }
        None | Some(Some(_)) => {}
    }
    let product = product.flatten();
    // What it costs in another currency says nothing here.
    let known_price = product.map(|product| product.price).filter(|price| price.currency == currency);
    let Some(unit_price) = item.unit_price.or(known_price) else {
        // The product that is meant may give the price.
        if item.product_id.is_none() {
            refuse("unit_price", FaultCode::Required, "is required where no product gives the price.");
        }
        return Err(faults);
    };
    let description = item.description.clone().or_else(|| product.map(|product| product.name.clone()));
    let line = Item::new(description, item.quantity, unit_price);
    if line.is_none() {
        refuse("unit_price", FaultCode::AmountTooLarge, "times its quantity is above the largest amount.");
    }
    match line {
        Some(line) if faults.is_empty() => Ok(Item { product_id: item.product_id, ..line }),
        Some(_) | None => Err(faults),
    }
}
