//! `POST /v3/{domain}/messages`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::check::{Checked, check, not_an_address};
use super::form::Form;
use super::{account_refused, domain_not_found, message, server_error, throttled};
use crate::capture::Accepted;
use crate::credentials::Standing;
use crate::domains::is_verified;
use crate::faults::Trouble;
use crate::mail::{Body, Envelope, MailCopy};
use crate::providers::{Provider, accept};
use crate::recipients::{Verdict, is_refused, judge};
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
    if Standing::of(key) == Standing::NoCredit {
        return Err(account_refused(domain, Trouble::Limit));
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
    let ending = match judge(state, Provider::Mailgun, checked.recipients()) {
        Verdict::Throttle { wait } => return throttled(domain, wait).into(),
        Verdict::Error => return server_error().into(),
        Verdict::Refuse(trouble) => return account_refused(domain, trouble).into(),
        Verdict::Accept(ending) => ending,
    };
    if checked.recipients().any(is_refused) {
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
        copies: copies(form, checked, domain, state.captures.keeps_bodies()),
    };
    accept(state, accepted, ending, answer)
}

fn copies(form: Form, checked: Checked, domain: &str, keep_bodies: bool) -> Vec<MailCopy> {
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
    let body = Arc::new(Body {
        html: kept("html"),
        text: kept("text"),
        attachments: form.attachments.clone(),
        as_sent: None,
    });
    let metadata: Vec<_> = form.prefixed("v:").map(owned).collect();
    // Recipient variables, even empty ones, split the mail: nobody sees anybody else.
    let split = checked.variables.is_some() || checked.recipients().nth(1).is_none();
    let shown = checked.to.iter().chain(&checked.cc).cloned();
    let visible: Option<Arc<[String]>> = (!split).then(|| shown.collect());
    let variables = checked.variables.unwrap_or_default();
    let all = [checked.to, checked.cc, checked.bcc];
    let everybody = all.into_iter().flatten();
    everybody
        .map(|to| MailCopy {
            substitutions: variables_of(&variables, &to),
            to,
            visible: visible.clone(),
            envelope: Arc::clone(&envelope),
            body: Arc::clone(&body),
            metadata: metadata.clone(),
        })
        .collect()
}

/// Those of an address with a `+` are not found by it (mailgun.js issue 413).
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
