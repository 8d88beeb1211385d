//! What HTML becomes as text.

use serde_json::{Value, json};

use super::super::run::{self, Escape};
use super::super::step_limit::StepLimit;
use super::*;

/// The text of HTML, rendered.
fn rendered(html: &str, variables: &Value) -> String {
    let text = of(html).unwrap_or_else(|| panic!("{html} has no text"));
    let template = source::parse(&text).unwrap();
    let mut steps = StepLimit::new();
    let text = run::render(&template, variables, Escape::Nothing, 1 << 20, &mut steps).unwrap();
    tidy(&text)
}

#[test]
fn elements_become_lines() {
    for (html, text) in [
        ("Hello", "Hello"),
        ("  Hello \n  <b>World</b>!  ", "Hello World!"),
        ("<h1>Title</h1><p>One</p><p>Two</p>", "Title\n\nOne\n\nTwo"),
        ("<div>One</div><div>Two</div>", "One\nTwo"),
        ("One<br>Two<br/>Three", "One\nTwo\nThree"),
        ("One<br><br><br><br>Two", "One\n\nTwo"),
        ("One<hr>Two", "One\n\n----------\n\nTwo"),
        ("<ul><li>One<li>Two</ul>", "- One\n- Two"),
        (
            "<ol><li>One</li><li>Two</li></ol>After",
            "1. One\n2. Two\n\nAfter",
        ),
        (
            "<ul><li>One<ul><li>Inner</li></ul></li><li>Two</li></ul>",
            "- One\n  - Inner\n- Two",
        ),
        ("<ul><li><p>One</p><p>More</p></li></ul>", "- One\n\n  More"),
        (
            "<table><tr><td>A</td><td>B</td></tr><tr><th>C</th><td>D</td></tr></table>",
            "A B\nC D",
        ),
        (
            "<p>A</p><table><tr><td><table><tr><td>B</td></tr></table></td></tr></table><p>C</p>",
            "A\n\nB\n\nC",
        ),
        ("<pre>a\n  b\n</pre>", "a\n  b"),
        ("<blockquote>Quoted</blockquote>Not", "Quoted\n\nNot"),
        ("<dl><dt>Term</dt><dd>Meaning</dd></dl>", "Term\nMeaning"),
        ("<img src=x alt=\"A picture\"> of it", "A picture of it"),
        ("<img src=x alt=''><img src=y>Text", "Text"),
        ("&lt;b&gt; &amp; &euro; &#65; &nbsp; x", "<b> & € A x"),
        ("<p>Unclosed <b>bold<p>Next", "Unclosed bold\n\nNext"),
        ("a</p></div></b></table>b", "a\n\nb"),
    ] {
        assert_eq!(rendered(html, &json!({})), text, "{html}");
    }
}

#[test]
fn links_show_where_they_lead() {
    for (html, text) in [
        (
            "<a href=\"https://e.example/a?b=1&amp;c=2\">Open</a> it",
            "Open (https://e.example/a?b=1&c=2) it",
        ),
        (
            "<a href=\"https://e.example\">https://e.example</a>",
            "https://e.example",
        ),
        (
            "<a href=\"mailto:a@e.example\">a@e.example</a>",
            "a@e.example",
        ),
        ("<a href=\"tel:+431\">+431</a>", "+431"),
        (
            "<a href=\"mailto:a@e.example\">Write</a>",
            "Write (mailto:a@e.example)",
        ),
        (
            "<a href=\"https://e.example\"><img src=x alt=Logo></a>",
            "Logo (https://e.example)",
        ),
        (
            "<a href=\"https://e.example\"><img src=x></a>",
            "https://e.example",
        ),
        (
            "<a href=\"#top\">Top</a> <a name=x>Here</a> <a href=\"javascript:x()\">Run</a>",
            "Top Here Run",
        ),
        (
            "<a href=\"https://e.example\"><p>Block</p></a><p>After</p>",
            "Block (https://e.example)\n\nAfter",
        ),
        (
            "<a href=\"https://a.example\">One<a href=\"https://b.example\">Two",
            "One (https://a.example)Two (https://b.example)",
        ),
        (
            "<a href=\"{{url}}\">{{url}}</a>",
            "https://v.example/?a=1&b=2",
        ),
        (
            "<a href=\"{{url}}\">{{name}}</a>",
            "Ada (https://v.example/?a=1&b=2)",
        ),
        (
            "<a href='{{lookup this \"url\"}}'>x</a>",
            "x (https://v.example/?a=1&b=2)",
        ),
        (
            "<a href=\"{{lookup this \"url\"}}\">x</a>",
            "x (https://v.example/?a=1&b=2)",
        ),
    ] {
        let variables = json!({ "url": "https://v.example/?a=1&b=2", "name": "Ada" });
        assert_eq!(rendered(html, &variables), text, "{html}");
    }
}

#[test]
fn what_no_reader_sees_is_left_out() {
    for html in [
        "<head><title>T</title><style>p { color: red }</style></head>",
        "<title>T</title>",
        "<style>a > b {}</style>",
        "<script>if (a < b) {}</script>",
        "<!-- comment --><!--[if mso]><p>Outlook</p><![endif]-->",
        "<div style=\"display:none\">Hidden <div>deeper</div> still</div>",
        "<span style='DISPLAY : none !important'>Hidden</span>",
        "<div hidden>Hidden</div>",
        "<p style=\"display:none\">Hidden",
        "<img style='display:none' alt='Pixel'>",
        "<svg><title>Icon</title><text>x</text></svg><svg/>",
        "<template>x</template>",
        "{{! comment }}{{!-- {{name}} --}}",
    ] {
        let html = format!("{html}<p>Seen</p>");
        assert_eq!(rendered(&html, &json!({})), "Seen", "{html}");
        assert_eq!(
            of(html.strip_suffix("<p>Seen</p>").unwrap()),
            None,
            "{html}"
        );
    }
    let shown =
        "<!--[if !mso]><!--><p>Seen</p><!--<![endif]--><div style='display:{{how}}'>Too</div>";
    assert_eq!(rendered(shown, &json!({})), "Seen\n\nToo");
}

