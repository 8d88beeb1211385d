//! Request bodies. A [`JsonBody`] is read whole, within its bound, and parsed; what is
//! wrong with it is kept until the handler asks, so that a caller without the
//! permission is told that first.

mod measure;
mod unique;

use std::sync::Arc;

use poem::error::ReadBodyError;
use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, Registry};
use poem_openapi::types::{ParseFromJSON, Type};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::{Map, Value};
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::issue::Issue;

use crate::error::{Failure, is_too_large};
use crate::idempotency::hash_of_keyed;
use crate::response::Nullable;
use crate::unknown_fields::{self, Names};

/// The bound of a send, in bytes.
pub(crate) const SEND_BYTES_MAX: usize = 30 * MIB;
/// The bound of a batch, in bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 50 * MIB;
/// The bound of a template version, in bytes.
pub(crate) const VERSION_BYTES_MAX: usize = 5 * MIB;
/// The bound of an import of suppressions, in bytes.
pub(crate) const IMPORT_BYTES_MAX: usize = 5 * MIB;
/// The bound elsewhere, in bytes.
pub(crate) const OTHER_BYTES_MAX: usize = MIB;

const MIB: usize = 1 << 20;

/// JSON values in a body at the most.
const VALUES_MAX: usize = 200_000;
/// The same of a batch: a thousand messages to a thousand recipients each.
const BATCH_VALUES_MAX: usize = 1_200_000;

/// A JSON object of at most `MAX` bytes. An optional one may be left out, with or without
/// its content type, or be null, and is an empty object then.
#[derive(Debug)]
pub(crate) struct JsonBody<T, const MAX: usize, const IS_OPTIONAL: bool = false> {
    parsed: Result<T, Failure>,
    surplus: Vec<Issue>,
    hash: Option<BodyHash>,
}

impl<T, const MAX: usize, const IS_OPTIONAL: bool> JsonBody<T, MAX, IS_OPTIONAL> {
    /// The parsed body. What the request says too much, in its body or its query, goes to
    /// `issues`; where there are any, the request must not be served.
    ///
    /// # Errors
    /// That it cannot be parsed, and the issues that there are.
    pub(crate) fn take(self, issues: &mut Vec<Issue>) -> Result<T, Failure> {
        issues.extend(self.surplus);
        self.parsed.map_err(|failure| failure.after(issues))
    }

    /// The hash of the JSON, where the request has an idempotency key and the body
    /// is JSON.
    pub(crate) fn hash(&self) -> Option<BodyHash> {
        self.hash
    }
}

impl<T: ParseFromJSON, const MAX: usize, const IS_OPTIONAL: bool> JsonBody<T, MAX, IS_OPTIONAL> {
    async fn read(request: &Request, body: &mut RequestBody) -> Result<Value, Failure> {
        let is_encoded = request
            .header("content-encoding")
            .is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
        // What is compressed is not unpacked: its bound would be anyone's guess.
        let content_type = request.header("content-type");
        let may_be_missing = IS_OPTIONAL && content_type.is_none();
        if is_encoded || !(may_be_missing || content_type.is_some_and(is_json)) {
            return Err(Failure::NotJson);
        }
        let bytes = read_bytes(request, body, MAX).await?;
        if IS_OPTIONAL && bytes.trim_ascii().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        if may_be_missing {
            return Err(Failure::NotJson);
        }
        let values_max = match MAX {
            BATCH_BYTES_MAX => BATCH_VALUES_MAX,
            _ => VALUES_MAX,
        };
        if measure::values(&bytes) > values_max {
            return Err(whole(format!(
                "body must not hold more than {values_max} values"
            )));
        }
        let unique::Unique(value) = serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            whole(format!(
                "body is not valid JSON: {} (line {line}, column {column})",
                reason(&error)
            ))
        })?;
        if IS_OPTIONAL && value.is_null() {
            return Ok(Value::Object(Map::new()));
        }
        if !value.is_object() {
            return Err(whole("body must be a JSON object".to_owned()));
        }
        Ok(value)
    }
}

/// Reads a body whole. One that announces itself as too large is refused at once and not
/// read.
///
/// # Errors
/// That it is too large, or why it could not be read.
pub(crate) async fn read_bytes(
    request: &Request,
    body: &mut RequestBody,
    max: usize,
) -> Result<Vec<u8>, Failure> {
    let announced = request.header("content-length");
    let announced: Option<usize> = announced.and_then(|length| length.parse().ok());
    if announced.is_some_and(|length| length > max) {
        return Err(Failure::TooLarge(max));
    }
    let body = body.take().map_err(|error| whole(unread(&error)))?;
    let bytes = body.into_bytes_limit(max).await.map_err(|error| {
        if is_too_large(&error) {
            Failure::TooLarge(max)
        } else {
            whole(unread(&error))
        }
    })?;
    Ok(bytes.into())
}

/// A finding about the body as a whole.
fn whole(message: String) -> Failure {
    Failure::Invalid(vec![Issue::new("", message)])
}

/// Why a body could not be read: the client went away, or was too slow.
fn unread(error: &ReadBodyError) -> String {
    let reason = match error {
        ReadBodyError::Io(error) => error.to_string(),
        ReadBodyError::BodyHasBeenTaken
        | ReadBodyError::Utf8(_)
        | ReadBodyError::PayloadTooLarge => error.to_string(),
    };
    format!("body could not be read: {reason}")
}

/// What is wrong with the JSON, without the place that the error repeats.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

impl<'a, T: ParseFromJSON, const MAX: usize, const IS_OPTIONAL: bool> ApiExtractor<'a>
    for JsonBody<T, MAX, IS_OPTIONAL>
{
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        Some(MetaRequest {
            description: None,
            content: vec![MetaMediaType {
                content_type: "application/json",
                schema: if IS_OPTIONAL {
                    Nullable::<T>::schema_ref()
                } else {
                    <T as Type>::schema_ref()
                },
            }],
            required: !IS_OPTIONAL,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let value = Self::read(request, body).await;
        let hash = value
            .as_ref()
            .ok()
            .and_then(|value| hash_of_keyed(request, value));
        let mut surplus = unknown_fields::take_surplus(request);
        if let (Ok(value), Some(names)) = (&value, request.data::<Arc<Names>>()) {
            surplus.extend(names.surplus_of(value));
        }
        let parsed = value.and_then(|value| {
            T::parse_from_json(Some(value)).map_err(|error| whole(error.into_message()))
        });
        Ok(Self {
            parsed,
            surplus,
            hash,
        })
    }
}
