//! What a document shows. Text may hold anything; an empty text is left out. Amounts are minor units of the document's
//! currency.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locale {
    #[default]
    English,
    French,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency {
    /// ISO 4217, such as `GMD`.
    pub code: String,
    /// Digits behind the point.
    pub exponent: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: i16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// In UTC, which is Banjul's time all year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

/// Who asks for the money or took it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Merchant {
    pub name: String,
    /// Lines, as they are to stand.
    pub address: String,
    pub phone: String,
    pub email: String,
    pub tax_id: String,
    /// A PNG or JPEG file. What is neither, is broken or is too large is left out.
    pub logo: Option<Vec<u8>>,
    /// `#rrggbb`; darkened as far as it takes to be read on paper.
    pub accent: Option<String>,
}

/// Who is asked for the money or gave it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Party {
    pub name: String,
    pub address: String,
    pub phone: String,
    pub email: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Draft,
    Open,
    Overdue,
    Paid,
    /// Paid, and all of it paid back since.
    Refunded,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    pub locale: Locale,
    pub merchant: Merchant,
    pub state: State,
    /// No real money: said on every page.
    pub test: bool,
    pub number: String,
    pub issued: Option<Date>,
    pub due: Option<Date>,
    pub paid_on: Option<Date>,
    pub bill_to: Party,
    pub currency: Currency,
    pub lines: Vec<Line>,
    pub subtotal: i64,
    /// Per cent, as decimal digits: `15`, `7.5`.
    pub tax_rate: String,
    pub tax: i64,
    pub total: i64,
    pub paid: i64,
    /// What of it was paid back since; left out where that is nothing.
    pub refunded: i64,
    pub remaining: i64,
    pub notes: String,
    /// Where it can be paid, in text and as a QR code; absent when it can't.
    pub pay_address: Option<String>,
    /// When these values became what they are: the date the file bears.
    pub as_of: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub description: String,
    pub quantity: i64,
    pub unit_price: i64,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub locale: Locale,
    pub merchant: Merchant,
    /// No real money: said on every page.
    pub test: bool,
    pub number: String,
    pub payer: Party,
    pub currency: Currency,
    pub amount: i64,
    pub method: Method,
    pub paid_at: Moment,
    /// The number of the invoice this paid for.
    pub invoice_number: String,
    /// The method's own reference of the payment.
    pub reference: String,
    pub validation_code: String,
    /// What the QR code holds.
    pub verify_code: String,
    /// Where a reader types the validation code in.
    pub verify_address: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Wave,
    Afrimoney,
    Qmoney,
    Card,
    Cash,
    BankTransfer,
    Check,
    WesternUnion,
    Other,
}
