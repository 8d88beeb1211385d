//! Reading the providers' suppression lists, call by call with prepared replies, against
//! the providers' official descriptions.

use serde_json::{Value, json};
use waypost_core::provider::adapter;
use waypost_core::provider::call::{CallStep, ProviderCall};
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::suppression_list::{ListCursor, ListPage, ListReason, ListResult};

use super::documents::Document;
use super::{reply, with_access};

/// Reads one page with this reply; returns the result and the call.
fn read(
    kind: ProviderType,
    cursor: &ListCursor,
    status: u16,
    body: &Value,
) -> (ListResult, ProviderCall) {
    let step = with_access(kind, |access| adapter(kind).suppressions(access, cursor));
    let CallStep::Call { call, then } = step else {
        panic!("{kind} made no call: {step:?}");
    };
    let json = [("content-type", "application/json")];
    match then(reply(status, &json, &body.to_string())) {
        CallStep::Done(result) => (result, *call),
        more @ CallStep::Call { .. } => panic!("one call is enough: {more:?}"),
    }
}

/// Reads all pages; the nth call gets the nth reply.
fn read_all(kind: ProviderType, replies: &[Value]) -> (Vec<ListPage>, Vec<ProviderCall>) {
    let (mut cursor, mut pages, mut calls) = (Some(ListCursor::default()), Vec::new(), Vec::new());
    for body in replies {
        let at = cursor.expect("more pages are named");
        // A client keeps the cursor meanwhile.
        let at = ListCursor::read(&at.write()).unwrap();
        let (result, call) = read(kind, &at, 200, body);
        let ListResult::Page(page) = result else {
            panic!("{result:?}");
        };
        cursor = page.next.clone();
        pages.push(page);
        calls.push(call);
    }
    assert_eq!(cursor, None, "{calls:?}");
    (pages, calls)
}

fn asked(calls: &[ProviderCall]) -> Vec<String> {
    let line = |call: &ProviderCall| {
        let query = call.url.query().unwrap_or_default();
        format!("{} {}?{query}", call.method, call.url.path())
    };
    calls.iter().map(line).collect()
}

fn entries(pages: &[ListPage]) -> Vec<(String, ListReason, Option<i64>)> {
    let all = pages.iter().flat_map(|page| &page.addresses);
    all.map(|listed| {
        let since = listed.since.map(|since| since.timestamp());
        (listed.address.as_str().to_owned(), listed.reason, since)
    })
    .collect()
}

fn names(query: Option<&str>) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.map(|(name, _)| name.into_owned()).collect()
}

#[test]
fn sendgrid_lists_are_read_by_offset() {
    let kind = ProviderType::Sendgrid;
    let full: Vec<Value> = (0..500)
        .map(|nth| json!({ "created": 1_443_651_125, "email": format!("r{nth}@example.org"), "reason": "550", "status": "5.1.1" }))
        .collect();
    let one = |email: &str| json!([{ "created": 1_443_651_154, "email": email }]);
    let replies = [
        Value::Array(full),
        json!([]),
        one("invalid@example.org"),
        one("spam@example.org"),
        json!([{ "email": "left@example.org" }, { "email": "no address" }, {}]),
    ];
    let (pages, calls) = read_all(kind, &replies);
    assert_eq!(
        asked(&calls),
        [
            "GET /v3/suppression/bounces?limit=500&offset=0",
            "GET /v3/suppression/bounces?limit=500&offset=500",
            "GET /v3/suppression/invalid_emails?limit=500&offset=0",
            "GET /v3/suppression/spam_reports?limit=500&offset=0",
            "GET /v3/suppression/unsubscribes?limit=500&offset=0",
        ]
    );
    assert!(
        calls
            .iter()
            .all(|call| call.headers.contains_key("authorization"))
    );
    let found = entries(&pages);
    assert_eq!(
        found[0],
        (
            "r0@example.org".to_owned(),
            ListReason::Bounce,
            Some(1_443_651_125)
        )
    );
    assert_eq!(
        found[500..],
        [
            (
                "invalid@example.org".to_owned(),
                ListReason::Bounce,
                Some(1_443_651_154)
            ),
            (
                "spam@example.org".to_owned(),
                ListReason::Complaint,
                Some(1_443_651_154)
            ),
            ("left@example.org".to_owned(), ListReason::Unsubscribe, None),
        ]
    );
    assert_eq!(pages[4].unusable, 2);
}

