//! API keys: creating, changing, rotating and revoking them.

use std::sync::Arc;
use std::time::Duration;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::auth::keys::{ALLOWED_IPS_MAX, GRACE_DEFAULT, GRACE_MAX, KeyChange, Rotation};
use waypost_core::auth::{ApiKey, KeyDraft, MintedKey, Permission, Permissions, store};
use waypost_core::clock::Timestamp;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::ApiKeyId;
use waypost_core::issue::Issue;
use waypost_core::network::{Network, Networks};
use waypost_core::secret::{ExposeSecret, Secret};
use waypost_core::text::Name;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::time::Moment;
use crate::fields::{self, PageLimit, PageNumber, Whole};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created, stored_answer};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Success, Time};
use crate::v1::Section;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct ApiKeysApi {
    pub(crate) context: Arc<Context>,
}

/// An API key. Its secret is returned only once, when the key is created or rotated.
#[derive(Debug, Object)]
#[oai(rename = "ApiKey", rename_all = "camelCase")]
struct ApiKeyView {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    /// The first characters of the secret, to tell keys apart.
    prefix: String,
    /// Whether everything that the key sends is a test. The key of a test key begins with
    /// `wp_test_`, and that of another with `wp_live_`.
    is_test: bool,
    permissions: Vec<String>,
    /// The IP addresses and networks that the key can be used from; if the list is empty,
    /// from anywhere.
    allowed_ips: Vec<String>,
    /// When the key expires; null means never.
    expires_at: Nullable<Time>,
    /// When the key was last used, to the minute.
    last_used_at: Nullable<Time>,
    created_at: Time,
    /// The id of the user or of the API key that created this key, or `system` if the
    /// operator created it.
    created_by: String,
    revoked_at: Nullable<Time>,
    /// When the secret that the last rotation replaced stops working, or stopped.
    old_secret_valid_until: Nullable<Time>,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        let created_by = key.created_by.map(|id| id.to_string());
        Self {
            id: key.id.0,
            organization_id: key.organization_id.0,
            name: key.name,
            prefix: key.prefix,
            is_test: key.is_test,
            permissions: key.permissions.names(),
            allowed_ips: key.allowed_ips.texts(),
            expires_at: Nullable(key.expires_at.map(Time)),
            last_used_at: Nullable(key.last_used_at.map(Time)),
            created_at: Time(key.created_at),
            created_by: created_by.unwrap_or_else(|| "system".to_owned()),
            revoked_at: Nullable(key.revoked_at.map(Time)),
            old_secret_valid_until: Nullable(key.old_secret_valid_until.map(Time)),
        }
    }
}

/// An API key with its secret, which is returned only once.
#[derive(Debug, Object)]
struct ApiKeyWithSecret {
    #[oai(flatten)]
    record: ApiKeyView,
    /// The secret, for `Authorization: Bearer`. It cannot be retrieved again.
    key: String,
}

impl ApiKeyWithSecret {
    fn of(record: ApiKey, secret: &Secret) -> Self {
        Self {
            record: record.into(),
            key: secret.expose_secret().to_owned(),
        }
    }
}

/// An API key to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateApiKeyRequest {
    /// The name of the key.
    name: Validated<Name>,
    /// Whether everything that the key sends is a test, for which no provider is called. The
    /// default is false. A test key can create only test keys.
    is_test: Validated<Option<bool>>,
    /// One or more permissions. The caller must have each of them.
    permissions: Validated<Permissions>,
    /// Up to 100 IP addresses and networks (CIDR) that the key can be used from. The
    /// default is anywhere.
    allowed_ips: Validated<Option<Networks>>,
    /// When the key expires; null means never.
    expires_at: Validated<Option<Moment>>,
}

/// The changes to a key. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateApiKeyRequest {
    /// The name of the key.
    name: Validated<Settable<Name>>,
    /// The permissions. A permission that the caller lacks cannot be added.
    permissions: Validated<Settable<Permissions>>,
    /// The IP addresses and networks that the key can be used from; an empty list means
    /// anywhere.
    allowed_ips: Validated<Settable<Networks>>,
    /// When the key expires; null means never.
    expires_at: Validated<Clearable<Moment>>,
}

