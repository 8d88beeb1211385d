//! Tracked bodies of sent mail. Unit tests cover which links are tracked.

use futures_util::future::join_all;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{ADA, HTML, TARGET, assert_leads_to, html_to, message, path, read, seen, sending};

/// A body without Waypost's links and pixel.
fn without_ours(app: &TestApp, html: &str) -> String {
    let base = format!("http://{}/v1/t/", app.variables["WAYPOST_LISTEN"]);
    let mut parts = html.split(&base);
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
        shown.push('@');
        shown.push_str(part.trim_start_matches(is_plain));
    }
    let pixel =
        "<img src=\"@\" alt=\"\" width=\"1\" height=\"1\" style=\"border:0;width:1px;height:1px\">";
    shown.replace(pixel, "PIXEL")
}

#[tokio::test]
async fn links_are_replaced_and_everything_else_is_unchanged() {
    let app = sending().await;
    let html = "<!DOCTYPE html>\n<HTML><head><style>a{color:red}</style><title>ä</title></head>\n<BODY bgcolor=white>\n\
        <A HREF=https://e.com/1 >1</A> <a\ttitle='x' href = 'http://e.com/2?a=b&amp;c=%20'>2</a>\n\
        <!--[if mso]><a href=\"https://e.com/3\">3</a><![endif]-->\n\
        <!--[if !mso]><!--><a href=\"https://e.com/4\">4</a><!--<![endif]-->\n\
        <a href=\"mailto:a@e.com\">5</a> <a href=\"#top\">6</a> <a href=\"/7\">7</a> <a clicktracking=off href=\"https://e.com/8\">8</a>\n\
        <map><area href=\"https://e.com/9\"></map> &copy; „ö“ 📬 <a href=\"https://e.com/ä\">10</a>\n</BODY>\n</HTML>\n";
    app.send(&message(&[ADA], html)).await;
    app.drain().await;
    let expected = html
        .replace("HREF=https://e.com/1", "HREF=@")
        .replace("http://e.com/2?a=b&amp;c=%20", "@")
        .replace("https://e.com/4", "@")
        .replace("https://e.com/9", "@")
        .replace("https://e.com/ä", "@")
        .replace("</BODY>", "PIXEL</BODY>");
    let got = html_to(&app, ADA);
    assert_eq!(without_ours(&app, &got), expected);
    let targets = [
        "https://e.com/1",
        "http://e.com/2?a=b&c=%20",
        "https://e.com/4",
        "https://e.com/9",
        "https://e.com/%C3%A4",
    ];
    let links = got.match_indices("/v1/t/c/").map(|(at, _)| {
        let end = got[at..].find(|c: char| "'\" ".contains(c)).unwrap();
        got[at..at + end].to_owned()
    });
    let links: Vec<String> = links.collect();
    assert_eq!(links.len(), targets.len());
    for (link, target) in links.iter().zip(targets) {
        assert_leads_to(&read(&app, link).await, target);
    }
}

#[tokio::test]
async fn unsubscribe_links_are_not_tracked() {
    let app = sending().await;
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await
        .data(201);
    for (body, expected) in [
        (
            "<body><a href='{{unsubscribeUrl}}'>out</a><a href='https://e.com/'>in</a></body>",
            "<body><a href='LINK'>out</a><a href='@'>in</a>PIXEL</body>",
        ),
        (
            "<body><a href='https://e.com/'>in</a></body>",
            "<body><a href='@'>in</a><p style=\"text-align:center;font-size:12px\"><a href=\"LINK\">Unsubscribe</a></p>PIXEL</body>",
        ),
    ] {
        app.simulator().clear_captured();
        let mut message = message(&[ADA], body);
        message["unsubscribeGroupId"] = group["id"].clone();
        app.send(&message).await;
        app.drain().await;
        let header = &app.captured_once(ADA).headers["List-Unsubscribe"];
        let link = header.trim_matches(['<', '>']);
        assert!(link.contains("/v1/unsubscribe/"), "{link}");
        let html = html_to(&app, ADA).replace(link, "LINK");
        assert_eq!(without_ours(&app, &html), expected);
    }
}

