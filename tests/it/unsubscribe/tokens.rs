//! Tokens: validity, lifetime, key rotation, and removed messages.

use chrono::TimeDelta;
use serde_json::json;
use waypost_tests::{TestApp, to_hash};

use super::following::{ADA, assert_untouched, head};
use super::{
    assert_unsubscribed, count, follow, follow_at, group, link_of, linked, message_in, sending,
    suppressions, undo,
};

#[tokio::test]
async fn malformed_tokens_are_refused() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    let token = link.rsplit('/').next().unwrap();
    let swapped = |place: usize| -> String {
        let other = if &token[place..=place] == "A" {
            "B"
        } else {
            "A"
        };
        format!("{}{other}{}", &token[..place], &token[place + 1..])
    };
    let middle = token.len() / 2;
    let tokens = [
        "x".to_owned(),
        "%FF".to_owned(),
        token[..token.len() - 1].to_owned(),
        token[..middle].to_owned(),
        token[1..].to_owned(),
        format!("{token}A"),
        format!("{token}%3D"),
        token.to_uppercase(),
        // Change the version, the key id, the organization, the address, the signature.
        swapped(0),
        swapped(2),
        swapped(8),
        swapped(middle),
        swapped(token.len() - 2),
        "%00".to_owned(),
        "%C3%A4".repeat(50),
        "A".repeat(6_000),
    ];
    let anonymous = app.caller().anonymous();
    let mut pages = Vec::new();
    for token in tokens {
        let path = format!("/v1/unsubscribe/{token}");
        for reply in [
            anonymous.get(&path).await,
            anonymous.post_empty(&path).await,
            anonymous.post_empty(&format!("{path}/undo")).await,
            // An API key makes no difference.
            app.get(&path).await,
        ] {
            assert_eq!(reply.status, 400, "{token}: {reply:?}");
            pages.push(reply.text);
        }
        assert_eq!(head(app.caller(), &path).await.status, 400);
    }
    pages.dedup();
    assert_eq!(pages.len(), 1, "{pages:?}");
    assert!(pages[0].contains("not valid"));
    assert_untouched(&app).await;
    assert_unsubscribed(&follow(&app, &link).await);
}

#[tokio::test]
async fn a_link_works_for_sixty_days_from_its_sending() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(waypost_core::provider::kind::ProviderType::Sendgrid)
        .await;
    let news = group(&app, "News").await;
    let id = app.send(&message_in(&news, &[ADA])).await;
    app.advance(TimeDelta::hours(20));
    app.start_worker();
    app.drain().await;
    let link = link_of(&app.captured_once(ADA));
    app.advance(TimeDelta::days(60) - TimeDelta::seconds(2));
    assert_eq!(head(app.caller(), &link).await.status, 200);
    assert_unsubscribed(&follow(&app, &link).await);
    assert!(undo(&app, &link).await.text.contains("subscribed again"));
    app.advance(TimeDelta::seconds(2));
    for reply in [follow(&app, &link).await, undo(&app, &link).await] {
        assert_eq!(reply.status, 410, "{reply:?}");
        assert!(reply.text.contains("This link has expired"), "{reply:?}");
    }
    assert_eq!(head(app.caller(), &link).await.status, 410);
    // Only a validly signed link gets the page for expired links.
    assert_eq!(follow(&app, &format!("{link}A")).await.status, 400);
    assert_eq!(suppressions(&app).await, []);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT", "UNSUBSCRIBED"]);
}

#[tokio::test]
async fn an_operator_can_set_another_lifetime() {
    let app = TestApp::builder()
        .setting("WAYPOST_UNSUBSCRIBE_LIFETIME", "30days")
        .setting("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "2")
        .start()
        .await;
    app.connect(waypost_core::provider::kind::ProviderType::Ses)
        .await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    app.advance(TimeDelta::days(30) - TimeDelta::seconds(2));
    assert_unsubscribed(&follow(&app, &link).await);
    app.advance(TimeDelta::seconds(1));
    // Valid links from one IP address are not limited.
    for _ in 0..5 {
        assert_eq!(follow(&app, &link).await.status, 410);
    }
}

#[tokio::test]
async fn links_work_until_their_key_is_removed() {
    const OLD: &str = "1:d2F5cG9zdCBleGFtcGxlIGtleSwgbm90IHNlY3JldCE=";
    const NEW: &str = "2:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const FOREIGN: &str = "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let mut app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, ADA).await;
    for (keys, status) in [
        (format!("{NEW},{OLD}"), 200),
        (NEW.to_owned(), 400),
        (FOREIGN.to_owned(), 400),
    ] {
        app.variables
            .insert("WAYPOST_ENCRYPTION_KEYS".to_owned(), keys.clone());
        let other = app.start_another_api().await;
        let reply = follow_at(&other, &link).await;
        assert_eq!(reply.status, status, "{keys}: {reply:?}");
        // A process that cannot decrypt an account's credentials does not start.
        for account in app.get("/v1/providers").await.data(200).as_array().unwrap() {
            let path = format!("/v1/providers/{}", account["id"].as_str().unwrap());
            app.delete(&path).await.expect(200);
        }
    }
}

#[tokio::test]
async fn a_link_works_after_its_message_has_been_removed() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, bodiless) = linked(&app, &news, "bob@example.org").await;
    app.execute("DELETE FROM message_bodies").await;
    let page = follow(&app, &bodiless).await;
    assert_unsubscribed(&page);
    assert!(page.text.contains("news@example.com"), "{page:?}");
    let (_, link) = linked(&app, &news, ADA).await;
    for table in [
        "messages",
        "message_bodies",
        "recipients",
        "send_attempts",
        "events",
    ] {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
    let page = follow(&app, &link).await;
    assert_unsubscribed(&page);
    // The page shows the organization's name instead of the sender.
    assert!(
        page.text.contains("Tests") && page.text.contains("News"),
        "{page:?}"
    );
    let own = (to_hash(ADA), json!(news), "UNSUBSCRIBE".to_owned());
    assert!(suppressions(&app).await.contains(&own));
    assert_eq!(count(&app, "events").await, 0);
    assert!(undo(&app, &link).await.text.contains("subscribed again"));
    // Without the organization the link has nothing to unsubscribe from.
    app.execute("TRUNCATE organizations CASCADE").await;
    assert_eq!(follow(&app, &link).await.status, 400);
    assert_eq!(undo(&app, &link).await.status, 400);
}
