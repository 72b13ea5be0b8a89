//! What merchants do: checkouts, invoices, links, customers, products, refunds, and the same request twice.

use serde_json::{Value, json};

use super::{Check, History, Kept, Object, compare, expect, id_of};
use crate::model::{Change, Customer, NewInvoice, Product, SECOND, Side, text};
use crate::random::Dice;

const DAY: i64 = 24 * 3600 * SECOND;
/// In ten-thousandths of a percent, and as it is sent.
const TAX_RATES: [(i64, &str); 6] =
    [(0, "0"), (25_000, "2.5"), (150_000, "15"), (72_500, "7.25"), (1, "0.0001"), (333_333, "33.3333")];
const OFFLINE: [&str; 5] = ["cash", "bank_transfer", "check", "western_union", "other"];

/// Small, odd and large sums.
fn sum(dice: &mut Dice) -> i64 {
    match dice.below(4) {
        0 => 1 + dice.below(40) as i64,
        1 => 100 * (1 + dice.below(2_000) as i64),
        _ => 1 + dice.below(500_000) as i64,
    }
}

fn lines(dice: &mut Dice) -> (Vec<(i64, i64)>, Value) {
    let count = 1 + dice.below(3);
    let lines: Vec<(i64, i64)> = (0..count).map(|_| (1 + dice.below(5) as i64, 1 + sum(dice))).collect();
    let items = lines
        .iter()
        .map(|(quantity, price)| json!({"description": "Thing", "quantity": quantity, "unit_price": text(*price)}));
    let items = Value::Array(items.collect());
    (lines, items)
}

fn instant(us: i64) -> String {
    domain::Timestamp::from_micros(us).to_text_micros()
}

impl History {
    pub(super) async fn create_checkout(&mut self) -> Check {
        let side = self.side_at_random();
        let lasts_s = [60, 90, 600, 3600, 86_400][self.dice.below(5) as usize];
        let reference = format!("r{}", self.dice.below(5));
        let mut body = json!({"expires_in": lasts_s, "reference": reference});
        let mut amount = sum(&mut self.dice);
        let mut predicted = Ok(());
        let owner = if self.dice.one_in(10) { self.side_at_random() } else { side };
        let products: Vec<String> = self.sides[owner].products.keys().cloned().collect();
        match self.dice.pick_recent(&products).cloned() {
            Some(id) if self.dice.one_in(4) => {
                let (quantity, product) = (1 + self.dice.below(4) as i64, &self.sides[owner].products[&id]);
                if owner != side || product.is_deleted || !product.is_active {
                    predicted = Err("validation_failed");
                }
                amount = quantity * product.price;
                body["items"] = json!([{"product_id": id, "quantity": quantity}]);
            }
            _ => body["amount"] = json!(text(amount)),
        }
        let owner = if self.dice.one_in(10) { self.side_at_random() } else { side };
        let customers: Vec<String> = self.sides[owner].customers.keys().cloned().collect();
        if let Some(id) = self.dice.pick_recent(&customers).cloned()
            && self.dice.one_in(5)
        {
            if owner != side || self.sides[owner].customers[&id].is_deleted {
                predicted = Err("validation_failed");
            }
            body["customer_id"] = json!(id);
        }
        let fixed = if self.dice.one_in(5) { self.dice.pick(&["wave", "qmoney", "card"]).copied() } else { None };
        if let Some(method) = fixed {
            body["payment_method"] = json!(method);
        }
        let now = self.world.now();
        let answer = self.write(side, "POST", "/v1/checkouts", Some(body)).await?;
        expect(&answer, predicted, 201)?;
        if predicted.is_err() {
            return Ok(());
        }
        let id = id_of(&answer);
        let session = answer.json()["data"]["payment_session_id"].as_str().map(str::to_owned);
        if session.is_some() != fixed.is_some() {
            return Err(format!("a fixed method opens a session at once, and no other: {}", answer.body));
        }
        if self.sides.iter().any(|side| side.checkouts.contains_key(&id)) {
            return Err(format!("{id} was made twice"));
        }
        self.sides[side].create_checkout(&id, amount, lasts_s, fixed, session.as_deref(), reference, now);
        let fields = self.sides[side].checkout_fields(&id, now).expect("it was just made");
        self.touched = Some((side, Object::Checkout, id));
        compare(&answer, &fields)
    }

