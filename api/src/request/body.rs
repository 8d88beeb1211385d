//! Request bodies. A [`JsonBody`] is read whole, up to its limit, and parsed. Its
//! mistakes wait until the handler takes the body, so that a caller without the
//! permission gets 403 first.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use poem::error::ReadBodyError;
use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, Registry};
use poem_openapi::types::{ParseFromJSON, Type};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::issue::Issue;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::unknown_fields::{self, KnownNames};
use crate::request::idempotency_key::body_hash;
use crate::request::large_text::{self, LargeTexts};
use crate::request::memory::{RequestMemory, SMALL_BYTES_MAX};
use crate::response::Nullable;

/// The largest body of a send, in bytes.
pub(crate) const SEND_BYTES_MAX: usize = 30 * MIB;
/// The largest body of a batch, in bytes.
pub(crate) const BATCH_BYTES_MAX: usize = 50 * MIB;
/// The largest body of a template version, in bytes.
pub(crate) const VERSION_BYTES_MAX: usize = 5 * MIB;
/// The largest body of a suppression import, in bytes.
pub(crate) const IMPORT_BYTES_MAX: usize = 5 * MIB;
/// The largest body of any other operation, in bytes.
pub(crate) const OTHER_BYTES_MAX: usize = MIB;

const MIB: usize = 1 << 20;

/// The most JSON values in a body. A value takes dozens of bytes in memory, however short
/// its text is: 30 MiB of `[[],[],…` would take half a gigabyte.
const VALUES_MAX: usize = 200_000;
/// The same for a batch: a thousand messages with a thousand recipients each.
const BATCH_VALUES_MAX: usize = 1_200_000;

/// A JSON object of at most `MAX` bytes. If it is optional, it may be missing (with or
/// without a content type) or null, and is then read as an empty object.
#[derive(Debug)]
pub(crate) struct JsonBody<T, const MAX: usize, const IS_OPTIONAL: bool = false> {
    parsed: Result<T, Failure>,
    issues: Vec<Issue>,
    hash: Option<BodyHash>,
}

impl<T, const MAX: usize, const IS_OPTIONAL: bool> JsonBody<T, MAX, IS_OPTIONAL> {
    /// The parsed body. Unknown fields of the body and mistakes in the query go to
    /// `issues`; if there are any, the handler must reject the request.
    ///
    /// # Errors
    /// Why the body could not be read or parsed, together with `issues`.
    pub(crate) fn take(self, issues: &mut Vec<Issue>) -> Result<T, Failure> {
        issues.extend(self.issues);
        self.parsed.map_err(|failure| failure.after(issues))
    }

    /// The hash of the JSON; `None` if the request has no idempotency key or the body is
    /// not JSON.
    pub(crate) fn hash(&self) -> Option<BodyHash> {
        self.hash
    }
}

impl<T: ParseFromJSON, const MAX: usize, const IS_OPTIONAL: bool> JsonBody<T, MAX, IS_OPTIONAL> {
    async fn read(
        request: &Request,
        body: &mut RequestBody,
    ) -> Result<(Value, LargeTexts), Failure> {
        let content_type = request.header("content-type");
        let may_be_missing = IS_OPTIONAL && content_type.is_none();
        if is_encoded(request) || !(may_be_missing || content_type.is_some_and(is_json)) {
            return Err(Failure::NotJson);
        }
        let bytes = read_bytes(request, body, MAX).await?;
        if IS_OPTIONAL && bytes.trim_ascii().is_empty() {
            return Ok((Value::Object(Map::new()), LargeTexts::default()));
        }
        if may_be_missing {
            return Err(Failure::NotJson);
        }
        let values_max = match MAX {
            BATCH_BYTES_MAX => BATCH_VALUES_MAX,
            _ => VALUES_MAX,
        };
        let (value, texts) = parse(bytes, values_max)?;
        if IS_OPTIONAL && value.is_null() {
            return Ok((Value::Object(Map::new()), texts));
        }
        if !value.is_object() {
            return Err(whole("body must be a JSON object".to_owned()));
        }
        Ok((value, texts))
    }
}

/// The limits of a JSON body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonLimits {
    bytes_max: usize,
    values_max: usize,
}

impl JsonLimits {
    /// Those of one message.
    pub(crate) const SEND: Self = Self {
        bytes_max: SEND_BYTES_MAX,
        values_max: VALUES_MAX,
    };
    /// Those of several messages.
    pub(crate) const BATCH: Self = Self {
        bytes_max: BATCH_BYTES_MAX,
        values_max: BATCH_VALUES_MAX,
    };
    /// Those of any other body.
    pub(crate) const OTHER: Self = Self {
        bytes_max: OTHER_BYTES_MAX,
        values_max: VALUES_MAX,
    };
}

