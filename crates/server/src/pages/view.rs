//! What the pages are told: plain structs without behaviour, in words of their own, so that a page
//! can be drawn (and tested, and looked at) without a session, a database or a rail. The caller
//! maps its objects to these; nothing here knows how a payment works.

use super::text::Language;

mod simulator;

pub use simulator::{CardProblem, Outcome, Scene, SimulatorPage};

/// The page of a payment in one of its states, whatever is paid there.
#[derive(Debug, Clone)]
pub struct PaymentPage {
    pub merchant: Merchant,
    /// Nothing where the payer has yet to choose it.
    pub amount: Option<Amount>,
    pub subject: Subject,
    /// Already masked (`crate::mask`): the address of a page is all it takes to read it.
    pub payer: Vec<String>,
    pub test_mode: bool,
    pub language: Language,
    /// The path of this page, without a query and without a slash at its end: `/checkout/cs_…`.
    /// Forms post to `<path>/method` and so on.
    pub path: String,
    /// What the address of this showing says besides, as it is to be said in the other language.
    pub kept: Vec<(&'static str, String)>,
    /// Opaque. The page is drawn anew when `<path>/status` or `<path>/events` names another one, so it has
    /// to change when the state does and only then.
    pub revision: String,
    /// Rides in every form; it is the idempotency key of what the form does.
    pub form_token: String,
    /// Rides beside it: what the page shows that can change.
    pub shown: Option<Shown>,
    /// The payment that is shown, for its forms to name.
    pub session: Option<String>,
    /// Set it through [`super::moment::time_left`], which speaks only in the last quarter.
    pub time_left: Option<TimeLeft>,
    /// How often a waiting page without script has asked already (`?reads=`); longer pauses each time.
    pub reads: u32,
    pub leave: Option<Leave>,
    /// What is asked before the methods.
    pub fields: Vec<Field>,
    /// Offered beside the methods.
    pub part: Option<Part>,
    /// The part that the payer chose, as it was typed; rides in the form that asks for a phone.
    pub chosen_part: Option<String>,
    /// An attempt has no final word yet: what is paid may change.
    pub unsettled: bool,
    pub state: State,
}

/// As the page's own forms say it, with the tag that binds it to them.
#[derive(Debug, Clone)]
pub struct Shown {
    pub text: String,
    pub tag: String,
}

/// What is paid.
#[derive(Debug, Clone)]
pub enum Subject {
    Order {
        description: Option<String>,
        /// The shop's own reference.
        reference: Option<String>,
        items: Vec<Item>,
    },
    Invoice(Box<Invoice>),
    /// An invoice that was never issued, of which nothing is told.
    Unissued,
    Link {
        title: String,
        description: Option<String>,
        /// Where the page is, for another device; only where a payment begins.
        address: Option<String>,
    },
}

/// What a payer fills in before the choice of a method.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name in the form.
    pub name: String,
    pub label: Label,
    pub kind: FieldKind,
    pub required: bool,
    /// What was typed before an error.
    pub typed: Option<String>,
    pub error: Option<FieldError>,
}

#[derive(Debug, Clone)]
pub enum Label {
    Amount,
    Name,
    Email,
    Phone,
    /// The merchant's own words.
    Own(String),
}

#[derive(Debug, Clone)]
pub enum FieldKind {
    Amount { currency: String, exponent: u8, least: Option<Amount>, most: Option<Amount> },
    Name,
    Text,
    Number,
    Email,
    Phone,
    Select { options: Vec<String> },
    Checkbox,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    Missing,
    Format,
    TooLong,
    TooLittle,
    TooMuch,
    CardNumber,
}

#[derive(Debug, Clone)]
pub struct Invoice {
    pub number: String,
    /// Empty where the customer has no name.
    pub billed_to: String,
    /// Unix seconds, as are the other times.
    pub issued_at: i64,
    pub due_at: i64,
    pub due: Due,
    pub items: Vec<Item>,
    pub before_tax: Amount,
    /// A percentage as it is written, and what it comes to; where there is any.
    pub tax: Option<(String, Amount)>,
    pub total: Amount,
    pub paid: Amount,
    pub left: Amount,
    pub notes: String,
    /// What was paid so far, in the order in which it came.
    pub payments: Vec<InvoicePayment>,
    /// Where its document is, on this host.
    pub document_path: Option<String>,
}

/// What the due date means now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Ahead,
    /// The day is over, and money is still awaited.
    Passed,
    /// It matters no more.
    Settled,
}

