//! The identities that SES names as not verified, pure. An account in the SES sandbox
//! sends to verified recipients only, so the text of a rejection is the same for a sender
//! and for a recipient: "Email address is not verified. The following identities failed
//! the check in region EU-WEST-1: a@example.com, b@example.org".

use super::outcome::{Blame, SendOutcome};

/// The text before the region and the identities.
const BEFORE: &str = "failed the check in region";

/// The outcome of a mail with these addresses. If it blames the sender but names the
/// recipient alone, the recipient is to blame.
pub(super) fn blame_named(outcome: SendOutcome, text: &str, from: &str, to: &str) -> SendOutcome {
    match outcome {
        SendOutcome::Rejected {
            blame: Blame::Sender,
            reason,
        } if names_recipient_alone(text, from, to) => SendOutcome::Rejected {
            blame: Blame::Recipient,
            reason,
        },
        outcome @ (SendOutcome::Rejected { .. }
        | SendOutcome::Accepted { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::Throttled { .. }
        | SendOutcome::AccountUnusable { .. }
        | SendOutcome::Unavailable { .. }
        | SendOutcome::Unknown { .. }) => outcome,
    }
}

fn names_recipient_alone(text: &str, from: &str, to: &str) -> bool {
    let text = text.to_lowercase();
    let Some((_, named)) = text.split_once(BEFORE) else {
        return false;
    };
    let Some((_, named)) = named.split_once(':') else {
        return false;
    };
    let is_border = |c: char| c.is_whitespace() || "<>,;\"'()[]".contains(c);
    let words = named.split(is_border);
    let words = words.map(|word| word.trim_end_matches('.'));
    let mut addresses = words.filter(|word| word.contains('@')).peekable();
    let (from, to) = (from.to_lowercase(), to.to_lowercase());
    from != to && addresses.peek().is_some() && addresses.all(|address| address == to)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "zoe@example.com";
    const TO: &str = "Ada.L+x@example.org";

    #[test]
    fn the_recipient_is_to_blame_if_it_alone_is_named() {
        let begin =
            "Email address is not verified. The following identities failed the check in region";
        for (named, from, expected) in [
            ("EU-WEST-1: Ada.L+x@example.org", FROM, true),
            ("EU-WEST-1: ada.l+x@EXAMPLE.ORG", FROM, true),
            ("EU-WEST-1: Ada Lovelace <ada.l+x@example.org>.", FROM, true),
            ("US-EAST-1: \"Ada, L\" <ada.l+x@example.org>", FROM, true),
            ("eu-west-1:ada.l+x@example.org", FROM, true),
            ("EU-WEST-1: zoe@example.com", FROM, false),
            ("EU-WEST-1: Zoe <zoe@example.com>", FROM, false),
            (
                "EU-WEST-1: zoe@example.com, ada.l+x@example.org",
                FROM,
                false,
            ),
            (
                "EU-WEST-1: ada.l+x@example.org, zoe@example.com",
                FROM,
                false,
            ),
            ("EU-WEST-1: not.ada.l+x@example.org", FROM, false),
            ("EU-WEST-1: ada.l+x@example.org.uk", FROM, false),
            ("EU-WEST-1: example.com", FROM, false),
            (
                "EU-WEST-1: arn:aws:ses:x:1:identity/example.com",
                FROM,
                false,
            ),
            ("EU-WEST-1:", FROM, false),
            ("EU-WEST-1", FROM, false),
            // The sender comes first if it is also the recipient.
            ("EU-WEST-1: ada.l+x@example.org", TO, false),
        ] {
            let text = format!("{begin} {named}");
            assert_eq!(names_recipient_alone(&text, from, TO), expected, "{text}");
        }
        for text in ["", "Email address is not verified.", TO, "region: a@x.org"] {
            assert!(!names_recipient_alone(text, FROM, TO), "{text}");
        }
    }
}
