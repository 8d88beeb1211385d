//! Idempotency keys in HTTP: the request header `Idempotency-Key`, the replayed response
//! with `Idempotent-Replayed: true`, and the description of both in the document.
//!
//! Every operation that creates something takes a [`KeyHeader`], builds a claim from it
//! and passes the claim to the core. A repeated header, or one that is not UTF-8, is
//! rejected: the client would otherwise believe that a key protects its request.

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, RequestBody, Response};
use poem_openapi::registry::{MetaParamIn, MetaSchemaRef};
use poem_openapi::types::ToJSON;
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::{Map, Value, json};
use waypost_core::idempotency::fingerprint::{self, BodyHash};
use waypost_core::idempotency::{IdempotencyKey, KeyClaim, StoredAnswer};
use waypost_core::issue::Issue;

use crate::context::Context;
use crate::fields;
use crate::middleware::auth::Caller;
use crate::request::body::JsonBody;
use crate::validate::{Field, problem};

/// The request header.
pub(crate) const KEY: &str = "Idempotency-Key";
/// The header of a replayed response.
const REPLAYED: &str = "Idempotent-Replayed";
/// The path that keys of messages belong to: a key means the same for a single message
/// and for a message in a batch.
pub(crate) const SEND_PATH: &str = "/v1/send";

/// The idempotency key of a request, or the mistakes in its header.
#[derive(Debug)]
pub(crate) struct KeyHeader {
    path: String,
    key: Result<Option<IdempotencyKey>, Vec<Issue>>,
}

impl KeyHeader {
    /// That of a request.
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            path: request.original_uri().path().to_owned(),
            key: read(request),
        }
    }

    /// The claim of the request, or `Some(None)` if it has no key. Mistakes in the header
    /// go to `issues`, and the result is `None`. A body that could not be read makes no
    /// claim, since the request is rejected.
    pub(crate) fn claim<T, const MAX: usize, const IS_OPTIONAL: bool>(
        self,
        context: &Context,
        caller: &Caller,
        body: &JsonBody<T, MAX, IS_OPTIONAL>,
        issues: &mut Vec<Issue>,
    ) -> Option<Option<KeyClaim>> {
        self.claim_of(context, caller, body.hash(), issues)
    }

    /// The same for a body with this hash.
    pub(crate) fn claim_of(
        self,
        context: &Context,
        caller: &Caller,
        body_hash: Option<BodyHash>,
        issues: &mut Vec<Issue>,
    ) -> Option<Option<KeyClaim>> {
        let key = match self.key {
            Ok(key) => key,
            Err(found) => {
                issues.extend(found.into_iter().map(|issue| issue.under(KEY)));
                return None;
            }
        };
        let claim = key.zip(body_hash).map(|(key, body_hash)| {
            let now = context.clock.now();
            caller.claim(&self.path, &key, body_hash, now)
        });
        Some(claim)
    }
}

fn read(request: &Request) -> Result<Option<IdempotencyKey>, Vec<Issue>> {
    let mut values = request.headers().get_all(KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return problem("must not be given more than once");
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => IdempotencyKey::read(Value::from(text)).map(Some),
        Err(_) => problem("must be text in UTF-8"),
    }
}

/// The hash of a body; `None` if the request has no idempotency key.
pub(crate) fn body_hash(request: &Request, body: &Value) -> Option<BodyHash> {
    let is_keyed = request.headers().contains_key(KEY);
    is_keyed.then(|| fingerprint::of(body))
}

impl Field for IdempotencyKey {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(Self::CHARS_MAX);
            schema.example = Some(Value::from("order-1234-receipt"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = fields::string(value)?;
        Self::parse(text).or_else(|error| problem(error.to_string()))
    }
}

impl<'a> ApiExtractor<'a> for KeyHeader {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    type ParamType = ();
    type ParamRawType = ();

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Header)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(IdempotencyKey::schema())
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self::of(request))
    }
}

/// The 201 response of a creation, stored with the idempotency key.
pub(crate) fn created(body: &impl ToJSON) -> StoredAnswer {
    stored_answer(201, body)
}

/// A response with `status`, stored with the idempotency key or replayed.
pub(crate) fn stored_answer(status: u16, body: &impl ToJSON) -> StoredAnswer {
    let body = body.to_json().unwrap_or_default();
    StoredAnswer {
        status,
        body: body.to_string().into_bytes(),
    }
}

/// The HTTP response that replays a stored response.
pub(crate) fn replay(answer: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = answer.body.into_response();
    response.set_status(status);
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Describes the key and the header of a replayed response in the document, for every
/// operation that takes a key.
pub(crate) fn document(operation: &mut Map<String, Value>) {
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    let mut parameters = parameters.into_iter().flatten();
    let Some(key) = parameters.find(|parameter| parameter["name"] == KEY) else {
        return;
    };
    key["description"] = Value::from(
        "Makes the request safe to repeat for 24 hours. A request with the same key and the same body \
         (compared as JSON: white space and the order of fields do not matter) is not done again; it gets \
         the response of the first request. The same key with another body is rejected with 409, as is a \
         repeat while the first request still runs after 5 seconds of waiting. A key belongs to the \
         organization and the path, and those of test keys are apart.",
    );
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        response["headers"][REPLAYED] = json!({
            "description": "`true` if this is the stored response to an earlier request with the same \
                            `Idempotency-Key`; absent otherwise.",
            "schema": { "type": "string", "enum": ["true"] },
        });
    }
}
