//! The suppression lists of a Mailgun domain. Source: Mailgun's OpenAPI document (`GET
//! /v3/{domain_name}/bounces`, `/complaints`, `/unsubscribes`). A page names the next one in
//! `paging.next`, also after the last one; the page after the last one is empty.

use chrono::NaiveDateTime;
use http::header;
use url::Url;

use super::{MailgunApi, WRONG_PATH, error_text};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall};
use crate::provider::lookup::query_string;
use crate::provider::suppression_list::{ListCursor, ListPage, ListReason, ListResult};

/// The page size: the allowed maximum.
const PAGE: usize = 1_000;
/// The parameters of a page's URL that say where it begins.
const PLACE: [&str; 2] = ["page", "address"];
/// The tag of an address that unsubscribed from all mail.
const ALL_TAGS: &str = "*";
/// The lists, in the order in which they are read.
const LISTS: [(&str, ListReason); 3] = [
    ("bounces", ListReason::Bounce),
    ("complaints", ListReason::Complaint),
    ("unsubscribes", ListReason::Unsubscribe),
];

/// Reads a page of a list.
pub(super) fn read(api: &MailgunApi, cursor: &ListCursor) -> CallStep<ListResult> {
    let list = cursor.list;
    let Some((name, reason)) = LISTS.get(list).copied() else {
        return CallStep::Done(ListResult::NoSuchPage);
    };
    let limit = PAGE.to_string();
    let given: Vec<(String, String)> = url::form_urlencoded::parse(cursor.token.as_bytes())
        .into_owned()
        .collect();
    let place = PLACE.into_iter().filter_map(|name| {
        let (_, value) = given.iter().find(|(known, _)| known == name)?;
        Some((name, value.as_str()))
    });
    let pairs: Vec<(&str, &str)> = std::iter::once(("limit", limit.as_str()))
        .chain(place)
        .collect();
    let path = format!("/v3/{}/{name}", api.domain);
    let url = api.base.query(&path, &query_string(&pairs));
    let call = ProviderCall::get(url).with(header::AUTHORIZATION, api.authorization.clone());
    let token = cursor.token.clone();
    CallStep::call(call, move |reply| {
        let document = reply.json().unwrap_or_default();
        let items = document["items"].as_array();
        let Some(items) = items.filter(|_| reply.status == 200) else {
            let text = error_text(&reply);
            return CallStep::Done(match reply.status {
                200..=299 if text.contains(WRONG_PATH) => {
                    ListResult::undecided(&reply, "the domain has no such list")
                }
                200..=299 => ListResult::undecided(&reply, "not a list of suppressions"),
                _ => ListResult::not_read(&reply, &text),
            });
        };
        let next = document["paging"]["next"].as_str().and_then(next_place);
        let next = next.filter(|next| !items.is_empty() && *next != token);
        let mut page = ListPage {
            next: match next {
                Some(next) => Some(ListCursor::at(list, next)),
                None => ListCursor::after(list, LISTS.len()),
            },
            ..ListPage::default()
        };
        for item in items {
            let since = item["created_at"].as_str().and_then(read_time);
            match item["tags"].as_array() {
                Some(tags) if !tags.is_empty() && !tags.iter().any(|tag| tag == ALL_TAGS) => {
                    page.unusable += 1;
                }
                Some(_) | None => page.add(item["address"].as_str(), reason, since),
            }
        }
        CallStep::Done(ListResult::Page(page))
    })
}

/// Where the next page begins, from its URL. Host and path of the URL are not followed: the
/// API key is never sent to another host.
fn next_place(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| PLACE.contains(&name.as_ref()))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    (!pairs.is_empty()).then(|| query_string(&pairs))
}

/// A time such as `Thu, 11 Dec 2025 01:49:40 UTC`.
fn read_time(text: &str) -> Option<Timestamp> {
    let text = text
        .trim()
        .strip_suffix("UTC")
        .or_else(|| text.trim().strip_suffix("GMT"))?;
    let time = NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S").ok()?;
    Some(time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_its_place_alone() {
        for (url, place) in [
            (
                "https://api.mailgun.net/v3/mg.example.com/bounces?page=next&address=a%40b.example&limit=1000",
                Some("page=next&address=a%40b.example"),
            ),
            (
                "https://evil.example/?address=x%26y&term=&page=next",
                Some("address=x%26y&page=next"),
            ),
            ("https://api.mailgun.net/v3/mg.example.com/bounces", None),
            ("<next page url>", None),
        ] {
            assert_eq!(next_place(url).as_deref(), place, "{url}");
        }
    }

    #[test]
    fn times_are_read_as_mailgun_writes_them() {
        let ms = |text| read_time(text).map(|at: Timestamp| at.timestamp());
        assert_eq!(ms("Thu, 11 Dec 2025 01:49:40 UTC"), Some(1_765_417_780));
        assert_eq!(ms("Fri, 21 Oct 2011 11:02:55 GMT"), Some(1_319_194_975));
        for none in ["", "2011-10-21", "Thu, 11 Dec 2025 01:49:40 +0100"] {
            assert_eq!(ms(none), None);
        }
    }
}
