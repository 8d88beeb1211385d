//! `POST /v2/email/outbound-emails`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::json;

use super::check::{check, check_address};
use super::model::{Content, Destination, SendEmail, Simple};
use super::raw::RawMessage;
use super::{Caller, account_refused, error, server_error, throttled};
use crate::address::{Mailbox, domain_of};
use crate::capture::Accepted;
use crate::credentials::CredentialKind;
use crate::domains::is_verified;
use crate::mail::{Body, CapturedAttachment, Envelope, Recipient, Visible, with_kinds};
use crate::providers::{Provider, accept};
use crate::recipients::{Decision, decide, is_rejected};
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::state::State;

/// A valid message, from simple or raw content.
struct Mail {
    envelope: Envelope,
    body: Body,
    to: Vec<String>,
    cc: Vec<String>,
    bcc: Vec<String>,
    metadata: Vec<(String, String)>,
}

impl Mail {
    fn recipients(&self) -> impl Iterator<Item = &str> {
        let all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        all.map(String::as_str)
    }
}

pub(super) fn send(state: &State, request: &Request, caller: &Caller<'_>) -> Outcome {
    match prepare(state, request, caller) {
        Ok(mail) => deliver(state, mail, caller),
        Err(refusal) => refusal.into(),
    }
}

fn prepare(state: &State, request: &Request, caller: &Caller<'_>) -> Result<Mail, Answer> {
    let bad = |name, message: &str| error(state, StatusCode::BAD_REQUEST, name, message);
    if request.too_large {
        let message = "Request entity too large";
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(error(
            state,
            status,
            "RequestEntityTooLargeException",
            message,
        ));
    }
    if caller.credential_kind == CredentialKind::NoSendScope {
        return Err(super::access_denied(state, caller, "SendEmail"));
    }
    let email: SendEmail = serde_json::from_slice(&request.body)
        .map_err(|cause| bad("SerializationException", &cause.to_string()))?;
    check(&email).map_err(|message| bad("BadRequestException", &message))?;
    if caller.credential_kind == CredentialKind::NoCredit {
        let message = "Email sending is disabled for your account.";
        return Err(bad("SendingPausedException", message));
    }
    let missing = |what: String| {
        let message = format!("{what} does not exist");
        Err(error(
            state,
            StatusCode::NOT_FOUND,
            "NotFoundException",
            &message,
        ))
    };
    if let Some(name) = email
        .configuration_set_name
        .as_ref()
        .filter(|name| name.contains("invalid"))
    {
        return missing(format!("Configuration set <{name}>"));
    }
    match email.content {
        Some(Content {
            simple: Some(_), ..
        }) => Ok(from_simple(email)),
        Some(Content { raw: Some(_), .. }) => {
            from_raw(email).map_err(|message| bad("BadRequestException", &message))
        }
        // Templates cannot be created here, so none exists.
        Some(Content { template, .. }) => {
            let name = template.and_then(|template| template.template_name);
            missing(format!("Template {}", name.unwrap_or_default()))
        }
        None => missing("Content".to_owned()),
    }
}

fn deliver(state: &State, mail: Mail, caller: &Caller<'_>) -> Outcome {
    if !is_verified(domain_of(&mail.envelope.from)) {
        let sender = Mailbox::parse(&mail.envelope.from);
        let sender = sender.map_or("", |mailbox| mailbox.address).to_owned();
        return rejected(state, caller, &sender).into();
    }
    let accepted_reply = match decide(state, Provider::Ses, mail.recipients()) {
        Decision::Throttle { .. } => return throttled(state).into(),
        Decision::Error => return server_error(state).into(),
        Decision::Reject(problem) => return account_refused(state, problem).into(),
        Decision::Accept(accepted_reply) => accepted_reply,
    };
    let refused: Vec<_> = mail
        .recipients()
        .filter(|address| is_rejected(address))
        .collect();
    if !refused.is_empty() {
        return rejected(state, caller, &refused.join(", ")).into();
    }
    let id = state.ids.ses();
    let answer = reply::json(StatusCode::OK, json!({ "MessageId": id }).to_string());
    let answer = answer.with_header("x-amzn-requestid", &state.ids.request());
    let accepted = Accepted {
        provider: Provider::Ses,
        credential: caller.access_key_id,
        provider_message_id: id,
        recipients: split_recipients(mail, state.captures.keeps_bodies()),
    };
    accept(state, accepted, accepted_reply, answer)
}

