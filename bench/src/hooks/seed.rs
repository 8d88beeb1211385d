//! Inserts organizations with webhook endpoints, and messages with events, straight into
//! PostgreSQL: the measurement starts when an event is inserted.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::crypto::seal::Sealed;
use waypost_core::ids::{Ids, OrganizationId, WebhookEndpointId};
use waypost_core::organization::{self, Organization, UnverifiedDomains};
use waypost_core::webhook::secret::SigningSecret;

/// Rows per statement.
const ROWS: usize = 5_000;

/// Inserts customers' data.
pub(crate) struct Seeder<'a> {
    pub(crate) pool: &'a PgPool,
    pub(crate) settings: &'a Settings,
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
}

/// An organization with one message to one recipient.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Customer {
    pub(crate) organization_id: OrganizationId,
    pub(crate) message_id: Uuid,
}

impl Seeder<'_> {
    pub(crate) async fn organization(&self, name: &str) -> OrganizationId {
        let organization = Organization {
            id: self.ids.next(),
            name: name.to_owned(),
            unverified_domains: UnverifiedDomains::Reject,
            created_at: self.clock.now(),
        };
        let mut connection = self.pool.acquire().await.expect("Postgres answers");
        let inserted = organization::store::insert(&mut connection, &organization).await;
        inserted.expect("an organization can be added");
        organization.id
    }

    pub(crate) async fn customer(&self, name: &str) -> Customer {
        let organization_id = self.organization(name).await;
        let messages = self.messages(organization_id, 1).await;
        Customer {
            organization_id,
            message_id: messages[0],
        }
    }

    /// Adds an active endpoint for DELIVERED events.
    pub(crate) async fn subscribe(
        &self,
        organization_id: OrganizationId,
        url: &str,
    ) -> WebhookEndpointId {
        let id: WebhookEndpointId = self.ids.next();
        let secret = SigningSecret::generate(&self.ids);
        let sealed = secret.seal(&self.settings.sealer, organization_id, id);
        let insert = sqlx::query(
            "INSERT INTO webhook_endpoints
                 (id, organization_id, url, events, is_active, secret_sealed, created_at, updated_at)
             VALUES ($1, $2, $3, '{DELIVERED}', true, $4, now(), now())",
        );
        let insert = insert.bind(id.0).bind(organization_id.0);
        self.run(insert.bind(url).bind(sealed)).await;
        id
    }

    /// Inserts messages to one recipient each; none of them is sent.
    pub(crate) async fn messages(
        &self,
        organization_id: OrganizationId,
        count: usize,
    ) -> Vec<Uuid> {
        let ids: Vec<Uuid> = (0..count).map(|_| self.ids.next()).collect();
        let account: Uuid = self.ids.next();
        for ids in ids.chunks(ROWS) {
            let sealed: Vec<Vec<u8>> = ids
                .iter()
                .map(|id| {
                    let address = format!("r{}@example.org", id.simple());
                    let sealer = &self.settings.sealer;
                    sealer.seal(organization_id, Sealed::Recipient, *id, address.as_bytes())
                })
                .collect();
            let insert = sqlx::query(
                "WITH message AS (
                     INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash,
                                           subject, status, tags, recipient_count, created_at)
                     SELECT id, $2, $3, 'news@example.com', sha256('x'), 'Your order is on its way',
                            'SENT', '{orders}', 1, now()
                     FROM UNNEST($1::uuid[]) AS m (id)
                 )
                 INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash,
                                         status, provider_account_id, next_attempt_at)
                 SELECT id, 0, $2, sealed, sha256('x'), 'SENT', $3, now()
                 FROM UNNEST($1::uuid[], $4::bytea[]) AS m (id, sealed)",
            );
            let insert = insert.bind(ids).bind(organization_id.0);
            self.run(insert.bind(account).bind(&sealed)).await;
        }
        ids
    }

    /// Inserts a DELIVERED event for each of the messages.
    pub(crate) async fn insert_events(&self, organization_id: OrganizationId, messages: &[Uuid]) {
        for messages in messages.chunks(ROWS) {
            let ids: Vec<Uuid> = messages.iter().map(|_| self.ids.next()).collect();
            self.record(organization_id, messages, &ids).await;
        }
    }

    /// Inserts DELIVERED events with these ids.
    pub(crate) async fn record(
        &self,
        organization_id: OrganizationId,
        messages: &[Uuid],
        ids: &[Uuid],
    ) {
        let insert = sqlx::query(
            "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
             SELECT message_id, id, $3, 0, 'DELIVERED', now()
             FROM UNNEST($1::uuid[], $2::uuid[]) AS e (message_id, id)",
        );
        self.run(insert.bind(messages).bind(ids).bind(organization_id.0))
            .await;
    }

    pub(crate) async fn run(
        &self,
        query: sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments>,
    ) {
        query.execute(self.pool).await.expect("Postgres takes it");
    }

    /// The number that a query returns.
    pub(crate) async fn number(&self, query: &'static str, id: Uuid) -> i64 {
        let asked = sqlx::query_scalar(query).bind(id).fetch_one(self.pool);
        asked.await.expect("Postgres answers")
    }

    /// Polls until `reached` returns true.
    pub(crate) async fn wait(what: &str, every: Duration, reached: impl AsyncFn() -> bool) {
        let end = tokio::time::Instant::now() + WAIT;
        while !reached().await {
            assert!(tokio::time::Instant::now() < end, "not reached: {what}");
            tokio::time::sleep(every).await;
        }
    }
}

/// Longer than any wait of this section.
const WAIT: Duration = Duration::from_secs(120);
