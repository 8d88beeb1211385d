//! The phrases that classify a refusal. They are known replies of servers and services:
//! Postfix, Exim, Sendmail, qmail, Exchange, hMailServer, cPanel, and the relays of Amazon
//! SES, SendGrid, Mailgun, Postmark, Brevo, SparkPost and Gmail.

/// The text of a refusal.
pub(super) struct ReplyText {
    /// The words in lower case between single spaces, without addresses, host names and
    /// dotted numbers, which may contain any word.
    text: String,
    /// Whether the reply also quotes another server.
    is_quoting: bool,
    /// Whether SES names one of its identities.
    names_identity: bool,
    /// Whether Exchange says that a group restricts its senders.
    is_restricted: bool,
}

/// Phrases that introduce another server's reply, to the end of the text: Postfix, qmail,
/// Exchange, and the reports of Exim and Sendmail.
const QUOTING: [&str; 24] = [
    " said:",
    " said 4",
    " said 5",
    "remote host said",
    " says:",
    " replied:",
    " responded:",
    " responded with",
    " replied with",
    " answered:",
    " returned:",
    "remote server returned",
    "remote host returned",
    "remote server response",
    "remote server replied",
    "remote server message",
    "response from remote",
    "error from remote",
    "remote smtp error",
    "remote mta",
    "upstream error",
    "upstream response",
    "response was:",
    "smtp; 5",
];
/// The same, to the end of the line: Exim's report of a callout.
const QUOTING_A_LINE: &str = "response:";