/// Reads a body that may be any JSON.
///
/// # Errors
/// It cannot be read, is above a limit, or is not JSON.
pub(crate) async fn read_json(
    request: &Request,
    body: &mut RequestBody,
    limits: JsonLimits,
) -> Result<(Value, LargeTexts), Failure> {
    if is_encoded(request) || !request.header("content-type").is_some_and(is_json) {
        return Err(Failure::NotJson);
    }
    let bytes = read_bytes(request, body, limits.bytes_max).await?;
    parse(bytes, limits.values_max)
}

/// Compressed bodies are not supported: their size is unknown before they are unpacked.
fn is_encoded(request: &Request) -> bool {
    let coding = request.header("content-encoding");
    coding.is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"))
}

fn parse(mut bytes: Vec<u8>, values_max: usize) -> Result<(Value, LargeTexts), Failure> {
    if count_values(&bytes) > values_max {
        return Err(whole(format!(
            "body must not hold more than {values_max} values"
        )));
    }
    if bytes.len() > SMALL_BYTES_MAX {
        large_text::unescape(&mut bytes);
    }
    let parsed = large_text::parse(&Bytes::from(bytes));
    parsed.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        whole(format!(
            "body is not valid JSON: {} (line {line}, column {column})",
            reason(&error)
        ))
    })
}

/// Reads a whole body. A body whose `Content-Length` is above `max` is rejected unread, and so
/// is a large one for which the process has no memory.
///
/// # Errors
/// `TooLarge`, a fault if the process has no memory for it, or `Invalid` if the client
/// disconnected or was too slow.
pub(crate) async fn read_bytes(
    request: &Request,
    body: &mut RequestBody,
    max: usize,
) -> Result<Vec<u8>, Failure> {
    let length = request.header("content-length");
    let length: Option<usize> = length.and_then(|length| length.parse().ok());
    if length.is_some_and(|length| length > max) {
        return Err(Failure::TooLarge(max));
    }
    let mut reserved = length.unwrap_or_default().max(SMALL_BYTES_MAX);
    if reserved > SMALL_BYTES_MAX {
        reserve(request, reserved)?;
    }
    let body = body.take().map_err(|error| whole(unread(&error)))?;
    // One byte more than is allowed shows that it is too large.
    let mut reader = body.into_async_read().take(max as u64 + 1);
    let mut bytes = Vec::with_capacity(length.unwrap_or_default() + 1);
    loop {
        let count = reader.read_buf(&mut bytes).await;
        if count.map_err(|error| whole(broken_off(&error)))? == 0 {
            return Ok(bytes);
        }
        if bytes.len() > max {
            return Err(Failure::TooLarge(max));
        }
        if bytes.len() > reserved {
            reserve(request, SMALL_BYTES_MAX)?;
            reserved += SMALL_BYTES_MAX;
        }
    }
}

/// Takes memory for a body, if the request is one of the API.
fn reserve(request: &Request, bytes: usize) -> Result<(), Failure> {
    let memory = request.data::<RequestMemory>();
    let context = request.data::<Arc<Context>>();
    match memory.zip(context) {
        Some((memory, context)) => memory.reserve(&context.accept.budget, bytes),
        None => Ok(()),
    }
}

/// An issue about the body as a whole.
fn whole(message: String) -> Failure {
    Failure::Invalid(vec![Issue::new("", message)])
}

/// Why a body could not be read.
fn unread(error: &ReadBodyError) -> String {
    format!("body could not be read: {error}")
}

/// Why reading ended: the client disconnected or was too slow.
fn broken_off(error: &io::Error) -> String {
    format!("body could not be read: {error}")
}

/// The error text without its position, which the caller adds in its own form.
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

/// Counts the values of a JSON text before it is parsed: each comma and each bracket outside
/// strings begins one. For text that is not JSON the count means nothing; parsing fails
/// early then.
fn count_values(json: &[u8]) -> usize {
    let mut count = 1;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => count += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    count
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
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
            .and_then(|(value, _)| body_hash(request, value));
        let mut issues = unknown_fields::take_query_issues(request);
        if let (Ok((value, _)), Some(names)) = (&value, request.data::<Arc<KnownNames>>()) {
            issues.extend(names.body_issues(value));
        }
        let parsed = value.and_then(|(value, texts)| {
            let parsed = texts.scope(|| T::parse_from_json(Some(value)));
            parsed.map_err(|error| whole(error.into_message()))
        });
        Ok(Self {
            parsed,
            issues,
            hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings_only() {
        for (json, count) in [
            ("", 1),
            ("1", 1),
            ("[1,2,3]", 4),
            (r#"{"a": [{}], "b": 2}"#, 5),
            (r#"["a,b", "[{\",[", "\\", 1]"#, 5),
            (r#"["never ends, [[["#, 2),
            (r#"["\"#, 2),
        ] {
            assert_eq!(count_values(json.as_bytes()), count, "{json}");
        }
    }
}
