//! The count: what was accepted, held against what the simulator and the receivers have.
//! Our own tables only explain: why a copy was sent again, why one was not sent at all.

use std::collections::HashMap;
use std::fmt;

use waypost_simulator::{Captured, Provider, Simulator};

use crate::load::Accepted;
use crate::plan::{Kind, Policy, Recipient};
use crate::records::Ending;
use crate::tenants::Tenant;

/// What a run came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) accepted: usize,
    /// Recipients of which the simulator has a copy.
    pub(crate) delivered: usize,
    /// Copies beyond the first that an attempt without an answer explains.
    pub(crate) explained: usize,
    /// Copies that the simulator has for those who were accepted.
    pub(crate) copies: u64,
    /// Not delivered: a provider refused a recipient whom it is to refuse.
    pub(crate) refused: usize,
    /// Not delivered: an answer was lost, and the rule says `fail`.
    pub(crate) failed_by_policy: usize,
    /// Not delivered: two answers were lost, which ends it by the rule.
    pub(crate) lost_twice: usize,
    /// Events that Amazon gave up telling, of those that are missing.
    pub(crate) untold: usize,
    /// What must not be, by what it is.
    pub(crate) wrong: Vec<Offence>,
}

/// What is wrong with a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Lost,
    /// So many copies too many.
    Duplicated(usize),
    /// An event that its receiver was not told of.
    NotTold(&'static str),
    /// A copy for someone who was suppressed.
    SentThoughSuppressed,
}

/// Something wrong, and where.
#[derive(Debug, Clone)]
pub(crate) struct Offence {
    pub(crate) wrong: Wrong,
    pub(crate) organization: usize,
    pub(crate) message_id: String,
    pub(crate) position: usize,
    pub(crate) address: String,
    pub(crate) policy: Policy,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("lost"),
            Self::Duplicated(copies) => write!(f, "{copies} unexplained copies"),
            Self::NotTold(event) => write!(f, "no webhook {event}"),
            Self::SentThoughSuppressed => f.write_str("sent though suppressed"),
        }
    }
}

/// What is counted.
pub(crate) struct Books<'a> {
    pub(crate) simulator: &'a Simulator,
    pub(crate) tenants: &'a [Tenant],
    pub(crate) endings: &'a HashMap<(String, usize), Ending>,
}

/// A recipient of an accepted message.
struct Case<'a> {
    accepted: &'a Accepted,
    position: usize,
    recipient: &'a Recipient,
    copies: Vec<Captured>,
    ending: Option<&'a Ending>,
    policy: Policy,
}

impl Tally {
    pub(crate) fn lost(&self) -> usize {
        self.count(|wrong| usize::from(wrong == Wrong::Lost))
    }

    /// Copies too many, those for the suppressed included.
    pub(crate) fn duplicated(&self) -> usize {
        self.count(|wrong| match wrong {
            Wrong::Duplicated(copies) => copies,
            Wrong::SentThoughSuppressed => 1,
            Wrong::Lost | Wrong::NotTold(_) => 0,
        })
    }

    pub(crate) fn webhooks_missing(&self) -> usize {
        self.count(|wrong| usize::from(matches!(wrong, Wrong::NotTold(_))))
    }

    fn count(&self, weight: impl Fn(Wrong) -> usize) -> usize {
        self.wrong.iter().map(|one| weight(one.wrong)).sum()
    }
}

