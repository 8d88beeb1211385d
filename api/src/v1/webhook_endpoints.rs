//! Webhook endpoints: making, changing, testing and removing them, and their
//! secrets.

use std::sync::Arc;
use std::time::Duration;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::db::OrFault;
use waypost_core::event::EventType;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::WebhookEndpointId;
use waypost_core::issue::Issue;
use waypost_core::webhook::endpoint::{
    EndpointChange, GRACE_DEFAULT, GRACE_MAX, SecretRotation, TestOutcome, WantedEndpoint,
    WebhookEndpoint,
};
use waypost_core::webhook::secret::SigningSecret;
use waypost_core::webhook::store;
use waypost_core::webhook::url::WebhookUrl;

use crate::auth::Caller;
use crate::body::{JsonBody, OTHER_BYTES_MAX};
use crate::context::Context;
use crate::error::Failure;
use crate::fields::{self, Whole};
use crate::idempotency::{KeyHeader, answer, created};
use crate::ids::PathId;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::validate::{Field, Settable, Validated, problem};

pub(crate) struct WebhookEndpointsApi {
    pub(crate) context: Arc<Context>,
}

/// A URL that events are posted to.
#[derive(Debug, Object)]
#[oai(rename = "WebhookEndpoint", rename_all = "camelCase")]
struct EndpointView {
    id: Uuid,
    organization_id: Uuid,
    url: String,
    /// The types of events that it is told of.
    events: Vec<String>,
    /// Whether it is told of events.
    is_active: bool,
    /// Since when every call has failed; null while it works. After five days the
    /// endpoint is switched off.
    failing_since: Nullable<Time>,
    created_at: Time,
    updated_at: Time,
}

impl From<WebhookEndpoint> for EndpointView {
    fn from(endpoint: WebhookEndpoint) -> Self {
        Self {
            id: endpoint.id.0,
            organization_id: endpoint.organization_id.0,
            url: endpoint.url,
            events: endpoint.events.iter().map(ToString::to_string).collect(),
            is_active: endpoint.is_active,
            failing_since: Nullable(endpoint.failing_since.map(Time)),
            created_at: Time(endpoint.created_at),
            updated_at: Time(endpoint.updated_at),
        }
    }
}

/// A webhook endpoint with its secret, shown this once.
#[derive(Debug, Object)]
struct WebhookEndpointWithSecret {
    #[oai(flatten)]
    record: EndpointView,
    /// What calls are signed with. It cannot be shown again.
    secret: String,
}

impl WebhookEndpointWithSecret {
    fn of(record: WebhookEndpoint, secret: &SigningSecret) -> Self {
        Self {
            record: record.into(),
            secret: secret.expose().to_owned(),
        }
    }
}

/// An endpoint to make.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateWebhookEndpointRequest {
    /// An HTTPS URL. Somebody must answer there within 5 seconds, whatever the
    /// answer.
    url: Validated<WebhookUrl>,
    /// The types of events that it is told of, at least one.
    events: Validated<EventTypes>,
    /// Whether it is told of events; true where nothing is said.
    is_active: Validated<Option<bool>>,
}

/// What of an endpoint is to be changed; what is absent stays.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateWebhookEndpointRequest {
    /// Another HTTPS URL, where somebody must answer too.
    url: Validated<Settable<WebhookUrl>>,
    /// Other types of events. They count for events from now on.
    events: Validated<Settable<EventTypes>>,
    /// While it is false no events are told; what waited to be delivered waits on.
    is_active: Validated<Settable<bool>>,
}

/// How a secret is to be rotated.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RotateWebhookSecretRequest {
    /// How long the old secret signs beside the new one: 0 to 604,800, a day where
    /// nothing is said.
    grace_period_seconds: Validated<Option<Whole<0, GRACE_SECONDS_MAX>>>,
}

#[expect(clippy::cast_possible_truncation, reason = "seven days fit")]
const GRACE_SECONDS_MAX: u32 = GRACE_MAX.as_secs() as u32;

/// What an endpoint answered to a test event.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookTestResult {
    /// Whether it answered with a status from 200 to 299.
    success: bool,
    /// The HTTP status; 0 where no answer came.
    status_code: u16,
    /// How long it took, in milliseconds: `123ms`.
    response_time: String,
}

impl From<TestOutcome> for WebhookTestResult {
    fn from(outcome: TestOutcome) -> Self {
        Self {
            success: outcome.is_success(),
            status_code: outcome.status.unwrap_or_default(),
            response_time: format!("{}ms", outcome.duration.as_millis()),
        }
    }
}

