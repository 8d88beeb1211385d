//! One POST to whoever registered: what is on it, and when it is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, RequestBuilder, redirect};

use super::lane::{Event, Lane, Target};
use super::settings::Stamp;
use super::story::ProviderEventKind;
use crate::ids::Ids;
use crate::providers::{self, Provider};

/// As long as SNS waits; no text of the others says how long they do.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Longer answers are not read to their end.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const MINUTE: u64 = 60;

/// A call to make, or to make again.
pub(crate) struct Call {
    pub(super) lane: Arc<Lane>,
    /// What the provider says; what is signed anew for each try is not yet on it.
    text: String,
    kinds: [u16; ProviderEventKind::ALL.len()],
    /// How many tries there were.
    pub(super) tries: usize,
}

/// A call as it goes out.
pub(crate) struct Dressed {
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// What an answer means for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// To be tried again after a pause, before the factor.
    Again(Duration),
    GivenUp,
}

impl Call {
    pub(super) fn new(lane: Arc<Lane>, text: String, events: &[Event]) -> Self {
        let mut kinds = [0; ProviderEventKind::ALL.len()];
        for event in events {
            kinds[event.happening as usize] += 1;
        }
        Self {
            lane,
            text,
            kinds,
            tries: 0,
        }
    }

    /// How many events it tells.
    pub(super) fn events(&self) -> usize {
        self.kinds.iter().map(|&count| usize::from(count)).sum()
    }

    pub(super) fn events_by_name(&self) -> BTreeMap<&'static str, usize> {
        let counted = ProviderEventKind::ALL.into_iter().zip(self.kinds);
        counted
            .filter(|(_, count)| *count > 0)
            .map(|(happening, count)| (happening.name(), usize::from(count)))
            .collect()
    }

    /// Signs it for this try.
    pub(super) fn dress(&self, stamp: Stamp, ids: &Ids) -> Dressed {
        providers::dress(&self.lane, &self.text, stamp, ids)
    }

    /// What becomes of it after this answer.
    pub(super) fn judge(&self, status: Option<u16>) -> Verdict {
        let provider = self.lane.provider();
        let is_taken = match (provider, status) {
            (_, None) => false,
            // By their texts, no other success counts.
            (Provider::Postmark | Provider::Mailgun, Some(status)) => status == 200,
            (Provider::SendGrid | Provider::Ses | Provider::Smtp, Some(status)) => {
                (200..300).contains(&status)
            }
        };
        let is_final = match provider {
            Provider::SendGrid | Provider::Smtp => false,
            Provider::Postmark => status == Some(403),
            Provider::Mailgun => status == Some(406),
            Provider::Ses => status.is_some_and(|status| (300..500).contains(&status)),
        };
        match (is_taken, is_final) {
            (true, _) => Verdict::Taken,
            (false, true) => Verdict::GivenUp,
            (false, false) => pause(provider, self.tries).map_or(Verdict::GivenUp, Verdict::Again),
        }
    }
}

/// How long a provider waits after so many tries; `None` when it gives up.
fn pause(provider: Provider, tries: usize) -> Option<Duration> {
    const POSTMARK: [u64; 10] = [1, 5, 10, 10, 10, 15, 30, 60, 120, 360];
    const MAILGUN: [u64; 6] = [5, 10, 15, 60, 120, 240];
    let at = tries.checked_sub(1)?;
    let seconds = match provider {
        Provider::Postmark => POSTMARK.get(at)? * MINUTE,
        Provider::Mailgun => MAILGUN.get(at)? * MINUTE,
        // "Growing intervals for 24 hours" is all that is written: from a minute, doubling to four
        // hours, 14 times, is a little over a day.
        Provider::SendGrid if at < 14 => (MINUTE << at.min(8)).min(240 * MINUTE),
        Provider::Ses if at < 3 => 20,
        // A mail server calls nobody.
        Provider::SendGrid | Provider::Ses | Provider::Smtp => return None,
    };
    Some(Duration::from_secs(seconds))
}

/// A client as the providers' are: patient for a moment, and going nowhere else.
pub(super) fn client() -> Client {
    let client = Client::builder()
        .no_proxy()
        .http1_only()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT);
    client.build().expect("the client has no special settings")
}

/// Posts; `None` when there was no answer.
pub(super) async fn post(client: &Client, lane: &Lane, dressed: &Dressed) -> Option<u16> {
    let request = client.post(lane.url.clone()).body(dressed.body.clone());
    let mut answer = with_headers(request, lane, dressed).send().await.ok()?;
    let mut length = 0;
    // Read, so that the connection can be used again.
    while length < ANSWER_BYTES_MAX
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        length += chunk.len();
    }
    Some(answer.status().as_u16())
}

fn with_headers(mut request: RequestBuilder, lane: &Lane, dressed: &Dressed) -> RequestBuilder {
    let (agent, content_type) = match lane.provider() {
        Provider::SendGrid => ("SendGrid Event API", "application/json; charset=utf-8"),
        Provider::Postmark => ("Postmark", "application/json"),
        Provider::Mailgun => ("mailgun/simulated", "application/json"),
        Provider::Ses => (
            "Amazon Simple Notification Service Agent",
            "text/plain; charset=UTF-8",
        ),
        Provider::Smtp => return request,
    };
    request = request
        .header(USER_AGENT, agent)
        .header(CONTENT_TYPE, content_type);
    if let Target::Postmark { headers, .. } = &lane.target {
        for (name, value) in headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::try_from(value.as_str());
            if let (Ok(name), Ok(value)) = (name, value) {
                request = request.header(name, value);
            }
        }
    }
    let headers = dressed.headers.iter();
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
