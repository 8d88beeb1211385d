//! Looks up a mail in SendGrid's Email Activity. Sources: OAI `tsg_email_activity_v3` (the
//! calls and their replies), SendGrid's page "Getting Started with the Email Activity Feed
//! API" (the query language), and the client StrongGrid for the name of an argument in a
//! query: `(unique_args['name']="value")`; the page itself shows only
//! `unique_args="example argument"`.
//!
//! The search works only for accounts that bought more history, with keys that may read it;
//! others get 401 or 403. It allows six requests a minute (page "Email Activity"). The list
//! does not show an entry's arguments, so the details of its entries are read: they must
//! hold the attempt's id.

use serde_json::Value;

use super::{SendgridApi, error_text, out_of_credits};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::lookup::{LookupResult, MessageQuery, query_string};
use crate::provider::mail::TAG_ATTEMPT;

/// The most entries read of the list: an attempt has one.
const FOUND_MAX: usize = 2;
/// The longest entry id accepted, in bytes.
const ID_BYTES_MAX: usize = 255;

/// The state that the calls of one look-up share.
struct SendgridSearch {
    api: SendgridApi,
    attempt_id: String,
    now: Timestamp,
}

/// `GET /v3/messages`.
pub(super) fn look_up(
    api: SendgridApi,
    query: &MessageQuery,
    now: Timestamp,
) -> CallStep<LookupResult> {
    let search = SendgridSearch {
        api,
        attempt_id: query.attempt_id.to_string(),
        now,
    };
    let filter = format!("(unique_args['{TAG_ATTEMPT}']=\"{}\")", search.attempt_id);
    let filter = query_string(&[("limit", &FOUND_MAX.to_string()), ("query", &filter)]);
    let url = search.api.base.query("/v3/messages", &filter);
    let call = search.api.authorize(ProviderCall::get(url));
    CallStep::call(call, move |reply| {
        let document = match read_document(&reply, search.now) {
            Ok(document) => document,
            Err(result) => return CallStep::Done(result),
        };
        let Some(entries) = document["messages"].as_array() else {
            return CallStep::Done(LookupResult::undecided(&reply, "not a reply to a search"));
        };
        let ids = entries.iter().filter_map(|entry| entry["msg_id"].as_str());
        let ids = ids.filter(|id| is_id(id)).take(FOUND_MAX);
        let ids: Vec<String> = ids.map(str::to_owned).collect();
        search.read_details(ids.into_iter())
    })
}

impl SendgridSearch {
    /// `GET /v3/messages/{msg_id}`, one entry after the other.
    fn read_details(self, mut ids: std::vec::IntoIter<String>) -> CallStep<LookupResult> {
        let Some(id) = ids.next() else {
            return CallStep::Done(LookupResult::NotFound);
        };
        let url = self.api.base.at(&format!("/v3/messages/{id}"));
        let call = self.api.authorize(ProviderCall::get(url));
        CallStep::call(call, move |reply| match read_document(&reply, self.now) {
            // As in events, the part before the first dot is the id from the send's reply.
            Ok(details) if self.is_match(&details) => {
                CallStep::Done(LookupResult::taken(id.split('.').next()))
            }
            Ok(_) => self.read_details(ids),
            Err(result) => CallStep::Done(result),
        })
    }

    /// Whether the arguments hold the attempt's id. They are a text of undocumented form
    /// (`{'key': 'value'}` in the example); no other mail has the id.
    fn is_match(&self, details: &Value) -> bool {
        let arguments = &details["unique_args"];
        match arguments.as_str() {
            Some(text) => text.contains(&self.attempt_id),
            None => arguments[TAG_ATTEMPT].as_str() == Some(&self.attempt_id),
        }
    }
}

/// Whether an id is safe in a path: `filter0307p1las1-16816-5A023E36-1.0`.
fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('.')
}

/// The document of a successful reply.
fn read_document(reply: &ProviderReply, now: Timestamp) -> Result<Value, LookupResult> {
    let text = error_text(reply);
    if let Some(result) = LookupResult::common(reply, now, &text) {
        return Err(result);
    }
    match reply.status {
        200 => Ok(reply.json().unwrap_or_default()),
        401..=403 if out_of_credits(&text) => Err(LookupResult::undecided(reply, &text)),
        401 | 403 => Err(LookupResult::no_search(reply, &text)),
        _ => Err(LookupResult::undecided(reply, &text)),
    }
}
