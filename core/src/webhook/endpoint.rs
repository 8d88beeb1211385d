//! Endpoints: creating, changing, testing and removing them, and rotating their secrets.
//! A new URL is called before it is stored, outside of any transaction.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::client::{WebhookClient, WebhookFailure};
use super::event_type::WebhookEventType;
use super::example;
use super::payload::{OrganizationPayload, Payload};
use super::secret::SigningSecret;
use super::signature::{self, Signing};
use super::store;
use super::url::WebhookUrl;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp, delta};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, WebhookEndpointId};
use crate::organization;
use crate::organization::limiter::TenantLimiter;
use crate::text::Tag;

/// Endpoints per organization: every event is matched against all of them.
pub const ENDPOINTS_MAX: u64 = 10;
const CALL: &str = "call a webhook endpoint";
/// How long a replaced secret may still sign, at most.
pub const GRACE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a replaced secret still signs by default.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);

/// A customer's URL that events are posted to. It does not contain the secret.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint {
    pub id: WebhookEndpointId,
    pub organization_id: OrganizationId,
    /// The URL, as the customer wrote it.
    pub url: String,
    /// The subscribed event types.
    pub events: Vec<WebhookEventType>,
    /// An event of a message is delivered only if the message has one of these tags; empty
    /// for all messages.
    pub tags: Vec<String>,
    /// Whether events are delivered.
    pub is_active: bool,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An endpoint to be created.
#[derive(Debug)]
pub struct NewEndpoint {
    pub url: WebhookUrl,
    /// The subscribed event types: at least one, without duplicates.
    pub events: Vec<WebhookEventType>,
    /// The tags of the messages whose events are delivered; empty for all messages.
    pub tags: Vec<Tag>,
    /// Whether events are delivered.
    pub is_active: bool,
}

/// Changes of an endpoint; `None` keeps a field.
#[derive(Debug, Default)]
pub struct EndpointChange {
    pub url: Option<WebhookUrl>,
    pub events: Option<Vec<WebhookEventType>>,
    pub tags: Option<Vec<Tag>>,
    pub is_active: Option<bool>,
}

