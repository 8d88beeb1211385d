//! Templates and lists that a test put there, page by page.

use serde_json::{Value, json};

use crate::support::{World, seen};

async fn put(world: &World, body: Value) {
    let answer = seen(world.post("/stored-objects").json(&body)).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
}

#[tokio::test]
async fn sendgrid_lists_dynamic_templates_without_their_contents() {
    let world = World::new();
    let version = json!({ "id": "v", "active": 1, "subject": "Hi", "html_content": "<p>Hi</p>" });
    let template = |id: &str, generation: &str| json!({ "id": id, "name": "N", "generation": generation, "versions": [version] });
    let templates = [
        template("d-1", "dynamic"),
        template("l", "legacy"),
        template("d-2", "dynamic"),
    ];
    let body = json!({ "provider": "SENDGRID", "credential": "SG.one", "templates": templates });
    put(&world, body).await;
    let get = |path: &str, key: &str| seen(world.get(path).bearer_auth(key));
    let first = "/v3/templates?generations=dynamic&page_size=1";
    let page = get(first, "SG.one").await.json();
    assert_eq!(page["result"][0]["id"], "d-1");
    assert_eq!(
        page["result"][0]["versions"][0]["html_content"],
        Value::Null
    );
    let next = page["_metadata"]["next"].as_str().unwrap();
    assert!(next.contains("page_token=1"), "{next}");
    let page = get(&format!("{first}&page_token=1"), "SG.one").await.json();
    assert_eq!(page["result"][0]["id"], "d-2");
    assert_eq!(page["_metadata"]["next"], Value::Null);
    let one = get("/v3/templates/d-2", "SG.one").await.json();
    assert_eq!(one["versions"][0]["html_content"], "<p>Hi</p>");
    assert_eq!(get("/v3/templates/d-3", "SG.one").await.status, 404);
    assert_eq!(
        get("/v3/templates?page_size=201", "SG.one").await.status,
        400
    );
    let other = get(first, "SG.other").await.json();
    assert_eq!(other["result"], json!([]));
}

#[tokio::test]
async fn postmark_finds_templates_by_number_and_alias() {
    let world = World::new();
    let template =
        json!({ "TemplateId": 7, "Alias": "seven", "TemplateType": "Layout", "HtmlBody": "x" });
    let body = json!({ "provider": "POSTMARK", "credential": "token", "templates": [template] });
    put(&world, body).await;
    let get = |path: &str| {
        let request = world.get(path).header("X-Postmark-Server-Token", "token");
        seen(request.header("Accept", "application/json"))
    };
    let none = get("/templates?Count=500&Offset=0").await.json();
    assert_eq!(none["TotalCount"], 0);
    let listed = get("/templates?Count=500&Offset=0&TemplateType=Layout")
        .await
        .json();
    assert_eq!(listed["Templates"][0]["HtmlBody"], Value::Null);
    assert_eq!(get("/templates/7").await.json()["HtmlBody"], "x");
    assert_eq!(get("/templates/seven").await.json()["TemplateId"], 7);
    let missing = get("/templates/8").await;
    assert_eq!(
        (missing.status.as_u16(), &missing.json()["ErrorCode"]),
        (422, &json!(1101))
    );
    assert_eq!(get("/templates").await.status, 422);
}

#[tokio::test]
async fn mailgun_names_the_next_page_after_the_last_one_too() {
    let world = World::new();
    let template = |name: &str| json!({ "name": name, "version": { "template": "x", "engine": "handlebars" } });
    let templates = [template("b"), template("a")];
    let body = json!({ "provider": "MAILGUN", "credential": "key", "templates": templates });
    put(&world, body).await;
    let get = |path: &str| seen(world.get(path).basic_auth("api", Some("key")));
    let page = get("/v3/example.com/templates?limit=2").await.json();
    assert_eq!(page["items"][0]["name"], "a");
    assert_eq!(page["items"][0]["version"], Value::Null);
    assert!(
        page["paging"]["next"]
            .as_str()
            .unwrap()
            .contains("page=next&p=b")
    );
    let page = get("/v3/example.com/templates?limit=2&page=next&p=b")
        .await
        .json();
    assert_eq!(page["items"], json!([]));
    let one = get("/v3/example.com/templates/a?active=yes").await.json();
    assert_eq!(one["template"]["version"]["template"], "x");
    assert_eq!(get("/v3/example.com/templates/c").await.status, 404);
}

#[tokio::test]
async fn resend_goes_on_after_the_last_id() {
    let world = World::new();
    let template = |id: &str| json!({ "id": id, "alias": format!("{id}-alias"), "html": "x" });
    let body = json!({
        "provider": "RESEND", "credential": "re_one",
        "templates": [template("a"), template("b")], "webhooks": [{ "id": "w", "endpoint": "https://example.com" }],
    });
    put(&world, body).await;
    let get = |path: &str| seen(world.get(path).bearer_auth("re_one"));
    let page = get("/templates?limit=1").await.json();
    assert_eq!(
        (&page["data"][0]["id"], &page["has_more"]),
        (&json!("a"), &json!(true))
    );
    assert_eq!(page["data"][0]["html"], Value::Null);
    let page = get("/templates?limit=1&after=a").await.json();
    assert_eq!(
        (&page["data"][0]["id"], &page["has_more"]),
        (&json!("b"), &json!(false))
    );
    assert_eq!(get("/templates/b-alias").await.json()["html"], "x");
    assert_eq!(get("/webhooks").await.json()["data"][0]["id"], "w");
    assert_eq!(get("/suppressions").await.json()["data"], json!([]));
    assert_eq!(get("/templates?after=c").await.status, 422);
    assert_eq!(get("/templates?limit=101").await.status, 422);
    let wrong = seen(world.get("/domains").bearer_auth("re_invalid")).await;
    assert_eq!(wrong.status, 400);
}
