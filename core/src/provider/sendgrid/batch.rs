//! Batches of SendGrid's: `POST /v3/mail/send` with a personalization for each
//! recipient, and `substitutions` for the words in which the bodies differ. Sources: OAI
//! (1,000 personalizations with own `custom_args` and `headers`; substitutions of 10,000
//! bytes for each, made in subject, reply-to and content) and SendGrid's page "Errors"
//! (a refusal names the personalization: `personalizations.0.to.0.email`).
//!
//! One answer, one `X-Message-Id` for all: each copy is known by its `custom_args`. A
//! refusal is of the whole request, so whom it names is settled, and the others were not
//! sent.

use serde_json::{Map, Value, json};

use super::{Sendgrid, SendgridApi, blame_for_fields, party, send_body};
use crate::clock::Timestamp;
use crate::provider::batch::substitutions::Substitutions;
use crate::provider::batch::{BatchAnswer, Batching, share_an_envelope};
use crate::provider::call::{ProviderCall, ProviderReply};
use crate::provider::mail::OutgoingMail;
use crate::provider::outcome::{Blame, SendOutcome};
use crate::provider::{AccountAccess, Adapter as _};

/// The most personalizations of one mail (OAI).
const MAILS_MAX: usize = 1_000;
/// The most bytes of a copy's substitutions, of 10,000 (OAI): it is not said what of the
/// JSON around them is counted.
const SUBSTITUTIONS_BYTES_MAX: usize = 9_000;

impl Batching for Sendgrid {
    fn mails_max(&self) -> usize {
        MAILS_MAX
    }

    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall> {
        let api = SendgridApi::of(access).ok()?;
        let (first, _) = mails.split_first().filter(|_| share_an_envelope(mails))?;
        // Nobody who wrote the message knew what of the attempt's id is chance.
        let id = first.attempt_id.0.simple().to_string();
        let mark = format!("-wp{}-", &id[16..]);
        let mut blanks =
            Substitutions::new(mark.clone(), |mark, number| format!("{mark}{number}-"));
        let html = blanks.shared_option(mails.iter().map(|mail| mail.html.as_deref()))?;
        let text = blanks.shared_option(mails.iter().map(|mail| mail.text.as_deref()))?;
        let texts = [
            Some(&first.subject),
            first.html.as_ref(),
            first.text.as_ref(),
        ];
        if texts.into_iter().flatten().any(|text| text.contains(&mark)) {
            return None;
        }
        let shares_headers = mails.iter().all(|mail| mail.headers == first.headers);
        let mut personalizations = Vec::with_capacity(mails.len());
        for (nth, mail) in mails.iter().enumerate() {
            let mut own = personalization(mail, substitutions(&blanks, nth)?);
            if !shares_headers {
                own["headers"] = headers(mail);
            }
            personalizations.push(own);
        }
        let mut body = send_body(first, (text.as_deref(), html.as_deref()));
        body["personalizations"] = Value::Array(personalizations);
        if !shares_headers && let Some(body) = body.as_object_mut() {
            body.remove("headers");
        }
        let url = api.base.at("/v3/mail/send");
        Some(api.authorize(ProviderCall::post_json(url, &body)))
    }

    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchAnswer {
        match self.read_send(reply, now) {
            SendOutcome::Rejected {
                reason,
                blame:
                    Blame::Message | Blame::Recipient | Blame::Mailbox | Blame::SenderForRecipient,
            } => named(reply, mails).unwrap_or_else(|| BatchAnswer::apart(mails, reason)),
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

/// Nothing where they are too many for one copy.
fn substitutions(blanks: &Substitutions<'_>, copy: usize) -> Option<Map<String, Value>> {
    let own: Vec<(String, &str)> = blanks.of(copy).collect();
    let quotes = "\"\":\"\",".len();
    let bytes = own
        .iter()
        .map(|(tag, value)| tag.len() + value.len() + quotes);
    (bytes.sum::<usize>() <= SUBSTITUTIONS_BYTES_MAX).then(|| {
        own.into_iter()
            .map(|(tag, value)| (tag, json!(value)))
            .collect()
    })
}

fn personalization(mail: &OutgoingMail, substitutions: Map<String, Value>) -> Value {
    let ids = mail
        .correlation()
        .map(|(name, id)| (name.to_owned(), json!(id)));
    let mut own = json!({
        "to": [party(&mail.to)],
        "custom_args": Map::from_iter(ids),
    });
    if !substitutions.is_empty() {
        own["substitutions"] = Value::Object(substitutions);
    }
    own
}

fn headers(mail: &OutgoingMail) -> Value {
    let headers = mail.headers.iter();
    headers
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

/// Where every error names a recipient: they are refused, and the others go without
/// them. Nothing where an error is about something else.
fn named(reply: &ProviderReply, mails: usize) -> Option<BatchAnswer> {
    if blame_for_fields(reply) != Blame::Recipient {
        return None;
    }
    let document = reply.json()?;
    let mut outcomes = vec![None; mails];
    for error in document["errors"].as_array()? {
        let mut field = error["field"].as_str()?.split('.');
        let ("personalizations", nth, "to") = (field.next()?, field.next()?, field.next()?) else {
            return None;
        };
        let outcome = outcomes.get_mut(nth.parse::<usize>().ok()?)?;
        let text = error["message"].as_str().unwrap_or_default();
        *outcome = Some(SendOutcome::rejected(Blame::Recipient, reply, text));
    }
    let of_account = outcomes.iter().flatten().next()?.clone();
    Some(BatchAnswer {
        outcomes,
        of_account,
    })
}
