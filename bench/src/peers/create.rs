//! The nearest that each of them has to creating a checkout, and how a true answer is told from a false one. Pure.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use serde_json::Value;

use super::Peer;
use crate::load::{Step, Work};

/// What one measurement has created.
pub(super) type Ids = Rc<RefCell<HashSet<String>>>;

pub(super) struct Create {
    peer: Peer,
    request: Rc<[u8]>,
    ids: Ids,
}

impl Create {
    pub(super) fn new(peer: Peer, request: &Rc<[u8]>, ids: &Ids) -> Self {
        Self { peer, request: Rc::clone(request), ids: Rc::clone(ids) }
    }
}

impl Work for Create {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        request.extend_from_slice(&self.request);
        true
    }

    /// Each create has an id of its own: who answers by rote is not compared with.
    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        let id = self.peer.created(status, body);
        if id.is_some_and(|id| self.ids.borrow_mut().insert(id)) { Step::Done } else { Step::Failed }
    }
}

impl Peer {
    /// A payment intent; a charge, for want of payment intents; an order, which a shopper without a session gets with the
    /// first item; an invoice.
    pub(super) fn create(self, key: &str) -> Vec<u8> {
        const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
        const JSON: &str = "content-type: application/json\r\n";
        let stripe = format!("{FORM}authorization: Bearer {key}\r\n");
        match self {
            Self::Localstripe => {
                let body = "amount=145000&currency=usd&metadata[description]=Two+bags+of+rice";
                request("POST", "/v1/payment_intents", &stripe, body)
            }
            Self::Mock => {
                let body = "amount=145000&currency=usd&source=tok_visa&description=Two+bags+of+rice";
                request("POST", "/v1/charges", &stripe, body)
            }
            Self::Vendure => {
                let body = r#"{"query":"mutation { addItemToOrder(productVariantId: 1, quantity: 2) { __typename ... on Order { id code state totalWithTax currencyCode } ... on ErrorResult { errorCode message } } }"}"#;
                request("POST", "/shop-api", JSON, body)
            }
            Self::Lnbits => {
                let body = r#"{"out":false,"amount":1450,"unit":"sat","memo":"Two bags of rice"}"#;
                request("POST", "/api/v1/payments", &format!("{JSON}x-api-key: {key}\r\n"), body)
            }
        }
    }

    /// The id of what was created; nothing in any other answer.
    fn created(self, status: u16, body: &[u8]) -> Option<String> {
        let (wanted, place) = match self {
            Self::Localstripe | Self::Mock => (200, "/id"),
            Self::Vendure => (200, "/data/addItemToOrder/id"),
            Self::Lnbits => (201, "/payment_hash"),
        };
        if status != wanted {
            return None;
        }
        let answer: Value = serde_json::from_slice(body).ok()?;
        answer.pointer(place)?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
    }
}

pub(super) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"data":{"addItemToOrder":{"__typename":"Order","id":"7","code":"JBJF"}}}"#;

    fn create(peer: Peer) -> Create {
        Create::new(peer, &peer.create("key").into(), &Ids::default())
    }

    #[test]
    fn what_was_created_has_an_id() {
        let check = |peer: Peer, status, body: &str| peer.created(status, body.as_bytes());
        assert_eq!(check(Peer::Localstripe, 200, "{\n  \"id\": \"pi_1\"\n}\n").as_deref(), Some("pi_1"));
        assert_eq!(check(Peer::Mock, 200, r#"{"id":"ch_1"}"#).as_deref(), Some("ch_1"));
        assert_eq!(check(Peer::Vendure, 200, ORDER).as_deref(), Some("7"));
        assert_eq!(check(Peer::Lnbits, 201, r#"{"payment_hash":"5d"}"#).as_deref(), Some("5d"));
    }

    #[test]
    fn a_refusal_is_no_create() {
        let refusals = [
            (Peer::Localstripe, 400, r#"{"error":{"message":"Unexpected description"}}"#),
            (Peer::Mock, 200, "Hello world"),
            (Peer::Mock, 200, r#"{"id":""}"#),
            (Peer::Vendure, 200, r#"{"data":{"addItemToOrder":{"message":"There is no stock"}}}"#),
            (Peer::Vendure, 200, r#"{"errors":[{"message":"No ProductVariant with the id \"1\""}],"data":null}"#),
            (Peer::Lnbits, 200, r#"{"payment_hash":"5d"}"#),
        ];
        for (peer, status, body) in refusals {
            assert_eq!(create(peer).answered(status, body.as_bytes()), Step::Failed, "{body}");
        }
    }

    #[test]
    fn the_same_id_twice_is_no_create() {
        let mut work = create(Peer::Vendure);
        assert_eq!(work.answered(200, ORDER.as_bytes()), Step::Done);
        assert_eq!(work.answered(200, ORDER.as_bytes()), Step::Failed);
        assert_eq!(work.answered(200, ORDER.replace('7', "8").as_bytes()), Step::Done);
    }

    #[test]
    fn a_request_says_how_long_it_is() {
        for peer in Peer::ALL {
            let request = String::from_utf8(peer.create("key")).expect("text");
            let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{request}");
            assert!(!head.contains("json") || serde_json::from_str::<Value>(body).is_ok(), "{body}");
        }
    }
}