/// Types of events, each once.
#[derive(Debug)]
struct EventTypes(Vec<EventType>);

impl Field for EventTypes {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(EventType::schema()));
            list.min_items = Some(1);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        let mut types: Vec<EventType> = Vec::with_capacity(EventType::ALL.len());
        for event_type in fields::list(items, 1, usize::MAX, "the event types")? {
            if !types.contains(&event_type) {
                types.push(event_type);
            }
        }
        Ok(Self(types))
    }
}

impl Field for EventType {
    fn schema() -> MetaSchemaRef {
        fields::words(&Self::ALL.map(Self::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let word = fields::string(value)?;
        let known = Self::ALL.into_iter().find(|known| known.as_str() == word);
        match known {
            Some(known) => Ok(known),
            None => {
                let words = Self::ALL.map(Self::as_str).join(", ");
                problem(format!("must be one of {words}"))
            }
        }
    }
}

impl Field for WebhookUrl {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.format = Some("uri");
            schema.min_length = Some(1);
            schema.max_length = Some(Self::CHARS_MAX);
            schema.example = Some(Value::from("https://example.com/webhooks"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = fields::string(value)?;
        Self::parse(text).or_else(|error| problem(error.to_string()))
    }
}

#[derive(ApiResponse)]
enum EndpointCreated {
    /// The endpoint is made.
    #[oai(status = 201)]
    EndpointCreated(Json<Data<WebhookEndpointWithSecret>>),
}

type EndpointAnswer = Result<Json<Data<EndpointView>>, Failure>;

/// What an endpoint is called in answers.
pub(crate) const ENDPOINT: &str = "webhook endpoint";

#[OpenApi(tag = "Section::WebhookEndpoints")]
impl WebhookEndpointsApi {
    /// List webhook endpoints
    ///
    /// Takes the permission SETTINGS_WRITE. Oldest first.
    #[oai(
        path = "/v1/webhook-endpoints",
        method = "get",
        operation_id = "list_webhook_endpoints"
    )]
    async fn list_webhook_endpoints(
        &self,
        caller: Caller,
    ) -> Result<Json<Data<Vec<EndpointView>>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("list webhook endpoints")?;
        let endpoints = store::list(&mut connection, caller.organization_id()).await?;
        let data = endpoints.into_iter().map(EndpointView::from).collect();
        Ok(Json(Data { data }))
    }

