//! The named enumerations of the document. Wherever a schema lists the values of one of
//! them, it becomes a reference to the enumeration. They are open: a later version may add
//! values, and clients must accept values that they do not know.

use serde_json::{Map, Value, json};
use waypost_core::acceptance::draft::DeliveryMode;
use waypost_core::account_limiter::circuits::{Circuit, OpenCause};
use waypost_core::auth::{Permission, Role};
use waypost_core::event::EventType;
use waypost_core::message::SimulatedOutcome;
use waypost_core::message::status::MessageStatus;
use waypost_core::metrics::{Granularity, GroupBy};
use waypost_core::organization::UnverifiedDomains;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::region::AccountRegion;
use waypost_core::provider_account::health::AccountFailure;
use waypost_core::provider_account::health::domains::HealthWindow;
use waypost_core::routing::conditions::MessageClass;
use waypost_core::routing::mailbox_provider::MailboxProvider;
use waypost_core::routing::ramp::RampState;
use waypost_core::routing::ramp::steps::RampAction;
use waypost_core::routing::rule::{OnUnknown, TagMatch};
use waypost_core::routing::simulation::SimulationPeriod;
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

use super::component;
use crate::public::language::Language;

/// The values of `code` in an error.
pub(super) const ERROR_CODES: [&str; 12] = [
    "VALIDATION_ERROR",
    "AUTHENTICATION_ERROR",
    "FORBIDDEN",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
    "CONFLICT",
    "PAYLOAD_TOO_LARGE",
    "UNSUPPORTED_MEDIA_TYPE",
    "PROVIDER_INVALID_CREDENTIALS",
    "RATE_LIMIT_EXCEEDED",
    "SERVICE_UNAVAILABLE",
    "INTERNAL_ERROR",
];

/// A set of values that has a name.
struct Enumeration {
    name: &'static str,
    description: &'static str,
    values: Vec<&'static str>,
}

macro_rules! enumerations {
    ($($name:ident: $values:expr, $description:literal;)+) => {
        vec![$(Enumeration {
            name: stringify!($name),
            description: $description,
            values: $values.to_vec(),
        }),+]
    };
}

