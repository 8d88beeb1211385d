//! The body of a suppression import: JSON, or a CSV file.

use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseFromJSON, Type};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::json;
use waypost_core::idempotency::fingerprint::BodyHash;
use waypost_core::issue::Issue;

use crate::error::Failure;
use crate::middleware::unknown_fields;
use crate::request::body::{IMPORT_BYTES_MAX, JsonBody, read_bytes};
use crate::request::idempotency_key::body_hash;

/// The media type of a CSV file.
const CSV: &str = "text/csv";

/// The body of an import, in one of its two forms.
#[derive(Debug)]
pub(crate) enum ImportBody<T> {
    Json(JsonBody<T, IMPORT_BYTES_MAX>),
    Csv(CsvBody),
}

/// A CSV file, in UTF-8.
#[derive(Debug)]
pub(crate) struct CsvBody {
    read: Result<String, Failure>,
    issues: Vec<Issue>,
    hash: Option<BodyHash>,
}

impl CsvBody {
    /// The file. Mistakes in the query go to `issues`; if there are any, the handler must
    /// reject the request.
    ///
    /// # Errors
    /// Why the body could not be read, together with `issues`.
    pub(crate) fn take(self, issues: &mut Vec<Issue>) -> Result<String, Failure> {
        issues.extend(self.issues);
        self.read.map_err(|failure| failure.after(issues))
    }
}

impl<T> ImportBody<T> {
    /// The hash of the request; `None` if it has no idempotency key or could not be read.
    pub(crate) fn hash(&self) -> Option<BodyHash> {
        match self {
            Self::Json(body) => body.hash(),
            Self::Csv(body) => body.hash,
        }
    }
}

async fn read_csv(request: &Request, body: &mut RequestBody) -> Result<String, Failure> {
    let is_encoded = request
        .header("content-encoding")
        .is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
    if is_encoded || !is_utf8(request.header("content-type").unwrap_or_default()) {
        return Err(Failure::NotJson);
    }
    let bytes = read_bytes(request, body, IMPORT_BYTES_MAX).await?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let message = format!("body is not valid UTF-8 (line {line})");
        Failure::Invalid(vec![Issue::new("", message)])
    })
}

fn is_csv(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(CSV)
}

/// Whether a content type names no other character set. US-ASCII is a part of UTF-8.
fn is_utf8(content_type: &str) -> bool {
    let mut parameters = content_type.split(';').skip(1);
    parameters.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"').to_ascii_lowercase();
            ["utf-8", "utf8", "us-ascii"].contains(&value.as_str())
        }
        _ => true,
    })
}

impl<'a, T: ParseFromJSON> ApiExtractor<'a> for ImportBody<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let mut file = MetaSchema::new("string");
        file.example = Some(json!(
            "email,source,createdAt\r\nfirst@example.org,BOUNCE,2026-11-20T12:00:00Z\r\n"
        ));
        Some(MetaRequest {
            description: None,
            content: vec![
                MetaMediaType {
                    content_type: "application/json",
                    schema: <T as Type>::schema_ref(),
                },
                MetaMediaType {
                    content_type: CSV,
                    schema: MetaSchemaRef::Inline(Box::new(file)),
                },
            ],
            required: true,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        if !request.header("content-type").is_some_and(is_csv) {
            let body = JsonBody::from_request(request, body, options).await?;
            return Ok(Self::Json(body));
        }
        let read = read_csv(request, body).await;
        // The query is a part of what the file says.
        let hash = read.as_ref().ok().and_then(|file| {
            let query = request.uri().query().unwrap_or_default();
            body_hash(request, &json!([query, file]))
        });
        Ok(Self::Csv(CsvBody {
            read,
            issues: unknown_fields::take_query_issues(request),
            hash,
        }))
    }
}
