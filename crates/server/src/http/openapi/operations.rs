//! What is said of each operation beyond its annotation, in one table.

mod invoices;
mod refunds;

use domain::api_key::{Area, Right};
use domain::checkout::Checkout;
use domain::customer::Customer;
use domain::event::Event;
use domain::payment::PaymentSession;
use domain::payment_link::PaymentLink;
use domain::product::Product;
use domain::webhook::WebhookEndpoint;
use domain::{Currency, Money, Refusal};
use serde_json::{Map, Value, json};

use super::problems::{Access, Repeats, common, invalid, refused};
use super::{answers, examples, parameters, samples};
use crate::app::webhooks::MOST_ACTIVE;
use crate::fault::FaultCode;
use crate::http::answer::Problem;
use crate::http::payments;

struct Notes {
    access: Access,
    repeats: Repeats,
    about: &'static str,
    /// Its own, beside the common ones.
    problems: Vec<Problem>,
}

pub(super) fn finish(paths: &mut Value, components: &mut Value) {
    let mut shared = Map::new();
    for (_, operations) in paths.as_object_mut().into_iter().flatten() {
        for (_, operation) in operations.as_object_mut().into_iter().flatten() {
            let id = operation["operationId"].as_str().expect("operations have ids").to_owned();
            describe(operation, &id, &mut shared);
        }
    }
    components["responses"] = shared.into();
}

