//! The adapters' look-ups of a mail whose reply was lost, call by call with prepared replies:
//! their requests, and which entries they accept as the mail.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::address::EmailAddress;
use waypost_core::ids::SendAttemptId;
use waypost_core::provider::adapter;
use waypost_core::provider::call::{CallStep, ProviderReply};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::lookup::{LookupResult, MessageQuery};

use super::documents::Document;
use super::{now, reply, with_access};

const ATTEMPT: &str = "01900000-0000-7000-8000-000000000002";
const OTHER: &str = "01900000-0000-7000-8000-000000000003";
const FOUND: &str = "0ac29aee-e1cd-480d-b08d-4f48548ff48d";
/// The types that have a search.
const SEARCHED: [ProviderType; 3] = [
    ProviderType::Postmark,
    ProviderType::Mailgun,
    ProviderType::Sendgrid,
];
const EVENTS: &str = "/v3/mg.example.com/events";

/// Looks up the mail with these replies; returns the result and the requests.
fn look_up(kind: ProviderType, replies: Vec<ProviderReply>) -> (LookupResult, Vec<String>) {
    let query = MessageQuery {
        attempt_id: SendAttemptId(Uuid::parse_str(ATTEMPT).unwrap()),
        started_at: now() - TimeDelta::minutes(2),
        recipient: EmailAddress::parse("ada+lists@example.org").unwrap(),
    };
    let mut step = with_access(kind, |access| adapter(kind).look_up(access, &query));
    let mut replies = VecDeque::from(replies);
    let mut asked = Vec::new();
    loop {
        match step {
            CallStep::Done(result) => {
                assert!(replies.is_empty(), "only {asked:?} was asked");
                return (result, asked);
            }
            CallStep::Call { call, then } => {
                let (path, query) = (call.url.path(), call.url.query().unwrap_or_default());
                assert_eq!(call.url.scheme(), "https");
                asked.push(format!("{} {path}?{query}", call.url.host_str().unwrap()));
                step = then(replies.pop_front().expect("a reply to every call"));
            }
        }
    }
}

fn json_reply(status: u16, body: &Value) -> ProviderReply {
    let json = [("content-type", "application/json")];
    reply(status, &json, &body.to_string())
}

fn good(body: &Value) -> ProviderReply {
    json_reply(200, body)
}

fn taken(id: &str) -> LookupResult {
    LookupResult::Taken {
        provider_message_id: Some(id.to_owned()),
    }
}

/// A reply that lists one mail with this attempt's id.
fn listing(kind: ProviderType, attempt: &str) -> Vec<ProviderReply> {
    match kind {
        ProviderType::Postmark => vec![good(&json!({ "TotalCount": 1, "Messages": [
            { "MessageID": FOUND, "Metadata": { "waypost_attempt": attempt } },
        ]}))],
        ProviderType::Mailgun => vec![good(&json!({ "items": [{
            "event": "accepted",
            "message": { "headers": { "message-id": FOUND } },
            "user-variables": { "waypost_attempt": attempt },
        }], "paging": { "next": "https://api.eu.mailgun.net/v3/mg.example.com/events/W3s" } }))],
        ProviderType::Sendgrid => vec![
            good(&json!({ "messages": [{ "msg_id": format!("{FOUND}.recvd-1.0") }] })),
            good(&json!({ "unique_args": format!("{{'waypost_attempt': '{attempt}'}}") })),
        ],
        ProviderType::Ses | ProviderType::Smtp => Vec::new(),
    }
}

#[test]
fn the_mail_is_found_by_the_attempts_id_and_by_nothing_else() {
    for kind in SEARCHED {
        assert_eq!(
            look_up(kind, listing(kind, ATTEMPT)).0,
            taken(FOUND),
            "{kind}"
        );
        // A provider that ignores the filter lists other mails.
        assert_eq!(
            look_up(kind, listing(kind, OTHER)).0,
            LookupResult::NotFound,
            "{kind}"
        );
    }
}

#[test]
fn providers_without_a_search_are_not_called() {
    for kind in [ProviderType::Ses, ProviderType::Smtp] {
        let (result, asked) = look_up(kind, Vec::new());
        assert!(
            matches!(result, LookupResult::NoSearch { .. }),
            "{kind}: {result:?}"
        );
        assert!(asked.is_empty(), "{kind}");
    }
}

