//! Compilation of MJML over HTTP, with the results of mjml: the version's HTML preserves the
//! texts, characters and HTML of the source.

use serde_json::json;

use super::{add_version, quiet, template};

/// Compiles each source and checks that its HTML contains the expected part.
async fn all_hold(cases: &[(&str, &str)]) {
    let app = quiet().await;
    let id = template(&app).await;
    for (source, part) in cases {
        let source = if source.starts_with("<mjml>") {
            (*source).to_owned()
        } else {
            format!(
                "<mjml><mj-body><mj-section><mj-column>{source}</mj-column></mj-section></mj-body></mjml>"
            )
        };
        let content = json!({ "htmlContent": "", "mjmlSource": source });
        let created = add_version(&app, &id, &content).await.data(201);
        let html = created["htmlContent"].as_str().unwrap();
        assert!(html.contains(part), "{source}: {part} in {html}");
    }
}

#[tokio::test]
async fn white_space_and_quotes_in_a_text_are_preserved() {
    all_hold(&[
        (
            "<mj-text><p style=\"color:red;\n  font-size:20px\">a</p></mj-text>",
            "<p style=\"color:red;\n  font-size:20px\">",
        ),
        (
            "<mj-text><p style=\"color:red;\r\n\tfont-size:20px\">a</p></mj-text>",
            "<p style=\"color:red;\r\n\tfont-size:20px\">",
        ),
        (
            "<mj-text><p style='font-family:\"Open Sans\"'>a</p></mj-text>",
            "<p style='font-family:\"Open Sans\"'>",
        ),
        (
            "<mj-table><tr><td title='a \"b\"\n c'>1</td></tr></mj-table>",
            "<td title='a \"b\"\n c'>1</td>",
        ),
        (
            "<mj-raw><a\n  href=\"/x\"\n  title='\"'\n>x</a></mj-raw>",
            "<a\n  href=\"/x\"\n  title='\"'\n>x</a>",
        ),
        (
            "<mj-button href=\"/x\"><b style='a:\"b\"'>x</b></mj-button>",
            "<b style='a:\"b\"'>x</b>",
        ),
        (
            "<mj-text font-family='\"Open Sans\", Arial'>a</mj-text>",
            "font-family:&quot;Open Sans&quot;, Arial",
        ),
    ])
    .await;
}

#[tokio::test]
async fn every_character_of_an_attribute_is_preserved() {
    all_hold(&[
        ("<mj-image alt=\"❤️ Sale\" src=\"a\"/>", "alt=\"❤️ Sale\""),
        (
            "<mj-image alt=\"10\u{a0}€\" src=\"a\"/>",
            "alt=\"10\u{a0}€\"",
        ),
        (
            "<mj-image alt=\"👩‍👩‍👧 e\u{301} שלום\u{200f}\" src=\"a\"/>",
            "alt=\"👩‍👩‍👧 e\u{301} שלום\u{200f}\"",
        ),
        (
            "<mj-image alt=\"a\n\tb \\ c &amp; d\" src=\"a\"/>",
            "alt=\"a\n\tb \\ c &amp; d\"",
        ),
        (
            "<mj-button href=\"https://th.wikipedia.org/wiki/สวัสดี\">a</mj-button>",
            "href=\"https://th.wikipedia.org/wiki/สวัสดี\"",
        ),
        (
            "<mj-button href='/x?{{lookup a \"b\"}}'>a</mj-button>",
            "href=\"/x?{{lookup a \"b\"}}\"",
        ),
        (
            "<mj-section background-url=\"https://a/ü\\é.png\"/>",
            "background=\"https://a/ü\\é.png\"",
        ),
        (
            "<mjml><mj-head><mj-title>\"é\" ❤️</mj-title></mj-head><mj-body/></mjml>",
            "aria-label=\"&quot;é&quot; ❤️\"",
        ),
        (
            "<mjml><mj-head><mj-attributes><mj-image alt=\"❤️\"/></mj-attributes></mj-head><mj-body><mj-section><mj-column><mj-image src=\"a\"/></mj-column></mj-section></mj-body></mjml>",
            "alt=\"❤️\"",
        ),
    ])
    .await;
}

#[tokio::test]
async fn sources_that_mjml_accepts_are_accepted() {
    all_hold(&[
        ("<mj-text><p>one<p>two</mj-text>", "<p>one<p>two</div>"),
        (
            "<mj-text>a<BR>b<img src=x hidden></mj-text>",
            ">a<BR>b<img src=x hidden></div>",
        ),
        ("<mj-text>Café > Menü</mj-text>", ">Café > Menü</div>"),
        ("<MJ-TEXT align=center>a</MJ-TEXT>", "text-align:center"),
        (
            "<mjml><mj-head><mj-attributes><mj-class name=\"a\"><mj-text color=\"#123456\"/></mj-class></mj-attributes></mj-head><mj-body><mj-section><mj-column mj-class=\"a\"><mj-text>a</mj-text></mj-column></mj-section></mj-body></mjml>",
            "color:#123456",
        ),
        (
            "<mjml><mj-head><mj-html-attributes><mj-selector path=\".a td\"><mj-html-attribute name=\"data-x\">42</mj-html-attribute></mj-selector></mj-html-attributes></mj-head><mj-body><mj-section css-class=\"a\"/></mj-body></mjml>",
            "data-x=\"42\"",
        ),
        (
            "<mjml><mj-head><mj-style inline=\"inline\">.a { color: red }</mj-style></mj-head><mj-body><mj-section><mj-column><mj-text><b class=\"a\">a</b></mj-text></mj-column></mj-section></mj-body></mjml>",
            "<b class=\"a\" style=\"color:red;\">",
        ),
        (
            "<mjml><mj-body><!--[if mso]><i>x</i><![endif]--><mj-section/></mj-body></mjml>",
            "<!--[if mso]><i>x</i><![endif]-->",
        ),
    ])
    .await;
}

#[tokio::test]
async fn heroes_and_gaps_have_the_heights_of_mjml() {
    all_hold(&[
        (
            "<mjml><mj-body><mj-hero mode=\"fixed-height\" height=\"469px\" padding=\"100px 0\"/></mj-body></mjml>",
            "height:269px",
        ),
        (
            "<mjml><mj-body><mj-hero height=\"300px\" padding=\"50px 0px\"/></mj-body></mjml>",
            "height:200px",
        ),
        (
            "<mjml><mj-body><mj-wrapper gap=\"20px\"><mj-section/><mj-section/></mj-wrapper></mj-body></mjml>",
            "margin-top:20px",
        ),
    ])
    .await;
}
