//! Postmark's batches: `POST /email/batch`, a list of complete mails, which may differ in
//! anything. Sources: Postmark's Swagger document (a list in, a list out) and
//! ActiveCampaign/postmark-skills (500 mails, 50 MB, replies in the order of the mails,
//! status 200 even if some are refused).

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use super::{Postmark, PostmarkApi, accepted, read_error, send_body};
use crate::clock::Timestamp;
use crate::http::encoded;
use crate::provider::batch::{BatchReply, Batching};
use crate::provider::call::{CallBody, ProviderCall, ProviderReply};
use crate::provider::files::{json_bytes, json_with_files};
use crate::provider::mail::OutgoingMail;
use crate::provider::outcome::SendOutcome;
use crate::provider::{AccountAccess, Adapter as _};

/// The most mails of one call.
const MAILS_MAX: usize = 500;
/// The most bytes of a call whose mails have files. Larger mails are sent one by one.
const FILES_BYTES_MAX: usize = 2 * 1024 * 1024;

impl Batching for Postmark {
    fn mails_max(&self) -> usize {
        MAILS_MAX
    }

    fn repeats_files(&self) -> bool {
        true
    }

    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall> {
        let api = PostmarkApi::of(access).ok()?;
        // Each mail has its own copy of the files.
        let with_files = mails.iter().filter(|mail| !mail.attachments.is_empty());
        if with_files.map(json_bytes).sum::<usize>() > FILES_BYTES_MAX {
            return None;
        }
        let mut json = vec![b'['];
        for (nth, mail) in mails.iter().enumerate() {
            mail.require_sendable().ok()?;
            if nth > 0 {
                json.push(b',');
            }
            let document = send_body(mail, api.message_stream);
            json.extend(encoded(json_with_files(&document, mail)).flatten());
        }
        json.push(b']');
        let call = ProviderCall {
            method: Method::POST,
            url: api.base.at("/email/batch"),
            headers: HeaderMap::new(),
            body: CallBody::Json(Bytes::from(json)),
        };
        Some(api.with_server_token(call))
    }

    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchReply {
        if !(200..=299).contains(&reply.status) {
            return refused(self.read_send(reply, now), mails);
        }
        let entries = match reply.json() {
            Some(Value::Array(entries)) if entries.len() == mails => entries,
            _ => {
                let text = "not a reply to this batch";
                return BatchReply::all(mails, SendOutcome::unknown(reply, text));
            }
        };
        let outcomes = entries.iter().map(|entry| read_entry(entry, reply, now));
        BatchReply::per_mail(outcomes.collect())
    }
}

/// The result of a call that failed as a whole.
fn refused(outcome: SendOutcome, mails: usize) -> BatchReply {
    match outcome {
        SendOutcome::Rejected { reason, blame } if !blame.holds_for_all_recipients() => {
            BatchReply::retry_each(mails, reason)
        }
        SendOutcome::Rejected { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::AccountUnusable { .. }
        | SendOutcome::Accepted { .. }
        | SendOutcome::Throttled { .. }
        | SendOutcome::Unavailable { .. }
        | SendOutcome::Unknown { .. } => BatchReply::all(mails, outcome),
    }
}

/// Reads an entry, which has the fields of a reply to a single send.
fn read_entry(entry: &Value, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
    let text = entry["Message"].as_str().unwrap_or_default();
    match entry["ErrorCode"].as_i64() {
        Some(0) => accepted(entry),
        None if text.starts_with("Message accepted") => accepted(entry),
        Some(code) => read_error(code, reply, now, text),
        None => SendOutcome::unknown(reply, "not a reply to a send"),
    }
}
