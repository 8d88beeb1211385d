//! A POST to a registered URL: its content, and when it is retried.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, RequestBuilder, redirect};

use super::endpoint::{Endpoint, Event, Target};
use super::event_kinds::ProviderEventKind;
use super::settings::Stamp;
use crate::ids::Ids;
use crate::providers::{self, Provider};

/// SNS waits this long; the other vendors document no timeout.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Longer responses are not read to their end.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const MINUTE: u64 = 60;

/// A call to make, or to retry.
pub(crate) struct Call {
    pub(super) endpoint: Arc<Endpoint>,
    /// The content, without the signature, which is computed for each try.
    text: String,
    kinds: [u16; ProviderEventKind::ALL.len()],
    /// Number of tries so far.
    pub(super) tries: usize,
}

/// A call with headers and signature.
pub(crate) struct PreparedCall {
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// The meaning of a response to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    Accepted,
    /// Retry after a pause, before the retry factor.
    Retry(Duration),
    GivenUp,
}

impl Call {
    pub(super) fn new(endpoint: Arc<Endpoint>, text: String, events: &[Event]) -> Self {
        let mut kinds = [0; ProviderEventKind::ALL.len()];
        for event in events {
            kinds[event.kind as usize] += 1;
        }
        Self {
            endpoint,
            text,
            kinds,
            tries: 0,
        }
    }

    /// The number of events in it.
    pub(super) fn events(&self) -> usize {
        self.kinds.iter().map(|&count| usize::from(count)).sum()
    }

    pub(super) fn events_by_name(&self) -> BTreeMap<&'static str, usize> {
        let counted = ProviderEventKind::ALL.into_iter().zip(self.kinds);
        counted
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| (kind.name(), usize::from(count)))
            .collect()
    }

    /// Signs it for this try.
    pub(super) fn prepare_call(&self, stamp: Stamp, ids: &Ids) -> PreparedCall {
        providers::prepare_call(&self.endpoint, &self.text, stamp, ids)
    }

    /// Decides what follows a response.
    pub(super) fn evaluate(&self, status: Option<u16>) -> CallResult {
        let provider = self.endpoint.provider();
        let is_taken = match (provider, status) {
            (_, None) => false,
            // By the vendors' documentation, no other success status counts.
            (Provider::Postmark | Provider::Mailgun, Some(status)) => status == 200,
            (
                Provider::SendGrid | Provider::Ses | Provider::Smtp | Provider::Resend,
                Some(status),
            ) => (200..300).contains(&status),
        };
        let is_final = match provider {
            Provider::SendGrid | Provider::Smtp | Provider::Resend => false,
            Provider::Postmark => status == Some(403),
            Provider::Mailgun => status == Some(406),
            Provider::Ses => status.is_some_and(|status| (300..500).contains(&status)),
        };
        match (is_taken, is_final) {
            (true, _) => CallResult::Accepted,
            (false, true) => CallResult::GivenUp,
            (false, false) => {
                pause(provider, self.tries).map_or(CallResult::GivenUp, CallResult::Retry)
            }
        }
    }
}

/// A provider's pause after this many tries; `None` if it gives up.
fn pause(provider: Provider, tries: usize) -> Option<Duration> {
    const POSTMARK: [u64; 10] = [1, 5, 10, 10, 10, 15, 30, 60, 120, 360];
    const MAILGUN: [u64; 6] = [5, 10, 15, 60, 120, 240];
    let at = tries.checked_sub(1)?;
    let seconds = match provider {
        Provider::Postmark => POSTMARK.get(at)? * MINUTE,
        Provider::Mailgun => MAILGUN.get(at)? * MINUTE,
        // The documentation only says "growing intervals for 24 hours". From a minute,
        // doubling to four hours, 14 times, is a little over a day.
        Provider::SendGrid if at < 14 => (MINUTE << at.min(8)).min(240 * MINUTE),
        Provider::Ses if at < 3 => 20,
        // An SMTP server makes no callbacks.
        Provider::SendGrid | Provider::Ses | Provider::Smtp | Provider::Resend => return None,
    };
    Some(Duration::from_secs(seconds))
}

/// An HTTP client with the timeout of providers; it follows no redirects.
pub(super) fn client() -> Client {
    let client = Client::builder()
        .no_proxy()
        .http1_only()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT);
    client.build().expect("the client has no special settings")
}

/// Posts; `None` if there was no response.
pub(super) async fn post(
    client: &Client,
    endpoint: &Endpoint,
    prepared: &PreparedCall,
) -> Option<u16> {
    let request = client
        .post(endpoint.url.clone())
        .body(prepared.body.clone());
    let mut answer = with_headers(request, endpoint, prepared)
        .send()
        .await
        .ok()?;
    let mut length = 0;
    // Read it, so that the connection can be reused.
    while length < ANSWER_BYTES_MAX
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        length += chunk.len();
    }
    Some(answer.status().as_u16())
}

fn with_headers(
    mut request: RequestBuilder,
    endpoint: &Endpoint,
    prepared: &PreparedCall,
) -> RequestBuilder {
    let (agent, content_type) = match endpoint.provider() {
        Provider::SendGrid => ("SendGrid Event API", "application/json; charset=utf-8"),
        Provider::Postmark => ("Postmark", "application/json"),
        Provider::Mailgun => ("mailgun/simulated", "application/json"),
        Provider::Ses => (
            "Amazon Simple Notification Service Agent",
            "text/plain; charset=UTF-8",
        ),
        Provider::Smtp | Provider::Resend => return request,
    };
    request = request
        .header(USER_AGENT, agent)
        .header(CONTENT_TYPE, content_type);
    if let Target::Postmark { headers, .. } = &endpoint.target {
        for (name, value) in headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value.as_str());
            if let (Ok(name), Ok(value)) = (name, value) {
                request = request.header(name, value);
            }
        }
    }
    let headers = prepared.headers.iter();
    headers.fold(request, |request, (name, value)| {
        request.header(*name, value)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;
    use crate::providers::Provider;

    fn total(provider: Provider) -> (usize, Duration) {
        let pauses: Vec<_> = (1..).map_while(|tries| pause(provider, tries)).collect();
        (pauses.len(), pauses.iter().sum())
    }

    #[test]
    fn every_provider_gives_up_when_its_texts_say() {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        assert_eq!(total(Provider::Ses), (3, Duration::from_secs(60)));
        let (tries, postmark) = total(Provider::Postmark);
        assert!(tries == 10 && postmark > hours(10) && postmark < hours(11));
        let (_, mailgun) = total(Provider::Mailgun);
        assert!(mailgun > hours(7) && mailgun < hours(8));
        let (_, sendgrid) = total(Provider::SendGrid);
        assert!(
            sendgrid >= hours(24) && sendgrid < hours(29),
            "{sendgrid:?}"
        );
    }
}