    pub(super) async fn cancel_checkout(&mut self) -> Check {
        let side = self.side_at_random();
        match self.some_id(side, Object::Checkout) {
            Some(id) => self.cancel_checkout_of(side, &id).await,
            None => Ok(()),
        }
    }

    pub(super) async fn cancel_checkout_of(&mut self, side: usize, id: &str) -> Check {
        let predicted = self.sides[side].cancel_checkout(id, self.world.now());
        let answer = self.write(side, "POST", &format!("/v1/checkouts/{id}/cancel"), None).await?;
        self.touched = Some((side, Object::Checkout, id.to_owned()));
        expect(&answer, predicted, 200)
    }

    pub(super) async fn create_invoice(&mut self) -> Check {
        let side = self.side_at_random();
        let now = self.world.now();
        let (lines, items) = lines(&mut self.dice);
        let (tax_rate, sent) = TAX_RATES[self.dice.below(6) as usize];
        let due_at = now + [-DAY, 60 * SECOND, 3600 * SECOND, 3 * DAY][self.dice.below(4) as usize];
        let is_draft = self.dice.one_in(2);
        let email = format!("c{}@shop.test", self.dice.below(4));
        let tax: Value = serde_json::from_str(sent).expect("a rate is a number");
        let body = json!({"customer_email": email, "customer_name": "Awa", "due_date": instant(due_at), "items": items,
            "tax_rate": tax, "is_draft": is_draft});
        let answer = self.write(side, "POST", "/v1/pay/invoices", Some(body)).await?;
        expect(&answer, Ok(()), 201)?;
        let id = id_of(&answer);
        let customer = answer.json()["data"]["customer_id"].as_str().unwrap_or_default().to_owned();
        self.know_customer(side, &customer, &email)?;
        let new = NewInvoice { lines, tax_rate, due_at, is_draft };
        self.sides[side].create_invoice(&id, new, &instant(now)[..7], now);
        self.shows_invoice(side, id, &answer)
    }

    fn shows_invoice(&mut self, side: usize, id: String, answer: &crate::world::Answer) -> Check {
        let fields = self.sides[side].invoice_fields(&id, self.world.now()).expect("it is there");
        self.touched = Some((side, Object::Invoice, id));
        compare(answer, &fields)
    }

    /// One customer for an e-mail address.
    fn know_customer(&mut self, side: usize, id: &str, email: &str) -> Check {
        match self.sides[side].customer_by_email(email) {
            Some(known) if known == id => {}
            Some(known) => return Err(format!("{email} is {known}, and not {id}")),
            None if self.sides.iter().any(|side| side.customers.contains_key(id)) => {
                return Err(format!("{id} is somebody else, or deleted"));
            }
            None => {
                let customer = Customer { email: email.to_owned(), name: String::new(), is_deleted: false };
                self.sides[side].customers.insert(id.to_owned(), customer);
            }
        }
        Ok(())
    }

