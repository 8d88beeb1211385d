//! A request to a vendor's operation, and how handlers read it.

use std::sync::Arc;

use poem::{Request, RequestBody};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::issue::Issue;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::{self, Caller};
use crate::request::body::{self, JsonLimits};
use crate::request::idempotency_key::{KeyHeader, body_hash};
use crate::request::large_text::LargeTexts;

/// The largest body of an operation that takes no fields, in bytes.
const NO_FIELDS_BYTES_MAX: usize = 64 << 10;

/// A request to a vendor's operation.
pub(super) struct VendorCall {
    pub(super) context: Arc<Context>,
    request: Request,
    body: RequestBody,
}

/// The JSON of a request.
pub(super) struct VendorJson {
    pub(super) value: Value,
    /// The contents that stay in the body.
    pub(super) texts: LargeTexts,
    /// `None` if the request has no idempotency key.
    pub(super) hash: Option<BodyHash>,
}

impl VendorCall {
    pub(super) fn new(request: Request) -> Self {
        let context = Arc::clone(auth::context(&request));
        let (request, body) = request.split();
        Self {
            context,
            request,
            body,
        }
    }

    /// The caller, if the request has an API key with the permission.
    ///
    /// # Errors
    /// `Unauthenticated`, `Forbidden`, or a fault.
    pub(super) fn authorize(&self, permission: Permission) -> Result<Caller, Failure> {
        auth::key_caller(&self.request, permission)
    }

    /// Reads the body, whatever JSON it is.
    ///
    /// # Errors
    /// It cannot be read, is too large, or is not JSON.
    pub(super) async fn json(&mut self, limits: JsonLimits) -> Result<VendorJson, Failure> {
        let (value, texts) = body::read_json(&self.request, &mut self.body, limits).await?;
        let hash = body_hash(&self.request, &value);
        Ok(VendorJson { value, texts, hash })
    }

    /// Reads the body of an operation that takes no fields: none, `null` or `{}`.
    ///
    /// # Errors
    /// There is something else.
    pub(super) async fn without_fields(&mut self) -> Result<(), Failure> {
        let bytes = body::read_bytes(&self.request, &mut self.body, NO_FIELDS_BYTES_MAX).await?;
        match bytes.trim_ascii() {
            b"" | b"null" | b"{}" => Ok(()),
            _ => Err(Failure::Invalid(vec![Issue::new(
                "",
                "must have no body: this operation takes none",
            )])),
        }
    }

    /// The idempotency key of the request.
    pub(super) fn key(&self) -> KeyHeader {
        KeyHeader::of(&self.request)
    }

    /// A request header, if it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.request.header(name)
    }

    /// The id in the path, of the record named `what`.
    ///
    /// # Errors
    /// `NotFound(what)` if it is not a UUID.
    pub(super) fn path_id<T: From<Uuid>>(
        &self,
        name: &str,
        what: &'static str,
    ) -> Result<T, Failure> {
        let text = self.request.raw_path_param(name).unwrap_or_default();
        let id = Uuid::parse_str(text).ok();
        id.map(T::from).ok_or(Failure::NotFound(what))
    }

    /// The parameters of the query, decoded, in their order.
    pub(super) fn query(&self) -> Vec<(String, String)> {
        let query = self.request.uri().query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect()
    }
}
