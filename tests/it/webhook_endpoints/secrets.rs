//! Rotating the secret of an endpoint.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_tests::TestApp;

use super::receiver::{Manner, Received, Receiver, contract_signature, standard_signature};
use super::{actions, endpoint, path_of, quiet};

async fn rotate(app: &TestApp, endpoint: &Value, body: &Value) -> String {
    let path = format!("{}/rotate-secret", path_of(endpoint));
    let rotated = app.post(&path, body).await.data(200);
    assert_eq!(rotated["id"], endpoint["id"]);
    rotated["secret"].as_str().unwrap().to_owned()
}

/// The request of a test event.
async fn signed(app: &TestApp, endpoint: &Value, receiver: &Receiver) -> Received {
    let path = format!("{}/test", path_of(endpoint));
    let _done = app.caller().post_empty(&path).await.expect(200);
    receiver.take().pop().unwrap()
}

/// Which of the secrets signed, by the three headers.
fn signers(request: &Received, secrets: &[&str]) -> [Vec<usize>; 3] {
    let place = |signature: &str, of: fn(&str, &Received) -> String| {
        let mut secrets = secrets.iter();
        let place = secrets.position(|secret| of(secret, request) == signature);
        place.unwrap_or_else(|| panic!("{signature} is by nobody"))
    };
    let places = |name: &str, by: &str, of| {
        let signatures = request.header(name).unwrap_or_default();
        let signatures = signatures.split(by).filter(|one| !one.is_empty());
        signatures.map(|one| place(one, of)).collect::<Vec<_>>()
    };
    [
        places("x-waypost-signature", "|", contract_signature),
        places("x-waypost-signature-other", ",", contract_signature),
        places("webhook-signature", " ", standard_signature),
    ]
}

#[tokio::test]
async fn during_the_grace_period_both_secrets_sign() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let old = made["secret"].as_str().unwrap();
    let new = rotate(&app, &made, &json!({ "gracePeriodSeconds": 60 })).await;
    assert_ne!(old, new);
    let secrets = [new.as_str(), old];
    let request = signed(&app, &made, &receiver).await;
    assert_eq!(signers(&request, &secrets), [vec![0], vec![1], vec![0, 1]]);
    app.advance(TimeDelta::seconds(59));
    let request = signed(&app, &made, &receiver).await;
    assert_eq!(signers(&request, &secrets), [vec![0], vec![1], vec![0, 1]]);
    app.advance(TimeDelta::seconds(1));
    let request = signed(&app, &made, &receiver).await;
    assert_eq!(signers(&request, &secrets), [vec![0], vec![], vec![0]]);
    let rotated = json!(["webhook_endpoint.secret_rotated", { "gracePeriodSeconds": 60 }]);
    assert_eq!(actions(&app).await[1], rotated);
    // It is not shown again.
    let shown = app.get(&path_of(&made)).await.data(200);
    assert_eq!(shown.get("secret"), None);
}

#[tokio::test]
async fn a_later_rotation_shortens_the_validity_of_earlier_secrets() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let first = made["secret"].as_str().unwrap();
    // The default is a day. The clock stands still between the rotations.
    let second = rotate(&app, &made, &json!({})).await;
    let third = rotate(&app, &made, &json!({})).await;
    let fourth = rotate(&app, &made, &json!({ "gracePeriodSeconds": 3_600 })).await;
    let secrets = [&*fourth, &*third, &*second, first];
    // At most two old secrets sign.
    let request = signed(&app, &made, &receiver).await;
    let all = [vec![0], vec![1, 2], vec![0, 1, 2]];
    assert_eq!(signers(&request, &secrets), all);
    app.advance(TimeDelta::seconds(3_600));
    let request = signed(&app, &made, &receiver).await;
    assert_eq!(signers(&request, &secrets), [vec![0], vec![], vec![0]]);
    let fifth = rotate(&app, &made, &json!({})).await;
    let sixth = rotate(&app, &made, &json!({ "gracePeriodSeconds": 0 })).await;
    let secrets = [&*sixth, &*fifth, &*fourth];
    let request = signed(&app, &made, &receiver).await;
    assert_eq!(signers(&request, &secrets), [vec![0], vec![], vec![0]]);
    assert_eq!(
        app.value("SELECT count(*)::text FROM webhook_endpoint_old_secrets")
            .await,
        Some("0".to_owned())
    );
}

#[tokio::test]
async fn a_grace_period_is_limited_and_a_repeated_rotation_shows_the_same_secret() {
    let app = quiet().await;
    let receiver = Receiver::start(Manner::status(200)).await;
    let made = endpoint(&app, &receiver).await;
    let path = format!("{}/rotate-secret", path_of(&made));
    for grace in [json!(-1), json!(604_801), json!(1.5), json!("60")] {
        let body = json!({ "gracePeriodSeconds": grace });
        app.post(&path, &body)
            .await
            .expect_issues(400, &["gracePeriodSeconds"]);
    }
    let once = || {
        app.caller().call(http::Method::POST, &path, |request| {
            request
                .header("Idempotency-Key", "rotation-1")
                .json(&json!({ "gracePeriodSeconds": 604_800 }))
        })
    };
    let (one, other) = (once().await.data(200), once().await);
    assert_eq!(other.header("idempotent-replayed"), Some("true"));
    assert_eq!(other.data(200), one);
}
