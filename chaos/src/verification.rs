//! The verification: compares the accepted messages with what the simulator and the
//! webhook receivers have. The service's tables only explain why a recipient was sent to
//! again, or not at all.

use std::collections::HashMap;
use std::fmt;

use chrono::DateTime;
use waypost_simulator::{Captured, Provider, Simulator};

use crate::load::{Accepted, FILE_NAME};
use crate::plan::{Content, Kind, Policy, Recipient};
use crate::records::FinalState;
use crate::tenants::Tenant;

/// The counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    pub(crate) accepted: usize,
    /// Recipients that the simulator has accepted.
    pub(crate) delivered: usize,
    /// Repeated sends that an attempt with an unknown outcome explains.
    pub(crate) explained: usize,
    /// Sends that the simulator has accepted, repeated ones included.
    pub(crate) sends: u64,
    /// Not delivered: cancelled.
    pub(crate) cancelled: usize,
    /// Not delivered: a provider rejected a recipient as planned.
    pub(crate) rejected: usize,
    /// Not delivered: a response was lost, and the rule says `fail`.
    pub(crate) failed_by_policy: usize,
    /// Not delivered: two responses were lost, after which the rule gives up.
    pub(crate) lost_twice: usize,
    /// Missing events that SNS gave up delivering.
    pub(crate) given_up_by_sns: usize,
    /// The violations.
    pub(crate) violations: Vec<Violation>,
}

/// The kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    Lost,
    /// This many sends too many.
    Duplicated(usize),
    /// The receiver did not get a webhook for this event.
    WebhookMissing(&'static str),
    /// A message to a suppressed recipient.
    SentThoughSuppressed,
    /// A message whose cancellation succeeded.
    SentThoughCancelled,
    /// The provider got other attachments than the message has.
    OtherFiles,
    /// A scheduled message before its time.
    SentEarly,
    /// The API reported another number of cancelled recipients.
    CancelledOthers,
}

/// A violation, and its recipient.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) kind: ViolationKind,
    pub(crate) organization: usize,
    pub(crate) message_id: String,
    pub(crate) position: usize,
    pub(crate) address: String,
    pub(crate) policy: Policy,
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("lost"),
            Self::Duplicated(sends) => write!(f, "{sends} unexplained repeats"),
            Self::WebhookMissing(event) => write!(f, "no webhook {event}"),
            Self::SentThoughSuppressed => f.write_str("sent though suppressed"),
            Self::SentThoughCancelled => f.write_str("sent though cancelled"),
            Self::OtherFiles => f.write_str("sent with other attachments"),
            Self::SentEarly => f.write_str("sent before its time"),
            Self::CancelledOthers => f.write_str("another number of recipients was cancelled"),
        }
    }
}

/// The sources of the verification.
pub(crate) struct Verifier<'a> {
    pub(crate) simulator: &'a Simulator,
    pub(crate) tenants: &'a [Tenant],
    pub(crate) final_states: &'a HashMap<(String, usize), FinalState>,
}

/// A recipient of an accepted message.
struct Check<'a> {
    accepted: &'a Accepted,
    position: usize,
    recipient: &'a Recipient,
    sends: Vec<Captured>,
    final_state: Option<&'a FinalState>,
    policy: Policy,
}

impl Verification {
    pub(crate) fn lost(&self) -> usize {
        self.count(|kind| usize::from(kind == ViolationKind::Lost))
    }

    /// Sends too many, including those to suppressed recipients.
    pub(crate) fn duplicated(&self) -> usize {
        self.count(|kind| match kind {
            ViolationKind::Duplicated(sends) => sends,
            ViolationKind::SentThoughSuppressed | ViolationKind::SentThoughCancelled => 1,
            ViolationKind::Lost
            | ViolationKind::WebhookMissing(_)
            | ViolationKind::OtherFiles
            | ViolationKind::SentEarly
            | ViolationKind::CancelledOthers => 0,
        })
    }

    pub(crate) fn webhooks_missing(&self) -> usize {
        self.count(|kind| usize::from(matches!(kind, ViolationKind::WebhookMissing(_))))
    }

    fn count(&self, weight: impl Fn(ViolationKind) -> usize) -> usize {
        self.violations.iter().map(|one| weight(one.kind)).sum()
    }
}

