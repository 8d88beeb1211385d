//! The outcome of each reply to a send: one row per row of the fact sheets' error tables,
//! per error of the official descriptions, and per reply that was seen in the field
//! (`replies/*.rs`, a table for each provider), and replies that do not come from the API.

mod mailgun;
mod postmark;
mod sendgrid;
mod ses;

use waypost_core::provider::adapter;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::{AccountTrouble, SendOutcome};
use waypost_tests::HTTP_PROVIDERS;

use super::{now, plain_mail, reply};

/// Status, headers, body, class of the outcome.
type Row = (
    u16,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

const HTML: &str = "<!DOCTYPE html><html><body>403 Forbidden</body></html>";

fn class(outcome: &SendOutcome) -> String {
    let wait = |wait: &Option<std::time::Duration>| {
        wait.map_or_else(String::new, |wait| format!(" {}s", wait.as_secs()))
    };
    match outcome {
        SendOutcome::Accepted {
            provider_message_id,
        } => {
            format!("accepted {}", provider_message_id.as_deref().unwrap_or("-"))
        }
        SendOutcome::Rejected { blame, .. } => format!("rejected {blame:?}").to_lowercase(),
        SendOutcome::Deferred { retry_after, .. } => format!("deferred{}", wait(retry_after)),
        SendOutcome::AccountUnusable {
            trouble,
            retry_after,
            ..
        } => match trouble {
            AccountTrouble::Temporary => format!("account temporary{}", wait(retry_after)),
            AccountTrouble::Permanent => format!("account permanent{}", wait(retry_after)),
        },
        SendOutcome::Throttled { retry_after, .. } => format!("throttled{}", wait(retry_after)),
        SendOutcome::Unavailable { retry_after, .. } => format!("unavailable{}", wait(retry_after)),
        SendOutcome::Unknown { .. } => "unknown".to_owned(),
    }
}

fn reason(outcome: &SendOutcome) -> &str {
    match outcome {
        SendOutcome::Accepted { .. } => "",
        SendOutcome::Rejected { reason, .. }
        | SendOutcome::Deferred { reason, .. }
        | SendOutcome::AccountUnusable { reason, .. }
        | SendOutcome::Throttled { reason, .. }
        | SendOutcome::Unavailable { reason, .. }
        | SendOutcome::Unknown { reason } => reason,
    }
}

fn assert_rows(kind: ProviderType, rows: &[Row]) {
    for (status, headers, body, expected) in rows {
        let outcome = adapter(kind).read_send(&reply(*status, headers, body), now());
        assert_eq!(class(&outcome), *expected, "{kind} {status} {body}");
        let reason = reason(&outcome);
        assert!(!reason.contains('@') && !reason.contains('\n'), "{reason}");
        assert!(reason.chars().count() <= 300);
    }
}

#[test]
fn a_reply_that_is_not_the_providers_leaves_the_outcome_unknown() {
    let html = &[("content-type", "text/html; charset=utf-8")][..];
    let json = &[("content-type", "application/json")][..];
    for kind in HTTP_PROVIDERS {
        let mut rows: Vec<Row> = vec![
            (200, html, HTML, "unknown"),
            (200, &[], "", "unknown"),
            (200, &[], "{}", "unknown"),
            (200, json, r#"{"status":"ok"}"#, "unknown"),
            (301, &[("location", "https://example.com")], "", "unknown"),
            (307, &[("location", "/again")], "", "unknown"),
            (401, html, HTML, "unknown"),
            (403, html, HTML, "unknown"),
            (403, &[], "  <html>Blocked</html>", "unknown"),
            (403, json, r#"{"detail":"blocked by policy"}"#, "unknown"),
            (404, html, "nothing here", "unknown"),
            (404, &[], "404 page not found", "unknown"),
            (407, &[], "", "unknown"),
            (408, &[], "", "unknown"),
            (500, html, HTML, "unknown"),
            (500, &[], "", "unknown"),
            (500, &[("x-ratelimit-reset", "1795262460")], "{}", "unknown"),
            (503, &[("retry-after", "120")], "", "unknown"),
            (503, &[], "no healthy upstream", "unknown"),
            (503, json, r#"{"error":"upstream"}"#, "unknown"),
            // These always mean that nothing was taken.
            (413, html, HTML, "rejected message"),
            (413, &[], "", "rejected message"),
            (429, html, HTML, "throttled"),
            (429, &[("retry-after", "7")], "", "throttled 7s"),
        ];
        for status in [
            502, 504, 520, 521, 522, 523, 524, 525, 526, 527, 530, 598, 599,
        ] {
            rows.push((status, html, HTML, "unknown"));
            rows.push((status, &[], "", "unknown"));
            rows.push((status, &[], "error code: 502", "unknown"));
        }
        assert_rows(kind, &rows);
    }
}

/// Names and values.
type Headers = &'static [(&'static str, &'static str)];

#[test]
fn a_gateway_without_a_reply_leaves_the_outcome_unknown_in_any_form() {
    for status in [502, 504, 520, 522, 524] {
        let own: [(ProviderType, Headers, &str); 4] = [
            (
                ProviderType::Sendgrid,
                &[],
                r#"{"errors":[{"message":"bad gateway","field":null}]}"#,
            ),
            (
                ProviderType::Postmark,
                &[],
                r#"{"ErrorCode":100,"Message":"Gateway timeout"}"#,
            ),
            (
                ProviderType::Mailgun,
                &[],
                r#"{"message":"Endpoint request timed out"}"#,
            ),
            (
                ProviderType::Ses,
                &[("x-amzn-errortype", "InternalFailure")],
                r#"{"message":"timeout"}"#,
            ),
        ];
        for (kind, headers, body) in own {
            let outcome = adapter(kind).read_send(&reply(status, headers, body), now());
            assert_eq!(class(&outcome), "unknown", "{kind} {status}");
        }
    }
}

#[test]
fn the_wait_is_read_in_each_form_and_bounded() {
    for (name, value, expected) in [
        ("retry-after", "30", "throttled 30s"),
        (
            "retry-after",
            "Sat, 21 Nov 2026 12:02:00 GMT",
            "throttled 120s",
        ),
        ("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT", "throttled"),
        ("retry-after", "0", "throttled"),
        ("retry-after", "soon", "throttled"),
        ("retry-after", "999999999999", "throttled 3600s"),
        ("x-ratelimit-reset", "1795262407", "throttled 7s"),
        ("x-ratelimit-reset", "1795262000", "throttled"),
        ("x-ratelimit-reset", "1795262400", "throttled"),
        ("x-ratelimit-reset", "9795262400", "throttled 3600s"),
    ] {
        let outcome =
            adapter(ProviderType::Sendgrid).read_send(&reply(429, &[(name, value)], "{}"), now());
        assert_eq!(class(&outcome), expected, "{name}: {value}");
    }
}

#[test]
fn a_recipient_that_ses_has_not_verified_is_to_blame() {
    let mail = plain_mail();
    let (from, to) = (mail.from.address().as_str(), mail.to[0].address().as_str());
    for (named, expected) in [
        (to.to_owned(), "rejected recipient"),
        (to.to_uppercase(), "rejected recipient"),
        (from.to_owned(), "rejected sender"),
        (format!("{from}, {to}"), "rejected sender"),
        (format!("{to}, {from}"), "rejected sender"),
        ("example.net".to_owned(), "rejected sender"),
    ] {
        let body = format!(
            r#"{{"message":"Email address is not verified. The following identities failed the check in region EU-WEST-1: {named}"}}"#
        );
        let headers = [("x-amzn-errortype", "MessageRejected")];
        let reply = reply(400, &headers, &body);
        let outcome = adapter(ProviderType::Ses).read_send_of(&mail, &reply, now());
        assert_eq!(class(&outcome), expected, "{named}");
        assert!(!reason(&outcome).contains('@'));
    }
}

/// A row with a body and no relevant headers.
const fn row(status: u16, body: &'static str, class: &'static str) -> Row {
    (status, &[], body, class)
}

#[test]
fn every_known_reply_has_its_outcome() {
    for (kind, rows) in [
        (ProviderType::Sendgrid, sendgrid::ROWS),
        (ProviderType::Postmark, postmark::ROWS),
        (ProviderType::Mailgun, mailgun::ROWS),
        (ProviderType::Ses, ses::ROWS),
    ] {
        assert_rows(kind, rows);
    }
}

#[test]
fn only_a_202_of_sendgrid_proves_acceptance_by_its_status() {
    for kind in HTTP_PROVIDERS {
        for status in [200, 201, 202, 204, 400, 500] {
            let proof = kind == ProviderType::Sendgrid && status == 202;
            assert_eq!(
                adapter(kind).status_is_proof(status),
                proof,
                "{kind} {status}"
            );
        }
    }
}
