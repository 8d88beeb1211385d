//! Which answers each operation gives. poem-openapi lists every row of the error
//! table under every operation, since handlers share one failure type; here the
//! rows that an operation cannot answer are taken out, by what it reads and by a
//! table for the two statuses that its form does not show. The tests hold every
//! answer that they get against the document, so a row that is missing fails
//! there.

use serde_json::{Map, Value, json};
use waypost_core::acceptance::AcceptRefusal;
use waypost_core::acceptance::retry::RetryRefusal;
use waypost_core::auth::keys::KeyRefusal;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::domains::DomainRefusal;
use waypost_core::provider_account::event_webhook::EventWebhookRefusal;
use waypost_core::routing::RouteRefusal;
use waypost_core::routing::rule::RuleRefusal;
use waypost_core::suppression::SuppressionRefusal;
use waypost_core::template::TemplateRefusal;
use waypost_core::webhook::endpoint::EndpointRefusal;

use crate::error::Failure;

/// An operation, and a failure that it answers.
pub(super) type OperationFailure = (&'static str, fn() -> Failure);

/// Operations that answer 409 for another reason than a repeated
/// `Idempotency-Key`, and with what as a rule.
pub(super) const CONFLICTS: [OperationFailure; 9] = [
    ("create_provider_domain", || DomainRefusal::Present.into()),
    ("create_suppression", || SuppressionRefusal::Exists.into()),
    ("delete_provider_domain", || DomainRefusal::Busy.into()),
    ("register_event_webhook", || {
        EventWebhookRefusal::Busy.into()
    }),
    ("replay_webhook_delivery", || {
        EndpointRefusal::Inactive.into()
    }),
    ("replay_webhook_endpoint", || {
        EndpointRefusal::Inactive.into()
    }),
    ("retry_message", || RetryRefusal::NoneFailed.into()),
    ("rotate_api_key", || KeyRefusal::Ended.into()),
    ("update_api_key", || KeyRefusal::Ended.into()),
];

/// Operations that can refuse what is well formed, and with what as a rule.
pub(super) const UNPROCESSABLE: [OperationFailure; 14] = [
    ("create_provider", bad_credentials),
    ("create_provider_domain", || DomainRefusal::TooMany.into()),
    ("create_routing_rule", unknown_account),
    ("create_suppression", || {
        SuppressionRefusal::UnknownGroup.into()
    }),
    ("create_webhook_endpoint", || {
        EndpointRefusal::AddressNotPublic.into()
    }),
    ("delete_provider_domain", || domain_refused("domain in use")),
    ("import_suppressions", || {
        SuppressionRefusal::UnknownGroup.into()
    }),
    ("preview_template", || {
        TemplateRefusal::WithoutVersion.into()
    }),
    ("register_event_webhook", || {
        let refusal = EventWebhookRefusal::Refused {
            provider_type: ProviderType::Sendgrid,
            reason: "access forbidden".to_owned(),
            steps: vec!["Give the API key the permission Mail Settings.".to_owned()],
        };
        refusal.into()
    }),
    ("send_message", || {
        AcceptRefusal::Route(RouteRefusal::DomainNotVerified(ProviderType::Sendgrid)).into()
    }),
    ("update_provider", bad_credentials),
    ("update_routing_rule", unknown_account),
    ("update_webhook_endpoint", || {
        EndpointRefusal::AddressNotPublic.into()
    }),
    ("verify_provider_domain", || {
        domain_refused("domain not found")
    }),
];

fn bad_credentials() -> Failure {
    Failure::InvalidCredentials {
        provider_type: ProviderType::Sendgrid,
        reason: "access forbidden".to_owned(),
    }
}

fn unknown_account() -> Failure {
    let refusal = RuleRefusal::UnknownAccounts {
        main: true,
        fallbacks: vec![],
    };
    refusal.into()
}

fn domain_refused(reason: &str) -> Failure {
    let refusal = DomainRefusal::Refused {
        provider_type: ProviderType::Mailgun,
        reason: reason.to_owned(),
    };
    refusal.into()
}

/// Whether a table has a row for an operation.
fn lists(table: &[OperationFailure], id: &str) -> bool {
    table.iter().any(|(known, _)| *known == id)
}

/// What the document says of a header that answers carry.
struct Header {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Value,
    /// The statuses that carry it; all of them where there are none.
    statuses: &'static [&'static str],
}

