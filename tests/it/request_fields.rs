//! The fields and query parameters of requests: those of the OpenAPI document, and no
//! others; the meaning of null; and the paths that rejections name. The tests walk the
//! served document.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, TestApp, message_to};

mod bodies;
mod places;

use places::{closed, put};

use crate::security::matrix::{Operation, belongings, operations, quiet, state};

/// The served document.
async fn document(app: &TestApp) -> Value {
    app.document().await
}

fn operation_at<'a>(document: &'a Value, operation: &Operation) -> &'a Value {
    &document["paths"][&operation.path][operation.method.as_str().to_lowercase()]
}

fn body_schema<'a>(document: &'a Value, operation: &Operation) -> Option<&'a Value> {
    let pointer = "/requestBody/content/application~1json/schema";
    operation_at(document, operation).pointer(pointer)
}

/// The issues in a response, whether the request was rejected or one of its messages.
fn findings(reply: &Reply) -> Vec<(String, String)> {
    let body = reply.json();
    let error = &body["error"];
    let issues = error.pointer("/details/issues").and_then(Value::as_array);
    let issues = issues.into_iter().flatten().map(|issue| {
        let text = |name: &str| issue[name].as_str().unwrap().to_owned();
        (text("path"), text("message"))
    });
    issues.collect()
}

async fn perform(app: &TestApp, operation: &Operation, path: &str, body: Option<&Value>) -> Reply {
    app.caller()
        .call(operation.method.clone(), path, |request| match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
}

#[tokio::test]
async fn an_unknown_field_is_rejected_by_every_operation_at_every_depth() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let organization = app.organization_id().to_string();
    let before = state(&app, &organization).await;
    let mut objects = 0;
    for operation in operations(&app).await {
        let Some(schema) = body_schema(&document, &operation) else {
            continue;
        };
        let mut places = Vec::new();
        closed(schema, "", &mut places);
        assert!(!places.is_empty(), "{}", operation.name());
        for (at, names) in places {
            let near = format!("{}_", names[0].to_uppercase());
            let hint = format!("is not a known field; did you mean `{}`?", names[0]);
            let unknown = "is not a known field".to_owned();
            for (name, message) in [("colourOfTheMail", &unknown), (near.as_str(), &hint)] {
                let mut body = operation.body.clone().unwrap();
                put(&mut body, &at, name, json!({ "any": [1] }));
                let path = operation.path_to(&ids);
                let reply = perform(&app, &operation, &path, Some(&body)).await;
                let place = format!("{at}/{name}")[1..].replace('/', ".");
                let what = format!("{} {place}: {reply:?}", operation.name());
                if let Some(place) = place.strip_prefix("messages.0.") {
                    // Only that message of a batch is rejected.
                    let results = &reply.expect(200)["results"];
                    let error = results[0]["error"].as_str().unwrap();
                    assert!(error.contains(&format!("{place} {message}")), "{what}");
                } else {
                    assert_eq!(reply.status, 400, "{what}");
                    reply.expect_error(400, "VALIDATION_ERROR");
                    let wanted = (place, message.clone());
                    assert!(findings(&reply).contains(&wanted), "{what}");
                }
                objects += 1;
            }
        }
    }
    assert!(objects > 50, "{objects} requests");
    assert_eq!(before, state(&app, &organization).await);
    app.leave_work();
}

#[tokio::test]
async fn an_unknown_parameter_is_rejected_by_every_operation() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let organization = app.organization_id().to_string();
    let before = state(&app, &organization).await;
    for operation in operations(&app).await {
        let parameters = operation_at(&document, &operation)["parameters"].as_array();
        let names = parameters.into_iter().flatten();
        let names = names.filter(|one| one["in"] == "query");
        let known = names.filter_map(|one| one["name"].as_str()).next();
        let unknown = "is not a parameter of this operation".to_owned();
        let mut tried = vec![("recipientAddress".to_owned(), unknown.clone())];
        tried.extend(known.map(|known| {
            let near = format!("{}_", known.to_uppercase());
            (near, format!("{unknown}; did you mean `{known}`?"))
        }));
        for (name, message) in tried {
            let path = format!("{}?{name}=x", operation.path_to(&ids));
            let reply = perform(&app, &operation, &path, operation.body.as_ref()).await;
            reply.expect_error(400, "VALIDATION_ERROR");
            let wanted = (name, message);
            let what = format!("{}: {reply:?}", operation.name());
            assert!(findings(&reply).contains(&wanted), "{what}");
        }
    }
    assert_eq!(before, state(&app, &organization).await);
    app.leave_work();
}