/// What many operations refuse alike goes to `shared`.
fn describe(operation: &mut Value, id: &str, shared: &mut Map<String, Value>) {
    let Notes { access, repeats, about, problems: own } = notes(id);
    let summary = operation["summary"].as_str().expect("handlers have a sentence").trim_end_matches('.').to_owned();
    operation["summary"] = summary.into();
    operation["description"] = format!("{about}{}", who(access)).into();
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    parameters.iter_mut().for_each(|parameter| parameters::describe(id, parameter));
    if repeats.takes_key() {
        parameters.push(parameters::idempotency_key());
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = operation.get_mut("requestBody") {
        body["required"] = (!matches!(id, "create_access_token" | "create_refund" | "retry_event")).into();
        body["content"]["application/json"]["examples"] = answers::named(examples::requests(id));
    }
    let is_open = access == Access::Open;
    let replays = repeats.takes_key();
    for answer in operation["responses"].as_object_mut().into_iter().flatten().map(|(_, answer)| answer) {
        answers::success(answer, !is_open, replays, examples::answers(id));
    }
    let mut problems = own;
    problems.extend(common(access, repeats));
    for (status, answer) in answers::refusals(&problems, !is_open, replays) {
        operation["responses"][status.to_string()] = match answers::shared_name(status, !is_open, replays) {
            None => answer,
            Some(name) => {
                let reference = json!({ "$ref": format!("#/components/responses/{name}") });
                shared.entry(name).or_insert(answer);
                reference
            }
        };
    }
    if matches!(id, "get_key_set" | "get_receipt_key_set") {
        let key_set = json!({ "$ref": "#/components/schemas/KeySet" });
        operation["responses"]["200"]["content"]["application/json"]["schema"] = key_set;
    }
    if let Some(file) = operation.pointer_mut("/responses/200/content/application~1pdf") {
        // Bytes: no schema can say more of them than their media type.
        *file = json!({});
    }
    operation["security"] = match access {
        Access::Open => json!([]),
        Access::SecretKey => json!([{ "secret_key": [] }]),
        Access::Merchant(_) => json!([{ "secret_key": [] }, { "access_token": [] }]),
        Access::Page(_) => json!([{ "secret_key": [] }, { "access_token": [] }, { "publishable_key": [] }]),
    };
    operation["x-codeSamples"] = samples::of(id);
    in_order(operation);
}

/// As a person reads: what it is, what goes in, what comes out.
fn in_order(operation: &mut Value) {
    const ORDER: [&str; 9] = [
        "tags",
        "operationId",
        "summary",
        "description",
        "security",
        "parameters",
        "requestBody",
        "responses",
        "x-codeSamples",
    ];
    let entries = operation.as_object_mut().expect("an operation is an object");
    for key in ORDER {
        if let Some(value) = entries.shift_remove(key) {
            entries.insert(key.to_owned(), value);
        }
    }
}

fn who(access: Access) -> String {
    match access {
        Access::Open => "\n\nNeeds no key.".into(),
        Access::SecretKey => "\n\nNeeds a secret key itself, not a token.".into(),
        Access::Merchant(right) => format!("\n\nNeeds the scope `{right}`."),
        Access::Page(right) => {
            format!(
                "\n\n**Publishable key welcome:** a page in the payer's browser may call this, from any origin. Other credentials need the scope `{right}`."
            )
        }
    }
}

fn notes(id: &str) -> Notes {
    let read = |area| Access::Merchant(Right::read(area));
    let write = |area| Access::Merchant(Right::write(area));
    let (checkouts, payments, webhooks) = (Area::Checkouts, Area::Payments, Area::Webhooks);
    let (customers, products) = (Area::Customers, Area::Products);
    let links = Area::PaymentLinks;
    let (access, repeats, about) = match id {
        "get_health" | "get_versioned_health" => {
            (Access::Open, Repeats::Harmless, "Reads from the store and answers `ok`. For load balancers and monitors.")
        }
        "get_invariants" => (
            Access::Open,
            Repeats::Harmless,
            "The background check reads the whole store now and then: the ledger's sum, postings against balances, state \
             machines, event sequences. This shows when it ran last, what it looked at and how many faults it found; \
             what they are stands in the log, and `dalasi verify` prints it.",
        ),
        "create_access_token" => (
            Access::SecretKey,
            Repeats::Repeat,
            "A token works wherever its key does, for a while and with the same scopes or fewer. It ends at once when \
             the key is revoked. Tokens are never stored, so `Idempotency-Key` is ignored here.",
        ),
        "get_key_set" => (
            Access::Open,
            Repeats::Harmless,
            "The public Ed25519 keys, by `kid`. A plain JSON Web Key Set, without the envelope of other answers.",
        ),
        "get_receipt_key_set" => (
            Access::Open,
            Repeats::Harmless,
            "Every public Ed25519 key that ever signed the statement in a receipt's QR code, the retired ones too: \
             receipts stay valid. Kept in a file, they let `dalasi receipt verify --keys` check receipts without a \
             network. A plain JSON Web Key Set, without the envelope of other answers.",
        ),
        "create_checkout" => (
            write(checkouts),
            Repeats::ByHeaderOrBody,
            "Give an `amount`, or `items` whose sum it is. Send the payer to `payment_url`; or pay it on a page of your \
             own with `client_secret`, which is in this answer only. Nothing is asked of a payment provider yet.",
        ),
        "list_checkouts" => (read(checkouts), Repeats::Harmless, "Newest first."),
        "get_checkout" => (
            read(checkouts),
            Repeats::Harmless,
            "`transaction` is the latest attempt to pay, null while there is none.",
        ),
        "cancel_checkout" => (
            write(checkouts),
            Repeats::ByHeader,
            "Only while it is pending. If the payment provider confirms money that was already on its way, the \
             checkout stays cancelled, the money is credited and `payment.succeeded` says `late: true`.",
        ),
        "initialize_payment" => (
            Access::Page(Right::write(payments)),
            Repeats::ByHeaderOrBody,
            "Name what is paid by `object_type` and `object_id`, a checkout also by its `client_secret`; or continue a \
             `session_id`. Checkouts and invoices have one open session at a time; a payment link opens a new one for every \
             call without a `session_id`. What the payer does next is in `next_action`: go to a page, approve on the phone, or give a code, which \
             you send in a second call with `session_id` and `customer_pin`. A browser with a publishable key names the \
             checkout by its secret or its session, and begins ten attempts in ten minutes at most: further ones are \
             answered 429 here, and 303 on its page, which then says so in words.",
        ),
        "get_payment_status" => (
            Access::Page(Right::read(payments)),
            Repeats::Harmless,
            "For polling. A status `processing` may last: the provider has it, and its outcome is being asked for.",
        ),
        "get_payment_session" => {
            (Access::Page(Right::read(payments)), Repeats::Harmless, "All of it, with the next action.")
        }
        "list_payment_methods" => (
            Access::Page(Right::read(payments)),
            Repeats::Harmless,
            "Those that a payment provider stands behind in this mode, and which of them you have enabled.",
        ),
        "get_payment_dashboard" => (read(payments), Repeats::Harmless, "Of the mode of the key, in GMD."),
        "update_payment_settings" => (
            write(payments),
            Repeats::ByHeader,
            "Only what is given changes. Test and live mode have settings of their own.",
        ),
        "create_customer" => (
            write(customers),
            Repeats::ByHeader,
            "Answers the customer who has this e-mail address, else the one who has this phone, unchanged and with 200; \
             a new one with 201 where there is neither. Addresses are compared without their case.",
        ),
        "list_customers" => (read(customers), Repeats::Harmless, "Newest first."),
        "get_customer" => (read(customers), Repeats::Harmless, "As it was stored last."),
        "update_customer" => (
            write(customers),
            Repeats::ByHeader,
            "Only what is given changes; an e-mail address or a phone remains. Objects that name the customer keep the \
             copies that they have.",
        ),
        "delete_customer" => (
            write(customers),
            Repeats::ByHeader,
            "Nobody finds it any more, and its e-mail address and phone are free again. Objects that name it keep their \
             copies.",
        ),
        "create_product" => (
            write(products),
            Repeats::ByHeader,
            "A line of a checkout names it by `product_id` and takes its name and price.",
        ),
        "list_products" => (read(products), Repeats::Harmless, "Newest first."),
        "get_product" => (read(products), Repeats::Harmless, "As it was stored last."),
        "update_product" => (
            write(products),
            Repeats::ByHeader,
            "Only what is given changes. Lines that were made before keep their name and price.",
        ),
        "delete_product" => (
            write(products),
            Repeats::ByHeader,
            "Nobody finds it any more. Lines that name it keep their name and price.",
        ),
        "create_payment_link" => (
            write(links),
            Repeats::ByHeader,
            "One address that many people pay. Each payment is a session of its own: open it on the link's page, or with \
             `POST /v1/pay/initialize`, `object_type: payment_link` and the link's id. With `max_usage_count`, an attempt \
             keeps its use from the moment it is handed to the payment provider until its outcome is known, and for an \
             hour at most where the payer does not come back.",
        ),
        "list_payment_links" => (read(links), Repeats::Harmless, "Newest first, without those that were deleted."),
        "get_payment_link" => (
            read(links),
            Repeats::Harmless,
            "`usage_count` counts the payments that were completed. An expired or used up link is `inactive`.",
        ),
        "update_payment_link" => (
            write(links),
            Repeats::ByHeader,
            "Only what is given changes; amount and currency never do. `status: active` is refused while the link is expired \
             or used up; move the date or raise the maximum in the same request.",
        ),
        "delete_payment_link" => (
            write(links),
            Repeats::ByHeader,
            "Nobody finds it any more. A payment that is under way is still settled and counted.",
        ),
        "list_ledger_accounts" => (
            read(Area::Transactions),
            Repeats::Harmless,
            "Debits and credits of every account, sealed or not. `rail_clearing:…` is what a payment provider holds for \
             you, `merchant` what you are owed, `fees` what was kept of it, `unapplied` money that came twice.",
        ),
        "list_ledger_entries" => (read(Area::Transactions), Repeats::Harmless, "Newest first."),
        "get_ledger_proof" => (
            read(Area::Transactions),
            Repeats::Harmless,
            "Entries are sealed within seconds: a batch has the root of a hash tree over its entries (RFC 6962) in a \
             signed statement that names the one before. Save this answer, or the whole from `dalasi ledger export`, \
             and check it without us: `dalasi ledger verify FILE --keys KEYS`. `not_covered` says what it does not prove.",
        ),
        "create_webhook_endpoint" => (
            write(webhooks),
            Repeats::ByHeader,
            "Events of the key's mode are sent there from now on, with the objects that they tell of, whatever else the key \
             may read. Keep `secret`: it verifies the signatures and is in this answer only.",
        ),
        "list_webhook_endpoints" => (read(webhooks), Repeats::Harmless, "Newest first."),
        "get_webhook_endpoint" => (
            read(webhooks),
            Repeats::Harmless,
            "After five days of nothing but failures an endpoint is made inactive; `disable_reason` says so.",
        ),
        "update_webhook_endpoint" => (write(webhooks), Repeats::ByHeader, "Only what is given changes."),
        "put_webhook_endpoint" | "patch_webhook_endpoint" => {
            (write(webhooks), Repeats::ByHeader, "Only what is given changes, whichever verb is used.")
        }
        "delete_webhook_endpoint" => (
            write(webhooks),
            Repeats::ByHeader,
            "Nothing is sent there any more; deliveries that were still owed are given up.",
        ),
        "test_webhook_endpoint" => (
            write(webhooks),
            Repeats::ByHeader,
            "Sends one signed `webhook.test` and answers what came back. It is not tried again and not listed among \
             the events.",
        ),
        "rotate_webhook_secret" => (
            write(webhooks),
            Repeats::ByHeader,
            "For 24 hours deliveries carry a signature by the secret that was replaced, too, so that you can change over \
             in peace. Whoever replaces it again meanwhile has a signature by each, up to five: the oldest and the \
             newest. `X-Jokoor-Signature`, which holds one, is by the oldest of them.",
        ),
        "list_events" => (
            read(webhooks),
            Repeats::Harmless,
            "Newest first. With `order=asc`, the log in its order: keep the last id and ask for what came `after` it. `data` \
             is there of objects of every kind, whatever else the key may read.",
        ),
        "get_event" => (
            read(webhooks),
            Repeats::Harmless,
            "`data` is the object as it was when the event happened, of whatever kind.",
        ),
        "retry_event" => (
            write(webhooks),
            Repeats::ByHeader,
            "The same bytes with the same id, to every active endpoint that was owed it or wants it now, or to one of them by \
             `webhook_endpoint_id`.",
        ),
        other => invoices::about(other)
            .or_else(|| refunds::about(other))
            .unwrap_or_else(|| unreachable!("operation {other} is not described")),
    };
    Notes { access, repeats, about, problems: problems(id) }
}

/// What only this operation refuses.
fn problems(id: &str) -> Vec<Problem> {
    let remaining = Money::new(10_000, Currency::gmd());
    let no_link = || refused(Refusal::not_found::<PaymentLink>());
    let no_endpoint = || refused(Refusal::not_found::<WebhookEndpoint>());
    let no_customer = || refused(Refusal::not_found::<Customer>());
    let no_product = || refused(Refusal::not_found::<Product>());
    match id {
        "create_access_token" => vec![invalid(&[
            ("expires_in", FaultCode::OutOfRange, "`expires_in` must be between 60 and 86400."),
            ("scope", FaultCode::NotAllowed, "`scope` must be a part of the key's own scopes."),
        ])],
        "create_checkout" => vec![
            invalid(&[
                (
                    "amount",
                    FaultCode::AmountMustBeString,
                    "`amount` must be a string such as \"100.00\"; you sent a number.",
                ),
                ("expires_in", FaultCode::OutOfRange, "`expires_in` must be between 60 and 86400."),
            ]),
            refused(Refusal::NoPaymentProvider),
            Problem::card_data_not_allowed("description"),
        ],
        "list_checkouts"
        | "list_customers"
        | "list_products"
        | "list_ledger_entries"
        | "list_webhook_endpoints"
        | "list_events" => {
            vec![in_list()]
        }
        "create_customer" => vec![
            invalid(&[
                ("email", FaultCode::Required, "Either `email` or `phone` is required."),
                ("name", FaultCode::TooShort, "`name` must not be empty."),
            ]),
            Problem::card_data_not_allowed("name"),
        ],
        "get_customer" => vec![no_customer()],
        "update_customer" => vec![
            invalid(&[(
                "email",
                FaultCode::Conflict,
                "`email` belongs to another customer of yours; use that one, or change it first.",
            )]),
            Problem::card_data_not_allowed("name"),
            no_customer(),
        ],
        "delete_customer" => vec![unexpected_body(), no_customer()],
        "create_product" | "update_product" => {
            let mut problems = vec![
                invalid(&[
                    ("price", FaultCode::AmountNotPositive, "`price` must be greater than zero."),
                    (
                        "is_active",
                        FaultCode::Conflict,
                        "`is_active` is another name of `active`, and they differ; send one of them.",
                    ),
                ]),
                Problem::card_data_not_allowed("description"),
            ];
            if id == "update_product" {
                problems.push(no_product());
            }
            problems
        }
        "get_product" => vec![no_product()],
        "delete_product" => vec![unexpected_body(), no_product()],

        "get_ledger_proof" => {
            vec![invalid(&[("transaction_id", FaultCode::NotFound, "`transaction_id` names no transaction of yours.")])]
        }
        "get_checkout" => vec![refused(Refusal::not_found::<Checkout>())],
        "cancel_checkout" => vec![
            unexpected_body(),
            refused(Refusal::CheckoutAlreadyCompleted),
            refused(Refusal::CheckoutAlreadyCancelled),
            refused(Refusal::CheckoutExpired),
            refused(Refusal::not_found::<Checkout>()),
        ],
        "initialize_payment" => vec![
            invalid(&[("client_secret", FaultCode::NotFound, "`client_secret` names nothing that can be paid here.")]),
            refused(Refusal::PaymentInProgress),
            refused(Refusal::PaymentAlreadySucceeded),
            refused(Refusal::PaymentSessionClosed),
            refused(Refusal::PaymentMethodFixed { method: "wave" }),
            refused(Refusal::CodeNotExpected),
            refused(Refusal::NoPaymentMethodAvailable { currency: Currency::gmd(), could_be_enabled: true }),
            refused(Refusal::CheckoutAlreadyCompleted),
            refused(Refusal::CheckoutAlreadyCancelled),
            refused(Refusal::CheckoutExpired),
            refused(Refusal::InvoiceIsDraft),
            refused(Refusal::InvoiceAlreadyPaid),
            refused(Refusal::InvoiceAlreadyCancelled),
            refused(Refusal::InvoiceOverpayment { remaining }),
            refused(Refusal::PartialPaymentNotAllowed { remaining }),
            refused(Refusal::PaymentLinkInactive),
            refused(Refusal::not_found::<PaymentLink>()),
            Problem::card_data_not_allowed("customer_name"),
            payments::other_name_needs_secret_key(),
        ],
        "get_payment_status" | "get_payment_session" => vec![refused(Refusal::not_found::<PaymentSession>())],
        "update_payment_settings" => vec![
            invalid(&[("enabled_methods", FaultCode::TooShort, "`enabled_methods` must name at least one method.")]),
            Problem::card_data_not_allowed("address"),
        ],
        "create_payment_link" => vec![
            invalid(&[
                ("title", FaultCode::Required, "`title` is required; send it with a value."),
                ("min_amount", FaultCode::OutOfRange, "`min_amount` must not be above `max_amount`."),
            ]),
            refused(Refusal::NoPaymentProvider),
            Problem::card_data_not_allowed("title"),
        ],
        "list_payment_links" => vec![in_list()],
        "get_payment_link" => vec![no_link()],
        "update_payment_link" => vec![
            invalid(&[(
                "amount",
                FaultCode::NotAllowed,
                "`amount` of a payment link can't change; create another link.",
            )]),
            refused(Refusal::PaymentLinkExpired),
            refused(Refusal::PaymentLinkUsedUp),
            Problem::card_data_not_allowed("title"),
            no_link(),
        ],
        "delete_payment_link" => vec![unexpected_body(), no_link()],
        "create_webhook_endpoint" => vec![
            invalid(&[
                (
                    "url",
                    FaultCode::NotAllowed,
                    "`url` leads to a private or reserved address; webhooks go to public ones.",
                ),
                (
                    "enabled_events[0]",
                    FaultCode::InvalidEnum,
                    "\"payment.success\" is no event type, `<resource>.*` or `*`.",
                ),
            ]),
            Problem::card_data_not_allowed("description"),
            refused(Refusal::TooManyActiveEndpoints { most: MOST_ACTIVE }),
        ],
        "get_webhook_endpoint" => vec![no_endpoint()],
        "update_webhook_endpoint" | "put_webhook_endpoint" | "patch_webhook_endpoint" => vec![
            invalid(&[("url", FaultCode::WrongType, "`url` must not be null; leave it out to keep it.")]),
            Problem::card_data_not_allowed("description"),
            refused(Refusal::TooManyActiveEndpoints { most: MOST_ACTIVE }),
            no_endpoint(),
        ],
        "delete_webhook_endpoint" | "test_webhook_endpoint" | "rotate_webhook_secret" => {
            vec![unexpected_body(), no_endpoint()]
        }
        "get_event" => vec![refused(Refusal::not_found::<Event>())],
        "retry_event" => {
            let unknown = "`webhook_endpoint_id` names no webhook endpoint of yours.";
            vec![
                invalid(&[("webhook_endpoint_id", FaultCode::NotFound, unknown)]),
                refused(Refusal::NoActiveEndpoint),
                refused(Refusal::not_found::<Event>()),
            ]
        }
        other => invoices::problems(other).or_else(|| refunds::problems(other)).unwrap_or_default(),
    }
}

fn in_list() -> Problem {
    let unknown = "`colour` is not a parameter of this list; check its spelling or leave it out.";
    invalid(&[
        ("limit", FaultCode::OutOfRange, "`limit` must be 1 or more."),
        ("colour", FaultCode::UnknownField, unknown),
    ])
}

/// Of an operation that takes none.
fn unexpected_body() -> Problem {
    let message = "`reason` is not a field of this request; check its spelling or leave it out.";
    invalid(&[("reason", FaultCode::UnknownField, message)])
}