#[derive(Debug, Clone)]
pub struct InvoicePayment {
    pub receipt_number: String,
    pub amount: Amount,
    /// Nothing where it is not known.
    pub paid_with: Option<PaidWith>,
    pub paid_at: i64,
    /// Where the receipt is, on this host.
    pub receipt_path: Option<String>,
    pub refunded: Option<Refunded>,
}

/// What was given back of a payment since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refunded {
    pub amount: Amount,
    pub is_whole: bool,
}

/// How money came: by a method of this service, or as the merchant wrote it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaidWith {
    Online(Method),
    Cash,
    BankTransfer,
    Check,
    WesternUnion,
    Other,
}

/// A payer may pay less than what is left.
#[derive(Debug, Clone)]
pub struct Part {
    pub most: Amount,
    /// What the merchant asks for, where that is less: so much is paid where nothing is typed.
    pub asked: Option<Amount>,
    /// What was typed before an error, or chosen before.
    pub typed: Option<String>,
    pub error: Option<PartError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartError {
    Format,
    /// Nothing, or less.
    TooLittle,
    TooMuch,
}

/// What leaving unpaid does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It closes the payment and leads back to the shop.
    ToShop,
    /// It only closes the payment.
    Here,
}

#[derive(Debug, Clone)]
pub struct Merchant {
    pub name: String,
    /// A path on this host; anything else is not shown.
    pub logo_path: Option<String>,
    /// `#rrggbb`; anything else falls back to the default accent.
    pub accent: Option<String>,
}

/// Integer minor units with the exponent of their currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    pub minor: i64,
    pub exponent: u8,
    pub currency: String,
}

#[derive(Debug, Clone)]
pub struct Item {
    pub description: String,
    pub quantity: i64,
    pub total: Amount,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Wave,
    Afrimoney,
    Qmoney,
    Card,
}

impl Method {
    /// The word of the API; also the value of the form field `method`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wave => "wave",
            Self::Afrimoney => "afrimoney",
            Self::Qmoney => "qmoney",
            Self::Card => "card",
        }
    }
}

/// Time in words, to the precision that a person plans with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    Hours(u32),
    Minutes(u32),
    LessThanAMinute,
}

#[derive(Debug, Clone)]
pub enum State {
    Choose {
        methods: Vec<Method>,
        problem: Option<Problem>,
        received: Option<Received>,
        /// Beside it, of attempts before: each brought more than was left.
        kept_apart: Vec<Apart>,
    },
    NeedsPhone {
        method: Method,
        /// Masked number that the shop gave: one tap posts `use=known` instead of `phone`.
        known: Option<String>,
        /// What the payer typed before an error, given back to them.
        typed: Option<String>,
        error: Option<PhoneError>,
        problem: Option<Problem>,
        other_methods: bool,
    },
    ApproveOnPhone {
        method: Method,
        phone: String,
        problem: Option<Problem>,
        other_methods: bool,
        /// The simulator's page in test mode.
        simulator_url: Option<String>,
    },
    EnterCode {
        method: Method,
        phone: String,
        length: u8,
        attempts_left: u8,
        error: Option<CodeError>,
        /// Seconds; 0 is now, `None` does not offer it.
        can_resend_in: Option<u32>,
        other_methods: bool,
        /// The right code, in test mode, so that nobody has to look it up.
        simulator_code: Option<String>,
    },
    /// A page of ours that leads outward by a link and, when `automatic`, by itself. Pass `automatic` only on the
    /// first showing after the choice: who comes back by the back button has to be able to stay.
    Redirecting {
        method: Method,
        url: String,
        automatic: bool,
        problem: Option<Problem>,
        other_methods: bool,
    },
    Checking {
        method: Method,
        /// Where the same attempt can still be approved; the simulator's page in test mode.
        attempt_url: Option<String>,
    },
    /// Left unpaid: outward to the shop, by itself as [`State::Redirecting`] is.
    Leaving {
        return_url: String,
        automatic: bool,
    },
    /// Without a receipt where many payments came together: the subject lists them, with what was given back of each.
    Paid {
        receipt: Option<Receipt>,
        return_url: Option<String>,
    },
    NotPaid {
        method: Method,
        reason: Reason,
        methods: Vec<Method>,
        /// Attempts before it that brought more than was left.
        kept_apart: Vec<Apart>,
    },
    /// An invoice that its merchant is still writing.
    Draft,
    /// A link that takes no more payments.
    Closed {
        reason: Closed,
        /// Of the payer's own payment of it.
        standing: Standing,
        return_url: Option<String>,
    },
    Expired {
        standing: Standing,
        return_url: Option<String>,
    },
    Cancelled {
        standing: Standing,
        /// More came than was left, before the end.
        kept_apart: Vec<Apart>,
        return_url: Option<String>,
    },
    /// Money that arrived after the end: one payment, or the parts of an invoice.
    PaidLate {
        after: End,
        receipts: Vec<Receipt>,
        /// More came than was left, before the end.
        kept_apart: Vec<Apart>,
        return_url: Option<String>,
    },
    AlreadyPaid {
        receipts: Vec<Receipt>,
        second_payments: Vec<Apart>,
        return_url: Option<String>,
    },
}