/// How to rotate a key.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RotateApiKeyRequest {
    /// How long the old secret keeps working, in seconds: 0 to 604,800. The default is
    /// 86,400 (one day).
    grace_period_seconds: Validated<Option<Whole<0, GRACE_SECONDS_MAX>>>,
}

#[expect(clippy::cast_possible_truncation, reason = "seven days fit")]
const GRACE_SECONDS_MAX: u32 = GRACE_MAX.as_secs() as u32;

impl Field for Permissions {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(Permission::schema()));
            list.min_items = Some(1);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        let named: Vec<Permission> = fields::list(items, 1, usize::MAX, "permissions")?;
        let is_named = |permission: &Permission| named.contains(permission);
        Ok(Permission::ALL.into_iter().filter(is_named).collect())
    }
}

impl Field for Networks {
    fn schema() -> MetaSchemaRef {
        fields::schema("array", |list| {
            list.items = Some(Box::new(Network::schema()));
            list.max_items = Some(ALLOWED_IPS_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = fields::list_of_strings(value)?;
        let mut networks: Vec<Network> = Vec::with_capacity(items.len());
        for network in fields::list(items, 0, ALLOWED_IPS_MAX, "networks")? {
            if !networks.contains(&network) {
                networks.push(network);
            }
        }
        Ok(Self(networks))
    }
}

impl Field for Network {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.example = Some(Value::from("203.0.113.0/24"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = fields::string(value)?;
        text.parse()
            .or_else(|error: waypost_core::network::NetworkError| problem(error.to_string()))
    }
}

#[derive(ApiResponse)]
enum KeyCreated {
    /// The key is created. Only this response contains its secret.
    #[oai(status = 201)]
    Created(Json<Data<ApiKeyWithSecret>>),
}

type KeyAnswer = Result<Json<Data<ApiKeyView>>, Failure>;

#[OpenApi(tag = "Section::ApiKeys")]
impl ApiKeysApi {
    /// List API keys
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest key comes first. Revoked keys
    /// are included.
    #[oai(path = "/v1/api-keys", method = "get", operation_id = "list_api_keys")]
    async fn list_api_keys(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<ApiKeyView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let doing = "list API keys";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, caller.organization_id(), page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(ApiKeyView::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Create an API key
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the new key. Returns
    /// 409 if the calling key is a test key and the new one is not.
    #[oai(
        path = "/v1/api-keys",
        method = "post",
        operation_id = "create_api_key"
    )]
    async fn create_api_key(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateApiKeyRequest, OTHER_BYTES_MAX>,
    ) -> Result<KeyCreated, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let name = request.name.take("name", &mut issues);
        let is_test = request.is_test.take("isTest", &mut issues);
        let permissions = request.permissions.take("permissions", &mut issues);
        let allowed_ips = request.allowed_ips.take("allowedIps", &mut issues);
        let expires_at = request.expires_at.take(EXPIRES_AT, &mut issues);
        let mut expired = Vec::new();
        let expires_at = self.future(expires_at.flatten(), &mut expired);
        let is_right = issues.is_empty();
        let (Some(name), Some(permissions), Some(claim), true) =
            (name, permissions, claim, is_right)
        else {
            issues.append(&mut expired);
            return Err(Failure::Invalid(issues));
        };
        let draft = KeyDraft {
            name,
            is_test: is_test.flatten().unwrap_or_default(),
            permissions,
            allowed_ips: allowed_ips.flatten().unwrap_or_default(),
            expires_at,
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |made: &MintedKey| {
            let data = ApiKeyWithSecret::of(made.record.clone(), &made.secret);
            created(&Data { data })
        });
        let keys = &self.context.keys;
        if !expired.is_empty() {
            // An earlier request with this idempotency key may have created the key
            // before that time passed.
            idempotent.look_up(&keys.pool).await?;
            return Err(Failure::Invalid(expired));
        }
        let made = keys
            .create(caller.grantor(), caller.origin(), draft, &idempotent)
            .await?;
        Ok(KeyCreated::Created(Json(Data {
            data: ApiKeyWithSecret::of(made.record, &made.secret),
        })))
    }

    /// Get an API key
    ///
    /// Requires the permission `SETTINGS_WRITE`.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "get",
        operation_id = "get_api_key"
    )]
    async fn get_api_key(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// The id of the API key.
        id: Path<PathId>,
    ) -> KeyAnswer {
        let caller = caller.authorize()?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let doing = "show an API key";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let key = store::find(&mut connection, caller.organization_id(), id)
            .await?
            .ok_or(Failure::NotFound(KEY))?;
        Ok(Json(Data { data: key.into() }))
    }

    /// Change an API key
    ///
    /// Requires the permission `SETTINGS_WRITE`, every permission of the key, and every
    /// permission that the change adds. A key can change itself. The change takes effect
    /// within five seconds.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "patch",
        operation_id = "update_api_key"
    )]
    async fn update_api_key(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the API key.
        id: Path<PathId>,
        body: JsonBody<UpdateApiKeyRequest, OTHER_BYTES_MAX>,
    ) -> KeyAnswer {
        let caller = caller.authorize()?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let expires_at = request.expires_at.change(EXPIRES_AT, &mut issues);
        let wanted = KeyChange {
            name: request.name.change("name", &mut issues),
            permissions: request.permissions.change("permissions", &mut issues),
            allowed_ips: request.allowed_ips.change("allowedIps", &mut issues),
            expires_at: expires_at.map(|given| self.future(given, &mut issues)),
        };
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let keys = &self.context.keys;
        let key = keys
            .change(caller.grantor(), caller.origin(), id, wanted)
            .await?;
        Ok(Json(Data { data: key.into() }))
    }

    /// Revoke an API key
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the key. The key
    /// stops working within five seconds. Its record remains, with `revokedAt`.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "delete",
        operation_id = "revoke_api_key"
    )]
    async fn revoke_api_key(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the API key.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let keys = &self.context.keys;
        keys.revoke(caller.grantor(), caller.origin(), id).await?;
        Ok(Json(Success { success: true }))
    }

    /// Rotate an API key
    ///
    /// Requires the permission `SETTINGS_WRITE` and every permission of the key. The key
    /// gets a new secret. The old secret keeps working until the grace period ends.
    #[oai(
        path = "/v1/api-keys/:id/rotate",
        method = "post",
        operation_id = "rotate_api_key"
    )]
    async fn rotate_api_key(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the API key.
        id: Path<PathId>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<RotateApiKeyRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<ApiKeyWithSecret>>, Failure> {
        let caller = caller.authorize()?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let grace = request
            .grace_period_seconds
            .take("gracePeriodSeconds", &mut issues);
        let (Some(grace), Some(claim), true) = (grace, claim, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |(key, secret)| {
            let data = ApiKeyWithSecret::of(ApiKey::clone(key), secret);
            stored_answer(200, &Data { data })
        });
        let grace = grace.map_or(GRACE_DEFAULT, |given| Duration::from_secs(given.0.into()));
        let keys = &self.context.keys;
        let (key, secret) = keys
            .rotate(
                caller.grantor(),
                caller.origin(),
                Rotation { id, grace },
                &idempotent,
            )
            .await?;
        Ok(Json(Data {
            data: ApiKeyWithSecret::of(key, &secret),
        }))
    }
}

const KEY: &str = "API key";
const EXPIRES_AT: &str = "expiresAt";

impl ApiKeysApi {
    /// The requested expiry time. One that is not in the future goes to `issues`.
    fn future(&self, given: Option<Moment>, issues: &mut Vec<Issue>) -> Option<Timestamp> {
        let end = given?.0;
        if end <= self.context.keys.clock.now() {
            issues.push(Issue::new(EXPIRES_AT, "must be in the future"));
        }
        Some(end)
    }
}