/// With a word of denial: the server does not relay for us.
const RELAYING: [&str; 5] = ["relay", "relaying", "relayed", "relays", "nonrelay"];
const DENIED: [&str; 24] = [
    "not",
    "no",
    "don't",
    "won't",
    "can't",
    "cannot",
    "isn't",
    "doesn't",
    "unable",
    "denied",
    "deny",
    "disallowed",
    "prohibited",
    "forbidden",
    "refused",
    "rejected",
    "disabled",
    "unauthorized",
    "illegal",
    "only",
    "require",
    "required",
    "requires",
    "without",
];
const DENIED_RELAY: [&str; 4] = [
    "rcpthosts",
    "not a gateway",
    "through this server",
    "via this server",
];
/// The recipient is unknown, whatever else the text says.
const UNKNOWN_RECIPIENT: [&str; 8] = [
    "unknown",
    "no such",
    "no mailbox",
    "not exist",
    "doesn't exist",
    "not found",
    "invalid recipient",
    "mailbox unavailable",
];
const LOGIN: [&str; 8] = [
    "auth",
    "authenticate",
    "authentication",
    "authenticated",
    "unauthenticated",
    "logged in",
    "log in",
    "login required",
];
/// About the sender's domain, not about a login.
const DOMAIN_CHECKS: [&str; 4] = ["spf", "dkim", "dmarc", "arc"];
const CLIENT: [&str; 14] = [
    "client host",
    "client address",
    "client was not",
    "client blocked",
    "your ip",
    "your host",
    "your network",
    "sending ip",
    "source ip",
    "unauthorized ip",
    "helo",
    "ehlo",
    "reverse dns",
    "rdns",
];
/// About our account at every stage.
const OUR_ACCOUNT: [&str; 9] = [
    "your account",
    "your smtp account",
    "smtp account",
    "sending account",
    "account settings",
    "is not allowed to send from",
    "not subscribed to ses",
    "pending approval",
    "sending suspended",
];
/// About an account: ours as long as no recipient was named.
const ACCOUNT: [&str; 19] = [
    "account suspended",
    "account is suspended",
    "account has been",
    "account was",
    "account disabled",
    "account is disabled",
    "account locked",
    "account is locked",
    "account is not",
    "account is inactive",
    "account is blocked",
    "account blocked",
    "account deactivated",
    "account is deactivated",
    "account inactive",
    "account closed",
    "account is closed",
    "account expired",
    "domain is disabled",
];
/// About the permissions of our account.
const RIGHTS: [&str; 4] = [
    "is not allowed to send",
    "not authorized to perform",
    "configuration set",
    "tenantattribution",
];
/// About an account that may write to few recipients so far (Mailgun's sandboxes and free
/// accounts, Postmark's accounts before their approval, trials of others): other recipients
/// may be accepted.
const TEST_ACCOUNT: [&str; 6] = [
    "test purposes only",
    "authorized recipients",
    "share the same domain",
    "emails to your own email",
    "emails to account owners",
    "only send to verified recipients",
];
/// About the recipient, if one is known: users, mailboxes, and whatever is said of an
/// [`ACCOUNT`].
const RECIPIENT: [&str; 32] = [
    "mailbox",
    "inbox",
    "email account",
    "mail account",
    "user account",
    "user's account",
    "account you tried",
    "account that you tried",
    "user you",
    "this user",
    "the user",
    "user suspended",
    "user is suspended",
    "user has been",
    "user was",
    "user disabled",
    "user is disabled",
    "user locked",
    "user is locked",
    "user inactive",
    "user is inactive",
    "user blocked",
    "user deactivated",
    "user is over",
    "user over",
    "user has exceeded",
    "recipient is",
    "recipient has",
    "recipient account",
    "the recipient",
    "recipient suspended",
    "recipient disabled",
];
/// About a recipient that accepts mail only from senders authenticated at its own server.
const RESTRICTED_GROUP: [&str; 4] = [
    "to this group",
    "to this distribution",
    "to this address",
    "to this recipient",
];
const PAUSE: [&str; 1] = ["unusual activity"];
/// About a temporary stop of our sending, whatever else the text names.
const OUR_PAUSE: [&str; 3] = [
    "sending paused",
    "sending is paused",
    "unusual sending activity",
];
/// About our sending limit, whatever else the text names.
const OUR_LIMIT: [&str; 5] = [
    "sending quota",
    "send quota",
    "sending limit",
    "sending limits",
    "send limit",
];
const QUOTA: [&str; 21] = [
    "message quota",
    "daily quota",
    "email quota",
    "messaging limits",
    "message limit",
    "messages limit",
    "email limit",
    "daily limit",
    "hourly limit",
    "monthly limit",
    "recipient limit exceeded",
    "request limit exceeded",
    "credits exceeded",
    "out of credits",
    "not enough credits",
    "insufficient credits",
    "emails per hour",
    "messages per hour",
    "emails per day",
    "messages per day",
    "exceeded the max",
];
const RATE: [&str; 28] = [
    "too many connections",
    "too many concurrent",
    "too many simultaneous",
    "too many sessions",
    "too many messages",
    "too many emails",
    "too many mails",
    "too many requests",
    "too many commands",
    "too many login",
    "too many logins",
    "too many recipients",
    "too many authentication",
    "too many auth",
    "too much mail",
    "too frequent",
    "too fast",
    "rate limit",
    "rate limits",
    "rate limited",
    "ratelimit",
    "rate exceeded",
    "sending rate",
    "message rate",
    "throttled",
    "throttling",
    "slow down",
    "thread limit",
];
/// Exchange reports our quota with the code of a full mailbox.
const OUR_QUOTA: [&str; 1] = ["submission quota"];
/// About a mailbox that receives too much, from any sender.
const RECEIVING: [&str; 5] = [
    "receiving mail",
    "receiving",
    "recipient thread",
    "this recipient",
    "recipient's",
];
const GREYLISTING: [&str; 8] = [
    "greylist",
    "greylisted",
    "greylisting",
    "graylist",
    "graylisted",
    "graylisting",
    "grey listed",
    "gray listed",
];
const SENDER: [&str; 13] = [
    "sender verify failed",
    "sender address rejected",
    "sender rejected",
    "sender denied",
    "sender identity",
    "sender signature",
    "sending domain",
    "sender domain",
    "is not verified",
    "domain is unverified",
    "send as this sender",
    "from address",
    "invalid sender",
];

impl ReplyText {
    /// The complete text.
    pub(super) fn of(lines: &[String]) -> Self {
        Self::read(&lines.join("\n").to_lowercase(), false)
    }

    /// The server's own words, without quotes of another server.
    pub(super) fn without_quotes(lines: &[String]) -> Self {
        let text = lines.join("\n").to_lowercase();
        let mut own = Vec::with_capacity(lines.len());
        let mut is_quoting = false;
        for line in text.split('\n') {
            if let Some(end) = QUOTING.iter().filter_map(|words| line.find(words)).min() {
                own.push(&line[..end]);
                is_quoting = true;
                break;
            }
            let end = line.find(QUOTING_A_LINE);
            is_quoting |= end.is_some();
            own.push(&line[..end.unwrap_or(line.len())]);
        }
        Self::read(&own.join("\n"), is_quoting)
    }

