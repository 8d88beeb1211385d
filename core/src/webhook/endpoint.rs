//! Endpoints: making, changing, testing and removing them, and giving them new
//! secrets. A URL is called before it is stored, outside of any transaction.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;

use super::client::{WebhookClient, WebhookFailure};
use super::payload::Payload;
use super::secret::SigningSecret;
use super::signature::{self, Signing};
use super::store;
use super::url::WebhookUrl;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp, delta};
use crate::crypto::seal::Sealer;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::event::EventType;
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, WebhookEndpointId};
use crate::organization;
use crate::organization::limiter::TenantLimiter;

/// Endpoints of one organization at the most: every event looks at all of them.
pub const ENDPOINTS_MAX: u64 = 10;
const CALL: &str = "call a webhook endpoint";
/// The longest time that a replaced secret may sign on.
pub const GRACE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long it does where nothing is said.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);

/// A customer's address that events are posted to. Its secret is never part of it.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint {
    pub id: WebhookEndpointId,
    pub organization_id: OrganizationId,
    /// Where it is; as it was given.
    pub url: String,
    /// The types of events that it wants.
    pub events: Vec<EventType>,
    /// Whether it is told of events.
    pub is_active: bool,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// An endpoint as a caller wants it.
#[derive(Debug)]
pub struct WantedEndpoint {
    pub url: WebhookUrl,
    /// The types of events that it wants, each once and at least one.
    pub events: Vec<EventType>,
    /// Whether it is told of events.
    pub is_active: bool,
}

/// What of an endpoint is to change; what is absent stays.
#[derive(Debug, Default)]
pub struct EndpointChange {
    pub url: Option<WebhookUrl>,
    pub events: Option<Vec<EventType>>,
    pub is_active: Option<bool>,
}