fn enumerations() -> Vec<Enumeration> {
    enumerations! {
        AccountRegion: AccountRegion::ALL.iter().map(|region| region.as_str()).collect::<Vec<_>>(), "Where the system of a provider is that takes the mail of an account.";
        AuditActorType: ["api_key", "user", "recipient", "system"], "Who made a change: a client with an API key, a user, a recipient by a link in a message, or Waypost itself.";
        BounceType: ["hard", "soft", "block"], "Why an address did not get a message: it does not exist, it could not be delivered to for now, or the receiving server blocked the message.";
        DeliveryMode: DeliveryMode::ALL.map(DeliveryMode::as_str), "Whether each recipient gets a mail of their own (`private`), or all get one mail and see each other (`shared`).";
        DmarcPolicy: ["none", "quarantine", "reject"], "What receivers do with mail that does not pass DMARC.";
        DmarcStatus: DmarcStatus::NAMES, "Whether receivers accept the DMARC record of a domain.";
        DnsFoundStatus: FoundStatus::NAMES, "Whether DNS has a record: it does (`match`), has another there (`mismatch`), or none (`missing`); `unknown` if DNS was not or could not be asked.";
        DnsRecordPurpose: ["DKIM", "SPF", "RETURN_PATH", "TRACKING", "DMARC", "OWNERSHIP"], "What a DNS record is for.";
        DnsRecordStatus: ["pending", "verified", "failed"], "Whether the provider found the DNS record.";
        DnsRecordType: ["TXT", "CNAME", "MX"], "The type of a DNS record.";
        DomainEventSource: ["provider", "dns"], "Who judged a domain: the provider, or Waypost by its own look-ups in DNS.";
        DomainState: ["verified", "unverified", "unknown"], "Whether the provider verified the domain; `unknown` if the credentials do not show it.";
        ErrorCode: ERROR_CODES, "The kind of an error, for programs.";
        EventType: EventType::ALL.map(EventType::as_str), "What happened to a message.";
        PageLanguage: Language::ALL.map(Language::as_str), "A language of the pages for recipients.";
        MailboxProvider: MailboxProvider::ALL.iter().map(|provider| provider.as_str()).collect::<Vec<_>>(), "Who takes the mail of a domain: `google` for Gmail and Google Workspace, `microsoft` for Outlook.com and Microsoft 365, `yahoo` for Yahoo Mail and AOL Mail, or any `other`.";
        MessageClass: MessageClass::ALL.iter().map(|class| class.as_str()).collect::<Vec<_>>(), "What kind of mail a message is.";
        MessageStatus: MessageStatus::ALL.map(MessageStatus::as_str), "How far a message, or its copy to one recipient, is.";
        MetricsGranularity: Granularity::ALL.map(Granularity::as_str), "The length of the buckets of a series.";
        MetricsGroupBy: GroupBy::ALL.map(GroupBy::as_str), "By what the counts are grouped.";
        OnUnknown: OnUnknown::ALL.iter().map(|policy| policy.as_str()).collect::<Vec<_>>(), "What is done with a message if the provider's answer was lost, so that nobody knows whether it was accepted.";
        Permission: Permission::ALL.map(Permission::as_str), "What an API key may do.";
        CallerPermission: Permission::EVERY.map(Permission::as_str), "What an API key or a session may do. Only a session of an operator has `OPERATOR`.";
        ProviderCircuitCause: OpenCause::ALL.map(OpenCause::as_str), "`CALLS_FAILED`: too many calls failed. `PROVIDER_PAUSE`: the provider named a time for which it wants no calls. `ACCOUNT_UNUSABLE`: the provider refuses all mail of the account.";
        ProviderCircuitState: Circuit::STATES, "Whether calls to a provider account are made.";
        ProviderFailureCause: AccountFailure::CAUSES, "`ACCOUNT_UNUSABLE`: the provider refuses all mail of the account, which waits. `CALLS_FAILED`: too many calls failed, so that only few are made. `INVALID_CREDENTIALS`: a validation found that the provider refuses the credentials. An account may fail for several causes; each ends by itself.";
        ProviderHealthPeriod: HealthWindow::ALL.map(HealthWindow::as_str), "How far back the health of a provider account is counted: 15 minutes, a day or a week.";
        ProviderType: ProviderType::ALL.map(ProviderType::as_str), "An email provider.";
        RecipientKind: ["TO", "CC", "BCC"], "In which field a message names the recipient.";
        Role: Role::ALL.map(Role::as_str), "What a member of an organization may do. `OWNER`: everything. `ADMIN`: everything but the members. `DEVELOPER`: `SEND`, `TEMPLATES_READ`, `TEMPLATES_WRITE`, `METRICS_READ`, `PROVIDERS_READ` and `CONTENT_READ`. `VIEWER`: `METRICS_READ`, `TEMPLATES_READ` and `PROVIDERS_READ`.";
        SendAttemptOutcome: ["ACCEPTED", "REJECTED", "THROTTLED", "UNAVAILABLE", "UNKNOWN", "PENDING"], "How a call to a provider ended; `PENDING` while it has not, `UNKNOWN` if its answer was lost.";
        SenderDomainConflictCode: ConflictCode::ALL.map(ConflictCode::as_str), "What is wrong with a sender domain as a whole.";
        SenderDomainStatus: SenderDomainStatus::NAMES, "What DNS has of the records of a sender domain.";
        SendStatus: ["queued", "suppressed"], "Whether a message is queued, or not sent because all its recipients are suppressed.";
        SpfStatus: SpfStatus::NAMES, "Whether receivers accept the SPF record of a domain.";
        SuppressionSource: SuppressionSource::ALL.map(SuppressionSource::as_str), "Why an address is suppressed.";
        RoutingStickiness: Sticky::ALL.iter().map(|sticky| sticky.as_str()).collect::<Vec<_>>(), "Which messages of a routing rule always have the same target: none, those to one domain, or those from one sender.";
        RoutingPreference: Prefer::ALL.iter().map(|prefer| prefer.as_str()).collect::<Vec<_>>(), "Whether the targets of a routing rule share its messages by their weights alone, or also by their health.";
        RoutingOverCap: OverCap::ALL.iter().map(|over_cap| over_cap.as_str()).collect::<Vec<_>>(), "What becomes of a message whose target has reached its cap: the `next` target or fallback sends it, or it waits (`wait`).";
        RoutingSimulationPeriod: SimulationPeriod::ALL.iter().map(|period| period.as_str()).collect::<Vec<_>>(), "How far back a simulation looks at messages: an hour, a day or a week.";
        RoutingRampState: RampState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>(), "How far the ramp of a target is: its first day is to come; it grows; it is held because a rate is beyond its bound; or it has reached the cap of the target.";
        RoutingRampAction: RampAction::ALL.iter().map(|action| action.as_str()).collect::<Vec<_>>(), "What happened to the ramp of a target.";
        TagMatch: TagMatch::ALL.iter().map(|rule| rule.as_str()).collect::<Vec<_>>(), "Whether a message needs any of a rule's tags, or all of them.";
        TemplateType: TemplateType::ALL.map(TemplateType::as_str), "A `TEMPLATE` makes messages; a `LAYOUT` or a `PARTIAL` is a part of templates.";
        TestOutcome: SimulatedOutcome::ALL.map(SimulatedOutcome::as_str), "What happens to a test message.";
        UnverifiedDomains: UnverifiedDomains::ALL.map(UnverifiedDomains::as_str), "What is done with a message whose sender has a domain that no provider account has verified.";
        WebhookDeliveryStatus: DeliveryStatus::ALL.map(DeliveryStatus::as_str), "How far the delivery of an event to an endpoint is.";
        WebhookDisabledReason: ["GONE", "FAILING"], "`GONE`: the endpoint answered 410. `FAILING`: all calls failed for five days.";
        WebhookEventType: WebhookEventType::ALL.map(WebhookEventType::as_str), "What a webhook reports.";
    }
}

/// Replaces listed values by references to the enumerations, and adds those that are used.
pub(super) fn complete(document: &mut Value) {
    let enumerations = enumerations();
    let mut used = Map::new();
    for part in ["paths", "components", "x-webhooks"] {
        refer(&mut document[part], &enumerations, &mut used);
    }
    let schemas = document["components"]["schemas"].as_object_mut();
    schemas.expect("there are schemas").extend(used);
}

fn refer(value: &mut Value, enumerations: &[Enumeration], used: &mut Map<String, Value>) {
    if let Some(enumeration) = find(value, enumerations) {
        let name = enumeration.name;
        component::refer(value, name);
        used.entry(name).or_insert_with(|| {
            json!({
                "type": "string",
                "description": enumeration.description,
                "enum": enumeration.values,
                "x-ms-enum": { "name": name, "modelAsString": true },
                "example": enumeration.values[0],
            })
        });
        return;
    }
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| !["example", "examples"].contains(&name.as_str()))
            .for_each(|(_, field)| refer(field, enumerations, used)),
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| refer(item, enumerations, used));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The enumeration that has the values of a schema.
fn find<'a>(schema: &Value, enumerations: &'a [Enumeration]) -> Option<&'a Enumeration> {
    let listed = schema.get("enum")?.as_array()?;
    let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    enumerations.iter().find(|one| one.values == listed)
}
