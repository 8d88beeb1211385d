//! Health checks, the OpenAPI document and its page.

use std::collections::HashSet;

use http::Method;
use serde_json::Value;
use waypost_tests::{Reply, TestApp, message_to, wait_until, without_references};

/// The verbs with which operation ids start.
const VERBS: [&str; 35] = [
    "accept",
    "cancel",
    "check",
    "complete",
    "confirm",
    "create",
    "delete",
    "disable",
    "download",
    "erase",
    "export",
    "get",
    "import",
    "list",
    "look",
    "preview",
    "receive",
    "register",
    "remove",
    "replay",
    "resolve",
    "retry",
    "revoke",
    "rollback",
    "rotate",
    "send",
    "simulate",
    "start",
    "test",
    "track",
    "undo",
    "unsubscribe",
    "update",
    "validate",
    "verify",
];

/// The operation with a signature instead of a key: it responds with 401 without a key
/// too.
const RECEIVE: &str = "receive_provider_events";

/// The operations that sign somebody in. They take neither key nor session, and refuse with 401
/// and 403.
const SIGN_IN: [&str; 6] = [
    "accept_invitation",
    "accept_password_reset",
    "create_session",
    "list_sign_in_methods",
    "look_up_invitation",
    "look_up_password_reset",
];

/// The operations without a key.
const PUBLIC: [&str; 12] = [
    "complete_oidc_sign_in",
    "start_oidc_sign_in",
    RECEIVE,
    "track_click",
    "track_open",
    "get_undo_unsubscribe",
    "undo_unsubscribe",
    "unsubscribe_recipient",
    "unsubscribe_recipient_by_one_click",
    "validate_tracking_link",
    "validate_tracking_pixel",
    "validate_unsubscribe_link",
];

async fn ready(app: &TestApp) -> Reply {
    app.caller().anonymous().get("/readyz").await
}

#[tokio::test]
async fn a_live_process_reports_it_without_a_key() {
    let app = TestApp::start().await;
    let anonymous = app.caller().anonymous();
    assert_eq!(anonymous.get("/healthz").await.status, 200);
    let reply = ready(&app).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[tokio::test]
async fn it_is_not_ready_while_redis_is_down_and_says_why() {
    let mut app = TestApp::builder().private_redis().start().await;
    assert_eq!(ready(&app).await.status, 200);
    app.redis.as_mut().unwrap().stop().await;
    let reply = ready(&app).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    let body = reply.json();
    assert!(
        body["redis"].as_str().is_some_and(|state| state != "ok"),
        "{body}"
    );
    assert_eq!(body["postgres"], "ok");
    assert_eq!(app.caller().anonymous().get("/healthz").await.status, 200);
    app.redis.as_mut().unwrap().resume().await;
    waypost_tests::wait_until("it is ready again", async || {
        ready(&app).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn it_is_not_ready_while_postgres_is_down_and_says_why() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting(
            "DATABASE_URL",
            "postgres://nobody:canary-password@127.0.0.1:1/nowhere",
        )
        .start()
        .await;
    let reply = ready(&app).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    let body = reply.json();
    assert!(
        body["postgres"].as_str().is_some_and(|state| state != "ok"),
        "{body}"
    );
    assert_eq!(body["redis"], "ok");
    assert!(!reply.text.contains("canary"), "{reply:?}");
}

#[tokio::test]
async fn it_is_not_ready_before_the_migrations_and_says_why() {
    let app = TestApp::builder()
        .without_migrations()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let reply = ready(&app).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.text.contains("migrat"), "{reply:?}");
    let unknown = app
        .caller()
        .with_key(&format!("wp_live_{}", "x".repeat(32)));
    let send = async || {
        unknown
            .post("/v1/send", &message_to("ada@example.org"))
            .await
    };
    assert_eq!(send().await.status, 503);
    waypost_core::db::migrate(&app.pool).await.unwrap();
    assert_eq!(ready(&app).await.status, 200);
    wait_until("sends are served", async || send().await.status == 401).await;
}

#[tokio::test]
async fn each_program_raises_its_limit_of_open_files() {
    let app = TestApp::builder().processes().start().await;
    let api = app.spawn_api().await;
    for process in [api, app.spawn_worker(), app.spawn_scheduler()] {
        wait_until("the limit is raised", async || {
            let (soft, hard) = process.open_files_max();
            soft == hard && hard > 256
        })
        .await;
    }
}

#[tokio::test]
async fn the_document_is_openapi_3_0_and_its_operations_are_well_named() {
    let app = TestApp::builder().without_worker().start().await;
    let reply = app.caller().anonymous().get("/openapi.json").await;
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("application/json")
    );
    let document = without_references(&reply.expect(200));
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.0."),
        "{}",
        document["openapi"]
    );
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut seen = HashSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"]
                .as_str()
                .unwrap_or_else(|| panic!("{method} {path} has no operationId"));
            assert!(seen.insert(id.to_owned()), "{id} is there twice");
            let (verb, resource) = id
                .split_once('_')
                .unwrap_or_else(|| panic!("{id} is not verb_resource"));
            assert!(VERBS.contains(&verb), "{id}");
            assert!(
                resource
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{id}"
            );
            let name = format!("{method} {path}");
            check_operation(&name, operation, !PUBLIC.contains(&id));
        }
    }
}

