//! The query parameter `cursor` of every paginated list: the `nextCursor` of an earlier
//! response to the same request. A page that it finds stays where it is while the list
//! grows.

use poem::{Request, RequestBody};
use poem_openapi::registry::{MetaParamIn, MetaSchemaRef, Registry};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::page::{Cursor, PageRequest, Place};

use crate::fields::{self, PageLimit, PageNumber};
use crate::middleware::unknown_fields::QueryIssues;
use crate::response::Pagination;
use crate::validate::{Field, Validated, problem};

/// The parameters that choose a page of a list; all others choose the list.
const PAGE_PARAMETERS: [&str; 3] = ["page", "limit", "cursor"];

/// The parameter, and the list that it belongs to.
pub(crate) struct CursorQuery {
    given: Option<Cursor>,
    issues: Vec<Issue>,
    scope: String,
}

impl CursorQuery {
    /// The requested page; `None` if a parameter is wrong, with the mistakes in `issues`.
    pub(crate) fn read_page(
        &self,
        page: Validated<Option<PageNumber>>,
        limit: Validated<Option<PageLimit>>,
        issues: &mut Vec<Issue>,
    ) -> Option<PageRequest> {
        let page = page.take("page", issues);
        let limit = limit.take("limit", issues);
        issues.extend(self.issues.iter().cloned());
        let page = page?.map_or(1, |page| page.0);
        let limit = limit?.map_or(PageRequest::LIMIT_DEFAULT, |limit| limit.0);
        if !self.issues.is_empty() {
            return None;
        }
        match self.given {
            Some(cursor) => cursor.request(limit),
            None => PageRequest::new(page, limit),
        }
    }

    /// The position of a page in its list of `total` items. `next` is its last row, if rows
    /// follow.
    pub(crate) fn pagination(
        &self,
        request: PageRequest,
        total: u64,
        next: Option<Place>,
    ) -> Pagination {
        let next = next.map(|place| Cursor::following(request, place).write(&self.scope));
        Pagination::of(request, total, next)
    }
}

/// The schema of the parameter.
pub(crate) struct CursorText;

impl Field for CursorText {
    fn schema() -> MetaSchemaRef {
        fields::schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(200);
        })
    }

    fn read(_: Value) -> Result<Self, Vec<Issue>> {
        problem("is read with its list")
    }
}

impl<'a> ApiExtractor<'a> for CursorQuery {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    const PARAM_IS_REQUIRED: bool = false;

    type ParamType = Validated<Option<CursorText>>;
    type ParamRawType = Validated<Option<CursorText>>;

    fn register(_registry: &mut Registry) {}

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Query)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(CursorText::schema())
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<Self::ParamType>,
    ) -> poem::Result<Self> {
        let query = request.uri().query().unwrap_or_default();
        let read = read(request.uri().path(), query);
        if let Some(issues) = request.data::<QueryIssues>() {
            issues.add(read.issues.clone());
        }
        Ok(read)
    }
}

fn read(path: &str, query: &str) -> CursorQuery {
    let parameters = || url::form_urlencoded::parse(query.as_bytes());
    let given = |name| parameters().find(|(known, _)| known == name);
    let mut chosen: Vec<_> = parameters()
        .filter(|(name, _)| !PAGE_PARAMETERS.contains(&name.as_ref()))
        .collect();
    chosen.sort();
    let mut scope = path.to_owned();
    for (name, value) in chosen {
        // No text of a query has a NUL that could stand for two parameters: each is escaped.
        scope.push('\0');
        scope.extend(url::form_urlencoded::byte_serialize(name.as_bytes()));
        scope.push('=');
        scope.extend(url::form_urlencoded::byte_serialize(value.as_bytes()));
    }
    let mut issues = Vec::new();
    let text = given("cursor").map(|(_, text)| text);
    let cursor = text.as_ref().and_then(|text| Cursor::read(text, &scope));
    if text.is_some() && cursor.is_none() {
        let message =
            "must be the nextCursor of a response to the same request, with the same filters";
        issues.push(Issue::new("cursor", message));
    }
    if text.is_some() && given("page").is_some() {
        issues.push(Issue::new("cursor", "must not be given together with page"));
    }
    CursorQuery {
        given: cursor,
        issues,
        scope,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_cursor_fits_the_same_filters_in_any_order_and_spelling() {
        let request = PageRequest::new(1, 20).unwrap();
        let cursor = Cursor::following(request, Place::of_id(Uuid::max()));
        let of = |query: &str| cursor.write(&read("/v1/messages", query).scope);
        let text = of("tag=a%26b&status=SENT&limit=20");
        for (path, query, fits) in [
            ("/v1/messages", "status=SENT&tag=a%26b", true),
            ("/v1/messages", "tag=%61%26b&status=SENT&limit=7", true),
            ("/v1/messages", "tag=a&b=&status=SENT", false),
            ("/v1/messages", "tag=a%26b", false),
            ("/v1/templates", "status=SENT&tag=a%26b", false),
        ] {
            let found = read(path, &format!("{query}&cursor={text}"));
            assert_eq!(found.given.is_some(), fits, "{path} {query}");
            assert_eq!(found.issues.is_empty(), fits, "{path} {query}");
        }
        let both = read("/v1/messages", &format!("page=2&cursor={}", of("")));
        assert_eq!(both.issues.len(), 1);
    }
}
