//! SendGrid's batches: `POST /v3/mail/send` with a personalization for each recipient, and
//! `recipient_substitutions` for the words in which the bodies differ. Sources: OAI (1,000
//! personalizations with their own `custom_args` and `headers`; 10,000 bytes of
//! substitutions each, applied to subject, reply-to and content) and SendGrid's page
//! "Errors" (a refusal names the personalization: `personalizations.0.to.0.email`).
//!
//! The reply has one `X-Message-Id` for all mails; their `custom_args` tell them apart. A
//! refusal covers the whole request: the named recipients are refused, and no mail was sent
//! to the others.

use serde_json::{Map, Value, json};

use super::{Sendgrid, SendgridApi, blame_for_fields, headers, personalization, send_body};
use crate::clock::Timestamp;
use crate::provider::batch::substitutions::Substitutions;
use crate::provider::batch::{BatchReply, Batching, have_same_envelope};
use crate::provider::call::{ProviderCall, ProviderReply};
use crate::provider::mail::OutgoingMail;
use crate::provider::outcome::{Blame, SendOutcome};
use crate::provider::{AccountAccess, Adapter as _};

/// The most personalizations of one mail (OAI).
const MAILS_MAX: usize = 1_000;
/// The most bytes of a recipient's substitutions, of 10,000 (OAI): SendGrid does not say how
/// it counts the JSON around them.
const SUBSTITUTIONS_BYTES_MAX: usize = 9_000;

impl Batching for Sendgrid {
    fn mails_max(&self) -> usize {
        MAILS_MAX
    }

    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall> {
        let api = SendgridApi::of(access).ok()?;
        let (first, _) = mails.split_first().filter(|_| have_same_envelope(mails))?;
        // The author of the message cannot know the random part of the attempt's id.
        let id = first.attempt_id.0.simple().to_string();
        let mark = format!("-wp{}-", &id[16..]);
        let mut substitutions =
            Substitutions::new(mark.clone(), |mark, number| format!("{mark}{number}-"));
        let html = substitutions.template_option(mails.iter().map(|mail| mail.html.as_deref()))?;
        let text = substitutions.template_option(mails.iter().map(|mail| mail.text.as_deref()))?;
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
            let mut own = personalization(mail);
            let words = recipient_substitutions(&substitutions, nth)?;
            if !words.is_empty() {
                own["substitutions"] = Value::Object(words);
            }
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
        Some(api.authorize(ProviderCall::post_mail(url, &body, first)))
    }

    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchReply {
        match self.read_send(reply, now) {
            SendOutcome::Rejected { reason, blame } if !blame.holds_for_all_recipients() => {
                refused_recipients(reply, mails)
                    .unwrap_or_else(|| BatchReply::retry_each(mails, reason))
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

/// A recipient's substitutions; `None` if they are too long.
fn recipient_substitutions(
    substitutions: &Substitutions<'_>,
    index: usize,
) -> Option<Map<String, Value>> {
    let own: Vec<(String, &str)> = substitutions.for_recipient(index).collect();
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

/// The result of a refusal that names recipients: those are refused, the others are sent
/// again. `None` if an error is about something else.
fn refused_recipients(reply: &ProviderReply, mails: usize) -> Option<BatchReply> {
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
    let account_outcome = outcomes.iter().flatten().next()?.clone();
    Some(BatchReply {
        outcomes,
        account_outcome,
    })
}
