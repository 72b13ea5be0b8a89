//! Somebody who knows the names, the keys and the references of others, and tries them: each request has to be answered as
//! if what it names were not there.

use serde_json::{Value, json};

use super::{Check, History, Object};
use crate::random::Dice;
use crate::world::Answer;

type Guess = (&'static str, String, Option<Value>);

/// Stands for the guessed name.
const NAME: &str = "{name}";

impl History {
    pub(super) async fn attack(&mut self, seed: u64) -> Check {
        self.dice = Dice::new(seed);
        self.world.entropy.reseed(seed);
        let (acting, waiting) = (self.acting(), self.waiting());
        let (Some(side), Some(victim)) = (self.dice.pick(&acting).copied(), self.dice.pick(&waiting).copied()) else {
            return Ok(());
        };
        let (names, guesses) = self.guesses(victim);
        let Some(name) = self.dice.pick_recent(&names).cloned() else { return Ok(()) };
        let Some((verb, path, body)) = self.dice.pick(&guesses).cloned() else { return Ok(()) };
        let key = self.new_key(side);
        let guessed = self.try_name(side, (verb, &path, &body), &name, &key).await?;
        let absent = another(&name);
        let unknown = self.try_name(side, (verb, &path, &body), &absent, &format!("{key}-")).await?;
        match told(&guessed, &name) == told(&unknown, &absent) {
            true => Ok(()),
            false => Err(format!(
                "{verb} {path} with {name}, which is somebody else's, is answered {guessed:?}, and with a name of nothing \
                {unknown:?}"
            )),
        }
    }

    async fn try_name(
        &self,
        side: usize,
        (verb, path, body): (&str, &str, &Option<Value>),
        name: &str,
        key: &str,
    ) -> Result<Answer, String> {
        let body: Option<Value> = body
            .as_ref()
            .map(|body| body.to_string().replace(NAME, name))
            .map(|text| serde_json::from_str(&text).expect("a name changes nothing about it"));
        let sent = self.world.send(side, verb, &path.replace(NAME, name), body.as_ref(), Some(key)).await;
        sent.ok_or_else(|| format!("{verb} {path} was not answered"))
    }

    /// Names of one kind that the victim has, and what can be asked about one.
    fn guesses(&mut self, victim: usize) -> (Vec<String>, Vec<Guess>) {
        let pay = |object: &str| {
            let body = json!({"object_type": object, "object_id": NAME, "payment_method": "wave"});
            ("POST", "/v1/pay/initialize".to_owned(), Some(body))
        };
        let get = |path: &str| ("GET", path.to_owned(), None);
        let post = |path: &str, body: Value| ("POST", path.to_owned(), Some(body));
        let put = |path: &str, body: Value| ("PUT", path.to_owned(), Some(body));
        let delete = |path: &str| ("DELETE", path.to_owned(), None);
        match self.dice.below(8) {
            0 => (
                self.ids(victim, Object::Checkout),
                vec![
                    get("/v1/checkouts/{name}"),
                    post("/v1/checkouts/{name}/cancel", json!({})),
                    post("/v1/checkouts/{name}/cancel", json!({})),
                    pay("checkout"),
                ],
            ),
            1 => (
                self.ids(victim, Object::Invoice),
                vec![
                    get("/v1/pay/invoices/{name}"),
                    get("/v1/pay/invoices/{name}/payments"),
                    put("/v1/pay/invoices/{name}", json!({"notes": "mine now"})),
                    post("/v1/pay/invoices/{name}/finalize", json!({})),
                    post("/v1/pay/invoices/{name}/cancel", json!({})),
                    post("/v1/pay/invoices/{name}/payments", json!({"amount": "0.01", "payment_method": "cash"})),
                    pay("invoice"),
                ],
            ),
            2 => (
                self.ids(victim, Object::Link),
                vec![
                    get("/v1/pay/payment-links/{name}"),
                    put("/v1/pay/payment-links/{name}", json!({"status": "inactive"})),
                    delete("/v1/pay/payment-links/{name}"),
                    pay("payment_link"),
                ],
            ),
            3 => (
                self.ids(victim, Object::Session),
                vec![
                    get("/v1/pay/session/{name}"),
                    post("/v1/pay/initialize", json!({"session_id": NAME, "customer_pin": "123456"})),
                    post("/v1/pay/initialize", json!({"session_id": NAME, "payment_method": "card"})),
                ],
            ),
            4 => (
                self.ids(victim, Object::Transaction),
                vec![
                    get("/v1/pay/transactions/{name}"),
                    post("/v1/pay/transactions/{name}/refund", json!({})),
                    post("/v1/pay/transactions/{name}/refund", json!({"amount": "0.01"})),
                ],
            ),
            5 => (self.ids(victim, Object::Refund), vec![get("/v1/pay/refunds/{name}")]),
            6 => (
                self.sides[victim].customers.keys().cloned().collect(),
                vec![
                    get("/v1/pay/customers/{name}"),
                    put("/v1/pay/customers/{name}", json!({"name": "Mine"})),
                    delete("/v1/pay/customers/{name}"),
                    get("/v1/checkouts?customer_id={name}"),
                    get("/v1/pay/invoices?customer_id={name}"),
                    post("/v1/checkouts", json!({"amount": "1.00", "customer_id": NAME})),
                ],
            ),
            _ => (
                self.sides[victim].products.keys().cloned().collect(),
                vec![
                    get("/v1/pay/products/{name}"),
                    put("/v1/pay/products/{name}", json!({"price": "0.01"})),
                    delete("/v1/pay/products/{name}"),
                    post("/v1/checkouts", json!({"items": [{"product_id": NAME, "quantity": 1}]})),
                ],
            ),
        }
    }
}

/// A name of the same kind and time that nothing has.
fn another(name: &str) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let place = letters.len() - 4;
    letters[place] = if letters[place] == 'z' { 'y' } else { 'z' };
    letters.into_iter().collect()
}

/// What an answer says, whatever was asked for and whoever asked when.
fn told(answer: &Answer, name: &str) -> (u16, String) {
    let mut json = answer.json();
    if let Some(json) = json.as_object_mut() {
        json.remove("request_id");
    }
    (answer.status, json.to_string().replace(name, NAME))
}
