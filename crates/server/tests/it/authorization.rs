//! Every operation of `openapi.json`, by everything that could be sent as a credential, on an object of one's own, of
//! another merchant and of nobody. An operation without a row fails; so does a row that names none.

mod bodies;
mod credentials;
mod operations;
pub(crate) mod tenants;

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use domain::api_key::{Right, Rights};
use domain::{Mode, Scope};
use proof::Proof;
use serde_json::Value;

use credentials::{Credential, Is};
use operations::{Foreign, Row, Who};
use tenants::{Answered, MARK, Objects, Tenant, Tenants, request};

/// Whose object a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Own,
    Other,
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Success(u16),
    Refused(u16, &'static str),
    /// A list without what was asked for.
    NothingFound,
}

/// What the matrix had cells when this was written, or thereabouts: it only grows.
const CELLS: u64 = 30_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_matrix() {
    let mut proof = Proof::begin("D2", None, CELLS);
    let tenants = Tenants::new().await;
    let found = Matrix::new(&tenants).await.judge(|_| true).await;
    found.faults.iter().for_each(|fault| proof.violation(fault));
    tenants.end().await;
    // The negative control: one route that asks nobody who he is.
    let mut open = Tenants::new().await;
    open.router = open.router.layer(axum::middleware::from_fn(without_the_extractor));
    let control = Matrix::new(&open).await.judge(|row| row.operation == "get_balance").await;
    proof.control("a route without the extractor", !control.faults.is_empty());
    open.end().await;
    proof.finish(found.cells);
}

async fn without_the_extractor(request: Request, next: Next) -> axum::response::Response {
    match request.uri().path() {
        "/v1/payouts/balance" => (StatusCode::OK, r#"{"data":{}}"#).into_response(),
        _ => next.run(request).await,
    }
}

struct Found {
    cells: u64,
    faults: Vec<String>,
}

struct Matrix<'t> {
    tenants: &'t Tenants,
    credentials: Vec<Credential>,
    rows: Vec<Row>,
    /// Verb and path by operation.
    described: BTreeMap<String, (Method, String)>,
}

impl<'t> Matrix<'t> {
    async fn new(tenants: &'t Tenants) -> Self {
        let credentials = credentials::all(tenants).await;
        Self { tenants, credentials, rows: operations::rows(), described: described() }
    }

    async fn judge(&self, is_wanted: impl Fn(&Row) -> bool) -> Found {
        let named: BTreeSet<&str> = self.rows.iter().map(|row| row.operation).collect();
        let there: BTreeSet<&str> = self.described.keys().map(String::as_str).collect();
        assert_eq!(named, there, "an operation has a row, and a row an operation");
        let mut found = Found { cells: 0, faults: Vec::new() };
        for row in self.rows.iter().filter(|row| is_wanted(row)) {
            for credential in &self.credentials {
                let mut answers = Vec::new();
                for owner in [Owner::Own, Owner::Other, Owner::Nobody] {
                    let (answer, faults) = self.cell(row, credential, owner).await;
                    let of = |fault| format!("{} by {}, {owner:?}: {fault}", row.operation, credential.name);
                    found.faults.extend(faults.into_iter().map(of));
                    found.cells += 1;
                    answers.push(answer);
                }
                if row.foreign != Foreign::NotNamed && answers[1] != answers[2] {
                    let fault = format!("a foreign one answers\n  {}\nand an absent one\n  {}", answers[1], answers[2]);
                    found.faults.push(format!("{} by {}: {fault}", row.operation, credential.name));
                }
            }
        }
        found
    }

