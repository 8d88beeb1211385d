//! What is sent in a run, decided before it begins: which messages, in which requests,
//! when, to whom. Every address occurs once, so that copies can be counted.

use std::time::Duration;

use clap::ValueEnum;
use waypost_core::provider::kind::ProviderType;

use crate::random::Random;

/// Organizations that send.
pub(crate) const ORGANIZATIONS: usize = 3;

/// The accounts of each organization, and with them its rules: each rule prefers one
/// account and falls back to the two that follow.
pub(crate) const PROVIDERS: [ProviderType; 5] = [
    ProviderType::Sendgrid,
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Ses,
    ProviderType::Smtp,
];

/// Messages in one batch.
const BATCH_MAX: usize = 20;
/// Of the requests that are no batch, those to many.
const MANY_SHARE: f64 = 0.04;
/// Recipients of a message to many; a few have three chunks of them (a chunk is 100).
const MANY_MAX: usize = 30;
const VERY_MANY: usize = 230;
/// Of the messages to one recipient, those to a magic one.
const MAGIC_SHARE: f64 = 0.15;

/// Of the requests, those that come in bursts; the others come evenly.
const BURST_SHARE: f64 = 0.5;
const BURST_EVERY: Duration = Duration::from_secs(4);

/// What a rule says of a provider's lost answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    Wait,
    Resend,
    Fail,
}

impl Policy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Resend => "resend",
            Self::Fail => "fail",
        }
    }
}

/// What the simulator does with an address, by its local part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ordinary,
    /// Suppressed before the run: it must not be sent to.
    Suppressed,
    Flaky,
    ThrottleOnce,
    TimeoutOnce,
    Reset,
    Refuse,
    HardBounce,
    Block,
    Complaint,
    Open,
    Defer,
}

const MAGIC: [Kind; 10] = [
    Kind::Flaky,
    Kind::ThrottleOnce,
    Kind::TimeoutOnce,
    Kind::Reset,
    Kind::Refuse,
    Kind::HardBounce,
    Kind::Block,
    Kind::Complaint,
    Kind::Open,
    Kind::Defer,
];

impl Kind {
    fn local_part(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Suppressed => "suppressed",
            Self::Flaky => "flaky",
            Self::ThrottleOnce => "throttle-once",
            Self::TimeoutOnce => "timeout-once",
            Self::Reset => "reset",
            Self::Refuse => "refuse",
            Self::HardBounce => "hard-bounce",
            Self::Block => "block",
            Self::Complaint => "complaint",
            Self::Open => "open",
            Self::Defer => "defer",
        }
    }

    /// Whether a provider may refuse it for good: `refuse` everywhere, and a mail server
    /// says of a mailbox at once what the others tell of it afterwards.
    pub(crate) fn may_be_refused(self) -> bool {
        matches!(self, Self::Refuse | Self::HardBounce | Self::Block)
    }

    /// What providers with callbacks tell of an accepted copy, as our events.
    pub(crate) fn told(self) -> &'static [&'static str] {
        match self {
            Self::HardBounce | Self::Block => &["BOUNCED"],
            Self::Complaint => &["DELIVERED", "COMPLAINED"],
            Self::Open => &["DELIVERED", "OPENED"],
            Self::Defer => &["DEFERRED", "DELIVERED"],
            Self::Ordinary
            | Self::Suppressed
            | Self::Flaky
            | Self::ThrottleOnce
            | Self::TimeoutOnce
            | Self::Reset
            | Self::Refuse => &["DELIVERED"],
        }
    }
}

/// Someone who is sent to.
#[derive(Debug, Clone)]
pub(crate) struct Recipient {
    pub(crate) address: String,
    pub(crate) kind: Kind,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) rule: usize,
    pub(crate) recipients: Vec<Recipient>,
}

