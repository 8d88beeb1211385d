//! Callbacks without a valid signature.

use std::collections::BTreeMap;

use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{CallbackSettings, SignatureFault};
use waypost_tests::{HTTP_PROVIDERS, TestApp, wait_until};

use super::{account, number, register, start, suppressions, wait_until_told};

fn signing(signature_fault: SignatureFault) -> CallbackSettings {
    CallbackSettings {
        signature_fault,
        // The providers' pauses of minutes are tenths of a second here.
        retry_factor: 0.001,
        ..CallbackSettings::default()
    }
}

async fn nothing_is_recorded(app: &TestApp, id: &str, kind: ProviderType) {
    let counts = app.simulator().callbacks();
    assert_eq!(counts.acknowledged, 0, "{kind}: {counts:?}");
    assert_eq!(
        Vec::from_iter(counts.refused.keys()),
        [&401],
        "{kind}: {counts:?}"
    );
    assert_eq!(app.status(id).await, "SENT", "{kind}");
    assert_eq!(app.events(id).await, ["QUEUED", "SENT"], "{kind}");
    assert_eq!(suppressions(app).await, BTreeMap::new(), "{kind}");
    for table in ["provider_events", "unrecorded_event_counts"] {
        let rows = number(app, &format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(rows, 0, "{kind}: {table}");
    }
}

#[tokio::test]
async fn a_wrong_or_missing_signature_is_refused_and_a_valid_one_accepted_later() {
    for kind in HTTP_PROVIDERS {
        for fault in [SignatureFault::Wrong, SignatureFault::None] {
            let app = start().await;
            let account_id = register(&app, kind).await;
            app.simulator().set_callbacks(signing(fault));
            let id = app.send_to("hard-bounce@example.org").await;
            app.drain().await;
            wait_until("it is refused", async || {
                app.simulator().callbacks().refused.contains_key(&401)
            })
            .await;
            nothing_is_recorded(&app, &id, kind).await;
            // SNS had asked for confirmation before, with a valid signature.
            let is_ses = kind == ProviderType::Ses;
            let is_verified = account(&app, &account_id).await["eventsVerified"].clone();
            assert_eq!(is_verified, is_ses, "{kind}");
            if is_ses {
                // SNS does not retry after a 4xx.
                wait_until_told(&app).await;
                nothing_is_recorded(&app, &id, kind).await;
                let counts = app.simulator().callbacks();
                assert_eq!(counts.given_up, counts.queued, "{counts:?}");
                continue;
            }
            // The other providers repeat the request, and no event is lost.
            app.simulator().set_callbacks(signing(SignatureFault::Off));
            wait_until_told(&app).await;
            assert_eq!(app.status(&id).await, "BOUNCED", "{kind}");
            assert_eq!(suppressions(&app).await.len(), 1, "{kind}");
            let counts = app.simulator().callbacks();
            assert_eq!(counts.acknowledged, counts.queued, "{kind}: {counts:?}");
            let is_verified = account(&app, &account_id).await["eventsVerified"].clone();
            assert_eq!(is_verified, true, "{kind}");
        }
    }
}
