//! Webhook endpoints, events and the envelope that is delivered.

use domain::Timestamp;
use domain::event::{Event, EventType};
use domain::scope::Mode;
use domain::webhook::{Attempted, Delivery, DeliveryStatus, WebhookEndpoint};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::words;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub struct EndpointView {
    #[schema(value_type = words::EndpointId)]
    pub id: String,
    #[schema(value_type = words::Url)]
    pub url: String,
    pub description: Option<String>,
    #[schema(value_type = words::ApiVersion)]
    pub api_version: String,
    #[schema(value_type = Vec<words::EventFilter>)]
    pub enabled_events: Vec<String>,
    #[schema(value_type = words::EndpointStatus)]
    pub status: String,
    /// Only in the answer to its creation and to a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::WebhookSecret>, required = false, nullable = false)]
    pub secret: Option<String>,
    #[schema(value_type = words::Metadata)]
    pub metadata: Box<RawValue>,
    #[schema(minimum = 0)]
    pub consecutive_failures: i64,
    #[schema(value_type = Option<words::Time>)]
    pub last_success_at: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub last_failure_at: Option<String>,
    #[schema(value_type = Option<words::Time>)]
    pub disabled_at: Option<String>,
    #[schema(value_type = Option<words::DisableReason>)]
    pub disable_reason: Option<String>,
    #[schema(value_type = words::Time)]
    pub created: String,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    #[schema(value_type = words::Time)]
    pub updated_at: String,
}

impl EndpointView {
    pub fn of(endpoint: &WebhookEndpoint) -> Self {
        let text = |at: Option<Timestamp>| at.map(Timestamp::to_text);
        Self {
            id: endpoint.id.to_string(),
            url: endpoint.url.clone(),
            description: endpoint.description.clone(),
            api_version: "v1".into(),
            enabled_events: endpoint.enabled_events.iter().map(|filter| filter.as_str().into()).collect(),
            status: endpoint.status.as_str().into(),
            secret: None,
            metadata: super::raw(&endpoint.metadata),
            consecutive_failures: endpoint.consecutive_failures,
            last_success_at: text(endpoint.last_success_at),
            last_failure_at: text(endpoint.last_failure_at),
            disabled_at: text(endpoint.disabled_at),
            disable_reason: endpoint.disable_reason.map(|reason| reason.as_str().into()),
            created: endpoint.created_at.to_text(),
            created_at: endpoint.created_at.to_text(),
            updated_at: endpoint.updated_at.to_text(),
        }
    }
}

/// What a receiver gets: a snapshot taken in the transaction of the change.
#[derive(Debug, Serialize)]
pub struct Envelope<'v, T> {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub api_version: &'static str,
    pub created_at: String,
    pub created: String,
    pub livemode: bool,
    pub object_id: &'v str,
    pub sequence: i64,
    pub data: &'v T,
}

/// The bytes that every attempt sends.
pub fn envelope<T: Serialize>(
    id: domain::Id<Event>,
    kind: EventType,
    mode: Mode,
    object_id: &str,
    sequence: i64,
    now: Timestamp,
    data: &T,
) -> String {
    let envelope = Envelope {
        id: id.to_string(),
        kind,
        api_version: "v1",
        created_at: now.to_text(),
        created: now.to_text(),
        livemode: mode.is_live(),
        object_id,
        sequence,
        data,
    };
    serde_json::to_string(&envelope).expect("views have nothing that JSON can't say")
}

#[derive(Deserialize)]
struct StoredEnvelope {
    data: Box<RawValue>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookEvent)]