fn rejected(state: &State, caller: &Caller<'_>, identities: &str) -> Answer {
    let message = format!(
        "Email address is not verified. The following identities failed the check in region {}: \
         {identities}",
        caller.region.to_ascii_uppercase()
    );
    error(state, StatusCode::BAD_REQUEST, "MessageRejected", &message)
}

fn from_simple(email: SendEmail) -> Mail {
    let reply_to = email.reply_to_addresses.join(", ");
    let mut envelope = Envelope {
        from: email.from_email_address.unwrap_or_default(),
        reply_to: (!reply_to.is_empty()).then_some(reply_to),
        scope: email.configuration_set_name.unwrap_or_default(),
        ..Envelope::default()
    };
    let mut body = Body::default();
    if let Some(Simple {
        subject,
        body: content,
        headers,
        attachments,
    }) = email.content.and_then(|content| content.simple)
    {
        envelope.subject = subject.decoded();
        envelope.headers = headers
            .into_iter()
            .map(|one| (one.name, one.value))
            .collect();
        body.text = content.text.map(|text| text.decoded());
        body.html = content.html.map(|html| html.decoded());
        let attachments = attachments.into_iter().map(|file| {
            let content = STANDARD.decode(file.raw_content).unwrap_or_default();
            let kind = file.content_type.unwrap_or_default();
            CapturedAttachment::new(file.file_name, kind, file.content_id, content)
        });
        body.attachments = attachments.collect();
    }
    let (to, cc, bcc) = bare(email.destination);
    Mail {
        envelope,
        body,
        to,
        cc,
        bcc,
        metadata: tags(email.email_tags),
    }
}

fn from_raw(email: SendEmail) -> Result<Mail, String> {
    let data = email
        .content
        .and_then(|content| content.raw)
        .map(|raw| raw.data);
    let message = STANDARD
        .decode(data.unwrap_or_default())
        .map_err(|_| "Raw message must be base64 encoded.")?;
    let raw = RawMessage::parse(&message).ok_or("Raw message has malformed headers.")?;
    let from = email.from_email_address.as_deref().or(raw.header("from"));
    let from = from.ok_or("Missing required header 'From'.")?.to_owned();
    check_address(&from)?;
    let (mut to, mut cc, mut bcc) = bare(email.destination);
    if to.is_empty() && cc.is_empty() && bcc.is_empty() {
        (to, cc, bcc) = (
            raw.addresses("to"),
            raw.addresses("cc"),
            raw.addresses("bcc"),
        );
    }
    if to.is_empty() && cc.is_empty() && bcc.is_empty() {
        return Err("Missing required header 'To'.".to_owned());
    }
    let envelope = Envelope {
        from,
        reply_to: raw.header("reply-to").map(str::to_owned),
        subject: raw.header("subject").unwrap_or_default().to_owned(),
        headers: raw.headers.clone(),
        tags: Vec::new(),
        scope: email.configuration_set_name.unwrap_or_default(),
    };
    Ok(Mail {
        envelope,
        body: Body {
            text: Some(raw.body),
            ..Body::default()
        },
        to,
        cc,
        bcc,
        metadata: tags(email.email_tags),
    })
}

fn bare(destination: Destination) -> (Vec<String>, Vec<String>, Vec<String>) {
    let bare = |list: Vec<String>| -> Vec<String> {
        list.iter()
            .filter_map(|text| Mailbox::parse(text))
            .map(|mailbox| mailbox.address.to_owned())
            .collect()
    };
    (
        bare(destination.to_addresses),
        bare(destination.cc_addresses),
        bare(destination.bcc_addresses),
    )
}

fn tags(tags: Vec<super::model::Tag>) -> Vec<(String, String)> {
    tags.into_iter().map(|tag| (tag.name, tag.value)).collect()
}

fn split_recipients(mail: Mail, keep_bodies: bool) -> Vec<Recipient> {
    let visible = mail.recipients().nth(1).is_some().then(|| {
        Arc::new(Visible {
            to: mail.to.clone(),
            cc: mail.cc.clone(),
        })
    });
    let mut body = mail.body;
    if !keep_bodies {
        (body.text, body.html) = (None, None);
        body = body.without_contents();
    }
    let (envelope, body) = (Arc::new(mail.envelope), Arc::new(body));
    with_kinds(mail.to, mail.cc, mail.bcc)
        .map(|(kind, to)| Recipient {
            to,
            kind,
            visible: visible.clone(),
            envelope: Arc::clone(&envelope),
            body: Arc::clone(&body),
            metadata: mail.metadata.clone(),
            substitutions: Vec::new(),
        })
        .collect()
}
