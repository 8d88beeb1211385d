//! Events of a shared mail: they find their recipient by the provider's message id and the
//! address.

use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::{number, register, wait_until_told};

#[tokio::test]
async fn each_recipient_of_a_shared_mail_gets_its_own_events() {
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
        ProviderType::Ses,
    ] {
        let app = TestApp::builder().without_worker().start().await;
        register(&app, kind).await;
        let mut message = message_to("");
        message["to"] = json!([
            "ada@example.org",
            "hard-bounce@example.org",
            "cy@example.org",
            "dee@example.org"
        ]);
        let id = app.send(&message).await;
        app.execute(&format!(
            "UPDATE messages SET is_shared = true WHERE id = '{id}'"
        ))
        .await;
        app.execute(&format!(
            "UPDATE recipients SET kind = CASE position WHEN 2 THEN 'CC' WHEN 3 THEN 'BCC' END::recipient_kind
             WHERE message_id = '{id}'"
        ))
        .await;
        app.start_worker();
        wait_until_told(&app).await;
        let query = format!(
            "SELECT string_agg(status::text, ' ' ORDER BY position) FROM recipients WHERE message_id = '{id}'"
        );
        let statuses = app.value(&query).await.unwrap();
        assert_eq!(statuses, "DELIVERED BOUNCED DELIVERED DELIVERED", "{kind}");
        let delivered = format!(
            "SELECT count(*) FROM events WHERE message_id = '{id}' AND event_type = 'DELIVERED'"
        );
        assert_eq!(number(&app, &delivered).await, 3, "{kind}");
    }
}
