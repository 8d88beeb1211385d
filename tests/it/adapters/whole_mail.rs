//! Mails with several recipients, headers and files: the requests against the official
//! descriptions, and what each provider refuses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use waypost_core::address::Mailbox;
use waypost_core::attachment::AttachmentRef;
use waypost_core::provider::adapter;
use waypost_core::provider::call::{CallBody, ProviderCall};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::limits::MailShape;
use waypost_core::provider::mail::{MailAttachment, OutgoingMail};

use super::documents::Document;
use super::{form_fields, json_body, plain_mail, rich_mail, with_access};

fn mailboxes(texts: &[&str]) -> Vec<Mailbox> {
    let mailboxes = texts.iter().map(|text| Mailbox::parse(text));
    mailboxes.map(Result::unwrap).collect()
}

fn file(filename: &str, content_id: Option<&str>, content: &[u8]) -> MailAttachment {
    MailAttachment {
        filename: filename.to_owned(),
        content_type: "application/pdf".to_owned(),
        content_id: content_id.map(str::to_owned),
        content: Bytes::copy_from_slice(content),
    }
}

/// A shared mail with every part that there is.
fn whole_mail() -> OutgoingMail {
    let all: Vec<u8> = (0..=255).cycle().take(1_000).collect();
    OutgoingMail {
        recipient: None,
        to: mailboxes(&["\"Lovelace, Ada\" <ada@example.org>", "bob@example.org"]),
        cc: mailboxes(&["Çy <cy@example.org>"]),
        bcc: mailboxes(&["dee@example.org", "eve@example.org"]),
        reply_to: mailboxes(&["Hilfe ☂ <help@example.com>", "\"a, b\" <b@example.com>"]),
        headers: vec![
            ("X-Order".to_owned(), "7".to_owned()),
            ("X-Größe".replace("öß", "oss"), "größe 📬".to_owned()),
            ("In-Reply-To".to_owned(), "<a@example.com>".to_owned()),
        ],
        attachments: vec![
            file("Rechnung \"Ü\" 📎.pdf", None, &all),
            file("logo.png", Some("logo"), b"\x89PNG"),
        ],
        ..rich_mail()
    }
}

fn send(kind: ProviderType, mail: &OutgoingMail) -> ProviderCall {
    with_access(kind, |access| adapter(kind).send(access, mail)).unwrap()
}