impl Books<'_> {
    pub(crate) fn count(&self, accepted: &[Accepted]) -> Tally {
        let mut tally = Tally::default();
        for one in accepted {
            for (position, recipient) in one.message.recipients.iter().enumerate() {
                let case = Case {
                    accepted: one,
                    position,
                    recipient,
                    copies: self.simulator.captured_to(&recipient.address),
                    ending: self.endings.get(&(one.message_id.clone(), position)),
                    policy: self.tenants[one.organization].policies[one.message.rule],
                };
                tally.copies += case.copies.len() as u64;
                self.judge(&case, &mut tally);
            }
        }
        self.excuse_amazon(&mut tally);
        tally
    }

    fn judge(&self, case: &Case<'_>, tally: &mut Tally) {
        if case.recipient.kind == Kind::Suppressed {
            if !case.copies.is_empty() {
                tally.wrong.push(case.offence(Wrong::SentThoughSuppressed));
            }
            return self.require(case, &["DROPPED"], tally);
        }
        tally.accepted += 1;
        let further = case.copies.len().saturating_sub(1);
        let explained = further.min(case.resendings());
        tally.explained += explained;
        if further > explained {
            let wrong = Wrong::Duplicated(further - explained);
            tally.wrong.push(case.offence(wrong));
        }
        if !case.copies.is_empty() {
            tally.delivered += 1;
        } else if case.has_failed() && case.recipient.kind.may_be_refused() {
            tally.refused += 1;
        } else if case.has_failed() && case.unknowns() > 0 && case.policy == Policy::Fail {
            tally.failed_by_policy += 1;
        } else if case.has_failed() && case.unknowns() > 1 && case.policy == Policy::Wait {
            tally.lost_twice += 1;
        } else {
            tally.wrong.push(case.offence(Wrong::Lost));
        }
        self.require(case, &["QUEUED", case.sent_or_dropped()], tally);
        // A mail server tells nothing of what it took.
        if case
            .copies
            .iter()
            .any(|copy| copy.provider != Provider::Smtp)
        {
            self.require(case, case.recipient.kind.told(), tally);
        }
    }

    fn require(&self, case: &Case<'_>, events: &[&'static str], tally: &mut Tally) {
        let hooks = &self.tenants[case.accepted.organization].hooks;
        let (id, address) = (&case.accepted.message_id, &case.recipient.address);
        let missing = events
            .iter()
            .filter(|event| !hooks.was_told(id, address, event));
        let wrong = missing.map(|event| case.offence(Wrong::NotTold(event)));
        tally.wrong.extend(wrong);
    }

    /// Amazon tries three times to tell of an event; without a delivery policy of one's
    /// own that is all. As many of the events that went through it alone may be missing
    /// as the simulator gave up, and no more.
    fn excuse_amazon(&self, tally: &mut Tally) {
        let mut given_up = self.simulator.callbacks().given_up as usize;
        tally.wrong.retain(|one| {
            let told_by_provider =
                matches!(one.wrong, Wrong::NotTold(event) if !["QUEUED", "SENT", "DROPPED"].contains(&event));
            let copies = self.simulator.captured_to(&one.address);
            let is_amazons = copies.iter().all(|copy| {
                copy.provider == Provider::Ses || copy.provider == Provider::Smtp
            });
            let is_excused = told_by_provider && is_amazons && given_up > 0;
            given_up -= usize::from(is_excused);
            tally.untold += usize::from(is_excused);
            !is_excused
        });
    }
}

impl Case<'_> {
    fn offence(&self, wrong: Wrong) -> Offence {
        Offence {
            wrong,
            organization: self.accepted.organization,
            message_id: self.accepted.message_id.clone(),
            position: self.position,
            address: self.recipient.address.clone(),
            policy: self.policy,
        }
    }

    fn unknowns(&self) -> usize {
        let unknowns = self.ending.map_or(0, |ending| ending.unknowns);
        usize::try_from(unknowns).unwrap_or_default()
    }

    /// Copies beyond the first that may be: one for each lost answer, where the policy
    /// sends again.
    fn resendings(&self) -> usize {
        match self.policy {
            Policy::Wait | Policy::Resend => self.unknowns(),
            Policy::Fail => 0,
        }
    }

    fn has_failed(&self) -> bool {
        self.ending.is_some_and(|ending| ending.status == "FAILED")
    }

    /// The event that ends the service's part: a recipient that failed for a reason was
    /// dropped, whatever the provider did with the copy whose answer was lost.
    fn sent_or_dropped(&self) -> &'static str {
        if self.has_failed() { "DROPPED" } else { "SENT" }
    }
}