#[test]
fn postmark_suppressions_are_read_by_reason() {
    let kind = ProviderType::Postmark;
    let one = |email: &str, reason: &str| json!({ "Suppressions": [{ "EmailAddress": email, "SuppressionReason": reason, "Origin": "Recipient", "CreatedAt": "2019-12-10T08:58:33-05:00" }] });
    let replies = [
        one("hard@example.org", "HardBounce"),
        one("spam@example.org", "SpamComplaint"),
        // The filter was not applied.
        one("hard@example.org", "HardBounce"),
    ];
    let (pages, calls) = read_all(kind, &replies);
    let path = "GET /message-streams/outbound/suppressions/dump?SuppressionReason=";
    assert_eq!(
        asked(&calls),
        ["HardBounce", "SpamComplaint", "ManualSuppression"]
            .map(|reason| format!("{path}{reason}"))
    );
    assert!(
        calls
            .iter()
            .all(|call| call.headers.contains_key("x-postmark-server-token"))
    );
    assert_eq!(
        entries(&pages),
        [
            (
                "hard@example.org".to_owned(),
                ListReason::Bounce,
                Some(1_575_986_313)
            ),
            (
                "spam@example.org".to_owned(),
                ListReason::Complaint,
                Some(1_575_986_313)
            ),
        ]
    );
    assert_eq!(pages[2].unusable, 1);
    // The Swagger document is older than the call. It knows the words of its reasons.
    if let Some(document) = Document::open("postmark-server.json") {
        document.operation("get", "/bounces");
    }
}

/// The replies to a whole reading of Mailgun's lists.
fn mailgun_replies() -> [Value; 7] {
    let page = |list: &str, item: Value, next: &str| {
        let next = format!(
            "https://evil.example/v3/other.example/{list}?page=next&address={next}&limit=1000&x=y"
        );
        json!({ "items": [item], "paging": { "next": next } })
    };
    let empty = json!({ "items": [], "paging": { "next": "https://api.mailgun.net/v3/x?page=next&address=z" } });
    let at = "Thu, 11 Dec 2025 01:49:40 UTC";
    [
        page(
            "bounces",
            json!({ "address": "a+b@example.org", "code": "550", "created_at": at }),
            "a%2Bb%40example.org",
        ),
        empty.clone(),
        page(
            "complaints",
            json!({ "address": "spam@example.org", "created_at": at }),
            "spam%40example.org",
        ),
        empty.clone(),
        page(
            "unsubscribes",
            json!({ "address": "left@example.org", "tags": ["*"], "created_at": at }),
            "left%40example.org",
        ),
        page(
            "unsubscribes",
            json!({ "address": "tag@example.org", "tags": ["some tag"], "created_at": at }),
            "tag%40example.org",
        ),
        json!({ "items": [], "paging": {} }),
    ]
}

#[test]
fn mailgun_lists_are_read_by_their_links_on_the_own_host() {
    let (pages, calls) = read_all(ProviderType::Mailgun, &mailgun_replies());
    assert!(
        calls
            .iter()
            .all(|call| call.url.host_str() == Some("api.eu.mailgun.net"))
    );
    assert_eq!(
        asked(&calls)[..3],
        [
            "GET /v3/mg.example.com/bounces?limit=1000",
            "GET /v3/mg.example.com/bounces?limit=1000&page=next&address=a%2Bb%40example.org",
            "GET /v3/mg.example.com/complaints?limit=1000",
        ]
    );
    assert_eq!(
        entries(&pages),
        [
            (
                "a+b@example.org".to_owned(),
                ListReason::Bounce,
                Some(1_765_417_780)
            ),
            (
                "spam@example.org".to_owned(),
                ListReason::Complaint,
                Some(1_765_417_780)
            ),
            (
                "left@example.org".to_owned(),
                ListReason::Unsubscribe,
                Some(1_765_417_780)
            ),
        ]
    );
    assert_eq!(pages.iter().map(|page| page.unusable).sum::<usize>(), 1);
    if let Some(document) = Document::open("mailgun.openapi.json") {
        for call in &calls {
            let list = call.url.path().rsplit('/').next().unwrap();
            let template = format!("/v3/{{domain_name}}/{list}");
            let names = names(call.url.query());
            // The document forgets the parameter "address" of bounces, whose text names it.
            let names = names
                .iter()
                .filter(|name| list != "bounces" || *name != "address");
            let names: Vec<&str> = names.map(String::as_str).collect();
            document.assert_query("get", &template, &names);
        }
    }
}

