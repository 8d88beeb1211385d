//! Looks up a mail in the events of a Mailgun domain. Sources: Mailgun's OpenAPI document
//! (`GET /v3/{domain}/events`, with its filters and its paging), and mailgun/documentation
//! `api-events.rst` for time ranges and for the meaning of an empty page.
//!
//! The documented filters know Mailgun's message id, which was lost with the reply, but not
//! the `v:` variables. So the events of the recipient since the start of the call are read,
//! and the mail is found if an event's `user-variables` hold the attempt's id. The events
//! API is announced as deprecated in favour of a logs API, which the document at hand does
//! not describe. A domain sending key may not read events (RST `api-intro.rst`).

use chrono::TimeDelta;
use http::header;
use serde_json::Value;
use url::Url;

use super::{MailgunApi, WRONG_PATH, error_text, with_wait};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::lookup::{LookupResult, MessageQuery, query_string};
use crate::provider::mail::TAG_ATTEMPT;

/// Events per page, of up to 300 (OpenAPI). An event has up to some KB, and a reply is read
/// up to 1 MiB.
const PAGE: usize = 100;
/// The most pages read: one recipient has few events within minutes.
const PAGES_MAX: usize = 3;
/// How far Mailgun's clock may be behind ours.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(1);
/// The longest token of a further page, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;

/// `GET /v3/{domain}/events`, oldest event first.
pub(super) fn look_up(
    api: MailgunApi,
    query: &MessageQuery,
    now: Timestamp,
) -> CallStep<LookupResult> {
    let begin = (query.started_at - CLOCKS_DIFFER).timestamp().to_string();
    let filter = query_string(&[
        ("begin", &begin),
        ("ascending", "yes"),
        ("limit", &PAGE.to_string()),
        ("recipient", query.recipient.as_str()),
    ]);
    let search = MailgunSearch {
        path: format!("/v3/{}/events", api.domain),
        api,
        attempt_id: query.attempt_id.to_string(),
        now,
    };
    let url = search.api.base.query(&search.path, &filter);
    search.read_page(url, 1)
}

/// The state that the calls of one look-up share.
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
            let document = match read_document(&reply, self.now) {
                Ok(document) => document,
                Err(result) => return CallStep::Done(result),
            };
            let Some(events) = document["items"].as_array() else {
                return CallStep::Done(LookupResult::undecided(&reply, "not a reply to a search"));
            };
            if let Some(event) = events.iter().find(|event| self.is_match(event)) {
                let id = event["message"]["headers"]["message-id"].as_str();
                return CallStep::Done(LookupResult::taken(id));
            }
            // The next page is always named; the last page is empty.
            let next = document["paging"]["next"].as_str();
            match next.and_then(|next| self.next(next)) {
                Some(next) if events.len() >= PAGE && nth < PAGES_MAX => {
                    self.read_page(next, nth + 1)
                }
                _ => CallStep::Done(LookupResult::NotFound),
            }
        })
    }

    /// Whether an event proves that Mailgun took the mail. A rejected mail was not taken.
    fn is_match(&self, event: &Value) -> bool {
        event["user-variables"][TAG_ATTEMPT].as_str() == Some(&self.attempt_id)
            && event["event"] != "rejected"
    }

    /// The URL of the next page: the token of the named URL, at the base URL of the account.
    /// The API key is never sent to another host.
    fn next(&self, named: &str) -> Option<Url> {
        let named = Url::parse(named).ok()?;
        let (_, token) = named.path().rsplit_once("/events/")?;
        let fits = (1..=TOKEN_BYTES_MAX).contains(&token.len())
            && !token.contains('/')
            && !matches!(token, "." | "..");
        fits.then(|| self.api.base.at(&format!("{}/{token}", self.path)))
    }
}

/// The document of a successful reply.
fn read_document(reply: &ProviderReply, now: Timestamp) -> Result<Value, LookupResult> {
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
        Some(result) => return Err(result),
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
