//! Mailbox providers: who takes the mail of a recipient's domain.
//!
//! The domains of the providers themselves are in a table here. Of all others the host of the
//! MX record says it, which is looked up in the background ([`resolver`]) and kept in
//! PostgreSQL. [`cache`] answers acceptance out of memory, which never waits for either: a
//! domain that is asked for the first time is not known.

pub mod cache;
pub mod resolver;
mod store;

use super::rule::wire_words;

/// Who takes mail for a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailboxProvider {
    /// Gmail and Google Workspace.
    Google,
    /// Outlook.com and Microsoft 365.
    Microsoft,
    /// Yahoo Mail and AOL Mail, which share servers.
    Yahoo,
    /// Anybody else.
    Other,
}

wire_words!(
    MailboxProvider: Google = "google", Microsoft = "microsoft", Yahoo = "yahoo", Other = "other"
);

/// The mailbox provider of a domain, as a function of the domain; `None` where it is not known.
pub type MailboxProviderOf<'a> = &'a (dyn Fn(&str) -> Option<MailboxProvider> + Sync);

/// Domains of Gmail.
const GOOGLE: [&str; 2] = ["gmail.com", "googlemail.com"];
/// Domains of Outlook.com with many mailboxes, of those in "Reference: MAGY (Microsoft, AOL,
/// Gmail, Yahoo) Email Domains", Spam Resource, 2021. The others are found by their MX records.
const MICROSOFT: [&str; 30] = [
    "outlook.com",
    "hotmail.com",
    "live.com",
    "msn.com",
    "passport.com",
    "windowslive.com",
    "hotmail.be",
    "hotmail.co.uk",
    "hotmail.de",
    "hotmail.es",
    "hotmail.fr",
    "hotmail.it",
    "live.be",
    "live.ca",
    "live.cl",
    "live.co.uk",
    "live.com.ar",
    "live.com.au",
    "live.com.mx",
    "live.de",
    "live.fr",
    "live.it",
    "live.nl",
    "outlook.com.br",
    "outlook.de",
    "outlook.es",
    "outlook.fr",
    "outlook.it",
    "outlook.jp",
    "outlook.co.id",
];
/// Domains of Yahoo Mail and AOL Mail with many mailboxes, from the same list. Yahoo Japan is
/// another company.
const YAHOO: [&str; 22] = [
    "yahoo.com",
    "ymail.com",
    "rocketmail.com",
    "myyahoo.com",
    "aol.com",
    "aim.com",
    "yahoo.ca",
    "yahoo.co.id",
    "yahoo.co.in",
    "yahoo.co.uk",
    "yahoo.com.ar",
    "yahoo.com.au",
    "yahoo.com.br",
    "yahoo.com.mx",
    "yahoo.com.sg",
    "yahoo.de",
    "yahoo.es",
    "yahoo.fr",
    "yahoo.ie",
    "yahoo.in",
    "yahoo.it",
    "aol.co.uk",
];

/// The domains of mail servers. Google: "MX record values for Google Workspace", Google
/// Workspace Admin Help (`smtp.google.com`; before 2023 `aspmx.l.google.com` and
/// `aspmx2.googlemail.com`). Microsoft: "External Domain Name System records for Microsoft 365"
/// (`*.mail.protection.outlook.com`) and "How SMTP DANE works" (`*.mx.microsoft`), Microsoft
/// Learn; Outlook.com has `*.olc.protection.outlook.com`. Yahoo and AOL have `*.yahoodns.net`.
const MAIL_SERVERS: [(&str, MailboxProvider); 5] = [
    ("google.com", MailboxProvider::Google),
    ("googlemail.com", MailboxProvider::Google),
    ("protection.outlook.com", MailboxProvider::Microsoft),
    ("mx.microsoft", MailboxProvider::Microsoft),
    ("yahoodns.net", MailboxProvider::Yahoo),
];

impl MailboxProvider {
    /// The provider whose own domain this is, in lower-case ASCII; `None` for all others.
    #[must_use]
    pub fn of_own_domain(domain: &str) -> Option<Self> {
        let own = [
            (GOOGLE.as_slice(), Self::Google),
            (MICROSOFT.as_slice(), Self::Microsoft),
            (YAHOO.as_slice(), Self::Yahoo),
        ];
        let mut own = own.into_iter();
        let found = own.find(|(domains, _)| domains.contains(&domain));
        found.map(|(_, provider)| provider)
    }

    /// The provider to whom these MX records (`priority host`) send the mail first; without
    /// any, nobody that is known here.
    fn of_mail_servers(records: &[String]) -> Self {
        let parsed = records.iter().filter_map(|record| {
            let (priority, host) = record.split_once(' ')?;
            Some((priority.parse::<u16>().ok()?, host))
        });
        let Some((_, host)) = parsed.min() else {
            return Self::Other;
        };
        let mut servers = MAIL_SERVERS.into_iter();
        let found = servers.find(|(suffix, _)| {
            let rest = host.strip_suffix(suffix);
            rest.is_some_and(|rest| rest.ends_with('.'))
        });
        found.map_or(Self::Other, |(_, provider)| provider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mail_server_that_is_tried_first_says_who_takes_the_mail() {
        use MailboxProvider::{Google, Microsoft, Other, Yahoo};
        let cases: [(&[&str], MailboxProvider); 10] = [
            (&["1 smtp.google.com"], Google),
            (
                &["5 alt1.aspmx.l.google.com", "1 aspmx.l.google.com"],
                Google,
            ),
            (&["10 aspmx2.googlemail.com"], Google),
            (&["0 example-com.mail.protection.outlook.com"], Microsoft),
            (&["0 hotmail-com.olc.protection.outlook.com"], Microsoft),
            (&["0 example-com.o-v1.mx.microsoft"], Microsoft),
            (&["1 mta5.am0.yahoodns.net"], Yahoo),
            (&["20 aspmx.l.google.com", "10 mx.example.net"], Other),
            (&["10 notgoogle.com", "10 google.com"], Other),
            (&[], Other),
        ];
        for (records, provider) in cases {
            let texts: Vec<String> = records.iter().map(|&record| record.to_owned()).collect();
            assert_eq!(
                MailboxProvider::of_mail_servers(&texts),
                provider,
                "{records:?}"
            );
        }
    }

    #[test]
    fn the_providers_own_domains_need_no_look_up() {
        let of = MailboxProvider::of_own_domain;
        assert_eq!(of("gmail.com"), Some(MailboxProvider::Google));
        assert_eq!(of("hotmail.co.uk"), Some(MailboxProvider::Microsoft));
        assert_eq!(of("rocketmail.com"), Some(MailboxProvider::Yahoo));
        assert_eq!(of("example.com"), None);
    }
}
