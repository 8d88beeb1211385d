//! The words of a refusal, as far as they decide. They are what servers and services are
//! known to say: Postfix, Exim, Sendmail, qmail, Exchange, hMailServer, cPanel, and the
//! relays of Amazon SES, SendGrid, Mailgun, Postmark, Brevo, SparkPost and Gmail.

/// A refusal's text in lower case: words between single spaces, without addresses, names
/// of hosts and numbers with dots, which may hold any word.
pub(super) struct Words(String);

/// A server that says one of these does not relay, to whomever.
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
/// A recipient that the server looked for, whatever else it says.
const LOOKED_FOR: [&str; 8] = [
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
/// Of the sender's domain, not of a login.
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
/// Of our account wherever it is said.
const OUR_ACCOUNT: [&str; 9] = [
    "your account",
    "your smtp account",
    "smtp account",
    "sending account",
    "account settings",
    "is not allowed to send from",
    "test purposes only",
    "not subscribed to ses",
    "pending approval",
];
/// Of the account where no recipient was named yet, or all was said.
const ACCOUNT: [&str; 15] = [
    "account suspended",
    "account is suspended",
    "account has been",
    "account disabled",
    "account is disabled",
    "account locked",
    "account is locked",
    "account is not",
    "account is blocked",
    "account blocked",
    "is not allowed to send",
    "not authorized to perform",
    "configuration set",
    "domain is disabled",
    "tenantattribution",
];
const PAUSE: [&str; 4] = [
    "sending paused",
    "unusual sending activity",
    "unusual activity",
    "sending is paused",
];
const QUOTA: [&str; 26] = [
    "message quota",
    "sending quota",
    "daily quota",
    "send quota",
    "email quota",
    "sending limit",
    "sending limits",
    "send limit",
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
/// Exchange gives it the code of a full mailbox.
const OUR_QUOTA: [&str; 1] = ["submission quota"];
/// Of a mailbox that gets too much, from whomever.
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
const SENDER: [&str; 12] = [
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

impl Words {
    pub(super) fn of(lines: &[String]) -> Self {
        let mut words = String::from(" ");
        let tokens = lines.iter().flat_map(|line| line.split_whitespace());
        for token in tokens.filter(|token| !holds_a_name(token)) {
            let parts = token.split(|c: char| !c.is_alphanumeric() && c != '\'');
            for part in parts.map(|part| part.trim_matches('\'')) {
                if !part.is_empty() {
                    words.push_str(&part.to_lowercase());
                    words.push(' ');
                }
            }
        }
        Self(words)
    }

    fn say(&self, phrases: &[&str]) -> bool {
        let said = |phrase: &&str| {
            let mut found = self.0.match_indices(phrase);
            found.any(|(at, _)| {
                self.0[..at].ends_with(' ') && self.0[at + phrase.len()..].starts_with(' ')
            })
        };
        phrases.iter().any(said)
    }

    /// That the server does not pass on mail for us.
    pub(super) fn refuse_to_relay(&self) -> bool {
        let denied = self.say(&RELAYING) && self.say(&DENIED) || self.say(&DENIED_RELAY);
        denied && !self.say(&LOOKED_FOR)
    }

    /// That we must log in, or that the login is no good.
    pub(super) fn ask_for_a_login(&self) -> bool {
        self.say(&LOGIN) && !self.say(&DOMAIN_CHECKS)
    }

    /// That it does not speak with our address or our name.
    pub(super) fn tell_of_the_client(&self) -> bool {
        self.say(&CLIENT)
    }

    /// Something of our account that cannot be the recipient's.
    pub(super) fn tell_of_our_account(&self) -> bool {
        self.say(&OUR_ACCOUNT)
    }

    /// Something of an account.
    pub(super) fn tell_of_the_account(&self) -> bool {
        self.say(&OUR_ACCOUNT) || self.say(&ACCOUNT)
    }

    /// That the service stopped our sending for now.
    pub(super) fn tell_of_a_pause(&self) -> bool {
        self.say(&PAUSE)
    }

    /// That we have sent as much as we may for now.
    pub(super) fn tell_of_a_quota(&self) -> bool {
        self.say(&QUOTA) && !self.say(&RECEIVING)
    }

    /// The same, where it cannot be the recipient's.
    pub(super) fn tell_of_our_quota(&self) -> bool {
        self.say(&OUR_QUOTA)
    }

    /// That we send too fast.
    pub(super) fn tell_of_a_rate(&self) -> bool {
        self.say(&RATE) && !self.say(&RECEIVING)
    }

    /// That a first try is always put off.
    pub(super) fn tell_of_greylisting(&self) -> bool {
        self.say(&GREYLISTING)
    }

    /// That the sender is not welcome, or not ours.
    pub(super) fn tell_of_the_sender(&self) -> bool {
        self.say(&SENDER) || self.say(&DOMAIN_CHECKS)
    }
}

/// Whether it is an address, or a dot stands inside: a host, a URL, a code.
fn holds_a_name(token: &str) -> bool {
    let inside = token.trim_matches(|c: char| !c.is_alphanumeric());
    let is_dotted = inside.split('.').count() > 1 && !inside.contains("..");
    token.contains('@') || is_dotted
}
