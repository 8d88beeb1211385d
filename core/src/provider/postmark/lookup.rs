//! Looks up a mail at Postmark by its metadata. Sources: Postmark's pages "Messages API"
//! and "Custom metadata FAQ" (`metadata_color=blue`, one field at a time); its Swagger
//! document knows the call but not that parameter. Postmark does not document how far the
//! search lags behind.
//!
//! The search returns each mail's `Metadata` in the page's example but not in the Swagger
//! document; if it is missing, the mail's details are read.

use http::HeaderValue;
use serde_json::Value;

use super::{PostmarkApi, SERVER_TOKEN, accepting_json, error_text};
use crate::clock::Timestamp;
use crate::provider::BaseUrl;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::lookup::{LookupResult, MessageQuery, query_string};
use crate::provider::mail::TAG_ATTEMPT;

/// The most mails read of one reply: an attempt has one.
const FOUND_MAX: usize = 10;
/// The most mails whose details are read.
const DETAILS_MAX: usize = 2;

/// The state that the calls of one look-up share.
struct PostmarkSearch {
    base: BaseUrl,
    server_token: HeaderValue,
    attempt_id: String,
    now: Timestamp,
}

/// `GET /messages/outbound`; `count` and `offset` are required.
pub(super) fn look_up(
    api: &PostmarkApi<'_>,
    query: &MessageQuery,
    now: Timestamp,
) -> CallStep<LookupResult> {
    let search = PostmarkSearch {
        base: api.base.clone(),
        server_token: api.server_token.clone(),
        attempt_id: query.attempt_id.to_string(),
        now,
    };
    let (count, filter) = (FOUND_MAX.to_string(), format!("metadata_{TAG_ATTEMPT}"));
    let mut pairs = vec![
        ("count", count.as_str()),
        ("offset", "0"),
        (filter.as_str(), search.attempt_id.as_str()),
    ];
    if let Some(stream) = api.message_stream {
        pairs.push(("messagestream", stream));
    }
    let call = search.get("/messages/outbound", &query_string(&pairs));
    CallStep::call(call, move |reply| search.read(&reply))
}

impl PostmarkSearch {
    fn get(&self, path: &str, query: &str) -> ProviderCall {
        let url = self.base.query(path, query);
        accepting_json(ProviderCall::get(url)).with(SERVER_TOKEN, self.server_token.clone())
    }

    fn read(self, reply: &ProviderReply) -> CallStep<LookupResult> {
        let document = match read_document(reply, self.now) {
            Ok(document) => document,
            Err(result) => return CallStep::Done(result),
        };
        let Some(found) = document["Messages"].as_array() else {
            return CallStep::Done(LookupResult::undecided(reply, "not a reply to a search"));
        };
        let found = || found.iter().take(FOUND_MAX);
        if let Some(mail) = found().find(|mail| self.is_match(mail)) {
            return CallStep::Done(LookupResult::taken(mail["MessageID"].as_str()));
        }
        let unclear = found().filter(|mail| mail["Metadata"].is_null());
        let ids = unclear.filter_map(|mail| mail["MessageID"].as_str());
        // Ids go into a path: only a UUID can be an id of Postmark.
        let ids = ids.filter(|id| uuid::Uuid::try_parse(id).is_ok());
        let ids: Vec<String> = ids.take(DETAILS_MAX).map(str::to_owned).collect();
        self.read_details(ids.into_iter())
    }

    /// `GET /messages/outbound/{messageid}/details`, one mail after the other.
    fn read_details(self, mut ids: std::vec::IntoIter<String>) -> CallStep<LookupResult> {
        let Some(id) = ids.next() else {
            return CallStep::Done(LookupResult::NotFound);
        };
        let call = self.get(&format!("/messages/outbound/{id}/details"), "");
        CallStep::call(call, move |reply| match read_document(&reply, self.now) {
            Ok(mail) if self.is_match(&mail) => CallStep::Done(LookupResult::taken(Some(&id))),
            Ok(_) => self.read_details(ids),
            Err(result) => CallStep::Done(result),
        })
    }

    fn is_match(&self, mail: &Value) -> bool {
        mail["Metadata"][TAG_ATTEMPT].as_str() == Some(&self.attempt_id)
    }
}

/// The document of a successful reply.
fn read_document(reply: &ProviderReply, now: Timestamp) -> Result<Value, LookupResult> {
    let document = reply.json().unwrap_or_default();
    let text = error_text(reply, &document);
    if let Some(result) = LookupResult::common(reply, now, &text) {
        return Err(result);
    }
    match reply.status {
        200 => Ok(document),
        // Every server token may search: a refusal is about the token.
        _ => Err(LookupResult::undecided(reply, &text)),
    }
}
