//! The settings of monitoring: the health listener, metrics and traces.

use std::net::SocketAddr;

use http::{HeaderName, HeaderValue};
use url::Url;

use super::reader::Reader;
use crate::secret::Secret;
use crate::telemetry::traces::TraceSettings;

/// The settings of monitoring.
#[derive(Debug, Clone)]
pub struct MonitoringSettings {
    /// Address of the health endpoints and the metrics.
    pub health_listen: Option<SocketAddr>,
    /// Whether the metrics have the ids of provider accounts as labels.
    pub names_accounts: bool,
    /// Where traces go. `None`: there are none.
    pub traces: Option<TraceSettings>,
}

/// Reads the settings.
pub(super) fn read(reader: &mut Reader<'_>) -> MonitoringSettings {
    let health_listen = reader.optional(
        "WAYPOST_HEALTH_LISTEN",
        "Address and port on which a program serves `/healthz`, `/readyz` and `/metrics`. Keep it out of public networks. The API serves `/healthz` and `/readyz` on `WAYPOST_LISTEN` too. Unset: it does not listen.",
        |text| text.parse().ok(),
    );
    let names_accounts = reader.choice(
        "WAYPOST_METRICS_ACCOUNTS",
        "off",
        &[("on", true), ("off", false)],
        "Whether the metrics have the ids of provider accounts as labels, `on` or `off`.",
    );
    MonitoringSettings {
        health_listen,
        names_accounts: names_accounts.unwrap_or_default(),
        traces: read_traces(reader),
    }
}

fn read_traces(reader: &mut Reader<'_>) -> Option<TraceSettings> {
    let endpoint = reader.optional(
        "WAYPOST_OTLP_ENDPOINT",
        "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`. Traces are posted to `/v1/traces` below it. Unset: there are no traces.",
        traces_url,
    );
    let headers = reader.optional(
        "WAYPOST_OTLP_HEADERS",
        "Headers of requests to the collector, such as `authorization=Bearer <key>`, separated by commas.",
        parse_headers,
    );
    let ratio = reader.optional(
        "WAYPOST_TRACE_RATIO",
        "Share of requests whose traces are recorded, from 0 to 1. A request with a `traceparent` header is recorded if the header says so. Unset: 1.",
        |text| text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio)),
    );
    Some(TraceSettings {
        endpoint: endpoint?,
        headers: headers.unwrap_or_default(),
        ratio: ratio.unwrap_or(1.0),
    })
}

/// The URL for traces below a collector's URL.
fn traces_url(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_http || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend(["v1", "traces"]);
    Some(url)
}

/// Parses `name=value,…`.
fn parse_headers(text: &str) -> Option<Vec<(String, Secret)>> {
    let pairs = text.split(',').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        HeaderName::try_from(name).ok()?;
        HeaderValue::from_str(value).ok()?;
        Some((name.to_owned(), Secret::from(value.to_owned())))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let common = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://localhost/waypost"),
        ];
        let variables = common.iter().chain(pairs);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect())
    }

    #[test]
    fn traces_go_below_the_collector() {
        assert!(read(&[]).unwrap().monitoring.traces.is_none());
        for (given, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://c.example.com/otlp/",
                "https://c.example.com/otlp/v1/traces",
            ),
        ] {
            let settings = read(&[("WAYPOST_OTLP_ENDPOINT", given)]).unwrap();
            let traces = settings.monitoring.traces.unwrap();
            assert_eq!(traces.endpoint.as_str(), url);
            assert!((traces.ratio - 1.0).abs() < f64::EPSILON);
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (name, value) in [
            ("WAYPOST_OTLP_ENDPOINT", "127.0.0.1:4318"),
            ("WAYPOST_OTLP_ENDPOINT", "grpc://127.0.0.1:4317"),
            ("WAYPOST_OTLP_HEADERS", "authorization"),
            ("WAYPOST_OTLP_HEADERS", "a b=c"),
            ("WAYPOST_TRACE_RATIO", "1.1"),
            ("WAYPOST_TRACE_RATIO", "10%"),
            ("WAYPOST_METRICS_ACCOUNTS", "yes"),
            ("WAYPOST_HEALTH_LISTEN", "8081"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert_eq!(error.issues[0].path, name, "{value}");
        }
    }
}