pub struct EventView {
    #[schema(value_type = words::EventId)]
    pub id: String,
    #[serde(rename = "type")]
    #[schema(value_type = words::EventName)]
    pub kind: String,
    #[schema(value_type = words::Snapshot)]
    pub data: Box<RawValue>,
    /// Set when exactly one endpoint is owed the event.
    #[schema(value_type = Option<words::EndpointId>)]
    pub webhook_endpoint_id: Option<String>,
    #[schema(value_type = words::DeliveryStatus)]
    pub status: String,
    #[schema(minimum = 0)]
    pub attempts: i64,
    #[schema(value_type = Option<words::Time>)]
    pub next_retry_at: Option<String>,
    pub livemode: bool,
    pub object_id: String,
    #[schema(minimum = 1)]
    pub sequence: i64,
    #[schema(value_type = words::Time)]
    pub created_at: String,
    /// When any of its deliveries last changed.
    #[schema(value_type = words::Time)]
    pub updated_at: String,
    pub deliveries: Vec<DeliveryView>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    #[schema(value_type = words::EndpointId)]
    pub webhook_endpoint_id: String,
    #[schema(value_type = words::DeliveryStatus)]
    pub status: String,
    #[schema(minimum = 0)]
    pub attempts: i64,
    #[schema(value_type = Option<words::Time>)]
    pub next_retry_at: Option<String>,
    #[schema(minimum = 100, maximum = 999)]
    pub last_status_code: Option<i64>,
    pub last_error: Option<String>,
}

impl EventView {
    /// Unless its body is damaged.
    pub fn of(event: &Event, deliveries: &[Delivery]) -> Result<Self, store::Error> {
        let damaged = |fault| store::Error::Corrupt(format!("the body of {} is no envelope: {fault}", event.id));
        let stored: StoredEnvelope = serde_json::from_str(&event.body).map_err(damaged)?;
        let next_retry_at = deliveries.iter().filter_map(|delivery| delivery.next_retry_at).min();
        let changes = deliveries.iter().filter_map(|delivery| delivery.updated_at);
        let updated_at = changes.fold(event.created_at, Timestamp::max);
        let only = match deliveries {
            [only] => Some(only.endpoint.to_string()),
            _ => None,
        };
        Ok(Self {
            id: event.id.to_string(),
            kind: event.kind.as_str().into(),
            data: stored.data,
            webhook_endpoint_id: only,
            status: status(deliveries).as_str().into(),
            attempts: deliveries.iter().map(|delivery| delivery.attempts).sum(),
            next_retry_at: next_retry_at.map(Timestamp::to_text),
            livemode: event.scope.mode.is_live(),
            object_id: event.object_id.clone(),
            sequence: event.sequence,
            created_at: event.created_at.to_text(),
            updated_at: updated_at.to_text(),
            deliveries: deliveries.iter().map(DeliveryView::of).collect(),
        })
    }
}

/// Open as long as any delivery is; failed as soon as one was given up; an event that nobody asked for is delivered.
fn status(deliveries: &[Delivery]) -> DeliveryStatus {
    let any = |status| deliveries.iter().any(|delivery| delivery.status == status);
    if any(DeliveryStatus::Pending) {
        DeliveryStatus::Pending
    } else if any(DeliveryStatus::Failed) {
        DeliveryStatus::Failed
    } else {
        DeliveryStatus::Delivered
    }
}

impl DeliveryView {
    fn of(delivery: &Delivery) -> Self {
        Self {
            webhook_endpoint_id: delivery.endpoint.to_string(),
            status: delivery.status.as_str().into(),
            attempts: delivery.attempts,
            next_retry_at: delivery.next_retry_at.map(Timestamp::to_text),
            last_status_code: delivery.last_status_code,
            last_error: delivery.last_error.clone(),
        }
    }
}

impl TestResult {
    pub fn of(outcome: &Attempted, event_id: &str) -> Self {
        let (success, status_code, error) = match outcome {
            Attempted::Succeeded { status } => (true, Some(*status), None),
            Attempted::Failed { status, error, .. } => (false, *status, Some(error.clone())),
        };
        Self { success, status_code, event_id: event_id.to_owned(), error }
    }
}

/// What one attempt by the test operation brought.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TestResult {
    pub success: bool,
    #[schema(minimum = 100, maximum = 999)]
    pub status_code: Option<u16>,
    #[schema(value_type = words::EventId)]
    pub event_id: String,
    pub error: Option<String>,
}