    fn read(text: &str, is_quoting: bool) -> Self {
        let mut words = String::from(" ");
        let tokens = text.split_whitespace();
        for token in tokens.filter(|token| !contains_a_name(token)) {
            let parts = token.split(|c: char| !c.is_alphanumeric() && c != '\'');
            for part in parts.map(|part| part.trim_matches('\'')) {
                if !part.is_empty() {
                    words.push_str(part);
                    words.push(' ');
                }
            }
        }
        Self {
            text: words,
            is_quoting,
            names_identity: text.contains(":identity/"),
            is_restricted: text.contains("resolver.rst."),
        }
    }

    fn contains(&self, phrases: &[&str]) -> bool {
        let is_contained = |phrase: &&str| {
            let mut found = self.text.match_indices(phrase);
            found.any(|(at, _)| {
                self.text[..at].ends_with(' ') && self.text[at + phrase.len()..].starts_with(' ')
            })
        };
        phrases.iter().any(is_contained)
    }

    /// The server does not relay for us.
    pub(super) fn denies_relay(&self) -> bool {
        let denied =
            self.contains(&RELAYING) && self.contains(&DENIED) || self.contains(&DENIED_RELAY);
        denied && !self.contains(&UNKNOWN_RECIPIENT)
    }

    /// A login is required or was refused.
    pub(super) fn requires_login(&self) -> bool {
        self.contains(&LOGIN) && !self.contains(&DOMAIN_CHECKS)
    }

    /// Our IP address or host name is rejected.
    pub(super) fn rejects_client(&self) -> bool {
        self.contains(&CLIENT)
    }

    /// About our account, and not about the recipient's.
    pub(super) fn mentions_our_account(&self) -> bool {
        self.contains(&OUR_ACCOUNT)
    }

    /// About an account, ours or the recipient's.
    pub(super) fn mentions_account(&self) -> bool {
        self.contains(&ACCOUNT)
    }

    /// Our account lacks a permission.
    pub(super) fn denies_our_rights(&self) -> bool {
        self.contains(&RIGHTS)
    }

    /// Our account may write to few recipients, and not to this one.
    pub(super) fn mentions_test_account(&self) -> bool {
        self.contains(&TEST_ACCOUNT)
    }

    /// About a recipient, or about an account that may be the recipient's.
    pub(super) fn mentions_recipient(&self) -> bool {
        self.contains(&RECIPIENT) || self.contains(&RECEIVING) || self.contains(&ACCOUNT)
    }

    /// The recipient restricts its senders.
    pub(super) fn mentions_restricted_group(&self) -> bool {
        self.is_restricted || self.contains(&RESTRICTED_GROUP)
    }

    /// The reply quotes another server.
    pub(super) fn quotes_another_server(&self) -> bool {
        self.is_quoting
    }

    /// Names an SES identity that the account may not use: a sender.
    pub(super) fn names_identity(&self) -> bool {
        self.names_identity
    }

    /// Reports unusual activity.
    pub(super) fn mentions_pause(&self) -> bool {
        self.contains(&PAUSE)
    }

    /// The service stopped our sending for now.
    pub(super) fn mentions_our_pause(&self) -> bool {
        self.contains(&OUR_PAUSE)
    }

    /// Our sending limit is reached, whatever else the text names.
    pub(super) fn mentions_our_limit(&self) -> bool {
        self.contains(&OUR_LIMIT)
    }

    /// A quota is used up, and not a recipient's.
    pub(super) fn mentions_quota(&self) -> bool {
        self.contains(&QUOTA) && !self.contains(&RECEIVING)
    }

    /// Our quota is used up, even if the code names a mailbox.
    pub(super) fn mentions_our_quota(&self) -> bool {
        self.contains(&OUR_QUOTA)
    }

    /// We send too fast.
    pub(super) fn mentions_rate(&self) -> bool {
        self.contains(&RATE) && !self.contains(&RECEIVING)
    }

    /// The server defers every first try.
    pub(super) fn mentions_greylisting(&self) -> bool {
        self.contains(&GREYLISTING)
    }

    /// The sender is not accepted, or not ours to use.
    pub(super) fn mentions_sender(&self) -> bool {
        self.names_identity || self.contains(&SENDER) || self.contains(&DOMAIN_CHECKS)
    }
}

/// Whether a token is an address or has a dot inside: a host, a URL, a code.
fn contains_a_name(token: &str) -> bool {
    let inside = token.trim_matches(|c: char| !c.is_alphanumeric());
    let is_dotted = inside.split('.').count() > 1 && !inside.contains("..");
    token.contains('@') || is_dotted
}
