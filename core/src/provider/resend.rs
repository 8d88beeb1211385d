//! What is kept at Resend: templates, domains, webhooks and suppressions, as an import reads
//! them. Waypost does not send through Resend. Sources: Resend's OpenAPI document, and for
//! templates and suppressions its client package `resend` 6.38: lists are
//! `{"data": […], "has_more": …}`, at most 100 a page, and go on with `after=<id of the last>`.

use http::{HeaderValue, header};
use serde_json::Value;
use url::Url;

use super::BaseUrl;
use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::UnusableCredentials;
use super::domain::{DomainState, FoundDomain, add_domain};
use super::inventory::{
    Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredVariable, StoredWebhook, read,
    segment, text,
};
use super::lookup::query_string;
use super::suppression_list::{ListPage, ListReason};
use crate::clock::Timestamp;
use crate::secret::{ExposeSecret, Secret};

/// The page size: the allowed maximum.
const PAGE: &str = "100";
const HOST: &str = "https://api.resend.com";

/// The API of a Resend account.
#[derive(Debug, Clone)]
pub struct ResendApi {
    base: BaseUrl,
    authorization: HeaderValue,
    now: Timestamp,
}

impl ResendApi {
    /// The API with this key, at its real host unless another base URL is given.
    ///
    /// # Errors
    /// The key does not fit into a header.
    pub fn new(
        key: &Secret,
        base: Option<&Url>,
        now: Timestamp,
    ) -> Result<Self, UnusableCredentials> {
        let bearer = format!("Bearer {}", key.expose_secret());
        let mut authorization = HeaderValue::from_str(&bearer)
            .map_err(|_| UnusableCredentials("the API key does not fit into a header"))?;
        authorization.set_sensitive(true);
        let real = || Url::parse(HOST).expect("the real host is a constant");
        Ok(Self {
            base: BaseUrl(base.cloned().unwrap_or_else(real)),
            authorization,
            now,
        })
    }

    /// `GET /templates`.
    #[must_use]
    pub fn templates(
        &self,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        self.list("/templates", page, |template| {
            Some(ListedTemplate {
                id: text(&template["id"])?,
                name: text(&template["name"]).unwrap_or_default(),
            })
        })
    }

    /// `GET /templates/{id}`.
    #[must_use]
    pub fn template(&self, id: &str) -> CallStep<Inventory<StoredTemplate>> {
        let call = self.get(&format!("/templates/{}", segment(id)), "");
        read(call, self.now, error_text, read_template)
    }

    /// `GET /webhooks`.
    #[must_use]
    pub fn webhooks(
        &self,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        self.list("/webhooks", page, |webhook| {
            let events = webhook["events"].as_array().into_iter().flatten();
            Some(StoredWebhook {
                id: text(&webhook["id"])?,
                url: text(&webhook["endpoint"])?,
                events: events.filter_map(text).collect(),
                is_active: webhook["status"] == "enabled",
            })
        })
    }

    /// `GET /domains`.
    #[must_use]
    pub fn domains(&self, page: Option<&str>) -> CallStep<Inventory<InventoryPage<FoundDomain>>> {
        self.list("/domains", page, |domain| {
            let mut found = Vec::new();
            let domain = FoundDomain {
                domain: text(&domain["name"])?,
                state: match domain["status"].as_str() {
                    Some("verified") => DomainState::Verified,
                    Some(_) => DomainState::Unverified,
                    None => DomainState::Unknown,
                },
                dns_records: Vec::new(),
            };
            add_domain(&mut found, domain);
            found.pop()
        })
    }

