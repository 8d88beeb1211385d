//! Batches: the requests against the official descriptions, and the outcome of each mail for
//! each reply.

use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::address::Mailbox;
use waypost_core::provider::adapter;
use waypost_core::provider::batch::{BatchReply, Batching};
use waypost_core::provider::call::{ProviderCall, ProviderReply};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::mail::{OutgoingMail, TAG_ATTEMPT, TAG_RECIPIENT};
use waypost_core::provider::outcome::{Blame, SendOutcome};

use super::documents::Document;
use super::{form_fields, json_body, now, reply, rich_mail, with_access};

fn batching(kind: ProviderType) -> &'static dyn Batching {
    adapter(kind).batching().unwrap()
}

/// The mails of three recipients of a message, each with its own links and header.
fn mails() -> Vec<OutgoingMail> {
    let mails = ["ada", "bob", "cy"].into_iter().zip(0..);
    let mails = mails.map(|(name, nth)| {
        let link = format!("https://example.com/u/{name}-t_{nth}.x?a=1");
        OutgoingMail {
            recipient: Some(nth),
            attempt_id: Uuid::from_u128(
                0x0190_0000_0000_7000_8000_0000_0000_0010 + u128::from(nth),
            )
            .into(),
            to: vec![
                Mailbox::parse(&format!("\"The {name}, esq.\" <{name}@example.org>")).unwrap(),
            ],
            html: Some(format!(
                "<p>Grüße: <a href=\"{link}&amp;b=2\">x</a> {link}</p>"
            )),
            text: Some(format!("Off: {link}.")),
            headers: vec![("List-Unsubscribe".to_owned(), format!("<{link}>"))],
            ..rich_mail()
        }
    });
    mails.collect()
}

fn send(kind: ProviderType, mails: &[OutgoingMail]) -> Option<ProviderCall> {
    with_access(kind, |access| batching(kind).send(access, mails))
}

/// A template with one recipient's values in place of the tags.
fn substituted<'a>(text: &Value, values: impl Iterator<Item = (String, &'a Value)>) -> String {
    let text = text.as_str().unwrap().to_owned();
    values.fold(text, |text, (tag, value)| {
        text.replace(&tag, value.as_str().unwrap())
    })
}

#[test]
fn a_postmark_batch_is_a_list_of_the_single_mails() {
    let mails = mails();
    let call = send(ProviderType::Postmark, &mails).unwrap();
    assert_eq!(call.url.as_str(), "https://api.postmarkapp.com/email/batch");
    assert_eq!(call.headers["content-type"], "application/json");
    let body = json_body(&call);
    let singles = mails.iter().map(|mail| {
        let adapter = adapter(ProviderType::Postmark);
        let call = with_access(ProviderType::Postmark, |access| adapter.send(access, mail));
        json_body(&call.unwrap())
    });
    assert_eq!(body, singles.collect::<Value>());
    if let Some(document) = Document::open("postmark-server.json") {
        document.assert_json_request("post", "/email/batch", &body);
    }
}

#[test]
fn a_sendgrid_batch_with_its_substitutions_gives_the_single_mails() {
    let mails = mails();
    let call = send(ProviderType::Sendgrid, &mails).unwrap();
    let body = json_body(&call);
    if let Some(document) = Document::open("sendgrid-mail.json") {
        document.assert_json_request("post", "/v3/mail/send", &body);
    }
    assert_eq!(body["headers"], Value::Null, "each has its own");
    for (nth, mail) in mails.iter().enumerate() {
        let adapter = adapter(ProviderType::Sendgrid);
        let single = with_access(ProviderType::Sendgrid, |access| adapter.send(access, mail));
        let single = json_body(&single.unwrap());
        let own = &body["personalizations"][nth];
        let theirs = &single["personalizations"][0];
        assert_eq!(own["to"], theirs["to"]);
        assert_eq!(own["custom_args"], theirs["custom_args"]);
        assert_eq!(own["headers"], single["headers"]);
        let values = own["substitutions"].as_object().unwrap();
        // The token in the links, once; nothing else differs.
        assert_eq!(values.len(), 1, "{values:?}");
        for place in 0..2 {
            let values = values.iter().map(|(tag, value)| (tag.clone(), value));
            let text = substituted(&body["content"][place]["value"], values);
            assert_eq!(single["content"][place]["value"], text);
        }
        for shared in [
            "from",
            "reply_to",
            "subject",
            "categories",
            "tracking_settings",
        ] {
            assert_eq!(body[shared], single[shared]);
        }
    }
}

