//! Recipients with names, variables and metadata of their own.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::TestApp;

use super::{
    accepted, accepting, assert_rejected, of_message, own_contents, recipients, send, suppress,
};

#[tokio::test]
async fn texts_and_objects_can_be_mixed() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let fields = json!({ "to": [
        "a@example.org",
        "B <b@example.org>",
        { "email": "c@example.org" },
        { "email": "d@example.org", "name": "Dora \"D\" Doe, Jr." , "variables": null, "metadata": null },
        { "email": "A@example.org", "name": "Again" },
    ]});
    let id = accepted(&app, fields).await;
    app.drain().await;
    for address in [
        "a@example.org",
        "b@example.org",
        "c@example.org",
        "d@example.org",
    ] {
        app.captured_once(address);
    }
    assert_eq!(own_contents(&app, &id).await, json!({}));
    assert_eq!(of_message(&app, &id, "m.recipient_count").await, 4);
}

#[tokio::test]
async fn variables_of_a_recipient_lie_over_those_of_the_message() {
    let app = accepting().await;
    let fields = json!({
        "subject": "Hello {{name}}",
        "html": "<p>{{name}} of {{place.city}}, {{offer}}</p>",
        "text": "Offer: {{offer}}",
        "variables": { "name": "friend", "offer": "10 %", "place": { "city": "Rome", "zip": 1 } },
        "to": [
            "plain@example.org",
            { "email": "ada@example.org", "variables": { "name": "Ada" } },
            { "email": "bob@example.org", "variables": { "offer": "20 %" , "place": { "zip": 2 } } },
            { "email": "eve@example.org", "variables": {} },
            { "email": "eve2@example.org", "variables": { "name": "<b>", "other": 1 } },
        ],
    });
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "m.subject").await, "Hello friend");
    assert_eq!(
        of_message(&app, &id, "b.html").await,
        "<p>friend of Rome, 10 %</p>"
    );
    assert_eq!(of_message(&app, &id, "b.text").await, "Offer: 10 %");
    let expected = json!({
        "1": { "subject": "Hello Ada", "html": "<p>Ada of Rome, 10 %</p>" },
        "2": { "html": "<p>friend of , 20 %</p>", "text": "Offer: 20 %" },
        "4": { "subject": "Hello <b>", "html": "<p>&lt;b&gt; of Rome, 10 %</p>" },
    });
    assert_eq!(own_contents(&app, &id).await, expected);
}

#[tokio::test]
async fn variables_of_a_recipient_alone_make_the_message_a_template() {
    let app = accepting().await;
    // All have their own: the message has the content of the first.
    let fields = json!({
        "text": "Hi {{name}}",
        "to": [
            { "email": "ada@example.org", "variables": { "name": "Ada" } },
            { "email": "bob@example.org", "variables": { "name": "Bob" } },
        ],
    });
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "b.text").await, "Hi Ada");
    assert_eq!(
        own_contents(&app, &id).await,
        json!({ "1": { "text": "Hi Bob" } })
    );
    // One has none: it gets the message without variables.
    let fields = json!({
        "text": "Hi {{name}}",
        "to": ["x@example.org", { "email": "bob@example.org", "variables": { "name": "Bob" } }],
    });
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "b.text").await, "Hi ");
    assert_eq!(
        own_contents(&app, &id).await,
        json!({ "1": { "text": "Hi Bob" } })
    );
}

#[tokio::test]
async fn a_body_that_is_empty_for_one_recipient_is_stored_as_empty() {
    let app = accepting().await;
    let fields = json!({
        "html": "{{#if vip}}<p>VIP</p>{{/if}}",
        "text": "Hello",
        "variables": { "vip": true },
        "to": ["x@example.org", { "email": "y@example.org", "variables": { "vip": false } }],
    });
    let id = accepted(&app, fields).await;
    assert_eq!(of_message(&app, &id, "b.html").await, "<p>VIP</p>");
    // NULL would be the message's HTML, which is for others.
    assert_eq!(
        own_contents(&app, &id).await,
        json!({ "1": { "html": "" } })
    );
}