/// Money that came in while more is awaited.
#[derive(Debug, Clone)]
pub enum Received {
    Part {
        amount: Amount,
        /// Back to the shop that asked for it. Nobody is led there alone: more is to be paid.
        return_url: Option<String>,
    },
    /// It was more than what was left.
    Apart(Apart),
}

/// Money that came once more.
#[derive(Debug, Clone)]
pub struct Apart {
    pub amount: Amount,
    /// The number of the payment, for the shop to find it.
    pub payment: String,
    /// Kept apart from the merchant's own, until it is given back. What many pay has no such money: each payment is one of them.
    pub is_kept: bool,
    pub refunded: Option<Refunded>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    ByMerchant,
    Expired,
    UsedUp,
}

/// Whether it is certain that no money moved. Only a final answer of the rail makes it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    NothingTaken,
    /// The rail has not said yet.
    Unknown(Method),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Expiry,
    Cancellation,
}

#[derive(Debug, Clone)]
pub struct Receipt {
    pub amount: Amount,
    pub method: Method,
    /// Unix seconds.
    pub paid_at: i64,
    /// The number of the payment (`txn_…`), by which shop and payer find it again.
    pub payment: String,
    pub refunded: Option<Refunded>,
}

/// A start that did not work; stays on the page until the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The rail refused or could not be reached, and certainly started nothing.
    NotStarted(Method),
    /// Another attempt is still with its rail.
    InProgress,
    TooOften,
    /// The form was not ours or too old.
    StaleForm,
    /// The form was of a page that showed another amount.
    AmountChanged,
    /// The link takes no other payment than the one that was begun.
    NoNewPayment,
    /// Others are paying all that is left of the link, and this payer has begun nothing.
    LastPlaceHeld,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhoneError {
    Missing,
    Format,
    NotStarted,
    TooOften,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeError {
    Missing,
    Format,
    Wrong,
    Expired,
    TooOften,
    StaleForm,
    AmountChanged,
    NoNewPayment,
    /// Another payment of theirs waits for the word of its rail.
    InProgress,
    /// What its merchant takes no more is not begun anew; the code that was sent is still good.
    NotSentAgain,
}

/// Why an attempt failed; the words of the API's `failure_reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    InsufficientFunds,
    Declined,
    WrongCode,
    Expired,
    Cancelled,
    ProviderError,
}

/// Where a receipt is checked.
#[derive(Debug, Clone)]
pub struct VerifyPage {
    pub language: Language,
    pub path: String,
    /// At least one; the retired ones too.
    pub keys: Vec<ReceiptKey>,
    /// What the browser shows as the page's address, for comparing.
    pub host: String,
    /// By its validation code.
    pub asked: Option<AskedReceipt>,
}

/// The validation code that somebody typed, and what we know of it.
#[derive(Debug, Clone)]
pub struct AskedReceipt {
    /// To be mended, where it is nearly a code.
    pub typed: Option<String>,
    pub answer: ReceiptAnswer,
}

#[derive(Debug, Clone)]
pub enum ReceiptAnswer {
    /// Nothing that could be a code.
    Malformed,
    Unknown,
    Issued(IssuedReceipt),
}

#[derive(Debug, Clone)]
pub struct IssuedReceipt {
    pub merchant: String,
    pub number: String,
    pub amount: Amount,
    /// What of it was given back since.
    pub refunded: Option<Amount>,
    pub paid_at: i64,
    pub test_mode: bool,
}

/// A public Ed25519 key, with the id by which statements name it.
#[derive(Debug, Clone)]
pub struct ReceiptKey {
    pub id: [u8; 8],
    pub bytes: [u8; 32],
}

/// A page that says only one thing.
#[derive(Debug, Clone)]
pub struct MessagePage {
    pub language: Language,
    /// Path for the language links and for *try again*.
    pub path: String,
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    NotFound,
    /// A form from elsewhere, or one without its token.
    ForeignForm,
    /// More than a form of ours can hold.
    TooLarge,
    TooMany,
    /// For a while; try again.
    Unavailable,
    /// Our fault; the request id finds it in the log.
    Fault {
        request_id: String,
    },
}
