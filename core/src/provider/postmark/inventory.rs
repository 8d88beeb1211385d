//! Templates, layouts and webhooks of a Postmark server. Source: Postmark's pages "Templates
//! API" (`GET /templates?Count&Offset`, at most 500 a page; `GET /templates/{id}`) and
//! "Webhooks API".

use serde_json::Value;

use super::{PostmarkApi, error_text};
use crate::clock::Timestamp;
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::inventory::{
    Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook, read, segment, text,
};

/// The page size: the allowed maximum.
const PAGE: usize = 500;
/// The code of a template that does not exist.
const TEMPLATE_MISSING: i64 = 1101;

/// `GET /templates`: layouts first, since templates name them.
pub(super) fn templates(
    api: &PostmarkApi<'_>,
    page: Option<&str>,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
    let (kind, offset) = page
        .and_then(|page| page.split_once(':'))
        .unwrap_or(("Layout", "0"));
    let (kind, offset) = (kind.to_owned(), offset.parse().unwrap_or(0));
    let query = format!(
        "Count={PAGE}&Offset={offset}&TemplateType={}",
        segment(&kind)
    );
    let url = api.base.query("/templates", &query);
    let call = api.with_server_token(ProviderCall::get(url));
    read(call, now, error, move |document| {
        let templates = document["Templates"].as_array()?;
        let total = document["TotalCount"].as_u64()?;
        let end = offset + templates.len();
        let is_whole = templates.is_empty() || end as u64 >= total;
        let next = match (is_whole, kind.as_str()) {
            (false, kind) => Some(format!("{kind}:{end}")),
            (true, "Layout") => Some("Standard:0".to_owned()),
            (true, _) => None,
        };
        let items = templates.iter().filter_map(|template| {
            Some(ListedTemplate {
                id: template["TemplateId"].as_u64()?.to_string(),
                name: text(&template["Name"]).unwrap_or_default(),
            })
        });
        Some(InventoryPage {
            items: items.collect(),
            next,
        })
    })
}

/// `GET /templates/{id}`.
pub(super) fn template(
    api: &PostmarkApi<'_>,
    id: &str,
    now: Timestamp,
) -> CallStep<Inventory<StoredTemplate>> {
    let url = api.base.at(&format!("/templates/{}", segment(id)));
    let call = api.with_server_token(ProviderCall::get(url));
    let reading = read(call, now, error, |document| {
        let is_inactive = document["Active"] == false;
        Some(StoredTemplate {
            id: document["TemplateId"].as_u64()?.to_string(),
            alias: text(&document["Alias"]),
            name: text(&document["Name"]).unwrap_or_default(),
            is_layout: document["TemplateType"] == "Layout",
            layout: text(&document["LayoutTemplate"]),
            subject: text(&document["Subject"]),
            html: text(&document["HtmlBody"]),
            text: text(&document["TextBody"]),
            unsendable: is_inactive.then(|| "it is not active".to_owned()),
            ..StoredTemplate::default()
        })
    });
    missing_by_code(reading)
}

/// A template that is gone is refused with 422 and a code of its own.
fn missing_by_code(
    reading: CallStep<Inventory<StoredTemplate>>,
) -> CallStep<Inventory<StoredTemplate>> {
    let CallStep::Call { call, then } = reading else {
        return reading;
    };
    CallStep::call(*call, move |reply| {
        let code = reply
            .json()
            .and_then(|document| document["ErrorCode"].as_i64());
        match code {
            Some(TEMPLATE_MISSING) => CallStep::Done(Inventory::Missing),
            Some(_) | None => then(reply),
        }
    })
}

/// `GET /webhooks`, of all message streams.
pub(super) fn webhooks(
    api: &PostmarkApi<'_>,
    now: Timestamp,
) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
    let url = api.base.at("/webhooks");
    let call = api.with_server_token(ProviderCall::get(url));
    read(call, now, error, |document| {
        let webhooks = document["Webhooks"].as_array()?.iter();
        let items = webhooks.filter_map(|webhook| {
            let triggers = webhook["Triggers"].as_object().into_iter().flatten();
            let set = triggers.filter(|(_, trigger)| trigger["Enabled"] == true);
            Some(StoredWebhook {
                id: webhook["ID"].as_u64()?.to_string(),
                url: text(&webhook["Url"])?,
                events: set.map(|(name, _)| name.clone()).collect(),
                is_active: true,
            })
        });
        Some(InventoryPage {
            items: items.collect(),
            next: None,
        })
    })
}

fn error(reply: &ProviderReply) -> String {
    error_text(reply, &reply.json().unwrap_or(Value::Null))
}
