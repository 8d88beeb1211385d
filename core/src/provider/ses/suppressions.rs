//! The suppression list of an SES account in one region. Source: MODEL
//! (`ListSuppressedDestinations`: `GET /v2/email/suppression/addresses`, with `PageSize` and
//! `NextToken`; times are Unix seconds).

use percent_encoding::utf8_percent_encode;

use super::domains::RESERVED;
use super::{SesApi, clock_text, error_name, error_text, is_clock_error};
use crate::provider::call::CallStep;
use crate::provider::outcome::reason;
use crate::provider::suppression_list::{
    ListCursor, ListPage, ListReason, ListResult, unix_seconds,
};

/// The page size: the allowed maximum.
const PAGE: usize = 1_000;

/// Reads a page of the list.
pub(super) fn read(api: &SesApi, cursor: &ListCursor) -> CallStep<ListResult> {
    if cursor.list != 0 {
        return CallStep::Done(ListResult::NoSuchPage);
    }
    let mut query = format!("PageSize={PAGE}");
    if !cursor.token.is_empty() {
        let token = utf8_percent_encode(&cursor.token, RESERVED);
        query = format!("NextToken={token}&{query}");
    }
    let url = api.base.query("/v2/email/suppression/addresses", &query);
    api.get(url, move |reply| {
        let document = reply.json().unwrap_or_default();
        if let Some(name) = error_name(&reply, &document) {
            let message = error_text(&reply, &document);
            let text = format!("{name}: {message}");
            return CallStep::Done(if is_clock_error(&name, &message) {
                ListResult::undecided(&reply, &clock_text(&name))
            } else if name.contains("Throttl") || name.contains("TooManyRequests") {
                // SES throttles with 400 too.
                ListResult::undecided(&reply, &text)
            } else if name.contains("InvalidNextToken") {
                ListResult::NoSuchPage
            } else if (400..=499).contains(&reply.status) {
                ListResult::Refused {
                    reason: reason(reply.status, &text),
                }
            } else {
                ListResult::undecided(&reply, &text)
            });
        }
        let entries = document["SuppressedDestinationSummaries"].as_array();
        // An empty list may be left out.
        let is_empty =
            reply.status == 200 && document.as_object().is_some_and(|all| all.is_empty());
        if entries.is_none() && !is_empty || reply.status != 200 {
            return CallStep::Done(match reply.status {
                200..=299 => ListResult::undecided(&reply, "not a list of suppressions"),
                _ => ListResult::undecided(&reply, "not a reply of SES"),
            });
        }
        let next = document["NextToken"].as_str();
        let mut page = ListPage {
            next: next
                .filter(|token| !token.is_empty())
                .map(|token| ListCursor::at(0, token)),
            ..ListPage::default()
        };
        for entry in entries.into_iter().flatten() {
            let reason = match entry["Reason"].as_str() {
                Some("COMPLAINT") => ListReason::Complaint,
                Some(_) | None => ListReason::Bounce,
            };
            page.add(
                entry["EmailAddress"].as_str(),
                reason,
                unix_seconds(&entry["LastUpdateTime"]),
            );
        }
        CallStep::Done(ListResult::Page(page))
    })
}