#[test]
fn handlebars_stay_at_their_places() {
    let variables = json!({
        "name": "<Ada>", "yes": true, "items": [{ "sku": "a", "price": 1 }, { "sku": "b", "price": 2 }],
    });
    for (html, text) in [
        ("<p>Hi {{name}} {{{name}}}</p>", "Hi <Ada> <Ada>"),
        ("Hi {{#if yes}}{{name}}{{else}}you{{/if}}!", "Hi <Ada>!"),
        ("Hi {{#if no}}{{name}}{{else}}you{{/if}}!", "Hi you!"),
        (
            "<table>{{#each items}}<tr><td>{{sku}}</td><td>{{price}}</td></tr>{{/each}}</table>",
            "a 1\nb 2",
        ),
        (
            "<table><tbody>\n  {{#each items}}\n  <tr><td>{{sku}}</td>{{#if @first}}<td>first</td>{{/if}}</tr>\n  {{/each}}\n</tbody></table>",
            "a first\nb",
        ),
        (
            "<ul>{{#each items}}<li>{{sku}}</li>{{/each}}</ul>",
            "- a\n- b",
        ),
        (
            "<ol>{{#each items}}<li>{{sku}}</li>{{/each}}</ol>",
            "- a\n- b",
        ),
        (
            "{{#each items}}<ol><li>{{sku}}</li></ol>{{/each}}",
            "1. a\n\n1. b",
        ),
        ("<p>A</p>{{#if yes}}<p>B</p>{{/if}}<p>C</p>", "A\n\nB\n\nC"),
        ("<p>A</p>{{#if no}}<p>B</p>{{/if}}<p>C</p>", "A\n\nC"),
        (
            "{{#if no}}<p>A</p>{{/if}}{{#if yes}}<p>B</p>{{/if}}{{#unless no}}<p>C</p>{{/unless}}",
            "B\n\nC",
        ),
        (
            "<p>{{#each items}}{{sku}}{{#unless @last}}, {{/unless}}{{/each}}</p>",
            "a, b",
        ),
        ("a {{~name~}} b", "a<Ada>b"),
        ("<p>a</p>\n{{~#if yes~}}\n<p>b</p>{{~/if~}}", "a\n\nb"),
        ("\\{{name}} {{{{raw}}}}{{x}}{{{{/raw}}}}", "{{name}} {{x}}"),
        ("&#123;&#123;name}} {{name}}", "{{name}} <Ada>"),
        ("&#123;<b>{{name}}</b>&#125;", "{ <Ada> }"),
        ("a\\<b>{{name}}</b>", "a\\<Ada>"),
        (
            "{{#if yes}}<td class=\"a\">A</td>{{/if}}<td {{#if yes}}class=\"b\"{{/if}}>B</td>",
            "A B",
        ),
    ] {
        assert_eq!(rendered(html, &variables), text, "{html}");
    }
}

#[test]
fn html_whose_blocks_do_not_survive_has_no_text() {
    for html in [
        "",
        "<p></p><img src=x>",
        "{{#if a}}{{/if}}",
        "<p {{#if a}}>x{{else}}class=y>y{{/if}}</p>",
        "<style>{{#if a}}</style>x{{/if}}",
    ] {
        assert_eq!(of(html), None, "{html}");
    }
}

#[test]
fn hostile_html_takes_time_proportional_to_its_length() {
    for unit in [
        "<div>",
        "<p>",
        "<ul><li>",
        "<ol><li>x",
        "<table><tr><td>",
        "<a href=\"https://e.example\">x",
        "<a href=\"https://e.example\">x</a>",
        "<a href={{a}}>{{a}}",
        "<p style='display:none'>",
        "<div hidden>",
        "</a></p>",
        "<",
        "<a ",
        "<!--",
        "&amp",
        "{{a}}",
        "{{#if a}}{{/if}}",
        "\\{{a",
        "<style>",
        "<pre>\n\n",
        "\u{fdd0}1\u{fdd1}",
        "<hr>",
        " ",
    ] {
        let html = unit.repeat((1 << 20) / unit.len());
        let began = std::time::Instant::now();
        let text = of(&html);
        assert!(
            text.is_none_or(|text| text.len() <= SOURCE_BYTES_MAX),
            "{unit}"
        );
        assert!(
            began.elapsed().as_secs() < 10,
            "{unit}: {:?}",
            began.elapsed()
        );
    }
    let long = format!(
        "<a href=\"https://e.example\">{}</a>",
        "word ".repeat(100_000)
    );
    assert!(of(&long).is_some());
}

#[test]
fn tidying_leaves_no_blank_lines_in_a_row() {
    assert_eq!(tidy("\n\n a \n\n\n\nb\t\nc\r\n\n"), "a\n\nb\nc");
    assert_eq!(tidy("a   b  c\n  - d\n     e"), "a b c\n  - d\n    e");
    assert_eq!(tidy(" \n "), "");
}
