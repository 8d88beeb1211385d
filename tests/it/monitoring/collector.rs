//! An OpenTelemetry collector: takes spans over OTLP/HTTP and keeps them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;
use tokio::net::TcpListener;

/// A span.
#[derive(Debug, Clone)]
pub(super) struct CollectedSpan {
    /// The program, such as `waypost-api`.
    pub(super) service: String,
    pub(super) name: String,
    pub(super) trace_id: String,
    pub(super) span_id: String,
    /// Empty for the first span of a trace.
    pub(super) parent_id: String,
    pub(super) attributes: HashMap<String, String>,
}

/// The running collector.
pub(super) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<CollectedSpan>>>,
    /// The values of the header `authorization`.
    keys: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (spans, keys) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<_>>::default());
        let collector = Self {
            address,
            spans,
            keys,
        };
        let (spans, keys) = (Arc::clone(&collector.spans), Arc::clone(&collector.keys));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (spans, keys) = (Arc::clone(&spans), Arc::clone(&keys));
                let take =
                    service_fn(move |request| take(request, Arc::clone(&spans), Arc::clone(&keys)));
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), take);
                tokio::spawn(serving);
            }
        });
        collector
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }

    pub(super) fn spans(&self) -> Vec<CollectedSpan> {
        self.spans.lock().unwrap().clone()
    }

    /// The only span of this name.
    pub(super) fn only(&self, name: &str) -> CollectedSpan {
        let spans = self.spans();
        let mut named = spans.iter().filter(|span| span.name == name);
        let span = named
            .next()
            .unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
        assert!(named.next().is_none(), "several {name} in {spans:#?}");
        span.clone()
    }
}

async fn take(
    request: Request<Incoming>,
    spans: Arc<Mutex<Vec<CollectedSpan>>>,
    keys: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!(request.uri().path(), "/v1/traces");
    if let Some(key) = request.headers().get("authorization") {
        keys.lock().unwrap().push(key.to_str().unwrap().to_owned());
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let export = ExportTraceServiceRequest::decode(body).expect("spans are OTLP");
    for of_resource in export.resource_spans {
        let attributes = of_resource.resource.unwrap_or_default().attributes;
        let service = read(attributes).remove("service.name").unwrap_or_default();
        for span in of_resource
            .scope_spans
            .into_iter()
            .flat_map(|scope| scope.spans)
        {
            spans.lock().unwrap().push(CollectedSpan {
                service: service.clone(),
                name: span.name,
                trace_id: hex::encode(span.trace_id),
                span_id: hex::encode(span.span_id),
                parent_id: hex::encode(span.parent_span_id),
                attributes: read(span.attributes),
            });
        }
    }
    Ok(Response::new(Full::default()))
}

fn read(
    attributes: Vec<opentelemetry_proto::tonic::common::v1::KeyValue>,
) -> HashMap<String, String> {
    let pairs = attributes.into_iter().filter_map(|pair| {
        let value = pair.value?.value?;
        let text = if let Value::StringValue(text) = value {
            text
        } else if let Value::IntValue(number) = value {
            number.to_string()
        } else {
            format!("{value:?}")
        };
        Some((pair.key, text))
    });
    pairs.collect()
}