fn check_operation(name: &str, operation: &Value, needs_key: bool) {
    let responses = operation["responses"].as_object().unwrap();
    assert!(
        responses
            .keys()
            .any(|status| status.starts_with(['2', '3'])),
        "{name} has no answer"
    );
    let is_signed = operation["operationId"] == RECEIVE;
    for status in ["401", "403"] {
        assert_eq!(
            responses.contains_key(status),
            needs_key || (is_signed && status == "401"),
            "{name} does not document {status}, or should not"
        );
    }
    let signs_in = SIGN_IN.iter().any(|id| operation["operationId"] == *id);
    assert_eq!(
        operation["security"]
            .as_array()
            .is_some_and(|security| !security.is_empty()),
        needs_key && !signs_in,
        "{name} needs no key, or should not"
    );
    assert!(
        operation["summary"].is_string() || operation["description"].is_string(),
        "{name} is not described"
    );
}

#[tokio::test]
async fn every_field_and_parameter_of_the_document_has_an_example() {
    let app = TestApp::builder().without_worker().start().await;
    let document = app.document().await;
    let mut lacking = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_without_example(name, schema, &mut lacking);
    }
    let paths = document["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|operations| operations.as_object().unwrap().values()) {
        let parameters = operation["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            if parameter["schema"].get("example").is_none() {
                lacking.push(format!(
                    "{}: {}",
                    operation["operationId"], parameter["name"]
                ));
            }
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

fn collect_without_example(name: &str, schema: &Value, lacking: &mut Vec<String>) {
    if schema.get("example").is_some() {
        return;
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    for (field, mut schema) in fields {
        let name = format!("{name}.{field}");
        while schema.get("items").is_some() && schema.get("example").is_none() {
            schema = &schema["items"];
        }
        let says = |what: &str| schema.get(what).is_some();
        if says("properties") && !says("example") {
            collect_without_example(&name, schema, lacking);
        } else if !says("example") && !says("$ref") && !says("allOf") {
            lacking.push(name);
        }
    }
}

#[tokio::test]
async fn every_reference_in_the_document_is_valid() {
    let app = TestApp::builder().without_worker().start().await;
    let document = app.get("/openapi.json").await.expect(200);
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference
            .strip_prefix('#')
            .unwrap_or_else(|| panic!("{reference} leads elsewhere"));
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.push(reference.clone());
            }
            fields
                .values()
                .for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| collect_references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_documentation_page_loads_nothing_from_elsewhere() {
    let app = TestApp::builder().without_worker().start().await;
    let reply = app.caller().anonymous().get("/docs").await;
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/html"),
        "{:?}",
        reply.headers
    );
    let page = &reply.text;
    // The policy names no other host, and without it nothing is loaded.
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    for word in ["http:", "https:", "*", "//"] {
        assert!(!policy.contains(word), "{policy}");
    }
    let document = app.document().await;
    let name = document["info"]["title"].as_str().unwrap();
    assert!(page.contains(name));
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.contains(path), "{path}");
    }
}

#[tokio::test]
async fn the_document_and_its_page_are_compressed_and_not_sent_twice() {
    let app = TestApp::builder().without_worker().start().await;
    for path in ["/openapi.json", "/docs"] {
        let get = async |name: &'static str, value: &str| {
            let get = |request: reqwest::RequestBuilder| request.header(name, value);
            app.caller().anonymous().call(Method::GET, path, get).await
        };
        let plain = get("accept-encoding", "identity").await;
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let compressed = get("accept-encoding", "gzip, deflate").await;
        assert_eq!(
            compressed.header("content-encoding"),
            Some("gzip"),
            "{path}"
        );
        let length =
            |reply: &Reply| -> u64 { reply.header("content-length").unwrap().parse().unwrap() };
        assert!(3 * length(&compressed) < length(&plain), "{path}");
        let etag = plain.header("etag").unwrap();
        assert_eq!(compressed.header("etag"), Some(etag), "{path}");
        let known = get("if-none-match", etag).await;
        assert_eq!((known.status, known.text.as_str()), (304, ""), "{path}");
        assert_eq!(
            get("if-none-match", "\"other\"").await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_documentation_has_one_address() {
    let app = TestApp::builder().without_worker().start().await;
    let reply = app.caller().anonymous().get("/docs/").await;
    assert_eq!(reply.status, 303, "{reply:?}");
    assert_eq!(reply.header("location"), Some("../docs"));
}

#[tokio::test]
async fn head_requests_succeed_or_are_rejected_in_the_common_form() {
    let app = TestApp::builder().without_worker().start().await;
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        let reply = app
            .caller()
            .call(Method::HEAD, path, |request| request)
            .await;
        assert!([200, 405].contains(&reply.status), "{path}: {reply:?}");
        let reply = app
            .caller()
            .call(Method::POST, path, |request| request)
            .await;
        reply.expect_error(405, "METHOD_NOT_ALLOWED");
    }
}