#[tokio::test]
async fn links_in_a_template_are_tracked() {
    let app = sending().await;
    let template = app
        .post("/v1/templates", &json!({ "name": "Offer" }))
        .await
        .data(201);
    let id = template["id"].as_str().unwrap();
    let content = json!({ "htmlContent": "", "mjmlSource": "<mjml><mj-body><mj-section><mj-column><mj-button href=\"{{url}}\">Go</mj-button></mj-column></mj-section></mj-body></mjml>" });
    let _version = app
        .post(&format!("/v1/templates/{id}/versions"), &content)
        .await
        .data(201);
    let message = json!({
        "from": "news@example.com", "to": ADA, "subject": "Offer", "templateId": id, "variables": { "url": TARGET },
    });
    app.send(&message).await;
    app.drain().await;
    let html = html_to(&app, ADA);
    assert!(
        !html.contains("shop.example") && html.contains("/v1/t/o/"),
        "{html}"
    );
    assert_leads_to(&read(&app, &path(&html, "<a href=\"")).await, TARGET);
}

#[tokio::test]
async fn a_message_without_html_is_not_tracked() {
    let app = sending().await;
    let mut plain = message(&[ADA], "");
    plain.as_object_mut().unwrap().remove("html");
    app.send(&plain).await;
    app.drain().await;
    let copy = app.captured_once(ADA);
    assert_eq!(
        (copy.html, copy.text.unwrap().trim_end()),
        (None, "Look: https://shop.example/offer")
    );
}

#[tokio::test]
async fn large_bodies_and_large_sends_are_tracked() {
    let app = sending().await;
    // Too large to be read in the same query as others.
    let large = format!("<body>{}{HTML}</body>", "<p>filler</p>".repeat(30_000));
    app.send(&message(&[ADA], &large)).await;
    let addresses: Vec<String> = (0..250).map(|n| format!("r{n}@example.org")).collect();
    let to: Vec<&str> = addresses.iter().map(String::as_str).collect();
    app.send(&message(&to, HTML)).await;
    app.drain().await;
    let html = html_to(&app, ADA);
    assert_leads_to(&read(&app, &path(&html, "<a href=\"")).await, TARGET);
    let pixels = to.iter().map(|to| path(&html_to(&app, to), "<img src=\""));
    let pixels: std::collections::HashSet<String> = pixels.collect();
    assert_eq!(pixels.len(), 250);
    join_all(pixels.iter().map(|pixel| read(&app, pixel))).await;
    // A busy machine records opens after they were answered.
    wait_until("all are recorded", async || seen(&app).await.len() == 251).await;
    let query = "SELECT count(DISTINCT position) FROM events WHERE event_type = 'OPENED'";
    assert_eq!(app.value(query).await.as_deref(), Some("250"));
}

#[tokio::test]
async fn links_use_the_public_url_with_its_path() {
    let app = TestApp::builder()
        .setting("WAYPOST_PUBLIC_URL", "https://Mail.Example.com/waypost/")
        .start()
        .await;
    app.connect(ProviderType::Postmark).await;
    // Links to Waypost itself are not tracked.
    let own = "https://mail.example.com/waypost/v1/unsubscribe/x";
    let html = format!("{HTML}<a href=\"{own}\">");
    app.send(&message(&[ADA], &html)).await;
    app.drain().await;
    let html = html_to(&app, ADA);
    assert!(
        html.contains("\"https://mail.example.com/waypost/v1/t/c/"),
        "{html}"
    );
    assert!(
        html.contains("\"https://mail.example.com/waypost/v1/t/o/"),
        "{html}"
    );
    assert!(html.contains(&format!("<a href=\"{own}\">")), "{html}");
}
