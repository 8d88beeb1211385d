//! Values in the document: an example for every field without one, and the values of each
//! enumerated response field. Both are found by `Schema.field` first, then by `field`.

use serde_json::{Map, Value, json};
use waypost_core::account_limiter::circuits::{Circuit, OpenCause};
use waypost_core::auth::{Permission, Role};
use waypost_core::event::EventType;
use waypost_core::message::status::MessageStatus;
use waypost_core::metrics::{Granularity, GroupBy};
use waypost_core::organization::UnverifiedDomains;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::region::AccountRegion;
use waypost_core::provider_account::health::AccountFailure;
use waypost_core::routing::conditions::MessageClass;
use waypost_core::routing::mailbox_provider::MailboxProvider;
use waypost_core::routing::ramp::RampState;
use waypost_core::routing::ramp::steps::RampAction;
use waypost_core::routing::target_health::Prefer;
use waypost_core::routing::targets::{OverCap, Sticky};
use waypost_core::sender_domain::conflict::ConflictCode;
use waypost_core::sender_domain::dmarc::DmarcStatus;
use waypost_core::sender_domain::record::FoundStatus;
use waypost_core::sender_domain::report::SenderDomainStatus;
use waypost_core::sender_domain::spf::SpfStatus;
use waypost_core::suppression::SuppressionSource;
use waypost_core::template::TemplateType;
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_core::webhook::status::DeliveryStatus;

use super::enums::ERROR_CODES;
use super::{id, operations};

/// The additions to fields: `example` in most cases.
const ADDITIONS: &str = include_str!("values.json");

/// Adds the missing examples and values to every field and parameter.
pub(super) fn complete(document: &mut Value) {
    let additions: Map<String, Value> =
        serde_json::from_str(ADDITIONS).expect("values.json is an object");
    let words = words();
    let add = |schema: &str, field: &str, target: &mut Value| {
        let keys = [format!("{schema}.{field}"), field.to_owned()];
        if let Some(words) = keys.iter().find_map(|key| words.get(key)) {
            let inner = innermost(target);
            if inner.get("enum").is_none() {
                inner["enum"] = words.clone();
            }
        }
        list_null(innermost(target));
        let [own, common] = keys.map(|key| additions.get(&key));
        if let Some(additions) = own {
            replace(innermost(target), additions);
        } else if let Some(additions) = common {
            supplement(innermost(target), additions);
        }
    };
    // A parameter has its description beside its schema.
    let add_described = |schema: &str, field: &str, target: &mut Value| {
        add(schema, field, target);
        if let Some(text) = additions
            .get(field)
            .and_then(|field| field.get("description"))
        {
            describe(target, text);
        }
    };
    let schemas = document["components"]["schemas"].as_object_mut();
    for (name, schema) in schemas.into_iter().flatten() {
        for_each_field(name, schema, &add_described);
    }
    for operation in operations(document) {
        let id = id(operation).to_owned();
        let parameters = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            let schema = &mut parameter["schema"];
            add(&id, &name, schema);
            // A parameter cannot be null.
            if let Some(schema) = schema.as_object_mut() {
                schema.remove("nullable");
                if let Some(Value::Array(words)) = schema.get_mut("enum") {
                    words.retain(|word| !word.is_null());
                }
            }
        }
    }
}

fn for_each_field(name: &str, schema: &mut Value, add: &impl Fn(&str, &str, &mut Value)) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, target) in fields.into_iter().flatten() {
        add(name, field, target);
        for_each_field(&format!("{name}.{field}"), target, add);
    }
}

/// The schema of the innermost items of a list.
fn innermost(schema: &mut Value) -> &mut Value {
    if schema.get("items").is_some() {
        innermost(&mut schema["items"])
    } else {
        schema
    }
}

/// In OpenAPI 3.0 the `enum` of a nullable field must contain null.
fn list_null(schema: &mut Value) {
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    if let Some(Value::Array(words)) = schema.get_mut("enum")
        && is_nullable
        && !words.contains(&Value::Null)
    {
        words.push(Value::Null);
    }
}

/// Additions for one field of one schema replace those of its type.
fn replace(schema: &mut Value, additions: &Value) {
    for (name, value) in additions.as_object().into_iter().flatten() {
        schema[name] = value.clone();
    }
}

/// Describes a list or value that has no description.
fn describe(schema: &mut Value, text: &Value) {
    if schema.get("description").is_none() && schema.get("$ref").is_none() {
        schema["description"] = text.clone();
    }
}