fn decoded(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

#[test]
fn requests_with_every_part_match_the_official_descriptions() {
    for (kind, file, path) in [
        (
            ProviderType::Sendgrid,
            "sendgrid-mail.json",
            "/v3/mail/send",
        ),
        (ProviderType::Postmark, "postmark-server.json", "/email"),
        (
            ProviderType::Ses,
            "sesv2.openapi.json",
            "/v2/email/outbound-emails",
        ),
    ] {
        let Some(document) = Document::open(file) else {
            return;
        };
        document.assert_json_request("post", path, &json_body(&send(kind, &whole_mail())));
    }
    let Some(document) = Document::open("mailgun.openapi.json") else {
        return;
    };
    let schema =
        document.request_schema("post", "/v3/{domain_name}/messages", "multipart/form-data");
    let known = schema["properties"].as_object().unwrap();
    let call = send(ProviderType::Mailgun, &whole_mail());
    let CallBody::Form(form) = &call.body else {
        panic!("not a form");
    };
    for name in form.fields.iter().map(|(name, _)| name.as_str()) {
        let family = name.starts_with("h:") || name.starts_with("v:");
        assert!(family || known.contains_key(name), "{name}");
    }
    for file in &form.files {
        assert!(known.contains_key(file.name), "{}", file.name);
    }
}

#[test]
fn every_recipient_is_named_where_its_kind_belongs() {
    let mail = whole_mail();
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    let own = &sendgrid["personalizations"][0];
    let emails = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["email"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(emails(&own["to"]), ["ada@example.org", "bob@example.org"]);
    assert_eq!(emails(&own["cc"]), ["cy@example.org"]);
    assert_eq!(emails(&own["bcc"]), ["dee@example.org", "eve@example.org"]);
    assert_eq!(emails(&sendgrid["reply_to_list"]).len(), 2);
    assert_eq!(sendgrid["reply_to"], Value::Null);
    assert_eq!(sendgrid["personalizations"].as_array().unwrap().len(), 1);
    let postmark = json_body(&send(ProviderType::Postmark, &mail));
    assert_eq!(
        postmark["To"],
        "\"Lovelace, Ada\" <ada@example.org>, bob@example.org"
    );
    assert_eq!(postmark["Cc"], "Çy <cy@example.org>");
    assert_eq!(postmark["Bcc"], "dee@example.org, eve@example.org");
    assert!(
        postmark["ReplyTo"]
            .as_str()
            .unwrap()
            .ends_with("\"a, b\" <b@example.com>")
    );
    let mailgun = send(ProviderType::Mailgun, &mail);
    let field = |name: &str| {
        let mut fields = form_fields(&mailgun).iter();
        fields.find(|(known, _)| known == name).unwrap().1.clone()
    };
    assert_eq!(field("cc"), "Çy <cy@example.org>");
    assert_eq!(field("bcc"), "dee@example.org, eve@example.org");
    let ses = json_body(&send(ProviderType::Ses, &mail));
    let destination = &ses["Destination"];
    assert_eq!(destination["ToAddresses"].as_array().unwrap().len(), 2);
    assert_eq!(destination["CcAddresses"].as_array().unwrap().len(), 1);
    assert_eq!(
        destination["BccAddresses"],
        json!(["dee@example.org", "eve@example.org"])
    );
    assert_eq!(ses["ReplyToAddresses"].as_array().unwrap().len(), 2);
    // No list is named that is empty.
    let plain = json_body(&send(ProviderType::Ses, &plain_mail()));
    assert_eq!(plain["Destination"].as_object().unwrap().len(), 1);
}

#[test]
fn files_arrive_byte_for_byte_under_their_names() {
    let mail = whole_mail();
    let contents: Vec<Vec<u8>> = mail
        .attachments
        .iter()
        .map(|file| file.content.to_vec())
        .collect();
    for (kind, list, content, name) in [
        (
            ProviderType::Sendgrid,
            "/attachments",
            "content",
            "filename",
        ),
        (ProviderType::Postmark, "/Attachments", "Content", "Name"),
        (
            ProviderType::Ses,
            "/Content/Simple/Attachments",
            "RawContent",
            "FileName",
        ),
    ] {
        let body = json_body(&send(kind, &mail));
        let files = body.pointer(list).unwrap().as_array().unwrap();
        assert_eq!(files.len(), 2, "{kind}");
        for (nth, file) in files.iter().enumerate() {
            assert_eq!(decoded(&file[content]), contents[nth], "{kind}");
            assert_eq!(file[name], mail.attachments[nth].filename, "{kind}");
        }
    }
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    assert_eq!(sendgrid["attachments"][0]["disposition"], "attachment");
    assert_eq!(sendgrid["attachments"][1]["disposition"], "inline");
    assert_eq!(sendgrid["attachments"][1]["content_id"], "logo");
    let postmark = json_body(&send(ProviderType::Postmark, &mail));
    assert_eq!(postmark["Attachments"][1]["ContentID"], "cid:logo");
    let ses = json_body(&send(ProviderType::Ses, &mail));
    let files = &ses["Content"]["Simple"]["Attachments"];
    assert_eq!(files[1]["ContentDisposition"], "INLINE");
    assert_eq!(files[0]["ContentTransferEncoding"], "BASE64");
    let call = send(ProviderType::Mailgun, &mail);
    let CallBody::Form(form) = &call.body else {
        panic!("not a form");
    };
    let files = form
        .files
        .iter()
        .map(|file| (file.name, file.filename.as_str()));
    let files: Vec<_> = files.collect();
    assert_eq!(
        files,
        [("attachment", "Rechnung \"Ü\" 📎.pdf"), ("inline", "logo")]
    );
    // The content is shared, not copied.
    assert_eq!(
        form.files[0].content.as_ptr(),
        mail.attachments[0].content.as_ptr()
    );
}

#[test]
fn header_values_are_ascii_on_the_wire() {
    let mail = whole_mail();
    let values = |kind, list: &str, value: &str| -> Vec<String> {
        let body = json_body(&send(kind, &mail));
        let list = body.pointer(list).unwrap().as_array().unwrap().clone();
        list.iter()
            .map(|one| one[value].as_str().unwrap().to_owned())
            .collect()
    };
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    let sendgrid = sendgrid["headers"].as_object().unwrap();
    assert_eq!(sendgrid.len(), 3);
    let mut all: Vec<String> = sendgrid
        .values()
        .map(|value| value.as_str().unwrap().to_owned())
        .collect();
    all.extend(values(ProviderType::Postmark, "/Headers", "Value"));
    all.extend(values(
        ProviderType::Ses,
        "/Content/Simple/Headers",
        "Value",
    ));
    let mailgun = send(ProviderType::Mailgun, &mail);
    let fields = form_fields(&mailgun).iter();
    all.extend(
        fields
            .filter(|(name, _)| name.starts_with("h:"))
            .map(|(_, value)| value.clone()),
    );
    for value in all {
        assert!(value.is_ascii() && !value.contains(['\r', '\n']), "{value}");
    }
}

#[test]
fn a_batch_carries_the_files_once_or_is_not_made() {
    let mails: Vec<OutgoingMail> = ["ada@example.org", "bob@example.org"]
        .into_iter()
        .zip(0..)
        .map(|(to, nth)| OutgoingMail {
            recipient: Some(nth),
            to: mailboxes(&[to]),
            attachments: whole_mail().attachments,
            ..rich_mail()
        })
        .collect();
    let batch = |kind, mails: &[OutgoingMail]| {
        with_access(kind, |access| {
            adapter(kind).batching().unwrap().send(access, mails)
        })
    };
    let sendgrid = json_body(&batch(ProviderType::Sendgrid, &mails).unwrap());
    assert_eq!(decoded(&sendgrid["attachments"][1]["content"]), b"\x89PNG");
    let postmark = json_body(&batch(ProviderType::Postmark, &mails).unwrap());
    assert_eq!(
        decoded(&postmark[1]["Attachments"][1]["Content"]),
        b"\x89PNG"
    );
    let mut large = mails.clone();
    for mail in &mut large {
        mail.attachments = vec![file("a", None, &vec![0; 1_500_000])];
    }
    assert!(batch(ProviderType::Postmark, &large).is_none());
    assert!(batch(ProviderType::Sendgrid, &large).is_some());
    // Mails that differ in a part that is in the call once.
    type Change = fn(&mut OutgoingMail);
    let changes: [Change; 6] = [
        |mail| mail.attachments[0].content = Bytes::from_static(b"x"),
        |mail| mail.attachments[0].filename.push('x'),
        |mail| mail.attachments[1].content_id = None,
        |mail| mail.attachments.truncate(1),
        |mail| mail.reply_to.clear(),
        |mail| mail.cc = mailboxes(&["cy@example.org"]),
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        let mut mails = mails.clone();
        change(&mut mails[1]);
        for kind in [ProviderType::Sendgrid, ProviderType::Mailgun] {
            assert!(batch(kind, &mails).is_none(), "{kind} {nth}");
        }
    }
}

fn attachment(filename: &str, size: u64) -> AttachmentRef {
    AttachmentRef {
        filename: filename.to_owned(),
        content_type: "application/pdf".to_owned(),
        content_id: None,
        size,
        sha256: "00".repeat(32),
    }
}

fn refusals(shape: &MailShape<'_>) -> Vec<ProviderType> {
    let kinds = ProviderType::ALL.into_iter();
    kinds
        .filter(|kind| adapter(*kind).refuse(shape).is_some())
        .collect()
}

const SMALL: MailShape<'static> = MailShape {
    recipients: 1,
    headers: &[],
    has_unsubscribe_link: true,
    reply_to_bytes: 0,
    body_bytes: [100, 100],
    attachments: &[],
};

#[test]
fn each_provider_refuses_what_it_does_not_carry() {
    use ProviderType::{Mailgun, Postmark, Sendgrid, Ses};
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers: Vec<_> = (0..14)
        .map(|nth| header(&format!("X-{nth}"), "1"))
        .collect();
    let long = [header("X-Long", &"a ".repeat(600))];
    let twice = [header("X-A", "1"), header("x-a", "2")];
    let many = [header("X-Many", &"a ".repeat(8_000))];
    let own = [header("X-SG-EID", "1")];
    let with = |headers| MailShape { headers, ..SMALL };
    assert_eq!(refusals(&SMALL), []);
    assert_eq!(refusals(&with(&headers[..13])), []);
    assert_eq!(refusals(&with(&headers)), [Ses], "14 and two of the link");
    assert_eq!(refusals(&with(&long)), [Ses]);
    assert_eq!(refusals(&with(&twice)), [Sendgrid, Mailgun]);
    assert_eq!(refusals(&with(&many)), [Mailgun, Ses]);
    assert_eq!(refusals(&with(&own)), [Sendgrid]);
    let recipients = |recipients| MailShape {
        recipients,
        ..SMALL
    };
    assert_eq!(refusals(&recipients(50)), []);
    assert_eq!(refusals(&recipients(51)), [Postmark, Ses]);
    let body_bytes = [5_000_001, 0];
    assert_eq!(
        refusals(&MailShape {
            body_bytes,
            ..SMALL
        }),
        [Postmark]
    );
    for (filename, size, refusing) in [
        ("a.pdf", 0, vec![Sendgrid]),
        ("a.pdf", 7_000_000, vec![]),
        ("a.pdf", 7_500_000, vec![Postmark]),
        ("a.pdf", 18_500_000, vec![Postmark, Mailgun]),
        ("a.pdf", 22_500_000, vec![Sendgrid, Postmark, Mailgun]),
        ("a.pdf", 26_214_400, vec![Sendgrid, Postmark, Mailgun]),
        ("a.pdf", 30_000_000, vec![Sendgrid, Postmark, Mailgun, Ses]),
        ("a.EXE", 1, vec![Postmark, Ses]),
        ("a.pdf.vbs ", 1, vec![Postmark, Ses]),
        ("a.js", 1, vec![Ses]),
        ("exe", 1, vec![]),
    ] {
        let attachments = [attachment(filename, size)];
        let shape = MailShape {
            attachments: &attachments,
            ..SMALL
        };
        assert_eq!(refusals(&shape), refusing, "{filename} {size}");
    }
}

#[test]
fn a_refusal_names_the_part() {
    let headers = [("X-SG-ID".to_owned(), "1".to_owned())];
    let attachments = [attachment("große Datei.pdf", 0)];
    let refuse = |shape: &MailShape<'_>| adapter(ProviderType::Sendgrid).refuse(shape).unwrap();
    assert!(
        refuse(&MailShape {
            headers: &headers,
            ..SMALL
        })
        .contains("X-SG-ID")
    );
    let attachments = &attachments;
    assert!(
        refuse(&MailShape {
            attachments,
            ..SMALL
        })
        .contains("große Datei.pdf")
    );
}
