//! The OpenAPI document, made from the routes themselves.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, SecurityRequirement,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::operations;

/// Every success: one key, `data`.
#[derive(Serialize, ToSchema)]
pub(super) struct Data<T: ToSchema> {
    data: T,
}

/// Every refusal and failure.
#[derive(Serialize, ToSchema)]
pub(super) struct Error {
    /// A sentence that says what to do.
    error: String,
    /// Stable: branch on this.
    code: String,
    /// Only for invalid requests: every fault at once.
    #[schema(required = false)]
    details: Option<Vec<ErrorDetail>>,
    #[schema(pattern = "^req_[0-9a-z]{26}$")]
    request_id: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    /// Where: `items[0].quantity`.
    field: String,
    code: String,
    message: String,
}

/// What any authenticated operation may answer beside its success.
pub(super) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let statuses = [
            ("400", "The request is invalid, or the object's state forbids it."),
            ("401", "No valid credential."),
            ("403", "The credential may not do this."),
            ("404", "Nothing here by that name."),
            ("408", "The body did not arrive in time."),
            ("413", "The body is too large."),
            ("415", "The body is not JSON."),
            ("429", "Too many requests, or the same idempotency key is still running."),
            ("500", "Something broke on our side."),
            ("503", "The service can't write right now."),
        ];
        let response = |description: &str| {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Error"))).build();
            RefOr::T(ResponseBuilder::new().description(description).content("application/json", content).build())
        };
        statuses.into_iter().map(|(status, description)| (status.to_owned(), response(description))).collect()
    }
}

/// The document as it is served at `/openapi.json` and kept in the tree.
pub fn document() -> OpenApi {
    let (_, mut document) = operations().split_for_parts();
    document.info = InfoBuilder::new()
        .title("Dalasi")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Payments for merchants in The Gambia and West Africa: checkout sessions, hosted pages, signed webhooks.",
        ))
        .license(Some(utoipa::openapi::LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .build();
    let components = document.components.get_or_insert_default();
    components.schemas.insert("Error".into(), Error::schema());
    components.schemas.insert("ErrorDetail".into(), ErrorDetail::schema());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key (`sk_test_…`) or an access token (JWT)."))
        .build();
    components.security_schemes.insert("bearer".into(), SecurityScheme::Http(bearer).into());
    document.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
    document
}
