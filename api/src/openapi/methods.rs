//! The `Allow` header of a 405, which RFC 9110 (section 15.5.6) asks for: the methods
//! that the document lists for the path.

use std::sync::Arc;

use poem::http::{HeaderValue, StatusCode, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use serde_json::Value;

/// What is served outside the document is only read.
const ELSEWHERE: HeaderValue = HeaderValue::from_static("GET");

/// The methods of every path of the document.
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
        let found = at_path(self.0.iter(), path, |(template, _)| template);
        found.map_or(ELSEWHERE, |(_, allow)| allow.clone())
    }
}

/// That of `items` whose template stands for `path`. One that names the path wins over one
/// that has a parameter there: `/v1/routing-rules/resolve` over `/v1/routing-rules/{id}`.
pub(crate) fn at_path<T>(
    items: impl Iterator<Item = T>,
    path: &str,
    template: impl Fn(&T) -> &str,
) -> Option<T> {
    let found = items.filter(|item| is_at(template(item), path));
    found.min_by_key(|item| template(item).matches('{').count())
}

/// Whether a path is one of those that `template` stands for.
fn is_at(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted == given || wanted.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// Serves a request through `next`, and tells on a 405 what the path does know.
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
    fn a_path_knows_the_methods_of_its_template() {
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
