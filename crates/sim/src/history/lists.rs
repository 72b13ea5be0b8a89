//! Lists against a naive scan: every object of a side is read by its name, or where it has none that the model knows, as it is
//! stored; what of them a list has to show is decided here. The queries know nothing of the data; between two pages of a walk the
//! history goes on. What an invoice was paid with, which comes in one piece, is held against the receipts of all invoices.

use std::collections::BTreeSet;

use domain::Timestamp;
use domain::event::EventType;
use serde_json::{Value, json};

use super::answers::find;
use super::{Check, History, Object};
use crate::operation::Operation;
use crate::random::Dice;
use crate::world::SIDES;

const LISTS: [&str; 11] = [
    "/v1/checkouts",
    "/v1/pay/invoices",
    "/v1/pay/transactions",
    "/v1/pay/refunds",
    "/v1/pay/payment-links",
    "/v1/pay/customers",
    "/v1/pay/products",
    "/v1/pay/receipts",
    "/v1/webhook_endpoints",
    "/v1/events",
    "/v1/ledger/entries",
];

/// Of a list whose objects the model has no names for: name, what it may be asked for by, and when it was made.
const RECEIPTS: &str = "select id, invoice_id as value, created_at from receipts \
    where organization_id = $1 and mode = $2 order by id desc";
const ENDPOINTS: &str = "select id, status as value, created_at from webhook_endpoints \
    where organization_id = $1 and mode = $2 order by id desc";
const EVENTS: &str = "select id, type as value, created_at from events \
    where organization_id = $1 and mode = $2 order by id desc";
const ENTRIES: &str = "select entry_id as id, transaction_id as value, created_at from ledger_postings \
    where organization_id = $1 and mode = $2 and line = 1 order by entry_id desc";

/// Those that are asked for by when they were made.
const DATED: [&str; 5] =
    ["/v1/checkouts", "/v1/pay/invoices", "/v1/pay/transactions", "/v1/events", "/v1/ledger/entries"];
const DAY_US: i64 = 24 * 3600 * 1_000_000;
const WALKS: usize = 4;
/// Queries of one list at one moment.
const AT_ONCE: u64 = 4;

/// What is asked for, whatever there is.
#[derive(Debug, Clone)]
struct Query {
    side: usize,
    list: &'static str,
    filters: Vec<(&'static str, String)>,
    limit: usize,
}

/// A query that is read page by page.
#[derive(Debug, Clone)]
struct Walk {
    query: Query,
    after: Option<String>,
    seen: BTreeSet<String>,
}

impl History {
    /// How many pages were compared.
    pub(super) async fn listing(&mut self, operations: &[Operation], seed: u64) -> Result<u64, String> {
        let (mut dice, mut walks, mut pages) = (Dice::new(seed), Vec::new(), 0);
        for operation in operations {
            self.step(operation).await?;
            let query = self.a_query(&mut dice);
            let shown = self.scan(query.side, query.list).await?;
            for _ in 0..AT_ONCE {
                let filters = self.some_filters(query.list, &mut dice);
                let query = Query { filters, limit: a_limit(&mut dice), ..query.clone() };
                match dice.below(3) {
                    0 => {
                        let after = shown.get(dice.below(shown.len() as u64 + 1) as usize);
                        let after = after.map(|one| text(one, "id")).unwrap_or_else(|| a_name(query.list, &mut dice));
                        self.page(&query, &shown, Some(&after), 0).await?;
                        self.is_no_place(query.side, query.list, "no_name").await?;
                        let other = LISTS.into_iter().find(|list| *list != query.list).expect("there are several");
                        self.is_no_place(query.side, query.list, &a_name(other, &mut dice)).await?;
                    }
                    1 => drop(self.page(&query, &shown, None, dice.below(8) as usize).await?),
                    _ => drop(self.page(&query, &shown, None, 0).await?),
                }
                pages += 1;
            }
            if dice.one_in(8) {
                self.of_an_invoice(query.side, &mut dice).await?;
                pages += 2;
            }
            if walks.len() < WALKS {
                walks.push(Walk { query, after: None, seen: BTreeSet::new() });
            }
            let place = dice.below(walks.len() as u64) as usize;
            if self.goes_on(&mut walks[place]).await? {
                walks.swap_remove(place);
            }
            pages += 1;
        }
        Ok(pages)
    }