    /// One request; what it answered, without what differs in any case, and what is wrong with it.
    async fn cell(&self, row: &Row, credential: &Credential, owner: Owner) -> (String, Vec<String>) {
        let tenants = self.tenants;
        let (target, mut objects) = self.target(credential, owner);
        let expected = expected(row, credential, target);
        let is_success = matches!(expected, Expected::Success(_));
        // What names nobody's object is done with the caller's own.
        let owner = if row.foreign == Foreign::NotNamed { credential.scope() } else { target };
        let tenant = [&tenants.ours, &tenants.theirs].into_iter().find(|it| Some(it.scope) == owner);
        if is_success && let Some(tenant) = tenant {
            objects = tenants.renew(tenant, row.renewed).await;
        }
        let scope = credential.scope();
        let writes = self.described[row.operation].0 != Method::GET;
        let beyond = (is_success && writes).then(|| scope.map(|scope| tenants.beyond(scope)));
        let mut commits = tenants.commits();
        let mut answer = tenants.send(self.request(row, credential, &objects)).await;

        let may_write = is_success && (writes || row.operation.starts_with("download_"));
        // A write of the store's own, such as a checkpoint's, may fall on this moment; a request's comes each time.
        for _ in 0..2 {
            if !may_write && tenants.commits() != commits {
                commits = tenants.commits();
                answer = tenants.send(self.request(row, credential, &objects)).await;
            }
        }
        let mut faults = judge_answer(expected, &answer);
        if !may_write && tenants.commits() != commits {
            faults.push("something was written".into());
        }
        if let Some(before) = beyond
            && before != scope.map(|scope| tenants.beyond(scope))
        {
            faults.push("something of somebody else was written".into());
        }
        if row.who != Who::Anybody {
            faults.extend(self.leaks(scope, &objects, &answer));
        }
        if is_success
            && target.is_some()
            && target == scope
            && let Some(shown) = (row.shows)(&objects)
            && !answer.text().contains(&shown)
        {
            faults.push(format!("it does not show {shown}"));
        }
        (comparable(&answer, &objects), faults)
    }

    /// Whose they are, and what they are called.
    fn target(&self, credential: &Credential, owner: Owner) -> (Option<Scope>, Objects) {
        let Tenants { ours, theirs, .. } = self.tenants;
        let of = |tenant: &Tenant| (Some(tenant.scope), tenant.objects.clone());
        let (own, other) = if credential.scope() == Some(theirs.scope) { (theirs, ours) } else { (ours, theirs) };
        match owner {
            Owner::Own => of(own),
            // Numbers of receipts count up for each merchant: the first of ours is one of theirs as well.
            Owner::Other if other.scope == ours.scope => {
                let receipt_number = ours.objects.of_nobody().receipt_number;
                (Some(ours.scope), Objects { receipt_number, ..ours.objects.clone() })
            }
            Owner::Other => of(other),
            Owner::Nobody => (None, other.objects.of_nobody()),
        }
    }

    fn request(&self, row: &Row, credential: &Credential, objects: &Objects) -> axum::http::Request<Body> {
        let (method, template) = &self.described[row.operation];
        let name = (row.name)(objects);
        assert_eq!(name.is_empty(), !template.contains('{'), "{}: its path has a name or has none", row.operation);
        let mut path = match template.split_once('{') {
            Some((start, rest)) => format!("{start}{name}{}", rest.split_once('}').unwrap().1),
            None => template.clone(),
        };
        let queries: Vec<String> = [(row.query)(objects), credential.query.clone()].into_iter().flatten().collect();
        // A list refuses what it does not know, and only after it knows who asks.
        if !queries.is_empty() {
            path = format!("{path}?{}", queries.join("&"));
        }
        let mut request = request(method, &path, None, (row.body)(objects).as_ref());
        for (name, value) in &credential.headers {
            request.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        request
    }

    /// What others have, in an answer to a request that did not say it.
    fn leaks(&self, scope: Option<Scope>, said: &Objects, answer: &Answered) -> Vec<String> {
        let Tenants { ours, theirs, .. } = self.tenants;
        let text = answer.text();
        let mut leaks = Vec::new();
        for tenant in [ours, theirs].into_iter().filter(|tenant| Some(tenant.scope) != scope) {
            let foreign = tenant.objects.texts().into_iter().filter(|name| !name.starts_with("RCT-"));
            let leaked = foreign.filter(|name| text.contains(*name) && !said.texts().contains(name));
            leaks.extend(leaked.map(|name| format!("it shows {name}")));
        }
        if scope != Some(theirs.scope) && text.contains(MARK) {
            leaks.push(format!("it shows {MARK}"));
        }
        leaks
    }
}

/// Verb and path of each operation.
fn described() -> BTreeMap<String, (Method, String)> {
    let document: Value = serde_json::from_str(&dalasi::http::document_text()).unwrap();
    let mut described = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (verb, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            described.insert(id, (verb.to_uppercase().parse().unwrap(), path.clone()));
        }
    }
    described
}

