//! The transport's outcomes for calls that break, and the requests that it writes.

use std::time::Duration;

use tokio::net::TcpListener;
use url::Url;
use waypost_core::provider::call::{CallStep, ProviderCall};
use waypost_core::provider::domain::DomainList;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::{CredentialCheck, SendOutcome};
use waypost_core::provider::transport::{Transport, TransportError, TransportSettings};
use waypost_core::provider::{AccountAccess, ProviderHosts, adapter};
use waypost_tests::HTTP_PROVIDERS;

use super::local_server::{Behaviour, LocalServer};
use super::{credentials, now, plain_mail, rich_mail, url};

fn transport() -> Transport {
    Transport::new(&TransportSettings {
        connect_timeout: Duration::from_millis(500),
        call_timeout: Duration::from_millis(1_000),
        ..TransportSettings::default()
    })
    .unwrap()
}

/// An address without a listener.
async fn unreachable() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url(&format!("http://{}", listener.local_addr().unwrap()))
}

async fn send_to(kind: ProviderType, base: &Url) -> (SendOutcome, Option<u16>) {
    let access = AccountAccess {
        credentials: &credentials(kind),
        endpoints: &ProviderHosts::all_at(base),
        now: now(),
    };
    transport()
        .send(adapter(kind), &access, &plain_mail())
        .await
}

async fn get(base: &Url) -> Result<u16, TransportError> {
    let reply = transport().call(ProviderCall::get(base.clone())).await?;
    Ok(reply.status)
}

