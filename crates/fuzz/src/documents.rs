//! Whole files: what is verified, what is redrawn, what is written from texts of others.

use std::hint::black_box;
use std::sync::LazyLock;

use dalasi::receipt_statement::Statement;
use dalasi::tokens::{PublicKey, SigningKey};
use dalasi::{ledger_proof, logo};
use pdf::{Currency, Date, Invoice, Line, Locale, Merchant, Method, Moment, Party, Receipt, State};

static KEY: LazyLock<PublicKey> = LazyLock::new(|| SigningKey::generate(&[3; 32]).public().clone());
const DAY: Date = Date { year: 2026, month: 11, day: 30 };
const MOMENT: Moment = Moment { date: DAY, hour: 10, minute: 0, second: 0 };

/// Nobody makes a receipt without the key.
pub(crate) fn receipt_statement(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    assert!(Statement::verify(text, std::slice::from_ref(&*KEY)).is_err(), "forged");
}

/// A proof that brings its own keys may be sound; against ours it never is.
pub(crate) fn ledger_proof(input: &[u8]) {
    let _ = black_box(ledger_proof::check(input, None));
    if let Ok(checked) = ledger_proof::check(input, Some(vec![KEY.clone()])) {
        assert_eq!(checked.entries, 0, "forged");
    }
}

/// What comes out is a PNG of bounded size.
pub(crate) fn picture(input: &[u8]) {
    if let Ok(drawn) = logo::redraw(input) {
        assert!(drawn.starts_with(b"\x89PNG"), "no PNG");
    }
}

/// The parts of an input, one for each field.
struct Parts<'i>(std::str::Split<'i, char>);

impl<'i> Parts<'i> {
    fn of(input: &'i [u8]) -> Option<Self> {
        Some(Self(std::str::from_utf8(input).ok()?.split('\u{1f}')))
    }

    fn next(&mut self) -> String {
        self.0.next().unwrap_or_default().to_owned()
    }

    fn party(&mut self) -> Party {
        Party { name: self.next(), address: self.next(), phone: self.next(), email: self.next() }
    }

    fn merchant(&mut self, logo: &[u8]) -> Merchant {
        let Party { name, address, phone, email } = self.party();
        Merchant {
            name,
            address,
            phone,
            email,
            tax_id: self.next(),
            logo: Some(logo.to_vec()),
            accent: Some(self.next()),
        }
    }
}

pub(crate) fn invoice_file(input: &[u8]) {
    let Some(mut parts) = Parts::of(input) else { return };
    let locale = if input.len().is_multiple_of(2) { Locale::English } else { Locale::French };
    let invoice = Invoice {
        locale,
        merchant: parts.merchant(input),
        state: State::Open,
        test: false,
        number: parts.next(),
        issued: Some(DAY),
        due: Some(DAY),
        paid_on: None,
        bill_to: parts.party(),
        currency: Currency { code: parts.next(), exponent: 2 },
        lines: vec![Line { description: parts.next(), quantity: 1, unit_price: i64::MAX, total: i64::MIN }],
        subtotal: i64::MAX,
        tax_rate: parts.next(),
        tax: 0,
        total: i64::MAX,
        paid: 0,
        refunded: i64::MAX,
        remaining: i64::MAX,
        notes: parts.next(),
        pay_address: Some(parts.next()),
        as_of: MOMENT,
    };
    written(pdf::invoice(&invoice));
}

pub(crate) fn receipt_file(input: &[u8]) {
    let Some(mut parts) = Parts::of(input) else { return };
    let receipt = Receipt {
        locale: Locale::English,
        merchant: parts.merchant(&[]),
        test: true,
        number: parts.next(),
        payer: parts.party(),
        currency: Currency { code: parts.next(), exponent: 0 },
        amount: i64::MIN,
        method: Method::Wave,
        paid_at: MOMENT,
        invoice_number: parts.next(),
        reference: parts.next(),
        validation_code: parts.next(),
        verify_code: parts.next(),
        verify_address: parts.next(),
    };
    written(pdf::receipt(&receipt));
}

fn written(file: Result<Vec<u8>, pdf::Unwritten>) {
    let file = file.expect("no text makes a document that can't be written");
    assert!(file.starts_with(b"%PDF-"), "no PDF");
    for name in [&b"/JavaScript"[..], b"/Launch", b"/OpenAction", b"/EmbeddedFile"] {
        assert!(!file.windows(name.len()).any(|part| part == name), "{}", String::from_utf8_lossy(name));
    }
}
