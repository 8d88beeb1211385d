//! Email addresses. An [`EmailAddress`] and a [`Mailbox`] are always valid, so code can
//! write them into a header, a URL or a provider's request without another check. Domains
//! are stored in their ASCII (Punycode) form. The local part must be ASCII, because no
//! provider accepts anything else (SES documents it).

use std::fmt;
use std::str::FromStr;

use lettre::message::Mailbox as HeaderMailbox;
use sha2::{Digest, Sha256};

use crate::text::{encoded_word, header};

/// The longest address that fits an SMTP path (RFC 5321, 4.5.3.1.3, less the
/// two angle brackets), in bytes.
const ADDRESS_BYTES_MAX: usize = 254;
const NAME_CHARS_MAX: usize = 255;
/// Longer texts are refused without parsing. A quoted Unicode name with an address fits.
const MAILBOX_BYTES_MAX: usize = 2_500;

/// Why a text is not an address. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("must not be empty")]
    Empty,
    /// A control character, which would allow header injection.
    #[error("must not contain control characters such as line breaks or NUL")]
    Control,
    #[error("must not be longer than 254 characters")]
    TooLong,
    #[error("must not carry a display name of more than 255 characters")]
    NameTooLong,
    #[error("must have only ASCII characters before the @")]
    LocalPartNotAscii,
    /// An encoded word (RFC 2047) in the local part. A mail server that decodes it may
    /// deliver to another address than the one that was validated.
    #[error("must not have an encoded word (=?…) before the @")]
    EncodedWord,
    #[error("must have a valid domain after the @")]
    Domain,
    #[error("must be an email address such as ada@example.com")]
    Malformed,
}

/// The SHA-256 of an address in its normal form (trimmed, lower case).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, sqlx::Type)]
#[sqlx(transparent)]
pub struct AddressHash(pub [u8; 32]);

impl AddressHash {
    /// The lower-case hexadecimal form of the API.
    #[must_use]
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for AddressHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..4]))
    }
}

/// One address, `local@domain`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EmailAddress {
    text: String,
    at: usize,
}

impl EmailAddress {
    /// Parses an address. Trims white space and converts an internationalised domain to
    /// Punycode.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let mailbox = Mailbox::parse(text)?;
        match mailbox.name {
            None => Ok(mailbox.address),
            Some(_) => Err(AddressError::Malformed),
        }
    }

    fn from_parts(local: &str, domain: &str) -> Result<Self, AddressError> {
        if !local.is_ascii() {
            return Err(AddressError::LocalPartNotAscii);
        }
        let minimal = minimally_quoted(local);
        let local = minimal.as_deref().unwrap_or(local);
        if encoded_word::may_contain(local) {
            return Err(AddressError::EncodedWord);
        }
        let domain = ascii_domain(domain).ok_or(AddressError::Domain)?;
        let text = format!("{local}@{domain}");
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        lettre::Address::from_str(&text).map_err(|_| AddressError::Malformed)?;
        Ok(Self {
            at: local.len(),
            text,
        })
    }

    /// The address for a provider: the local part as given, without needless quotes and
    /// backslashes, and the domain in lower-case ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the `@`.
    #[must_use]
    pub fn local_part(&self) -> &str {
        &self.text[..self.at]
    }

    /// The part after the `@`, in lower-case ASCII.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.text[self.at + 1..]
    }

    /// The address for a page that shows whom it is about to someone who may not know it:
    /// `a•••@example.com`. The number of dots says nothing of the local part, and one of a single
    /// character is not shown. A domain of other than ASCII letters is written in its own.
    #[must_use]
    pub fn masked(&self) -> String {
        let local = self.local_part();
        let inner = local
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let mut visible = inner.unwrap_or(local).chars();
        let first = visible.next().filter(char::is_ascii_alphanumeric);
        let first = first.filter(|_| visible.next().is_some());
        let (domain, is_unicode) = idna::domain_to_unicode(self.domain());
        let domain = if is_unicode.is_ok() {
            domain
        } else {
            self.domain().to_owned()
        };
        let first = first.map(String::from).unwrap_or_default();
        format!("{first}•••@{domain}")
    }

    /// The hash that identifies the address in lists, suppressions and logs.
    #[must_use]
    pub fn hash(&self) -> AddressHash {
        AddressHash(Sha256::digest(self.text.to_ascii_lowercase().as_bytes()).into())
    }
}

