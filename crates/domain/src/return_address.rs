//! The address at which a payer comes back to the shop (contract §5, Redirect after payment).
//!
//! It carries ids and never an outcome: whoever receives the payer fetches the object.

use crate::checkout::Checkout;
use crate::id::Id;
use crate::payment::PaymentSession;

const CHECKOUT: &str = "session_id";
const PAYMENT_SESSION: &str = "payment_session_id";

/// The merchant's `url` with the ids: behind its query, before its fragment, in place of parameters of their names. Only
/// a checkout has an id of its own there.
pub fn return_address(url: &str, checkout: Option<Id<Checkout>>, session: Option<Id<PaymentSession>>) -> String {
    let (rest, fragment) = match url.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (url, None),
    };
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parameters: Vec<String> = query
        .split('&')
        .filter(|part| !part.is_empty() && !is_ours(part, checkout.is_some()))
        .map(String::from)
        .collect();
    if let Some(checkout) = checkout {
        parameters.push(format!("{CHECKOUT}={checkout}"));
    }
    if let Some(session) = session {
        parameters.push(format!("{PAYMENT_SESSION}={session}"));
    }
    let mut address = address.to_owned();
    if !parameters.is_empty() {
        address.push('?');
        address.push_str(&parameters.join("&"));
    }
    if let Some(fragment) = fragment {
        address.push('#');
        address.push_str(fragment);
    }
    address
}

fn is_ours(parameter: &str, of_checkout: bool) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    let name = decoded(name);
    (of_checkout && name == CHECKOUT.as_bytes()) || name == PAYMENT_SESSION.as_bytes()
}

/// However a name is written, the shop reads the same one.
fn decoded(name: &str) -> Vec<u8> {
    let mut rest = name.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        // A sign is no hexadecimal digit, although the parser below would take one.
        let byte = digits.filter(|it| !it.contains('+')).and_then(|it| u8::from_str_radix(it, 16).ok());
        decoded.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn both_ids_are_added_and_nothing_else_changes() {
        let checkout: Id<Checkout> = Id::new(Timestamp::from_micros(0), [1; 10]);
        let session: Id<PaymentSession> = Id::new(Timestamp::from_micros(0), [2; 10]);
        let ours = format!("session_id={checkout}&payment_session_id={session}");
        let table = [
            ("https://shop.example", "https://shop.example?{}"),
            ("https://shop.example/thanks", "https://shop.example/thanks?{}"),
            ("https://shop.example/?", "https://shop.example/?{}"),
            ("https://shop.example/?a=1", "https://shop.example/?a=1&{}"),
            ("https://shop.example/?a=1&b=%26#top", "https://shop.example/?a=1&b=%26&{}#top"),
            ("https://shop.example/#/thanks?a=1", "https://shop.example/?{}#/thanks?a=1"),
            ("https://shop.example/?session_id=x&a=1&payment_session_id=", "https://shop.example/?a=1&{}"),
            ("https://shop.example/?session%5fid=x&session_id&a", "https://shop.example/?a&{}"),
            ("https://shop.example/?my_session_id=x&%zz=1&%5", "https://shop.example/?my_session_id=x&%zz=1&%5&{}"),
            ("https://shop.example/?a=1?b#c#d", "https://shop.example/?a=1?b&{}#c#d"),
            ("https://shop.example/?é%C3", "https://shop.example/?é%C3&{}"),
        ];
        for (url, expected) in table {
            assert_eq!(return_address(url, Some(checkout), Some(session)), expected.replace("{}", &ours), "{url}");
        }
        let without = return_address("https://shop.example/?payment_session_id=x", Some(checkout), None);
        assert_eq!(without, format!("https://shop.example/?session_id={checkout}"));
        let of_link = return_address("https://shop.example/?session_id=x&payment_session_id=y#z", None, Some(session));
        assert_eq!(of_link, format!("https://shop.example/?session_id=x&payment_session_id={session}#z"));
        assert_eq!(
            return_address("https://shop.example/?payment_session_id=y#z", None, None),
            "https://shop.example/#z"
        );
    }
}
