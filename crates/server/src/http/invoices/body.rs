//! What an invoice is made of and what of it may change, read field by field.

use domain::invoice::Bill;
use domain::{Currency, Metadata, TaxRate};
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::invoices::{InvoiceChange, NewInvoice};
use crate::app::products::{Lines, NewItem};
use crate::app::references::Named;
use crate::http::fault::FaultCode;
use crate::http::fields::{Field, Fields, MetadataValues};
use crate::http::json::Body;
use crate::http::read;
use crate::http::references::Faulty;
use crate::wire::words;

const MOST_ITEMS: usize = 200;

/// What is owed, by whom, until when.
// For the description only, as the other bodies: they are read field by field below.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateInvoice)]
pub(in crate::http) struct CreateBody {
    /// A customer of yours, who fills in the fields below that are not given.
    #[schema(min_length = 1, max_length = 64)]
    customer_id: Option<String>,
    /// Needed without `customer_id`: finds your customer, or creates one. Beside it an empty text is none, whatever is known of
    /// the customer.
    #[schema(value_type = Option<words::EmailOrNone>)]
    customer_email: Option<String>,
    /// Needed without `customer_id`. Beside it an empty text is none, too.
    #[schema(max_length = 200)]
    customer_name: Option<String>,
    #[schema(max_length = 2000)]
    customer_address: Option<String>,
    /// A new customer has it too, unless another customer of yours does. An empty text: none, whatever is known of the customer.
    #[schema(value_type = Option<words::PhoneIn>)]
    customer_phone: Option<String>,
    #[schema(value_type = Option<words::CurrencyCode>, default = "GMD")]
    currency: Option<String>,
    #[schema(value_type = Option<words::TaxRateIn>, default = 0)]
    tax_rate: Option<serde_json::Value>,
    /// Unpaid, it becomes overdue then; if that is past already, a day after it was finalized.
    #[schema(value_type = words::DeadlineIn)]
    due_date: String,
    #[schema(max_length = 2000)]
    notes: Option<String>,
    #[schema(min_items = 1, max_items = 200)]
    items: Vec<ItemBody>,
    /// Not to be paid yet: finalize it when it is ready.
    #[schema(default = false)]
    is_draft: Option<bool>,
    #[schema(value_type = Option<words::MetadataTexts>)]
    metadata: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = CreateInvoiceItem)]
pub(in crate::http) struct ItemBody {
    /// A product of yours, which fills in description and price.
    #[schema(min_length = 1, max_length = 64)]
    product_id: Option<String>,
    /// Needed without `product_id`.
    #[schema(min_length = 1, max_length = 2000)]
    description: Option<String>,
    #[schema(minimum = 1, maximum = 1000000)]
    quantity: i64,
    /// Of one. Needed without `product_id`.
    #[schema(value_type = Option<words::AmountIn>)]
    unit_price: Option<String>,
    /// Not read: its value is always computed.
    #[schema(value_type = Option<words::Ignored>)]
    amount: Option<serde_json::Value>,
    /// Not read, as `amount`.
    #[schema(value_type = Option<words::Ignored>)]
    total: Option<serde_json::Value>,
}

/// Only what is given changes.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = UpdateInvoice)]
pub(in crate::http) struct UpdateBody {
    /// On this invoice; the customer's own record stays as it is. An empty text clears it.
    #[schema(value_type = Option<words::EmailOrNone>, nullable = false)]
    customer_email: Option<String>,
    /// An empty text clears it.
    #[schema(max_length = 200, nullable = false)]
    customer_name: Option<String>,
    /// An empty text clears it.
    #[schema(max_length = 2000, nullable = false)]
    customer_address: Option<String>,
    /// An empty text clears it.
    #[schema(value_type = Option<words::PhoneIn>, nullable = false)]
    customer_phone: Option<String>,
    #[schema(value_type = Option<words::TaxRateIn>, nullable = false)]
    tax_rate: Option<serde_json::Value>,
    #[schema(value_type = Option<words::DeadlineIn>, nullable = false)]
    due_date: Option<String>,
    /// An empty text clears it.
    #[schema(max_length = 2000, nullable = false)]
    notes: Option<String>,
    /// Replaces all items; the totals are computed anew.
    #[schema(min_items = 1, max_items = 200, nullable = false)]
    items: Option<Vec<ItemBody>>,
    #[schema(value_type = Option<words::MetadataTexts>, nullable = false)]
    metadata: Option<serde_json::Value>,
    /// The `version` that this change is based on: refused if the invoice has moved on. Without it the last write wins.
    #[schema(minimum = 1, nullable = false)]
    version: Option<i64>,
}