/// Adds what the schema lacks, except the description, which is that of the whole list. A
/// reference is complete by itself.
fn supplement(schema: &mut Value, additions: &Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    if schema.contains_key("$ref") || schema.contains_key("allOf") {
        return;
    }
    let additions = additions.as_object().into_iter().flatten();
    for (name, value) in additions.filter(|(name, _)| *name != "description") {
        schema.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// The values of enumerated response fields, from the types that produce them.
fn words() -> Map<String, Value> {
    let statuses = MessageStatus::ALL.map(MessageStatus::as_str);
    let provider_types = ProviderType::ALL.map(ProviderType::as_str);
    let template_types = TemplateType::ALL.map(TemplateType::as_str);
    let words = serde_json::from_value(json!({
        "providerType": provider_types,
        "permissions": Permission::ALL.map(Permission::as_str),
        "eventType": EventType::ALL.map(EventType::as_str),
        "Suppression.source": SuppressionSource::ALL.map(SuppressionSource::as_str),
        "MessageDetail.status": statuses,
        "MessageSummary.status": statuses,
        "RecipientDetail.status": statuses,
        "RecipientDetail.kind": ["TO", "CC", "BCC"],
        "SendAttempt.outcome": ["ACCEPTED", "REJECTED", "THROTTLED", "UNAVAILABLE", "UNKNOWN", "PENDING"],
        "FailedProviderCall.outcome": ["ACCEPTED", "REJECTED", "THROTTLED", "UNAVAILABLE", "UNKNOWN", "PENDING"],
        "BatchResult.status": ["queued", "suppressed"],
        "SendMessageResponse.status": ["queued", "suppressed"],
        "unverifiedDomains": UnverifiedDomains::ALL.map(UnverifiedDomains::as_str),
        "DomainVerification.state": ["verified", "unverified", "unknown"],
        "WebhookEndpoint.events": WebhookEventType::ALL.map(WebhookEventType::as_str),
        "WebhookEndpointWithSecret.events": WebhookEventType::ALL.map(WebhookEventType::as_str),
        "WebhookDelivery.eventType": WebhookEventType::ALL.map(WebhookEventType::as_str),
        "WebhookDelivery.status": DeliveryStatus::ALL.map(DeliveryStatus::as_str),
        "WebhookDeliveryDetail.eventType": WebhookEventType::ALL.map(WebhookEventType::as_str),
        "WebhookDeliveryDetail.status": DeliveryStatus::ALL.map(DeliveryStatus::as_str),
        "ProviderCircuit.state": Circuit::STATES,
        "ProviderCircuit.cause": OpenCause::ALL.map(OpenCause::as_str),
        "ProviderFailure.cause": AccountFailure::CAUSES,
        "Error.code": ERROR_CODES,
        "Error.details.requiredPermission": Permission::EVERY.map(Permission::as_str),
        "HistoryEvent.bounceType": ["hard", "soft", "block"],
        "CancelledMessage.status": statuses,
        "BreakdownQuery.groupBy": GroupBy::ALL.map(GroupBy::as_str),
        "SeriesQuery.granularity": Granularity::ALL.map(Granularity::as_str),
        "AuditActor.type": ["api_key", "user", "recipient", "system"],
        "role": Role::ALL.map(Role::as_str),
        "Session.permissions": Permission::EVERY.map(Permission::as_str),
        "Template.type": template_types,
        "TemplateDetail.type": template_types,
        "TemplateUse.type": template_types,
        "TemplatePart.type": template_types,
    }));
    let mut words: Map<String, Value> = words.expect("the words are an object");
    words.extend(sender_domain_words());
    words.extend(ramp_words());
    words.extend(routing_words());
    words
}

fn ramp_words() -> Map<String, Value> {
    let states: Vec<&str> = RampState::ALL.iter().map(|state| state.as_str()).collect();
    let actions = RampAction::ALL.iter().map(|action| action.as_str());
    let words = serde_json::from_value(json!({
        "TargetResolution.rampState": states,
        "RoutingRampProgress.state": states,
        "RoutingRampStep.action": actions.collect::<Vec<_>>(),
    }));
    words.expect("the words are an object")
}

fn routing_words() -> Map<String, Value> {
    let regions: Vec<_> = AccountRegion::ALL.iter().map(|one| one.as_str()).collect();
    let mailbox_providers = MailboxProvider::ALL.iter();
    let mailbox_providers: Vec<_> = mailbox_providers.map(|one| one.as_str()).collect();
    let classes: Vec<_> = MessageClass::ALL.iter().map(|one| one.as_str()).collect();
    let sticky: Vec<_> = Sticky::ALL.iter().map(|one| one.as_str()).collect();
    let preferences: Vec<_> = Prefer::ALL.iter().map(|one| one.as_str()).collect();
    let over_cap: Vec<_> = OverCap::ALL.iter().map(|one| one.as_str()).collect();
    let words = serde_json::from_value(json!({
        "RoutingRule.tagMatch": ["any", "all"],
        "RoutingRule.recipientMailboxProviders": mailbox_providers,
        "RoutingRule.region": regions,
        "ProviderAccount.region": regions,
        "ConnectedProvider.region": regions,
        "RoutingRule.onUnknown": ["wait", "resend", "fail"],
        "RoutingRule.messageClass": classes,
        "RoutingRule.prefer": preferences,
        "RoutingRule.sticky": sticky,
        "RoutingRule.overCap": over_cap,
    }));
    words.expect("the words are an object")
}

fn sender_domain_words() -> Map<String, Value> {
    let words = serde_json::from_value(json!({
        "SenderDomain.status": SenderDomainStatus::NAMES,
        "SenderDomainSummary.status": SenderDomainStatus::NAMES,
        "SenderDomainSummary.conflicts": ConflictCode::ALL.map(ConflictCode::as_str),
        "SenderDomainAccount.state": ["verified", "unverified", "unknown"],
        "SenderDomainRecord.type": ["TXT", "CNAME", "MX"],
        "SenderDomainRecord.purpose": ["DKIM", "SPF", "RETURN_PATH", "TRACKING", "DMARC", "OWNERSHIP"],
        "SenderDomainRecord.status": ["pending", "verified", "failed"],
        "SenderDomainRecord.foundStatus": FoundStatus::NAMES,
        "SenderDomainSpf.status": SpfStatus::NAMES,
        "SenderDomainDkim.status": FoundStatus::NAMES,
        "SenderDomainDmarc.status": DmarcStatus::NAMES,
        "SenderDomainDmarc.policy": ["none", "quarantine", "reject"],
        "SenderDomainConflict.code": ConflictCode::ALL.map(ConflictCode::as_str),
    }));
    words.expect("the words are an object")
}
