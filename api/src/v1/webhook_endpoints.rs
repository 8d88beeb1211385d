//! Webhook endpoints: creating, changing, testing and removing them, and rotating their
//! secrets.

use std::sync::Arc;
use std::time::Duration;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::WebhookEndpointId;
use waypost_core::issue::Issue;
use waypost_core::webhook::endpoint::{
    EndpointChange, GRACE_DEFAULT, GRACE_MAX, NewEndpoint, SecretRotation, TestOutcome,
    WebhookEndpoint,
};
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_core::webhook::secret::SigningSecret;
use waypost_core::webhook::store;
use waypost_core::webhook::url::WebhookUrl;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::content::Tags;
use crate::fields::{self, Whole};
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created, stored_answer};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;
use crate::validate::{Field, Settable, Validated, problem};

pub(crate) struct WebhookEndpointsApi {
    pub(crate) context: Arc<Context>,
}

/// A URL that receives events.
#[derive(Debug, Object)]
#[oai(rename = "WebhookEndpoint", rename_all = "camelCase")]
struct EndpointView {
    id: Uuid,
    organization_id: Uuid,
    url: String,
    /// The types of the events that the endpoint receives.
    events: Vec<String>,
    /// If not empty, the endpoint receives events of messages only for messages with one of
    /// these tags. Events that are about no message are not filtered.
    tags: Vec<String>,
    /// Whether the endpoint receives events.
    is_active: bool,
    /// Since when all deliveries have failed; null if the last one succeeded. After five
    /// days of failures the endpoint becomes inactive.
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
            tags: endpoint.tags,
            is_active: endpoint.is_active,
            failing_since: Nullable(endpoint.failing_since.map(Time)),
            created_at: Time(endpoint.created_at),
            updated_at: Time(endpoint.updated_at),
        }
    }
}

/// A webhook endpoint with its signing secret, which is returned only once.
#[derive(Debug, Object)]
struct WebhookEndpointWithSecret {
    #[oai(flatten)]
    record: EndpointView,
    /// The secret that signs the deliveries. It cannot be retrieved again.
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

/// A webhook endpoint to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateWebhookEndpointRequest {
    /// An HTTPS URL with a public address. The operator can allow http and private addresses
    /// (`WAYPOST_WEBHOOK_ALLOW`); in development loopback is allowed. It is called once, and
    /// must respond within 5 seconds, with any status.
    url: Validated<WebhookUrl>,
    /// The types of the events that the endpoint receives: at least one.
    events: Validated<EventTypes>,
    /// Receive events of messages only for messages with one of these tags. The default is
    /// all messages.
    tags: Validated<Option<Tags>>,
    /// Whether the endpoint receives events. The default is true.
    is_active: Validated<Option<bool>>,
}

/// The changes to an endpoint. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateWebhookEndpointRequest {
    /// A new HTTPS URL. It must respond within 5 seconds, with any status.
    url: Validated<Settable<WebhookUrl>>,
    /// The types of the events that the endpoint receives from now on.
    events: Validated<Settable<EventTypes>>,
    /// The tags of the messages whose events the endpoint receives from now on; an empty
    /// list stands for all messages.
    tags: Validated<Settable<Tags>>,
    /// Whether the endpoint receives events. While it is false, new events are not
    /// delivered to it, and waiting deliveries keep waiting.
    is_active: Validated<Settable<bool>>,
}

/// How to rotate a signing secret.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RotateWebhookSecretRequest {
    /// How long deliveries are signed with the old secret too, in seconds: 0 to 604,800.
    /// The default is 86,400 (one day).
    grace_period_seconds: Validated<Option<Whole<0, GRACE_SECONDS_MAX>>>,
}

#[expect(clippy::cast_possible_truncation, reason = "seven days fit")]
const GRACE_SECONDS_MAX: u32 = GRACE_MAX.as_secs() as u32;

/// The response of an endpoint to a test event.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookTestResult {
    /// Whether the endpoint responded with a status from 200 to 299.
    success: bool,
    /// The HTTP status; 0 if there was no response.
    status_code: u16,
    /// The response time in milliseconds, such as `123ms`.
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

/// Event types, without repetitions.
#[derive(Debug)]
struct EventTypes(Vec<WebhookEventType>);

impl Field for EventTypes {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(WebhookEventType::schema()));
            list.min_items = Some(1);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        let mut types: Vec<WebhookEventType> = Vec::with_capacity(WebhookEventType::ALL.len());
        for event_type in fields::list(items, 1, usize::MAX, "event types")? {
            if !types.contains(&event_type) {
                types.push(event_type);
            }
        }
        Ok(Self(types))
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
    /// The endpoint is created.
    #[oai(status = 201)]
    EndpointCreated(Json<Data<WebhookEndpointWithSecret>>),
}

type EndpointAnswer = Result<Json<Data<EndpointView>>, Failure>;

/// The name of a webhook endpoint in error messages.
pub(crate) const ENDPOINT: &str = "webhook endpoint";

