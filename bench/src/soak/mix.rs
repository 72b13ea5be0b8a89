//! What a shop's server asks all day: it makes checkouts, has some of them paid, and looks what became of them.

use crate::load::{Step, Work};
use crate::work::{Caller, Ids, checkout_body, mix, text};

/// So many ids are looked at again.
const KNOWN: usize = 10_000;

pub(crate) struct Mix {
    caller: Caller,
    ids: Ids,
    body: String,
    asked: Asked,
}

enum Asked {
    Nothing,
    Create {
        pays: bool,
    },
    /// With the secret of a checkout that was made for it.
    Pay(Option<String>),
    Look,
}

impl Mix {
    pub(crate) fn new(caller: Caller, ids: Ids) -> Self {
        Self { caller, ids, body: String::new(), asked: Asked::Nothing }
    }

    fn create(&mut self, pays: bool, request: &mut Vec<u8>) {
        checkout_body(self.caller.number(), &mut self.body);
        self.caller.write("POST", "/v1/checkouts", &self.body, request);
        self.asked = Asked::Create { pays };
    }

    fn keep(&mut self, id: &str) {
        let mut ids = self.ids.borrow_mut();
        match ids.len() {
            KNOWN => {
                let place = mix(self.caller.number()) as usize % KNOWN;
                id.clone_into(&mut ids[place]);
            }
            _ => ids.push(id.to_owned()),
        }
    }
}

impl Work for Mix {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        if let Asked::Pay(client_secret) = &mut self.asked
            && let Some(client_secret) = client_secret.take()
        {
            self.caller.write("POST", "/v1/pay/initialize", &payment(&client_secret, "+2207000000"), request);
            return true;
        }
        let known = match self.ids.borrow().as_slice() {
            [] => None,
            ids => Some(ids[mix(self.caller.number()) as usize % ids.len()].clone()),
        };
        match (self.caller.number() % 20, known) {
            (0..=2, _) => self.create(true, request),
            (3..=8, _) | (_, None) => self.create(false, request),
            (9, _) => {
                self.caller.get("/v1/checkouts?limit=20", request);
                self.asked = Asked::Look;
            }
            (_, Some(id)) => {
                self.caller.get(&format!("/v1/checkouts/{id}"), request);
                self.asked = Asked::Look;
            }
        }
        true
    }

    fn answered(&mut self, status: u16, body: &[u8]) -> Step {
        match self.asked {
            Asked::Create { pays } if status == 201 => {
                if let Some(id) = text(body, "id") {
                    self.keep(id);
                }
                if !pays {
                    return Step::Done;
                }
                let Some(client_secret) = text(body, "client_secret") else { return Step::Failed };
                self.asked = Asked::Pay(Some(client_secret.to_owned()));
                Step::More
            }
            Asked::Pay(_) | Asked::Look if status == 200 => Step::Done,
            Asked::Nothing | Asked::Create { .. } | Asked::Pay(_) | Asked::Look => Step::Failed,
        }
    }
}

/// By a phone that is as its last digits say.
pub(crate) fn payment(client_secret: &str, phone: &str) -> String {
    format!(r#"{{"client_secret":"{client_secret}","payment_method":"afrimoney","customer_phone":"{phone}"}}"#)
}
