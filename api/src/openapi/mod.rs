//! The document of the API: what poem-openapi derives from the handlers, mended
//! where its form trips other tools, and the page that shows it.

mod bodies;
mod errors;
pub(crate) mod methods;
mod responses;
mod values;

use std::sync::Arc;

use poem_openapi::{LicenseObject, OpenApiService};
use serde_json::{Value, json};

use crate::context::Context;
use crate::idempotency;
use crate::provider_events::InboundApi;
use crate::public::tracking::TrackingApi;
use crate::public::unsubscribe::UnsubscribeApi;
use crate::v1::api_keys::ApiKeysApi;
use crate::v1::audit_logs::AuditLogsApi;
use crate::v1::messages::MessagesApi;
use crate::v1::metrics::MetricsApi;
use crate::v1::provider_management::ProviderUpkeepApi;
use crate::v1::providers::ProvidersApi;
use crate::v1::routing_rules::RoutingRulesApi;
use crate::v1::send::SendApi;
use crate::v1::settings::SettingsApi;
use crate::v1::suppressions::SuppressionsApi;
use crate::v1::template_versions::TemplateVersionsApi;
use crate::v1::templates::TemplatesApi;
use crate::v1::unsubscribe_groups::UnsubscribeGroupsApi;
use crate::v1::webhook_deliveries::WebhookDeliveriesApi;
use crate::v1::webhook_endpoints::WebhookEndpointsApi;

/// In groups, as a tuple of APIs has sixteen members at the most.
type Operations = (
    (SendApi, MessagesApi, MetricsApi),
    (ProvidersApi, ProviderUpkeepApi, RoutingRulesApi),
    (ApiKeysApi, SettingsApi, AuditLogsApi),
    (TemplatesApi, TemplateVersionsApi),
    (UnsubscribeGroupsApi, SuppressionsApi),
    (WebhookEndpointsApi, WebhookDeliveriesApi),
    (UnsubscribeApi, TrackingApi, InboundApi),
);
type ApiService = OpenApiService<Operations, ()>;

/// All operations over one context.
pub(crate) fn service(context: &Arc<Context>) -> ApiService {
    macro_rules! apis {
        ($($api:ident),+) => {
            ($($api { context: Arc::clone(context) }),+)
        };
    }
    let operations = (
        apis!(SendApi, MessagesApi, MetricsApi),
        apis!(ProvidersApi, ProviderUpkeepApi, RoutingRulesApi),
        apis!(ApiKeysApi, SettingsApi, AuditLogsApi),
        apis!(TemplatesApi, TemplateVersionsApi),
        apis!(UnsubscribeGroupsApi, SuppressionsApi),
        apis!(WebhookEndpointsApi, WebhookDeliveriesApi),
        apis!(UnsubscribeApi, TrackingApi, InboundApi),
    );
    OpenApiService::new(operations, "Waypost", env!("CARGO_PKG_VERSION"))
        .description(
            "Self-hosted email delivery: one API in front of SendGrid, Postmark, Mailgun, Amazon SES and SMTP. Every error has the form \
             `{\"error\": {\"code\", \"message\", \"details\"?}}`. A field or a query parameter that is not \
             listed here is refused with 400. Every answer carries `X-Request-Id`, \
             and `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds).",
        )
        .license(LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
}

/// The document as JSON.
pub(crate) fn document(service: &ApiService) -> Value {
    let mut document: Value =
        serde_json::from_str(&service.spec()).expect("poem-openapi writes valid JSON");
    document["servers"] = json!([{ "url": "/" }]);
    mend(&mut document);
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, operations) in paths {
        let operations = operations.as_object_mut().into_iter().flatten();
        operations.for_each(|(_, operation)| idempotency::document(operation));
    }
    responses::mend(&mut document);
    values::mend(&mut document);
    bodies::mend(&mut document);
    errors::mend(&mut document);
    document
}

/// Generators stumble over media types with a charset, and over a described
/// reference, which is written as `allOf` of one.
fn mend(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(content) = fields.remove("application/json; charset=utf-8") {
                fields.insert("application/json".to_owned(), content);
            }
            let single = fields
                .get("allOf")
                .and_then(Value::as_array)
                .filter(|parts| parts.len() == 1 && !fields.contains_key("nullable"))
                .map(|parts| parts[0].clone());
            if let Some(reference) = single {
                *value = reference;
                return mend(value);
            }
            fields.values_mut().for_each(mend);
        }
        Value::Array(items) => items.iter_mut().for_each(mend),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A page that shows the document, given as JSON, and needs nothing from elsewhere: the
/// viewer is part of the binary.
pub(crate) fn page(document: &str) -> String {
    // The viewer of no operations at all, in which the document takes the place of theirs.
    let viewer = OpenApiService::new((), "", "").swagger_ui_html();
    let (spec_start, spec_end) = ("let spec = ", ";\n    let oauth2RedirectUrl");
    let around = viewer.split_once(spec_start).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(spec_end)?;
        Some((head, tail))
    });
    let (head, tail) = around.expect("poem-openapi's viewer holds a document");
    // "</" could end the script that the document stands in.
    let document = document.replace("</", "<\\/");
    format!("{head}{spec_start}{document}{spec_end}{tail}")
}