#[tokio::test]
async fn all_mistakes_in_body_and_query_are_reported_at_once() {
    let app = quiet().await;
    app.connect(ProviderType::Mailgun).await;
    let tags: Vec<String> = (0..11).map(|_| "t".repeat(101)).collect();
    let mut message = message_to("a@example.org");
    message["tags"] = json!(tags);
    message["copies"] = json!("b@example.org");
    message["reply_to"] = json!("b@example.org");
    message["tracking"] = json!({ "open": true });
    message["subject"] = json!(1);
    let mut wanted = vec![
        "trace",
        "tags",
        "copies",
        "reply_to",
        "tracking.open",
        "subject",
    ];
    let places: Vec<String> = (0..11).map(|nth| format!("tags.{nth}")).collect();
    wanted.extend(places.iter().map(String::as_str));
    let reply = app.post("/v1/send?trace=1", &message).await;
    reply.expect_issues(400, &wanted);
    let told = findings(&reply).into_iter();
    let told: Map<String, Value> = told.map(|(path, message)| (path, json!(message))).collect();
    assert_eq!(
        told["reply_to"],
        "is not a known field; did you mean `replyTo`?"
    );
    assert_eq!(
        told["tracking.open"],
        "is not a known field; did you mean `opens`?"
    );
    assert_eq!(told["copies"], "is not a known field");
    // The same for lists.
    app.get("/v1/messages?page=0&limit=x&recipient=a&colour=b")
        .await
        .expect_issues(400, &["page", "limit", "recipient", "colour"]);
    app.get("/v1/messages?page=1&page=2")
        .await
        .expect_issues(400, &["page"]);
}

#[tokio::test]
async fn free_objects_accept_any_fields() {
    let app = quiet().await;
    app.connect(ProviderType::Mailgun).await;
    let free = json!({ "reply_to": 1, "any": { "cc": [{ "bcc": null }] } });
    let template = app.post("/v1/templates", &json!({ "name": "T" })).await;
    let id = template.data(201)["id"].as_str().unwrap().to_owned();
    let version =
        json!({ "htmlContent": "x", "variablesSchema": { "type": "object", "x-own": free } });
    app.post(&format!("/v1/templates/{id}/versions"), &version)
        .await
        .expect(201);
    let mut message = message_to("a@example.org");
    message["metadata"] = free.clone();
    message["variables"] = free.clone();
    message["templateId"] = json!(id);
    app.post("/v1/send", &message).await.expect(202);
    app.post(
        &format!("/v1/templates/{id}/preview"),
        &json!({ "variables": free }),
    )
    .await
    .expect(200);
    app.leave_work();
}

#[tokio::test]
async fn links_and_provider_webhooks_accept_foreign_parameters() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Mailgun).await;
    let account = app.get(&format!("/v1/providers/{account}")).await.data(200);
    let hook = account["webhookUrl"].as_str().unwrap();
    let hook = &hook[hook.find("/v1/").unwrap()..];
    for path in [hook, "/v1/unsubscribe/none", "/v1/t/c/none", "/v1/t/o/none"] {
        let method = if path == hook {
            Method::POST
        } else {
            Method::GET
        };
        let call = async |path: String| {
            let reply = app.caller().anonymous();
            let reply = reply
                .call(method.clone(), &path, |request| request.body("{\"own\":1}"))
                .await;
            (reply.status, reply.text)
        };
        let plain = call(path.to_owned()).await;
        let more = call(format!("{path}?utm_source=mail&x=1&x=2")).await;
        assert_eq!(plain, more, "{path}");
    }
}

/// The schema of the record with which a change responds.
fn record<'a>(document: &'a Value, operation: &Operation) -> &'a Value {
    let answer = "/responses/200/content/application~1json/schema";
    let schema = operation_at(document, operation).pointer(answer).unwrap();
    &schema["properties"]["data"]
}

