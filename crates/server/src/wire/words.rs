//! The texts of the wire as the API description shows them: ids, amounts, times and closed lists of words.
//!
//! Types without values: views hold plain text, and name one of these in `#[schema(value_type = …)]`, so that what is
//! documented about a word stands once, made from the domain's own list where there is one.

use std::borrow::Cow;

use domain::checkout::Status;
use domain::event::EventType;
use domain::payment_link::FieldType;
use domain::{Method, Mode, OfflineMethod, invoice, payment, refund};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn id(prefix: &str, what: &str) -> Object {
    text()
        .pattern(Some(format!("^{prefix}_[0-9a-hjkmnp-tv-z]{{26}}$")))
        .description(Some(what.to_owned()))
        .examples([format!("{prefix}_01h455vb4pex5vsknk084sn02q")])
        .build()
}

fn one_of<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Object {
    text().enum_values(Some(words.into_iter().map(Into::into))).build()
}

/// An object of the merchant's making.
fn open() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

macro_rules! words {
    ($($(#[$attribute:meta])* $name:ident = $schema:expr;)+) => { $(
        $(#[$attribute])*
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::from($schema))
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }
        }
    )+ };
}

words! {
    CheckoutId = id("cs", "A checkout.");
    PaymentLinkId = id("pl", "A payment link.");
    PayableId = text()
        .pattern(Some("^(cs|inv|pl)_[0-9a-hjkmnp-tv-z]{26}$"))
        .description(Some("What is paid."))
        .examples(["cs_01h455vb4pex5vsknk084sn02q"])
        .build();
    SessionId = id("ps", "A payment session.");
    TransactionId = id("txn", "A transaction: one attempt to pay.");
    RefundId = id("ref", "A refund.");
    CustomerId = id("cus", "A customer.");
    ProductId = id("prod", "A product.");
    EndpointId = id("we", "A webhook endpoint.");
    EventId = id("evt", "An event; the same on every delivery of it.");
    EntryId = id("entry", "A ledger entry: one movement of money.");
    OrganizationId = id("org", "You, the merchant.");
    InvoiceId = id("inv", "An invoice.");
    InvoicePaymentId = id("invpay", "One payment of an invoice.");
    ReceiptId = id("rec", "A receipt.");
    RequestId = id("req", "The request; the same as the header `X-Request-Id`.");
    /// What goes out. What comes in is `AmountIn`.
    Amount = text()
        .pattern(Some(r"^(0|[1-9][0-9]*)(\.[0-9]+)?$"))
        .description(Some("Decimal, with exactly the currency's minor digits."))
        .examples(["100.00"])
        .build();
    AmountIn = text()
        .pattern(Some(r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,4})?$"))
        .description(Some(
            "Decimal text, more than 0 and at most 999999999999.99, with no more decimals than the currency has. \
             A JSON number is refused.",
        ))
        .examples(["100.00"])
        .build();
    /// Of what may have another price.
    AmountOrNone = text()
        .description(Some(
            "Decimal text, more than 0 and at most 999999999999.99, with no more decimals than the currency has, where \
             there are no `items`. A JSON number is refused.",
        ))
        .examples(["100.00"])
        .build();
    CurrencyCode = text()
        .pattern(Some("^[A-Z]{3}$"))
        .description(Some("ISO 4217, upper case."))
        .examples(["GMD"])
        .build();
    Time = text()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some("Z$"))
        .description(Some("ISO 8601, UTC."))
        .examples(["2026-01-31T12:00:00Z"])
        .build();
    MicroTime = text()
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(r"\.[0-9]{6}Z$"))
        .description(Some("ISO 8601, UTC, with microseconds."))
        .examples(["2026-01-31T12:00:00.000000Z"])
        .build();
    DeadlineIn = text()
        .description(Some("A date, which means the end of that day (UTC), or a date-time; without an offset it is UTC."))
        .examples(["2026-01-31", "2026-01-31T12:00:00Z"])
        .build();
    /// A date or a date-time, in a query.
    TimeIn = text()
        .description(Some("A date, which means its whole day (UTC), or a date-time."))
        .examples(["2026-01-31", "2026-01-31T12:00:00Z"])
        .build();
    AccountName = text()
        .pattern(Some("^[a-z_]+(:[a-z0-9_-]+)?$"))
        .description(Some("An account of the ledger; those of payment providers name the provider."))
        .examples(["merchant", "rail_clearing:simulator"])
        .build();
    HashText = text().pattern(Some("^[0-9a-f]{64}$")).description(Some("SHA-256, in hex.")).build();
    SignedAmount = text()
        .pattern(Some(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"))
        .description(Some("Decimal, with exactly the currency's minor digits; may be negative."))
        .examples(["-97.50"])
        .build();
    InvoiceNumber = text()
        .pattern(Some("^INV-[0-9]{4}-[0-9]{2}-[0-9]{4,}$"))
        .description(Some("Counts your invoices of a month, without a gap."))
        .examples(["INV-2026-01-0001"])
        .build();
    ReceiptNumber = text()
        .pattern(Some("^RCT-[0-9]{4}-[0-9]{3,}$"))
        .description(Some("Counts your receipts of a year, without a gap."))
        .examples(["RCT-2026-001"])
        .build();
    ValidationCode = text()
        .pattern(Some("^[0-9a-f]{32}$"))
        .description(Some("Whoever has it can ask whether the receipt is real."))
        .examples(["0123456789abcdef0123456789abcdef"])
        .build();
    TaxRate = ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(0))
        .maximum(Some(100))
        .description(Some("Percent, exact to four decimals."))
        .examples([7.25])
        .build();
    TaxRateIn = ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(0))
        .maximum(Some(100))
        .description(Some("Percent; at most four decimals."))
        .examples([7.25])
        .build();
    Url = text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .pattern(Some("^https?://"))
        .max_length(Some(2048))
        .build();
    Phone = text()
        .pattern(Some(r"^\+[1-9][0-9]{6,14}$"))
        .description(Some("E.164."))
        .examples(["+2207000000"])
        .build();
    PhoneIn = text()
        .max_length(Some(64))
        .description(Some("E.164. Seven digits, or `220` and seven digits, are completed to a Gambian number."))
        .examples(["+2207000000"])
        .build();
    /// Where an empty text says that there is none, which is no text of the format `email`.
    EmailOrNone = text()
        .max_length(Some(254))
        .description(Some("An e-mail address, or an empty text."))
        .examples(["awa@example.gm"])
        .build();
    ClientSecret = text()
        .pattern(Some("^csec_[0-9a-hjkmnp-tv-z]{52}$"))
        .description(Some("Lets a browser pay this checkout and nothing else. Shown once."))
        .examples(["csec_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjg"])
        .build();
    WebhookSecret = text()
        .pattern(Some("^whsec_[A-Za-z0-9+/]{43}=$"))
        .description(Some("Verifies the signature of every delivery. Shown once."))
        .examples(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="])
        .build();
    CheckoutStatus = one_of(Status::ALL.map(Status::as_str));
    MethodName = one_of(Method::ALL.map(Method::as_str));
    SessionStatus = one_of(["pending", "processing", "succeeded", "failed", "cancelled"]);
    TransactionStatus = one_of(payment::TransactionStatus::ALL.map(payment::TransactionStatus::as_str));
    RefundStatus = one_of(refund::RefundStatus::ALL.map(refund::RefundStatus::as_str));
    ProcessingType = one_of(["online", "offline"]);
    RecordingSource = one_of(["provider", "manual"]);
    InvoiceStatus = one_of(invoice::Status::ALL.map(invoice::Status::as_str));
    InvoiceFilter = one_of(
        invoice::Status::ALL.map(invoice::Status::as_str).into_iter().chain(["open", "uncollectible"]),
    );
    InvoicePaymentStatus = one_of(["unpaid", "partial", "paid", "cancelled"]);
    OfflineMethodName = one_of(OfflineMethod::ALL.map(OfflineMethod::as_str));
    /// Online or outside.
    AnyMethodName = one_of(
        Method::ALL.map(Method::as_str).into_iter().chain(OfflineMethod::ALL.map(OfflineMethod::as_str)),
    );
    ReceiptStatus = one_of(["pending", "completed", "failed"]);
    EmailStatus = one_of(["pending", "sent", "failed"]);
    ModeName = one_of([Mode::Test, Mode::Live].map(Mode::as_str));
    FailureReason = one_of([
        "insufficient_funds", "declined", "wrong_code", "expired", "cancelled", "provider_error",
    ]);
    Payable = one_of(["checkout", "invoice", "payment_link"]);
    PaymentLinkStatus = one_of(["active", "inactive"]);
    PaymentLinkFilter = one_of(["active", "inactive"]);
    CustomFieldType = one_of(FieldType::ALL.map(FieldType::as_str));
    /// Of a payment link, where "0.00" lets the payer choose.
    LinkAmountIn = text()
        .pattern(Some(r"^(0|[1-9][0-9]{0,11})(\.[0-9]{1,4})?$"))
        .description(Some(
            "Decimal text, at most 999999999999.99, with no more decimals than the currency has. \"0.00\" means that the \
             payer chooses. A JSON number is refused.",
        ))
        .examples(["100.00"])
        .build();
    PayableIn = one_of(["payment_link", "invoice", "checkout", "donation", "topup"]);
    Ignored = ObjectBuilder::new().schema_type(SchemaType::AnyValue).build();
    Flow = one_of(["redirect", "push", "otp"]);
    LocaleName = one_of(["en", "fr"]);
    EndpointStatus = one_of(["active", "inactive"]);
    DisableReason = one_of(["gone", "failing"]);
    DeliveryStatus = one_of(["pending", "delivered", "failed"]);
    InvariantsStatus = one_of(["not_run", "ok", "faults"]);
    ApiVersion = one_of(["v1"]);
    Bearer = one_of(["Bearer"]);
    EventName = one_of(EventType::ALL.iter().map(|kind| kind.as_str()));
    EventFilter = one_of(filters());
    KeySetRef = open().description(Some("Ed25519 keys, as at `/.well-known/jwks.json`.")).build();
    Metadata = open().description(Some("Your own data, given back as it was sent.")).build();
    MetadataIn = open()
        .max_properties(Some(50))
        .description(Some(
            "At most 50 keys of at most 40 characters; texts of at most 500 characters; 16 KB in all. \
             An update replaces the whole map.",
        ))
        .build();
    /// The snapshots that events hold today.
    Snapshot = AnyOfBuilder::new()
        .item(Ref::from_schema_name("PaymentEventData"))
        .item(Ref::from_schema_name("InvoiceEventData"))
        .item(Ref::from_schema_name("PaymentLinkEventData"))
        .item(Ref::from_schema_name("Invoice"))
        .item(Ref::from_schema_name("PaymentLink"))
        .item(Ref::from_schema_name("Checkout"))
        .item(Ref::from_schema_name("Refund"))
        .description(Some("The object as it was when the event happened."))
        .build();
    MetadataTexts = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(Schema::from(text().max_length(Some(500)).build())))
        .max_properties(Some(50))
        .description(Some("Text to text; at most 50 keys of at most 40 characters."))
        .build();
}

/// What `enabled_events` may hold: everything, everything of a resource, or one type.
fn filters() -> Vec<String> {
    let kinds: Vec<EventType> = EventType::ALL.iter().copied().filter(|kind| *kind != EventType::WebhookTest).collect();
    let mut filters = vec!["*".to_owned()];
    for kind in &kinds {
        let of_resource = format!("{}.*", kind.resource());
        if !filters.contains(&of_resource) {
            filters.push(of_resource);
        }
    }
    filters.extend(kinds.iter().map(|kind| kind.as_str().to_owned()));
    filters
}
