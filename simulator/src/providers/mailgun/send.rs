//! `POST /v3/{domain}/messages`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::check::{Checked, check, not_an_address};
use super::form::Form;
use super::{account_refused, domain_not_found, message, server_error, throttled};
use crate::capture::Accepted;
use crate::credentials::CredentialKind;
use crate::domains::is_verified;
use crate::faults::AccountProblem;
use crate::mail::{Body, Envelope, Recipient, Visible, with_kinds};
use crate::providers::{Provider, accept};
use crate::recipients::{Decision, decide, is_rejected};
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::state::State;

pub(super) async fn send(state: &State, request: &Request, key: &str, domain: &str) -> Outcome {
    if domain.contains("invalid") {
        return domain_not_found().into();
    }
    if request.too_large {
        return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large").into();
    }
    let form = match Form::read(request).await {
        Ok(form) => form,
        Err(text) => return message(StatusCode::BAD_REQUEST, &text).into(),
    };
    match prepare(&form, key, domain) {
        Ok(checked) => deliver(state, form, checked, (key, domain)),
        Err(refusal) => refusal.into(),
    }
}

fn prepare(form: &Form, key: &str, domain: &str) -> Result<Checked, Answer> {
    let checked = check(form).map_err(|text| message(StatusCode::BAD_REQUEST, &text))?;
    if CredentialKind::of(key) == CredentialKind::NoCredit {
        return Err(account_refused(domain, AccountProblem::Limit));
    }
    if !is_verified(domain) {
        let text = format!(
            "Domain {domain} is not allowed to send: The domain is unverified and requires DNS \
             configuration. Log in to your control panel to view required DNS records."
        );
        return Err(message(StatusCode::BAD_REQUEST, &text));
    }
    Ok(checked)
}

fn deliver(state: &State, form: Form, checked: Checked, (key, domain): (&str, &str)) -> Outcome {
    let accepted_reply = match decide(state, Provider::Mailgun, checked.recipients()) {
        Decision::Throttle { wait } => return throttled(domain, wait).into(),
        Decision::Error => return server_error().into(),
        Decision::Reject(problem) => return account_refused(domain, problem).into(),
        Decision::Accept(accepted_reply) => accepted_reply,
    };
    if checked.recipients().any(is_rejected) {
        return message(StatusCode::BAD_REQUEST, &not_an_address("to")).into();
    }
    let id = state.ids.mailgun(domain);
    let body = json!({"id": id, "message": "Queued. Thank you."});
    let answer = reply::json(StatusCode::OK, body.to_string());
    if form.is_yes("o:testmode") {
        return answer.into();
    }
    let accepted = Accepted {
        provider: Provider::Mailgun,
        credential: key,
        provider_message_id: id,
        recipients: split_recipients(form, checked, domain, state.captures.keeps_bodies()),
    };
    accept(state, accepted, accepted_reply, answer)
}

fn split_recipients(
    form: Form,
    checked: Checked,
    domain: &str,
    keep_bodies: bool,
) -> Vec<Recipient> {
    let is_reply_to = |name: &str| name.eq_ignore_ascii_case("reply-to");
    let headers = form.prefixed("h:").filter(|(name, _)| !is_reply_to(name));
    let reply_to = form.prefixed("h:").find(|(name, _)| is_reply_to(name));
    let envelope = Arc::new(Envelope {
        from: form.get("from").unwrap_or_default().to_owned(),
        reply_to: reply_to.map(|(_, value)| value.to_owned()),
        subject: form.get("subject").unwrap_or_default().to_owned(),
        headers: headers.map(owned).collect(),
        tags: form.all("o:tag").map(str::to_owned).collect(),
        scope: domain.to_owned(),
    });
    let kept = |name: &str| form.get(name).filter(|_| keep_bodies).map(str::to_owned);
    let mut body = Body {
        html: kept("html"),
        text: kept("text"),
        attachments: form.attachments.clone(),
        as_sent: None,
    };
    if !keep_bodies {
        body = body.without_contents();
    }
    let body = Arc::new(body);
    let metadata: Vec<_> = form.prefixed("v:").map(owned).collect();
    // Recipient variables, even empty ones, split the message: no recipient sees another.
    let split = checked.variables.is_some() || checked.recipients().nth(1).is_none();
    let visible = (!split).then(|| {
        Arc::new(Visible {
            to: checked.to.clone(),
            cc: checked.cc.clone(),
        })
    });
    let variables = checked.variables.unwrap_or_default();
    with_kinds(checked.to, checked.cc, checked.bcc)
        .map(|(kind, to)| Recipient {
            substitutions: variables_of(&variables, &to),
            to,
            kind,
            visible: visible.clone(),
            envelope: Arc::clone(&envelope),
            body: Arc::clone(&body),
            metadata: metadata.clone(),
        })
        .collect()
}

/// Addresses with a `+` have no variables (mailgun.js issue 413).
fn variables_of(variables: &Map<String, Value>, to: &str) -> Vec<(String, String)> {
    let found = variables.get(to).filter(|_| !to.contains('+'));
    found.map(substitutions).unwrap_or_default()
}

/// `{"name": "Ann"}` replaces `%recipient.name%`.
fn substitutions(variables: &Value) -> Vec<(String, String)> {
    let pairs = variables.as_object().into_iter().flatten();
    pairs
        .map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (format!("%recipient.{name}%"), text)
        })
        .collect()
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