impl Credential {
    fn scope(&self) -> Option<Scope> {
        match &self.is {
            Is::Nobody(_) => None,
            Is::Secret(scope, _) | Is::Token(scope, _) | Is::Publishable(scope) => Some(*scope),
        }
    }
}

fn expected(row: &Row, credential: &Credential, target: Option<Scope>) -> Expected {
    const SECRET: Expected = Expected::Refused(403, "secret_key_required");
    let narrow = |rights: &Rights, right: &str| !rights.contains(Right::parse(right).unwrap());
    const NARROW: Expected = Expected::Refused(403, "insufficient_scope");
    match (row.who, &credential.is) {
        (Who::Anybody, _) => return Expected::Success(row.success),
        (_, Is::Nobody(code)) => return Expected::Refused(401, code),
        (Who::SecretKey, Is::Secret(..)) => {}
        (Who::SecretKey, Is::Token(..) | Is::Publishable(_)) => return SECRET,
        (Who::Merchant(right) | Who::Page(right), Is::Secret(_, rights) | Is::Token(_, rights)) => {
            if narrow(rights, right) {
                return NARROW;
            }
        }
        (Who::Merchant(_), Is::Publishable(_)) => return SECRET,
        (Who::Page(_), Is::Publishable(_)) if row.needs_secret => return SECRET,
        (Who::Page(_), Is::Publishable(_)) => {}
    }
    let scope = credential.scope();
    let is_live = scope.is_some_and(|scope| scope.mode == Mode::Live);
    let success = Expected::Success(if is_live { row.success_in_live } else { row.success });
    match row.foreign {
        Foreign::NotNamed => success,
        _ if target == scope => success,
        // Without a rail nothing can be paid, whatever it names.
        Foreign::Refused(..) if is_live && row.success_in_live == 400 => {
            Expected::Refused(400, "no_payment_method_available")
        }
        Foreign::Refused(status, code) => Expected::Refused(status, code),
        Foreign::Nothing => Expected::NothingFound,
    }
}

fn judge_answer(expected: Expected, answer: &Answered) -> Vec<String> {
    let mut faults = Vec::new();
    let status = answer.status.as_u16();
    match expected {
        Expected::Success(wanted) => {
            if status != wanted {
                faults.push(format!("{wanted} expected: {status} {}", answer.text()));
            }
        }
        Expected::NothingFound => {
            if status != 200 {
                faults.push(format!("200 expected: {status} {}", answer.text()));
            }
        }
        Expected::Refused(wanted, code) => {
            let body = answer.json();
            if status != wanted || body["code"] != code || body.get("data").is_some() {
                faults.push(format!("{wanted} {code} expected: {status} {}", answer.text()));
            }
            let challenged = answer.headers.contains_key("www-authenticate");
            if challenged != (wanted == 401) {
                faults.push("WWW-Authenticate goes with 401, and with nothing else".into());
            }
        }
    }
    faults
}

/// Status, headers and body, without the request's id, the time and what the request itself said.
fn comparable(answer: &Answered, objects: &Objects) -> String {
    let mut body = answer.json();
    if let Some(record) = body.as_object_mut() {
        record.remove("request_id");
    }
    let mut names: Vec<&str> = answer.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let mut text = format!("{} {names:?} {body}", answer.status);
    for said in objects.texts().into_iter().filter(|name| !name.starts_with("RCT-")) {
        text = text.replace(said, "…");
    }
    if answer.status.is_success() && !body.to_string().contains("\"items\"") { answer.status.to_string() } else { text }
}
