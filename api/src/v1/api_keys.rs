//! API keys: making, changing, rotating and revoking them.

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

use crate::auth::Caller;
use crate::body::{JsonBody, OTHER_BYTES_MAX};
use crate::context::Context;
use crate::error::Failure;
use crate::fields::time::Moment;
use crate::fields::{self, PageLimit, PageNumber, Whole};
use crate::idempotency::{KeyHeader, answer, created};
use crate::ids::PathId;
use crate::query::Query;
use crate::response::{Data, Nullable, Paged, Pagination, Success, Time, read_page};
use crate::v1::Section;
use crate::validate::{Clearable, Field, Settable, Validated, problem};

pub(crate) struct ApiKeysApi {
    pub(crate) context: Arc<Context>,
}

/// An API key. The key itself is shown once, when it is made or rotated.
#[derive(Debug, Object)]
#[oai(rename = "ApiKey", rename_all = "camelCase")]
struct ApiKeyView {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    /// The first characters of the key, to tell keys apart.
    prefix: String,
    permissions: Vec<String>,
    /// Addresses and networks that it may be used from; anywhere where there are
    /// none.
    allowed_ips: Vec<String>,
    /// From when on it is refused.
    expires_at: Nullable<Time>,
    /// When it was last used, to the minute.
    last_used_at: Nullable<Time>,
    created_at: Time,
    /// The id of the key that made it, or `system` where the operator did.
    created_by: String,
    revoked_at: Nullable<Time>,
    /// Until when the secret works, or worked, that the last rotation replaced.
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

/// An API key with its secret, shown this once.
#[derive(Debug, Object)]
struct ApiKeyWithSecret {
    #[oai(flatten)]
    record: ApiKeyView,
    /// The key, for `Authorization: Bearer`. It cannot be shown again.
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

/// A key to make.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateApiKeyRequest {
    /// A name for people.
    name: Validated<Name>,
    /// What it may do: one or more of the permissions that the calling key has.
    permissions: Validated<Permissions>,
    /// Up to 100 addresses and networks (CIDR) that it may be used from; anywhere
    /// where there are none.
    allowed_ips: Validated<Option<Networks>>,
    /// From when on it is refused.
    expires_at: Validated<Option<Moment>>,
}

/// What of a key is to change; what is absent stays.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateApiKeyRequest {
    /// A name for people.
    name: Validated<Settable<Name>>,
    /// What it may do. Permissions that the calling key lacks cannot be added.
    permissions: Validated<Settable<Permissions>>,
    /// Where it may be used from; anywhere where there are none.
    allowed_ips: Validated<Settable<Networks>>,
    /// From when on it is refused; null means never.
    expires_at: Validated<Clearable<Moment>>,
}

/// How a key is to be rotated.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RotateApiKeyRequest {
    /// How long the old secret works beside the new one: 0 to 604,800, a day where
    /// nothing is said.
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
        let named: Vec<Permission> = fields::list(items, 1, usize::MAX, "the permissions")?;
        let is_named = |permission: &Permission| named.contains(permission);
        Ok(Permission::ALL.into_iter().filter(is_named).collect())
    }
}

impl Field for Permission {
    fn schema() -> MetaSchemaRef {
        fields::words(&Self::ALL.map(Self::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        fields::string(value)?.parse().or_else(problem)
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
    /// The key is made. This is the only answer that shows it.
    #[oai(status = 201)]
    Created(Json<Data<ApiKeyWithSecret>>),
}

type KeyAnswer = Result<Json<Data<ApiKeyView>>, Failure>;

#[OpenApi(tag = "Section::ApiKeys")]
impl ApiKeysApi {
    /// List API keys
    ///
    /// Takes the permission SETTINGS_WRITE. Newest first; revoked ones stay listed.
    #[oai(path = "/v1/api-keys", method = "get", operation_id = "list_api_keys")]
    async fn list_api_keys(
        &self,
        caller: Caller,
        /// The page, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// Rows on a page.
        limit: Query<Validated<Option<PageLimit>>>,
    ) -> Result<Json<Paged<ApiKeyView>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let mut issues = Vec::new();
        let page = read_page(page.0, limit.0, &mut issues).ok_or(Failure::Invalid(issues))?;
        let doing = "list API keys";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let found = store::list(&mut connection, caller.organization_id(), page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(ApiKeyView::from).collect(),
            pagination: Pagination::of(page, found.total),
        }))
    }