#[OpenApi(tag = "Section::WebhookEndpoints")]
impl WebhookEndpointsApi {
    /// List webhook endpoints
    ///
    /// Requires the permission `SETTINGS_WRITE`. The oldest endpoint comes first.
    #[oai(
        path = "/v1/webhook-endpoints",
        method = "get",
        operation_id = "list_webhook_endpoints"
    )]
    async fn list_webhook_endpoints(
        &self,
        caller: Requires<permission::SettingsWrite>,
    ) -> Result<Json<Data<Vec<EndpointView>>>, Failure> {
        let caller = caller.authorize()?;
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

    /// Create a webhook endpoint
    ///
    /// Requires the permission `SETTINGS_WRITE`. The URL is checked first: with a HEAD
    /// request, and with an empty POST if the connection is closed on HEAD. Its host must
    /// have a public address. Only this response contains the signing secret.
    #[oai(
        path = "/v1/webhook-endpoints",
        method = "post",
        operation_id = "create_webhook_endpoint"
    )]
    async fn create_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateWebhookEndpointRequest, OTHER_BYTES_MAX>,
    ) -> Result<EndpointCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let url = request.url.take("url", &mut issues);
        let events = request.events.take("events", &mut issues);
        let tags = request.tags.take("tags", &mut issues);
        let is_active = request.is_active.take("isActive", &mut issues);
        let url = self.with_allowed_scheme(&caller, url, &mut issues).await?;
        let (Some(url), Some(events), Some(tags), Some(is_active), Some(claim), true) =
            (url, events, tags, is_active, claim, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |(endpoint, secret)| {
            let data = WebhookEndpointWithSecret::of(WebhookEndpoint::clone(endpoint), secret);
            created(&Data { data })
        });
        let wanted = NewEndpoint {
            url,
            events: events.0,
            tags: tags.unwrap_or_default().0,
            is_active: is_active.unwrap_or(true),
        };
        let endpoints = &self.context.webhook_endpoints;
        let (endpoint, secret) = endpoints
            .create(
                caller.organization_id(),
                caller.origin(),
                wanted,
                &idempotent,
            )
            .await?;
        Ok(EndpointCreated::EndpointCreated(Json(Data {
            data: WebhookEndpointWithSecret::of(endpoint, &secret),
        })))
    }

    /// Get a webhook endpoint
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "get",
        operation_id = "get_webhook_endpoint"
    )]
    async fn get_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// The id of the webhook endpoint.
        id: Path<PathId>,
    ) -> EndpointAnswer {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        let endpoint = endpoints.find(caller.organization_id(), id).await?;
        Ok(Json(Data {
            data: endpoint.into(),
        }))
    }

    /// Change a webhook endpoint
    ///
    /// Requires the permission `SETTINGS_WRITE`. A new URL is checked first, as at
    /// creation. Deliveries that wait for an inactive endpoint are made when it becomes
    /// active again.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "patch",
        operation_id = "update_webhook_endpoint"
    )]
    async fn update_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        body: JsonBody<UpdateWebhookEndpointRequest, OTHER_BYTES_MAX>,
    ) -> EndpointAnswer {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        // An endpoint that does not exist is not called.
        endpoints.find(caller.organization_id(), id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let url = request.url.change("url", &mut issues);
        let events = request.events.change("events", &mut issues);
        let tags = request.tags.change("tags", &mut issues);
        let is_active = request.is_active.change("isActive", &mut issues);
        let url = self.with_allowed_scheme(&caller, url, &mut issues).await?;
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let change = EndpointChange {
            url,
            events: events.map(|events| events.0),
            tags: tags.map(|tags| tags.0),
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
    /// Requires the permission `SETTINGS_WRITE`. Waiting deliveries of the endpoint are
    /// dropped.
    #[oai(
        path = "/v1/webhook-endpoints/:id",
        method = "delete",
        operation_id = "delete_webhook_endpoint"
    )]
    async fn delete_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        endpoints
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }

    /// Test a webhook endpoint
    ///
    /// Requires the permission `SETTINGS_WRITE`. Posts an example event, of the first
    /// type that the endpoint receives, signed like a real one and with
    /// `data.metadata.test` set to true. An inactive endpoint can be tested too. A failed
    /// test is not retried.
    #[oai(
        path = "/v1/webhook-endpoints/:id/test",
        method = "post",
        operation_id = "test_webhook_endpoint"
    )]
    async fn test_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
    ) -> Result<Json<WebhookTestResult>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        let outcome = endpoints.test(caller.organization_id(), id).await?;
        Ok(Json(outcome.into()))
    }

    /// Rotate a webhook endpoint's secret
    ///
    /// Requires the permission `SETTINGS_WRITE`. Only this response contains the new
    /// secret. Until the grace period ends, both secrets sign. `webhook-signature`
    /// contains both signatures. `X-Waypost-Signature` is made with the new secret in the
    /// first attempt of a delivery, with the old secret in the second, and so on in turn;
    /// `X-Waypost-Signature-Other` is made with the other secret.
    #[oai(
        path = "/v1/webhook-endpoints/:id/rotate-secret",
        method = "post",
        operation_id = "rotate_webhook_endpoint_secret"
    )]
    async fn rotate_webhook_endpoint_secret(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<RotateWebhookSecretRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<WebhookEndpointWithSecret>>, Failure> {
        let caller = caller.authorize()?;
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
        let idempotent = Idempotent::new(claim, &self.context.sealer, |(endpoint, secret)| {
            let data = WebhookEndpointWithSecret::of(WebhookEndpoint::clone(endpoint), secret);
            stored_answer(200, &Data { data })
        });
        let grace = grace.map_or(GRACE_DEFAULT, |given| Duration::from_secs(given.0.into()));
        let rotation = SecretRotation { id, grace };
        let endpoints = &self.context.webhook_endpoints;
        let (endpoint, secret) = endpoints
            .rotate_secret(
                caller.organization_id(),
                caller.origin(),
                rotation,
                &idempotent,
            )
            .await?;
        Ok(Json(Data {
            data: WebhookEndpointWithSecret::of(endpoint, &secret),
        }))
    }
}

impl WebhookEndpointsApi {
    /// Checks the scheme of a URL. A plain HTTP URL goes to `issues`, unless the operator
    /// allows its host.
    async fn with_allowed_scheme(
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
            .allows_scheme(caller.organization_id(), &url)
            .await?
        {
            return Ok(Some(url));
        }
        issues.push(Issue::new("url", "must be an HTTPS URL"));
        Ok(None)
    }
}
