//! The responses of each operation. All handlers share one failure type, so poem-openapi
//! lists every row of the error table for every operation. This module removes the rows
//! that an operation cannot return: by what it reads, and by a table for the two statuses
//! that its signature does not show. The tests check every response that they get against
//! the document, so a missing row fails there.

use serde_json::{Map, Value, json};
use uuid::Uuid;
use waypost_core::acceptance::AcceptRefusal;
use waypost_core::acceptance::retry::RetryRefusal;
use waypost_core::auth::keys::KeyRefusal;
use waypost_core::delivery::change::ChangeRefusal;
use waypost_core::invitation::InvitationRefusal;
use waypost_core::member::MemberRefusal;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::domains::DomainRefusal;
use waypost_core::provider_account::event_webhook::EventWebhookRefusal;
use waypost_core::provider_account::suppression_import::ListImportRefusal;
use waypost_core::routing::RouteRefusal;
use waypost_core::routing::rule::RuleRefusal;
use waypost_core::suppression::SuppressionRefusal;
use waypost_core::template::TemplateRefusal;
use waypost_core::user::UserRefusal;
use waypost_core::webhook::endpoint::EndpointRefusal;

use super::{id, operations, parameters};
use crate::error::{Failure, change_refused};
use crate::request::idempotency_key::KEY;