pub(super) fn create(body: &Body) -> Result<NewInvoice, Faulty> {
    let mut fields = Fields::new(body);
    let customer_id = fields.text("customer_id").parse(read::customer).optional();
    let is_new = !fields.has("customer_id");
    // Of a known customer an empty text is given, too.
    let email = fields.text("customer_email");
    let customer_email = if is_new { email.email().required() } else { email.email_or_none().optional() };
    let name = fields.text("customer_name").composed().max(200);
    let customer_name = if is_new { name.min(1).required() } else { name.optional() };
    let customer_address = fields.text("customer_address").max(2000).optional();
    let customer_phone = fields.text("customer_phone").parse(read::phone_or_none).optional();
    let currency = read::currency_of(&mut fields);
    let tax_rate = tax_rate(&mut fields).or(TaxRate::ZERO);
    let due_date = fields.text("due_date").parse(read::deadline).required();
    let notes = fields.text("notes").max(2000).or(String::new());
    let mut sound = Vec::new();
    let items = items(&mut fields, currency, &mut sound).required();
    let is_draft = fields.boolean("is_draft").or(false);
    let metadata = fields.metadata("metadata", MetadataValues::Strings).optional();
    let checked = match fields.finish() {
        Ok(checked) => checked,
        Err(faults) => {
            let lines = currency.map(|currency| (currency, Lines::of(items, sound)));
            let named = Named { customer: customer_id, lines, ..Named::default() };
            return Err(Faulty { faults, named: Box::new(named) });
        }
    };
    Ok(NewInvoice {
        customer_id,
        customer_email,
        customer_name,
        customer_address,
        customer_phone,
        currency: checked.of(currency),
        tax_rate,
        due_date: checked.of(due_date),
        notes,
        items: checked.of(items),
        is_draft,
        metadata: metadata.map(Metadata::from_canonical).unwrap_or_default(),
    })
}

/// `bill` is the invoice's own, where there is such an invoice.
pub(super) fn update(body: &Body, headers: &HeaderMap, bill: Option<&Bill>) -> Result<InvoiceChange, Faulty> {
    let mut fields = Fields::new(body);
    let read_in = bill.map_or(Currency::gmd(), Bill::currency);
    let mut sound = Vec::new();
    let change = InvoiceChange {
        email: fields.text("customer_email").email_or_none().change(),
        name: fields.text("customer_name").composed().max(200).change(),
        address: fields.text("customer_address").max(2000).change(),
        phone: fields.text("customer_phone").parse(read::phone_or_none).change(),
        tax_rate: tax_rate(&mut fields).change(),
        due_date: fields.text("due_date").parse(read::deadline).change(),
        notes: fields.text("notes").max(2000).change(),
        items: items(&mut fields, Some(read_in), &mut sound).change(),
        metadata: fields.metadata("metadata", MetadataValues::Strings).change().map(Metadata::from_canonical),
        based_on: based_on(&mut fields, headers),
    };
    match fields.finish() {
        Ok(_) => Ok(change),
        Err(faults) => {
            let lines = bill.map(|bill| (bill.currency(), Lines::of(change.items, sound)));
            let held = bill.map(|bill| bill.items().to_vec()).unwrap_or_default();
            let named = Named { lines, held, ..Named::default() };
            Err(Faulty { faults, named: Box::new(named) })
        }
    }
}

fn tax_rate<'f>(fields: &'f mut Fields<'_>) -> Field<'f, TaxRate> {
    fields.number("tax_rate").parse(read::tax_rate)
}

/// Where one of them can't be read, the others are put into `sound`.
fn items<'f>(
    fields: &'f mut Fields<'_>,
    currency: Option<Currency>,
    sound: &mut Vec<(usize, NewItem)>,
) -> Field<'f, Vec<NewItem>> {
    let items = fields.objects_keeping("items", MOST_ITEMS, sound, |fields| item(fields, currency));
    items.check(|items| match items.is_empty() {
        true => Err((FaultCode::TooShort, "`items` must have at least one entry.")),
        false => Ok(items),
    })
}

fn item(item: &mut Fields<'_>, currency: Option<Currency>) -> Option<NewItem> {
    let product_id = item.text("product_id").parse(read::product).optional();
    // What a product does not fill in has to be said.
    let is_free = !item.has("product_id");
    let description = item.text("description").min(1).max(2000);
    let description = if is_free { description.required() } else { description.optional() };
    let quantity = item.integer("quantity", 1..=1_000_000).required();
    let unit_price = item.amount("unit_price", read::amount_in("unit_price", currency));
    let unit_price = if is_free { unit_price.required() } else { unit_price.optional() }.flatten();
    read::ignore_value(item);
    Some(NewItem { product_id, description, quantity: quantity?, unit_price })
}

/// The revision that a change is based on, by `version` or by `If-Match`.
fn based_on(fields: &mut Fields<'_>, headers: &HeaderMap) -> Option<i64> {
    let by_body = fields.integer("version", 1..=i64::MAX).change();
    let mut tags = headers.get_all(header::IF_MATCH).iter();
    let by_header = match (tags.next(), tags.next()) {
        (None, _) => return by_body,
        (Some(only), None) => version_of_tag(only.as_bytes()),
        (Some(_), Some(_)) => None,
    };
    if by_header.is_none() {
        let message = "`If-Match` is a version in double quotes, such as \"3\", sent once.";
        fields.fault("If-Match", FaultCode::InvalidFormat, message);
    }
    if by_body.is_some() && by_header.is_some() && by_body != by_header {
        fields.fault(
            "version",
            FaultCode::Conflict,
            "`version` and `If-Match` differ. Send one of them, or the same in both.",
        );
    }
    by_header
}

fn version_of_tag(tag: &[u8]) -> Option<i64> {
    let digits = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = digits.first().is_some_and(|first| *first != b'0') && digits.iter().all(u8::is_ascii_digit);
    if !is_plain {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