    /// One page further; whether it was the last.
    async fn goes_on(&mut self, walk: &mut Walk) -> Result<bool, String> {
        let shown = self.scan(walk.query.side, walk.query.list).await?;
        let names = self.page(&walk.query, &shown, walk.after.as_deref(), 0).await?;
        for name in &names {
            if !walk.seen.insert(name.clone()) {
                return Err(format!("{name} is on two pages of {:?}", walk.query));
            }
        }
        let is_last = names.len() < walk.query.limit;
        walk.after = names.last().cloned().or(walk.after.take());
        Ok(is_last)
    }

    fn a_query(&self, dice: &mut Dice) -> Query {
        let list = LISTS[dice.below(LISTS.len() as u64) as usize];
        let side = dice.below(SIDES as u64) as usize;
        Query { side, list, filters: self.some_filters(list, dice), limit: 1 + dice.below(3) as usize }
    }

    fn some_filters(&self, list: &str, dice: &mut Dice) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        let customers: Vec<&String> = self.sides.iter().flat_map(|side| side.customers.keys()).collect();
        let customer = dice.pick(&customers).map_or_else(|| "cus_nobody".to_owned(), |id| (*id).clone());
        let now = self.world.now();
        let mut moment = |is_day: bool| {
            let at = Timestamp::from_micros(now + DAY_US - dice.below(60 * DAY_US as u64) as i64).floor_to_second();
            if is_day { at.to_text()[..10].to_owned() } else { at.to_text() }
        };
        let days = [("start_date", moment(true)), ("end_date", moment(true))];
        let times = [("start_date", moment(false)), ("end_date", moment(false))];
        let of = |words: &[&str], dice: &mut Dice| dice.pick(words).copied().unwrap_or_default().to_owned();
        match list {
            "/v1/checkouts" => {
                all.push(("status", of(&["pending", "completed", "expired", "cancelled"], dice)));
                all.push(("reference", format!("r{}", dice.below(6))));
                all.push(("customer_id", customer));
            }
            "/v1/pay/invoices" => {
                let words =
                    ["draft", "pending", "partially_paid", "overdue", "paid", "cancelled", "open", "uncollectible"];
                all.push(("status", of(&words, dice)));
                all.push(("customer_id", customer));
                all.push(("number", format!("INV-2026-{}-000{}", 11 + dice.below(2), 1 + dice.below(6))));
            }
            "/v1/pay/transactions" => {
                let words = [
                    "pending",
                    "processing",
                    "completed",
                    "failed",
                    "cancelled",
                    "expired",
                    "refunded",
                    "partially_refunded",
                ];
                all.push(("status", of(&words, dice)));
            }
            "/v1/pay/refunds" => {
                all.push(("status", of(&["pending", "processing", "completed", "failed"], dice)));
            }
            "/v1/pay/payment-links" => all.push(("status", of(&["active", "inactive"], dice))),
            "/v1/pay/customers" => {
                let email = format!("c{}@shop.test", dice.below(6));
                all.push(("email", if dice.one_in(3) { email.to_uppercase() } else { email }));
            }
            "/v1/pay/products" => all.push(("active", of(&["true", "false"], dice))),
            "/v1/events" => {
                let kind = dice.pick(EventType::ALL).expect("there are several");
                all.push(("type", kind.as_str().to_owned()));
            }
            "/v1/ledger/entries" => {
                let attempts: Vec<&String> = self.sides.iter().flat_map(|side| side.attempts.keys()).collect();
                let attempt = dice.pick(&attempts).map_or_else(|| "txn_nobody".to_owned(), |id| (*id).clone());
                all.push(("transaction_id", attempt));
            }
            _ => {}
        }
        if DATED.contains(&list) {
            all.extend(if dice.one_in(2) { days } else { times });
        }
        all.retain(|_| dice.one_in(3));
        all
    }

