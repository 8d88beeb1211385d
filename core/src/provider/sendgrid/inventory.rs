//! Dynamic templates and event webhooks of a SendGrid account. Sources: Twilio's pages
//! "Retrieve paged transactional templates" (`page_size` up to 200, `page_token`, and the next
//! page as a URL in `_metadata.next`) and "Retrieve a single transactional template"; OAI
//! `tsg_webhooks_v3`.

use serde_json::Value;
use url::Url;

use super::{SendgridApi, error_text};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall};
use crate::provider::inventory::{
    Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook, read, segment, text,
};
use crate::provider::lookup::query_string;

/// The page size: the allowed maximum.
const PAGE: &str = "200";

/// `GET /v3/templates`: dynamic templates alone.
pub(super) fn templates(
    api: &SendgridApi,
    page: Option<&str>,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
    let mut query = vec![("generations", "dynamic"), ("page_size", PAGE)];
    query.extend(page.map(|token| ("page_token", token)));
    let url = api.base.query("/v3/templates", &query_string(&query));
    let call = api.authorize(ProviderCall::get(url));
    read(call, now, error_text, |document| {
        // The page says `templates`, the service answers `result`.
        let listed = document["result"].as_array();
        let listed = listed.or_else(|| document["templates"].as_array())?;
        let items = listed.iter().filter_map(|template| {
            Some(ListedTemplate {
                id: text(&template["id"])?,
                name: text(&template["name"]).unwrap_or_default(),
            })
        });
        Some(InventoryPage {
            items: items.collect(),
            next: document["_metadata"]["next"].as_str().and_then(page_token),
        })
    })
}

/// The token of the next page, from its URL. The rest of the URL is not followed: the key is
/// never sent to another host.
fn page_token(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let found = url.query_pairs().find(|(name, _)| name == "page_token");
    found.map(|(_, token)| token.into_owned())
}

/// `GET /v3/templates/{id}`, with the contents of the versions.
pub(super) fn template(
    api: &SendgridApi,
    id: &str,
    now: Timestamp,
) -> CallStep<Inventory<StoredTemplate>> {
    let url = api.base.at(&format!("/v3/templates/{}", segment(id)));
    let call = api.authorize(ProviderCall::get(url));
    read(call, now, error_text, |document| {
        let versions = document["versions"].as_array()?;
        let template = StoredTemplate {
            id: text(&document["id"])?,
            name: text(&document["name"]).unwrap_or_default(),
            ..StoredTemplate::default()
        };
        let is_active = |version: &&Value| version["active"] == 1 || version["active"] == true;
        Some(match versions.iter().find(is_active) {
            Some(version) => with_version(template, version),
            None => StoredTemplate {
                unsendable: Some("it has no active version".to_owned()),
                ..template
            },
        })
    })
}

fn with_version(template: StoredTemplate, version: &Value) -> StoredTemplate {
    let plain = text(&version["plain_content"]);
    StoredTemplate {
        subject: text(&version["subject"]),
        html: text(&version["html_content"]),
        is_text_generated: version["generate_plain_content"] != false,
        text: plain.filter(|_| version["generate_plain_content"] == false),
        ..template
    }
}

/// `GET /v3/user/webhooks/event/settings/all`.
pub(super) fn webhooks(
    api: &SendgridApi,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
    let url = api.base.at("/v3/user/webhooks/event/settings/all");
    let call = api.authorize(ProviderCall::get(url));
    read(call, now, error_text, |document| {
        let webhooks = document["webhooks"].as_array()?.iter();
        let items = webhooks.filter_map(|webhook| {
            let fields = webhook.as_object()?.iter();
            let set = fields.filter(|(name, value)| *value == true && *name != "enabled");
            Some(StoredWebhook {
                id: text(&webhook["id"])?,
                url: text(&webhook["url"])?,
                events: set.map(|(name, _)| name.clone()).collect(),
                is_active: webhook["enabled"] == true,
            })
        });
        Some(InventoryPage {
            items: items.collect(),
            next: None,
        })
    })
}
