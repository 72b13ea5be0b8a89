//! The signed statement about a payment that a receipt carries in its QR code: `{pay_url}/verify#<statement>`.
//!
//! It says what was paid, to whom and when, in so few characters that the code prints well, and anybody can check it
//! against the installation's public keys without asking the installation. It doesn't say who paid, nor the validation
//! code: their digest is in it, by which somebody who holds the paper can prove the payer. Nothing is stored here, and
//! what happened later (money paid back) no statement knows.
//!
//! # Layout, version 1
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the version, 1 |
//! | 1 | bit 7: live mode; bits 0–6: digits behind the currency's decimal point |
//! | 8 | the key's id: the first bytes of its RFC 7638 thumbprint |
//! | 3 | the currency's code |
//! | 1–9 | the amount in minor units, more than 0 |
//! | 1–6 | the time of the payment, Unix seconds |
//! | 1 + n | the receipt's number: its length, 1 to 32 printable ASCII characters |
//! | 1 + n | the merchant's name: its length, 1 to 64 bytes of UTF-8, the last an ellipsis where it was longer |
//! | 16 | the payer's proof: the first half of HMAC-SHA256, keyed with the validation code's 32 hex digits, over the payer's name as [`fold`] writes it |
//! | 64 | the Ed25519 signature over `dalasi receipt statement v1`, a zero byte, and all bytes before the signature |
//!
//! Numbers are written base 128, least significant group first, with bit 7 on all bytes but the last, in as few bytes as
//! possible. The whole is written as upper-case Crockford base32 (`0-9 A-Z` without `I L O U`) without padding, which
//! a QR code keeps in its alphanumeric mode and no program between has a reason to escape. A payment has one spelling
//! under one key: unused bits are zero, and no other letter case, alias or blank is taken.

mod reader;
#[cfg(test)]
mod tests;

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Mode, Money, Timestamp};

use crate::base32::UPPER;
use crate::names::composed;
use crate::tokens::{PublicKey, SigningKey};
use reader::Reader;

const VERSION: u8 = 1;
const PURPOSE: &str = "dalasi receipt statement v1";
const LIVE: u8 = 0x80;
const KEY_ID_BYTES: usize = 8;
const PROOF_BYTES: usize = 16;
const SIGNATURE_BYTES: usize = 64;
const LONGEST_NUMBER: usize = 32;
const LONGEST_MERCHANT: usize = 64;
const ELLIPSIS: &str = "…";
/// The year 4147.
const LATEST_S: i64 = 1 << 36;
/// The longest statement has 206 bytes.
const LONGEST_TEXT: usize = 330;

/// What a receipt states. Its fields are within the bounds of the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    mode: Mode,
    receipt_number: String,
    amount: Money,
    merchant: String,
    /// To the second.
    paid_at: Timestamp,
    payer_proof: PayerProof,
}

/// What a receipt says of its payment, as a statement takes it.
#[derive(Debug, Clone, Copy)]
pub struct Paid<'a> {
    pub mode: Mode,
    pub receipt_number: &'a str,
    pub amount: Money,
    pub merchant: &'a str,
    pub paid_at: Timestamp,
    /// As the receipt prints the payer; empty where it names none.
    pub payer: &'a str,
    /// 32 lower-case hex digits.
    pub validation_code: &'a str,
}

/// Shows that whoever knows the validation code and the payer's name has the receipt before them. Without the code it
/// tells nothing of the payer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayerProof([u8; PROOF_BYTES]);

/// A statement that one of our keys signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub statement: Statement,
    /// The key's whole id.
    pub key_id: String,
}

/// The receipt has something that no statement can say: an amount or a time out of range, a number or a name that is
/// empty or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unspeakable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFault {
    /// Incomplete, or no statement at all.
    Malformed,
    /// Of a version that this program doesn't know.
    UnknownVersion,
    /// Signed, if at all, by a key that isn't among the given ones.
    UnknownKey,
    /// Altered after it was signed, or never signed by us.
    Forged,
}