impl EndpointChange {
    /// The names of the fields that are to change, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.url.is_some().then_some("url"),
            self.events.is_some().then_some("events"),
            self.is_active.is_some().then_some("isActive"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What a caller wants of a rotation.
#[derive(Debug, Clone, Copy)]
pub struct SecretRotation {
    pub id: WebhookEndpointId,
    /// How long the replaced secret signs beside the new one.
    pub grace: Duration,
}

/// What came of a test.
#[derive(Debug, Clone)]
pub struct TestOutcome {
    /// The HTTP status; nothing where no answer came.
    pub status: Option<u16>,
    /// From the call to the answer, or to the failure.
    pub duration: Duration,
}

impl TestOutcome {
    /// Whether the endpoint took the event.
    #[must_use]
    pub fn is_success(&self) -> bool {
        let status = self.status.and_then(|code| StatusCode::from_u16(code).ok());
        status.is_some_and(|status| status.is_success())
    }
}

/// Why something was not done with an endpoint.
#[derive(Debug)]
pub enum EndpointRefusal {
    /// There is no such endpoint.
    NotFound,
    /// There is no such delivery.
    DeliveryNotFound,
    /// There are as many as there may be.
    TooMany,
    /// Nobody answers at the URL.
    Unreachable {
        reason: String,
    },
    /// The URL's host has no address that may be called.
    AddressNotPublic,
    /// It is not active, so nothing would be posted.
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

/// Works on the endpoints of organizations. Cheap to clone.
#[derive(Clone)]
pub struct WebhookEndpoints {
    pub pool: PgPool,
    pub client: WebhookClient,
    /// How many calls to where strangers say are under way at once.
    pub shares: TenantLimiter,
    pub sealer: Sealer,
    pub clock: Clock,
    pub ids: Ids,
}

impl WebhookEndpoints {
    /// Makes an endpoint, where somebody answers at its URL.
    ///
    /// # Errors
    /// Why it was not made.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        wanted: WantedEndpoint,
        once: &Idempotent<'_, (WebhookEndpoint, SigningSecret)>,
    ) -> Result<(WebhookEndpoint, SigningSecret), Failed<EndpointRefusal>> {
        let doing = "make a webhook endpoint";
        // Nobody is called for what was made before.
        once.look_up(&self.pool).await?;
        self.probe(organization_id, &wanted.url).await?;
        let now = self.clock.now();
        let endpoint = WebhookEndpoint {
            id: self.ids.next_at(now),
            organization_id,
            url: wanted.url.as_str().to_owned(),
            events: wanted.events,
            is_active: wanted.is_active,
            failing_since: None,
            created_at: now,
            updated_at: now,
        };
        let secret = SigningSecret::generate(&self.ids);
        let sealed = secret.seal(&self.sealer, organization_id, endpoint.id);
        let mut transaction = once.begin(&self.pool, doing).await?;
        // Two that are made at the same time would both count too few.
        organization::store::lock(&mut transaction, organization_id).await?;
        if store::count(&mut transaction, organization_id).await? >= ENDPOINTS_MAX {
            return Err(EndpointRefusal::TooMany.into());
        }
        store::insert(&mut transaction, &endpoint, &sealed).await?;
        let change = AuditChange::new("webhook_endpoint.created", endpoint.id)
            .with(json!({ "events": words(&endpoint.events), "isActive": endpoint.is_active }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let made = (endpoint, secret);
        once.commit(transaction, &made, doing).await?;
        Ok(made)
    }

    /// Changes an endpoint. A new URL is called first, as on making one.
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

    /// Removes an endpoint. What waits for it is not delivered.
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

    /// Gives an endpoint a new secret. The one before it signs too until the grace
    /// ends.
    ///
    /// # Errors
    /// Why it was not rotated.
    pub async fn rotate_secret(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        SecretRotation { id, grace }: SecretRotation,
        once: &Idempotent<'_, (WebhookEndpoint, SigningSecret)>,
    ) -> Result<(WebhookEndpoint, SigningSecret), Failed<EndpointRefusal>> {
        let doing = "rotate a signing secret";
        let now = self.clock.now();
        let secret = SigningSecret::generate(&self.ids);
        let sealed = secret.seal(&self.sealer, organization_id, id);
        let mut transaction = once.begin(&self.pool, doing).await?;
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
        once.commit(transaction, &rotated, doing).await?;
        Ok(rotated)
    }

    /// Posts a made-up event of a type that the endpoint wants, signed as any
    /// other, and says what came of it. Nothing of it is kept.
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
        let event_type = event_type.unwrap_or(EventType::Delivered);
        let body = Payload {
            event_id: self.ids.next_at(now),
            event_type,
            occurred_at: now,
            message_id: self.ids.next_at(now),
            recipient: "recipient@example.com",
            from: "sender@example.com",
            subject: "Test event",
            tags: &[],
            metadata: Some(&json!({ "test": true })),
            provider_type: None,
            particulars: None,
        }
        .body();
        let signing = Signing {
            delivery_id: self.ids.next_at(now),
            event_type,
            at: now,
            attempt: 0,
        };
        let headers = signature::headers(&secrets, signing, &body);
        let _share = self.shares.acquire_timeout(organization_id, CALL).await?;
        let (status, duration) = match self.client.post(url.url(), headers, body).await {
            Ok(reply) => (Some(reply.status), reply.duration),
            Err(failure) => (None, failure.duration),
        };
        Ok(TestOutcome { status, duration })
    }

    /// An endpoint.
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

    /// Whether its scheme will do: HTTPS, or HTTP to where the operator allows it.
    ///
    /// # Errors
    /// That too many calls of the organization are under way: a name is looked up.
    pub async fn takes_scheme(
        &self,
        organization_id: OrganizationId,
        url: &WebhookUrl,
    ) -> Result<bool, Fault> {
        if !url.is_plain() {
            return Ok(true);
        }
        let _share = self.shares.acquire_timeout(organization_id, CALL).await?;
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
        let _share = self.shares.acquire_timeout(organization_id, CALL).await?;
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

fn words(events: &[EventType]) -> Vec<&'static str> {
    events.iter().map(|event| event.as_str()).collect()
}