/// Writes the hash, because logs must not contain addresses.
impl fmt::Debug for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmailAddress({:?})", self.hash())
    }
}

/// An address with an optional display name, `Ada Lovelace <ada@example.com>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    address: EmailAddress,
}

impl Mailbox {
    /// Parses an address with or without a display name (an RFC 5322 mailbox with quoted
    /// names and Unicode).
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        if text.len() > MAILBOX_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(AddressError::Control);
        }
        let (name, address) = split_name(text);
        let (local, domain) = address.rsplit_once('@').ok_or(AddressError::Malformed)?;
        let address = EmailAddress::from_parts(local, domain)?;
        Self::named(name.map(unquote).transpose()?, address)
    }

    /// An address with a display name. An empty name is none.
    ///
    /// # Errors
    /// The first rule that the name breaks.
    pub fn named(name: Option<String>, address: EmailAddress) -> Result<Self, AddressError> {
        let name = name.filter(|name| !name.is_empty());
        if name
            .as_deref()
            .is_some_and(|name| name.chars().any(char::is_control))
        {
            return Err(AddressError::Control);
        }
        if name.as_deref().is_some_and(encoded_word::contains_control) {
            return Err(AddressError::Control);
        }
        if name
            .as_ref()
            .is_some_and(|name| name.chars().count() > NAME_CHARS_MAX)
        {
            return Err(AddressError::NameTooLong);
        }
        Ok(Self { name, address })
    }

    /// The display name without quotes, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address without the display name.
    #[must_use]
    pub fn address(&self) -> &EmailAddress {
        &self.address
    }

    /// The RFC 5322 form. The name is quoted if necessary and may contain Unicode.
    #[must_use]
    pub fn to_header(&self) -> String {
        self.to_string()
    }

    /// The RFC 5322 form in ASCII. A Unicode name becomes encoded words (RFC 2047).
    #[must_use]
    pub fn to_encoded_header(&self) -> String {
        let value = header::mailbox(self.name(), self.address.as_str(), 0);
        value.replace("\r\n", "")
    }

    fn header_mailbox(&self) -> HeaderMailbox {
        let address =
            lettre::Address::new_dangerous(self.address.local_part(), self.address.domain());
        HeaderMailbox::new(self.name.clone(), address)
    }
}

impl From<EmailAddress> for Mailbox {
    fn from(address: EmailAddress) -> Self {
        Self {
            name: None,
            address,
        }
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.header_mailbox(), f)
    }
}

/// The lower-case ASCII form of a domain name. `None` if it is invalid or has fewer than two
/// labels. IP addresses in brackets are invalid, because no provider sends to them.
#[must_use]
pub fn ascii_domain(text: &str) -> Option<String> {
    // Case must not matter. The checks below accept some names only in lower case, such as
    // one with hyphens at the third and fourth position. IDNA maps non-ASCII letters.
    let text = text.to_ascii_lowercase();
    let domain = if is_plain_domain(&text) {
        text
    } else {
        idna::domain_to_ascii_strict(&text).ok()?
    };
    let last_label = domain.rsplit_once('.')?.1;
    let numeric = last_label.bytes().all(|byte| byte.is_ascii_digit());
    (!numeric && !last_label.is_empty()).then_some(domain)
}

/// Whether `text` is already in ASCII form. This common case skips the IDNA processing.
fn is_plain_domain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && !label.starts_with("xn--")
                && label
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })
}

/// A quoted local part without needless quotes and backslashes. Both forms are the same
/// mailbox (RFC 5321, 4.1.2) and so must have the same hash. `None` if the local part is not
/// a valid quoted string.
fn minimally_quoted(local: &str) -> Option<String> {
    let text = quoted_text(local)?;
    let is_atom = |part: &str| {
        let is_text = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        !part.is_empty() && part.chars().all(is_text)
    };
    if text.split('.').all(is_atom) {
        return Some(text);
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("\"{escaped}\""))
}

