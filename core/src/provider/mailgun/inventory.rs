//! Stored templates and webhooks of a Mailgun domain. Sources: Mailgun's page "Templates"
//! (`GET /v3/{domain}/templates?limit&page&p`, `GET /v3/{domain}/templates/{name}?active=yes`;
//! a page names the next one in `paging.next`), its client package, and its OpenAPI document
//! (`GET /v3/domains/{domain}/webhooks`).

use std::collections::BTreeMap;

use http::header;
use serde_json::Value;
use url::Url;

use super::{MailgunApi, error_text};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall};
use crate::provider::inventory::{
    Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook, read, segment, text,
};
use crate::provider::lookup::query_string;

/// The page size: the allowed maximum.
const PAGE: &str = "100";
/// The engine of templates whose version names none.
const ENGINE: &str = "handlebars";

impl MailgunApi {
    fn get(&self, path: &str, query: &[(&str, &str)]) -> ProviderCall {
        let url = self.base.query(path, &query_string(query));
        ProviderCall::get(url).with(header::AUTHORIZATION, self.authorization.clone())
    }
}

/// `GET /v3/{domain}/templates`. `page` is the name after which the page begins.
pub(super) fn templates(
    api: &MailgunApi,
    page: Option<&str>,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
    let mut query = vec![("limit", PAGE)];
    query.extend(page.into_iter().flat_map(|p| [("page", "next"), ("p", p)]));
    let call = api.get(&format!("/v3/{}/templates", api.domain), &query);
    let given = page.map(str::to_owned);
    read(call, now, error_text, move |document| {
        let items: Vec<ListedTemplate> = document["items"]
            .as_array()?
            .iter()
            .filter_map(|template| {
                let name = text(&template["name"])?;
                Some(ListedTemplate {
                    id: name.clone(),
                    name,
                })
            })
            .collect();
        // The last page names a next one too, which is empty.
        let next = document["paging"]["next"].as_str().and_then(next_page);
        let next = next.filter(|next| !items.is_empty() && Some(next) != given.as_ref());
        Some(InventoryPage { items, next })
    })
}

/// The name after which the next page begins, from its URL, which is not followed: the key is
/// never sent to another host.
fn next_page(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let found = url.query_pairs().find(|(name, _)| name == "p");
    let name = found.map(|(_, name)| name.into_owned());
    name.filter(|name| !name.is_empty())
}

/// `GET /v3/{domain}/templates/{name}?active=yes`.
pub(super) fn template(
    api: &MailgunApi,
    id: &str,
    now: Timestamp,
) -> CallStep<Inventory<StoredTemplate>> {
    let path = format!("/v3/{}/templates/{}", api.domain, segment(id));
    let call = api.get(&path, &[("active", "yes")]);
    let domain = api.domain.clone();
    read(call, now, error_text, move |document| {
        let template = document["template"].as_object()?;
        let name = text(template.get("name")?)?;
        let version = &document["template"]["version"];
        let headers = &version["headers"];
        let engine = version["engine"].as_str().unwrap_or(ENGINE);
        let unsendable = match (version["template"].is_string(), engine == ENGINE) {
            (false, _) => Some("it has no active version".to_owned()),
            (true, false) => Some(format!("its engine is {engine}, not {ENGINE}")),
            (true, true) => None,
        };
        Some(StoredTemplate {
            // Names are unique within a domain.
            id: format!("{domain}/{name}"),
            name,
            from: text(&headers["From"]),
            reply_to: text(&headers["Reply-To"]).into_iter().collect(),
            subject: text(&headers["Subject"]),
            html: text(&version["template"]),
            unsendable,
            ..StoredTemplate::default()
        })
    })
}

/// `GET /v3/domains/{domain}/webhooks`: URLs by event. Here a webhook is a URL with its events.
pub(super) fn webhooks(
    api: &MailgunApi,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
    let call = api.get(&format!("/v3/domains/{}/webhooks", api.domain), &[]);
    let domain = api.domain.clone();
    read(call, now, error_text, move |document| {
        let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (event, setting) in document["webhooks"].as_object()? {
            let urls = setting["urls"].as_array().into_iter().flatten();
            for url in urls.filter_map(Value::as_str) {
                events
                    .entry(url.to_owned())
                    .or_default()
                    .push(event.clone());
            }
        }
        let items = events.into_iter().map(|(url, events)| StoredWebhook {
            id: format!("{domain}/{url}"),
            url,
            events,
            is_active: true,
        });
        Some(InventoryPage {
            items: items.collect(),
            next: None,
        })
    })
}
