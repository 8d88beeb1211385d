//! Hostile templates: the process answers them and continues to serve other requests.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp};

use super::{add_version, preview, quiet, template, version};

const MIB: usize = 1 << 20;

async fn is_alive(app: &TestApp) {
    let _listed = app.get("/v1/templates").await.expect(200);
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}{}", open.repeat(depth), close.repeat(depth))
}

#[tokio::test]
async fn nesting_that_would_overflow_a_stack_is_refused_when_a_version_is_added() {
    let app = quiet().await;
    let id = template(&app).await;
    for depth in [200, 2_000, 50_000] {
        let sources = [
            format!("{{{{{}a{}}}}}", "(a ".repeat(depth), ")".repeat(depth)),
            format!("{{{{a {}", "[".repeat(depth)),
            format!("{{{{x \"}}}}\" {}", "(a ".repeat(depth)),
            nested("{{#if a}}", "{{/if}}", depth),
            nested("{{#each a}}", "{{/each}}", depth),
            "{{#with a}}".repeat(depth),
            format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(depth)),
        ];
        for source in sources {
            add_version(&app, &id, &json!({ "htmlContent": source }))
                .await
                .expect_issues(400, &["htmlContent"]);
            let text = json!({ "htmlContent": "x", "textContent": source });
            add_version(&app, &id, &text)
                .await
                .expect_issues(400, &["textContent"]);
        }
        let mjml = [
            nested("<mj-wrapper>", "</mj-wrapper>", depth),
            "<mj-wrapper>".repeat(depth),
            nested("<mj-section>", "</mj-section>", depth),
            "<mj-social>".repeat(depth),
        ];
        for source in mjml {
            let source = format!("<mjml><mj-body>{source}</mj-body></mjml>");
            let content = json!({ "htmlContent": "x", "mjmlSource": source });
            add_version(&app, &id, &content)
                .await
                .expect_issues(400, &["mjmlSource"]);
        }
        let mut schema = json!({});
        for _ in 0..100 {
            schema = json!({ "not": schema });
        }
        let content = json!({ "htmlContent": "x", "variablesSchema": schema });
        add_version(&app, &id, &content)
            .await
            .expect_issues(400, &["variablesSchema"]);
    }
    is_alive(&app).await;
}

#[tokio::test]
async fn a_source_has_at_most_one_mebibyte_and_a_version_five() {
    let app = quiet().await;
    let id = template(&app).await;
    let full = "x".repeat(MIB);
    let content = json!({ "htmlContent": full, "textContent": full });
    let _created = add_version(&app, &id, &content).await.data(201);
    let over = json!({ "htmlContent": format!("{full}x"), "textContent": format!("{full}x"), "mjmlSource": format!("{full}x") });
    add_version(&app, &id, &over)
        .await
        .expect_issues(400, &["htmlContent", "textContent", "mjmlSource"]);
    let huge = json!({ "htmlContent": "x".repeat(5 * MIB) });
    add_version(&app, &id, &huge)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn endless_loops_and_outputs_are_aborted_while_others_are_served() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let rows: Vec<u32> = (0..300).collect();
    let wide: Vec<Value> = (0..20_000).map(|_| json!([])).collect();
    let variables = json!({ "a": rows, "big": { "wide": wide }, "text": "x".repeat(100_000) });
    let loops = |inner: &str, depth: usize| {
        format!(
            "{}{inner}{}",
            "{{#each @root.a}}".repeat(depth),
            "{{/each}}".repeat(depth)
        )
    };
    let compare = "{{#if (eq @root.big @root.big)}}{{/if}}".repeat(5_000);
    let lists = format!(
        "{{{{#with (lookup big \"wide\")}}}}{}{{{{/with}}}}",
        "{{this}}".repeat(900)
    );
    for source in [
        // Many values in one tag, each of which counts the characters of a long text.
        loops(
            &format!(
                "{{{{#if (and {})}}}}{{{{/if}}}}",
                "@root.text.length ".repeat(5_000)
            ),
            1,
        ),
        loops(&format!("{{{{@root{}}}}}", ".a".repeat(50_000)), 2),
        format!(
            "{{{{#each a as |{}|}}}}{}{{{{/each}}}}",
            (0..100).map(|name| format!("n{name} ")).collect::<String>(),
            "{{#each @root.a}}{{#each @root.a}}{{n1}}{{/each}}{{/each}}"
        ),
        loops("", 3),
        loops("row", 3),
        loops("{{lookup @root.big \"wide\"}}", 2),
        loops(&"{{a}}".repeat(2_000), 2),
        "{{text}}".repeat(1_000),
        compare.chars().take(39 * 900).collect(),
        lists,
        format!("{{{{#each a}}}}{}{{{{/each}}}}", "{{../text}}".repeat(100)),
    ] {
        let id = template(&app).await;
        let _version = version(&app, &id, &source).await;
        let start: String = source.chars().take(50).collect();
        let reply = preview(&app, &id, &json!({ "variables": variables })).await;
        assert_eq!(reply.status, 422, "{start}: {}", reply.text);
        let error = reply.expect_error(422, "VALIDATION_ERROR");
        assert_eq!(
            error["details"]["reason"], "TEMPLATE_NOT_RENDERABLE",
            "{start}"
        );
        let message = json!({ "from": SENDER, "to": "a@example.org", "subject": "s", "templateId": id, "variables": variables });
        app.post("/v1/send", &message)
            .await
            .expect_issues(422, &["templateId"]);
    }
    is_alive(&app).await;
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        0
    );
}