    pub(super) async fn finalize_invoice(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Invoice) else { return Ok(()) };
        let predicted = self.sides[side].finalize_invoice(&id, self.world.now());
        let answer = self.write(side, "POST", &format!("/v1/pay/invoices/{id}/finalize"), None).await?;
        expect(&answer, predicted, 200)?;
        if predicted.is_ok() { self.shows_invoice(side, id, &answer) } else { Ok(()) }
    }

    pub(super) async fn update_invoice(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Invoice) else { return Ok(()) };
        let now = self.world.now();
        let (mut change, mut body) = (Change::default(), json!({}));
        if self.dice.one_in(2) {
            let notes = format!("note {}", self.dice.below(3));
            body["notes"] = json!(notes);
            change.notes = Some(notes);
        }
        if self.dice.one_in(3) {
            let (lines, items) = lines(&mut self.dice);
            body["items"] = items;
            change.lines = Some(lines);
        }
        if self.dice.one_in(3) {
            let (rate, sent) = TAX_RATES[self.dice.below(6) as usize];
            body["tax_rate"] = serde_json::from_str(sent).expect("a rate is a number");
            change.tax_rate = Some(rate);
        }
        if self.dice.one_in(3) {
            let due_at = now + [-DAY, 60 * SECOND, 3 * DAY][self.dice.below(3) as usize];
            body["due_date"] = json!(instant(due_at));
            change.due_at = Some(due_at);
        }
        if self.dice.one_in(3) {
            let known = self.sides[side].invoices[&id].revision;
            let based_on = if self.dice.one_in(3) { (known - 1).max(1) } else { known };
            body["version"] = json!(based_on);
            change.based_on = Some(based_on);
        }
        let predicted = self.sides[side].update_invoice(&id, change, now);
        let answer = self.write(side, "PUT", &format!("/v1/pay/invoices/{id}"), Some(body)).await?;
        expect(&answer, predicted, 200)?;
        if predicted.is_ok() { self.shows_invoice(side, id, &answer) } else { Ok(()) }
    }

    pub(super) async fn send_invoice(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Invoice) else { return Ok(()) };
        let predicted = self.sides[side].send_invoice(&id, self.world.now());
        let answer = self.write(side, "POST", &format!("/v1/pay/invoices/{id}/send"), None).await?;
        expect(&answer, predicted, 200)
    }

    pub(super) async fn cancel_invoice(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Invoice) else { return Ok(()) };
        let predicted = self.sides[side].cancel_invoice(&id, self.world.now());
        let answer = self.write(side, "POST", &format!("/v1/pay/invoices/{id}/cancel"), None).await?;
        expect(&answer, predicted, 200)?;
        if predicted.is_ok() { self.shows_invoice(side, id, &answer) } else { Ok(()) }
    }

    pub(super) async fn record_payment(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Invoice) else { return Ok(()) };
        let now = self.world.now();
        let left = self.sides[side].invoices[&id].total() - self.sides[side].invoices[&id].paid;
        let amount = match self.dice.below(3) {
            0 => left.max(1),
            _ => 1 + self.dice.below((left + left / 20 + 1) as u64) as i64,
        };
        let method = OFFLINE[self.dice.below(5) as usize];
        let predicted = self.sides[side].refuse_recording(&id, amount, now);
        let body = json!({"amount": text(amount), "payment_method": method});
        let answer = self.write(side, "POST", &format!("/v1/pay/invoices/{id}/payments"), Some(body)).await?;
        expect(&answer, predicted, 201)?;
        if predicted.is_err() {
            return Ok(());
        }
        let transaction = self.recorded(side, &id).await?;
        self.sides[side].record_payment(&id, amount, method, &transaction, &instant(now)[..4], now);
        self.shows_invoice(side, id, &answer)
    }

    /// The transaction that nobody knew yet among an invoice's payments.
    async fn recorded(&mut self, side: usize, invoice: &str) -> Result<String, String> {
        let answer = self.read(side, &format!("/v1/pay/invoices/{invoice}/payments")).await?;
        let payments = answer.json()["data"].as_array().cloned().unwrap_or_default();
        let ids = payments.iter().filter_map(|payment| payment["transaction_id"].as_str());
        let new: Vec<&str> = ids.filter(|id| !self.sides[side].attempts.contains_key(*id)).collect();
        match new[..] {
            [id] => Ok(id.to_owned()),
            _ => Err(format!("one payment of {invoice} is new: {}", answer.body)),
        }
    }

    pub(super) async fn create_link(&mut self) -> Check {
        let side = self.side_at_random();
        let now = self.world.now();
        let amount = sum(&mut self.dice);
        let expires_at =
            (!self.dice.one_in(2)).then(|| now - now % SECOND + (60 + self.dice.below(7_200) as i64) * SECOND);
        let most = self.dice.one_in(2).then(|| 1 + self.dice.below(3) as i64);
        let mut body = json!({"title": "Concert", "amount": text(amount)});
        if let Some(at) = expires_at {
            body["expiration_date"] = json!(instant(at));
        }
        if let Some(most) = most {
            body["max_usage_count"] = json!(most);
        }
        let answer = self.write(side, "POST", "/v1/pay/payment-links", Some(body)).await?;
        expect(&answer, Ok(()), 201)?;
        let id = id_of(&answer);
        let created_at = now - now % SECOND;
        self.sides[side].create_link(&id, "Concert", amount, expires_at, most, created_at);
        self.shows_link(side, id, &answer)
    }

    fn shows_link(&mut self, side: usize, id: String, answer: &crate::world::Answer) -> Check {
        let fields = self.sides[side].link_fields(&id, self.world.now()).expect("it is there");
        self.touched = Some((side, Object::Link, id));
        compare(answer, &fields)
    }

    pub(super) async fn update_link(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Link) else { return Ok(()) };
        let mut body = json!({});
        let title = self.dice.one_in(2).then(|| format!("Concert {}", self.dice.below(3)));
        if let Some(title) = &title {
            body["title"] = json!(title);
        }
        let is_active = self.sides[side].links[&id].is_active;
        let status = [None, Some(true), Some(false), Some(!is_active)][self.dice.below(4) as usize];
        if let Some(is_active) = status {
            body["status"] = json!(if is_active { "active" } else { "inactive" });
        }
        let predicted = self.sides[side].update_link(&id, title, status, self.world.now());
        let answer = self.write(side, "PUT", &format!("/v1/pay/payment-links/{id}"), Some(body)).await?;
        expect(&answer, predicted, 200)?;
        if predicted.is_ok() { self.shows_link(side, id, &answer) } else { Ok(()) }
    }

    pub(super) async fn delete_link(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_id(side, Object::Link) else { return Ok(()) };
        let predicted = self.sides[side].delete_link(&id, self.world.now());
        let answer = self.write(side, "DELETE", &format!("/v1/pay/payment-links/{id}"), None).await?;
        self.touched = Some((side, Object::Link, id));
        expect(&answer, predicted, 204)
    }

    pub(super) async fn create_customer(&mut self) -> Check {
        let side = self.side_at_random();
        let email = format!("c{}@shop.test", self.dice.below(4));
        let is_known = self.sides[side].customer_by_email(&email).is_some();
        let answer = self.write(side, "POST", "/v1/pay/customers", Some(json!({"email": email}))).await?;
        expect(&answer, Ok(()), if is_known { 200 } else { 201 })?;
        self.know_customer(side, &id_of(&answer), &email)
    }

    pub(super) async fn delete_customer(&mut self) -> Check {
        let side = self.side_at_random();
        let customers: Vec<String> = self.sides[side].customers.keys().cloned().collect();
        let Some(id) = self.dice.pick_recent(&customers).cloned() else { return Ok(()) };
        let was_deleted = self.sides[side].customers[&id].is_deleted;
        let path = format!("/v1/pay/customers/{id}");
        if self.dice.one_in(2)
            && let Some(other) = self.other_than(side)
        {
            let answer = self.write(other, "DELETE", &path, None).await?;
            expect(&answer, Err("customer_not_found"), 204)?;
        }
        let answer = self.write(side, "DELETE", &path, None).await?;
        expect(&answer, if was_deleted { Err("customer_not_found") } else { Ok(()) }, 204)?;
        self.sides[side].customers.get_mut(&id).expect("it was picked").is_deleted = true;
        let answer = self.read(side, &path).await?;
        expect(&answer, Err("customer_not_found"), 200)
    }

    pub(super) async fn create_product(&mut self) -> Check {
        let side = self.side_at_random();
        let price = sum(&mut self.dice);
        let body = json!({"name": "Book", "price": text(price)});
        let answer = self.write(side, "POST", "/v1/pay/products", Some(body)).await?;
        expect(&answer, Ok(()), 201)?;
        let product = Product { price, is_active: true, is_deleted: false };
        self.sides[side].products.insert(id_of(&answer), product);
        compare(&answer, &vec![("price", json!(text(price))), ("active", json!(true))])
    }

    fn some_product(&mut self, side: usize) -> Option<String> {
        let products: Vec<String> = self.sides[side].products.keys().cloned().collect();
        self.dice.pick_recent(&products).cloned()
    }

    pub(super) async fn update_product(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_product(side) else { return Ok(()) };
        let (price, is_active) = (sum(&mut self.dice), !self.dice.one_in(3));
        let body = json!({"price": text(price), "active": is_active});
        let was_deleted = self.sides[side].products[&id].is_deleted;
        let answer = self.write(side, "PUT", &format!("/v1/pay/products/{id}"), Some(body)).await?;
        expect(&answer, if was_deleted { Err("product_not_found") } else { Ok(()) }, 200)?;
        if !was_deleted {
            let product = self.sides[side].products.get_mut(&id).expect("it was picked");
            (product.price, product.is_active) = (price, is_active);
            compare(&answer, &vec![("price", json!(text(price))), ("active", json!(is_active))])?;
        }
        Ok(())
    }

    pub(super) async fn delete_product(&mut self) -> Check {
        let side = self.side_at_random();
        let Some(id) = self.some_product(side) else { return Ok(()) };
        let was_deleted = self.sides[side].products[&id].is_deleted;
        let answer = self.write(side, "DELETE", &format!("/v1/pay/products/{id}"), None).await?;
        expect(&answer, if was_deleted { Err("product_not_found") } else { Ok(()) }, 204)?;
        self.sides[side].products.get_mut(&id).expect("it was picked").is_deleted = true;
        Ok(())
    }

    pub(super) async fn refund(&mut self) -> Check {
        let side = self.side_at_random();
        let came = |side: &Side, id: &str| side.attempts[id].state == crate::model::AttemptState::Completed;
        let paid: Vec<String> =
            self.sides[side].attempts.keys().filter(|id| came(&self.sides[side], id)).cloned().collect();
        let picked = match self.dice.one_in(6) {
            true => self.some_id(side, Object::Transaction),
            false => self.dice.pick_recent(&paid).cloned(),
        };
        let Some(transaction) = picked else { return Ok(()) };
        let whole = self.sides[side].attempts[&transaction].amount;
        let amount = match self.dice.below(4) {
            0 => None,
            1 => Some(whole),
            _ => Some(1 + self.dice.below(whole as u64) as i64),
        };
        let body = amount.map_or_else(|| json!({}), |amount| json!({"amount": text(amount)}));
        let predicted = self.sides[side].refuse_refund(&transaction, amount);
        let path = format!("/v1/pay/transactions/{transaction}/refund");
        let answer = self.write(side, "POST", &path, Some(body)).await?;
        expect(&answer, predicted.map(drop), 201)?;
        let Ok(amount) = predicted else { return Ok(()) };
        let id = id_of(&answer);
        self.sides[side].ask_refund(&id, &transaction, amount);
        let fields = self.sides[side].refund_fields(&id).expect("it was just made");
        let object = if self.dice.one_in(2) { (Object::Refund, id) } else { (Object::Transaction, transaction) };
        self.touched = Some((side, object.0, object.1));
        compare(&answer, &fields)
    }

    /// A request whose key is still known.
    fn some_kept(&mut self) -> Option<Kept> {
        let oldest = self.world.now() - 29 * DAY;
        if !self.is_apart() {
            return self.dice.pick_recent(&self.kept).cloned().filter(|kept| kept.at > oldest);
        }
        let acting = self.acting();
        let kept: Vec<&Kept> = self.kept.iter().filter(|kept| acting.contains(&kept.side)).collect();
        self.dice.pick_recent(&kept).map(|kept| (*kept).clone()).filter(|kept| kept.at > oldest)
    }

    /// The same request once more: the same answer, byte for byte, and nothing done.
    pub(super) async fn replay(&mut self) -> Check {
        let Some(kept) = self.some_kept() else { return Ok(()) };
        let sent = self.world.send(kept.side, kept.verb, &kept.path, kept.body.as_ref(), Some(&kept.key)).await;
        let again = sent.ok_or("a replay was not answered")?;
        self.note_answer(&again);
        if !again.is_replayed || (again.status, &again.body) != (kept.answer.status, &kept.answer.body) {
            return Err(format!("{} {} answered {again:?} and before {:?}", kept.verb, kept.path, kept.answer));
        }
        Ok(())
    }

    /// Another request with the same key.
    pub(super) async fn reuse_key(&mut self) -> Check {
        let Some(kept) = self.some_kept() else { return Ok(()) };
        let body = json!({"amount": "1.23", "reference": "reuse"});
        let sent = self.world.send(kept.side, "POST", "/v1/checkouts", Some(&body), Some(&kept.key)).await;
        let answer = sent.ok_or("a reused key was not answered")?;
        self.note_answer(&answer);
        expect(&answer, Err("idempotency_key_reused"), 200)?;
        // The key of somebody else is another key: nothing of theirs is told.
        let Some(other) = self.other_than(kept.side) else { return Ok(()) };
        let Some(id) = self.some_id(kept.side, Object::Checkout) else { return Ok(()) };
        if !self.shared.insert((other, kept.key.clone())) {
            return Ok(());
        }
        let path = format!("/v1/checkouts/{id}/cancel");
        let sent = self.world.send(other, "POST", &path, None, Some(&kept.key)).await;
        let answer = sent.ok_or("a key of two was not answered")?;
        expect(&answer, Err("checkout_not_found"), 200)
    }
}
