//! The OpenAPI document and the page that shows it. poem-openapi derives the document
//! from the handlers; the modules here complete it and change forms that other tools
//! cannot read.

mod bodies;
mod component;
mod enums;
mod errors;
mod responses;
pub(crate) mod text;
mod values;
mod webhooks;

use std::sync::Arc;

use poem_openapi::{LicenseObject, OpenApiService};
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::middleware::auth;
use crate::public::provider_events::ProviderEventsApi;
use crate::public::tracking::TrackingApi;
use crate::public::unsubscribe::UnsubscribeApi;
use crate::request::idempotency_key;
use crate::v1::api_keys::ApiKeysApi;
use crate::v1::audit_logs::AuditLogsApi;
use crate::v1::erasures::ErasuresApi;
use crate::v1::installation::InstallationApi;
use crate::v1::invitations::InvitationsApi;
use crate::v1::members::MembersApi;
use crate::v1::message_attachments::MessageAttachmentsApi;
use crate::v1::message_changes::MessageChangesApi;
use crate::v1::message_content::MessageContentApi;
use crate::v1::message_webhook_deliveries::MessageWebhookDeliveriesApi;
use crate::v1::messages::MessagesApi;
use crate::v1::metrics::MetricsApi;
use crate::v1::oidc::OidcApi;
use crate::v1::password_resets::PasswordResetsApi;
use crate::v1::provider_health::ProviderHealthApi;
use crate::v1::provider_management::ProviderManagementApi;
use crate::v1::provider_suppressions::ProviderSuppressionsApi;
use crate::v1::providers::ProvidersApi;
use crate::v1::routing_progress::RoutingProgressApi;
use crate::v1::routing_rules::RoutingRulesApi;
use crate::v1::send::SendApi;
use crate::v1::sender_domains::SenderDomainsApi;
use crate::v1::session::SessionApi;
use crate::v1::settings::SettingsApi;
use crate::v1::suppression_export::SuppressionExportApi;
use crate::v1::suppressions::SuppressionsApi;
use crate::v1::template_drafts::TemplateDraftsApi;
use crate::v1::template_tests::TemplateTestsApi;
use crate::v1::template_uses::TemplateUsesApi;
use crate::v1::template_versions::TemplateVersionsApi;
use crate::v1::templates::TemplatesApi;
use crate::v1::unsubscribe_groups::UnsubscribeGroupsApi;
use crate::v1::user::UserApi;
use crate::v1::webhook_deliveries::WebhookDeliveriesApi;
use crate::v1::webhook_endpoints::WebhookEndpointsApi;

/// In groups, because a tuple of APIs can have at most sixteen members.
type Operations = (
    (
        SendApi,
        MessagesApi,
        MessageChangesApi,
        MessageContentApi,
        MessageAttachmentsApi,
        MessageWebhookDeliveriesApi,
        MetricsApi,
    ),
    (
        ProvidersApi,
        ProviderManagementApi,
        ProviderHealthApi,
        ProviderSuppressionsApi,
        SenderDomainsApi,
        RoutingRulesApi,
        RoutingProgressApi,
    ),
    (ApiKeysApi, SettingsApi, AuditLogsApi),
    (
        TemplatesApi,
        TemplateVersionsApi,
        TemplateUsesApi,
        TemplateDraftsApi,
        TemplateTestsApi,
    ),
    (
        UnsubscribeGroupsApi,
        SuppressionsApi,
        SuppressionExportApi,
        ErasuresApi,
    ),
    (WebhookEndpointsApi, WebhookDeliveriesApi),
    (
        SessionApi,
        OidcApi,
        UserApi,
        MembersApi,
        InvitationsApi,
        PasswordResetsApi,
        InstallationApi,
    ),
    (UnsubscribeApi, TrackingApi, ProviderEventsApi),
);
pub(crate) type ApiService = OpenApiService<Operations, ()>;

