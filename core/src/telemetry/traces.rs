//! Traces: one for each request that sends, from the request through the worker, the calls to
//! providers and their events to the webhooks. Spans go to an OpenTelemetry collector over
//! OTLP/HTTP.
//!
//! A message keeps its *trace context* (<https://www.w3.org/TR/trace-context/>) in Postgres, so
//! that a trace goes on in whichever process works on the message, hours later too. Within a
//! process the context is a task's own: [`in_span`] sets it, [`current`] reads it.
//!
//! Without [`start`] no span is made, and no context is read or stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use http::{HeaderMap, HeaderValue};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use url::Url;

use crate::fault::Fault;
use crate::secret::{ExposeSecret as _, Secret};

/// The name of the library in spans.
const LIBRARY: &str = "waypost";

/// Where traces go.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// The collector's URL for traces.
    pub endpoint: Url,
    /// Headers of requests to the collector, such as its key.
    pub headers: Vec<(String, Secret)>,
    /// The share of traces that begin here and are recorded, from 0 to 1. A trace that a client
    /// began is recorded if the client says so.
    pub ratio: f64,
}

static PROVIDER: OnceLock<(SdkTracerProvider, SdkTracer)> = OnceLock::new();

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// Starts traces, if they are set up. Call it once, at the start of a program.
///
/// # Errors
/// A fault if the exporter cannot be created.
pub fn start(settings: Option<&TraceSettings>, program: &'static str) -> Result<(), Fault> {
    let Some(settings) = settings else {
        return Ok(());
    };
    let headers = settings.headers.iter();
    let headers: HashMap<String, String> = headers
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(settings.endpoint.as_str())
        .with_headers(headers)
        .build()
        .map_err(|error| Fault::internal("set up traces", error))?;
    let resource = Resource::builder_empty()
        .with_service_name(format!("waypost-{program}"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.ratio)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(resource)
        .build();
    let tracer = provider.tracer(LIBRARY);
    let _already_started = PROVIDER.set((provider, tracer));
    Ok(())
}

/// Sends the spans that are left. Blocks for up to some seconds.
pub fn stop() {
    if let Some((provider, _)) = PROVIDER.get()
        && let Err(error) = provider.shutdown()
    {
        tracing::warn!("Could not send the last traces: {error}");
    }
}

/// Whether traces are made.
#[must_use]
pub fn is_on() -> bool {
    PROVIDER.get().is_some()
}

/// A place in a trace that is recorded: its id, and a span that others may have as their parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    is_sampled: bool,
}

/// A text is not the header `traceparent` of version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a trace context")]
pub struct InvalidTraceContext;

impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    /// Reads the header `traceparent`. A later version may add parts to the end.
    fn from_str(text: &str) -> Result<Self, InvalidTraceContext> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
            let part = parts.next().filter(|part| part.len() == length);
            part.filter(|part| part.bytes().all(is_hex))
                .ok_or(InvalidTraceContext)
        };
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let trace_id = TraceId::from_hex(trace_id).map_err(|_| InvalidTraceContext)?;
        let span_id = SpanId::from_hex(span_id).map_err(|_| InvalidTraceContext)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| InvalidTraceContext)?;
        let is_whole = version == "ff" || (version == "00" && parts.next().is_some());
        if is_whole || trace_id == TraceId::INVALID || span_id == SpanId::INVALID {
            return Err(InvalidTraceContext);
        }
        Ok(Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
        })
    }
}

impl TraceContext {
    /// Puts it into the headers of a request.
    pub fn add_to(self, headers: &mut HeaderMap) {
        let value = HeaderValue::try_from(self.to_string());
        headers.insert("traceparent", value.expect("hexadecimal digits are ASCII"));
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

/// What a span is about, in the terms of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSpanKind {
    /// A request that this process answers.
    Server,
    /// A request that this process makes.
    Client,
    /// Work that another process left in a queue.
    Consumer,
}

/// A span, which ends when it is dropped. Without traces it is nothing.
#[derive(Debug)]
pub struct TraceSpan(Option<opentelemetry_sdk::trace::Span>);

/// Begins a span. It begins a trace if it has no parent.
#[must_use]
pub fn span(
    name: impl Into<Cow<'static, str>>,
    kind: TraceSpanKind,
    parent: Option<TraceContext>,
) -> TraceSpan {
    let Some((_, tracer)) = PROVIDER.get() else {
        return TraceSpan(None);
    };
    let kind = match kind {
        TraceSpanKind::Server => SpanKind::Server,
        TraceSpanKind::Client => SpanKind::Client,
        TraceSpanKind::Consumer => SpanKind::Consumer,
    };
    let parent = parent.map_or_else(Context::new, |parent| {
        let flags = if parent.is_sampled {
            TraceFlags::SAMPLED
        } else {
            TraceFlags::default()
        };
        let (trace_id, span_id) = (parent.trace_id, parent.span_id);
        let parent = SpanContext::new(trace_id, span_id, flags, true, TraceState::default());
        Context::new().with_remote_span_context(parent)
    });
    let builder = SpanBuilder::from_name(name).with_kind(kind);
    TraceSpan(Some(tracer.build_with_context(builder, &parent)))
}

/// Begins a span of a message's trace. A message without one has none: it was accepted while
/// traces were off, or its trace is not recorded.
#[must_use]
pub fn message_span(
    name: &'static str,
    kind: TraceSpanKind,
    message: Option<TraceContext>,
) -> TraceSpan {
    message.map_or(TraceSpan(None), |context| span(name, kind, Some(context)))
}

impl TraceSpan {
    /// Its place in the trace; `None` if it is not recorded.
    #[must_use]
    pub fn context(&self) -> Option<TraceContext> {
        let context = self.0.as_ref()?.span_context();
        context.is_sampled().then(|| TraceContext {
            trace_id: context.trace_id(),
            span_id: context.span_id(),
            is_sampled: true,
        })
    }

    /// Replaces its name.
    pub fn rename(&mut self, name: String) {
        if let Some(span) = &mut self.0 {
            span.update_name(name);
        }
    }

    /// Adds an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Marks it as failed.
    pub fn fail(&mut self, why: &'static str) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why));
        }
    }
}

/// Runs `work` in a span: [`current`] is the span's place then.
pub async fn in_span<F: Future>(context: Option<TraceContext>, work: F) -> F::Output {
    match context {
        Some(context) => CURRENT.scope(context, work).await,
        None => work.await,
    }
}

/// The place in the trace of the work that this task does; `None` if it is not recorded.
#[must_use]
pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(|context| *context).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_and_written_as_the_header() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context: TraceContext = header.parse().unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), header);
        let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let context: TraceContext = unsampled.parse().unwrap();
        assert_eq!(context.to_string(), unsampled);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-else";
        assert!(later.parse::<TraceContext>().is_ok());
    }

    #[test]
    fn other_texts_are_not_contexts() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(
                text.parse::<TraceContext>(),
                Err(InvalidTraceContext),
                "{text}"
            );
        }
    }
}
