//! Mailgun's batches: `POST /v3/{domain}/messages` with several `to` fields and
//! `recipient-variables`, so that each recipient gets a mail of its own. Sources: Mailgun's
//! OpenAPI document (1,000 recipients, `%recipient.name%`), its page "Batch Sending" and
//! mailgun/documentation `user_manual.rst` (variables work in bodies and in `v:` values).
//! The vendor does not document that they work in `h:` values too; anymail/django-anymail
//! sends `List-Unsubscribe` this way.
//!
//! The reply gives one id for all mails; their `v:` values tell them apart. If Mailgun
//! refuses one address, it refuses the whole call without naming the address, and an
//! account may not be allowed to send batches at all (403): each mail is then sent alone.

use serde_json::{Map, Value, json};

use super::{Mailgun, MailgunApi, field, files, send_fields};
use crate::address::{EmailAddress, Mailbox};
use crate::clock::Timestamp;
use crate::provider::batch::substitutions::Substitutions;
use crate::provider::batch::{BatchReply, Batching, have_same_envelope};
use crate::provider::call::{ProviderCall, ProviderReply};
use crate::provider::mail::{OutgoingMail, mailbox_list};
use crate::provider::outcome::{AccountTrouble, SendOutcome};
use crate::provider::{AccountAccess, Adapter as _};

/// The most recipients of one call.
const MAILS_MAX: usize = 1_000;
/// The start of a variable. A message with it in its own texts is sent without batches,
/// where nothing is substituted.
const VARIABLE: &str = "%recipient";
/// The prefix of the names of the substitutions; a number follows.
const SUBSTITUTION_PREFIX: &str = "waypost_blank_";

impl Batching for Mailgun {
    fn mails_max(&self) -> usize {
        MAILS_MAX
    }

    fn can_batch(&self, to: &EmailAddress) -> bool {
        is_plain(to.as_str())
    }

    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall> {
        let api = MailgunApi::of(access).ok()?;
        let (first, _) = mails.split_first().filter(|_| have_same_envelope(mails))?;
        let can_batch = |to: &Mailbox| self.can_batch(to.address());
        if !mails.iter().all(|mail| mail.to.iter().all(can_batch)) {
            return None;
        }
        let mut substitutions =
            Substitutions::new(SUBSTITUTION_PREFIX.to_owned(), |name, number| {
                format!("%recipient.{name}{number}%")
            });
        let mut template = first.clone();
        template.html =
            substitutions.template_option(mails.iter().map(|mail| mail.html.as_deref()))?;
        template.text =
            substitutions.template_option(mails.iter().map(|mail| mail.text.as_deref()))?;
        template.headers = template_headers(mails, &mut substitutions)?;
        let mut fields = send_fields(&template);
        // Mailgun substitutes once, so the recipients' own values need no check.
        let own = send_fields(first);
        let names = mails.iter().map(|mail| mailbox_list(&mail.to));
        let texts = own.iter().map(|(_, value)| value.clone()).chain(names);
        if texts.into_iter().any(|text| text.contains(VARIABLE)) {
            return None;
        }
        fields.retain(|(name, _)| name != "to");
        fields.extend(mails.iter().map(|mail| field("to", mailbox_list(&mail.to))));
        let ids: Vec<_> = first.correlation();
        let ids: Vec<_> = ids.into_iter().map(|(name, _)| name).collect();
        for (name, value) in &mut fields {
            if let Some(id) = name.strip_prefix("v:").filter(|name| ids.contains(name)) {
                *value = format!("%recipient.{id}%");
            }
        }
        let variables = mails.iter().enumerate().filter_map(|(nth, mail)| {
            let address = mail.first_to()?.as_str().to_owned();
            Some((address, Value::Object(variables(mail, &substitutions, nth))))
        });
        let variables = Value::Object(variables.collect());
        fields.push(field("recipient-variables", variables.to_string()));
        Some(api.post_message(fields, files(first)))
    }

    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchReply {
        match self.read_send(reply, now) {
            // The credentials are valid, but the account may not send batches.
            SendOutcome::Rejected { reason, .. }
            | SendOutcome::AccountUnusable {
                trouble: AccountTrouble::Permanent,
                reason,
                ..
            } if reply.status == 403 => BatchReply::retry_each(mails, reason),
            SendOutcome::Rejected { reason, blame } if !blame.holds_for_all_recipients() => {
                BatchReply::retry_each(mails, reason)
            }
            outcome @ (SendOutcome::Rejected { .. }
            | SendOutcome::Deferred { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Accepted { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. }) => BatchReply::all(mails, outcome),
        }
    }
}

/// Whether Mailgun matches this address to its variables. With a `+` it does not
/// (github.com/mailgun/mailgun.js/issues/413): the recipient then sees the names of the
/// variables, and our ids are lost. Addresses with several spellings, or with characters
/// other than letters, digits, `.`, `-` and `_`, are not tried.
fn is_plain(address: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_@".contains(&byte);
    address.bytes().all(fits) && address.matches('@').count() == 1
}

/// The template of the headers. All mails must have the same headers in the same order.
fn template_headers<'a>(
    mails: &'a [OutgoingMail],
    substitutions: &mut Substitutions<'a>,
) -> Option<Vec<(String, String)>> {
    let (first, _) = mails.split_first()?;
    if mails
        .iter()
        .any(|mail| mail.headers.len() != first.headers.len())
    {
        return None;
    }
    let mut template = Vec::with_capacity(first.headers.len());
    for (index, (name, _)) in first.headers.iter().enumerate() {
        let headers = mails.iter().map(|mail| &mail.headers[index]);
        let values: Vec<&str> = headers
            .filter(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
            .collect();
        if values.len() != mails.len() {
            return None;
        }
        template.push((name.clone(), substitutions.template(&values)?));
    }
    Some(template)
}

fn variables(
    mail: &OutgoingMail,
    substitutions: &Substitutions<'_>,
    index: usize,
) -> Map<String, Value> {
    let ids = mail.correlation().into_iter();
    let ids = ids.map(|(name, id)| (name.to_owned(), json!(id)));
    let values = substitutions.values(index).enumerate();
    let values =
        values.map(|(number, value)| (format!("{SUBSTITUTION_PREFIX}{number}"), json!(value)));
    ids.chain(values).collect()
}
