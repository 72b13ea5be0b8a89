//! A refusal says what is wrong with a text, and never repeats one of any length: who sends a megabyte would get several back.

use axum::http::Method;
use serde_json::{Value, json};

use crate::authorization::tenants::{Objects, Tenants, request};

/// In bytes of the answer: a few faults, each told twice.
const LONGEST_REFUSAL: usize = 6_000;
/// More than that of one letter; and no more than fits an address.
const LONG: usize = 7_000;

#[tokio::test]
async fn no_refusal_repeats_a_long_text() {
    let tenants = Tenants::new().await;
    let document: Value = serde_json::from_str(&dalasi::http::document_text()).unwrap();
    let long = "x".repeat(LONG);
    let mut refused = 0;
    for (template, operations) in document["paths"].as_object().unwrap() {
        for (verb, operation) in operations.as_object().unwrap() {
            let method: Method = verb.to_uppercase().parse().unwrap();
            let path = named(template, &tenants.ours.objects);
            let of_body = fields(&document, operation).into_iter().flat_map(|field| bodies(&field, &long));
            let of_body = of_body.map(|body| (path.clone(), Some(body)));
            let of_query = parameters(operation).into_iter().map(|name| (format!("{path}?{name}={long}"), None));
            for (path, body) in of_body.chain(of_query) {
                let bearer = tenants.ours.key.text.expose();
                let answer = tenants.send(request(&method, &path, Some(bearer), body.as_ref())).await;
                if answer.status.is_client_error() {
                    refused += 1;
                    let length = answer.body.len();
                    let start: String = answer.text().chars().take(300).collect();
                    assert!(length <= LONGEST_REFUSAL, "{method} {template}: {length} bytes: {start}");
                }
            }
        }
    }
    assert!(refused > 300, "only {refused} were refused");
    tenants.end().await;
}

/// The path of an object of one's own, where it names one.
fn named(template: &str, objects: &Objects) -> String {
    let name = match template.split('/').nth(3) {
        Some("transactions") => &objects.transaction,
        Some("payment-links") => &objects.link,
        Some("customers") => &objects.customer,
        Some("products") => &objects.product,
        Some("invoices") => &objects.draft,
        _ => &objects.endpoint,
    };
    match template.split_once('{') {
        Some((start, rest)) => format!("{start}{name}{}", rest.split_once('}').unwrap().1),
        None => template.to_owned(),
    }
}

/// What the body of an operation may hold, and something that it may not.
fn fields(document: &Value, operation: &Value) -> Vec<String> {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let Some(name) = schema["$ref"].as_str() else { return Vec::new() };
    let name = name.rsplit('/').next().unwrap();
    let fields = document["components"]["schemas"][name]["properties"].as_object().unwrap();
    fields.keys().cloned().chain(["x".repeat(LONG)]).collect()
}

fn parameters(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let of_query = parameters.filter(|parameter| parameter["in"] == "query");
    of_query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
}

/// The text where a text may be expected, whatever is around it.
fn bodies(field: &str, long: &str) -> [Value; 5] {
    [
        json!({ field: long }),
        json!({ field: [long] }),
        json!({ field: { long: long } }),
        json!({ field: [{ long: long }] }),
        json!({ field: [{ "name": long, "type": long, "options": [long], "currency": long, "product_id": long }] }),
    ]
}
