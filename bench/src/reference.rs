//! Reference E: the least that a server of the same framework does for a request. And a receiver of webhooks.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::Result;

/// The body of [`crate::work::checkout_body`], typed.
#[derive(Deserialize)]
struct Asked {
    amount: String,
    currency: String,
    description: String,
    reference: String,
    customer_email: String,
    customer_name: String,
    success_url: String,
    failure_url: String,
    metadata: Metadata,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    cart: String,
    channel: String,
}

#[derive(Serialize)]
struct Answered {
    amount: String,
    currency: String,
    description: String,
    reference: String,
    customer_email: String,
    customer_name: String,
    success_url: String,
    failure_url: String,
    metadata: Metadata,
    padding: &'static str,
}

/// Fills the answer up to a kilobyte.
static PADDING: [u8; 560] = [b'.'; 560];

async fn answer(Json(asked): Json<Asked>) -> Response {
    let answered = Answered {
        amount: asked.amount,
        currency: asked.currency,
        description: asked.description,
        reference: asked.reference,
        customer_email: asked.customer_email,
        customer_name: asked.customer_name,
        success_url: asked.success_url,
        failure_url: asked.failure_url,
        metadata: asked.metadata,
        padding: std::str::from_utf8(&PADDING).unwrap_or_default(),
    };
    Json(answered).into_response()
}

/// What a receiver has got: all deliveries, and how many different ones.
#[derive(Default)]
struct Received {
    all: u64,
    different: HashSet<Vec<u8>>,
}

async fn receive(State(received): State<Arc<Mutex<Received>>>, headers: HeaderMap) -> StatusCode {
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    received.all += 1;
    if let Some(id) = headers.get("webhook-id") {
        received.different.insert(id.as_bytes().to_vec());
    }
    StatusCode::NO_CONTENT
}

async fn count(State(received): State<Arc<Mutex<Received>>>) -> Response {
    let received = received.lock().unwrap_or_else(PoisonError::into_inner);
    let body = format!(r#"{{"all":{},"different":{}}}"#, received.all, received.different.len());
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn never() -> StatusCode {
    std::future::pending().await
}

/// The connection ends in the middle of the answer.
async fn cut() -> Response {
    let parts = [Ok("half of an answer"), Err(std::io::Error::other("cut"))];
    let body = Body::from_stream(futures_util::stream::iter(parts));
    ([(header::CONTENT_LENGTH, "1000")], body).into_response()
}

pub(crate) fn echo() -> Result<()> {
    serve(Router::new().route("/echo", post(answer)))
}

pub(crate) fn sink() -> Result<()> {
    let router = Router::new()
        .route("/hook", post(receive))
        .route("/count", get(count))
        .route("/well", post(async || StatusCode::NO_CONTENT))
        .route("/broken", post(async || StatusCode::INTERNAL_SERVER_ERROR))
        .route("/cut", post(cut))
        .route("/dead", post(never));
    serve(router.with_state(Arc::default()))
}

/// As many threads as there are cores to run on, like the product.
fn serve(router: Router) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let served = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            println!("listening on http://{}", listener.local_addr()?);
            let listener = listener.tap_io(|stream| {
                // Without it a measurement would only be slower, and say so.
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await
        })
    });
    served.map_err(|error| format!("the reference broke: {error}"))
}