#[tokio::test]
async fn nothing_outside_the_variables_can_be_reached() {
    let app = quiet().await;
    let id = template(&app).await;
    for source in [
        "{{> /etc/passwd}}",
        "{{#> a}}{{/a}}",
        "{{* inline}}",
        "{{#*inline \"a\"}}{{/inline}}",
        "{{include \"a\"}}",
    ] {
        add_version(&app, &id, &json!({ "htmlContent": source }))
            .await
            .expect_issues(400, &["htmlContent"]);
    }
    for reference in [
        "http://127.0.0.1:1/a.json",
        "file:///etc/passwd",
        "a.json",
        "#",
        "#/nowhere",
    ] {
        let content = json!({ "htmlContent": "x", "variablesSchema": { "properties": { "a": { "$ref": reference } } } });
        add_version(&app, &id, &content)
            .await
            .expect_issues(400, &["variablesSchema"]);
    }
    let content =
        json!({ "htmlContent": "x", "variablesSchema": { "pattern": "(a{1000}){1000}" } });
    add_version(&app, &id, &content)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let _version = version(
        &app,
        &id,
        "{{constructor}}{{__proto__.x}}{{this.prototype}}{{@root.y}}{{../../z}}",
    )
    .await;
    let shown = preview(&app, &id, &json!({ "variables": {} }))
        .await
        .expect(200);
    assert_eq!(shown["html"], "");
}

#[tokio::test]
async fn mjml_that_would_take_too_long_is_refused_immediately() {
    let app = quiet().await;
    let id = template(&app).await;
    let attributes =
        |count: usize| -> String { (0..count).map(|i| format!("a{i}=\"v\" ")).collect() };
    let column = |content: &str| {
        format!(
            "<mjml><mj-body><mj-section><mj-column>{content}</mj-column></mj-section></mj-body></mjml>"
        )
    };
    let rules = "b{a:b}".repeat(100_000);
    for source in [
        column(&format!("<mj-text {}/>", attributes(80_000))),
        column(&format!("<mj-text {}/>", attributes(20_001))),
        column(&format!("<mj-text {}/>", attributes(100)).repeat(300)),
        column(&"<mj-text/>".repeat(6_000)),
        column(&"<mj-column>".repeat(200)),
        column(&format!(
            "<mj-carousel>{}</mj-carousel>",
            "{{a}}<b>".repeat(2_000)
        )),
        column(&format!(
            "<mj-carousel>{}</mj-carousel>",
            "<mj-raw>a</mj-raw>".repeat(4_000)
        )),
        format!(
            "<mjml><mj-body mj-class=\"{}\">{}</mj-body></mjml>",
            "a ".repeat(400_000),
            "<mj-section/>".repeat(4_000)
        ),
        format!(
            "<mjml><mj-head><mj-style inline=\"inline\">{rules}</mj-style></mj-head><mj-body><mj-raw>{}</mj-raw></mj-body></mjml>",
            "<b>".repeat(1_000)
        ),
    ] {
        let begin = std::time::Instant::now();
        let content = json!({ "htmlContent": "x", "mjmlSource": source });
        add_version(&app, &id, &content)
            .await
            .expect_issues(400, &["mjmlSource"]);
        let took = begin.elapsed();
        assert!(took.as_secs() < 5, "{took:?}");
    }
}
