//! What the connections do: requests as a merchant's server sends them, each write under a key of its own.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;

use crate::load::{Step, Work};

/// Ids that the work leaves behind for other work, or takes from it.
pub(crate) type Ids = Rc<RefCell<Vec<String>>>;

/// Who asks. Clones share the numbers that keys and orders are made of, so that none comes twice.
#[derive(Clone)]
pub(crate) struct Caller {
    authorization: Rc<str>,
    next: Rc<Cell<u64>>,
    seed: u64,
    has_keys: bool,
}

impl Caller {
    pub(crate) fn new(secret_key: &str, seed: u64) -> Self {
        let authorization = format!("authorization: Bearer {secret_key}\r\n").into();
        Self { authorization, next: Rc::default(), seed, has_keys: true }
    }

    /// Whose writes bring no idempotency key.
    pub(crate) fn without_keys(self) -> Self {
        Self { has_keys: false, ..self }
    }

    pub(crate) fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    pub(crate) fn get(&self, path: &str, request: &mut Vec<u8>) {
        write(request, &["GET ", path, " HTTP/1.1\r\nhost: localhost\r\n", &self.authorization, "\r\n"]);
    }

    /// Under a key that looks as random as a UUID, unless it is one who brings none.
    pub(crate) fn write(&self, method: &str, path: &str, body: &str, request: &mut Vec<u8>) {
        let number = self.number();
        let (one, other) = (mix(self.seed ^ number), mix(self.seed.rotate_left(32) ^ number));
        let key = if self.has_keys { format!("idempotency-key: {one:016x}-{other:016x}\r\n") } else { String::new() };
        let length = body.len().to_string();
        write(
            request,
            &[
                method,
                " ",
                path,
                " HTTP/1.1\r\nhost: localhost\r\n",
                &self.authorization,
                &key,
                "content-type: application/json\r\ncontent-length: ",
                &length,
                "\r\n\r\n",
                body,
            ],
        );
    }
}

fn write(request: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        request.extend_from_slice(part.as_bytes());
    }
}

/// splitmix64: neighbours become strangers, and no two numbers the same.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// 420 bytes.
pub(crate) fn checkout_body(number: u64, body: &mut String) {
    body.clear();
    let written = write!(
        body,
        r#"{{"amount":"1450.00","currency":"GMD","description":"Two bags of rice, delivered to the door","reference":"order-{number:012}","customer_email":"awa.ceesay@shop.example","customer_name":"Awa Ceesay","success_url":"https://shop.example/orders/{number:012}/thank-you","failure_url":"https://shop.example/orders/{number:012}/try-again","metadata":{{"cart":"{:016x}","channel":"the shop by the road and its website"}}}}"#,
        mix(number)
    );
    written.expect("a text takes what is written");
}

const INVOICE: &str = r#"{"is_draft":true,"customer_email":"awa.ceesay@shop.example","customer_name":"Awa Ceesay","due_date":"2035-01-31","tax_rate":15,"notes":"Thank you for your order","items":[{"description":"Rice, 50 kg","quantity":2,"unit_price":"1450.00"},{"description":"Delivery","quantity":1,"unit_price":"100.00"}]}"#;

/// The value of the first `"name":"…"` in an answer, without reading the rest of it.
pub(crate) fn text<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let body = std::str::from_utf8(body).ok()?;
    let start = body.find(&format!("\"{name}\":\""))? + name.len() + 4;
    body[start..].split('"').next()
}

fn expect(status: u16, wanted: u16) -> Step {
    if status == wanted { Step::Done } else { Step::Failed }
}

/// Reference E.
pub(crate) struct Echo {
    pub(crate) caller: Caller,
    pub(crate) body: String,
}

impl Work for Echo {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        checkout_body(self.caller.next.get(), &mut self.body);
        self.caller.write("POST", "/echo", &self.body, request);
        true
    }

    fn answered(&mut self, status: u16, _: &[u8]) -> Step {
        expect(status, 200)
    }
}

/// `POST /v1/checkouts`, up to `left` of them.
pub(crate) struct Create {
    pub(crate) caller: Caller,
    pub(crate) body: String,
    pub(crate) left: Rc<Cell<u64>>,
    /// One in so many is kept.
    pub(crate) keep_every: u64,
    pub(crate) kept: Ids,
}

impl Work for Create {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else { return false };
        self.left.set(left);
        checkout_body(self.caller.next.get(), &mut self.body);
        self.caller.write("POST", "/v1/checkouts", &self.body, request);
        true
    }

    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        if self.left.get().is_multiple_of(self.keep_every)
            && let Some(id) = text(body, "id")
        {
            self.kept.borrow_mut().push(id.to_owned());
        }
        expect(status, 201)
    }
}

/// `GET /v1/checkouts/{id}`, of any that is known.
pub(crate) struct Get {
    pub(crate) caller: Caller,
    pub(crate) ids: Ids,
}

impl Work for Get {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let ids = self.ids.borrow();
        let Some(count) = (ids.len() as u64).checked_sub(1) else { return false };
        let id = &ids[(mix(self.caller.number()) % (count + 1)) as usize];
        self.caller.get(&format!("/v1/checkouts/{id}"), request);
        true
    }

    fn answered(&mut self, status: u16, _: &[u8]) -> Step {
        expect(status, 200)
    }
}

/// One write to each of the objects that wait, until none is left.
pub(crate) struct Each {
    pub(crate) caller: Caller,
    pub(crate) method: &'static str,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) body: &'static str,
    pub(crate) ids: Ids,
    pub(crate) taken: Option<String>,
    /// Where the objects wait for the next write.
    pub(crate) then: Ids,
}

