//! The HTTP errors of the domain's refusals.

use chrono::SecondsFormat;
use waypost_core::acceptance::AcceptRefusal;
use waypost_core::acceptance::retry::RetryRefusal;
use waypost_core::attachment::AttachmentRefusal;
use waypost_core::auth::keys::KeyRefusal;
use waypost_core::delivery::change::ChangeRefusal;
use waypost_core::fault::Fault;
use waypost_core::idempotency::single::Failed;
use waypost_core::idempotency::{KeyConflict, Repeat};
use waypost_core::issue::Issue;
use waypost_core::message::content::ContentRefusal;
use waypost_core::provider::domain::DOMAINS_MAX;
use waypost_core::provider_account::AccountRefusal;
use waypost_core::provider_account::domains::DomainRefusal;
use waypost_core::provider_account::event_webhook::EventWebhookRefusal;
use waypost_core::provider_account::suppression_import::ListImportRefusal;
use waypost_core::routing::RouteRefusal;
use waypost_core::routing::pinned::PinnedRefusal;
use waypost_core::routing::rule::{RULES_MAX, RuleRefusal};
use waypost_core::suppression::SuppressionRefusal;
use waypost_core::template::TemplateRefusal;
use waypost_core::template::composition::USES_MAX;
use waypost_core::unsubscribe::GroupRefusal;
use waypost_core::webhook::endpoint::{ENDPOINTS_MAX, EndpointRefusal};

use super::{Failure, Reason};

