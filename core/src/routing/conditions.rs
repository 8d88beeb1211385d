//! What a rule requires of a message besides its sender and its tags. All that is set must hold.
//! What is not known of a message holds nothing: such a rule is passed over.

use super::mailbox_provider::MailboxProvider;
use super::rule::{DomainPattern, RuleTerms, wire_words};
use super::target_health::Prefer;
use super::targets::Sticky;
use super::{PassedOver, RoutingRequest};

/// The most patterns of recipients' domains of a rule.
pub const RECIPIENT_DOMAINS_MAX: usize = 50;
/// The largest size that a rule can name, in bytes.
pub const SIZE_MAX: u32 = 1_000_000_000;

/// What kind of mail a message is. Its sender says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "message_class", rename_all = "lowercase")]
pub enum MessageClass {
    /// About something that the recipient did.
    #[default]
    Transactional,
    /// The same to many.
    Bulk,
}

wire_words!(MessageClass: Transactional = "transactional", Bulk = "bulk");

/// The conditions of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Every recipient must match one of them; empty for all recipients.
    pub recipient_domains: Vec<DomainPattern>,
    /// Every recipient must have one of them; empty for all recipients.
    pub recipient_mailbox_providers: Vec<MailboxProvider>,
    pub message_class: Option<MessageClass>,
    pub min_size_bytes: Option<u32>,
    pub max_size_bytes: Option<u32>,
    /// Whether only tests or only live messages match.
    pub test: Option<bool>,
}

/// Changes of conditions; `None` keeps one, and `Some(None)` clears it.
#[derive(Debug, Default)]
pub struct ConditionChange {
    pub recipient_domains: Option<Vec<DomainPattern>>,
    pub recipient_mailbox_providers: Option<Vec<MailboxProvider>>,
    pub message_class: Option<Option<MessageClass>>,
    pub min_size_bytes: Option<Option<u32>>,
    pub max_size_bytes: Option<Option<u32>>,
    pub test: Option<Option<bool>>,
}

impl ConditionChange {
    /// The names of the changed fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            self.recipient_domains
                .is_some()
                .then_some("recipientDomains"),
            self.recipient_mailbox_providers
                .is_some()
                .then_some("recipientMailboxProviders"),
            self.message_class.is_some().then_some("messageClass"),
            self.min_size_bytes.is_some().then_some("minSizeBytes"),
            self.max_size_bytes.is_some().then_some("maxSizeBytes"),
            self.test.is_some().then_some("test"),
        ];
        fields.into_iter().flatten()
    }

    pub(super) fn apply(self, conditions: &mut Conditions) {
        let Conditions {
            recipient_domains,
            recipient_mailbox_providers,
            message_class,
            min_size_bytes,
            max_size_bytes,
            test,
        } = conditions;
        *recipient_domains = self
            .recipient_domains
            .unwrap_or_else(|| std::mem::take(recipient_domains));
        *recipient_mailbox_providers = self
            .recipient_mailbox_providers
            .unwrap_or_else(|| std::mem::take(recipient_mailbox_providers));
        *message_class = self.message_class.unwrap_or(*message_class);
        *min_size_bytes = self.min_size_bytes.unwrap_or(*min_size_bytes);
        *max_size_bytes = self.max_size_bytes.unwrap_or(*max_size_bytes);
        *test = self.test.unwrap_or(*test);
    }
}

impl Conditions {
    /// Whether a size can be neither too small nor too large.
    #[must_use]
    pub fn has_sizes(&self) -> bool {
        match (self.min_size_bytes, self.max_size_bytes) {
            (Some(min), Some(max)) => min <= max,
            (Some(_) | None, _) => true,
        }
    }

    /// Whether the size of a message matters.
    #[must_use]
    pub fn looks_at_size(&self) -> bool {
        self.min_size_bytes.is_some() || self.max_size_bytes.is_some()
    }

    /// Checks a message against the conditions.
    ///
    /// # Errors
    /// The first that does not hold.
    pub(super) fn check(&self, request: &RoutingRequest<'_>) -> Result<(), PassedOver> {
        if !self.matches_recipients(request) {
            return Err(PassedOver::RecipientDomain);
        }
        if self.message_class.is_some() && self.message_class != request.class {
            return Err(PassedOver::MessageClass);
        }
        if !self.matches_size(request.size_bytes) {
            return Err(PassedOver::Size);
        }
        if self.test.is_some_and(|test| test != request.is_test) {
            return Err(PassedOver::Test);
        }
        // Last: a domain is looked up only for messages that match otherwise.
        if !self.matches_mailbox_providers(request) {
            return Err(PassedOver::RecipientMailboxProvider);
        }
        Ok(())
    }

    /// Asks for all domains, so that those which are not known are looked up together.
    fn matches_mailbox_providers(&self, request: &RoutingRequest<'_>) -> bool {
        if self.recipient_mailbox_providers.is_empty() {
            return true;
        }
        let Some(domains) = request.recipients else {
            return false;
        };
        let matches = |domain: &str| {
            let provider = (request.mailbox_providers)(domain);
            provider.is_some_and(|provider| self.recipient_mailbox_providers.contains(&provider))
        };
        let mut all = (0..).map_while(domains).peekable();
        all.peek().is_some() && all.filter(|domain| !matches(domain)).count() == 0
    }

    fn matches_recipients(&self, request: &RoutingRequest<'_>) -> bool {
        if self.recipient_domains.is_empty() {
            return true;
        }
        let Some(domains) = request.recipients else {
            return false;
        };
        let matches = |domain: &str| {
            let mut patterns = self.recipient_domains.iter();
            patterns.any(|pattern| pattern.matches(domain))
        };
        let mut all = (0..).map_while(domains).peekable();
        all.peek().is_some() && all.all(matches)
    }

    fn matches_size(&self, size: Option<u64>) -> bool {
        match size {
            None => !self.looks_at_size(),
            Some(size) => {
                let is_small = self.min_size_bytes.is_some_and(|min| size < u64::from(min));
                let is_large = self.max_size_bytes.is_some_and(|max| size > u64::from(max));
                !is_small && !is_large
            }
        }
    }
}

impl RuleTerms {
    /// Whether more of a message matters than its sender, its tags and whether it is a test.
    #[must_use]
    pub fn looks_at_traits(&self) -> bool {
        let conditions = &self.conditions;
        self.looks_at_recipients()
            || conditions.message_class.is_some()
            || conditions.looks_at_size()
    }

    /// Whether the recipients' domains matter.
    #[must_use]
    pub fn looks_at_recipients(&self) -> bool {
        !self.conditions.recipient_domains.is_empty()
            || !self.conditions.recipient_mailbox_providers.is_empty()
            || (self.targets.len() > 1
                && (self.sticky == Sticky::RecipientDomain || self.prefer == Prefer::Health))
    }
}
