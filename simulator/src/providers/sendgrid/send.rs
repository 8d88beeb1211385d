//! `POST /v3/mail/send`: rejects a message, or splits it into recipients.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;

use super::super::accept;
use super::check::{INVALID_ADDRESS, check};
use super::model::{Mail, Person, Personalization};
use super::{Problem, account_refused, error, problems, server_error, throttled};
use crate::address::{display, domain_of};
use crate::capture::Accepted;
use crate::credentials::CredentialKind;
use crate::domains::is_verified;
use crate::faults::AccountProblem;
use crate::mail::{Body, CapturedAttachment, Envelope, Recipient, Visible, with_kinds};
use crate::providers::Provider;
use crate::recipients::{Decision, decide, is_rejected};
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::state::State;

const SENDER_NOT_VERIFIED: &str = "The from address does not match a verified Sender Identity. \
    Mail cannot be sent until this error is resolved. Visit \
    https://sendgrid.com/docs/for-developers/sending-email/sender-identity/ \
    to see the Sender Identity requirements";

pub(super) fn send(state: &State, request: &Request, key: &str) -> Outcome {
    match prepare(request, key) {
        Ok(mail) => deliver(state, mail, key),
        Err(refusal) => refusal.into(),
    }
}

/// All checks before the magic recipients are considered.
fn prepare(request: &Request, key: &str) -> Result<Mail, Answer> {
    match CredentialKind::of(key) {
        CredentialKind::NoSendScope => {
            return Err(error(StatusCode::FORBIDDEN, "access forbidden", None));
        }
        CredentialKind::NoCredit => {
            return Err(account_refused(AccountProblem::Pause));
        }
        CredentialKind::Good
        | CredentialKind::SendOnly
        | CredentialKind::Invalid
        | CredentialKind::Firewall => {}
    }
    if request.too_large {
        return Err(error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "content too large",
            None,
        ));
    }
    if !request.is_json() {
        let message = "Content-Type should be application/json.";
        return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, message, None));
    }
    let mail: Mail = serde_json::from_slice(&request.body).map_err(|cause| {
        error(
            StatusCode::BAD_REQUEST,
            &format!("Bad Request: {cause}"),
            None,
        )
    })?;
    let found = check(&mail);
    if !found.is_empty() {
        return Err(problems(StatusCode::BAD_REQUEST, &found));
    }
    let senders = mail
        .personalizations
        .iter()
        .filter_map(|one| one.from.as_ref());
    if !mail
        .from
        .iter()
        .chain(senders)
        .all(|from| is_verified(domain_of(&from.email)))
    {
        return Err(error(
            StatusCode::FORBIDDEN,
            SENDER_NOT_VERIFIED,
            Some("from"),
        ));
    }
    Ok(mail)
}

fn deliver(state: &State, mail: Mail, key: &str) -> Outcome {
    let recipients = mail
        .personalizations
        .iter()
        .flat_map(Personalization::recipients);
    let accepted_reply = match decide(
        state,
        Provider::SendGrid,
        recipients.map(|one| one.email.as_str()),
    ) {
        Decision::Throttle { wait } => return throttled(wait).into(),
        Decision::Error => return server_error().into(),
        Decision::Reject(problem) => return account_refused(problem).into(),
        Decision::Accept(accepted_reply) => accepted_reply,
    };
    if let Some(refusal) = refused(&mail) {
        return refusal.into();
    }
    let sandbox = mail
        .mail_settings
        .as_ref()
        .and_then(|settings| settings.sandbox_mode.as_ref());
    if sandbox.is_some_and(|mode| mode.enable) {
        return reply::empty(StatusCode::OK).into();
    }
    let id = state.ids.sendgrid();
    let answer = reply::empty(StatusCode::ACCEPTED).with_header("x-message-id", &id);
    let accepted = Accepted {
        provider: Provider::SendGrid,
        credential: key,
        provider_message_id: id,
        recipients: split_recipients(mail, state.captures.keeps_bodies()),
    };
    accept(state, accepted, accepted_reply, answer)
}

