//! Rendering of Handlebars over HTTP, with the results of handlebars.js 4.7.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp, untracked};

use super::{add_version, preview, quiet, template, version};

/// Renders each source with the variables and compares the HTML.
async fn renders(variables: &str, cases: &[(&str, &str)]) {
    let variables: Value = serde_json::from_str(variables).unwrap();
    let app = quiet().await;
    let id = template(&app).await;
    for (source, expected) in cases {
        let _version = version(&app, &id, source).await;
        let shown = preview(&app, &id, &json!({ "variables": variables })).await;
        assert_eq!(shown.expect(200)["html"], *expected, "{source}");
    }
}

#[tokio::test]
async fn undefined_names_render_empty() {
    let cases = [
        ("You have {{items.length}} items", "You have 2 items"),
        (
            "{{items.size}}{{items.x.y}}{{n.x}}{{yes.x}}{{t.x.y}}{{nul.x}}{{missing.x.y}}",
            "",
        ),
        (
            "{{items.constructor}}{{t.toString}}{{o.__proto__}}{{n.toFixed}}",
            "",
        ),
        ("{{t.length}} {{t.[0]}} {{o.length}}|{{n.length}}", "4 a |"),
        (
            "{{#if items.length}}some{{/if}}{{#if none.length}}x{{else}}none{{/if}}",
            "somenone",
        ),
        (
            "{{#each n}}x{{else}}e{{/each}}{{#each t}}x{{else}}e{{/each}}",
            "ee",
        ),
        (
            "{{../x}}{{../../y}}{{@index}}{{@nothing.x}}{{@../index}}",
            "",
        ),
    ];
    renders(
        r#"{"items":[1,2],"none":[],"n":1.0,"t":"a😀b","o":{},"yes":true,"nul":null}"#,
        &cases,
    )
    .await;
}

#[tokio::test]
async fn all_notations_of_paths_work() {
    let cases = [
        ("{{#each list}}<{{.}}>{{/each}}", "<a><b>"),
        (
            "{{#each list}}{{this}}{{/each}}{{#each list}}{{../x}}{{/each}}",
            "abXX",
        ),
        ("{{#each list}}{{#with ..}}{{x}}{{/with}}{{/each}}", "XX"),
        (
            "{{#with o}}{{#each ../list}}{{..}}{{/each}}{{/with}}",
            "[object Object][object Object]",
        ),
        ("{{this.x}}{{./x}}{{this/x}}{{[x]}}{{\"x\"}}", "XXXXX"),
        ("{{[a b]}} {{o.[c d]}} {{o/e}}", "AB CD E"),
        (
            "{{list.[0]}}{{list.0}}{{list.[1]}}{{rows.0.n}}{{rows.[1].n}}",
            "aab12",
        ),
        ("{{@root.x}}{{#each list}}{{@root.x}}{{/each}}", "XXX"),
        ("{{12}}{{true}}{{null}}", "twelveT"),
        ("{{len}} {{not}} {{raw}}", "L N R"),
    ];
    renders(
        r#"{"list":["a","b"],"x":"X","a b":"AB","o":{"c d":"CD","e":"E"},"rows":[{"n":1},{"n":2}],
            "12":"twelve","true":"T","len":"L","not":"N","raw":"R"}"#,
        &cases,
    )
    .await;
}