/// The content of a text that is one quoted string (RFC 5322, 3.2.4). `None` if it is not.
fn quoted_text(text: &str) -> Option<String> {
    let quoted = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut unquoted = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        unquoted.push(match character {
            '\\' => characters.next()?,
            '"' => return None,
            other => other,
        });
    }
    Some(unquoted)
}

/// Splits `name <address>`. A text without angle brackets is an address. An angle bracket in
/// quotes belongs to the name or the local part.
fn split_name(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_suffix('>') else {
        return (None, text);
    };
    let (mut is_quoted, mut is_escaped, mut open) = (false, false, None);
    for (at, character) in rest.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '<' if !is_quoted => open = Some(at),
            _ => {}
        }
    }
    match open {
        Some(at) => (Some(rest[..at].trim()), rest[at + 1..].trim()),
        None => (None, text),
    }
}

/// Removes the RFC 5322 quoting of a name. A name that is not exactly one quoted string is
/// parsed by lettre, which needs an address after it. The address is a plain one, because
/// lettre accepts no quoted local part there. A single quoted string is parsed here, because
/// lettre drops spaces from it.
fn unquote(name: &str) -> Result<String, AddressError> {
    const PLAIN: &str = "name@example.com";
    if let Some(unquoted) = quoted_text(name) {
        return Ok(unquoted.trim().to_owned());
    }
    if !name.contains(['"', '\\', '(', ')', '<', '>', '@', ',', ';', ':']) {
        return Ok(name.to_owned());
    }
    let text = format!("{name} <{PLAIN}>");
    let parsed = HeaderMailbox::from_str(&text).map_err(|_| AddressError::Malformed)?;
    if parsed.email.as_ref() as &str != PLAIN {
        return Err(AddressError::Malformed);
    }
    parsed.name.ok_or(AddressError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_trimmed_and_hashed_in_its_normal_form() {
        let address = EmailAddress::parse("  Ada.L+x@Example.COM ").unwrap();
        assert_eq!(address.as_str(), "Ada.L+x@example.com");
        assert_eq!(
            address.hash(),
            EmailAddress::parse("ada.l+x@example.com").unwrap().hash()
        );
    }

    #[test]
    fn needless_quotes_do_not_change_the_address() {
        for (text, plain) in [
            (r#""ada"@example.com"#, "ada@example.com"),
            (r#""a\da.l"@example.com"#, "ada.l@example.com"),
            (r#""ada l"@example.com"#, r#""ada l"@example.com"#),
            (r#""ada."@example.com"#, r#""ada."@example.com"#),
            (r#""a..b"@example.com"#, r#""a..b"@example.com"#),
            (r#""a@b"@example.com"#, r#""a@b"@example.com"#),
            (r#""a\ b"@example.com"#, r#""a b"@example.com"#),
            (r#""a\"b\\"@example.com"#, r#""a\"b\\"@example.com"#),
            (r#""a<b>"@example.com"#, r#""a<b>"@example.com"#),
            (r#"<"a<b>"@example.com>"#, r#""a<b>"@example.com"#),
        ] {
            let address = EmailAddress::parse(text).unwrap();
            assert_eq!(address.as_str(), plain);
            assert_eq!(address.hash(), EmailAddress::parse(plain).unwrap().hash());
        }
    }

    #[test]
    fn names_with_quotes_commas_and_unicode_are_preserved() {
        for (text, name) in [
            ("Ada <ada@example.com>", "Ada"),
            ("\"Lovelace, Ada\" <ada@example.com>", "Lovelace, Ada"),
            (
                r#""Ada \"Countess\" L" <ada@example.com>"#,
                r#"Ada "Countess" L"#,
            ),
            ("Zoë Müller 📬 <zoe@example.com>", "Zoë Müller 📬"),
            (r#"J. Doe <"j doe"@example.com>"#, "J. Doe"),
            (r#""Doe, J." <"j doe"@example.com>"#, "Doe, J."),
            (r#"J. Doe <"a<b"@example.com>"#, "J. Doe"),
            (
                r#""a <b@c.example>" <"a@b"@example.com>"#,
                "a <b@c.example>",
            ),
            ("Grüße  äus <ada@example.com>", "Grüße  äus"),
            (r#""Doe,  J.  X" <ada@example.com>"#, "Doe,  J.  X"),
            (r#""  Doe, J. " <ada@example.com>"#, "Doe, J."),
            (
                "=?utf-8?q?caf=C3=A9?= <ada@example.com>",
                "=?utf-8?q?caf=C3=A9?=",
            ),
            (
                r#""(x) [y] {z}; \\ :" <ada@example.com>"#,
                r"(x) [y] {z}; \ :",
            ),
        ] {
            let mailbox = Mailbox::parse(text).unwrap();
            assert_eq!(mailbox.name(), Some(name));
            assert_eq!(Mailbox::parse(&mailbox.to_header()).unwrap(), mailbox);
            assert!(mailbox.to_encoded_header().is_ascii());
        }
    }

    #[test]
    fn international_domains_become_punycode() {
        let address = EmailAddress::parse("info@Bücher.example").unwrap();
        assert_eq!(address.domain(), "xn--bcher-kva.example");
    }

    #[test]
    fn the_case_of_a_domain_makes_no_difference() {
        for domain in [
            "example.com",
            "ab--cd.example.org",
            "r3---sn.example.org",
            "a--b--c.example",
            "xn--bcher-kva.example",
            "bücher.example",
            "σασ.example",
            "пример.example",
            "ab--cd.bücher.example",
            "xn--a.example",
            "-b.example",
            "b-.example",
            "a_b.example",
            "127.0.0.1",
            "localhost",
        ] {
            let lower = ascii_domain(domain);
            let mixed: String = domain
                .chars()
                .enumerate()
                .flat_map(|(nth, letter)| match nth % 2 {
                    0 => letter.to_uppercase().collect::<Vec<_>>(),
                    _ => vec![letter],
                })
                .collect();
            assert_eq!(ascii_domain(&mixed), lower, "{domain}");
            let upper = domain.to_ascii_uppercase();
            assert_eq!(ascii_domain(&upper), lower, "{domain}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_their_reason() {
        use AddressError as E;
        for (text, reason) in [
            ("", E::Empty),
            ("   ", E::Empty),
            ("a@b.com\r\nBcc: x@y.com", E::Control),
            ("a\0@b.com", E::Control),
            ("plain", E::Malformed),
            ("a@localhost", E::Domain),
            ("a@127.0.0.1", E::Domain),
            ("a@[127.0.0.1]", E::Domain),
            ("a@-b.com", E::Domain),
            ("a@b..com", E::Domain),
            ("@b.com", E::Malformed),
            ("a b@c.com", E::Malformed),
            (r#""a"b"@c.com"#, E::Malformed),
            (r#""a\"@c.com"#, E::Malformed),
            (r#"""@c.com"#, E::Malformed),
            (r#"a"b c"d@e.com"#, E::Malformed),
            (r#"Ada <"a<b@c.com>"#, E::Malformed),
            ("a@b.com, c@d.com", E::Malformed),
            ("jörg@example.com", E::LocalPartNotAscii),
            ("Ada <ada@example.com> <x@y.com>", E::Malformed),
            ("=?utf-8?q?evil=40evil.org=3e?=@b.com", E::EncodedWord),
            (r#""=\?utf-8?q?evil=40evil.org=3e?="@b.com"#, E::EncodedWord),
            ("=?utf-8?q?A=0D=0ABcc?= <a@b.com>", E::Control),
        ] {
            assert_eq!(Mailbox::parse(text).unwrap_err(), reason, "{text:?}");
        }
        let long = format!("{}@example.com", "a".repeat(65));
        assert!(EmailAddress::parse(&long).is_err());
    }
}