impl EndpointChange {
    /// The names of the changed fields, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.url.is_some().then_some("url"),
            self.events.is_some().then_some("events"),
            self.tags.is_some().then_some("tags"),
            self.is_active.is_some().then_some("isActive"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A rotation of an endpoint's secret.
#[derive(Debug, Clone, Copy)]
pub struct SecretRotation {
    pub id: WebhookEndpointId,
    /// How long the replaced secret still signs.
    pub grace: Duration,
}

/// The result of a test call.
#[derive(Debug, Clone)]
pub struct TestOutcome {
    /// The HTTP status; `None` if there was no answer.
    pub status: Option<u16>,
    /// From the call to the answer or the failure.
    pub duration: Duration,
}

impl TestOutcome {
    /// Whether the endpoint accepted the event.
    #[must_use]
    pub fn is_success(&self) -> bool {
        let status = self.status.and_then(|code| StatusCode::from_u16(code).ok());
        status.is_some_and(|status| status.is_success())
    }
}

/// Why an operation on an endpoint was refused.
#[derive(Debug)]
pub enum EndpointRefusal {
    NotFound,
    DeliveryNotFound,
    /// The organization has [`ENDPOINTS_MAX`] endpoints.
    TooMany,
    /// No server answers at the URL.
    Unreachable {
        reason: String,
    },
    /// The URL's host has no address that may be called.
    AddressNotPublic,
    /// The endpoint is inactive, so nothing would be posted.
    Inactive,
    Fault(Fault),
}

impl From<Fault> for EndpointRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<EndpointRefusal> for Failed<EndpointRefusal> {
    fn from(refusal: EndpointRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<WebhookFailure> for EndpointRefusal {
    fn from(failure: WebhookFailure) -> Self {
        if failure.refused_address {
            return Self::AddressNotPublic;
        }
        Self::Unreachable {
            reason: failure.reason,
        }
    }
}

/// Manages the endpoints of organizations. Cheap to clone.
#[derive(Clone)]
pub struct WebhookEndpoints {
    pub pool: PgPool,
    pub client: WebhookClient,
    /// Limits the concurrent calls to URLs that customers chose.
    pub limiter: TenantLimiter,
    pub sealer: Sealer,
    pub clock: Clock,
    pub ids: Ids,
}

impl WebhookEndpoints {
    /// Creates an endpoint, if a server answers at its URL.
    ///
    /// # Errors
    /// Why it was not created.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        wanted: NewEndpoint,
        idempotent: &Idempotent<'_, (WebhookEndpoint, SigningSecret)>,
    ) -> Result<(WebhookEndpoint, SigningSecret), Failed<EndpointRefusal>> {
        let doing = "create a webhook endpoint";
        // A repeated request does not call the URL again.
        idempotent.look_up(&self.pool).await?;
        self.probe(organization_id, &wanted.url).await?;
        let now = self.clock.now();
        let endpoint = WebhookEndpoint {
            id: self.ids.next_at(now),
            organization_id,
            url: wanted.url.as_str().to_owned(),
            events: wanted.events,
            tags: wanted.tags.into_iter().map(Tag::into_string).collect(),
            is_active: wanted.is_active,
            failing_since: None,
            created_at: now,
            updated_at: now,
        };
        let secret = SigningSecret::generate(&self.ids);
        let sealed = secret.seal(&self.sealer, organization_id, endpoint.id);
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        // Concurrent creations must not exceed the limit together.
        organization::store::lock(&mut transaction, organization_id).await?;
        if store::count(&mut transaction, organization_id).await? >= ENDPOINTS_MAX {
            return Err(EndpointRefusal::TooMany.into());
        }
        store::insert(&mut transaction, &endpoint, &sealed).await?;
        let change = AuditChange::new("webhook_endpoint.created", endpoint.id).with(
            json!({ "events": type_names(&endpoint.events), "isActive": endpoint.is_active }),
        );
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let made = (endpoint, secret);
        idempotent.commit(transaction, &made, doing).await?;
        Ok(made)
    }

    /// Changes an endpoint. A new URL is called first.
    ///
    /// # Errors
    /// Why it was not changed.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: WebhookEndpointId,
        change: EndpointChange,
    ) -> Result<WebhookEndpoint, EndpointRefusal> {
        let doing = "change a webhook endpoint";
        let current = self.find(organization_id, id).await?;
        let other_url = change.url.as_ref();
        if let Some(url) = other_url.filter(|url| url.as_str() != current.url) {
            self.probe(organization_id, url).await?;
        }
        let fields = change.fields();
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, doing).await?;
        let endpoint = store::update(&mut transaction, organization_id, id, &change, now)
            .await?
            .ok_or(EndpointRefusal::NotFound)?;
        let mut metadata = json!({ "fields": fields });
        if let Some(is_active) = change.is_active {
            metadata["isActive"] = is_active.into();
        }
        let change = AuditChange::new("webhook_endpoint.updated", id).with(metadata);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(endpoint)
    }

    /// Removes an endpoint. Its pending deliveries are not made.
    ///
    /// # Errors
    /// Why it was not removed.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: WebhookEndpointId,
    ) -> Result<(), EndpointRefusal> {
        let doing = "remove a webhook endpoint";
        let mut transaction = db::begin(&self.pool, doing).await?;
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(EndpointRefusal::NotFound);
        }
        let change = AuditChange::new("webhook_endpoint.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(())
    }