#[tokio::test]
async fn null_in_a_change_clears_nullable_fields_and_is_rejected_elsewhere() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let mut cleared = Vec::new();
    let changes = operations(&app).await.into_iter();
    for operation in changes.filter(|operation| operation.method == Method::PATCH) {
        let path = operation.path_to(&ids);
        let schema = body_schema(&document, &operation).unwrap();
        // Its null is now.
        if operation.path == "/v1/messages/{id}" {
            continue;
        }
        let record = &record(&document, &operation)["properties"];
        for (field, of_request) in schema["properties"].as_object().unwrap() {
            let what = format!("{} {field}", operation.name());
            let can_be_null = record[field]["nullable"] == true;
            let says_so = of_request["nullable"] == true;
            assert_eq!(can_be_null, says_so, "{what}");
            let example = operation.body.as_ref().unwrap().get(field);
            if let Some(example) = example.filter(|_| can_be_null) {
                app.patch(&path, &json!({ field: example }))
                    .await
                    .expect(200);
            }
            let reply = app.patch(&path, &json!({ field: null })).await;
            if can_be_null {
                assert_eq!(reply.data(200)[field], Value::Null, "{what}");
                cleared.push(field.clone());
            } else {
                reply.expect_issues(400, &[field]);
            }
        }
    }
    cleared.sort();
    let wanted = [
        "brandColor",
        "description",
        "description",
        "expiresAt",
        "maxConcurrency",
        "maxRatePerSecond",
        "maxSizeBytes",
        "messageClass",
        "minSizeBytes",
        "region",
        "retentionDays",
        "senderDomain",
        "test",
    ];
    assert_eq!(cleared, wanted);
    app.leave_work();
}

