//! Makes the derived schemas exact: texts inline, nothing undeclared in any object, every nullable field of an answer
//! always there, and secrets only where they are shown.

use serde_json::{Map, Value, json};

type Schemas = Map<String, Value>;

/// Bodies of requests: there an optional field may be left out, in an answer it is null.
const REQUESTS: [&str; 4] = ["Create", "Update", "Initialize", "Retry"];

/// A view, the field that only some operations show, and the name of the view with it.
const SECRETS: [(&str, &str, &str); 2] =
    [("Checkout", "client_secret", "CheckoutWithSecret"), ("WebhookEndpoint", "secret", "WebhookEndpointWithSecret")];
const SHOWS_SECRET: [&str; 3] = ["create_checkout", "create_webhook_endpoint", "rotate_webhook_secret"];

pub(super) fn finish(paths: &mut Value, named: &mut Value) {
    let schemas = named.as_object_mut().expect("schemas stand by name");
    let simple: Schemas = schemas.iter().filter(|(_, schema)| is_simple(schema)).map(pair).collect();
    schemas.retain(|_, schema| !is_simple(schema));
    for schema in schemas.values_mut() {
        inline(schema, &simple);
    }
    inline(paths, &simple);
    let whole = schemas.clone();
    for (name, schema) in schemas.iter_mut() {
        merge(schema, &whole);
        close(schema, !REQUESTS.iter().any(|prefix| name.starts_with(prefix)));
    }
    unwrap_answers(paths, schemas);
    for (view, field, with_secret) in SECRETS {
        split_secret(schemas, view, field, with_secret);
    }
    show_secrets(paths);
    // An event's data has the checkout's fields without its secret.
    forget(schemas, "PaymentEventData", "client_secret");
    // It stands in each event's data.
    schemas.shift_remove("PaymentNames");
}

fn pair((name, schema): (&String, &Value)) -> (String, Value) {
    (name.clone(), schema.clone())
}

/// Neither an object with fields nor a choice of such.
fn is_simple(schema: &Value) -> bool {
    ["properties", "allOf", "oneOf"].iter().all(|key| schema.get(key).is_none())
}

fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")
}

/// Puts simple schemas where they are named; what stands beside the name goes before what the schema itself says.
fn inline(value: &mut Value, simple: &Schemas) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| inline(element, simple)),
        Value::Object(_) => {
            if let Some(schema) = reference(value).and_then(|name| simple.get(name)) {
                let mut whole = schema.clone();
                inline(&mut whole, simple);
                for (key, beside) in value.as_object().into_iter().flatten().filter(|(key, _)| *key != "$ref") {
                    whole[key] = beside.clone();
                }
                *value = whole;
                return;
            }
            value.as_object_mut().into_iter().flatten().for_each(|(_, child)| inline(child, simple));
            if let Some(folded) = nullable(value) {
                *value = folded;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `oneOf: [text, null]` as one text that may be null. What may be anything may be null already.
fn nullable(value: &Value) -> Option<Value> {
    let other = match value.get("oneOf")?.as_array()?.as_slice() {
        [null, other] | [other, null] if null["type"] == "null" && reference(other).is_none() => other,
        _ => return None,
    };
    let mut folded = other.clone();
    match other.get("type") {
        Some(kind) => folded["type"] = json!([kind.as_str()?, "null"]),
        None if ["oneOf", "anyOf", "allOf", "not", "enum", "const"].iter().all(|key| other.get(key).is_none()) => {}
        None => return None,
    }
    if let Some(words) = folded.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    for (key, beside) in value.as_object()?.iter().filter(|(key, _)| *key != "oneOf") {
        folded[key] = beside.clone();
    }
    Some(folded)
}

/// A flattened struct is `allOf`, which can't be closed: its parts become one object.
fn merge(schema: &mut Value, schemas: &Schemas) {
    let Some(parts) = schema.get("allOf").and_then(Value::as_array).cloned() else { return };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let mut part = reference(&part).and_then(|name| schemas.get(name)).unwrap_or(&part).clone();
        merge(&mut part, schemas);
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    let description = schema["description"].take();
    *schema = json!({ "type": "object", "description": description, "required": required, "properties": properties });
}

fn close(schema: &mut Value, is_answer: bool) {
    if let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        choices.iter_mut().for_each(|choice| close(choice, is_answer));
    }
    if let Some(items) = schema.get_mut("items") {
        close(items, is_answer);
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.values_mut().for_each(|property| close(property, is_answer));
    let nullable = |property: &Value| {
        property["type"].as_array().is_some_and(|kinds| kinds.contains(&"null".into()))
            || property["oneOf"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["type"] == "null"))
    };
    let always: Vec<String> =
        properties.iter().filter(|(_, property)| nullable(property)).map(|(name, _)| name.clone()).collect();
    let names: Vec<String> = properties.keys().cloned().collect();
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    if is_answer {
        required.extend(always.into_iter().map(Value::from));
    }
    let in_order: Vec<&String> = names.iter().filter(|name| required.contains(&name.as_str().into())).collect();
    if !in_order.is_empty() {
        schema["required"] = json!(in_order);
    }
    if schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = false.into();
    }
}

/// `Data_Checkout`, `Data_List_Checkout` and `Data_Vec_Checkout`, which hold whole copies, become an inline `{data}` around
/// `Checkout`, `CheckoutList` and an array of `Checkout`.
fn unwrap_answers(paths: &mut Value, schemas: &mut Schemas) {
    let wrapped: Vec<String> = schemas.keys().filter(|name| name.starts_with("Data_")).cloned().collect();
    let mut answers = Schemas::new();
    for wrapper in wrapped {
        let mut answer = schemas.shift_remove(&wrapper).expect("its name was just read");
        let data = &mut answer["properties"]["data"];
        *data = if let Some(of) = wrapper.strip_prefix("Data_List_") {
            let mut list = data.take();
            list["properties"]["items"] = array_of(of);
            let name = format!("{of}List");
            schemas.insert(name.clone(), list);
            named(&name)
        } else if let Some(of) = wrapper.strip_prefix("Data_Vec_") {
            array_of(of)
        } else {
            named(wrapper.trim_start_matches("Data_"))
        };
        answer.as_object_mut().expect("a schema").shift_remove("description");
        answers.insert(wrapper, answer);
    }
    inline(paths, &answers);
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn array_of(name: &str) -> Value {
    json!({ "type": "array", "items": named(name) })
}

fn split_secret(schemas: &mut Schemas, view: &str, field: &str, with_secret: &str) {
    let mut whole = schemas[view].clone();
    whole["required"].as_array_mut().expect("answers have required fields").push(field.into());
    let at = schemas.keys().position(|name| name == view).expect("the view is documented");
    schemas.shift_insert(at + 1, with_secret.to_owned(), whole);
    forget(schemas, view, field);
}

fn forget(schemas: &mut Schemas, name: &str, field: &str) {
    schemas[name]["properties"].as_object_mut().expect("an object").shift_remove(field);
}

fn show_secrets(paths: &mut Value) {
    let operations = paths.as_object_mut().into_iter().flatten();
    for operation in operations.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten().map(|(_, it)| it)) {
        if !SHOWS_SECRET.iter().any(|id| operation["operationId"] == *id) {
            continue;
        }
        for (_, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
            let data = &mut answer["content"]["application/json"]["schema"]["properties"]["data"];
            let shown = SECRETS.iter().find(|(view, ..)| *data == named(view));
            let (.., with_secret) = shown.expect("these operations answer with a view that has a secret");
            *data = named(with_secret);
        }
    }
}