#[test]
fn ses_addresses_are_read_by_token() {
    let kind = ProviderType::Ses;
    let entry = |email: &str, reason: &str| json!({ "EmailAddress": email, "Reason": reason, "LastUpdateTime": 1_575_986_313.5 });
    let replies = [
        json!({ "SuppressedDestinationSummaries": [entry("a@example.org", "BOUNCE")], "NextToken": "t+/= &x" }),
        json!({ "SuppressedDestinationSummaries": [entry("b@example.org", "COMPLAINT")], "NextToken": "" }),
    ];
    let (pages, calls) = read_all(kind, &replies);
    assert_eq!(
        asked(&calls),
        [
            "GET /v2/email/suppression/addresses?PageSize=1000",
            "GET /v2/email/suppression/addresses?NextToken=t%2B%2F%3D%20%26x&PageSize=1000",
        ]
    );
    assert!(
        calls
            .iter()
            .all(|call| call.headers.contains_key("authorization"))
    );
    assert_eq!(
        entries(&pages),
        [
            (
                "a@example.org".to_owned(),
                ListReason::Bounce,
                Some(1_575_986_313)
            ),
            (
                "b@example.org".to_owned(),
                ListReason::Complaint,
                Some(1_575_986_313)
            ),
        ]
    );
    assert_eq!(read_all(kind, &[json!({})]).0[0], ListPage::default());
    if let Some(document) = Document::open("sesv2.openapi.json") {
        for call in &calls {
            let names = names(call.url.query());
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            document.assert_query("get", "/v2/email/suppression/addresses", &names);
        }
    }
}

/// Replies after which the same call would fail again.
fn refusals() -> Vec<(ProviderType, u16, Value)> {
    use ProviderType::{Mailgun, Postmark, Sendgrid, Ses};
    vec![
        (
            Sendgrid,
            403,
            json!({ "errors": [{ "message": "access forbidden" }] }),
        ),
        (
            Postmark,
            422,
            json!({ "ErrorCode": 1226, "Message": "not found" }),
        ),
        (
            Postmark,
            401,
            json!({ "ErrorCode": 10, "Message": "no token" }),
        ),
        (Mailgun, 401, json!("Forbidden")),
        (Mailgun, 404, json!({ "message": "Domain not found" })),
        (
            Ses,
            403,
            json!({ "__type": "AccessDeniedException", "message": "not authorized" }),
        ),
    ]
}

/// Replies after which the same call may succeed.
fn failures() -> Vec<(ProviderType, u16, Value)> {
    use ProviderType::{Mailgun, Postmark, Sendgrid, Ses};
    vec![
        (
            Sendgrid,
            401,
            json!({ "errors": [{ "message": "Maximum credits exceeded" }] }),
        ),
        (
            Sendgrid,
            429,
            json!({ "errors": [{ "message": "too many requests" }] }),
        ),
        (Sendgrid, 500, json!({})),
        (Sendgrid, 200, json!({ "email": "a@example.org" })),
        (
            Postmark,
            500,
            json!({ "ErrorCode": 100, "Message": "maintenance" }),
        ),
        (Postmark, 200, json!({ "Bounces": [] })),
        (Mailgun, 420, json!({ "message": "limit" })),
        (Mailgun, 200, json!("Mailgun Magnificent API")),
        (
            Ses,
            400,
            json!({ "__type": "TooManyRequestsException", "message": "Rate exceeded" }),
        ),
        (
            Ses,
            400,
            json!({ "__type": "ThrottlingException", "message": "Rate exceeded" }),
        ),
        (Ses, 200, json!({ "EmailIdentities": [] })),
        (Ses, 502, json!({})),
    ]
}

#[test]
fn refusals_and_failures_are_told_apart() {
    use ProviderType::{Sendgrid, Ses};
    let refusals = refusals().into_iter().map(|reply| (reply, true));
    let failures = failures().into_iter().map(|reply| (reply, false));
    for ((kind, status, body), is_refused) in refusals.chain(failures) {
        let (result, _) = read(kind, &ListCursor::default(), status, &body);
        let fits = match &result {
            ListResult::Refused { .. } => is_refused,
            ListResult::Undecided { .. } => !is_refused,
            ListResult::Page(_) | ListResult::NotOffered | ListResult::NoSuchPage => false,
        };
        assert!(fits, "{kind} {status} {body}: {result:?}");
    }
    let expired = json!({ "__type": "InvalidNextTokenException", "message": "expired" });
    let (result, _) = read(Ses, &ListCursor::default(), 400, &expired);
    assert_eq!(result, ListResult::NoSuchPage);
    let page = reply(
        200,
        &[("content-type", "text/html")],
        "<html>sign in</html>",
    );
    let step = with_access(Sendgrid, |access| {
        adapter(Sendgrid).suppressions(access, &ListCursor::default())
    });
    let CallStep::Call { then, .. } = step else {
        panic!("{step:?}");
    };
    assert!(matches!(
        then(page),
        CallStep::Done(ListResult::Undecided { .. })
    ));
}