#[test]
fn each_provider_is_searched_by_the_fields_that_it_supports() {
    let asked = |kind| look_up(kind, listing(kind, ATTEMPT)).1;
    assert_eq!(
        asked(ProviderType::Postmark),
        [format!(
            "api.postmarkapp.com /messages/outbound?count=10&offset=0\
             &metadata_waypost_attempt={ATTEMPT}&messagestream=outbound"
        )]
    );
    // Two minutes before now, and one more for Mailgun's clock.
    assert_eq!(
        asked(ProviderType::Mailgun),
        [format!(
            "api.eu.mailgun.net {EVENTS}?begin=1795262220&ascending=yes&limit=100\
             &recipient=ada%2Blists%40example.org"
        )]
    );
    assert_eq!(
        asked(ProviderType::Sendgrid),
        [
            format!(
                "api.eu.sendgrid.com /v3/messages?limit=2&query=%28unique_args%5B%27waypost_attempt%27\
                 %5D%3D%22{ATTEMPT}%22%29"
            ),
            format!("api.eu.sendgrid.com /v3/messages/{FOUND}.recvd-1.0?"),
        ]
    );
}

#[test]
fn the_descriptions_document_the_searches() {
    if let Some(document) = Document::open("postmark-server.json") {
        // The metadata and the stream are documented on the vendor's pages only.
        document.assert_query("get", "/messages/outbound", &["count", "offset"]);
        document.operation("get", "/messages/outbound/{messageid}/details");
    }
    if let Some(document) = Document::open("mailgun.openapi.json") {
        let names = ["begin", "ascending", "limit", "recipient"];
        document.assert_query("get", "/v3/{domain_name}/events", &names);
    }
}

#[test]
fn an_empty_reply_proves_nothing() {
    for (kind, body) in [
        (
            ProviderType::Postmark,
            json!({ "TotalCount": 0, "Messages": [] }),
        ),
        (ProviderType::Mailgun, json!({ "items": [], "paging": {} })),
        (ProviderType::Sendgrid, json!({ "messages": [] })),
    ] {
        assert_eq!(
            look_up(kind, vec![good(&body)]).0,
            LookupResult::NotFound,
            "{kind}"
        );
    }
}

