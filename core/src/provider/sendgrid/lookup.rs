//! Asks SendGrid for a mail, in its Email Activity. Sources: OAI `tsg_email_activity_v3`
//! (the calls and their answers), SendGrid's page "Getting Started with the Email
//! Activity Feed API" (the query language), and the client StrongGrid for how an
//! argument is named in a query: `(unique_args['name']="value")`; the page itself shows
//! only `unique_args="example argument"`.
//!
//! Only accounts that bought more history, with keys that may read it, have this search;
//! the others are answered 401 or 403. It takes six requests a minute (page "Email
//! Activity"). The list does not show an entry's arguments, so the details of what it
//! shows are asked for: they must hold the attempt's id.

use serde_json::Value;

use super::{SendgridApi, error_text, out_of_credits};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::lookup::{LookupResult, MessageQuery, query};
use crate::provider::mail::TAG_ATTEMPT;

/// Entries that are read of the list: an attempt has one.
const FOUND_MAX: usize = 2;
/// The longest id that is asked for, in bytes.
const ID_BYTES_MAX: usize = 255;

/// What the calls of one look share.
struct SendgridSearch {
    api: SendgridApi,
    attempt_id: String,
    now: Timestamp,
}

/// `GET /v3/messages`.
pub(super) fn look_up(
    api: SendgridApi,
    sought: &MessageQuery,
    now: Timestamp,
) -> CallStep<LookupResult> {
    let search = SendgridSearch {
        api,
        attempt_id: sought.attempt_id.to_string(),
        now,
    };
    let filter = format!("(unique_args['{TAG_ATTEMPT}']=\"{}\")", search.attempt_id);
    let filter = query(&[("limit", &FOUND_MAX.to_string()), ("query", &filter)]);
    let url = search.api.base.query("/v3/messages", &filter);
    let call = search.api.authorize(ProviderCall::get(url));
    CallStep::call(call, move |reply| {
        let document = match answer(&reply, search.now) {
            Ok(document) => document,
            Err(evidence) => return CallStep::Done(evidence),
        };
        let Some(entries) = document["messages"].as_array() else {
            return CallStep::Done(LookupResult::undecided(
                &reply,
                "not the answer to a search",
            ));
        };
        let ids = entries.iter().filter_map(|entry| entry["msg_id"].as_str());
        let ids = ids.filter(|id| is_id(id)).take(FOUND_MAX);
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        search.ask_details(ids.into_iter())
    })
}

impl SendgridSearch {
    /// `GET /v3/messages/{msg_id}`, one entry after the other.
    fn ask_details(self, mut ids: std::vec::IntoIter<String>) -> CallStep<LookupResult> {
        let Some(id) = ids.next() else {
            return CallStep::Done(LookupResult::NotFound);
        };
        let url = self.api.base.at(&format!("/v3/messages/{id}"));
        let call = self.api.authorize(ProviderCall::get(url));
        CallStep::call(call, move |reply| match answer(&reply, self.now) {
            // As with events, our answer to the send had the part before the first dot.
            Ok(details) if self.is_it(&details) => {
                CallStep::Done(LookupResult::taken(id.split('.').next()))
            }
            Ok(_) => self.ask_details(ids),
            Err(evidence) => CallStep::Done(evidence),
        })
    }

    /// Whether the arguments hold the attempt's id. They are a text whose form is not
    /// described (`{'key': 'value'}` in the example); the id is in no other mail's.
    fn is_it(&self, details: &Value) -> bool {
        let arguments = &details["unique_args"];
        match arguments.as_str() {
            Some(text) => text.contains(&self.attempt_id),
            None => arguments[TAG_ATTEMPT].as_str() == Some(&self.attempt_id),
        }
    }
}

/// Ids go into a path: `filter0307p1las1-16816-5A023E36-1.0`.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('.')
}

/// The document of a good answer.
fn answer(reply: &ProviderReply, now: Timestamp) -> Result<Value, LookupResult> {
    let text = error_text(reply);
    if let Some(evidence) = LookupResult::common(reply, now, &text) {
        return Err(evidence);
    }
    match reply.status {
        200 => Ok(reply.json().unwrap_or_default()),
        401..=403 if out_of_credits(&text) => Err(LookupResult::undecided(reply, &text)),
        401 | 403 => Err(LookupResult::no_search(reply, &text)),
        _ => Err(LookupResult::undecided(reply, &text)),
    }
}
