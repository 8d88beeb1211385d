//! The templates of an SES account in one region. Source: the reference of the SES API v2
//! (`ListEmailTemplates`: `GET /v2/email/templates`, at most 100 a page; `GetEmailTemplate`:
//! `GET /v2/email/templates/{name}`). SES posts events to SNS topics, whose subscriptions it
//! does not know, so there are no webhooks to read.

use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::domains::RESERVED;
use super::{SesApi, clock_text, error_name, error_text, is_clock_error};
use crate::provider::call::{CallStep, ProviderReply};
use crate::provider::inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, text};
use crate::provider::outcome::reason;

/// The page size: the allowed maximum.
const PAGE: usize = 100;

/// Why there are no webhooks.
pub(super) const NO_WEBHOOKS: &str = "SES posts events to SNS topics. In SNS, look at the subscriptions of your topics, and create a Waypost webhook endpoint for each application that is subscribed.";

/// `GET /v2/email/templates`.
pub(super) fn templates(
    api: &SesApi,
    page: Option<&str>,
) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
    let mut query = format!("PageSize={PAGE}");
    if let Some(token) = page {
        let token = utf8_percent_encode(token, RESERVED);
        query = format!("NextToken={token}&{query}");
    }
    let url = api.base.query("/v2/email/templates", &query);
    read(api, url, |document| {
        let listed = document["TemplatesMetadata"].as_array();
        // An empty list may be left out.
        let is_empty = document.as_object().is_some_and(|all| all.is_empty());
        if listed.is_none() && !is_empty {
            return None;
        }
        let items = listed.into_iter().flatten().filter_map(|template| {
            let name = text(&template["TemplateName"])?;
            Some(ListedTemplate {
                id: name.clone(),
                name,
            })
        });
        Some(InventoryPage {
            items: items.collect(),
            next: text(&document["NextToken"]),
        })
    })
}

/// `GET /v2/email/templates/{name}`.
pub(super) fn template(api: &SesApi, id: &str) -> CallStep<Inventory<StoredTemplate>> {
    let name = utf8_percent_encode(id, RESERVED);
    let url = api.base.at(&format!("/v2/email/templates/{name}"));
    let region = api.region.clone();
    read(api, url, move |document| {
        let content = document["TemplateContent"].as_object()?;
        let name = text(&document["TemplateName"])?;
        let part = |name: &str| content.get(name).and_then(text);
        Some(StoredTemplate {
            // Names are unique within a region.
            id: format!("{region}/{name}"),
            name,
            subject: part("Subject"),
            html: part("Html"),
            text: part("Text"),
            ..StoredTemplate::default()
        })
    })
}

fn read<T: 'static>(
    api: &SesApi,
    url: url::Url,
    parse: impl FnOnce(&Value) -> Option<T> + Send + 'static,
) -> CallStep<Inventory<T>> {
    let now = api.now;
    api.get(url, move |reply| {
        let document = reply.json().unwrap_or_default();
        if let Some(name) = error_name(&reply, &document) {
            return CallStep::Done(refused(&reply, &name, &document));
        }
        let found = Some(&document).filter(|_| reply.status == 200);
        CallStep::Done(match found.and_then(parse) {
            Some(found) => Inventory::Found(found),
            None => Inventory::not_read(&reply, "not a reply of SES", now),
        })
    })
}

/// SES throttles with 400 too.
fn refused<T>(reply: &ProviderReply, name: &str, document: &Value) -> Inventory<T> {
    let message = error_text(reply, document);
    let throttles = name.contains("Throttl") || name.contains("TooManyRequests");
    let undecided = |text: &str| Inventory::Undecided {
        reason: reason(reply.status, text),
        retry_after: None,
    };
    if is_clock_error(name, &message) {
        undecided(&clock_text(name))
    } else if name.contains("NotFound") {
        Inventory::Missing
    } else if throttles || reply.status >= 500 {
        undecided(&format!("{name}: {message}"))
    } else {
        Inventory::Refused {
            reason: reason(reply.status, &format!("{name}: {message}")),
        }
    }
}