impl Statement {
    pub fn of(paid: &Paid<'_>) -> Result<Self, Unspeakable> {
        let merchant = paid.merchant.trim();
        let statement = Self {
            mode: paid.mode,
            receipt_number: paid.receipt_number.to_owned(),
            amount: paid.amount,
            merchant: shortened(merchant),
            paid_at: paid.paid_at.floor_to_second(),
            payer_proof: PayerProof::of(paid.payer, paid.validation_code),
        };
        statement.is_in_bounds().then_some(statement).ok_or(Unspeakable)
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn receipt_number(&self) -> &str {
        &self.receipt_number
    }

    pub fn amount(&self) -> Money {
        self.amount
    }

    pub fn merchant(&self) -> &str {
        &self.merchant
    }

    pub fn paid_at(&self) -> Timestamp {
        self.paid_at
    }

    pub fn payer_proof(&self) -> PayerProof {
        self.payer_proof
    }

    /// The statement's text, signed.
    pub fn sign(&self, key: &SigningKey) -> String {
        let mut bytes = self.to_bytes(key.public());
        let signature = key.sign(PURPOSE, &bytes);
        bytes.extend_from_slice(&signature);
        let text = UPPER.encode(&bytes);
        assert!(text.len() <= LONGEST_TEXT, "a statement that we would refuse ourselves is never signed");
        text
    }

    fn to_bytes(&self, key: &PublicKey) -> Vec<u8> {
        let exponent = u8::try_from(self.amount.currency.exponent()).expect("a currency has few minor digits");
        let mode = if self.mode.is_live() { LIVE } else { 0 };
        let mut bytes = vec![VERSION, mode | exponent];
        bytes.extend_from_slice(&short_id(key));
        bytes.extend_from_slice(self.amount.currency.code().as_bytes());
        write_number(&mut bytes, self.amount.minor.unsigned_abs());
        write_number(&mut bytes, self.paid_at.seconds().unsigned_abs());
        write_text(&mut bytes, &self.receipt_number);
        write_text(&mut bytes, &self.merchant);
        bytes.extend_from_slice(&self.payer_proof.0);
        bytes
    }

    /// Reads a text back, provided that one of the keys signed it. Nothing of one that wasn't is ever told.
    pub fn verify(text: &str, keys: &[PublicKey]) -> Result<Signed, StatementFault> {
        if text.len() > LONGEST_TEXT {
            return Err(StatementFault::Malformed);
        }
        let bytes = UPPER.decode(text.as_bytes()).map_err(|_| StatementFault::Malformed)?;
        match bytes.first() {
            None => return Err(StatementFault::Malformed),
            Some(&VERSION) => {}
            Some(_) => return Err(StatementFault::UnknownVersion),
        }
        let (body, signature) = bytes
            .len()
            .checked_sub(SIGNATURE_BYTES)
            .and_then(|end| bytes.split_at_checked(end))
            .ok_or(StatementFault::Malformed)?;
        let key_id = body.get(2..2 + KEY_ID_BYTES).ok_or(StatementFault::Malformed)?;
        // Beginnings of two ids can be the same.
        let mut named = keys.iter().filter(|key| short_id(key) == key_id).peekable();
        if named.peek().is_none() {
            return Err(StatementFault::UnknownKey);
        }
        let key = named.find(|key| key.verifies(PURPOSE, body, signature)).ok_or(StatementFault::Forged)?;
        let statement = Self::from_bytes(body).ok_or(StatementFault::Malformed)?;
        Ok(Signed { statement, key_id: key.id().to_owned() })
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let [VERSION, flags] = reader.array::<2>()? else { return None };
        let _key_id = reader.array::<KEY_ID_BYTES>()?;
        let currency = domain::Currency::parse(std::str::from_utf8(&reader.array::<3>()?).ok()?)?;
        if u32::from(flags & !LIVE) != currency.exponent() {
            return None;
        }
        let minor = i64::try_from(reader.number()?).ok()?;
        let seconds = i64::try_from(reader.number()?).ok()?;
        let statement = Self {
            mode: if flags & LIVE == 0 { Mode::Test } else { Mode::Live },
            amount: Money::new(minor, currency),
            paid_at: Timestamp::from_micros(seconds.checked_mul(1_000_000)?),
            receipt_number: reader.text()?,
            merchant: reader.text()?,
            payer_proof: PayerProof(reader.array()?),
        };
        (reader.is_at_end() && statement.is_in_bounds()).then_some(statement)
    }

    fn is_in_bounds(&self) -> bool {
        self.amount.minor > 0
            && (0..LATEST_S).contains(&self.paid_at.seconds())
            && (1..=LONGEST_NUMBER).contains(&self.receipt_number.len())
            && self.receipt_number.bytes().all(|byte| byte.is_ascii_graphic())
            && (1..=LONGEST_MERCHANT).contains(&self.merchant.len())
    }
}

impl PayerProof {
    pub fn of(payer: &str, validation_code: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, validation_code.as_bytes());
        let tag = hmac::sign(&key, fold(payer).as_bytes());
        Self(tag.as_ref()[..PROOF_BYTES].try_into().expect("HMAC-SHA256 is twice as long"))
    }
}

/// A name as it is compared: letter case, blanks, the way in which accents are encoded, and characters that nobody sees don't
/// count. Paper shows a control character as a blank.
pub fn fold(name: &str) -> String {
    let shown: String =
        name.chars().filter(|it| !is_unseen(*it)).map(|it| if it.is_control() { ' ' } else { it }).collect();
    composed(&shown).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Unicode's Default_Ignorable_Code_Point, which is drawn by nothing, and what is for private use. The script of the page
/// knows them by these properties.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// The address that a receipt's QR code holds.
pub fn address(pay_url: &str, statement: &str) -> String {
    format!("{pay_url}/verify#{statement}")
}

/// The statement in what somebody scanned or pasted: behind the `#` of an address, or the whole.
pub fn find(text: &str) -> &str {
    text.rsplit('#').next().unwrap_or_default().trim()
}

/// How a statement names its key.
pub fn short_id(key: &PublicKey) -> [u8; KEY_ID_BYTES] {
    let thumbprint = URL_SAFE_NO_PAD.decode(key.id()).expect("a key's id is base64url");
    thumbprint[..KEY_ID_BYTES].try_into().expect("a thumbprint has 32 bytes")
}

fn shortened(merchant: &str) -> String {
    if merchant.len() <= LONGEST_MERCHANT {
        return merchant.to_owned();
    }
    let end = merchant.floor_char_boundary(LONGEST_MERCHANT - ELLIPSIS.len());
    format!("{}{ELLIPSIS}", merchant[..end].trim_end())
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(u8::try_from(text.len()).expect("texts of a statement are short"));
    bytes.extend_from_slice(text.as_bytes());
}

impl StatementFault {
    /// A stable word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown_version",
            Self::UnknownKey => "unknown_key",
            Self::Forged => "forged",
        }
    }
}

impl fmt::Display for StatementFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "this is no receipt statement, or not all of one",
            Self::UnknownVersion => "the statement is of a version that this program does not know",
            Self::UnknownKey => "none of these keys signed the statement",
            Self::Forged => "the statement was altered, or never signed by its key",
        })
    }
}

impl std::error::Error for StatementFault {}

impl fmt::Display for Unspeakable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the receipt has a number, a name, an amount or a time that no statement can hold")
    }
}

impl std::error::Error for Unspeakable {}
