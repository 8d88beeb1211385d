//! The plan of a run, made before it starts: the messages, their requests, times and
//! recipients. Every address occurs once, so that recipients can be counted.

use std::time::Duration;

use clap::ValueEnum;
use waypost_core::provider::kind::ProviderType;

use crate::random::Random;

/// Organizations that send.
pub(crate) const ORGANIZATIONS: usize = 3;

/// The accounts of each organization. There is a rule for each account, which falls back
/// to the two accounts that follow.
pub(crate) const PROVIDERS: [ProviderType; 5] = [
    ProviderType::Sendgrid,
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Ses,
    ProviderType::Smtp,
];

/// Messages per batch.
const BATCH_MAX: usize = 20;
/// Share of the requests without a batch that have many recipients.
const MANY_SHARE: f64 = 0.04;
/// Recipients of a message to many; a few messages have three chunks (a chunk is 100).
const MANY_MAX: usize = 30;
const VERY_MANY: usize = 230;
/// Share of the messages to one recipient that go to a magic address.
const MAGIC_SHARE: f64 = 0.15;

/// Share of the messages that are scheduled, and how many seconds ahead: longer than a client
/// repeats a request after most faults.
const SCHEDULED_SHARE: f64 = 0.12;
const SCHEDULED_SECONDS: (f64, f64) = (15.0, 40.0);
/// The same in a load shorter than a minute.
const SCHEDULED_SECONDS_SHORT: (f64, f64) = (20.0, 25.0);
const SHORT: Duration = Duration::from_secs(60);
/// Share of the messages that are cancelled.
const CANCELLED_SHARE: f64 = 0.08;
/// How many seconds after their acceptance, or around their time, messages are cancelled.
const CANCELLED_SECONDS_MAX: f64 = 2.0;

/// Share of the messages to one recipient that are made of a template, and of those with a file.
const TEMPLATE_SHARE: f64 = 0.1;
const FILE_SHARE: f64 = 0.05;

/// Share of the requests that come in bursts; the others are spread evenly.
const BURST_SHARE: f64 = 0.5;
const BURST_INTERVAL: Duration = Duration::from_secs(4);

/// The policy of a rule after a provider's response was lost.
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

/// The simulator's reaction to an address, selected by its local part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ordinary,
    /// Suppressed before the run: no message may reach it.
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

/// All reactions.
pub(crate) const MAGIC: [Kind; 10] = [
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

/// The reactions after which it is known whether the provider accepted the message.
pub(crate) const MAGIC_WITH_RESPONSE: [Kind; 8] = [
    Kind::Flaky,
    Kind::ThrottleOnce,
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

    /// Whether a provider may reject it for good. All providers reject `refuse`; an SMTP
    /// server also rejects a mailbox at once for which the others report a bounce later.
    pub(crate) fn may_be_refused(self) -> bool {
        matches!(self, Self::Refuse | Self::HardBounce | Self::Block)
    }

    /// The events that providers with callbacks report after they accepted the recipient.
    pub(crate) fn provider_events(self) -> &'static [&'static str] {
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

/// A recipient.
#[derive(Debug, Clone)]
pub(crate) struct Recipient {
    pub(crate) address: String,
    pub(crate) kind: Kind,
}

/// What a message consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    /// A stored template.
    Template,
    /// A text and an attachment.
    File,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) rule: usize,
    pub(crate) content: Content,
    pub(crate) recipients: Vec<Recipient>,
    /// How long ahead it is scheduled, if it is.
    pub(crate) scheduled: Option<Duration>,
    /// How long after its acceptance it is cancelled, if it is.
    pub(crate) cancelled_after: Option<Duration>,
}

/// A request: one message, or a batch of them.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    pub(crate) organization: usize,
    /// Its time, from the start of the load.
    pub(crate) at: Duration,
    pub(crate) key: String,
    pub(crate) is_batch: bool,
    pub(crate) messages: Vec<Message>,
}

/// Everything that is sent.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) submissions: Vec<Submission>,
    pub(crate) duration: Duration,
}