/// A request: one message, or a batch of them.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) organization: usize,
    /// When it is made, from the beginning of the load.
    pub(crate) at: Duration,
    pub(crate) key: String,
    pub(crate) is_batch: bool,
    pub(crate) messages: Vec<Message>,
}

/// All that is sent.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) submissions: Vec<Submission>,
    pub(crate) duration: Duration,
}

/// What a plan is made from.
struct Planner {
    random: Random,
    addresses: usize,
    seed: u64,
}

impl Plan {
    /// As many messages, spread over the time.
    pub(crate) fn new(seed: u64, messages: usize, duration: Duration) -> Self {
        let mut planner = Planner {
            random: Random::new(seed).fork(),
            addresses: 0,
            seed,
        };
        let mut submissions = Vec::new();
        let mut planned = 0;
        while planned < messages {
            let at = duration.mul_f64(planned as f64 / messages as f64);
            let one = planner.submission(at, submissions.len(), messages - planned);
            planned += one.messages.len();
            submissions.push(one);
        }
        submissions.sort_by_key(|one| one.at);
        Self {
            submissions,
            duration,
        }
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = (usize, &Message)> {
        let all = self.submissions.iter();
        all.flat_map(|one| {
            one.messages
                .iter()
                .map(|message| (one.organization, message))
        })
    }

    /// How many of its recipients are to get a copy.
    pub(crate) fn expected(&self) -> usize {
        let recipients = self.messages().flat_map(|(_, one)| &one.recipients);
        recipients
            .filter(|one| one.kind != Kind::Suppressed)
            .count()
    }

    /// The addresses that an organization does not want to be sent to.
    pub(crate) fn suppressed(&self, organization: usize) -> Vec<&str> {
        let own = self.messages().filter(|(owner, _)| *owner == organization);
        own.flat_map(|(_, message)| &message.recipients)
            .filter(|one| one.kind == Kind::Suppressed)
            .map(|one| one.address.as_str())
            .collect()
    }
}

impl Planner {
    fn submission(&mut self, mut at: Duration, nth: usize, most: usize) -> Submission {
        if self.random.chance(BURST_SHARE) {
            at = BURST_EVERY * (at.as_secs_f64() / BURST_EVERY.as_secs_f64()) as u32;
        }
        let is_batch = most > 1 && self.random.chance(0.08);
        let messages = if is_batch {
            let count = 2 + self.random.below(BATCH_MAX - 1);
            (0..count.min(most)).map(|_| self.private()).collect()
        } else if self.random.chance(MANY_SHARE) {
            vec![self.circular()]
        } else {
            vec![self.private()]
        };
        Submission {
            organization: self.random.below(ORGANIZATIONS),
            at,
            key: format!("chaos-{}-{nth}", self.seed),
            is_batch,
            messages,
        }
    }

    fn private(&mut self) -> Message {
        let kind = match self.random.chance(MAGIC_SHARE) {
            true => self.random.pick(&MAGIC),
            false => Kind::Ordinary,
        };
        Message {
            rule: self.random.below(PROVIDERS.len()),
            recipients: vec![self.recipient(kind)],
        }
    }

    /// To ordinary ones alone: where a provider takes many in one call, a magic recipient
    /// would decide for all of them.
    fn circular(&mut self) -> Message {
        let count = match self.random.chance(0.02) {
            true => VERY_MANY,
            false => 2 + self.random.below(MANY_MAX - 1),
        };
        let mut recipients: Vec<Recipient> =
            (0..count).map(|_| self.recipient(Kind::Ordinary)).collect();
        if self.random.chance(0.5) {
            let place = self.random.below(count);
            recipients[place] = self.recipient(Kind::Suppressed);
        }
        Message {
            rule: self.random.below(PROVIDERS.len()),
            recipients,
        }
    }

    fn recipient(&mut self, kind: Kind) -> Recipient {
        self.addresses += 1;
        Recipient {
            address: format!("{}+{}@example.org", kind.local_part(), self.addresses),
            kind,
        }
    }
}