fn refused(mail: &Mail) -> Option<Answer> {
    let mut found = Vec::new();
    for (at, personalization) in mail.personalizations.iter().enumerate() {
        let lists = [
            ("to", &personalization.to),
            ("cc", &personalization.cc),
            ("bcc", &personalization.bcc),
        ];
        for (list, people) in lists {
            for (index, _) in people
                .iter()
                .enumerate()
                .filter(|(_, one)| is_rejected(&one.email))
            {
                let field = format!("personalizations.{at}.{list}.{index}.email");
                found.push(Problem::new(field, INVALID_ADDRESS));
            }
        }
    }
    (!found.is_empty()).then(|| problems(StatusCode::BAD_REQUEST, &found))
}

fn split_recipients(mail: Mail, keep_bodies: bool) -> Vec<Recipient> {
    let (mut text, mut html) = (None, None);
    if keep_bodies {
        for part in mail.content.into_iter().flatten() {
            match part.kind.as_str() {
                "text/plain" => text = Some(part.value),
                "text/html" => html = Some(part.value),
                _ => {}
            }
        }
    }
    let attachments = mail.attachments.into_iter().flatten().map(|file| {
        let content = STANDARD.decode(file.content).unwrap_or_default();
        let kind = file.kind.unwrap_or_default();
        CapturedAttachment::new(file.filename, kind, file.content_id, content)
    });
    let mut body = Body {
        html,
        text,
        attachments: attachments.collect(),
        as_sent: None,
    };
    if !keep_bodies {
        body = body.without_contents();
    }
    let body = Arc::new(body);
    let reply_to = mail.reply_to.as_ref().map(named).or_else(|| {
        let list = mail.reply_to_list.as_ref()?;
        Some(list.iter().map(named).collect::<Vec<_>>().join(", "))
    });
    let envelope = Arc::new(Envelope {
        from: mail.from.as_ref().map(named).unwrap_or_default(),
        reply_to,
        subject: mail.subject.unwrap_or_default(),
        headers: mail.headers.unwrap_or_default().into_iter().collect(),
        tags: mail.categories.unwrap_or_default(),
        scope: String::new(),
    });
    let custom_args = mail.custom_args.unwrap_or_default();
    let mut recipients = Vec::with_capacity(mail.personalizations.len());
    for personalization in mail.personalizations {
        let envelope = personal_envelope(&envelope, &personalization);
        personal_recipients(
            personalization,
            envelope,
            &body,
            &custom_args,
            &mut recipients,
        );
    }
    recipients
}

fn personal_envelope(shared: &Arc<Envelope>, personalization: &Personalization) -> Arc<Envelope> {
    let overrides = (
        &personalization.from,
        &personalization.subject,
        &personalization.headers,
    );
    if let (None, None, None) = overrides {
        return Arc::clone(shared);
    }
    let mut own = Envelope::clone(shared);
    if let Some(from) = &personalization.from {
        own.from = named(from);
    }
    if let Some(subject) = &personalization.subject {
        own.subject.clone_from(subject);
    }
    for (name, value) in personalization.headers.iter().flatten() {
        own.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        own.headers.push((name.clone(), value.clone()));
    }
    Arc::new(own)
}

fn personal_recipients(
    personalization: Personalization,
    envelope: Arc<Envelope>,
    body: &Arc<Body>,
    custom_args: &BTreeMap<String, String>,
    recipients: &mut Vec<Recipient>,
) {
    let mut metadata = custom_args.clone();
    metadata.extend(personalization.custom_args.into_iter().flatten());
    let metadata: Vec<_> = metadata.into_iter().collect();
    let substitutions: Vec<_> = personalization
        .substitutions
        .into_iter()
        .flatten()
        .collect();
    let alone = personalization.to.len() == 1
        && personalization.cc.is_empty()
        && personalization.bcc.is_empty();
    let emails = |people: &[Person]| people.iter().map(|one| one.email.clone()).collect();
    let visible = (!alone).then(|| {
        Arc::new(Visible {
            to: emails(&personalization.to),
            cc: emails(&personalization.cc),
        })
    });
    let (to, cc, bcc) = (personalization.to, personalization.cc, personalization.bcc);
    for (kind, person) in with_kinds(to, cc, bcc) {
        recipients.push(Recipient {
            to: person.email,
            kind,
            visible: visible.clone(),
            envelope: Arc::clone(&envelope),
            body: Arc::clone(body),
            metadata: metadata.clone(),
            substitutions: substitutions.clone(),
        });
    }
}

fn named(person: &Person) -> String {
    display(person.name.as_deref(), &person.email)
}
