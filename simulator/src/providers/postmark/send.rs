//! `POST /email` and `POST /email/batch`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::SecondsFormat;
use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::check::{Recipients, Refusal, check};
use super::model::Email;
use super::{TEST_TOKEN, accepts_json, account_refused, refusal, server_error, throttled};
use crate::capture::Accepted;
use crate::clock;
use crate::credentials::CredentialKind;
use crate::faults::AccountProblem;
use crate::mail::{Body, CapturedAttachment, Envelope, Recipient, Visible, with_kinds};
use crate::providers::{Provider, finish, record};
use crate::recipients::{AcceptedReply, Decision, decide, is_rejected};
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::state::State;

const BATCH_MAX: usize = 500;
const INACTIVE: &str = "Inactive recipients are ones that have generated a hard bounce, a spam \
    complaint, or a manual suppression.";

/// One message: the response's status shows a rejection.
pub(super) fn one(state: &State, request: &Request, token: &str) -> Outcome {
    let email: Email = match parse(request, token) {
        Ok(email) => email,
        Err(refusal) => return refusal.into(),
    };
    let recipients = match check(&email) {
        Ok(recipients) => recipients,
        Err(refused) => return refusal(refused.code, &refused.message).into(),
    };
    let accepted_reply = match decision(state, recipients.all()) {
        Ok(accepted_reply) => accepted_reply,
        Err(answer) => return answer.into(),
    };
    match deliver(state, token, email, recipients) {
        Ok(entry) => finish(
            accepted_reply,
            reply::json(StatusCode::OK, entry.to_string()),
        ),
        Err(refused) => refusal(refused.code, &refused.message).into(),
    }
}

/// Up to 500 messages: status 200, and an entry for each message.
pub(super) fn batch(state: &State, request: &Request, token: &str) -> Outcome {
    let emails: Vec<Email> = match parse(request, token) {
        Ok(emails) => emails,
        Err(refusal) => return refusal.into(),
    };
    if emails.len() > BATCH_MAX {
        let message = "Batches may contain at most 500 messages.";
        return refusal(410, message).into();
    }
    let checked: Vec<_> = emails.iter().map(check).collect();
    let recipients = checked.iter().flatten().flat_map(Recipients::all);
    let accepted_reply = match decision(state, recipients) {
        Ok(accepted_reply) => accepted_reply,
        Err(answer) => return answer.into(),
    };
    let entries: Vec<Value> = emails
        .into_iter()
        .zip(checked)
        .map(|(email, recipients)| {
            recipients
                .and_then(|recipients| deliver(state, token, email, recipients))
                .unwrap_or_else(
                    |refused| json!({"ErrorCode": refused.code, "Message": refused.message}),
                )
        })
        .collect();
    let body = Value::Array(entries).to_string();
    finish(accepted_reply, reply::json(StatusCode::OK, body))
}

fn parse<T: DeserializeOwned>(request: &Request, token: &str) -> Result<T, Answer> {
    if request.too_large {
        return Err(reply::empty(StatusCode::PAYLOAD_TOO_LARGE));
    }
    if !request.is_json() {
        return Err(reply::empty(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    accepts_json(request)?;
    if CredentialKind::of(token) == CredentialKind::NoCredit {
        return Err(account_refused(AccountProblem::Limit));
    }
    if request.body.is_empty() {
        return Err(refusal(409, "JSON required."));
    }
    serde_json::from_slice(&request.body).map_err(|cause| {
        if cause.is_data() {
            refusal(403, &format!("The JSON does not fit this call: {cause}"))
        } else {
            refusal(402, &format!("Received invalid JSON input: {cause}"))
        }
    })
}

fn decision<'a>(
    state: &State,
    recipients: impl Iterator<Item = &'a str>,
) -> Result<AcceptedReply, Answer> {
    match decide(state, Provider::Postmark, recipients) {
        Decision::Accept(accepted_reply) => Ok(accepted_reply),
        Decision::Throttle { .. } => Err(throttled()),
        Decision::Error => Err(server_error()),
        Decision::Reject(problem) => Err(account_refused(problem)),
    }
}

/// Records an accepted message and builds its entry in the response.
fn deliver(
    state: &State,
    token: &str,
    email: Email,
    recipients: Recipients,
) -> Result<Value, Refusal> {
    let inactive: Vec<_> = recipients
        .all()
        .filter(|address| is_rejected(address))
        .map(str::to_ascii_lowercase)
        .collect();
    let inactive_list = inactive.join(", ");
    if inactive.len() == recipients.all().count() {
        return Err(Refusal::new(
            406,
            format!(
                "You tried to send to recipient(s) that have been marked as inactive. Found \
                 inactive addresses: {inactive_list}. {INACTIVE}"
            ),
        ));
    }
    let id = state.ids.uuid();
    let entry = json!({
        "To": email.to,
        "SubmittedAt": clock::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        "MessageID": id,
        "ErrorCode": 0,
        "Message": match (token == TEST_TOKEN, inactive.is_empty()) {
            (true, _) => "Test job accepted".to_owned(),
            (false, true) => "OK".to_owned(),
            (false, false) => format!(
                "Message OK, but will not deliver to these inactive addresses: {inactive_list}. \
                 {INACTIVE}"
            ),
        },
    });
    if token != TEST_TOKEN {
        let accepted = Accepted {
            provider: Provider::Postmark,
            credential: token,
            provider_message_id: id,
            recipients: split_recipients(email, recipients, state.captures.keeps_bodies()),
        };
        record(state, accepted);
    }
    Ok(entry)
}

fn split_recipients(email: Email, recipients: Recipients, keep_bodies: bool) -> Vec<Recipient> {
    let attachments = email.attachments.into_iter().flatten();
    let attachments = attachments.map(|file| {
        let content = STANDARD.decode(file.content).unwrap_or_default();
        CapturedAttachment::new(file.name, file.content_type, file.content_id, content)
    });
    let mut body = Body {
        attachments: attachments.collect(),
        html: email
            .html_body
            .filter(|html| keep_bodies && !html.is_empty()),
        text: email
            .text_body
            .filter(|text| keep_bodies && !text.is_empty()),
        as_sent: None,
    };
    if !keep_bodies {
        body = body.without_contents();
    }
    let body = Arc::new(body);
    let headers = email.headers.into_iter().flatten();
    let envelope = Arc::new(Envelope {
        from: email.from,
        reply_to: email.reply_to.filter(|reply_to| !reply_to.is_empty()),
        subject: email.subject.unwrap_or_default(),
        headers: headers.map(|header| (header.name, header.value)).collect(),
        tags: email
            .tag
            .into_iter()
            .filter(|tag| !tag.is_empty())
            .collect(),
        scope: email
            .message_stream
            .unwrap_or_else(|| "outbound".to_owned()),
    });
    let metadata: Vec<_> = email.metadata.into_iter().flatten().collect();
    let visible = recipients.all().nth(1).is_some().then(|| {
        Arc::new(Visible {
            to: recipients.to.clone(),
            cc: recipients.cc.clone(),
        })
    });
    let all = with_kinds(recipients.to, recipients.cc, recipients.bcc);
    let active = all.filter(|(_, address)| !is_rejected(address));
    active
        .map(|(kind, to)| Recipient {
            to,
            kind,
            visible: visible.clone(),
            envelope: Arc::clone(&envelope),
            body: Arc::clone(&body),
            metadata: metadata.clone(),
            substitutions: Vec::new(),
        })
        .collect()
}