#[test]
fn unusable_replies_leave_the_look_up_undecided() {
    let html = "<html>403 Forbidden</html>";
    for kind in SEARCHED {
        for (status, body) in [
            (500, "{}"),
            (503, ""),
            (302, ""),
            (200, html),
            (403, html),
            (200, "{}"),
            (200, "Mailgun Magnificent API"),
            (200, "[[["),
            (400, r#"{"errors":[{"message":"invalid syntax"}]}"#),
            (404, "{}"),
        ] {
            let (result, _) = look_up(kind, vec![reply(status, &[], body)]);
            let is_undecided = matches!(result, LookupResult::Undecided { .. });
            assert!(is_undecided, "{kind} {status} {body}: {result:?}");
        }
    }
}

#[test]
fn a_rate_limit_names_the_wait() {
    let reset = (now() + TimeDelta::seconds(40)).timestamp().to_string();
    for (kind, headers, body, wait) in [
        (
            ProviderType::Sendgrid,
            vec![("x-ratelimit-reset", reset.as_str())],
            "{}",
            Some(40),
        ),
        (
            ProviderType::Postmark,
            vec![("retry-after", "7")],
            "{}",
            Some(7),
        ),
        (ProviderType::Postmark, vec![], "{}", None),
        (
            ProviderType::Mailgun,
            vec![],
            r#"{"message":"limit exceeded, try again after 120 seconds"}"#,
            Some(120),
        ),
    ] {
        let (result, _) = look_up(kind, vec![reply(429, &headers, body)]);
        let LookupResult::Throttled { retry_after, .. } = result else {
            panic!("{kind}: {result:?}")
        };
        assert_eq!(retry_after, wait.map(Duration::from_secs), "{kind}");
    }
}

#[test]
fn a_key_that_may_not_search_has_no_search() {
    let error = |text: &str| json!({ "errors": [{ "message": text }] });
    for (kind, status, body, has_none) in [
        (ProviderType::Sendgrid, 403, error("access forbidden"), true),
        (
            ProviderType::Sendgrid,
            401,
            error("authorization required"),
            true,
        ),
        (
            ProviderType::Sendgrid,
            401,
            error("Maximum credits exceeded"),
            false,
        ),
        (ProviderType::Mailgun, 401, json!("Forbidden"), true),
        (ProviderType::Mailgun, 403, json!({ "message": "no" }), true),
        // Every server token may search: the token itself is wrong.
        (
            ProviderType::Postmark,
            401,
            json!({ "ErrorCode": 10 }),
            false,
        ),
    ] {
        let (result, _) = look_up(kind, vec![json_reply(status, &body)]);
        let found = matches!(result, LookupResult::NoSearch { .. });
        assert_eq!(found, has_none, "{kind} {status} {body}: {result:?}");
    }
}

#[test]
fn postmarks_details_are_read_if_the_list_shows_no_metadata() {
    let kind = ProviderType::Postmark;
    let second = "0ac29aee-e1cd-480d-b08d-4f48548ff48e";
    let entries = json!({ "Messages": [
        { "MessageID": FOUND }, { "MessageID": "../../servers" }, { "MessageID": second },
        { "MessageID": second }, { "MessageID": second },
    ]});
    let details = |attempt: &str| good(&json!({ "Metadata": { "waypost_attempt": attempt } }));
    let replies = vec![good(&entries), details(OTHER), details(ATTEMPT)];
    let (result, asked) = look_up(kind, replies);
    assert_eq!(result, taken(second));
    assert_eq!(
        asked[1..],
        [FOUND, second]
            .map(|id| { format!("api.postmarkapp.com /messages/outbound/{id}/details?") })
    );
    let replies = vec![good(&entries), details(OTHER), details(OTHER)];
    assert_eq!(
        look_up(kind, replies).0,
        LookupResult::NotFound,
        "and no more are asked for"
    );
}

#[test]
fn sendgrids_entries_are_read_within_bounds() {
    let kind = ProviderType::Sendgrid;
    let entries = json!({ "messages": [
        { "msg_id": "../scopes" }, { "msg_id": "a/b" }, { "msg_id": "" }, { "msg_id": 7 },
        { "msg_id": "one.1" }, { "msg_id": "two.1" }, { "msg_id": "three.1" },
    ]});
    let details = |arguments: Value| good(&json!({ "unique_args": arguments }));
    let replies = vec![
        good(&entries),
        details(json!("{}")),
        details(json!({ "waypost_attempt": ATTEMPT })),
    ];
    let (result, asked) = look_up(kind, replies);
    assert_eq!(result, taken("two"));
    let host = "api.eu.sendgrid.com";
    assert_eq!(
        asked[1..],
        ["one.1", "two.1"].map(|id| format!("{host} /v3/messages/{id}?"))
    );
    let replies = vec![good(&entries), details(json!("{}")), details(json!(null))];
    assert_eq!(look_up(kind, replies).0, LookupResult::NotFound);
}

#[test]
fn mailguns_pages_are_followed_at_its_own_address_within_bounds() {
    let kind = ProviderType::Mailgun;
    let page = |event: &str, attempt: &str, next: &str| {
        let event = json!({ "event": event, "user-variables": { "waypost_attempt": attempt } });
        good(&json!({ "items": vec![event; 100], "paging": { "next": next } }))
    };
    // The key is sent to no other host, whatever the reply names.
    let elsewhere = "https://evil.example/v3/x/events/W3siY";
    let replies = vec![
        page("delivered", OTHER, elsewhere),
        page("rejected", ATTEMPT, elsewhere),
        page("delivered", ATTEMPT, elsewhere),
    ];
    let (result, asked) = look_up(kind, replies);
    let nameless = LookupResult::Taken {
        provider_message_id: None,
    };
    assert_eq!(result, nameless, "what was rejected was not taken");
    let next = format!("api.eu.mailgun.net {EVENTS}/W3siY?");
    assert_eq!(asked[1..], [next.clone(), next]);
    let endless = || page("delivered", OTHER, elsewhere);
    let (result, asked) = look_up(kind, vec![endless(), endless(), endless()]);
    assert_eq!((result, asked.len()), (LookupResult::NotFound, 3));
    let long = format!("https://evil.example/events/{}", "x".repeat(5_000));
    for next in [
        "nowhere",
        "https://evil.example/events/a/b",
        "https://evil.example/events/",
        &long,
    ] {
        let (result, asked) = look_up(kind, vec![page("delivered", OTHER, next)]);
        assert_eq!((result, asked.len()), (LookupResult::NotFound, 1), "{next}");
    }
}

#[test]
fn an_id_that_does_not_fit_an_index_is_left_out() {
    let kind = ProviderType::Mailgun;
    for id in ["x".repeat(256), "a\0b".to_owned(), String::new()] {
        let items = json!([{
            "event": "accepted",
            "message": { "headers": { "message-id": id } },
            "user-variables": { "waypost_attempt": ATTEMPT },
        }]);
        let (result, _) = look_up(kind, vec![good(&json!({ "items": items }))]);
        let nameless = LookupResult::Taken {
            provider_message_id: None,
        };
        assert_eq!(result, nameless);
    }
}