impl Verifier<'_> {
    pub(crate) fn count(&self, accepted: &[Accepted]) -> Verification {
        let mut verification = Verification::default();
        for one in accepted {
            let mut cancelled = 0;
            for (position, recipient) in one.message.recipients.iter().enumerate() {
                let check = Check {
                    accepted: one,
                    position,
                    recipient,
                    sends: self.simulator.captured_to(&recipient.address),
                    final_state: self.final_states.get(&(one.message_id.clone(), position)),
                    policy: self.tenants[one.organization].policies[one.message.rule],
                };
                verification.sends += check.sends.len() as u64;
                self.verify(&check, &mut verification);
                cancelled += usize::from(check.is_cancelled());
                let is_last = position + 1 == one.message.recipients.len();
                if is_last && cancelled != one.cancelled {
                    let violation = check.violation(ViolationKind::CancelledOthers);
                    verification.violations.push(violation);
                }
            }
        }
        self.allow_sns_to_give_up(&mut verification);
        verification
    }

    fn verify(&self, check: &Check<'_>, verification: &mut Verification) {
        if check.recipient.kind == Kind::Suppressed {
            if !check.sends.is_empty() {
                verification
                    .violations
                    .push(check.violation(ViolationKind::SentThoughSuppressed));
            }
            return self.require(check, &["DROPPED"], verification);
        }
        verification.accepted += 1;
        if check.is_sent_early() {
            let violation = check.violation(ViolationKind::SentEarly);
            verification.violations.push(violation);
        }
        if check.has_other_files() {
            let violation = check.violation(ViolationKind::OtherFiles);
            verification.violations.push(violation);
        }
        if check.is_cancelled() {
            verification.cancelled += 1;
            if !check.sends.is_empty() {
                let violation = check.violation(ViolationKind::SentThoughCancelled);
                verification.violations.push(violation);
            }
            return self.require(check, &["QUEUED", "DROPPED"], verification);
        }
        let repeats = check.sends.len().saturating_sub(1);
        let explained = repeats.min(check.allowed_repeats());
        verification.explained += explained;
        if repeats > explained {
            let kind = ViolationKind::Duplicated(repeats - explained);
            verification.violations.push(check.violation(kind));
        }
        if !check.sends.is_empty() {
            verification.delivered += 1;
        } else if check.has_failed() && check.recipient.kind.may_be_refused() {
            verification.rejected += 1;
        } else if check.has_failed() && check.unknowns() > 0 && check.policy == Policy::Fail {
            verification.failed_by_policy += 1;
        } else if check.has_failed() && check.unknowns() > 1 && check.policy == Policy::Wait {
            verification.lost_twice += 1;
        } else {
            verification
                .violations
                .push(check.violation(ViolationKind::Lost));
        }
        self.require(check, &["QUEUED", check.sent_or_dropped()], verification);
        // An SMTP server reports no events.
        if check
            .sends
            .iter()
            .any(|send| send.provider != Provider::Smtp)
        {
            self.require(check, check.recipient.kind.provider_events(), verification);
        }
    }

    fn require(&self, check: &Check<'_>, events: &[&'static str], verification: &mut Verification) {
        let receiver = &self.tenants[check.accepted.organization].receiver;
        let (id, address) = (&check.accepted.message_id, &check.recipient.address);
        let missing = events
            .iter()
            .filter(|event| !receiver.has_received(id, address, event));
        let violations = missing.map(|event| check.violation(ViolationKind::WebhookMissing(event)));
        verification.violations.extend(violations);
    }

    /// SNS tries three times to deliver an event and then gives up. So events that only
    /// SES could have reported may be missing, but not more than the simulator gave up.
    fn allow_sns_to_give_up(&self, verification: &mut Verification) {
        let mut given_up = self.simulator.callbacks().given_up as usize;
        verification.violations.retain(|one| {
            let is_provider_event =
                matches!(one.kind, ViolationKind::WebhookMissing(event) if !["QUEUED", "SENT", "DROPPED"].contains(&event));
            let sends = self.simulator.captured_to(&one.address);
            let is_only_ses = sends.iter().all(|send| {
                send.provider == Provider::Ses || send.provider == Provider::Smtp
            });
            let is_allowed = is_provider_event && is_only_ses && given_up > 0;
            given_up -= usize::from(is_allowed);
            verification.given_up_by_sns += usize::from(is_allowed);
            !is_allowed
        });
    }
}

impl Check<'_> {
    fn violation(&self, kind: ViolationKind) -> Violation {
        Violation {
            kind,
            organization: self.accepted.organization,
            message_id: self.accepted.message_id.clone(),
            position: self.position,
            address: self.recipient.address.clone(),
            policy: self.policy,
        }
    }

    fn unknowns(&self) -> usize {
        let unknowns = self
            .final_state
            .map_or(0, |final_state| final_state.unknowns);
        usize::try_from(unknowns).unwrap_or_default()
    }

    /// Repeats that are allowed: one for each unknown outcome, if the policy resends.
    fn allowed_repeats(&self) -> usize {
        match self.policy {
            Policy::Wait | Policy::Resend => self.unknowns(),
            Policy::Fail => 0,
        }
    }

    /// Whether the API said that it is cancelled; of a message to several, the tables say to
    /// which of them that applies.
    fn is_cancelled(&self) -> bool {
        if self.accepted.message.recipients.len() == 1 {
            return self.accepted.cancelled > 0;
        }
        self.final_state.is_some_and(|state| state.is_cancelled)
    }

    fn is_sent_early(&self) -> bool {
        let accepted_at = |send: &Captured| DateTime::parse_from_rfc3339(&send.accepted_at).ok();
        self.accepted.scheduled_at.is_some_and(|due| {
            let mut times = self.sends.iter().map(accepted_at);
            times.any(|time| time.is_none_or(|time| time < due))
        })
    }

    fn has_other_files(&self) -> bool {
        let expected: &[&str] = match self.accepted.message.content {
            Content::Text | Content::Template => &[],
            Content::File => &[FILE_NAME],
        };
        // The simulator takes a mail over SMTP apart only if it keeps bodies.
        let mut sends = self
            .sends
            .iter()
            .filter(|send| send.provider != Provider::Smtp);
        sends.any(|send| {
            let files = send.attachments.iter().map(|file| file.filename.as_str());
            !files.eq(expected.iter().copied())
        })
    }

    fn has_failed(&self) -> bool {
        self.final_state
            .is_some_and(|final_state| final_state.status == "FAILED")
    }

    /// The event that ends the send: a failed recipient was dropped, even if a provider
    /// accepted the message and its response was lost.
    fn sent_or_dropped(&self) -> &'static str {
        if self.has_failed() { "DROPPED" } else { "SENT" }
    }
}
