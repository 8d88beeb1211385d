//! Asks Mailgun for a mail, in the events of its domain. Sources: Mailgun's OpenAPI
//! document (`GET /v3/{domain}/events`, with its filters and its paging), and
//! mailgun/documentation `api-events.rst` for time ranges and for what an empty page
//! means.
//!
//! The documented filters know our message id, which was lost with the answer, and not
//! the `v:` variables. So the events of the recipient since the call began are read, and
//! the one counts whose `user-variables` hold the attempt's id. The events API is
//! announced as deprecated in favour of a logs API, which is no part of the document at
//! hand. A domain sending key may not read events (RST `api-intro.rst`).

use chrono::TimeDelta;
use http::header;
use serde_json::Value;
use url::Url;

use super::{MailgunApi, WRONG_PATH, error_text, with_wait};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::lookup::{LookupResult, MessageQuery, query};
use crate::provider::mail::TAG_ATTEMPT;

/// Events asked for in one page, of up to 300 (OpenAPI). An event has up to some KB,
/// and an answer is read up to 1 MiB.
const PAGE: usize = 100;
/// Pages that are read: one recipient has few events within the minutes of a wait.
const PAGES_MAX: usize = 3;
/// How far Mailgun's clock may be behind ours.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(1);
/// The longest part of a URL that leads to a further page, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;

/// `GET /v3/{domain}/events`, from the oldest event on.
pub(super) fn look_up(
    api: MailgunApi,
    sought: &MessageQuery,
    now: Timestamp,
) -> CallStep<LookupResult> {
    let begin = (sought.started_at - CLOCKS_DIFFER).timestamp().to_string();
    let filter = query(&[
        ("begin", &begin),
        ("ascending", "yes"),
        ("limit", &PAGE.to_string()),
        ("recipient", sought.recipient.as_str()),
    ]);
    let search = MailgunSearch {
        path: format!("/v3/{}/events", api.domain),
        api,
        attempt_id: sought.attempt_id.to_string(),
        now,
    };
    let url = search.api.base.query(&search.path, &filter);
    search.read_page(url, 1)
}

/// What the calls of one look share.
struct MailgunSearch {
    api: MailgunApi,
    path: String,
    attempt_id: String,
    now: Timestamp,
}

impl MailgunSearch {
    fn read_page(self, url: Url, nth: usize) -> CallStep<LookupResult> {
        let authorization = self.api.authorization.clone();
        let call = ProviderCall::get(url).with(header::AUTHORIZATION, authorization);
        CallStep::call(call, move |reply| {
            let document = match answer(&reply, self.now) {
                Ok(document) => document,
                Err(evidence) => return CallStep::Done(evidence),
            };
            let Some(events) = document["items"].as_array() else {
                return CallStep::Done(LookupResult::undecided(
                    &reply,
                    "not the answer to a search",
                ));
            };
            if let Some(event) = events.iter().find(|event| self.is_it(event)) {
                let id = event["message"]["headers"]["message-id"].as_str();
                return CallStep::Done(LookupResult::taken(id));
            }
            // A next page is always named, and is empty at the end.
            let next = document["paging"]["next"].as_str();
            match next.and_then(|next| self.next(next)) {
                Some(next) if events.len() >= PAGE && nth < PAGES_MAX => {
                    self.read_page(next, nth + 1)
                }
                _ => CallStep::Done(LookupResult::NotFound),
            }
        })
    }

    /// An event about the mail that shows that Mailgun took it. What it rejected it did
    /// not take.
    fn is_it(&self, event: &Value) -> bool {
        event["user-variables"][TAG_ATTEMPT].as_str() == Some(&self.attempt_id)
            && event["event"] != "rejected"
    }

    /// The URL of the next page: the last part of the one that the answer names, at the
    /// address that we know. The key goes nowhere else.
    fn next(&self, named: &str) -> Option<Url> {
        let named = Url::parse(named).ok()?;
        let (_, token) = named.path().rsplit_once("/events/")?;
        let fits = (1..=TOKEN_BYTES_MAX).contains(&token.len())
            && !token.contains('/')
            && !matches!(token, "." | "..");
        fits.then(|| self.api.base.at(&format!("{}/{token}", self.path)))
    }
}

/// The document of a good answer.
fn answer(reply: &ProviderReply, now: Timestamp) -> Result<Value, LookupResult> {
    let text = error_text(reply);
    match LookupResult::common(reply, now, &text) {
        Some(LookupResult::Throttled {
            retry_after,
            reason,
        }) => {
            return Err(LookupResult::Throttled {
                retry_after: with_wait(retry_after, &text, now),
                reason,
            });
        }
        Some(evidence) => return Err(evidence),
        None => {}
    }
    match reply.status {
        200 if !text.contains(WRONG_PATH) => Ok(reply.json().unwrap_or_default()),
        401 | 403 => Err(LookupResult::no_search(
            reply,
            "the API key may not read events",
        )),
        _ => Err(LookupResult::undecided(reply, &text)),
    }
}
