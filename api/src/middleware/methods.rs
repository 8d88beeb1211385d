//! The `Allow` header of a 405 response, as RFC 9110 (section 15.5.6) requires: the
//! methods that the document lists for the path.

use std::sync::Arc;

use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use serde_json::Value;

/// Paths outside the document are read-only.
const READ_ONLY: HeaderValue = HeaderValue::from_static("GET");

/// The methods of each path in the document.
pub(crate) struct Methods(Vec<(String, HeaderValue)>);

impl Methods {
    /// Reads them from the document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let methods = paths.map(|(path, operations)| {
            let methods = operations.as_object().into_iter().flatten();
            let methods: Vec<String> = methods.map(|(method, _)| method.to_uppercase()).collect();
            let allow = HeaderValue::try_from(methods.join(", "));
            (path.clone(), allow.expect("methods are visible ASCII"))
        });
        Self(methods.collect())
    }

    fn at(&self, path: &str) -> HeaderValue {
        let found = find_by_path(self.0.iter(), path, |(template, _)| template);
        found.map_or(READ_ONLY, |(_, allow)| allow.clone())
    }
}

/// The item whose path template matches `path`. A template without a parameter wins over
/// one with a parameter: `/v1/routing-rules/resolve` over `/v1/routing-rules/{id}`.
pub(crate) fn find_by_path<T>(
    items: impl Iterator<Item = T>,
    path: &str,
    template: impl Fn(&T) -> &str,
) -> Option<T> {
    let found = items.filter(|item| matches(template(item), path));
    found.min_by_key(|item| template(item).matches('{').count())
}

/// Whether a path matches a template.
fn matches(template: &str, path: &str) -> bool {
    let (mut expected, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return true,
            (Some(expected), Some(given)) if expected == given || expected.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// Serves a request through `next` and adds the `Allow` header to a 405 response.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    request: Request,
    methods: Arc<Methods>,
) -> poem::Result<Response> {
    let path = request.original_uri().path().to_owned();
    let mut response = next.call(request).await?.into_response();
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(header::ALLOW, methods.at(&path));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_allows_the_methods_of_its_template() {
        let document = json!({ "paths": {
            "/v1/things": { "get": {}, "post": {} },
            "/v1/things/{id}": { "delete": {} },
            "/v1/things/find": { "put": {} },
        } });
        let methods = Methods::of(&document);
        assert_eq!(methods.at("/v1/things"), "GET, POST");
        assert_eq!(methods.at("/v1/things/7"), "DELETE");
        assert_eq!(methods.at("/v1/things/find"), "PUT");
        assert_eq!(methods.at("/v1/things/7/more"), "GET");
    }
}
