//! The adapters' requests, against the providers' official descriptions, and what those
//! do not cover: hosts, order, encodings, omissions.

use http::Method;
use serde_json::{Value, json};
use waypost_core::address::Mailbox;
use waypost_core::provider::call::ProviderCall;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::mail::{OutgoingMail, TAG_ATTEMPT, TAG_MESSAGE, TAG_RECIPIENT};
use waypost_core::provider::{ProviderHosts, adapter};
use waypost_tests::HTTP_PROVIDERS;

use super::documents::Document;
use super::{form_fields, json_body, plain_mail, rich_mail, url, with_access, with_access_at};

fn send(kind: ProviderType, mail: &OutgoingMail) -> ProviderCall {
    let call = with_access(kind, |access| adapter(kind).send(access, mail)).unwrap();
    assert_eq!(call.method, Method::POST);
    call
}

fn header<'a>(call: &'a ProviderCall, name: &str) -> &'a str {
    call.headers[name].to_str().unwrap()
}

#[test]
fn json_sends_match_the_official_descriptions() {
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
        for mail in [rich_mail(), plain_mail()] {
            let call = send(kind, &mail);
            assert_eq!(call.url.path(), path);
            assert_eq!(header(&call, "content-type"), "application/json");
            document.assert_json_request("post", path, &json_body(&call));
        }
    }
}

