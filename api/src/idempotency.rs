//! Idempotency keys on the wire: the header `Idempotency-Key`, the answer that is
//! given again with `Idempotent-Replayed: true`, and what the document says of both.
//!
//! Every operation that creates takes a [`KeyHeader`], claims with it and hands the
//! claim on to the core. A header that comes more than once, or is not text in
//! UTF-8, is refused: a request must not be done without the protection that its
//! sender believes it has.

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, RequestBody, Response};
use poem_openapi::registry::{MetaParamIn, MetaSchemaRef};
use poem_openapi::types::ToJSON;
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::{Value, json};
use waypost_core::idempotency::fingerprint::{self, BodyHash};
use waypost_core::idempotency::{IdempotencyKey, KeyClaim, StoredAnswer};
use waypost_core::issue::Issue;

use crate::auth::Caller;
use crate::body::JsonBody;
use crate::context::Context;
use crate::fields;
use crate::validate::{Field, problem};

/// The header of the request.
pub(crate) const KEY: &str = "Idempotency-Key";
/// The header of an answer that is given again.
const REPLAYED: &str = "Idempotent-Replayed";
/// Where the keys of single messages count: a key is the same one in a batch.
pub(crate) const SEND_PATH: &str = "/v1/send";

/// The key of a request, as far as its header could be read.
#[derive(Debug)]
pub(crate) struct KeyHeader {
    path: String,
    key: Result<Option<IdempotencyKey>, Vec<Issue>>,
}

impl KeyHeader {
    /// The claim of the request, where it has a key; what is wrong with the header
    /// goes to `issues`. A body that could not be read makes no claim, since it is
    /// refused.
    pub(crate) fn claim<T, const MAX: usize, const IS_OPTIONAL: bool>(
        self,
        context: &Context,
        caller: &Caller,
        body: &JsonBody<T, MAX, IS_OPTIONAL>,
        issues: &mut Vec<Issue>,
    ) -> Option<Option<KeyClaim>> {
        let key = match self.key {
            Ok(key) => key,
            Err(found) => {
                issues.extend(found.into_iter().map(|issue| issue.under(KEY)));
                return None;
            }
        };
        let claim = key.zip(body.hash()).map(|(key, body_hash)| {
            let now = context.clock.now();
            KeyClaim::new(caller.organization_id(), &self.path, &key, body_hash, now)
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
        return problem("must not be there more than once");
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => IdempotencyKey::read(Value::from(text)).map(Some),
        Err(_) => problem("must be text in UTF-8"),
    }
}

/// The hash of a body, for those requests that have a key.
pub(crate) fn hash_of_keyed(request: &Request, body: &Value) -> Option<BodyHash> {
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
        Ok(Self {
            path: request.original_uri().path().to_owned(),
            key: read(request),
        })
    }
}

/// What the maker of a record is answered, to be kept with its key.
pub(crate) fn created(body: &impl ToJSON) -> StoredAnswer {
    answer(201, body)
}

/// What is answered with `status`, to be kept or to be given again.
pub(crate) fn answer(status: u16, body: &impl ToJSON) -> StoredAnswer {
    let body = body.to_json().unwrap_or_default();
    StoredAnswer {
        status,
        body: body.to_string().into_bytes(),
    }
}

/// An earlier answer, given again.
pub(crate) fn respond_again(answer: StoredAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = answer.body.into_response();
    response.set_status(status);
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Documents, for every operation that takes a key, what the key does and the
/// header of an answer given again.
pub(crate) fn document(operation: &mut Value) {
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    let mut parameters = parameters.into_iter().flatten();
    let Some(key) = parameters.find(|parameter| parameter["name"] == KEY) else {
        return;
    };
    key["description"] = Value::from(
        "Makes it safe to repeat the request, for 24 hours: one with the same key and the same body (as \
         JSON, whatever its white space and the order of its members) is not done again and gets the \
         answer of the first. With another body it is refused, as it is while the first still runs and \
         does not end within 5 seconds. A key belongs to the organization and the path.",
    );
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        response["headers"][REPLAYED] = json!({
            "description": "`true` where this is the answer to an earlier request with the same \
                            `Idempotency-Key`; absent otherwise.",
            "schema": { "type": "string", "enum": ["true"] },
        });
    }
}