/// The state while a plan is made.
struct Planner {
    random: Random,
    magic: &'static [Kind],
    addresses: usize,
    seed: u64,
    scheduled_seconds: (f64, f64),
}

impl Plan {
    /// A plan with this many messages, spread over the time, some of them to addresses with
    /// these reactions.
    pub(crate) fn new(
        seed: u64,
        messages: usize,
        duration: Duration,
        magic: &'static [Kind],
    ) -> Self {
        let mut planner = Planner {
            random: Random::new(seed).fork(),
            magic,
            addresses: 0,
            seed,
            scheduled_seconds: if duration < SHORT {
                SCHEDULED_SECONDS_SHORT
            } else {
                SCHEDULED_SECONDS
            },
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

    /// The number of recipients to which a message must be sent.
    pub(crate) fn expected(&self) -> usize {
        let recipients = self.messages().flat_map(|(_, one)| &one.recipients);
        recipients
            .filter(|one| one.kind != Kind::Suppressed)
            .count()
    }

    /// An organization's suppressed addresses.
    pub(crate) fn suppressed(&self, organization: usize) -> Vec<&str> {
        let own = self.messages().filter(|(owner, _)| *owner == organization);
        own.flat_map(|(_, message)| &message.recipients)
            .filter(|one| one.kind == Kind::Suppressed)
            .map(|one| one.address.as_str())
            .collect()
    }
}

impl Planner {
    fn submission(&mut self, mut at: Duration, nth: usize, messages_max: usize) -> Submission {
        if self.random.chance(BURST_SHARE) {
            at = BURST_INTERVAL * (at.as_secs_f64() / BURST_INTERVAL.as_secs_f64()) as u32;
        }
        let is_batch = messages_max > 1 && self.random.chance(0.08);
        let messages = if is_batch {
            let count = 2 + self.random.below(BATCH_MAX - 1);
            (0..count.min(messages_max))
                .map(|_| self.message_to_one())
                .collect()
        } else if self.random.chance(MANY_SHARE) {
            vec![self.message_to_many()]
        } else {
            vec![self.message_to_one()]
        };
        Submission {
            organization: self.random.below(ORGANIZATIONS),
            at,
            key: format!("chaos-{}-{nth}", self.seed),
            is_batch,
            messages,
        }
    }

    fn message_to_one(&mut self) -> Message {
        let kind = match self.random.chance(MAGIC_SHARE) {
            true => self.random.pick(self.magic),
            false => Kind::Ordinary,
        };
        let recipients = vec![self.recipient(kind)];
        let content = match self.random.fraction() {
            share if share < TEMPLATE_SHARE => Content::Template,
            share if share < TEMPLATE_SHARE + FILE_SHARE => Content::File,
            _ => Content::Text,
        };
        self.message(recipients, content)
    }

    /// A message to many. Its recipients are ordinary: some providers take many
    /// recipients in one call, and a magic one would decide the response for all of them.
    fn message_to_many(&mut self) -> Message {
        let count = match self.random.chance(0.02) {
            true => VERY_MANY,
            false => 2 + self.random.below(MANY_MAX - 1),
        };
        let mut recipients: Vec<Recipient> =
            (0..count).map(|_| self.recipient(Kind::Ordinary)).collect();
        if self.random.chance(0.5) {
            let index = self.random.below(count);
            recipients[index] = self.recipient(Kind::Suppressed);
        }
        self.message(recipients, Content::Text)
    }

    fn message(&mut self, recipients: Vec<Recipient>, content: Content) -> Message {
        let (least, most) = self.scheduled_seconds;
        let scheduled = match self.random.chance(SCHEDULED_SHARE) {
            true => Some(Duration::from_secs_f64(self.random.between(least, most))),
            false => None,
        };
        let cancelled_after = self.random.chance(CANCELLED_SHARE).then(|| {
            let after = self.random.between(0.0, CANCELLED_SECONDS_MAX);
            let begin = scheduled.unwrap_or_default();
            begin.saturating_sub(Duration::from_secs(1)) + Duration::from_secs_f64(after)
        });
        Message {
            rule: self.random.below(PROVIDERS.len()),
            content,
            recipients,
            scheduled,
            cancelled_after,
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