#[test]
fn the_schema_check_finds_misspelt_fields_and_wrong_types() {
    let Some(document) = Document::open("sendgrid-mail.json") else {
        return;
    };
    let mut body = json_body(&send(ProviderType::Sendgrid, &plain_mail()));
    body["categorys"] = json!(["a"]);
    body["from"] = json!({ "name": 7 });
    let errors = document.json_request_errors("post", "/v3/mail/send", &body);
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn mailgun_forms_have_known_fields_and_all_required_ones() {
    let Some(document) = Document::open("mailgun.openapi.json") else {
        return;
    };
    let template = "/v3/{domain_name}/messages";
    let schema = document.request_schema("post", template, "multipart/form-data");
    let known = schema["properties"].as_object().unwrap();
    for mail in [rich_mail(), plain_mail()] {
        let call = send(ProviderType::Mailgun, &mail);
        assert_eq!(call.url.path(), "/v3/mg.example.com/messages");
        let fields = form_fields(&call);
        for (name, value) in fields {
            let family = name.starts_with("h:") || name.starts_with("v:");
            assert!(family || known.contains_key(name), "{name}");
            if let Some(allowed) = known.get(name).and_then(|field| field["enum"].as_array()) {
                assert!(allowed.contains(&json!(value)), "{name}={value}");
            }
        }
        for required in schema["required"].as_array().unwrap() {
            assert!(
                fields.iter().any(|(name, _)| required == name),
                "{required}"
            );
        }
    }
}

#[test]
fn the_other_calls_are_documented_too() {
    let calls = [
        ("sendgrid-scopes.json", "/v3/scopes", &[][..]),
        (
            "sendgrid-domain-authentication.json",
            "/v3/whitelabel/domains",
            &["limit", "offset"],
        ),
        ("postmark-server.json", "/server", &[]),
        ("postmark-account.json", "/domains", &["count", "offset"]),
        ("postmark-account.json", "/domains/{domainid}", &[]),
        ("mailgun.openapi.json", "/v4/domains/{name}", &[]),
        ("sesv2.openapi.json", "/v2/email/account", &[]),
        (
            "sesv2.openapi.json",
            "/v2/email/identities",
            &["PageSize", "NextToken"],
        ),
        (
            "sesv2.openapi.json",
            "/v2/email/identities/{EmailIdentity}",
            &[],
        ),
    ];
    for (file, template, query) in calls {
        if let Some(document) = Document::open(file) {
            document.assert_query("get", template, query);
        }
    }
}

#[test]
fn every_provider_is_called_at_the_host_of_its_region() {
    for (kind, base) in [
        (ProviderType::Sendgrid, "https://api.eu.sendgrid.com/"),
        (ProviderType::Postmark, "https://api.postmarkapp.com/"),
        (ProviderType::Mailgun, "https://api.eu.mailgun.net/"),
        (
            ProviderType::Ses,
            "https://email.eu-central-1.amazonaws.com/",
        ),
    ] {
        let call = send(kind, &plain_mail());
        assert_eq!(call.url.join("/").unwrap().as_str(), base);
        let here = ProviderHosts::all_at(&url("http://127.0.0.1:4000/prefix/"));
        let call = with_access_at(kind, &here, |access| {
            adapter(kind).send(access, &plain_mail())
        });
        let address = call.unwrap().url.to_string();
        assert!(
            address.starts_with("http://127.0.0.1:4000/prefix/v3/")
                || address.starts_with("http://127.0.0.1:4000/prefix/email")
                || address.starts_with("http://127.0.0.1:4000/prefix/v2/"),
            "{address}"
        );
    }
}

#[test]
fn every_mail_carries_our_ids_and_no_personal_data() {
    let mail = rich_mail();
    let expected = [
        (TAG_MESSAGE, mail.message_id.to_string()),
        (TAG_RECIPIENT, "7".to_owned()),
        (TAG_ATTEMPT, mail.attempt_id.to_string()),
    ];
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    let postmark = json_body(&send(ProviderType::Postmark, &mail));
    let mailgun = send(ProviderType::Mailgun, &mail);
    let ses = json_body(&send(ProviderType::Ses, &mail));
    for (name, id) in expected {
        assert_eq!(sendgrid["personalizations"][0]["custom_args"][name], id);
        assert_eq!(postmark["Metadata"][name], id);
        assert!(name.len() <= 20, "Postmark's limit");
        let variable = (format!("v:{name}"), id.clone());
        assert!(form_fields(&mailgun).contains(&variable));
        let tag = json!({ "Name": name, "Value": id });
        assert!(ses["EmailTags"].as_array().unwrap().contains(&tag));
    }
    assert_eq!(
        sendgrid["personalizations"][0]["custom_args"]
            .as_object()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(postmark["Metadata"].as_object().unwrap().len(), 3);
    let suppressed = ("o:suppress-headers", "X-Mailgun-Variables,X-Mailgun-Tag");
    assert!(form_fields(&mailgun).contains(&(suppressed.0.to_owned(), suppressed.1.to_owned())));
}

#[test]
fn names_are_sent_to_sendgrid_unquoted() {
    let party = |name: &str| {
        let name = name.replace('\\', r"\\").replace('"', r#"\""#);
        Mailbox::parse(&format!("\"{name}\" <ada@example.org>")).unwrap()
    };
    for name in [
        "Ada L.",
        "Zoë 📬",
        "Lovelace, Ada",
        "eve@example.net; Ada",
        "Ada (home): [1] <2>",
        r#"Ada "C" \ L"#,
    ] {
        let mail = OutgoingMail {
            to: vec![party(name)],
            from: party(name),
            ..rich_mail()
        };
        let body = json_body(&send(ProviderType::Sendgrid, &mail));
        assert_eq!(body["personalizations"][0]["to"][0]["name"], name);
        assert_eq!(body["from"]["name"], name);
        let mails = [
            mail.clone(),
            OutgoingMail {
                to: vec![Mailbox::parse("b@example.org").unwrap()],
                ..mail
            },
        ];
        let batch = with_access(ProviderType::Sendgrid, |access| {
            let batching = adapter(ProviderType::Sendgrid).batching().unwrap();
            batching.send(access, &mails).unwrap()
        });
        assert_eq!(
            json_body(&batch)["personalizations"][0]["to"][0]["name"],
            name
        );
    }
}

#[test]
fn a_name_that_is_too_long_for_ses_is_left_out() {
    for (name, is_kept) in [("я".repeat(60), true), ("я".repeat(95), false)] {
        let from = Mailbox::parse(&format!("{name} <zoe@example.com>")).unwrap();
        let mail = OutgoingMail {
            from,
            ..rich_mail()
        };
        let body = json_body(&send(ProviderType::Ses, &mail));
        let from = body["FromEmailAddress"].as_str().unwrap();
        assert!(
            from.len() <= 320 && from.contains("zoe@example.com"),
            "{from}"
        );
        assert_eq!(from.contains("=?utf-8?b?"), is_kept, "{from}");
    }
}

#[test]
fn each_provider_gets_the_tags_that_it_takes() {
    let mail = rich_mail();
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    assert_eq!(sendgrid["categories"], json!(["größe: XL", "b", "c", "d"]));
    let postmark = json_body(&send(ProviderType::Postmark, &mail));
    assert_eq!(postmark["Tag"], "größe: XL");
    let mailgun = send(ProviderType::Mailgun, &mail);
    let tags = form_fields(&mailgun)
        .iter()
        .filter(|(name, _)| name == "o:tag");
    let tags: Vec<&str> = tags.map(|(_, value)| value.as_str()).collect();
    assert_eq!(tags, ["gr__e: XL", "b", "c"]);
    let ses = json_body(&send(ProviderType::Ses, &mail));
    let tags = ses["EmailTags"].as_array().unwrap();
    assert_eq!(
        tags[3],
        json!({ "Name": "waypost_tag_0", "Value": "gr__e__XL" })
    );
    for tag in tags {
        for text in [&tag["Name"], &tag["Value"]] {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(text.as_str().unwrap().chars().all(allowed), "{text}");
        }
    }
}

#[test]
fn the_providers_own_tracking_is_off() {
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &plain_mail()));
    for switch in sendgrid["tracking_settings"].as_object().unwrap().values() {
        assert_eq!(switch["enable"], false);
    }
    let postmark = json_body(&send(ProviderType::Postmark, &plain_mail()));
    assert_eq!(postmark["TrackOpens"], false);
    assert_eq!(postmark["TrackLinks"], "None");
    let mailgun = send(ProviderType::Mailgun, &plain_mail());
    for name in ["o:tracking", "o:tracking-opens", "o:tracking-clicks"] {
        assert!(form_fields(&mailgun).contains(&(name.to_owned(), "no".to_owned())));
    }
}

#[test]
fn names_are_sent_in_the_form_that_each_provider_reads() {
    let mail = rich_mail();
    let sendgrid = json_body(&send(ProviderType::Sendgrid, &mail));
    assert_eq!(
        sendgrid["from"],
        json!({ "email": "zoe@example.com", "name": "Müller, Zoë" })
    );
    assert_eq!(sendgrid["content"][0]["type"], "text/plain");
    assert_eq!(sendgrid["content"][1]["type"], "text/html");
    let postmark = json_body(&send(ProviderType::Postmark, &mail));
    let ses = json_body(&send(ProviderType::Ses, &mail));
    let mailgun = send(ProviderType::Mailgun, &mail);
    let field = |name: &str| {
        let mut fields = form_fields(&mailgun).iter();
        fields.find(|(known, _)| known == name).unwrap().1.clone()
    };
    let texts = |value: &Value| Mailbox::parse(value.as_str().unwrap()).unwrap();
    assert_eq!(texts(&postmark["From"]), mail.from);
    assert_eq!(texts(&postmark["To"]), mail.to[0]);
    assert_eq!(Mailbox::parse(&field("from")).unwrap(), mail.from);
    assert_eq!(Mailbox::parse(&field("to")).unwrap(), mail.to[0]);
    assert!(field("h:Reply-To").is_ascii());
    for address in [
        &ses["FromEmailAddress"],
        &ses["Destination"]["ToAddresses"][0],
        &ses["ReplyToAddresses"][0],
    ] {
        assert!(address.as_str().unwrap().is_ascii(), "{address}");
    }
    assert_eq!(ses["Content"]["Simple"]["Subject"]["Charset"], "UTF-8");
    assert_eq!(ses["ConfigurationSetName"], "waypost");
    assert_eq!(postmark["MessageStream"], "outbound");
}

#[test]
fn mail_that_no_provider_could_take_is_refused_before_any_call() {
    type Breaking = fn(&mut OutgoingMail);
    let broken: [(&str, Breaking); 6] = [
        ("no body", |mail| {
            mail.text = None;
            mail.html = Some(String::new());
        }),
        ("no subject", |mail| mail.subject.clear()),
        ("a line break in the subject", |mail| {
            mail.subject = "a\nb".to_owned()
        }),
        ("a reserved header", |mail| {
            mail.headers = vec![("BCC".to_owned(), "x@example.com".to_owned())];
        }),
        ("a line break in a header", |mail| {
            mail.headers = vec![("X-A".to_owned(), "a\r\nBcc: x@example.com".to_owned())];
        }),
        ("a colon in a header's name", |mail| {
            mail.headers = vec![("X:A".to_owned(), "a".to_owned())];
        }),
    ];
    for (what, breaking) in broken {
        let mut mail = rich_mail();
        breaking(&mut mail);
        for kind in HTTP_PROVIDERS {
            let sent = with_access(kind, |access| adapter(kind).send(access, &mail));
            let refusal = sent.expect_err(what);
            assert!(!refusal.blames_account, "{what}");
            assert!(!refusal.reason.contains('@'), "{}", refusal.reason);
        }
    }
}

#[test]
fn credentials_of_another_provider_are_refused_and_not_sent() {
    for kind in HTTP_PROVIDERS {
        for other in ProviderType::ALL.into_iter().filter(|other| *other != kind) {
            let sent = with_access(other, |access| adapter(kind).send(access, &plain_mail()));
            assert!(sent.unwrap_err().blames_account);
        }
    }
}