    /// Every object of a list, newest first, as it is shown by its own name or as it is stored.
    async fn scan(&self, side: usize, list: &str) -> Result<Vec<Value>, String> {
        let of = &self.sides[side];
        match list {
            "/v1/pay/receipts" => return self.rows_of(side, RECEIPTS, "invoice_id").await,
            "/v1/webhook_endpoints" => return self.rows_of(side, ENDPOINTS, "status").await,
            "/v1/events" => return self.rows_of(side, EVENTS, "type").await,
            "/v1/ledger/entries" => return self.rows_of(side, ENTRIES, "transaction_id").await,
            _ => {}
        }
        let paths: Vec<String> = match list {
            "/v1/checkouts" => of.checkouts.keys().map(|id| Object::Checkout.path(id)).collect(),
            "/v1/pay/invoices" => of.invoices.keys().map(|id| Object::Invoice.path(id)).collect(),
            "/v1/pay/transactions" => of.attempts.keys().map(|id| Object::Transaction.path(id)).collect(),
            "/v1/pay/refunds" => of.refunds.keys().map(|id| Object::Refund.path(id)).collect(),
            "/v1/pay/payment-links" => of.links.keys().map(|id| Object::Link.path(id)).collect(),
            "/v1/pay/customers" => of.customers.keys().map(|id| format!("{list}/{id}")).collect(),
            _ => of.products.keys().map(|id| format!("{list}/{id}")).collect(),
        };
        self.shown_by_name(side, paths.iter().rev()).await
    }

