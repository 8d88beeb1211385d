//! The words of a refusal, as far as they decide. They are what servers and services are
//! known to say: Postfix, Exim, Sendmail, qmail, Exchange, hMailServer, cPanel, and the
//! relays of Amazon SES, SendGrid, Mailgun, Postmark, Brevo, SparkPost and Gmail.

/// A refusal's text.
pub(super) struct Words {
    /// In lower case: words between single spaces, without addresses, names of hosts and
    /// numbers with dots, which may hold any word.
    said: String,
    /// Whether more was said, by another server.
    is_quoting: bool,
    /// Whether SES names one of its identities.
    names_identity: bool,
    /// Whether Exchange says that a group takes mail from few.
    is_restricted: bool,
}

/// What stands before the words of another server, to the end of the reply: Postfix,
/// qmail, Exchange, Exim's and Sendmail's reports.
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
/// The same, to the end of its line: Exim's report of a callout.
const QUOTING_A_LINE: &str = "response:";

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
    "not subscribed to ses",
    "pending approval",
    "sending suspended",
];
/// Of an account: ours, as long as no recipient was named.
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
/// Of what our account may do.
const RIGHTS: [&str; 4] = [
    "is not allowed to send",
    "not authorized to perform",
    "configuration set",
    "tenantattribution",
];
/// Of an account that may write to few recipients as yet (Mailgun's sandboxes and free
/// accounts, Postmark's accounts before their approval, trials of others): each recipient
/// fares in its own way.
const TEST_ACCOUNT: [&str; 6] = [
    "test purposes only",
    "authorized recipients",
    "share the same domain",
    "emails to your own email",
    "emails to account owners",
    "only send to verified recipients",
];
/// Of the recipient, where one is known: people and mailboxes, and what is said of
/// [`ACCOUNT`]s.
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
/// Of a recipient that takes mail from those who logged in with its own server.
const CLOSED_GROUP: [&str; 4] = [
    "to this group",
    "to this distribution",
    "to this address",
    "to this recipient",
];
const PAUSE: [&str; 1] = ["unusual activity"];
/// Of our sending for now, whomever else it names.
const OUR_PAUSE: [&str; 3] = [
    "sending paused",
    "sending is paused",
    "unusual sending activity",
];
/// Of how much we may send, whomever else it names.
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

impl Words {
    /// All words.
    pub(super) fn of(lines: &[String]) -> Self {
        Self::read(&lines.join("\n").to_lowercase(), false)
    }

    /// The server's own words, without those of another one.
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
        for token in tokens.filter(|token| !holds_a_name(token)) {
            let parts = token.split(|c: char| !c.is_alphanumeric() && c != '\'');
            for part in parts.map(|part| part.trim_matches('\'')) {
                if !part.is_empty() {
                    words.push_str(part);
                    words.push(' ');
                }
            }
        }
        Self {
            said: words,
            is_quoting,
            names_identity: text.contains(":identity/"),
            is_restricted: text.contains("resolver.rst."),
        }
    }

    fn say(&self, phrases: &[&str]) -> bool {
        let said = |phrase: &&str| {
            let mut found = self.said.match_indices(phrase);
            found.any(|(at, _)| {
                self.said[..at].ends_with(' ') && self.said[at + phrase.len()..].starts_with(' ')
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

    /// Something of an account, which may be anybody's.
    pub(super) fn tell_of_an_account(&self) -> bool {
        self.say(&ACCOUNT)
    }

    /// That our account may not do this.
    pub(super) fn tell_of_our_rights(&self) -> bool {
        self.say(&RIGHTS)
    }

    /// That our account may write to few recipients, and this is none of them.
    pub(super) fn tell_of_a_test_account(&self) -> bool {
        self.say(&TEST_ACCOUNT)
    }

    /// Something of a recipient, or of an account that may be the recipient's.
    pub(super) fn tell_of_the_recipient(&self) -> bool {
        self.say(&RECIPIENT) || self.say(&RECEIVING) || self.say(&ACCOUNT)
    }

    /// That the recipient takes mail from few, and not from us.
    pub(super) fn tell_of_a_closed_group(&self) -> bool {
        self.is_restricted || self.say(&CLOSED_GROUP)
    }

    /// That it passes on what another server said.
    pub(super) fn quote_another_server(&self) -> bool {
        self.is_quoting
    }

    /// An identity of SES that the account may not use: a sender.
    pub(super) fn name_an_identity(&self) -> bool {
        self.names_identity
    }

    /// That something strange is going on.
    pub(super) fn tell_of_a_pause(&self) -> bool {
        self.say(&PAUSE)
    }

    /// That the service stopped our sending for now.
    pub(super) fn tell_of_our_pause(&self) -> bool {
        self.say(&OUR_PAUSE)
    }

    /// That we have sent as much as we may for now, whomever else it names.
    pub(super) fn tell_of_our_limit(&self) -> bool {
        self.say(&OUR_LIMIT)
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
        self.names_identity || self.say(&SENDER) || self.say(&DOMAIN_CHECKS)
    }
}

/// Whether it is an address, or a dot stands inside: a host, a URL, a code.
fn holds_a_name(token: &str) -> bool {
    let inside = token.trim_matches(|c: char| !c.is_alphanumeric());
    let is_dotted = inside.split('.').count() > 1 && !inside.contains("..");
    token.contains('@') || is_dotted
}