impl From<AcceptRefusal> for Failure {
    fn from(refusal: AcceptRefusal) -> Self {
        match refusal {
            AcceptRefusal::Route(RouteRefusal::NoActiveProvider) => Self::Unprocessable {
                message: "The organization has no active provider account".to_owned(),
                path: None,
                reason: Reason::NoActiveProvider,
            },
            AcceptRefusal::Route(RouteRefusal::NoneInRegion(region)) => Self::Unprocessable {
                message: format!(
                    "The organization has no active provider account in the region {} of the routing rule that matches",
                    region.as_str()
                ),
                path: None,
                reason: Reason::NoActiveProvider,
            },
            AcceptRefusal::Route(RouteRefusal::DomainNotVerified(provider_type)) => {
                Self::Unprocessable {
                    message: format!(
                        "must have a domain that is verified on the {provider_type} account that routing selects"
                    ),
                    path: Some("from"),
                    reason: Reason::DomainNotVerified,
                }
            }
            AcceptRefusal::Pinned(refusal) => refusal.into(),
            AcceptRefusal::Invalid(issues) => Self::Invalid(issues),
            AcceptRefusal::NotFetched(issues) => {
                Self::UnprocessableFields(Reason::AttachmentNotFetched, issues)
            }
            AcceptRefusal::CannotCarry {
                provider_type,
                reason,
            } => Self::Unprocessable {
                message: format!(
                    "The {provider_type} account that routing selects cannot carry the message: {reason}"
                ),
                path: None,
                reason: Reason::ProviderCannotCarry,
            },
            AcceptRefusal::Template(refusal) => Self::of_send(refusal),
            AcceptRefusal::UnknownGroup => SuppressionRefusal::UnknownGroup.into(),
            AcceptRefusal::Suppressed => Self::suppressed(),
            AcceptRefusal::Before(message) => Self::Unprocessable {
                message,
                path: None,
                reason: Reason::RefusedBefore,
            },
            AcceptRefusal::Key(conflict) => conflict.into(),
            AcceptRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<ContentRefusal> for Failure {
    fn from(refusal: ContentRefusal) -> Self {
        match refusal {
            ContentRefusal::MessageNotFound => Self::NotFound(MESSAGE),
            ContentRefusal::RecipientNotFound => Self::NotFound("recipient"),
            ContentRefusal::AttachmentNotFound => Self::NotFound(ATTACHMENT),
            ContentRefusal::Expired => Self::Gone(
                Reason::MessageContentGone,
                "The content of this message is no longer stored",
            ),
            ContentRefusal::Withheld => Self::Gone(
                Reason::MessageContentWithheld,
                "The content of an invitation is not shown",
            ),
            ContentRefusal::Fault(fault) => fault.into(),
        }
    }
}

impl From<PinnedRefusal> for Failure {
    fn from(refusal: PinnedRefusal) -> Self {
        let (message, reason) = match refusal {
            PinnedRefusal::NotActive(id) => (
                format!("must be the id of an active provider account; {id} is none"),
                Reason::ProviderAccountNotActive,
            ),
            PinnedRefusal::DomainNotVerified(id, provider_type) => (
                format!(
                    "names the {provider_type} account {id}, on which the domain of from is not verified"
                ),
                Reason::DomainNotVerified,
            ),
        };
        Self::Unprocessable {
            message,
            path: Some("providerAccountId"),
            reason,
        }
    }
}

impl From<RetryRefusal> for Failure {
    fn from(refusal: RetryRefusal) -> Self {
        match refusal {
            RetryRefusal::NotFound => Self::NotFound(MESSAGE),
            RetryRefusal::NoneFailed => Self::Conflict(
                Reason::MessageNotFailed,
                "The message has no recipient with the status FAILED",
            ),
            RetryRefusal::BodyGone => Self::Conflict(
                Reason::MessageContentGone,
                "The message's content is no longer stored; send a new message",
            ),
            RetryRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<ChangeRefusal> for Failure {
    fn from(refusal: ChangeRefusal) -> Self {
        match refusal {
            ChangeRefusal::NotFound => Self::NotFound(MESSAGE),
            ChangeRefusal::Sending => Self::Conflict(
                Reason::MessageSending,
                "The message is being sent; its recipients get a status soon",
            ),
            ChangeRefusal::Sent => Self::Conflict(Reason::MessageSent, "The message was sent"),
            ChangeRefusal::Finished => Self::Conflict(
                Reason::MessageFinished,
                "The message has no recipient that waits to be sent to",
            ),
            ChangeRefusal::NotScheduled => {
                Self::Conflict(Reason::MessageNotScheduled, "The message was not scheduled")
            }
            ChangeRefusal::Expires(at) => {
                let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
                let issue = format!("must be before the message's expiresAt, {at}");
                Self::Invalid(vec![Issue::new("scheduledAt", issue)])
            }
            ChangeRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<KeyConflict> for Failure {
    fn from(conflict: KeyConflict) -> Self {
        match conflict {
            KeyConflict::OtherBody => Self::Conflict(
                Reason::IdempotencyKeyReused,
                "The idempotency key was used for another request",
            ),
            KeyConflict::StillRunning => Self::Conflict(
                Reason::IdempotencyInProgress,
                "An earlier request with this idempotency key still runs; try again",
            ),
        }
    }
}

impl From<Repeat> for Failure {
    fn from(repeat: Repeat) -> Self {
        match repeat {
            Repeat::Answered(answer) => Self::Repeated(answer),
            Repeat::Conflict(conflict) => conflict.into(),
            Repeat::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl<R: Into<Self>> From<Failed<R>> for Failure {
    fn from(undone: Failed<R>) -> Self {
        match undone {
            Failed::Repeat(repeat) => repeat.into(),
            Failed::Refused(refusal) => refusal.into(),
        }
    }
}

impl From<AttachmentRefusal> for Failure {
    fn from(refusal: AttachmentRefusal) -> Self {
        match refusal {
            AttachmentRefusal::Invalid(issues) => Self::Invalid(issues),
            AttachmentRefusal::NotFetched(issues) => {
                Self::UnprocessableFields(Reason::AttachmentNotFetched, issues)
            }
            AttachmentRefusal::Busy(full) => Fault::unavailable("fetch attachments", full).into(),
            AttachmentRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// The name of an attachment in error messages.
pub(crate) const ATTACHMENT: &str = "attachment";
/// The name of a message in error messages.
pub(crate) const MESSAGE: &str = "message";
/// The name of a template in error messages.
pub(crate) const TEMPLATE: &str = "template";
/// The name of a template version in error messages.
pub(crate) const VERSION: &str = "template version";
/// The name of a webhook delivery in error messages.
pub(crate) const DELIVERY: &str = "webhook delivery";

impl Failure {
    /// The error of a send whose template is refused. The request is about the message
    /// and not about the template, so the status is never 404.
    fn of_send(refusal: TemplateRefusal) -> Self {
        let about_the_template = |message: &str, reason| Self::Unprocessable {
            message: message.to_owned(),
            path: Some("templateId"),
            reason,
        };
        match refusal {
            TemplateRefusal::NotFound | TemplateRefusal::VersionNotFound => {
                about_the_template("must be the id of a template", Reason::TemplateNotFound)
            }
            TemplateRefusal::WithoutVersion => about_the_template(
                "names a template that has no version",
                Reason::TemplateWithoutVersion,
            ),
            TemplateRefusal::Unrenderable(problem) => about_the_template(
                &format!("names a template that {problem}"),
                Reason::TemplateNotRenderable,
            ),
            TemplateRefusal::IsPart => about_the_template(
                "names a layout or partial, which is not sent itself",
                Reason::TemplateIsPart,
            ),
            TemplateRefusal::Invalid(issues) => Self::Invalid(issues),
            // Of changes to templates.
            refusal @ (TemplateRefusal::UnknownLayout
            | TemplateRefusal::NameTaken
            | TemplateRefusal::InUse
            | TemplateRefusal::TooManyUses
            | TemplateRefusal::NotComposable { .. }
            | TemplateRefusal::Fault(_)) => refusal.into(),
        }
    }
}

impl From<TemplateRefusal> for Failure {
    fn from(refusal: TemplateRefusal) -> Self {
        match refusal {
            TemplateRefusal::NotFound => Self::NotFound(TEMPLATE),
            TemplateRefusal::VersionNotFound => Self::NotFound(VERSION),
            TemplateRefusal::WithoutVersion => Self::Unprocessable {
                message: "The template has no version".to_owned(),
                path: None,
                reason: Reason::TemplateWithoutVersion,
            },
            TemplateRefusal::Unrenderable(problem) => Self::Unprocessable {
                message: format!("The template {problem}"),
                path: None,
                reason: Reason::TemplateNotRenderable,
            },
            TemplateRefusal::IsPart => Self::Unprocessable {
                message: "The template is a layout or partial, which is not rendered itself"
                    .to_owned(),
                path: None,
                reason: Reason::TemplateIsPart,
            },
            TemplateRefusal::UnknownLayout => Self::Unprocessable {
                message: "must be the id of a layout that has a version".to_owned(),
                path: Some("layoutId"),
                reason: Reason::UnknownId,
            },
            TemplateRefusal::NameTaken => {
                Self::Conflict(Reason::PartialExists, "A partial of this name exists")
            }
            TemplateRefusal::InUse => Self::Conflict(
                Reason::TemplateInUse,
                "Current versions of templates use this layout or partial",
            ),
            TemplateRefusal::TooManyUses => Self::Unprocessable {
                message: format!(
                    "More than {USES_MAX} current versions use this layout or partial, which is the most that are composed at once"
                ),
                path: None,
                reason: Reason::TooManyTemplateUses,
            },
            TemplateRefusal::NotComposable {
                template_id,
                name,
                problem,
            } => Self::Unprocessable {
                message: format!(
                    "The template {name} ({template_id}) cannot be composed with its layout and partials: {problem}"
                ),
                path: None,
                reason: Reason::TemplateNotComposable,
            },
            TemplateRefusal::Invalid(issues) => Self::Invalid(issues),
            TemplateRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<AccountRefusal> for Failure {
    fn from(refusal: AccountRefusal) -> Self {
        match refusal {
            AccountRefusal::NotFound => Self::NotFound("provider account"),
            AccountRefusal::InvalidCredentials {
                provider_type,
                reason,
            } => Self::InvalidCredentials {
                provider_type,
                reason,
            },
            AccountRefusal::Undecided {
                provider_type,
                reason,
            } => Self::ProviderUnavailable {
                provider_type,
                reason,
            },
            AccountRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<ListImportRefusal> for Failure {
    fn from(refusal: ListImportRefusal) -> Self {
        match refusal {
            ListImportRefusal::NotFound => Self::NotFound("provider account"),
            ListImportRefusal::NotOffered(provider_type) => Self::Unprocessable {
                message: format!("{provider_type} has no suppression lists that can be read"),
                path: None,
                reason: Reason::SuppressionListsNotOffered,
            },
            ListImportRefusal::NoSuchPage => Self::Invalid(vec![Issue::new(
                "cursor",
                "must be the nextCursor of an earlier import from this account",
            )]),
            ListImportRefusal::Refused {
                provider_type,
                reason,
            } => Self::Unprocessable {
                message: format!("{provider_type} refused the request: {reason}"),
                path: None,
                reason: Reason::ProviderRefused,
            },
            ListImportRefusal::Undecided {
                provider_type,
                reason,
            } => Self::ProviderUnavailable {
                provider_type,
                reason,
            },
            ListImportRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<DomainRefusal> for Failure {
    fn from(refusal: DomainRefusal) -> Self {
        match refusal {
            DomainRefusal::AccountNotFound => Self::NotFound("provider account"),
            DomainRefusal::NotFound => Self::NotFound("domain"),
            DomainRefusal::Present => {
                Self::Conflict(Reason::DomainExists, "The account already has this domain")
            }
            DomainRefusal::Busy => Self::Conflict(
                Reason::DomainBusy,
                "Another request is changing this domain; try again",
            ),
            DomainRefusal::TooMany => Self::Unprocessable {
                message: format!("The account has {DOMAINS_MAX} domains, which is the maximum"),
                path: None,
                reason: Reason::TooManyDomains,
            },
            DomainRefusal::Refused {
                provider_type,
                reason,
            } => Self::Unprocessable {
                message: format!("{provider_type} refused the request: {reason}"),
                path: None,
                reason: Reason::ProviderRefused,
            },
            DomainRefusal::Undecided {
                provider_type,
                reason,
            } => Self::ProviderUnavailable {
                provider_type,
                reason,
            },
            DomainRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<EventWebhookRefusal> for Failure {
    fn from(refusal: EventWebhookRefusal) -> Self {
        match refusal {
            EventWebhookRefusal::NotFound => Self::NotFound("provider account"),
            EventWebhookRefusal::Busy => Self::Conflict(
                Reason::EventWebhookBusy,
                "Another request is registering the event webhook; try again",
            ),
            EventWebhookRefusal::Refused {
                provider_type,
                reason,
                steps,
            } => Self::Unprocessable {
                message: [
                    &[format!("{provider_type} refused the request: {reason}.")],
                    &steps[..],
                ]
                .concat()
                .join(" "),
                path: None,
                reason: Reason::ProviderRefused,
            },
            EventWebhookRefusal::Undecided {
                provider_type,
                reason,
            } => Self::ProviderUnavailable {
                provider_type,
                reason,
            },
            EventWebhookRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<KeyRefusal> for Failure {
    fn from(refusal: KeyRefusal) -> Self {
        match refusal {
            KeyRefusal::NotFound => Self::NotFound("API key"),
            KeyRefusal::Lacks(permission) => Self::Forbidden(permission),
            KeyRefusal::Ended => {
                Self::Conflict(Reason::ApiKeyEnded, "The API key is revoked or expired")
            }
            KeyRefusal::ByTestKey => Self::Conflict(
                Reason::TestKey,
                "A test key creates, changes, rotates and revokes only test keys",
            ),
            KeyRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<GroupRefusal> for Failure {
    fn from(refusal: GroupRefusal) -> Self {
        match refusal {
            GroupRefusal::NotFound => Self::NotFound("unsubscribe group"),
            GroupRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<RuleRefusal> for Failure {
    fn from(refusal: RuleRefusal) -> Self {
        Self::of_rule(refusal, "")
    }
}

impl Failure {
    /// The refusal of a rule that is at a path of the request.
    pub(crate) fn of_rule(refusal: RuleRefusal, path: &str) -> Self {
        match refusal {
            RuleRefusal::NotFound => Self::NotFound("routing rule"),
            RuleRefusal::UnknownAccounts {
                main,
                targets,
                fallbacks,
            } => {
                let message = "must be the id of a provider account";
                let issues = issues_of_accounts(message, main, &targets, &fallbacks);
                let issues = issues.into_iter().map(|issue| issue.under(path));
                Self::UnprocessableFields(Reason::UnknownId, issues.collect())
            }
            RuleRefusal::OutsideRegion {
                region,
                main,
                targets,
                fallbacks,
            } => {
                let message = format!("must be an account in the region {}", region.as_str());
                let issues = issues_of_accounts(&message, main, &targets, &fallbacks);
                let issues = issues.into_iter().map(|issue| issue.under(path));
                Self::UnprocessableFields(Reason::AccountOutsideRegion, issues.collect())
            }
            RuleRefusal::NoSizes => {
                let message = "must not be less than minSizeBytes";
                Self::Invalid(vec![Issue::new("maxSizeBytes", message).under(path)])
            }
            RuleRefusal::TooMany => Self::Unprocessable {
                message: format!("An organization can have at most {RULES_MAX} routing rules"),
                path: None,
                reason: Reason::TooManyRoutingRules,
            },
            RuleRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// Issues with accounts that a routing rule names: its own, targets and fallbacks, by index.
fn issues_of_accounts(
    message: &str,
    main: bool,
    targets: &[usize],
    fallbacks: &[usize],
) -> Vec<Issue> {
    let main = main.then(|| "providerAccountId".to_owned());
    let targets = targets.iter();
    let targets = targets.map(|index| format!("targets.{index}.providerAccountId"));
    let fallbacks = fallbacks.iter();
    let fallbacks = fallbacks.map(|index| format!("fallbackProviderAccountIds.{index}"));
    let paths = main.into_iter().chain(targets).chain(fallbacks);
    paths.map(|path| Issue::new(path, message)).collect()
}

impl From<SuppressionRefusal> for Failure {
    fn from(refusal: SuppressionRefusal) -> Self {
        match refusal {
            SuppressionRefusal::NotFound => Self::NotFound("suppression"),
            SuppressionRefusal::Exists => Self::Conflict(
                Reason::SuppressionExists,
                "The address is already suppressed in this group, or for all messages if no group is given",
            ),
            SuppressionRefusal::UnknownGroup => Self::Unprocessable {
                message: "must be the id of an unsubscribe group of the organization".to_owned(),
                path: Some("unsubscribeGroupId"),
                reason: Reason::UnknownUnsubscribeGroup,
            },
            SuppressionRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<EndpointRefusal> for Failure {
    fn from(refusal: EndpointRefusal) -> Self {
        let about_the_url = |message: String, reason| Self::Unprocessable {
            message,
            path: Some("url"),
            reason,
        };
        match refusal {
            EndpointRefusal::NotFound => Self::NotFound("webhook endpoint"),
            EndpointRefusal::DeliveryNotFound => Self::NotFound(DELIVERY),
            EndpointRefusal::TooMany => Self::Unprocessable {
                message: format!(
                    "An organization can have at most {ENDPOINTS_MAX} webhook endpoints"
                ),
                path: None,
                reason: Reason::TooManyWebhookEndpoints,
            },
            EndpointRefusal::Unreachable { reason } => about_the_url(
                format!("must be the URL of a server that responds: {reason}"),
                Reason::UrlUnreachable,
            ),
            EndpointRefusal::AddressNotPublic => about_the_url(
                "must have a host with a public address".to_owned(),
                Reason::AddressNotPublic,
            ),
            EndpointRefusal::Inactive => Self::Conflict(
                Reason::WebhookEndpointInactive,
                "The webhook endpoint is not active",
            ),
            EndpointRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}