#[tokio::test]
async fn a_template_is_rendered_for_each_recipient_with_its_schema() {
    let app = accepting().await;
    let template = app
        .post("/v1/templates", &json!({ "name": "T" }))
        .await
        .data(201);
    let template = template["id"].clone();
    let version = json!({
        "htmlContent": "<p>Code {{code}}</p>",
        "variablesSchema": { "type": "object", "required": ["code"],
                             "properties": { "code": { "type": "integer" } } },
    });
    let path = format!("/v1/templates/{}/versions", template.as_str().unwrap());
    app.post(&path, &version).await.expect(201);
    let to = |codes: &[Value]| -> Vec<Value> {
        let codes = codes.iter().enumerate();
        codes
            .map(|(nth, code)| {
                json!({ "email": format!("r{nth}@example.org"), "variables": { "code": code } })
            })
            .collect()
    };
    let mut fields = json!({ "templateId": template, "to": to(&[json!(1), json!(2), json!(1)]) });
    fields["text"] = Value::Null;
    let id = accepted(&app, fields.clone()).await;
    assert_eq!(of_message(&app, &id, "b.html").await, "<p>Code 1</p>");
    let expected = json!({ "1": { "html": "<p>Code 2</p>", "text": "Code 2" } });
    assert_eq!(own_contents(&app, &id).await, expected);
    // A recipient is named by its index in the request, also after a repeated address.
    fields["to"] = json!(to(&[json!(1), json!("x"), json!(3), Value::Null]));
    fields["to"][2]["email"] = json!("R0@example.org");
    let error = send(&app, fields)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let issues = error["details"]["issues"].as_array().unwrap();
    let paths: Vec<&str> = issues
        .iter()
        .map(|issue| issue["path"].as_str().unwrap())
        .collect();
    assert!(
        paths.iter().all(|path| {
            path.starts_with("to.1.variables") || path.starts_with("to.3.variables")
        }),
        "{paths:?}"
    );
    assert!(paths.len() >= 2, "{paths:?}");
}

#[tokio::test]
async fn a_personal_mail_to_a_thousand_is_one_request() {
    let app = accepting().await;
    suppress(&app, "r7@example.org").await;
    let to: Vec<Value> = (0..1_000)
        .map(|nth| json!({ "email": format!("r{nth}@example.org"), "variables": { "nth": nth } }))
        .collect();
    let fields = json!({ "subject": "Number {{nth}}", "text": "{{nth}}", "to": to });
    let reply = send(&app, fields).await.expect(202);
    assert_eq!(reply["acceptedCount"], 999);
    let id = reply["messageId"].as_str().unwrap();
    let own = own_contents(&app, id).await;
    assert_eq!(own.as_object().unwrap().len(), 999);
    assert_eq!(
        own["999"],
        json!({ "subject": "Number 999", "text": "999" })
    );
    assert_eq!(recipients(&app, id).await[7][2], "FAILED");
}

#[tokio::test]
async fn what_recipients_get_is_bounded_in_all() {
    let app = accepting().await;
    let to: Vec<Value> = (0..200)
        .map(|nth| json!({ "email": format!("r{nth}@example.org"), "variables": { "nth": nth } }))
        .collect();
    let text = format!("{{{{nth}}}}{}", "x".repeat(400 << 10));
    let fields = json!({ "text": text, "to": to });
    let error = send(&app, fields).await.expect_issues(400, &["to"]);
    assert!(
        error["message"].as_str().unwrap().contains("64 MiB"),
        "{error}"
    );
}

#[tokio::test]
async fn metadata_of_recipients_are_stored() {
    let app = accepting().await;
    let fields = json!({
        "metadata": { "order": 1 },
        "to": [
            "plain@example.org",
            { "email": "ada@example.org", "metadata": { "customer": "ada" } },
            { "email": "bob@example.org", "metadata": {}, "variables": {} },
        ],
    });
    let id = accepted(&app, fields).await;
    assert_eq!(
        of_message(&app, &id, "m.metadata").await,
        json!({ "order": 1 })
    );
    let expected = json!({
        "1": { "metadata": { "customer": "ada" } },
        "2": { "metadata": {} },
    });
    assert_eq!(own_contents(&app, &id).await, expected);
    // Together they are as large as those of a message alone may be.
    let text = "x".repeat(40 << 10);
    let large = json!({
        "metadata": { "a": text },
        "to": ["x@example.org", { "email": "a@example.org", "metadata": { "b": text } }],
    });
    assert_rejected(&app, large, &["to.1.metadata"]).await;
}

