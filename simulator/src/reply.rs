//! What a handler decides: an answer, silence, or a cut connection.

use bytes::Bytes;
use http::header::HeaderValue;
use http::{Response, StatusCode};
use http_body_util::Full;

/// An HTTP answer with its whole body.
pub(crate) struct Answer {
    status: StatusCode,
    headers: Vec<(&'static str, HeaderValue)>,
    body: Bytes,
}

/// How a request ends.
pub(crate) enum Outcome {
    Answer(Answer),
    /// Nothing is ever answered; the connection stays open.
    Silence,
    /// The connection is cut with a TCP reset.
    Reset,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Answer {
    /// Adds a header; a value no header can hold is left out.
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

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "application/json", body)
}

/// An answer with a plain text body.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/plain; charset=utf-8", body)
}

/// An answer with an HTML page.
pub(crate) fn html(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/html; charset=utf-8", body)
}

/// An answer in XML.
pub(crate) fn xml(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    with_type(status, "text/xml", body)
}

/// An answer without a body.
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
