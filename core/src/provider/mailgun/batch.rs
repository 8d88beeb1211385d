//! Batches of Mailgun's: `POST /v3/{domain}/messages` with several `to` and
//! `recipient-variables`, which make a private mail for each. Sources: Mailgun's OpenAPI
//! document (1,000 recipients, `%recipient.name%`), its page "Batch Sending" and
//! mailgun/documentation `user_manual.rst` (the variables stand in bodies and in `v:`
//! values); that they stand in `h:` values too is how anymail/django-anymail sends
//! `List-Unsubscribe`, and in no text of the vendor's.
//!
//! One answer, one id for all: each copy is known by its `v:` values. One address that
//! Mailgun does not take has the whole call refused without saying which, and an account
//! may not be let to send batches at all (403): then each goes alone.

use serde_json::{Map, Value, json};

use super::{Mailgun, MailgunApi, field, send_fields};
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::provider::batch::substitutions::Substitutions;
use crate::provider::batch::{BatchAnswer, Batching, share_an_envelope};
use crate::provider::call::{ProviderCall, ProviderReply};
use crate::provider::mail::OutgoingMail;
use crate::provider::outcome::{AccountTrouble, Blame, SendOutcome};
use crate::provider::{AccountAccess, Adapter as _};

/// The most recipients of one call.
const MAILS_MAX: usize = 1_000;
/// What begins a variable: a message that has it in its own texts goes alone, where
/// nothing is filled in.
const VARIABLE: &str = "%recipient";
/// The names of a copy's blanks: this and a number.
const BLANK: &str = "waypost_blank_";

impl Batching for Mailgun {
    fn mails_max(&self) -> usize {
        MAILS_MAX
    }

    fn may_share(&self, to: &EmailAddress) -> bool {
        is_plain(to.as_str())
    }

    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall> {
        let api = MailgunApi::of(access).ok()?;
        let (first, _) = mails.split_first().filter(|_| share_an_envelope(mails))?;
        if !mails.iter().all(|mail| self.may_share(mail.to.address())) {
            return None;
        }
        let mut blanks = Substitutions::new(BLANK.to_owned(), |name, number| {
            format!("%recipient.{name}{number}%")
        });
        let mut shared = first.clone();
        shared.html = blanks.shared_option(mails.iter().map(|mail| mail.html.as_deref()))?;
        shared.text = blanks.shared_option(mails.iter().map(|mail| mail.text.as_deref()))?;
        shared.headers = shared_headers(mails, &mut blanks)?;
        let mut fields = send_fields(&shared);
        // What the copies have of their own is not looked at: it is filled in, once.
        let own = send_fields(first);
        let names = mails.iter().map(|mail| mail.to.to_header());
        let texts = own.iter().map(|(_, value)| value.clone()).chain(names);
        if texts.into_iter().any(|text| text.contains(VARIABLE)) {
            return None;
        }
        fields.retain(|(name, _)| name != "to");
        fields.extend(mails.iter().map(|mail| field("to", mail.to.to_header())));
        let ids = first.correlation().map(|(name, _)| name);
        for (name, value) in &mut fields {
            if let Some(id) = name.strip_prefix("v:").filter(|name| ids.contains(name)) {
                *value = format!("%recipient.{id}%");
            }
        }
        let variables = mails.iter().enumerate().map(|(nth, mail)| {
            let address = mail.to.address().as_str().to_owned();
            (address, Value::Object(variables(mail, &blanks, nth)))
        });
        let variables = Value::Object(variables.collect());
        fields.push(field("recipient-variables", variables.to_string()));
        Some(api.post_message(fields))
    }

    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchAnswer {
        match self.read_send(reply, now) {
            // The account is known, and may not send so many at once.
            SendOutcome::Rejected { reason, .. }
            | SendOutcome::AccountUnusable {
                trouble: AccountTrouble::UntilMended,
                reason,
                ..
            } if reply.status == 403 => BatchAnswer::apart(mails, reason),
            SendOutcome::Rejected {
                reason,
                blame:
                    Blame::Message | Blame::Recipient | Blame::Mailbox | Blame::SenderForRecipient,
            } => BatchAnswer::apart(mails, reason),
            outcome @ (SendOutcome::Rejected {
                blame: Blame::Sender,
                ..
            }
            | SendOutcome::Deferred { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Accepted { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. }) => BatchAnswer::all(mails, outcome),
        }
    }
}

/// Whether Mailgun finds the variables of this address by it, as it stands. For addresses
/// with a `+` it does not (github.com/mailgun/mailgun.js/issues/413): the recipient reads
/// the variables' names, and our ids are lost. What may be written in another way, or is
/// no letter, digit, dot, `-` or `_`, is not tried.
fn is_plain(address: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_@".contains(&byte);
    address.bytes().all(fits) && address.matches('@').count() == 1
}

/// The headers of all, by their places: each has the same ones in the same order.
fn shared_headers<'a>(
    mails: &'a [OutgoingMail],
    blanks: &mut Substitutions<'a>,
) -> Option<Vec<(String, String)>> {
    let (first, _) = mails.split_first()?;
    if mails
        .iter()
        .any(|mail| mail.headers.len() != first.headers.len())
    {
        return None;
    }
    let mut shared = Vec::with_capacity(first.headers.len());
    for (place, (name, _)) in first.headers.iter().enumerate() {
        let headers = mails.iter().map(|mail| &mail.headers[place]);
        let values: Vec<&str> = headers
            .filter(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
            .collect();
        if values.len() != mails.len() {
            return None;
        }
        shared.push((name.clone(), blanks.shared(&values)?));
    }
    Some(shared)
}

fn variables(mail: &OutgoingMail, blanks: &Substitutions<'_>, copy: usize) -> Map<String, Value> {
    let ids = mail
        .correlation()
        .map(|(name, id)| (name.to_owned(), json!(id)));
    let values = blanks.values(copy).enumerate();
    let values = values.map(|(number, value)| (format!("{BLANK}{number}"), json!(value)));
    ids.into_iter().chain(values).collect()
}