const HEADERS: [Header; 5] = [
    Header {
        name: "X-Request-Id",
        description: "The request's id, as the log names it.",
        schema: || json!({ "type": "string", "format": "uuid", "example": "01a1fbfa-b12e-763c-a29e-ce02006ba540" }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Limit",
        description: "Requests per second that the organization has for this operation.",
        schema: || json!({ "type": "integer", "example": 1000 }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Remaining",
        description: "How many of them are left.",
        schema: || json!({ "type": "integer", "example": 999 }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Reset",
        description: "Seconds until all of them are there again.",
        schema: || json!({ "type": "integer", "example": 1 }),
        statuses: &[],
    },
    Header {
        name: "Retry-After",
        description: "Seconds after which the request may be tried again.",
        schema: || json!({ "type": "integer", "example": 2 }),
        statuses: &["429", "503"],
    },
];

/// Takes the answers out that an operation cannot give, says which permission it
/// takes, and adds the headers of its answers.
pub(super) fn mend(document: &mut Value) {
    for operation in operations(document) {
        if !operation.contains_key("security") {
            // Public ones have answers of their own.
            add_headers(operation);
            continue;
        }
        let has_path = parameters(operation).any(|parameter| parameter["in"] == "path");
        let has_key = parameters(operation).any(|parameter| parameter["name"] == "Idempotency-Key");
        let has_body = operation.contains_key("requestBody");
        let id = operation["operationId"].as_str().unwrap_or_default();
        let gives = |status: &str| match status {
            "404" => has_path,
            "409" => has_key || lists(&CONFLICTS, id),
            "413" | "415" => has_body,
            "422" => lists(&UNPROCESSABLE, id),
            _ => true,
        };
        let unwanted: Vec<String> = answers(operation)
            .keys()
            .filter(|status| !gives(status))
            .cloned()
            .collect();
        let permission = permission(operation);
        if let Some(permission) = permission {
            operation.insert("x-required-permission".to_owned(), json!(permission));
        }
        if let Some(Value::Object(answers)) = operation.get_mut("responses") {
            answers.retain(|status, _| !unwanted.contains(status));
        }
        add_headers(operation);
    }
    for header in HEADERS {
        document["components"]["headers"][header.name] = json!({ "description": header.description, "required": true, "schema": (header.schema)() });
    }
}

fn add_headers(operation: &mut Map<String, Value>) {
    let answers = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut);
    for (status, answer) in answers.into_iter().flatten() {
        for Header { name, statuses, .. } in HEADERS {
            if statuses.is_empty() || statuses.contains(&status.as_str()) {
                let reference = format!("#/components/headers/{name}");
                answer["headers"][name] = json!({ "$ref": reference });
            }
        }
        if status == "409" {
            // Only where the request is merely too early.
            answer["headers"]["Retry-After"] = json!({
                "description": "Seconds after which the request may be tried again; there where the reason is \
                                a request that still runs.",
                "schema": { "type": "integer", "example": 1 },
            });
        }
    }
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

fn answers(operation: &Map<String, Value>) -> &Map<String, Value> {
    operation["responses"]
        .as_object()
        .expect("an operation has answers")
}

/// The permission that an operation's description names.
fn permission(operation: &Map<String, Value>) -> Option<String> {
    let description = operation.get("description")?.as_str()?;
    let (_, rest) = description.split_once("Takes the permission ")?;
    let name = rest
        .chars()
        .take_while(|letter| letter.is_ascii_uppercase() || *letter == '_');
    Some(name.collect())
}
