//! Mailboxes in the text forms that providers accept: `a@example.com` and `Name
//! <a@example.com>`.

/// No mail system has longer addresses (RFC 5321 §4.5.3.1).
const ADDRESS_BYTES_MAX: usize = 320;

/// A parsed mailbox; borrows from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mailbox<'a> {
    /// The display name as written, with its quotes; empty if there is none.
    pub(crate) name: &'a str,
    pub(crate) address: &'a str,
}

impl<'a> Mailbox<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let mailbox = match text.rfind('<') {
            Some(open) => Self {
                name: text[..open].trim(),
                address: text[open + 1..].strip_suffix('>')?.trim(),
            },
            None => Self {
                name: "",
                address: text,
            },
        };
        is_address(mailbox.address).then_some(mailbox)
    }

    /// Whether the name is valid without quotes: atoms and spaces, or non-ASCII letters.
    pub(crate) fn name_is_well_formed(&self) -> bool {
        let quoted = self.name.len() >= 2 && self.name.starts_with('"') && self.name.ends_with('"');
        quoted || self.name.chars().all(is_phrase_character)
    }
}

/// Whether the text has the shape of an address. Providers are not stricter than this.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let local_fits = |c: char| !c.is_control() && (quoted || !is_special(c));
    let domain_fits = |c: char| !c.is_control() && c != '_' && !is_special(c);
    text.len() <= ADDRESS_BYTES_MAX
        && !local.is_empty()
        && !domain.is_empty()
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !domain.contains("..")
        && local.chars().all(local_fits)
        && domain.chars().all(domain_fits)
}

/// The domain of an address or mailbox, without the closing angle bracket.
pub(crate) fn domain_of(address: &str) -> &str {
    address
        .rsplit_once('@')
        .map_or("", |(_, domain)| domain.trim_end_matches('>'))
}

/// Splits a list at the commas outside quotes and angle brackets.
pub(crate) fn split_list(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// `Name <address>`, or the bare address if there is no name.
pub(crate) fn display(name: Option<&str>, address: &str) -> String {
    match name {
        Some(name) if !name.is_empty() => format!("{name} <{address}>"),
        _ => address.to_owned(),
    }
}

fn is_special(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"'
        )
}

fn is_phrase_character(c: char) -> bool {
    c == ' ' || (!c.is_ascii() && !c.is_control()) || is_atom_character(c)
}

fn is_atom_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::{Mailbox, domain_of, is_address, split_list};

    #[test]
    fn a_mailbox_has_a_name_and_an_address() {
        let mailbox = Mailbox::parse("\"Smith, Ann\" <ann@example.com>").expect("is a mailbox");
        assert_eq!(mailbox.name, "\"Smith, Ann\"");
        assert_eq!(mailbox.address, "ann@example.com");
        assert!(mailbox.name_is_well_formed());
        assert!(Mailbox::parse("ann").is_none());
        assert!(Mailbox::parse("Ann <ann@example.com").is_none());
    }

    #[test]
    fn a_name_with_punctuation_needs_quotes() {
        let mailbox = Mailbox::parse("Example, Inc. <a@example.com>").expect("is a mailbox");
        assert!(!mailbox.name_is_well_formed());
    }

    #[test]
    fn a_list_is_split_outside_quotes_only() {
        let list = "\"Smith, Ann\" <ann@example.com>, bob@example.com,";
        assert_eq!(
            split_list(list),
            ["\"Smith, Ann\" <ann@example.com>", "bob@example.com"]
        );
    }

    #[test]
    fn texts_that_are_no_address_are_rejected() {
        for text in [
            "",
            "a",
            "@example.com",
            "a@",
            "a b@example.com",
            "a@b@c",
            "a@x..y",
        ] {
            assert!(!is_address(text), "{text}");
        }
        assert!(is_address("a.b+c@example.com"));
        assert_eq!(domain_of("A <a@example.com>"), "example.com");
    }
}