#[tokio::test]
async fn white_space_in_a_tag_is_that_of_javascript() {
    let mut cases = Vec::new();
    let spaces = "\t\n\u{b}\u{c}\r \u{a0}\u{1680}\u{2000}\u{2003}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
    for space in spaces.chars() {
        cases.push(format!("{{{{{space}name{space}}}}}"));
        cases.push(format!("{{{{#if{space}name}}}}Ada{{{{/if{space}}}}}"));
        cases.push(format!("{{{{#each{space}list{space}as{space}|a{space}b|}}}}{{{{a}}}}{{{{{space}else{space}}}}}{{{{/each}}}}"));
        cases.push(format!("x{space}{{{{~name~}}}}{space}").replace('x', ""));
    }
    let cases: Vec<(&str, &str)> = cases
        .iter()
        .map(|source| (source.as_str(), "Ada"))
        .collect();
    renders(r#"{"name":"Ada","list":["Ada"]}"#, &cases).await;
}

#[tokio::test]
async fn fields_keep_their_given_order() {
    let cases = [
        ("{{#each days}}{{@key}} {{/each}}", "Tuesday Monday "),
        (
            "{{#each mixed}}{{@index}}{{@key}}={{this}}{{#if @last}}.{{else}},{{/if}}{{/each}}",
            "02=d,110=b,2z=a,3a=c.",
        ),
        ("{{#each @root}}{{@key}} {{/each}}", "days mixed "),
    ];
    renders(
        r#"{"days":{"Tuesday":1,"Monday":2},"mixed":{"z":"a","10":"b","a":"c","2":"d"}}"#,
        &cases,
    )
    .await;
}

#[tokio::test]
async fn sections_blocks_and_helpers_behave_like_handlebars_js() {
    let cases = [
        ("{{#items}}{{n}};{{/items}}", "1;2;"),
        (
            "{{#items}}{{@index}}{{@first}}{{@last}} {{/items}}",
            "0truefalse 1falsetrue ",
        ),
        (
            "{{^items}}none{{/items}}{{^empty}}none{{/empty}}{{^no}}n{{/no}}{{^nul}}n{{/nul}}",
            "nonenn",
        ),
        (
            "{{#empty}}a{{else}}b{{/empty}}{{#missing}}a{{^}}c{{/missing}}",
            "bc",
        ),
        (
            "{{#zero}}zero is shown{{/zero}}{{#o}}{{k}}{{/o}}{{#yes}}{{zero}}{{/yes}}",
            "zero is shownv0",
        ),
        (
            "{{#if zero}}a{{else if str}}b{{else if empty}}c{{else}}d{{/if}}",
            "d",
        ),
        (
            "{{#if zero includeZero=true}}a{{/if}}{{#unless zero}}b{{/unless}}{{#if eo}}c{{/if}}",
            "abc",
        ),
        (
            "{{#with o}}{{k}}{{../zero}}{{else}}x{{/with}}{{#with nul}}x{{else}}y{{/with}}",
            "v0y",
        ),
        (
            "{{#each items as |item i|}}{{i}}{{item.n}}{{/each}}{{#each empty}}x{{else}}e{{/each}}",
            "0112e",
        ),
        (
            "{{#each items}}{{#each ../list}}{{@../index}}{{@index}}{{.}} {{/each}}{{/each}}",
            "00a 10a ",
        ),
        ("{{#with o as |p|}}{{p.k}}{{/with}}", "v"),
        ("{{#eq zero 0}}b{{else}}c{{/eq}}{{len list}}", "b1"),
        ("{{#if (and yes (not no))}}a{{/if}}", "a"),
        (
            "{{lookup list 0}}{{lookup o \"k\"}}{{lookup (lookup items 1) 'n'}}{{log zero}}",
            "av2",
        ),
        ("a{{! c }}b{{!-- {{c}} --}}c", "abc"),
        ("a  {{~ zero ~}}  b", "a0b"),
        (
            "a\n  {{#if yes}}\n  b\n  {{else}}\n  c\n  {{/if}}\nd\n{{! x }}\ne",
            "a\n  b\nd\ne",
        ),
        (
            "\\{{zero}} \\\\{{zero}} {{{{raw}}}} {{zero}} {{{{/raw}}}}",
            "{{zero}} \\0  {{zero}} ",
        ),
        (
            "{{html}} {{{html}}} {{&html}}",
            "&lt;&amp;&quot;&#x27;&#x60;&#x3D;&gt; <&\"'`=> <&\"'`=>",
        ),
        (
            "{{one}} {{big}} {{yes}} {{no}} {{nul}} {{nested}} {{o}}",
            "1 1e+21 true false  1,2,,3 [object Object]",
        ),
    ];
    renders(
        r#"{"items":[{"n":1},{"n":2}],"list":["a"],"empty":[],"yes":true,"no":false,"nul":null,"zero":0,"str":"",
            "o":{"k":"v"},"eo":{},"html":"<&\"'`=>","one":1.0,"big":1e21,"nested":[1,[2,null],3]}"#,
        &cases,
    )
    .await;
}