#[test]
fn a_mailgun_batch_with_its_substitutions_gives_the_single_mails() {
    let mails = mails();
    let call = send(ProviderType::Mailgun, &mails).unwrap();
    let fields = form_fields(&call);
    let variables = fields
        .iter()
        .find(|(name, _)| name == "recipient-variables");
    let variables: Value = serde_json::from_str(&variables.unwrap().1).unwrap();
    assert_eq!(variables.as_object().unwrap().len(), 3);
    for mail in &mails {
        let adapter = adapter(ProviderType::Mailgun);
        let single = with_access(ProviderType::Mailgun, |access| adapter.send(access, mail));
        let own = variables[mail.to[0].address().as_str()]
            .as_object()
            .unwrap();
        let substituted: Vec<(String, String)> = fields
            .iter()
            .filter(|(name, value)| {
                name != "recipient-variables" && (name != "to" || *value == mail.to[0].to_header())
            })
            .map(|(name, value)| {
                let values = own.iter();
                let values = values.map(|(name, value)| (format!("%recipient.{name}%"), value));
                (name.clone(), substituted(&json!(value), values))
            })
            .collect();
        let mut single = form_fields(&single.unwrap()).to_vec();
        let mut substituted = substituted;
        single.sort();
        substituted.sort();
        assert_eq!(substituted, single);
        assert_eq!(own[TAG_RECIPIENT], mail.recipient.unwrap().to_string());
        assert_eq!(own[TAG_ATTEMPT], mail.attempt_id.to_string());
    }
}

#[test]
fn mails_that_cannot_share_a_call_do_not() {
    let changed = |change: fn(&mut Vec<OutgoingMail>)| {
        let mut mails = mails();
        change(&mut mails);
        [ProviderType::Sendgrid, ProviderType::Mailgun].map(|kind| send(kind, &mails).is_some())
    };
    assert_eq!(changed(|_| {}), [true, true]);
    assert_eq!(changed(Vec::clear), [false, false]);
    // An address must identify one mail.
    assert_eq!(
        changed(|mails| mails[2].to = vec![Mailbox::parse("ADA@example.org").unwrap()]),
        [false, false]
    );
    // The bodies differ in more than a word.
    assert_eq!(
        changed(|mails| mails[1].text = Some("Something else.".to_owned())),
        [false, false]
    );
    assert_eq!(changed(|mails| mails[1].text = None), [false, false]);
    assert_eq!(
        changed(|mails| mails[1].subject = "Another".to_owned()),
        [false, false]
    );
    // The differences exceed SendGrid's 10,000 bytes.
    let long = |mails: &mut Vec<OutgoingMail>| {
        for mail in mails {
            let name = mail.to[0].address().local_part().to_owned();
            mail.text = Some(format!("Off: {}", name.repeat(4_000)));
        }
    };
    assert_eq!(changed(long), [false, true]);
    // The texts contain tags themselves.
    let tagged = |mails: &mut Vec<OutgoingMail>| {
        for mail in mails {
            mail.subject = "-wp8000000000000010- %recipient.x%".to_owned();
        }
    };
    assert_eq!(changed(tagged), [false, false]);
    assert!(adapter(ProviderType::Ses).batching().is_none());
    assert!(adapter(ProviderType::Smtp).batching().is_none());
}

fn read(kind: ProviderType, reply: &ProviderReply) -> BatchReply {
    batching(kind).read(reply, 3, now())
}

/// A word for each outcome.
fn words(result: &BatchReply) -> Vec<&'static str> {
    let words = result.outcomes.iter().map(|outcome| match outcome {
        None => "again",
        Some(SendOutcome::Accepted { .. }) => "accepted",
        Some(SendOutcome::Rejected { blame, .. }) => match blame {
            Blame::Recipient => "recipient",
            Blame::Sender | Blame::SenderForRecipient => "sender",
            Blame::Message | Blame::Mailbox => "message",
        },
        Some(SendOutcome::AccountUnusable { .. }) => "account",
        Some(SendOutcome::Deferred { .. }) => "deferred",
        Some(SendOutcome::Throttled { .. }) => "throttled",
        Some(SendOutcome::Unavailable { .. }) => "unavailable",
        Some(SendOutcome::Unknown { .. }) => "unknown",
    });
    words.collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of replies")]