#[tokio::test]
async fn mistakes_in_recipients_have_their_paths() {
    let app = accepting().await;
    for (to, paths) in [
        (json!([{}]), vec!["to.0.email"]),
        (json!([{ "email": "x" }]), vec!["to.0.email"]),
        (json!([{ "email": null }]), vec!["to.0.email"]),
        (
            json!([{ "email": "Ada <ada@example.org>" }]),
            vec!["to.0.email"],
        ),
        (
            json!([{ "email": "a@example.org", "name": 3 }]),
            vec!["to.0.name"],
        ),
        (
            json!(["a@example.org", { "email": "b@example.org", "name": "x\r\nBcc: c@example.org" }]),
            vec!["to.1.name"],
        ),
        (
            json!([{ "email": "b@example.org", "name": "=?utf-8?q?=0d=0a?=" }]),
            vec!["to.0.name"],
        ),
        (
            json!([{ "email": "b@example.org", "name": "n".repeat(256) }]),
            vec!["to.0.name"],
        ),
        (
            json!([{ "email": "a@example.org", "variables": [], "metadata": "x" }]),
            vec!["to.0.variables", "to.0.metadata"],
        ),
        (
            json!([{ "email": "a@example.org", "variables": { "x": "x".repeat(256 << 10) } }]),
            vec!["to.0.variables"],
        ),
        (
            json!([{ "email": "a@example.org", "metadata": { "x": "a\u{0}" } }]),
            vec!["to.0.metadata"],
        ),
        (json!([3, ["a@example.org"]]), vec!["to.0", "to.1"]),
        (json!({ "email": "a@example.org" }), vec!["to"]),
    ] {
        assert_rejected(&app, json!({ "to": to }), &paths).await;
    }
    // Unknown fields of a recipient.
    let fields = json!({ "to": [{ "email": "a@example.org", "Name": "A", "vars": {} }] });
    let error = send(&app, fields)
        .await
        .expect_issues(400, &["to.0.Name", "to.0.vars"]);
    assert!(
        error.to_string().contains("did you mean `name`?"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unsubscribe_link_stands_in_each_personal_body() {
    let app = accepting().await;
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await;
    let group = group.data(201)["id"].clone();
    let fields = json!({
        "html": "<p>{{name}} <a href=\"{{unsubscribeUrl}}\">leave</a></p>",
        "unsubscribeGroupId": group,
        "to": [
            { "email": "a@example.org", "variables": { "name": "A" } },
            { "email": "b@example.org", "variables": { "name": "B" } },
        ],
    });
    let id = accepted(&app, fields.clone()).await;
    let expected = "<p>B <a href=\"{{unsubscribeUrl}}\">leave</a></p>";
    assert_eq!(own_contents(&app, &id).await["1"]["html"], expected);
    let mut own = fields.clone();
    own["to"][1]["variables"]["unsubscribeUrl"] = json!("https://example.com");
    let path = "to.1.variables.unsubscribeUrl";
    send(&app, own).await.expect_issues(400, &[path]);
    let mut without = fields;
    without["unsubscribeGroupId"] = Value::Null;
    send(&app, without)
        .await
        .expect_issues(400, &["unsubscribeGroupId"]);
}

#[tokio::test]
async fn webhook_events_have_subject_and_metadata_of_their_recipient() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let receiver = waypost_tests::Receiver::start().await;
    let endpoint = json!({ "url": receiver.url(), "events": ["SENT"] });
    app.post("/v1/webhook-endpoints", &endpoint).await.data(201);
    let fields = json!({
        "subject": "Hello {{name}}",
        "variables": { "name": "you" },
        "metadata": { "order": 1, "plan": "free" },
        "to": [
            "plain@example.org",
            { "email": "ada@example.org", "variables": { "name": "Ada" }, "metadata": { "plan": "paid" } },
            { "email": "bob@example.org", "variables": { "name": "Bob" } },
        ],
    });
    accepted(&app, fields).await;
    app.drain().await;
    let mut found: Vec<Value> = receiver
        .received()
        .iter()
        .map(|webhook| {
            let data = webhook.json()["data"].clone();
            json!([data["recipient"], data["subject"], data["metadata"]])
        })
        .collect();
    found.sort_by_key(Value::to_string);
    let expected = [
        json!(["ada@example.org", "Hello Ada", { "order": 1, "plan": "paid" }]),
        json!(["bob@example.org", "Hello Bob", { "order": 1, "plan": "free" }]),
        json!(["plain@example.org", "Hello you", { "order": 1, "plan": "free" }]),
    ];
    assert_eq!(found, expected);
}