/// All operations, with their context.
pub(crate) fn service(context: &Arc<Context>) -> ApiService {
    macro_rules! apis {
        ($($api:ident),+) => {
            ($($api { context: Arc::clone(context) }),+)
        };
    }
    let operations = (
        apis!(
            SendApi,
            MessagesApi,
            MessageChangesApi,
            MessageContentApi,
            MessageAttachmentsApi,
            MessageWebhookDeliveriesApi,
            MetricsApi
        ),
        apis!(
            ProvidersApi,
            ProviderManagementApi,
            ProviderHealthApi,
            ProviderSuppressionsApi,
            SenderDomainsApi,
            RoutingRulesApi,
            RoutingProgressApi
        ),
        apis!(ApiKeysApi, SettingsApi, AuditLogsApi),
        apis!(
            TemplatesApi,
            TemplateVersionsApi,
            TemplateUsesApi,
            TemplateDraftsApi,
            TemplateTestsApi
        ),
        apis!(
            UnsubscribeGroupsApi,
            SuppressionsApi,
            SuppressionExportApi,
            ErasuresApi
        ),
        apis!(WebhookEndpointsApi, WebhookDeliveriesApi),
        apis!(
            SessionApi,
            OidcApi,
            UserApi,
            MembersApi,
            InvitationsApi,
            PasswordResetsApi,
            InstallationApi
        ),
        apis!(UnsubscribeApi, TrackingApi, ProviderEventsApi),
    );
    OpenApiService::new(operations, "Waypost", env!("CARGO_PKG_VERSION"))
        .description(
            "Self-hosted email delivery: one API in front of SendGrid, Postmark, Mailgun, Amazon SES and SMTP.\n\n\
             Errors have the form `{\"error\": {\"code\", \"message\", \"details\"?}}`. Unknown fields and query \
             parameters are rejected with 400. Every response has the headers `X-Request-Id`, \
             `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds).",
        )
        .license(LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
}

/// The document as JSON.
pub(crate) fn document(service: &ApiService) -> Value {
    let mut document: Value =
        serde_json::from_str(&service.spec()).expect("poem-openapi writes valid JSON");
    document["openapi"] = json!("3.0.3");
    document["info"]["contact"] = json!({ "name": "Waypost" });
    document["servers"] = json!([{ "url": "/" }]);
    simplify(&mut document);
    for operation in operations(&mut document) {
        idempotency_key::document(operation);
        auth::document(operation);
    }
    responses::complete(&mut document);
    values::complete(&mut document);
    bodies::complete(&mut document);
    errors::complete(&mut document);
    webhooks::complete(&mut document);
    bodies::remove_idle_nulls(&mut document);
    enums::complete(&mut document);
    component::name_schemas(&mut document);
    component::rename_schemas(&mut document);
    component::type_nullable(&mut document);
    component::extend_schemas(&mut document);
    component::share_responses(&mut document);
    component::mark_operations(&mut document);
    component::share_parameters(&mut document);
    component::remove_unused(&mut document);
    order_tags(&mut document);
    document
}

/// Brings the tags into the order in which the operations use them.
fn order_tags(document: &mut Value) {
    let mut order = Vec::new();
    for operation in operations(document) {
        let tag = operation["tags"][0].clone();
        if !order.contains(&tag) {
            order.push(tag);
        }
    }
    let tags = document["tags"].as_array_mut().expect("there are tags");
    tags.sort_by_key(|tag| order.iter().position(|name| *name == tag["name"]));
}

fn operations(document: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.filter_map(|(_, operations)| operations.as_object_mut());
    operations
        .flatten()
        .filter_map(|(_, operation)| operation.as_object_mut())
}

fn parameters(operation: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    parameters.into_iter().flatten()
}

/// The name of the operation; public operations have one too.
fn id(operation: &Map<String, Value>) -> &str {
    operation["operationId"].as_str().unwrap_or_default()
}

/// Removes the charset from media types, and replaces an `allOf` of one reference by the
/// reference: client generators fail on both.
fn simplify(value: &mut Value) {
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
                return simplify(value);
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the page may load: nothing but the API that serves it.
pub(crate) const PAGE_HEADERS: &[(&str, &str)] = &[("content-security-policy", PAGE_POLICY)];

const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
    style-src 'unsafe-inline'; img-src 'self' data: blob:; font-src data:; connect-src 'self'; \
    worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Options of the viewer: no fonts from another host, no button that sends the document to
/// one, and of its own samples only those of curl.
const VIEWER_OPTIONS: &str = r#"{"withDefaultFonts":false,"hideClientButton":true,"hiddenClients":{"c":true,"clojure":true,"csharp":true,"dart":true,"fsharp":true,"go":true,"http":true,"java":true,"javascript":true,"js":true,"kotlin":true,"node":true,"objc":true,"ocaml":true,"php":true,"powershell":true,"python":true,"r":true,"ruby":true,"rust":true,"swift":true,"shell":["httpie","wget"]},"authentication":{"preferredSecurityScheme":"ApiKey"},"metaData":{"title":"Waypost API"}}"#;

/// How to send a first message.
const GETTING_STARTED: &str = include_str!("getting_started.md");

/// The guide that the page shows before the operations.
const GUIDE: &str = include_str!("../../../docs/api.md");

/// Calls of each operation with the client SDKs, by operation id. The SDK generator writes them.
const SAMPLES: &str = include_str!("../../../openapi/samples.json");

/// An HTML page that shows the guide and the document. The viewer is part of the binary, so
/// the page loads nothing else.
pub(crate) fn page(document: &Value) -> String {
    let mut document = document.clone();
    document["info"]["description"] = json!(format!("{GETTING_STARTED}\n{}", guide()));
    let mut samples: Value = serde_json::from_str(SAMPLES).expect("the samples are JSON");
    for operation in operations(&mut document) {
        if let Some(samples) = operation["operationId"]
            .as_str()
            .and_then(|id| samples.get_mut(id))
        {
            let samples = samples.take();
            operation.insert("x-codeSamples".to_owned(), samples);
        }
    }
    // The name that the viewer knows.
    document["webhooks"] = document["x-webhooks"].take();
    // The page of poem-openapi holds the document of its service. This service has no
    // operations; its document makes room for the completed one.
    let viewer = OpenApiService::new((), "", "");
    // "</" could end the script element that contains the document.
    let document = document.to_string().replace("</", "<\\/");
    let options = VIEWER_OPTIONS.replace('"', "&quot;");
    viewer
        .scalar_html()
        .replacen(&viewer.spec(), &document, 1)
        .replacen(
            "id=\"api-reference\"",
            &format!("id=\"api-reference\" data-configuration=\"{options}\""),
            1,
        )
        .replacen(
            "<title>Scalar</title>",
            "<title>Waypost API</title><link rel=\"icon\" href=\"data:,\">",
            1,
        )
}

/// The guide without its title, its list of sections, and the links to other files.
fn guide() -> String {
    let sections = GUIDE
        .split_once("\n## ")
        .map_or(GUIDE, |(_, sections)| sections);
    let mut guide = String::from("## ");
    let mut rest = sections;
    while let Some((before, link)) = rest.split_once("](") {
        let (target, after) = link.split_once(')').unwrap_or((link, ""));
        let is_kept = target.starts_with('#') || target.starts_with("http");
        match before.rfind('[') {
            Some(begin) if !is_kept => {
                guide.push_str(&before[..begin]);
                guide.push_str(&before[begin + 1..]);
            }
            _ => {
                guide.push_str(before);
                guide.push_str("](");
                guide.push_str(target);
                guide.push(')');
            }
        }
        rest = after;
    }
    guide.push_str(rest);
    guide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_description_of_an_operation_names_the_permission_that_it_requires() {
        let mut document = crate::document().unwrap();
        let mut count = 0;
        for operation in operations(&mut document) {
            let description = operation["description"].as_str().unwrap();
            let required = operation.get(auth::PERMISSION).and_then(Value::as_str);
            let sentence = match required {
                Some(permission) => format!("Requires the permission `{permission}`"),
                None if operation["security"] == json!([{ "Session": [] }]) => {
                    "Requires a session".to_owned()
                }
                None => "Requires no API key".to_owned(),
            };
            assert!(description.contains(&sentence), "{}", id(operation));
            count += 1;
        }
        assert!(count > 60, "{count} operations");
    }

    #[test]
    fn the_page_holds_the_document_once_and_no_other() {
        let page = page(&json!({ "openapi": "3", "info": { "title": "</script>" } }));
        assert_eq!(page.matches(r#""title":"<\/script>""#).count(), 1);
        let empty = OpenApiService::new((), "", "").spec();
        assert!(!page.contains(&empty));
        assert!(page.contains("data-configuration="));
    }

    #[test]
    fn the_guide_has_no_links_to_files() {
        let guide = guide();
        assert!(guide.starts_with("## Authentication\n"));
        assert!(guide.contains("](#the-whole-message)"));
        for (_, target) in guide
            .match_indices("](")
            .map(|(at, _)| guide.split_at(at + 2))
        {
            assert!(
                target.starts_with('#') || target.starts_with("http"),
                "{target}"
            );
        }
    }
}