    /// Make a webhook endpoint
    ///
    /// Takes the permission SETTINGS_WRITE. The URL is called first: with HEAD, and
    /// with an empty POST where HEAD is cut off. Its host must have a public address.
    /// The answer shows the signing secret, this once.
    #[oai(
        path = "/v1/webhook-endpoints",
        method = "post",
        operation_id = "create_webhook_endpoint"
    )]
    async fn create_webhook_endpoint(
        &self,
        caller: Caller,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateWebhookEndpointRequest, OTHER_BYTES_MAX>,
    ) -> Result<EndpointCreated, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let url = request.url.take("url", &mut issues);
        let events = request.events.take("events", &mut issues);
        let is_active = request.is_active.take("isActive", &mut issues);
        let url = self.with_good_scheme(&caller, url, &mut issues).await?;
        let (Some(url), Some(events), Some(is_active), Some(claim), true) =
            (url, events, is_active, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let once = Idempotent::new(claim, &self.context.sealer, |(endpoint, secret)| {
            let data = WebhookEndpointWithSecret::of(WebhookEndpoint::clone(endpoint), secret);
            created(&Data { data })
        });
        let wanted = WantedEndpoint {
            url,
            events: events.0,
            is_active: is_active.unwrap_or(true),
        };
        let endpoints = &self.context.webhook_endpoints;
        let (endpoint, secret) = endpoints
            .create(caller.organization_id(), caller.origin(), wanted, &once)
            .await?;
        Ok(EndpointCreated::EndpointCreated(Json(Data {
            data: WebhookEndpointWithSecret::of(endpoint, &secret),
        })))
    }

    /// Show a webhook endpoint
    ///
    /// Takes the permission SETTINGS_WRITE.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "get",
        operation_id = "get_webhook_endpoint"
    )]
    async fn get_webhook_endpoint(&self, caller: Caller, id: Path<PathId>) -> EndpointAnswer {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        let endpoint = endpoints.find(caller.organization_id(), id).await?;
        Ok(Json(Data {
            data: endpoint.into(),
        }))
    }

    /// Change a webhook endpoint
    ///
    /// Takes the permission SETTINGS_WRITE. Another URL is called first, as when the
    /// endpoint was made. What waits for an endpoint that is switched off is delivered
    /// when it is switched on again.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "patch",
        operation_id = "update_webhook_endpoint"
    )]
    async fn update_webhook_endpoint(
        &self,
        caller: Caller,
        id: Path<PathId>,
        body: JsonBody<UpdateWebhookEndpointRequest, OTHER_BYTES_MAX>,
    ) -> EndpointAnswer {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        // What is not there is not called.
        endpoints.find(caller.organization_id(), id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let url = request.url.change("url", &mut issues);
        let events = request.events.change("events", &mut issues);
        let is_active = request.is_active.change("isActive", &mut issues);
        let url = self.with_good_scheme(&caller, url, &mut issues).await?;
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let change = EndpointChange {
            url,
            events: events.map(|events| events.0),
            is_active,
        };
        let endpoint = endpoints
            .change(caller.organization_id(), caller.origin(), id, change)
            .await?;
        Ok(Json(Data {
            data: endpoint.into(),
        }))
    }

    /// Remove a webhook endpoint
    ///
    /// Takes the permission SETTINGS_WRITE. What waits for it is not delivered.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "delete",
        operation_id = "delete_webhook_endpoint"
    )]
    async fn delete_webhook_endpoint(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        endpoints
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }

    /// Test a webhook endpoint
    ///
    /// Takes the permission SETTINGS_WRITE. Posts a made-up event of the first type
    /// that the endpoint wants, signed as any other; its `data.metadata.test` is true.
    /// It is done whether the endpoint is active or not, and not repeated.
    #[oai(
        path = "/v1/webhook-endpoints/:id/test",
        method = "post",
        operation_id = "test_webhook_endpoint"
    )]
    async fn test_webhook_endpoint(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<WebhookTestResult>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        let outcome = endpoints.test(caller.organization_id(), id).await?;
        Ok(Json(outcome.into()))
    }

    /// Rotate a webhook endpoint's secret
    ///
    /// Takes the permission SETTINGS_WRITE. The answer shows the new secret, this once.
    /// Until the grace ends both secrets sign: `webhook-signature` lists both,
    /// `X-Waypost-Signature` is by the new one in the first attempt at a delivery, by
    /// the old one in the second, and so on, and `X-Waypost-Signature-Other` by the
    /// other.
    #[oai(
        path = "/v1/webhook-endpoints/:id/rotate-secret",
        method = "post",
        operation_id = "rotate_webhook_endpoint_secret"
    )]
    async fn rotate_webhook_endpoint_secret(
        &self,
        caller: Caller,
        id: Path<PathId>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<RotateWebhookSecretRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<WebhookEndpointWithSecret>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let grace = request
            .grace_period_seconds
            .take("gracePeriodSeconds", &mut issues);
        let (Some(grace), Some(claim), true) = (grace, claim, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let once = Idempotent::new(claim, &self.context.sealer, |(endpoint, secret)| {
            let data = WebhookEndpointWithSecret::of(WebhookEndpoint::clone(endpoint), secret);
            answer(200, &Data { data })
        });
        let grace = grace.map_or(GRACE_DEFAULT, |given| Duration::from_secs(given.0.into()));
        let rotation = SecretRotation { id, grace };
        let endpoints = &self.context.webhook_endpoints;
        let (endpoint, secret) = endpoints
            .rotate_secret(caller.organization_id(), caller.origin(), rotation, &once)
            .await?;
        Ok(Json(Data {
            data: WebhookEndpointWithSecret::of(endpoint, &secret),
        }))
    }
}

impl WebhookEndpointsApi {
    /// A URL whose scheme will do; one of plain HTTP goes to `issues` unless the
    /// operator allows its host.
    async fn with_good_scheme(
        &self,
        caller: &Caller,
        url: Option<WebhookUrl>,
        issues: &mut Vec<Issue>,
    ) -> Result<Option<WebhookUrl>, Failure> {
        let Some(url) = url else {
            return Ok(None);
        };
        let endpoints = &self.context.webhook_endpoints;
        if endpoints
            .takes_scheme(caller.organization_id(), &url)
            .await?
        {
            return Ok(Some(url));
        }
        issues.push(Issue::new("url", "must be an HTTPS URL"));
        Ok(None)
    }
}