fn own(fields: &Value) -> Value {
    let mut message = json!({
        "from": SENDER, "to": "ada@example.org", "subject": "For {{name}}", "tracking": untracked(),
    });
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

#[tokio::test]
async fn variables_without_a_template_render_subject_html_and_text() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let bodies = json!({
        "html": "<p>{{name}}</p>{{#items}}{{.}};{{/items}}", "text": "{{name}}",
        "variables": { "name": "<Ada>", "items": [1, 2] },
    });
    app.send(&own(&bodies)).await;
    let mut empty = own(&json!({ "html": "<p>{{name}}</p>", "variables": {} }));
    empty["to"] = json!("bob@example.org");
    app.send(&empty).await;
    let batch = json!({ "messages": [own(&json!({
        "to": "eve@example.org", "text": "{{name}}", "variables": { "name": "Eve" },
    })), own(&json!({ "text": "{{#if", "variables": {} }))] });
    let results = app.post("/v1/emails/batch", &batch).await.expect(200);
    assert_eq!(results["results"][0]["status"], "queued");
    let error = results["results"][1]["error"].as_str().unwrap();
    assert!(error.starts_with("text line 1"), "{error}");
    app.drain().await;
    let copy = app.captured_once("ada@example.org");
    assert_eq!(copy.subject, "For <Ada>");
    assert_eq!(copy.html.as_deref(), Some("<p>&lt;Ada&gt;</p>1;2;"));
    assert_eq!(copy.text.as_deref(), Some("<Ada>"));
    let copy = app.captured_once("bob@example.org");
    assert_eq!(
        (copy.subject.as_str(), copy.html.as_deref()),
        ("For ", Some("<p></p>"))
    );
    assert_eq!(
        app.captured_once("eve@example.org").text.as_deref(),
        Some("Eve")
    );
}

#[tokio::test]
async fn all_issues_of_request_templates_are_reported_together() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    for (fields, paths) in [
        (
            json!({ "subject": "{{> x}}", "html": "a\n{{#if}}", "text": "{{shout a}}", "variables": {} }),
            &["subject", "html", "text"][..],
        ),
        (
            json!({ "html": "{{x}}", "variables": {} }),
            &["variables"][..],
        ),
        (
            json!({ "html": "x".repeat((1 << 20) + 1), "text": "{{x}}".repeat(1 << 18), "variables": {} }),
            &["html", "text"][..],
        ),
        (
            json!({ "html": "{{!-- a --}}".repeat(20_001), "text": "{{a}}", "variables": {} }),
            &["html"][..],
        ),
        (
            json!({ "html": format!("{{{{and {}}}}}", "a ".repeat(100_001)), "variables": {} }),
            &["html"][..],
        ),
        (
            json!({ "html": "{{x}}", "variables": [] }),
            &["variables"][..],
        ),
        (
            json!({ "text": "{{#each r}}".to_owned() + &"{{#each @root.r}}".repeat(3) + &"{{/each}}".repeat(4),
                "variables": { "r": (0..300).collect::<Vec<u32>>() } }),
            &["text"][..],
        ),
        (
            json!({ "html": "<a href=\"{{unsubscribeUrl}}\">x</a>", "variables": {} }),
            &["unsubscribeGroupId"][..],
        ),
        (
            json!({ "html": "{{#if unsubscribeUrl}}<hr>{{/if}}<a href=\"{{unsubscribeUrl}}\">x</a>", "variables": {} }),
            &["unsubscribeGroupId"][..],
        ),
    ] {
        app.post("/v1/send", &own(&fields))
            .await
            .expect_issues(400, paths);
    }
}

#[tokio::test]
async fn request_templates_can_test_for_and_set_the_unsubscribe_link() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let text = "{{#if unsubscribeUrl}}Leave: {{unsubscribeUrl}}{{else}}Hello{{/if}}";
    for (variables, expected) in [
        (json!({}), "Hello"),
        (
            json!({ "unsubscribeUrl": "https://x.example" }),
            "Leave: https://x.example",
        ),
    ] {
        let mut message = own(&json!({ "text": text, "variables": variables }));
        let to = format!("{}@example.org", expected.len());
        message["to"] = json!(to);
        app.send(&message).await;
        app.drain().await;
        assert_eq!(app.captured_once(&to).text.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn an_accepted_version_renders_with_any_variables() {
    let app = quiet().await;
    let id = template(&app).await;
    let source = "{{a}}{{a.b}}{{a.[0].c}}{{a.length}}{{#a}}{{b}}{{..}}{{/a}}{{^a}}{{.}}{{/a}}{{#each a}}{{@key}}{{b}}\
                  {{#with b as |c|}}{{c.d}}{{/with}}{{/each}}{{lookup a b}}{{lookup b a}}{{#if (gt a b)}}{{/if}}{{len a}}";
    let _version = add_version(
        &app,
        &id,
        &json!({ "htmlContent": source, "textContent": source }),
    )
    .await
    .data(201);
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1.5),
        json!(""),
        json!("text"),
        json!([]),
        json!([null, [1], { "b": "x" }, "y"]),
        json!({}),
        json!({ "b": { "d": [] }, "length": 1 }),
    ];
    for a in &values {
        for b in &values {
            let variables = json!({ "variables": { "a": a, "b": b } });
            let _shown = preview(&app, &id, &variables).await.expect(200);
        }
    }
}