    /// Gives an endpoint a new secret. The old secret also signs until the grace period
    /// ends.
    ///
    /// # Errors
    /// Why it was not rotated.
    pub async fn rotate_secret(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        SecretRotation { id, grace }: SecretRotation,
        idempotent: &Idempotent<'_, (WebhookEndpoint, SigningSecret)>,
    ) -> Result<(WebhookEndpoint, SigningSecret), Failed<EndpointRefusal>> {
        let doing = "rotate a signing secret";
        let now = self.clock.now();
        let secret = SigningSecret::generate(&self.ids);
        let sealed = secret.seal(&self.sealer, organization_id, id);
        let mut transaction = idempotent.begin(&self.pool, doing).await?;
        if !store::lock(&mut transaction, organization_id, id).await? {
            return Err(EndpointRefusal::NotFound.into());
        }
        store::retire_secret(
            &mut transaction,
            organization_id,
            id,
            now,
            now + delta(grace),
        )
        .await?;
        let endpoint = store::replace_secret(&mut transaction, organization_id, id, &sealed, now)
            .await?
            .ok_or(EndpointRefusal::NotFound)?;
        let change = AuditChange::new("webhook_endpoint.secret_rotated", id)
            .with(json!({ "gracePeriodSeconds": grace.as_secs() }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let rotated = (endpoint, secret);
        idempotent.commit(transaction, &rotated, doing).await?;
        Ok(rotated)
    }

    /// Posts a test event of a type that the endpoint subscribed to, signed like any
    /// other. The call is not stored.
    ///
    /// # Errors
    /// Why nothing was posted.
    pub async fn test(
        &self,
        organization_id: OrganizationId,
        id: WebhookEndpointId,
    ) -> Result<TestOutcome, EndpointRefusal> {
        let endpoint = self.find(organization_id, id).await?;
        let secrets = self.secrets(organization_id, id).await?;
        let url = WebhookUrl::parse(endpoint.url)
            .map_err(|error| Fault::internal("read an endpoint's URL", error))?;
        let now = self.clock.now();
        let event_type = endpoint.events.first().copied();
        let event_type = event_type.unwrap_or(WebhookEventType::Delivered);
        let body = self.test_body(event_type, now);
        let signing = Signing {
            delivery_id: self.ids.next_at(now),
            event_type,
            at: now,
            secret_index: 0,
        };
        let headers = signature::headers(&secrets, signing, &body);
        let _permit = self.limiter.acquire_timeout(organization_id, CALL).await?;
        let (status, duration) = match self.client.post(url.url(), headers, body).await {
            Ok(reply) => (Some(reply.status), reply.duration),
            Err(failure) => (None, failure.duration),
        };
        Ok(TestOutcome { status, duration })
    }

    /// The body of a test event.
    fn test_body(&self, event_type: WebhookEventType, now: Timestamp) -> Bytes {
        let metadata = json!({ "test": true });
        if event_type.is_of_message() {
            let payload = Payload {
                event_id: self.ids.next_at(now),
                event_type,
                occurred_at: now,
                message_id: self.ids.next_at(now),
                recipient: "recipient@example.com",
                from: "sender@example.com",
                subject: "Test event",
                tags: &[],
                metadata: Some(&metadata),
                is_test: false,
                provider_type: None,
                event_data: None,
            };
            return payload.body();
        }
        let mut content = example::organization_content(event_type);
        content.insert("metadata".to_owned(), metadata);
        let payload = OrganizationPayload {
            event_id: self.ids.next_at(now),
            event_type,
            occurred_at: now,
            content: &content,
        };
        payload.body()
    }

    /// Finds an endpoint.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        id: WebhookEndpointId,
    ) -> Result<WebhookEndpoint, EndpointRefusal> {
        let connection = self.pool.acquire().await;
        let mut connection = connection.or_fault("find a webhook endpoint")?;
        let endpoint = store::find(&mut connection, organization_id, id).await?;
        endpoint.ok_or(EndpointRefusal::NotFound)
    }

    /// Whether the URL's scheme is allowed: HTTPS, or HTTP to hosts that the operator
    /// allows.
    ///
    /// # Errors
    /// A fault if too many calls of the organization are running: the host's name is
    /// looked up.
    pub async fn allows_scheme(
        &self,
        organization_id: OrganizationId,
        url: &WebhookUrl,
    ) -> Result<bool, Fault> {
        if !url.is_plain() {
            return Ok(true);
        }
        let _permit = self.limiter.acquire_timeout(organization_id, CALL).await?;
        Ok(self.client.allows_plain(url.url()).await)
    }

    async fn secrets(
        &self,
        organization_id: OrganizationId,
        id: WebhookEndpointId,
    ) -> Result<Vec<SigningSecret>, Fault> {
        let connection = self.pool.acquire().await;
        let mut connection = connection.or_fault("find signing secrets")?;
        let now = self.clock.now();
        let sealed = store::list_secrets(&mut connection, organization_id, id, now).await?;
        let open =
            |sealed: &Vec<u8>| SigningSecret::open(&self.sealer, organization_id, id, sealed);
        sealed.iter().map(open).collect()
    }

    async fn probe(
        &self,
        organization_id: OrganizationId,
        url: &WebhookUrl,
    ) -> Result<(), EndpointRefusal> {
        let _permit = self.limiter.acquire_timeout(organization_id, CALL).await?;
        Ok(self.client.probe(url.url()).await?)
    }

    pub(super) async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}

fn type_names(events: &[WebhookEventType]) -> Vec<&'static str> {
    events.iter().map(|event| event.as_str()).collect()
}