impl Work for Each {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let Some(id) = self.ids.borrow_mut().pop() else { return false };
        self.caller.write(self.method, &format!("{}{id}{}", self.before, self.after), self.body, request);
        self.taken = Some(id);
        true
    }

    fn answered(&mut self, status: u16, _: &[u8]) -> Step {
        self.then.borrow_mut().extend(self.taken.take());
        expect(status, 200)
    }
}

/// Makes a checkout and cancels it, a write each, until somebody says that it is over.
pub(crate) struct Change {
    pub(crate) caller: Caller,
    pub(crate) body: String,
    pub(crate) made: Option<String>,
    pub(crate) is_over: Rc<Cell<bool>>,
}

impl Work for Change {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if self.is_over.get() {
            return false;
        }
        if let Some(id) = &self.made {
            self.caller.write("POST", &format!("/v1/checkouts/{id}/cancel"), "", request);
        } else {
            checkout_body(self.caller.next.get(), &mut self.body);
            self.caller.write("POST", "/v1/checkouts", &self.body, request);
        }
        true
    }

    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        if self.made.take().is_some() {
            return expect(status, 200);
        }
        self.made = text(body, "id").map(str::to_owned);
        if self.made.is_some() { expect(status, 201) } else { Step::Failed }
    }
}

/// `POST /v1/pay/invoices`, so many drafts.
pub(crate) struct Draft {
    pub(crate) caller: Caller,
    pub(crate) left: Rc<Cell<u64>>,
    pub(crate) kept: Ids,
}

impl Work for Draft {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        let Some(left) = self.left.get().checked_sub(1) else { return false };
        self.left.set(left);
        self.caller.write("POST", "/v1/pay/invoices", INVOICE, request);
        true
    }

    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        self.kept.borrow_mut().extend(text(body, "id").map(str::to_owned));
        expect(status, 201)
    }
}

/// A checkout and its payment by a phone that approves by itself.
pub(crate) struct Pay {
    pub(crate) caller: Caller,
    pub(crate) left: Rc<Cell<u64>>,
    pub(crate) client_secret: Option<String>,
    pub(crate) body: String,
}

impl Work for Pay {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if let Some(client_secret) = &self.client_secret {
            let body = format!(
                r#"{{"client_secret":"{client_secret}","payment_method":"afrimoney","customer_phone":"+2207000000"}}"#
            );
            self.caller.write("POST", "/v1/pay/initialize", &body, request);
            return true;
        }
        let Some(left) = self.left.get().checked_sub(1) else { return false };
        self.left.set(left);
        checkout_body(self.caller.next.get(), &mut self.body);
        self.caller.write("POST", "/v1/checkouts", &self.body, request);
        true
    }

    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        match self.client_secret.take() {
            Some(_) => expect(status, 200),
            None => match text(body, "client_secret") {
                Some(secret) if status == 201 => {
                    self.client_secret = Some(secret.to_owned());
                    Step::More
                }
                _ => Step::Failed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_the_size_that_is_told() {
        let mut body = String::new();
        for number in [0, 999_999_999_999] {
            checkout_body(number, &mut body);
            assert_eq!(body.len(), 420, "{body}");
            assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok());
        }
        assert!(serde_json::from_str::<serde_json::Value>(INVOICE).is_ok());
    }

    #[test]
    fn no_key_comes_twice() {
        let caller = Caller::new("sk", 7);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let mut request = Vec::new();
            caller.clone().write("POST", "/", "", &mut request);
            assert!(seen.insert(request));
        }
    }

    #[test]
    fn who_brings_no_key_brings_another_order_each_time() {
        let caller = Caller::new("sk", 7).without_keys();
        let left = Rc::new(Cell::new(2));
        let mut work = Create { caller, body: String::new(), left, keep_every: 1, kept: Ids::default() };
        let mut next = || {
            let mut request = Vec::new();
            assert!(work.next(&mut request));
            String::from_utf8(request).expect("text")
        };
        let (first, second) = (next(), next());
        assert_ne!(first, second);
        for request in [first, second] {
            let (head, body) = request.split_once("\r\n\r\n").expect("a head and a body");
            assert!(!head.contains("idempotency-key") && head.contains("content-type: application/json"), "{head}");
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        }
    }

    #[test]
    fn what_is_made_is_cancelled_until_it_is_over() {
        let is_over = Rc::new(Cell::new(false));
        let caller = Caller::new("sk", 7);
        let mut work = Change { caller, body: String::new(), made: None, is_over: Rc::clone(&is_over) };
        let next = |work: &mut Change| {
            let mut request = Vec::new();
            work.next(&mut request).then(|| String::from_utf8(request).expect("text"))
        };
        for id in ["cs_1", "cs_2"] {
            assert!(next(&mut work).is_some_and(|request| request.starts_with("POST /v1/checkouts HTTP")));
            assert_eq!(work.answered(201, format!(r#"{{"data":{{"id":"{id}"}}}}"#).as_bytes()), Step::Done);
            let cancel = format!("POST /v1/checkouts/{id}/cancel HTTP");
            assert!(next(&mut work).is_some_and(|request| request.starts_with(&cancel)));
            assert_eq!(work.answered(200, b"{}"), Step::Done);
        }
        assert!(next(&mut work).is_some());
        assert_eq!(work.answered(429, b"{}"), Step::Failed);
        is_over.set(true);
        assert_eq!(next(&mut work), None);
    }

    #[test]
    fn an_id_is_found_without_reading_the_rest() {
        assert_eq!(text(br#"{"data":{"id":"cs_1","x":{"id":"no"}}}"#, "id"), Some("cs_1"));
        assert_eq!(text(b"{}", "id"), None);
    }
}