    /// `GET /suppressions`. The token of the next page is `next` of the result.
    #[must_use]
    pub fn suppressions(
        &self,
        page: Option<&str>,
    ) -> CallStep<Inventory<(ListPage, Option<String>)>> {
        let call = self.get("/suppressions", &page_query(page));
        read(call, self.now, error_text, |document| {
            let entries = document["data"].as_array()?;
            let mut listed = ListPage::default();
            for entry in entries {
                let reason = match entry["origin"].as_str() {
                    Some("bounce") => ListReason::Bounce,
                    Some("complaint") => ListReason::Complaint,
                    Some(_) | None => ListReason::Unsubscribe,
                };
                let since = entry["created_at"].as_str().and_then(read_time);
                listed.add(entry["email"].as_str(), reason, since);
            }
            Some((listed, next_page(document)?))
        })
    }

    fn get(&self, path: &str, query: &str) -> ProviderCall {
        let url = match query {
            "" => self.base.at(path),
            query => self.base.query(path, query),
        };
        ProviderCall::get(url).with(header::AUTHORIZATION, self.authorization.clone())
    }

    fn list<T: 'static>(
        &self,
        path: &str,
        page: Option<&str>,
        item: impl Fn(&Value) -> Option<T> + Send + 'static,
    ) -> CallStep<Inventory<InventoryPage<T>>> {
        let call = self.get(path, &page_query(page));
        read(call, self.now, error_text, move |document| {
            let items = document["data"].as_array()?.iter();
            Some(InventoryPage {
                items: items.filter_map(item).collect(),
                next: next_page(document)?,
            })
        })
    }
}

fn page_query(page: Option<&str>) -> String {
    let mut query = vec![("limit", PAGE)];
    query.extend(page.map(|id| ("after", id)));
    query_string(&query)
}

/// The last id of a page, if there is a next one. `None` if the page names none.
fn next_page(document: &Value) -> Option<Option<String>> {
    if document["has_more"] != true {
        return Some(None);
    }
    let last = document["data"].as_array()?.last()?;
    Some(Some(text(&last["id"])?))
}

fn read_template(document: &Value) -> Option<StoredTemplate> {
    let variables = document["variables"].as_array().into_iter().flatten();
    let variables = variables.filter_map(|variable| {
        Some(StoredVariable {
            key: text(&variable["key"])?,
            is_number: variable["type"] == "number",
            fallback: match &variable["fallback_value"] {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            },
        })
    });
    let reply_to = match &document["reply_to"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several.iter().filter_map(text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let is_published = document["status"] == "published";
    let mut notes = Vec::new();
    if is_published && document["has_unpublished_versions"] == true {
        notes.push("it has changes that are not published: compare what was imported".to_owned());
    }
    Some(StoredTemplate {
        id: text(&document["id"])?,
        alias: text(&document["alias"]),
        name: text(&document["name"]).unwrap_or_default(),
        from: text(&document["from"]),
        reply_to,
        subject: text(&document["subject"]),
        html: text(&document["html"]),
        text: text(&document["text"]),
        is_text_generated: document["text"].is_null(),
        variables: Some(variables.collect()),
        unsendable: (!is_published).then(|| "it is not published".to_owned()),
        notes,
        ..StoredTemplate::default()
    })
}

/// A time such as `2023-10-06 23:47:56.678+00`, or of RFC 3339.
fn read_time(text: &str) -> Option<Timestamp> {
    let text = text.replacen(' ', "T", 1);
    let parse = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    let time = parse(&text).or_else(|| parse(&format!("{text}:00")))?;
    Some(time.into())
}

/// `{"statusCode", "message", "name"}`.
fn error_text(reply: &ProviderReply) -> String {
    let document = reply.json().unwrap_or_default();
    match document["message"].as_str() {
        Some(message) => message.to_owned(),
        None if reply.is_html() => String::new(),
        None => reply.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_resend_writes_them() {
        let seconds = |text| read_time(text).map(|at| at.timestamp());
        assert_eq!(seconds("2023-10-06 23:47:56.678+00"), Some(1_696_636_076));
        assert_eq!(seconds("2023-10-06T23:47:56.678Z"), Some(1_696_636_076));
        for none in ["", "yesterday", "2023-10-06"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }
}
