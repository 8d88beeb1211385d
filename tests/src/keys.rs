//! The API keys of a test's organizations.

use waypost_core::auth::{self, KeyDraft, Permission, Permissions};
use waypost_core::clock::Timestamp;
use waypost_core::ids::OrganizationId;
use waypost_core::network::Networks;
use waypost_core::secret::ExposeSecret;
use waypost_core::text::Name;

use crate::app::TestApp;
use crate::client::Caller;

impl TestApp {
    /// Adds a key with these permissions.
    pub async fn key(&self, organization_id: OrganizationId, permissions: &[Permission]) -> String {
        self.key_until(organization_id, permissions, None).await
    }

    /// Adds a key with these permissions that expires.
    pub async fn key_until(
        &self,
        organization_id: OrganizationId,
        permissions: &[Permission],
        expires_at: Option<Timestamp>,
    ) -> String {
        let draft = KeyDraft {
            expires_at,
            ..key_draft(permissions)
        };
        self.mint(organization_id, draft).await
    }

    /// Adds a test key with these permissions to the default organization; returns its caller.
    pub async fn test_key(&self, permissions: &[Permission]) -> Caller {
        self.caller().with_key(&self.test_token(permissions).await)
    }

    /// Adds a test key with these permissions to the default organization.
    pub async fn test_token(&self, permissions: &[Permission]) -> String {
        let draft = KeyDraft {
            is_test: true,
            ..key_draft(permissions)
        };
        self.mint(self.organization_id(), draft).await
    }

    async fn mint(&self, organization_id: OrganizationId, draft: KeyDraft) -> String {
        let key = auth::mint(organization_id, draft, None, &self.ids, self.clock.now());
        let mut connection = self.pool.acquire().await.expect("the database answers");
        auth::store::insert(&mut connection, &key.record, key.hash)
            .await
            .expect("a key can be added");
        key.secret.expose_secret().to_owned()
    }
}

fn key_draft(permissions: &[Permission]) -> KeyDraft {
    KeyDraft {
        name: Name::parse("Test key".to_owned()).expect("a constant name"),
        is_test: false,
        permissions: permissions.iter().copied().collect::<Permissions>(),
        allowed_ips: Networks::default(),
        expires_at: None,
    }
}
