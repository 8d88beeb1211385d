//! The result of a handler: a response, silence, or a reset connection.

use bytes::Bytes;
use http::header::HeaderValue;
use http::{Response, StatusCode};
use http_body_util::Full;

/// An HTTP response with its whole body.
pub(crate) struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, HeaderValue)>,
    body: Bytes,
}

/// The end of a request.
pub(crate) enum Outcome {
    Answer(Answer),
    /// Never a response; the connection stays open.
    Silence,
    /// The connection is closed with a TCP reset.
    Reset,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Answer {
    /// Adds a header; skips a value that is invalid in a header.
    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| *known == name)
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A response with a JSON body.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "application/json", body)
}

/// A response with a plain text body.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/plain; charset=utf-8", body)
}

/// A response with an HTML page.
pub(crate) fn html(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/html; charset=utf-8", body)
}

/// A response in XML.
pub(crate) fn xml(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/xml", body)
}

/// A response with a file of any type.
pub(crate) fn file(body: impl Into<Bytes>) -> Answer {
    with_type(StatusCode::OK, "application/octet-stream", body)
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    Answer {
        status,
        headers: Vec::new(),
        body: Bytes::new(),
    }
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    Answer {
        status,
        headers: vec![("content-type", HeaderValue::from_static(content_type))],
        body: body.into(),
    }
}
