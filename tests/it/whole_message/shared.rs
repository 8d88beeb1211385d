//! Shared messages: cc and bcc, the number of addresses, suppressions; and addresses for
//! replies.

use serde_json::{Value, json};
use waypost_tests::to_hash;

use super::{accepted, accepting, assert_rejected, count, of_message, recipients, send, suppress};

fn row(kind: &str, address: &str, status: &str) -> Value {
    json!([kind, to_hash(address), status])
}

#[tokio::test]
async fn copies_make_a_message_shared_and_have_their_kinds() {
    let app = accepting().await;
    for (fields, kinds) in [
        (
            json!({ "to": "a@example.org", "cc": "b@example.org" }),
            vec!["TO", "CC"],
        ),
        (
            json!({ "to": "a@example.org", "bcc": ["b@example.org"] }),
            vec!["TO", "BCC"],
        ),
        (
            json!({ "to": ["a@example.org", { "email": "b@example.org", "name": "B" }],
                    "cc": ["C <c@example.org>"], "bcc": "d@example.org", "delivery": "shared" }),
            vec!["TO", "TO", "CC", "BCC"],
        ),
        (
            json!({ "to": ["a@example.org", "b@example.org"], "delivery": "shared" }),
            vec!["TO", "TO"],
        ),
    ] {
        let id = accepted(&app, fields).await;
        assert_eq!(of_message(&app, &id, "m.is_shared").await, true);
        let addresses = [
            "a@example.org",
            "b@example.org",
            "c@example.org",
            "d@example.org",
        ];
        let rows: Vec<Value> = kinds
            .iter()
            .zip(addresses)
            .map(|(kind, address)| row(kind, address, "QUEUED"))
            .collect();
        assert_eq!(recipients(&app, &id).await, json!(rows));
        assert_eq!(
            app.outbox()
                .await
                .iter()
                .filter(|job| job.message_id.to_string() == id)
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn without_copies_a_message_is_private() {
    let app = accepting().await;
    for fields in [
        json!({ "to": ["a@example.org", "b@example.org"] }),
        json!({ "to": "a@example.org", "cc": null, "bcc": [], "delivery": null }),
        json!({ "to": "a@example.org", "cc": [], "delivery": "private" }),
    ] {
        let id = accepted(&app, fields).await;
        assert_eq!(of_message(&app, &id, "m.is_shared").await, Value::Null);
        assert_eq!(recipients(&app, &id).await[0][0], "TO");
    }
}

#[tokio::test]
async fn the_first_kind_of_a_repeated_address_counts() {
    let app = accepting().await;
    let fields = json!({
        "to": ["a@example.org", "A@Example.org"],
        "cc": ["a@EXAMPLE.org", "b@example.org"],
        "bcc": ["b@example.org", "c@example.org", "a@example.org"],
    });
    let id = accepted(&app, fields).await;
    let rows = [
        row("TO", "a@example.org", "QUEUED"),
        row("CC", "b@example.org", "QUEUED"),
        row("BCC", "c@example.org", "QUEUED"),
    ];
    assert_eq!(recipients(&app, &id).await, json!(rows));
}

#[tokio::test]
async fn a_shared_message_has_at_most_50_addresses() {
    let app = accepting().await;
    let addresses = |range: std::ops::Range<u32>| -> Vec<String> {
        range.map(|nth| format!("r{nth}@example.org")).collect()
    };
    for (to, cc, bcc) in [(50, 0, 0), (1, 49, 0), (20, 20, 10)] {
        let fields = json!({
            "to": addresses(0..to), "cc": addresses(100..100 + cc),
            "bcc": addresses(200..200 + bcc), "delivery": "shared",
        });
        let id = accepted(&app, fields.clone()).await;
        assert_eq!(recipients(&app, &id).await.as_array().unwrap().len(), 50);
        // A repeated address is one.
        let mut repeated = fields.clone();
        repeated["bcc"] = json!(addresses(0..1));
        send(&app, repeated).await.expect(202);
        let mut more = fields;
        more["bcc"] = json!(addresses(200..201 + bcc));
        assert_rejected(&app, more, &["to"]).await;
    }
    let many = json!({ "to": addresses(0..1_000), "cc": "cc@example.org" });
    assert_rejected(&app, many, &["to"]).await;
    let many = json!({ "to": "a@example.org", "cc": addresses(0..51) });
    assert_rejected(&app, many, &["cc"]).await;
}

#[tokio::test]
async fn what_belongs_to_one_recipient_is_rejected_in_a_shared_message() {
    let app = accepting().await;
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await;
    let group = group.data(201)["id"].clone();
    let with_group = |fields: Value| {
        let mut fields = fields;
        fields["unsubscribeGroupId"] = group.clone();
        fields
    };
    let two = json!({ "to": "a@example.org", "cc": "b@example.org" });
    assert_rejected(&app, with_group(two), &["unsubscribeGroupId"]).await;
    let two = json!({ "to": ["a@example.org", "b@example.org"], "delivery": "shared" });
    assert_rejected(&app, with_group(two), &["unsubscribeGroupId"]).await;
    let one = json!({ "to": "a@example.org", "cc": "A@example.org", "delivery": "shared" });
    accepted(&app, with_group(one)).await;
    let personal = json!({
        "to": ["a@example.org", { "email": "b@example.org", "variables": { "name": "B" } }],
        "cc": "c@example.org",
    });
    assert_rejected(&app, personal, &["to.1.variables"]).await;
    let private = json!({ "to": "a@example.org", "bcc": "b@example.org", "delivery": "private" });
    assert_rejected(&app, private, &["delivery"]).await;
    for wrong in [json!("public"), json!(true), json!(["shared"])] {
        let fields = json!({ "to": "a@example.org", "delivery": wrong });
        assert_rejected(&app, fields, &["delivery"]).await;
    }
}

#[tokio::test]
async fn mistakes_in_copies_have_their_paths() {
    let app = accepting().await;
    for (fields, paths) in [
        (json!({ "cc": "nobody" }), vec!["cc"]),
        (
            json!({ "cc": ["a@example.org", "x", 3], "bcc": [null] }),
            vec!["cc.1", "cc.2", "bcc.0"],
        ),
        (json!({ "bcc": { "email": "a@example.org" } }), vec!["bcc"]),
        (
            json!({ "cc": "" , "bcc": "a@example.org\r\nTo: b@example.org" }),
            vec!["cc", "bcc"],
        ),
    ] {
        let mut fields = fields;
        fields["to"] = json!("a@example.org");
        assert_rejected(&app, fields, &paths).await;
    }
}

#[tokio::test]
async fn a_suppressed_address_of_a_shared_message_is_dropped_alone() {
    let app = accepting().await;
    suppress(&app, "gone@example.org").await;
    for (fields, kind, position) in [
        (
            json!({ "to": ["gone@example.org", "a@example.org"], "cc": "b@example.org" }),
            "TO",
            0,
        ),
        (
            json!({ "to": "a@example.org", "cc": ["gone@example.org"] }),
            "CC",
            1,
        ),
        (
            json!({ "to": "a@example.org", "bcc": ["b@example.org", "gone@example.org"] }),
            "BCC",
            2,
        ),
    ] {
        let reply = send(&app, fields).await.expect(202);
        assert_eq!(reply["status"], "queued");
        assert_eq!(reply["suppressedCount"], 1);
        let id = reply["messageId"].as_str().unwrap();
        let rows = recipients(&app, id).await;
        assert_eq!(rows[position], row(kind, "gone@example.org", "FAILED"));
        let rows = rows.as_array().unwrap();
        let queued = rows.iter().filter(|row| row[2] == "QUEUED").count();
        assert_eq!(queued, rows.len() - 1);
    }
}

#[tokio::test]
async fn without_a_recipient_in_to_a_shared_message_is_suppressed() {
    let app = accepting().await;
    suppress(&app, "gone@example.org").await;
    suppress(&app, "left@example.org").await;
    let before = count(&app, "messages").await;
    for (to, suppressed) in [
        (json!("gone@example.org"), 1),
        (json!(["gone@example.org", "left@example.org"]), 2),
    ] {
        // Once with the check by the INSERT, once in a batch that is too large for it.
        let fields = json!({ "to": to, "cc": "a@example.org", "bcc": "b@example.org" });
        let reply = send(&app, fields.clone()).await.expect(202);
        assert_eq!(reply["status"], "suppressed");
        assert_eq!(reply["messageId"], Value::Null);
        assert_eq!(reply["suppressedCount"], suppressed);
        let many: Vec<Value> = (0..50).map(|_| super::message(fields.clone())).collect();
        let batch = app
            .post("/v1/emails/batch", &json!({ "messages": many }))
            .await
            .expect(200);
        for result in batch["results"].as_array().unwrap() {
            assert_eq!(result["status"], "suppressed");
        }
    }
    assert_eq!(count(&app, "messages").await, before);
}

#[tokio::test]
async fn up_to_10_addresses_for_replies_are_stored() {
    let app = accepting().await;
    for (given, stored) in [
        (json!("help@example.com"), json!("help@example.com")),
        (
            json!(["\"Help, Inc.\" <help@example.com>", "b@example.com"]),
            json!("\"Help, Inc.\" <help@example.com>, b@example.com"),
        ),
        (json!([]), Value::Null),
        (Value::Null, Value::Null),
    ] {
        let id = accepted(&app, json!({ "to": "a@example.org", "replyTo": given })).await;
        assert_eq!(of_message(&app, &id, "b.reply_to").await, stored);
    }
    let many = |count: u32| -> Vec<String> {
        (0..count)
            .map(|nth| format!("r{nth}@example.com"))
            .collect()
    };
    accepted(&app, json!({ "to": "a@example.org", "replyTo": many(10) })).await;
    for (wrong, path) in [
        (json!(many(11)), "replyTo"),
        (json!(["a@example.com", "x"]), "replyTo.1"),
        (json!({}), "replyTo"),
    ] {
        let fields = json!({ "to": "a@example.org", "replyTo": wrong });
        assert_rejected(&app, fields, &[path]).await;
    }
}