    /// Create an API key
    ///
    /// Takes the permission SETTINGS_WRITE, and every permission that the new key
    /// is to have.
    #[oai(
        path = "/v1/api-keys",
        method = "post",
        operation_id = "create_api_key"
    )]
    async fn create_api_key(
        &self,
        caller: Caller,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateApiKeyRequest, OTHER_BYTES_MAX>,
    ) -> Result<KeyCreated, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let name = request.name.take("name", &mut issues);
        let permissions = request.permissions.take("permissions", &mut issues);
        let allowed_ips = request.allowed_ips.take("allowedIps", &mut issues);
        let expires_at = request.expires_at.take(EXPIRES_AT, &mut issues);
        let mut late = Vec::new();
        let expires_at = self.to_come(expires_at.flatten(), &mut late);
        let is_right = issues.is_empty();
        let (Some(name), Some(permissions), Some(claim), true) =
            (name, permissions, claim, is_right)
        else {
            issues.append(&mut late);
            return Err(Failure::Invalid(issues));
        };
        let draft = KeyDraft {
            name,
            permissions,
            allowed_ips: allowed_ips.flatten().unwrap_or_default(),
            expires_at,
        };
        let once = Idempotent::new(claim, &self.context.sealer, |made: &MintedKey| {
            let data = ApiKeyWithSecret::of(made.record.clone(), &made.secret);
            created(&Data { data })
        });
        let keys = &self.context.keys;
        if !late.is_empty() {
            // It may have been made while that time was to come.
            once.look_up(&keys.pool).await?;
            return Err(Failure::Invalid(late));
        }
        let made = keys
            .create(caller.key(), caller.origin(), draft, &once)
            .await?;
        Ok(KeyCreated::Created(Json(Data {
            data: ApiKeyWithSecret::of(made.record, &made.secret),
        })))
    }

    /// Show an API key
    ///
    /// Takes the permission SETTINGS_WRITE.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "get",
        operation_id = "get_api_key"
    )]
    async fn get_api_key(&self, caller: Caller, id: Path<PathId>) -> KeyAnswer {
        caller.require(Permission::SettingsWrite)?;
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
    /// Takes the permission SETTINGS_WRITE, every permission that the key has, and
    /// those that the change adds. A key may change itself. It counts within five
    /// seconds.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "patch",
        operation_id = "update_api_key"
    )]
    async fn update_api_key(
        &self,
        caller: Caller,
        id: Path<PathId>,
        body: JsonBody<UpdateApiKeyRequest, OTHER_BYTES_MAX>,
    ) -> KeyAnswer {
        caller.require(Permission::SettingsWrite)?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let expires_at = request.expires_at.change(EXPIRES_AT, &mut issues);
        let wanted = KeyChange {
            name: request.name.change("name", &mut issues),
            permissions: request.permissions.change("permissions", &mut issues),
            allowed_ips: request.allowed_ips.change("allowedIps", &mut issues),
            expires_at: expires_at.map(|given| self.to_come(given, &mut issues)),
        };
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let keys = &self.context.keys;
        let key = keys
            .change(caller.key(), caller.origin(), id, wanted)
            .await?;
        Ok(Json(Data { data: key.into() }))
    }

    /// Revoke an API key
    ///
    /// Takes the permission SETTINGS_WRITE, and every permission that the key has. The
    /// key is refused within five seconds. Its record stays, with `revokedAt`.
    #[oai(
        path = "/v1/api-keys/:id",
        method = "delete",
        operation_id = "revoke_api_key"
    )]
    async fn revoke_api_key(
        &self,
        caller: Caller,
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let id: ApiKeyId = id.0.of(KEY)?;
        let keys = &self.context.keys;
        keys.revoke(caller.key(), caller.origin(), id).await?;
        Ok(Json(Success { success: true }))
    }

    /// Rotate an API key
    ///
    /// Takes the permission SETTINGS_WRITE, and every permission that the key has.
    /// The old secret works beside the new one until the grace period ends.
    #[oai(
        path = "/v1/api-keys/:id/rotate",
        method = "post",
        operation_id = "rotate_api_key"
    )]
    async fn rotate_api_key(
        &self,
        caller: Caller,
        id: Path<PathId>,
        /// Makes it safe to repeat the request.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<RotateApiKeyRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<Data<ApiKeyWithSecret>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
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
        let once = Idempotent::new(claim, &self.context.sealer, |(key, secret)| {
            let data = ApiKeyWithSecret::of(ApiKey::clone(key), secret);
            answer(200, &Data { data })
        });
        let grace = grace.map_or(GRACE_DEFAULT, |given| Duration::from_secs(given.0.into()));
        let keys = &self.context.keys;
        let (key, secret) = keys
            .rotate(caller.key(), caller.origin(), Rotation { id, grace }, &once)
            .await?;
        Ok(Json(Data {
            data: ApiKeyWithSecret::of(key, &secret),
        }))
    }
}

const KEY: &str = "API key";
const EXPIRES_AT: &str = "expiresAt";

impl ApiKeysApi {
    /// The end that is asked for, which must lie ahead.
    fn to_come(&self, given: Option<Moment>, issues: &mut Vec<Issue>) -> Option<Timestamp> {
        let end = given?.0;
        if end <= self.context.keys.clock.now() {
            issues.push(Issue::new(EXPIRES_AT, "must lie in the future"));
        }
        Some(end)
    }
}