#[tokio::test]
async fn a_call_without_a_connection_was_not_sent() {
    let refused = unreachable().await;
    let server = LocalServer::start(Behaviour::Silent).await;
    let mut no_tls = server.url.clone();
    no_tls.set_scheme("https").unwrap();
    let plain = LocalServer::start(Behaviour::Say("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let mut not_tls = plain.url.clone();
    not_tls.set_scheme("https").unwrap();
    for base in [refused, no_tls, not_tls, url("http://waypost.invalid")] {
        let error = get(&base).await.unwrap_err();
        assert!(
            matches!(error, TransportError::NotSent { .. }),
            "{base}: {error}"
        );
        assert!(!error.to_string().contains("http://"), "{error}");
    }
}

#[tokio::test]
async fn a_call_that_breaks_later_is_unanswered() {
    for manner in [
        Behaviour::Close,
        Behaviour::ReadAndClose,
        Behaviour::Silent,
        Behaviour::Say("HTTP/1.1 200"),
        Behaviour::Say("SSH-2.0-server\r\n"),
        Behaviour::Say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive!"),
        Behaviour::Flood(2 * 1024 * 1024),
    ] {
        let server = LocalServer::start(manner).await;
        let error = get(&server.url).await.unwrap_err();
        assert!(
            matches!(error, TransportError::Unanswered { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_reason_says_which_time_limit_ended() {
    let silent = LocalServer::start(Behaviour::Silent).await;
    let mut no_tls = silent.url.clone();
    no_tls.set_scheme("https").unwrap();
    for (base, said) in [
        (&no_tls, "the time limit for the connection ended"),
        (&silent.url, "the time limit for the answer ended"),
    ] {
        let error = get(base).await.unwrap_err().to_string();
        assert!(error.ends_with(said), "{base}: {error}");
    }
}

#[tokio::test]
async fn a_send_that_was_not_sent_is_unavailable_and_one_without_a_reply_is_unknown() {
    let refused = unreachable().await;
    let silent = LocalServer::start(Behaviour::Silent).await;
    let reset = LocalServer::start(Behaviour::ReadAndClose).await;
    for kind in HTTP_PROVIDERS {
        let (outcome, status) = send_to(kind, &refused).await;
        assert!(
            matches!(outcome, SendOutcome::Unavailable { .. }),
            "{outcome:?}"
        );
        assert_eq!(status, None);
        for base in [&silent.url, &reset.url] {
            let (outcome, status) = send_to(kind, base).await;
            assert!(
                matches!(outcome, SendOutcome::Unknown { .. }),
                "{outcome:?}"
            );
            assert_eq!(status, None);
        }
    }
}

#[tokio::test]
async fn a_truncated_reply_proves_what_its_status_proves() {
    let accepted = LocalServer::start(Behaviour::Say(
        "HTTP/1.1 202 Accepted\r\nx-message-id: abc\r\ncontent-length: 10\r\n\r\nx",
    ))
    .await;
    let failed = LocalServer::start(Behaviour::Say(
        "HTTP/1.1 422 Nope\r\nretry-after: 5\r\ncontent-length: 10\r\n\r\nx",
    ))
    .await;
    let too_large = LocalServer::start(Behaviour::Say(
        "HTTP/1.1 413 Large\r\ncontent-length: 10\r\n\r\nx",
    ))
    .await;
    let limited = LocalServer::start(Behaviour::Say(
        "HTTP/1.1 429 Slow\r\nretry-after: 5\r\ncontent-length: 10\r\n\r\nx",
    ))
    .await;
    let wait = Some(Duration::from_secs(5));
    for kind in HTTP_PROVIDERS {
        let (outcome, status) = send_to(kind, &accepted.url).await;
        assert_eq!(status, Some(202));
        if kind == ProviderType::Sendgrid {
            let provider_message_id = Some("abc".to_owned());
            assert_eq!(
                outcome,
                SendOutcome::Accepted {
                    provider_message_id
                }
            );
        } else {
            assert!(
                matches!(outcome, SendOutcome::Unknown { .. }),
                "{outcome:?}"
            );
        }
        let (outcome, _) = send_to(kind, &failed.url).await;
        assert!(
            matches!(outcome, SendOutcome::Unknown { .. }),
            "{outcome:?}"
        );
        let (outcome, _) = send_to(kind, &too_large.url).await;
        assert!(
            matches!(outcome, SendOutcome::Rejected { .. }),
            "{outcome:?}"
        );
        let (outcome, _) = send_to(kind, &limited.url).await;
        assert!(
            matches!(outcome, SendOutcome::Throttled { retry_after, .. } if retry_after == wait)
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = "HTTP/1.1 307 Elsewhere\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n";
    let mut server = LocalServer::start(Behaviour::Say(elsewhere)).await;
    let (outcome, status) = send_to(ProviderType::Postmark, &server.url).await;
    assert!(
        matches!(outcome, SendOutcome::Unknown { .. }),
        "{outcome:?}"
    );
    assert_eq!(status, Some(307));
    assert!(
        server
            .request()
            .await
            .starts_with("POST /email HTTP/1.1\r\n")
    );
}

#[tokio::test]
async fn without_a_reply_a_check_and_a_list_are_undecided() {
    let base = unreachable().await;
    let endpoints = ProviderHosts::all_at(&base);
    for kind in HTTP_PROVIDERS {
        let credentials = credentials(kind);
        let access = AccountAccess {
            credentials: &credentials,
            endpoints: &endpoints,
            now: now(),
        };
        let verdict = transport().check(adapter(kind), &access).await;
        assert!(matches!(verdict, CredentialCheck::Undecided { .. }));
        let list = transport().domains(adapter(kind), &access).await;
        assert!(matches!(list, DomainList::Undecided { .. }));
    }
}

#[tokio::test]
async fn an_endless_conversation_is_ended() {
    fn again(base: Url) -> CallStep<()> {
        CallStep::call(ProviderCall::get(base.clone()), move |_| again(base))
    }
    let server = LocalServer::start(Behaviour::Say(
        "HTTP/1.1 204 No\r\nconnection: close\r\n\r\n",
    ))
    .await;
    let error = transport()
        .run(again(server.url.clone()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("did not end"), "{error}");
}

#[tokio::test]
async fn a_form_is_sent_as_multipart_text_parts_under_our_name() {
    let mut server = LocalServer::start(Behaviour::ReadAndClose).await;
    let kind = ProviderType::Mailgun;
    let access = AccountAccess {
        credentials: &credentials(kind),
        endpoints: &ProviderHosts::all_at(&server.url),
        now: now(),
    };
    transport().send(adapter(kind), &access, &rich_mail()).await;
    let request = server.request().await;
    let (head, content) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(
        head.starts_with("post /v3/mg.example.com/messages http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nuser-agent: waypost/"), "{head}");
    assert!(head.contains("\r\ncontent-length: "), "{head}");
    let (_, boundary) = head
        .split_once("content-type: multipart/form-data; boundary=")
        .unwrap();
    let boundary = boundary.lines().next().unwrap();
    assert!(
        content
            .to_ascii_lowercase()
            .ends_with(&format!("--{boundary}--\r\n"))
    );
    for part in [
        "name=\"subject\"\r\n\r\nGrüße 📬\r\n",
        "name=\"o:tag\"\r\n\r\nb\r\n",
        "name=\"h:List-Unsubscribe\"\r\n\r\n<https://example.com/u/1>\r\n",
        "name=\"v:waypost_recipient\"\r\n\r\n7\r\n",
    ] {
        assert!(content.contains(part), "{part} in {content}");
    }
}
