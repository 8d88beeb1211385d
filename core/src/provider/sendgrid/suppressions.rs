//! The suppression lists of a SendGrid account. Source: Twilio's pages "Retrieve all
//! bounces", "Retrieve all spam reports", "Retrieve all invalid emails" and "Retrieve all
//! global suppressions": bare arrays of entries with `email` and `created` (Unix seconds),
//! in pages by `limit` (at most 500) and `offset`.
//!
//! Blocks are left out: SendGrid sends to blocked addresses again.

use super::{SendgridApi, error_text, out_of_credits};
use crate::provider::call::{CallStep, ProviderCall};
use crate::provider::suppression_list::{
    ListCursor, ListPage, ListReason, ListResult, unix_seconds,
};

/// The page size: the allowed maximum.
const PAGE: usize = 500;
/// The lists, in the order in which they are read.
const LISTS: [(&str, ListReason); 4] = [
    ("bounces", ListReason::Bounce),
    ("invalid_emails", ListReason::Bounce),
    ("spam_reports", ListReason::Complaint),
    ("unsubscribes", ListReason::Unsubscribe),
];

/// `GET /v3/suppression/{list}`.
pub(super) fn read(api: &SendgridApi, cursor: &ListCursor) -> CallStep<ListResult> {
    let Some((name, reason)) = LISTS.get(cursor.list).copied() else {
        return CallStep::Done(ListResult::NoSuchPage);
    };
    let offset: usize = match cursor.token.as_str() {
        "" => 0,
        token => match token.parse() {
            Ok(offset) => offset,
            Err(_) => return CallStep::Done(ListResult::NoSuchPage),
        },
    };
    let query = format!("limit={PAGE}&offset={offset}");
    let url = api.base.query(&format!("/v3/suppression/{name}"), &query);
    let list = cursor.list;
    CallStep::call(api.authorize(ProviderCall::get(url)), move |reply| {
        let document = reply.json().filter(|_| reply.status == 200);
        let Some(entries) = document.as_ref().and_then(|document| document.as_array()) else {
            let text = error_text(&reply);
            return CallStep::Done(match reply.status {
                200..=299 => ListResult::undecided(&reply, "not a list of suppressions"),
                401..=403 if out_of_credits(&text) => ListResult::undecided(&reply, &text),
                _ => ListResult::not_read(&reply, &text),
            });
        };
        let mut page = ListPage {
            // A list that does not take `limit` is whole.
            next: if entries.len() == PAGE {
                Some(ListCursor::at(list, offset.saturating_add(PAGE)))
            } else {
                ListCursor::after(list, LISTS.len())
            },
            ..ListPage::default()
        };
        for entry in entries {
            page.add(
                entry["email"].as_str(),
                reason,
                unix_seconds(&entry["created"]),
            );
        }
        CallStep::Done(ListResult::Page(page))
    })
}
