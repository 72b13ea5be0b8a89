use jsonschema::Validator;

use super::*;

fn whole() -> Value {
    serde_json::from_str(&document_text()).expect("the text is JSON")
}

/// A schema of the document, with the components that it names.
fn validator(document: &Value, schema: &Value) -> Validator {
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema")
}

fn operations_of(document: &Value) -> impl Iterator<Item = &Value> {
    let places = [&document["paths"], &document["webhooks"]];
    places
        .into_iter()
        .filter_map(Value::as_object)
        .flatten()
        .filter_map(|(_, path)| path.as_object())
        .flatten()
        .map(|(_, it)| it)
}

/// Every body in the document: its schema and its examples.
fn bodies(document: &Value) -> Vec<(String, &Value, &Value)> {
    let mut bodies = Vec::new();
    for operation in operations_of(document) {
        let id = operation["operationId"].as_str().expect("an id");
        let answers = operation["responses"].as_object().into_iter().flatten();
        let body = [("request".to_owned(), &operation["requestBody"])];
        for (name, place) in answers.map(|(status, answer)| (status.clone(), answer)).chain(body) {
            bodies.push((format!("{id} {name}"), place));
        }
    }
    let shared = document["components"]["responses"].as_object().into_iter().flatten();
    bodies.extend(shared.map(|(name, answer)| (name.clone(), answer)));
    let with_content = bodies.into_iter().filter_map(|(name, place)| {
        let content = place.get("content")?.get("application/json")?;
        Some((name, &content["schema"], &content["examples"]))
    });
    with_content.collect()
}

#[test]
fn the_file_in_the_tree_is_fresh() {
    let kept = include_str!("../../../../../openapi.json");
    assert!(
        kept == document_text(),
        "openapi.json is stale; write it anew: cargo run -p dalasi -- openapi > openapi.json"
    );
}

#[test]
fn what_is_not_read_may_be_nothing() {
    let document = whole();
    for name in ["CreateCheckout", "CreateInvoice"] {
        let schema = &document["components"]["schemas"][name]["properties"]["items"];
        let items = validator(&document, schema);
        for ignored in [json!(null), json!("12.00"), json!(12)] {
            for field in ["amount", "total"] {
                let item = json!([{ "description": "Tea", "quantity": 1, "unit_price": "12.00", field: ignored }]);
                assert!(items.is_valid(&item), "{name}: {item}");
            }
        }
    }
}

#[test]
fn every_example_is_what_its_schema_says() {
    let document = whole();
    let mut seen = 0;
    for (name, schema, examples) in bodies(&document) {
        let validator = validator(&document, schema);
        let examples = examples.as_object().unwrap_or_else(|| panic!("{name} has no examples"));
        assert!(!examples.is_empty(), "{name} has no example");
        for (example, entry) in examples {
            let faults: Vec<String> = validator
                .iter_errors(&entry["value"])
                .map(|fault| format!("{fault} at {}", fault.instance_path()))
                .collect();
            assert!(faults.is_empty(), "{name}, example {example}: {faults:#?}");
            seen += 1;
        }
    }
    assert!(seen > 150, "only {seen} examples were looked at");
}

/// Contract §1.4: the published SDK sleeps it in full.
#[test]
fn who_asks_too_often_waits_five_seconds_at_most() {
    let document = whole();
    let mut seen = 0;
    for (name, answer) in document["components"]["responses"].as_object().expect("shared answers") {
        let longest = match &name[..] {
            _ if name.starts_with("TooManyRequests") => 5,
            _ if name.starts_with("Unavailable") => 10,
            _ => continue,
        };
        let header = answer["headers"]["Retry-After"]["$ref"].as_str().expect("it says when to come back");
        let header = document.pointer(header.trim_start_matches('#')).expect("a header");
        assert_eq!(
            (&header["schema"]["minimum"], &header["schema"]["maximum"]),
            (&json!(1), &json!(longest)),
            "{name}"
        );
        seen += 1;
    }
    assert!(seen > 3, "only {seen} answers were looked at");
}

#[test]
fn an_undeclared_field_is_a_fault_in_every_answer() {
    let document = whole();
    for (name, schema, examples) in bodies(&document) {
        if schema.to_string().contains("EventEnvelope") || schema.to_string().contains("KeySet") {
            continue;
        }
        let validator = validator(&document, schema);
        let mut planted =
            examples.as_object().and_then(|all| all.values().next()).expect("an example")["value"].clone();
        planted["planted"] = true.into();
        assert!(!validator.is_valid(&planted), "{name} takes an undeclared field");
        let data = &mut planted.as_object_mut().expect("an object");
        data.shift_remove("planted");
        let Some(data) = planted.get_mut("data").and_then(Value::as_object_mut) else { continue };
        data.insert("planted".into(), true.into());
        assert!(!validator.is_valid(&planted), "{name} takes an undeclared field in data");
    }
}

#[test]
fn a_secret_is_shown_by_its_operations_only() {
    let document = whole();
    for (name, schema, examples) in bodies(&document) {
        let shows = schema.to_string().contains("WithSecret");
        let expected = ["create_checkout 201", "create_webhook_endpoint 201", "rotate_webhook_secret 200"];
        assert_eq!(shows, expected.contains(&name.as_str()), "{name}");
        if name.ends_with("request") || shows {
            continue;
        }
        let text = examples.to_string();
        assert!(!text.contains("csec_") && !text.contains("whsec_"), "{name} shows a secret");
    }
}

#[test]
fn operations_say_all_that_a_reader_needs() {
    let document = whole();
    for path in document["paths"].as_object().into_iter().flatten().map(|(_, path)| path) {
        for (verb, operation) in path.as_object().into_iter().flatten() {
            let id = operation["operationId"].as_str().expect("an id");
            for key in ["summary", "description"] {
                assert!(operation[key].as_str().is_some_and(|text| text.len() > 4), "{id} has no {key}");
            }
            assert_eq!(operation["x-codeSamples"].as_array().map(Vec::len), Some(2), "{id}");
            assert!(!operation["x-codeSamples"].to_string().contains("{{"), "{id} has a placeholder left");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            assert!(
                parameters.iter().all(|it| it["description"].as_str().is_some_and(|text| !text.is_empty())),
                "{id}"
            );
            let takes_key = parameters.iter().any(|it| it["name"] == "Idempotency-Key");
            // Tokens are never stored.
            let ignores_key = id == "create_access_token";
            assert_eq!(takes_key, verb != "get" && !ignores_key, "{id} and its idempotency key");
        }
    }
}