fn every_reply_has_an_outcome_for_each_mail() {
    use ProviderType::{Mailgun, Postmark, Sendgrid};
    let entries = json!([
        { "ErrorCode": 0, "Message": "OK", "MessageID": "one" },
        { "ErrorCode": 406, "Message": "Inactive." },
        { "Message": "Message accepted, but delivery may be delayed", "MessageID": "three" },
    ]);
    let named = json!({ "errors": [
        { "message": "Does not contain a valid address.", "field": "personalizations.1.to.0.email" },
    ] });
    let unnamed = json!({ "errors": [{ "message": "Bad Request", "field": null }] });
    let nobody = json!({ "errors": [
        { "message": "Does not contain a valid address.", "field": "personalizations.3.to.0.email" },
    ] });
    let mixed = json!({ "errors": [
        { "message": "No.", "field": "personalizations.1.to.0.email" },
        { "message": "No.", "field": "personalizations.0.substitutions" },
    ] });
    let sender = json!({ "errors": [{ "message": "No.", "field": "from" }] });
    let error = |text: &str| json!({ "errors": [{ "message": text, "field": null }] });
    let unauthorized = error("authorization required");
    let limits = error("You have exceeded your messaging limits");
    let failure = error("service unavailable");
    let code = |code: i64| json!({ "ErrorCode": code, "Message": "No." });
    let message = |text: &str| json!({ "message": text });
    let all = |word: &'static str| [word; 3];
    for (kind, status, body, expected) in [
        (
            Postmark,
            200,
            entries.clone(),
            ["accepted", "recipient", "accepted"],
        ),
        (Postmark, 200, json!([code(0)]), all("unknown")),
        (Postmark, 200, code(0), all("unknown")),
        (Postmark, 422, code(410), all("again")),
        (Postmark, 413, Value::Null, all("again")),
        (Postmark, 401, code(10), all("account")),
        (Postmark, 429, code(429), all("throttled")),
        (Postmark, 500, code(100), all("unavailable")),
        (Sendgrid, 202, Value::Null, all("accepted")),
        (Sendgrid, 400, named, ["again", "recipient", "again"]),
        (Sendgrid, 400, unnamed, all("again")),
        (Sendgrid, 400, nobody, all("again")),
        (Sendgrid, 400, mixed, all("again")),
        (Sendgrid, 403, sender, all("sender")),
        (Sendgrid, 413, Value::Null, all("again")),
        (Sendgrid, 401, unauthorized, all("account")),
        (Sendgrid, 403, limits, all("account")),
        (Sendgrid, 401, Value::Null, all("unknown")),
        (Sendgrid, 429, Value::Null, all("throttled")),
        (Sendgrid, 503, failure, all("unavailable")),
        (Sendgrid, 502, Value::Null, all("unknown")),
        (Sendgrid, 503, Value::Null, all("unknown")),
        (
            Mailgun,
            200,
            json!({ "id": "<i@x>", "message": "Queued." }),
            all("accepted"),
        ),
        (Mailgun, 200, Value::Null, all("unknown")),
        (
            Mailgun,
            400,
            message("to parameter is not a valid address"),
            all("again"),
        ),
        (
            Mailgun,
            400,
            message("Domain x is not allowed to send"),
            all("account"),
        ),
        (
            Mailgun,
            403,
            message("not allowed to send large batches"),
            all("again"),
        ),
        (Mailgun, 413, Value::Null, all("again")),
        (Mailgun, 401, json!("Forbidden"), all("account")),
        (Mailgun, 429, message("limit exceeded"), all("throttled")),
        (Mailgun, 420, message("limit exceeded"), all("throttled")),
        (
            Mailgun,
            403,
            message("You've reached the message limit"),
            all("account"),
        ),
        (
            Mailgun,
            500,
            message("Internal Server Error"),
            all("unavailable"),
        ),
        (Mailgun, 500, Value::Null, all("unknown")),
        (Mailgun, 504, message("timeout"), all("unknown")),
        (Postmark, 422, code(405), all("account")),
        (Postmark, 502, code(100), all("unknown")),
        (Postmark, 403, Value::Null, all("unknown")),
    ] {
        let result = read(kind, &reply(status, &[], &body.to_string()));
        assert_eq!(words(&result), expected, "{kind} {status} {body}");
    }
    let result = read(Postmark, &reply(200, &[], &entries.to_string()));
    let ids = result.outcomes.iter().map(|outcome| match outcome {
        Some(SendOutcome::Accepted {
            provider_message_id,
        }) => provider_message_id.as_deref(),
        Some(
            SendOutcome::Rejected { .. }
            | SendOutcome::Deferred { .. }
            | SendOutcome::AccountUnusable { .. }
            | SendOutcome::Throttled { .. }
            | SendOutcome::Unavailable { .. }
            | SendOutcome::Unknown { .. },
        )
        | None => None,
    });
    assert_eq!(ids.collect::<Vec<_>>(), [Some("one"), None, Some("three")]);
    assert!(matches!(
        result.account_outcome,
        SendOutcome::Accepted { .. }
    ));
}