    /// What `paths` show, but for those that name nothing any more.
    async fn shown_by_name(
        &self,
        side: usize,
        paths: impl Iterator<Item = impl AsRef<str>>,
    ) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        for path in paths {
            let path = path.as_ref();
            let answer = self.world.send(side, "GET", path, None, None).await.ok_or("a read was not answered")?;
            match answer.status {
                200 => all.push(answer.json()["data"].clone()),
                404 => {}
                status => return Err(format!("{path} is answered {status} {}", answer.body)),
            }
        }
        Ok(all)
    }

    /// The rows of a table, as a list would show them; what a row is `of` has this name there.
    async fn rows_of(&self, side: usize, sql: &'static str, of: &str) -> Result<Vec<Value>, String> {
        let scope = self.world.scopes[side];
        let rows = self.world.app.read(move |tx, _| {
            let mut rows: Vec<(String, String, i64)> = Vec::new();
            for row in tx.query(sql, &[scope.organization.to_string().into(), scope.mode.as_str().into()])? {
                rows.push((row.get("id")?, row.get("value")?, row.get("created_at")?));
            }
            Ok(rows)
        });
        let rows = rows.await.map_err(|failure| format!("what a list is of can't be read: {failure}"))?;
        let shown = |(id, value, made_at): (String, String, i64)| {
            let made_at = Timestamp::from_micros(made_at);
            // An entry alone prints microseconds.
            let made_at = if sql == ENTRIES { made_at.to_text_micros() } else { made_at.to_text() };
            json!({ "id": id, (of): value, "created_at": made_at })
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// The payments of an invoice and their receipts: what of all receipts names it.
    async fn of_an_invoice(&self, side: usize, dice: &mut Dice) -> Check {
        let invoices: Vec<&String> = self.sides[side].invoices.keys().collect();
        let Some(invoice) = dice.pick_recent(&invoices) else { return Ok(()) };
        let path = Object::Invoice.path(invoice);
        let receipts = self.rows_of(side, RECEIPTS, "invoice_id").await?;
        let paths = receipts.iter().map(|one| format!("/v1/pay/receipts/{}", text(one, "id")));
        let mut receipts = self.shown_by_name(side, paths).await?;
        receipts.retain(|one| text(one, "invoice_id") == **invoice);
        for (list, name) in [("receipts", "id"), ("payments", "invoice_payment_id")] {
            let path = format!("{path}/{list}");
            let sent = self.world.send(side, "GET", &path, None, None).await;
            let answer = sent.ok_or_else(|| format!("{path} was not answered"))?;
            let mut wanted: Vec<String> = receipts.iter().map(|one| text(one, name)).collect();
            wanted.sort();
            let data = answer.json()["data"].as_array().cloned().unwrap_or_default();
            let told = (answer.status, data.iter().map(|one| text(one, "id")).collect::<Vec<_>>());
            if told != (200, wanted.clone()) {
                return Err(format!("{path} should show {wanted:?}, and shows {told:?}"));
            }
        }
        Ok(())
    }

    /// The names on one page, which has to be that of the naive scan.
    async fn page(
        &self,
        query: &Query,
        shown: &[Value],
        after: Option<&str>,
        offset: usize,
    ) -> Result<Vec<String>, String> {
        let mut path = format!("{}?limit={}", query.list, query.limit);
        for (name, value) in &query.filters {
            path.push_str(&format!("&{name}={value}"));
        }
        match after {
            Some(after) => path.push_str(&format!("&after={after}")),
            None => path.push_str(&format!("&offset={offset}")),
        }
        let sent = self.world.send(query.side, "GET", &path, None, None).await;
        let answer = sent.ok_or_else(|| format!("{path} was not answered"))?;
        let matches = |one: &&Value| query.filters.iter().all(|(name, value)| is_within(one, name, value));
        let matching: Vec<String> = shown.iter().filter(matches).map(|one| text(one, "id")).collect();
        let rest = matching.iter().filter(|id| after.is_none_or(|after| id.as_str() < after)).skip(offset);
        let mut wanted: Vec<String> = rest.take(query.limit + 1).cloned().collect();
        let has_more = wanted.len() > query.limit;
        wanted.truncate(query.limit);

        let data = &answer.json()["data"];
        let items = data["items"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> = items.iter().map(|one| text(one, "id")).collect();
        let told = (answer.status, names.clone(), data["total"].as_u64(), data["count"].as_u64(), &data["has_more"]);
        let total = Some(matching.len() as u64);
        if told != (200, wanted.clone(), total, total, &Value::Bool(has_more)) {
            return Err(format!("{path} should show {wanted:?} of {total:?}, more: {has_more}, and shows {told:?}"));
        }
        Ok(names)
    }

    /// A list goes on behind one of its own, and behind nothing else.
    async fn is_no_place(&self, side: usize, list: &str, after: &str) -> Result<(), String> {
        let path = format!("{list}?after={after}");
        let sent = self.world.send(side, "GET", &path, None, None).await;
        let answer = sent.ok_or_else(|| format!("{path} was not answered"))?;
        let problem = answer.json();
        let told = (answer.status, text(&problem, "code"), text(&problem["details"][0], "field"));
        if told != (400, "validation_failed".into(), "after".into()) {
            return Err(format!("{path} should be refused, and is answered {told:?}"));
        }
        Ok(())
    }
}

/// As well-formed as those in the list, before or behind all of them.
fn a_name(list: &str, dice: &mut Dice) -> String {
    let prefix = match list {
        "/v1/checkouts" => "cs",
        "/v1/pay/invoices" => "inv",
        "/v1/pay/transactions" => "txn",
        "/v1/pay/refunds" => "ref",
        "/v1/pay/payment-links" => "pl",
        "/v1/pay/customers" => "cus",
        "/v1/pay/products" => "prod",
        "/v1/pay/receipts" => "rec",
        "/v1/webhook_endpoints" => "we",
        "/v1/events" => "evt",
        _ => "entry",
    };
    let place = if dice.one_in(2) { "01h455vb4pex5vsknk084sn02q" } else { "7zzzzzzzzzzzzzzzzzzzzzzzzz" };
    format!("{prefix}_{place}")
}

fn a_limit(dice: &mut Dice) -> usize {
    [1, 2, 3, 5, 10, 100][dice.below(6) as usize]
}

fn text(value: &Value, name: &str) -> String {
    find(value, name).as_str().unwrap_or_default().to_owned()
}

fn moment(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("a time as it is printed")
}

fn is_within(one: &Value, name: &str, value: &str) -> bool {
    let status = text(one, "status");
    match name {
        "status" if value == "open" => matches!(status.as_str(), "pending" | "partially_paid" | "overdue"),
        "status" => status == value,
        "number" => text(one, "invoice_number") == value,
        "email" => text(one, "email").to_lowercase() == value.to_lowercase(),
        "active" => find(one, "active") == (value == "true"),
        // A day has all its times. What prints whole seconds was made within the one that it prints, what prints microseconds
        // just then.
        "start_date" if value.len() == 10 => &text(one, "created_at")[..10] >= value,
        "start_date" => moment(&text(one, "created_at")) >= moment(value),
        "end_date" if value.len() == 10 => &text(one, "created_at")[..10] <= value,
        "end_date" => moment(&text(one, "created_at")) <= moment(value),
        _ => text(one, name) == value,
    }
}