#[tokio::test]
async fn null_in_a_creation_means_absent() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let creations = operations(&app).await.into_iter();
    let mut count = 0;
    for operation in creations.filter(|operation| operation.method == Method::POST) {
        let Some(schema) = body_schema(&document, &operation) else {
            continue;
        };
        let path = operation.path_to(&ids);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for field in schema["properties"].as_object().unwrap().keys() {
            let mut without = operation.body.clone().unwrap();
            without.as_object_mut().unwrap().remove(field);
            let mut with = without.clone();
            with[field] = Value::Null;
            let without = perform(&app, &operation, &path, Some(&without)).await;
            let with = perform(&app, &operation, &path, Some(&with)).await;
            let what = format!("{} {field}: {without:?} {with:?}", operation.name());
            assert_eq!(findings(&without), findings(&with), "{what}");
            let is_asked_for = findings(&with).iter().any(|(path, _)| path == field);
            if required.contains(&json!(field)) {
                assert!(is_asked_for, "{what}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} fields");
    app.leave_work();
}

#[tokio::test]
async fn an_optional_body_may_be_null_or_empty_too() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let mut count = 0;
    for operation in operations(&app).await {
        let body = operation_at(&document, &operation).get("requestBody");
        if body.is_none_or(|body| body["required"] == true) {
            continue;
        }
        let path = operation.path_to(&ids);
        app.caller().post_empty(&path).await.expect(200);
        for body in ["null", " null\n", "", "  ", "{}"] {
            let reply = app
                .caller()
                .post_raw(&path, Some("application/json"), body)
                .await;
            assert_eq!(reply.status, 200, "{path} {body:?}: {reply:?}");
        }
        app.caller().post_raw(&path, None, "").await.expect(200);
        app.caller()
            .post_raw(&path, Some("application/json"), "[]")
            .await
            .expect_error(400, "VALIDATION_ERROR");
        count += 1;
    }
    assert_eq!(count, 5);
    app.leave_work();
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_rejected_before_it_arrives() {
    let app = quiet().await;
    let key = app.key(app.organization_id(), &Permission::ALL).await;
    let account = app.connect(ProviderType::Mailgun).await;
    let account = app.get(&format!("/v1/providers/{account}")).await.data(200);
    let hook = account["webhookUrl"].as_str().unwrap();
    let hook = &hook[hook.find("/v1/").unwrap()..];
    for path in ["/v1/send", "/v1/emails/batch", "/v1/templates", hook] {
        let address = &app.variables["WAYPOST_LISTEN"];
        let mut client = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            60 << 20
        );
        client.write_all(head.as_bytes()).await.unwrap();
        // No byte of the body is sent.
        let mut said = vec![0; 12];
        client.read_exact(&mut said).await.unwrap();
        assert_eq!(said, b"HTTP/1.1 413", "{path}");
    }
}

#[tokio::test]
async fn a_rejection_names_its_field() {
    let app = quiet().await;
    app.connect(ProviderType::Mailgun).await;
    let nobody = uuid::Uuid::nil();
    for (field, value, reason) in [
        ("templateId", json!(nobody), "TEMPLATE_NOT_FOUND"),
        (
            "unsubscribeGroupId",
            json!(nobody),
            "UNKNOWN_UNSUBSCRIBE_GROUP",
        ),
        (
            "from",
            json!("a@unverified.example.net"),
            "DOMAIN_NOT_VERIFIED",
        ),
    ] {
        let mut message = message_to("a@example.org");
        message[field] = value;
        let error = app.post("/v1/send", &message).await;
        let error = error.expect_error(422, "VALIDATION_ERROR");
        let sentence = error["message"].as_str().unwrap();
        assert!(sentence.starts_with(&format!("{field} ")), "{error}");
        assert_eq!(error["details"]["reason"], reason);
        assert_eq!(error["details"]["issues"][0]["path"], field);
    }
    let address = json!({ "email": "a@b.example", "unsubscribeGroupId": nobody });
    let error = app.post("/v1/suppressions", &address).await;
    let error = error.expect_error(422, "VALIDATION_ERROR");
    let sentence = error["message"].as_str().unwrap();
    assert!(sentence.starts_with("unsubscribeGroupId "), "{error}");
}

#[tokio::test]
async fn the_case_of_a_domain_does_not_matter_for_messages_and_suppressions() {
    let app = quiet().await;
    app.connect(ProviderType::Mailgun).await;
    for domain in [
        "ab--cd.example.org",
        "r3---sn.example.org",
        "xn--bcher-kva.example",
    ] {
        let lower = format!("info@{domain}");
        let upper = format!("info@{}", domain.to_uppercase());
        app.post("/v1/send", &message_to(&upper)).await.expect(202);
        let suppression = json!({ "email": upper });
        let first = app.post("/v1/suppressions", &suppression).await.data(201);
        assert_eq!(first["emailHash"], waypost_tests::to_hash(&lower));
        app.post("/v1/suppressions", &json!({ "email": lower }))
            .await
            .expect_error(409, "CONFLICT");
        let reply = app.post("/v1/send", &message_to(&lower)).await.expect(202);
        assert_eq!(reply["status"], "suppressed");
    }
    app.leave_work();
}

#[tokio::test]
async fn responses_keep_the_documented_order() {
    let app = quiet().await;
    let ids = belongings(&app, app.caller()).await;
    let order = |reply: &Reply, pointer: &str| -> Vec<String> {
        let body = reply.json();
        let object = body.pointer(pointer).and_then(Value::as_object).unwrap();
        object.keys().cloned().collect()
    };
    for (path, pointer, wanted) in [
        (
            format!("/v1/templates/{}", ids["templates"]),
            "/data",
            "id organizationId name description tags currentVersionId createdAt updatedAt type currentVersion \
             currentVersions",
        ),
        (
            format!(
                "/v1/templates/{}/versions/{}",
                ids["templates"], ids["{versionId}"]
            ),
            "/data",
            "id templateId versionNumber mjmlSource htmlContent textContent variablesSchema createdBy createdAt \
             locale subject preheader from replyTo layoutId isTextGenerated parts",
        ),
        (
            "/v1/suppressions".to_owned(),
            "/data/0",
            "id organizationId emailHash unsubscribeGroupId source createdAt messageId",
        ),
        ("/v1/suppressions".to_owned(), "", "data pagination"),
        (
            "/v1/metrics/summary".to_owned(),
            "/data",
            "totalSent totalDelivered totalOpened totalClicked totalBounced totalComplained \
             totalUnsubscribed deliveryRate openRate clickRate bounceRate complaintRate",
        ),
    ] {
        let reply = app.get(&path).await;
        assert_eq!(order(&reply, pointer).join(" "), wanted, "{path}");
    }
    let sent = app.post("/v1/send", &message_to("eve@example.org")).await;
    let wanted = "messageId providerId providerType status domainVerified";
    assert_eq!(order(&sent, "").join(" "), wanted);
    let error = app.post("/v1/send", &json!({})).await;
    assert_eq!(order(&error, "/error").join(" "), "code message details");
    app.leave_work();
}

#[tokio::test]
async fn every_example_of_a_request_is_valid() {
    let app = quiet().await;
    let document = document(&app).await;
    let ids = belongings(&app, app.caller()).await;
    let receiver = waypost_tests::Receiver::start().await;
    app.user("known@example.org", &[]).await;
    let mut count = 0;
    for operation in operations(&app).await {
        let Some(body) = operation_at(&document, &operation).get("requestBody") else {
            continue;
        };
        let mut example = body["content"]["application/json"]["example"].clone();
        assert!(example.is_object(), "{} has no example", operation.name());
        // Values that only the reader can know.
        for (field, own) in [
            ("providerAccountId", ids["providers"].clone()),
            ("url", receiver.url()),
            (
                "scheduledAt",
                (app.clock.now() + TimeDelta::days(1)).to_rfc3339(),
            ),
        ] {
            if let Some(value) = example.get_mut(field) {
                *value = json!(own);
            }
        }
        match operation.path.as_str() {
            "/v1/members" => example["email"] = json!("known@example.org"),
            "/v1/invitations" => example["email"] = json!("unknown@example.org"),
            _ => {}
        }
        let path = operation.path_to(&ids);
        let reply = perform(&app, &operation, &path, Some(&example)).await;
        let what = format!("{}: {reply:?}", operation.name());
        assert!((200..300).contains(&reply.status), "{what}");
        assert!(!reply.text.contains("\"error\""), "{what}");
        count += 1;
    }
    assert!(count > 20, "{count} examples");
    app.leave_work();
}

#[tokio::test]
async fn every_example_of_an_error_has_its_status() {
    let app = quiet().await;
    let document = document(&app).await;
    let reasons = &document["components"]["schemas"]["ErrorReason"]["enum"];
    let reasons = reasons.as_array().unwrap();
    for operation in operations(&app).await {
        let answers = operation_at(&document, &operation)["responses"].as_object();
        let failures = answers.into_iter().flatten();
        for (status, answer) in failures.filter(|(status, _)| *status >= &"400".to_owned()) {
            let what = format!("{} {status}", operation.name());
            let content = &answer["content"]["application/json"];
            let examples = content["examples"].as_object().into_iter().flatten();
            let examples = examples.map(|(_, example)| &example["value"]);
            let examples: Vec<&Value> = examples.chain(content.get("example")).collect();
            assert!(!examples.is_empty(), "{what}");
            let wanted: &[&str] = match status.as_str() {
                "400" => &["VALIDATION_ERROR"],
                "401" => &["AUTHENTICATION_ERROR"],
                "403" => &["FORBIDDEN"],
                "404" => &["NOT_FOUND"],
                "409" => &["CONFLICT"],
                "413" => &["PAYLOAD_TOO_LARGE"],
                "415" => &["UNSUPPORTED_MEDIA_TYPE"],
                "422" => &["VALIDATION_ERROR", "PROVIDER_INVALID_CREDENTIALS"],
                "429" => &["RATE_LIMIT_EXCEEDED"],
                "500" => &["INTERNAL_ERROR"],
                "503" => &["SERVICE_UNAVAILABLE"],
                other => panic!("{what}: {other}"),
            };
            for error in examples.iter().map(|example| &example["error"]) {
                let code = error["code"].as_str().unwrap_or_else(|| panic!("{what}"));
                assert!(wanted.contains(&code), "{what}: {error}");
                if ["409", "422"].contains(&status.as_str()) {
                    assert!(reasons.contains(&error["details"]["reason"]), "{what}");
                }
            }
        }
    }
}
