//! The suppressions of a message stream of a Postmark server. Source: Postmark's page
//! "Suppressions API": `GET /message-streams/{stream_id}/suppressions/dump` returns all of
//! them at once, filtered by `SuppressionReason`. So each reason is a call. Postmark's
//! Swagger document does not know the call.

use chrono::DateTime;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{PostmarkApi, error_text};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall};
use crate::provider::suppression_list::{ListCursor, ListPage, ListReason, ListResult};

/// The stream of mails that name none.
const STREAM_DEFAULT: &str = "outbound";
/// The reasons, in the order in which they are read.
const LISTS: [(&str, ListReason); 3] = [
    ("HardBounce", ListReason::Bounce),
    ("SpamComplaint", ListReason::Complaint),
    ("ManualSuppression", ListReason::Unsubscribe),
];

/// Reads the suppressions of one reason.
pub(super) fn read(api: &PostmarkApi<'_>, cursor: &ListCursor) -> CallStep<ListResult> {
    let list = cursor.list;
    let Some((name, reason)) = LISTS.get(list).copied() else {
        return CallStep::Done(ListResult::NoSuchPage);
    };
    if !cursor.token.is_empty() {
        return CallStep::Done(ListResult::NoSuchPage);
    }
    let stream = api.message_stream.unwrap_or(STREAM_DEFAULT);
    let stream = utf8_percent_encode(stream, NON_ALPHANUMERIC);
    let path = format!("/message-streams/{stream}/suppressions/dump");
    let url = api.base.query(&path, &format!("SuppressionReason={name}"));
    CallStep::call(
        api.with_server_token(ProviderCall::get(url)),
        move |reply| {
            let document = reply.json().unwrap_or_default();
            let entries = document["Suppressions"].as_array();
            let Some(entries) = entries.filter(|_| reply.status == 200) else {
                return CallStep::Done(match reply.status {
                    200..=299 => ListResult::undecided(&reply, "not a list of suppressions"),
                    _ => ListResult::not_read(&reply, &error_text(&reply, &document)),
                });
            };
            let mut page = ListPage {
                next: ListCursor::after(list, LISTS.len()),
                ..ListPage::default()
            };
            for entry in entries {
                let since = entry["CreatedAt"].as_str();
                let since = since.and_then(|text| DateTime::parse_from_rfc3339(text).ok());
                // The filter is checked, since a hard bounce must not become an unsubscribe.
                match entry["SuppressionReason"].as_str() {
                    Some(own) if own != name => page.unusable += 1,
                    Some(_) | None => page.add(
                        entry["EmailAddress"].as_str(),
                        reason,
                        since.map(Timestamp::from),
                    ),
                }
            }
            CallStep::Done(ListResult::Page(page))
        },
    )
}