/// An operation id, and an example failure of the operation.
type OperationFailure = (&'static str, fn() -> Failure);

/// Operations that return 409 for another reason than their `Idempotency-Key`, with the
/// typical failure.
pub(super) const CONFLICTS: [OperationFailure; 23] = [
    ("cancel_message", || ChangeRefusal::Sent.into()),
    ("confirm_totp", || {
        change_refused(UserRefusal::SecondFactorEnabled, "password")
    }),
    ("create_api_key", || KeyRefusal::ByTestKey.into()),
    ("create_invitation", || InvitationRefusal::Exists.into()),
    ("create_member", || MemberRefusal::Exists.into()),
    ("create_provider_domain", || DomainRefusal::Present.into()),
    ("create_suppression", || SuppressionRefusal::Exists.into()),
    ("create_template", || TemplateRefusal::NameTaken.into()),
    ("delete_member", || MemberRefusal::LastOwner.into()),
    ("delete_provider_domain", || DomainRefusal::Busy.into()),
    ("delete_template", || TemplateRefusal::InUse.into()),
    ("disable_totp", || {
        change_refused(UserRefusal::NoSecondFactor, "password")
    }),
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
    ("revoke_api_key", || KeyRefusal::ByTestKey.into()),
    ("rotate_api_key", || KeyRefusal::Ended.into()),
    ("start_totp", || {
        change_refused(UserRefusal::SecondFactorEnabled, "password")
    }),
    ("update_api_key", || KeyRefusal::Ended.into()),
    ("update_member", || MemberRefusal::LastOwner.into()),
    ("update_message", || ChangeRefusal::NotScheduled.into()),
    ("update_template", || TemplateRefusal::InUse.into()),
];

/// Operations that return 422, with the typical failure.
pub(super) const UNPROCESSABLE: [OperationFailure; 27] = [
    ("accept_invitation", || {
        change_refused(UserRefusal::WithoutPassword, "password")
    }),
    ("confirm_totp", || {
        change_refused(UserRefusal::CodeWrong, "password")
    }),
    ("create_member", || MemberRefusal::UserNotFound.into()),
    ("create_provider", bad_credentials),
    ("create_provider_domain", || DomainRefusal::TooMany.into()),
    ("create_routing_rule", unknown_account),
    ("create_suppression", || {
        SuppressionRefusal::UnknownGroup.into()
    }),
    ("create_template_version", || {
        TemplateRefusal::UnknownLayout.into()
    }),
    ("create_webhook_endpoint", || {
        EndpointRefusal::AddressNotPublic.into()
    }),
    ("delete_provider_domain", || domain_refused("domain in use")),
    ("disable_totp", || {
        change_refused(UserRefusal::WrongPassword, "password")
    }),
    ("import_provider_suppressions", || {
        ListImportRefusal::NotOffered(ProviderType::Smtp).into()
    }),
    ("import_suppressions", || {
        SuppressionRefusal::UnknownGroup.into()
    }),
    ("preview_template", || {
        TemplateRefusal::WithoutVersion.into()
    }),
    ("preview_template_draft", || {
        TemplateRefusal::UnknownLayout.into()
    }),
    ("register_event_webhook", || {
        let refusal = EventWebhookRefusal::Refused {
            provider_type: ProviderType::Sendgrid,
            reason: "access forbidden".to_owned(),
            steps: vec!["Give the API key the permission Mail Settings.".to_owned()],
        };
        refusal.into()
    }),
    ("remove_suppressions", || {
        SuppressionRefusal::UnknownGroup.into()
    }),
    ("rollback_template", not_composable),
    ("send_message", || {
        AcceptRefusal::Route(RouteRefusal::DomainNotVerified(ProviderType::Sendgrid)).into()
    }),
    ("send_template_test", || TemplateRefusal::IsPart.into()),
    ("simulate_routing_rules", unknown_account),
    ("start_totp", || {
        change_refused(UserRefusal::WrongPassword, "password")
    }),
    ("update_provider", bad_credentials),
    ("update_routing_rule", unknown_account),
    ("update_user", || {
        change_refused(UserRefusal::WrongPassword, "currentPassword")
    }),
    ("update_webhook_endpoint", || {
        EndpointRefusal::AddressNotPublic.into()
    }),
    ("verify_provider_domain", || {
        domain_refused("domain not found")
    }),
];

/// Operations that return 404 without an id in their path.
const NOT_FOUND: [&str; 4] = [
    "accept_invitation",
    "accept_password_reset",
    "look_up_invitation",
    "look_up_password_reset",
];

fn bad_credentials() -> Failure {
    Failure::InvalidCredentials {
        provider_type: ProviderType::Sendgrid,
        reason: "access forbidden".to_owned(),
    }
}

fn not_composable() -> Failure {
    let refusal = TemplateRefusal::NotComposable {
        template_id: Uuid::from_u128(0x01a1_fbfa_b12e_763c_a29e_ce02_006b_a548).into(),
        name: "Receipt".to_owned(),
        problem: "htmlContent: line 1, column 1: there is no partial footer that has a version"
            .to_owned(),
    };
    refusal.into()
}

fn unknown_account() -> Failure {
    let refusal = RuleRefusal::UnknownAccounts {
        main: true,
        targets: vec![],
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

fn lists(table: &[OperationFailure], operation: &Map<String, Value>) -> bool {
    table.iter().any(|(known, _)| *known == id(operation))
}

/// A response header in the document.
struct Header {
    name: &'static str,
    description: &'static str,
    schema: fn() -> Value,
    /// The statuses with this header; all statuses if empty.
    statuses: &'static [&'static str],
}

const HEADERS: [Header; 5] = [
    Header {
        name: "X-Request-Id",
        description: "The id of the request, which the log contains.",
        schema: || json!({ "type": "string", "format": "uuid", "example": "01a1fbfa-b12e-763c-a29e-ce02006ba540" }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Limit",
        description: "The number of requests per second that the organization may make, for sends or for all other operations. Without a valid API key or session: the limit of the client's address.",
        schema: || json!({ "type": "integer", "example": 1000 }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Remaining",
        description: "The number of requests left.",
        schema: || json!({ "type": "integer", "example": 999 }),
        statuses: &[],
    },
    Header {
        name: "X-RateLimit-Reset",
        description: "Seconds until the full number of requests is available again.",
        schema: || json!({ "type": "integer", "example": 1 }),
        statuses: &[],
    },
    Header {
        name: "Retry-After",
        description: "Seconds after which the request can be repeated.",
        schema: || json!({ "type": "integer", "example": 2 }),
        statuses: &["429", "503"],
    },
];

/// Removes the responses that an operation cannot return, and adds the response headers to
/// errors. Successful responses have the same headers; the description of the document says
/// so once.
pub(super) fn complete(document: &mut Value) {
    for operation in operations(document) {
        // Public operations define their own responses.
        if operation.contains_key("security") {
            remove_unwanted(operation);
        }
        add_headers(operation);
    }
    for header in HEADERS {
        document["components"]["headers"][header.name] = json!({ "description": header.description, "required": true, "schema": (header.schema)() });
    }
}

fn remove_unwanted(operation: &mut Map<String, Value>) {
    let has_path = parameters(operation).any(|parameter| parameter["in"] == "path");
    let has_key = parameters(operation).any(|parameter| parameter["name"] == KEY);
    let has_body = operation.contains_key("requestBody");
    let conflicts = has_key || lists(&CONFLICTS, operation);
    let is_unprocessable = lists(&UNPROCESSABLE, operation);
    let name = id(operation).to_owned();
    let responses = operation["responses"].as_object_mut();
    let responses = responses.expect("an operation has responses");
    responses.retain(|status, _| match status.as_str() {
        "404" => has_path || NOT_FOUND.contains(&name.as_str()),
        "409" => conflicts,
        "413" | "415" => has_body,
        "422" => is_unprocessable,
        _ => true,
    });
}

fn add_headers(operation: &mut Map<String, Value>) {
    let responses = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut);
    let errors = responses.into_iter().flatten();
    for (status, response) in errors.filter(|(status, _)| status.starts_with(['4', '5'])) {
        for Header { name, statuses, .. } in HEADERS {
            if statuses.is_empty() || statuses.contains(&status.as_str()) {
                let reference = format!("#/components/headers/{name}");
                response["headers"][name] = json!({ "$ref": reference });
            }
        }
        if status == "409" {
            // Present only if the request is merely too early.
            response["headers"]["Retry-After"] = json!({
                "description": "Seconds after which the request can be repeated. Present only if another request \
                                still runs.",
                "schema": { "type": "integer", "example": 1 },
            });
        }
    }
}
