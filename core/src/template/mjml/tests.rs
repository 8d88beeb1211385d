//! Tests of the compiled HTML, by element.

use super::reader::{ATTRIBUTES_MAX, ELEMENTS_MAX};
use super::*;

fn body(content: &str) -> String {
    format!("<mjml><mj-body>{content}</mj-body></mjml>")
}

fn column(content: &str) -> String {
    body(&format!(
        "<mj-section><mj-column>{content}</mj-column></mj-section>"
    ))
}

fn head(head: &str, content: &str) -> String {
    format!("<mjml><mj-head>{head}</mj-head><mj-body>{content}</mj-body></mjml>")
}

fn numbered(count: usize, part: &dyn Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

fn compile_with_stack(source: String) -> Result<String, String> {
    let thread = std::thread::Builder::new().stack_size(32 << 20);
    thread
        .spawn(move || compile(&source).map_err(String::from))
        .unwrap()
        .join()
        .unwrap()
}

#[test]
fn contents_are_preserved() {
    for content in [
        "<p style=\"color:red;\n  font-size:20px\">a</p>",
        "<p style='font-family:\"Open Sans\"'>a</p>",
        "<p>one<p>two",
        "<P CLASS=x hidden>a<br>b<hr/><img src=a alt='10\u{a0}€'>",
        "Café > Menü é > ü & &amp; &nbsp; < 3",
        "{{#if (eq a \"b\")}}x{{/if}} {{{raw}}}",
        "<ul><li>a<li>b</ul></b>",
        "<!-- </mj-x> --> ❤️ 👩‍👩‍👧 สวัสดี `code` `t0` \\ \u{200b}",
        "<!--[if mso]><i>x</i><![endif]-->",
        "<mj-spacer>none</x>",
    ] {
        for element in ["mj-text", "mj-table", "mj-raw", "mj-button"] {
            let source = column(&format!("<{element}>\n  {content}\n</{element}>"));
            let html = compile_with_stack(source).unwrap();
            assert!(html.contains(content), "{element}: {content} in {html}");
        }
    }
}

#[test]
fn attribute_values_are_preserved() {
    for (value, printed) in [
        ("\"❤️ Sale\"", "❤️ Sale"),
        ("\"10\u{a0}€\"", "10\u{a0}€"),
        (
            "\"https://th.wikipedia.org/wiki/สวัสดี?a=1&amp;b=%20#c\"",
            "https://th.wikipedia.org/wiki/สวัสดี?a=1&amp;b=%20#c",
        ),
        ("\"C:\\dir\"", "C:\\dir"),
        ("\"a\n\tb\"", "a\n\tb"),
        ("'say \"hi\"'", "say &quot;hi&quot;"),
        ("\"it's > `x` {{y}}\"", "it's > `x` {{y}}"),
        ("'{{t \"x\"}}'", "{{t \"x\"}}"),
        ("\"{{t \"x\"}}\"", "{{t \"x\"}}"),
        ("שלום\u{200f}", "שלום\u{200f}"),
        ("\"e\u{301}\u{200d}\u{e000}\"", "e\u{301}\u{200d}\u{e000}"),
    ] {
        for (element, name) in [
            ("mj-image src=\"a\"", "alt"),
            ("mj-image", "src"),
            ("mj-image", "title"),
            ("mj-button", "href"),
            ("mj-button href=\"a\"", "name"),
            ("mj-text", "css-class"),
        ] {
            let in_html = if name == "css-class" { "class" } else { name };
            let html =
                compile_with_stack(column(&format!("<{element} {name}={value} />"))).unwrap();
            let expected = format!("{in_html}=\"{printed}\"");
            assert!(html.contains(&expected), "{expected} in {html}");
        }
    }
}

#[test]
fn default_attributes_are_resolved() {
    let attributes = "<mj-attributes><mj-all color=\"#111111\" font-size=\"21px\"/>\
        <mj-text color=\"#222222\" align=\"right\"/>\
        <mj-class name=\"a\" color=\"#333333\" css-class=\"ca\"><mj-text align=\"center\"/></mj-class>\
        <mj-class name=\"b\" color=\"#444444\" css-class=\"cb\"/></mj-attributes>";
    let content = "<mj-section><mj-column mj-class=\"a\"><mj-text mj-class=\"a b\">t</mj-text></mj-column></mj-section>";
    let html = compile_with_stack(head(attributes, content)).unwrap();
    for part in [
        "color:#444444",
        "text-align:center",
        "font-size:21px",
        "class=\"ca cb\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn attributes_and_styles_are_written_into_the_html() {
    let source = head(
        "<mj-html-attributes><mj-selector path=\".x div\">\
         <mj-html-attribute name=\"data-id\">a \"42\"</mj-html-attribute>\
         </mj-selector></mj-html-attributes>\
         <mj-style inline=\"inline\">.red, #no { color: red !important; margin: 0 }\
         @media print { p { color: blue } }</mj-style>",
        "<mj-section><mj-column><mj-text css-class=\"x\">\
         <p class=\"red\" style=\"color:green\">t</p></mj-text></mj-column></mj-section>",
    );
    let html = compile_with_stack(source).unwrap();
    for part in [
        "data-id=\"a &quot;42&quot;\"",
        "<p class=\"red\" style=\"margin:0;color:red;\">",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("blue"), "{html}");
}

#[test]
fn heroes_and_gaps_equal_those_of_mjml() {
    let hero = "<mj-hero mode=\"fixed-height\" height=\"400px\" padding=\"50px 0\"></mj-hero>";
    let html = compile_with_stack(body(hero)).unwrap();
    assert!(html.contains("height:300px"), "{html}");
    let wrapper = "<mj-wrapper gap=\"20px\"><mj-section/><mj-section css-class=\"x y\"/>\
                   <mj-section full-width=\"full-width\"/></mj-wrapper>";
    let html = compile_with_stack(body(wrapper)).unwrap();
    let gaps = html.matches("margin:0px auto;max-width:600px;margin-top:20px;");
    let gaps = gaps.count() + html.matches("margin:0px auto;margin-top:20px;").count();
    assert_eq!(gaps, 2, "{html}");
    assert!(!html.contains('`'), "{html}");
}

#[test]
fn differences_of_the_compiler_are_corrected() {
    let image = "<mj-image src=\"a\"";
    let element = "<mj-social-element src=\"i\" href=\"#\"";
    for (content, expected) in [
        (format!("{image} border-left=\"1px solid\"/>"), "border:0;border-left:1px solid;"),
        (format!("{image} sizes=\"9px\" alt=\"b\"/>"), "alt=\"b\" sizes=\"9px\""),
        (format!("{image} width=\"50%\"/>"), "<td style=\"width:50px;\">"),
        (format!("{image} padding=\"0 10%\"/>"), "<td style=\"width:580px;\">"),
        (format!("{image} padding=\"0 10%\"/>"), "padding:0 10%;"),
        ("<mj-text padding=\"10\">a</mj-text>".to_owned(), "padding:10;"),
        ("<mj-button href=\"#\" title=\"t\">a</mj-button>".to_owned(), "<a href=\"#\" title=\"t\""),
        ("<mj-button width=\"90.5px\" border=\"1px solid\"/>".to_owned(), ";width:38px;"),
        ("<mj-table role=\"grid\" cellspacing=\"2\"/>".to_owned(), "border:none;border-collapse:separate;"),
        ("<mj-table role=\"grid\"/>".to_owned(), " role=\"grid\""),
        ("<mj-table border=\"1px solid\"/>".to_owned(), "border:1px solid;\">"),
        (format!("<mj-social>{element}>a</mj-social-element><!-- c --></mj-social>"), "</table><!--[if mso | IE]></td><![endif]--><!-- c --><!--[if mso | IE]></tr>"),
        (format!("<mj-social>{element} icon-position=\"right\">a</mj-social-element></mj-social>"), "a</a></td><td style=\"padding:4px;"),
        ("<mj-carousel thumbnails=\"supported\"><!-- c --><mj-carousel-image src=\"a\" css-class=\"a b\"/></mj-carousel>".to_owned(), "width:auto;display:none;width:110px;"),
        ("<mj-carousel><mj-carousel-image src=\"a\" css-class=\"a b\"/></mj-carousel>".to_owned(), "a-thumbnail b-thumbnail"),
    ] {
        let html = compile_with_stack(column(&content)).unwrap();
        assert!(html.contains(expected), "{expected} for {content} in {html}");
    }
    let full = "<mj-section full-width=\"full-width\" border-radius=\"9px\" css-class=\"a b\"/>";
    let html = compile_with_stack(body(full)).unwrap();
    assert_eq!(html.matches("border-radius:9px").count(), 2, "{html}");
    assert!(html.contains("class=\"a-outlook b-outlook\""), "{html}");
}

#[test]
fn used_fonts_are_linked() {
    let text = "<mj-text font-family=\"Roboto\">a</mj-text>";
    let html = compile_with_stack(column(text)).unwrap();
    assert!(html.contains("family=Roboto"), "{html}");
    assert!(!html.contains("family=Lato"), "{html}");
}

#[test]
fn mjml_compiles_to_html_with_its_handlebars_tags() {
    let section = "<mj-text>Hi {{name}}<br>{{#if (eq a \"b\")}}x{{/if}}</mj-text>\
                   <mj-button href=\"{{url}}\">Go</mj-button>";
    let html = compile_with_stack(column(section)).unwrap();
    for part in [
        "Hi {{name}}",
        "{{#if (eq a \"b\")}}x{{/if}}",
        "href=\"{{url}}\"",
        "<!doctype html>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let between = "{{#each a}}<mj-section/>{{/each}}<!-- é --><mj-wrapper>{{b}}</mj-wrapper>";
    let html = compile_with_stack(body(between)).unwrap();
    for part in [
        "{{#each a}}",
        "{{/each}}",
        "<!-- é -->",
        "<![endif]-->{{b}}",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn errors_have_their_line() {
    for (source, part) in [
        ("", "no <mjml>"),
        ("no mjml", "no <mjml>"),
        (
            "<mjml>\n<mj-body>\n<mj-nothing/></mj-body></mjml>",
            "line 3",
        ),
        ("<mjml>\n<mj-body>", "line 2"),
        (
            "<mjml>\n<mj-body><mj-section></mj-column></mj-body></mjml>",
            "</mj-column> closes <mj-section>",
        ),
        ("<mjml><mj-body><mj-section></mj-body></mjml>", "line 1"),
        ("<html></html>", "line 1"),
        (
            "<mjml>\n<mj-body><mj-include path=\"/etc/passwd\"/></mj-body></mjml>",
            "line 2",
        ),
        (
            "<mjml><mj-body>\n<mj-section {{a}}=\"b\"/></mj-body></mjml>",
            "line 2",
        ),
        (
            "<mjml><mj-body>\n<mj-section><mj-column>\n<mj-text>a</mj-column></mj-section></mj-body></mjml>",
            "line 3: </mj-column> closes <mj-text>",
        ),
        ("<mjml><mj-body>\n<mj-text>a", "line 2"),
        (
            "<mjml>\n<mj-head><mj-text>a</mj-text></mj-head></mjml>",
            "line 2",
        ),
        (
            "<mjml><mj-body>\n<mj-social><mj-text/></mj-social></mj-body></mjml>",
            "line 2",
        ),
        ("<mjml><mj-body>\n<mj-image alt=\"a>", "line 2"),
        (
            "<mjml><mj-body>\n<mj-carousel>{{#each a}}<mj-carousel-image src=\"a\"/></mj-carousel></mj-body></mjml>",
            "line 2: unexpected in mj-carousel: {{#each a}}",
        ),
        (
            "<mjml><mj-body>\n<mj-carousel><mj-raw>b</mj-raw></mj-carousel></mj-body></mjml>",
            "line 2: unexpected in mj-carousel: b",
        ),
    ] {
        let problem = compile_with_stack(source.to_owned()).unwrap_err();
        assert!(problem.contains(part), "{source}: {problem}");
    }
}

#[test]
fn sources_that_would_overflow_the_stack_or_grow_without_bound_are_refused() {
    let nested = |tag: &str, depth: usize| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        format!("{}{}", open.repeat(depth), close.repeat(depth))
    };
    let long = "x".repeat(100_000);
    let all = format!("<mj-attributes><mj-text css-class=\"{long}\"/></mj-attributes>");
    let attributes = |text: &str| format!("<mj-attributes>{text}</mj-attributes>");
    let inline = |css: &str| format!("<mj-style inline=\"inline\">{css}</mj-style>");
    let tags = |tag: &str, count: usize| column(&format!("<mj-raw>{}</mj-raw>", tag.repeat(count)));
    let within = |head: &str, source: String| {
        source.replacen("<mjml>", &format!("<mjml><mj-head>{head}</mj-head>"), 1)
    };
    for source in [
        body(&nested("mj-wrapper", 100_000)),
        body(&"<mj-wrapper>".repeat(100_000)),
        body(&"<mj-section/>".repeat(ELEMENTS_MAX + 1)),
        body(&"<div>".repeat(ELEMENTS_MAX + 1)),
        column(&format!("<mj-text {}/>", "a b c d ".repeat(20_000))),
        column(&"<mj-text a=\"1\" b=\"2\" c=\"3\" d=\"4\" e=\"5\"/>".repeat(4_500)),
        column(&format!(
            "<mj-carousel>{}</mj-carousel>",
            "<mj-carousel-image src=\"a\"/>".repeat(51)
        )),
        column(&format!(
            "<mj-social icon-padding=\"{long}\">{}</mj-social>",
            "<mj-social-element/>".repeat(4_000)
        )),
        within(&all, column(&"<mj-text/>".repeat(4_000))),
        within(
            &attributes(&format!(
                "<mj-all {}/>",
                numbered(30, &|i| format!("a{i}=\"\" "))
            )),
            column(&"<mj-text/>".repeat(4_000)),
        ),
        body(&format!(
            "<mj-section mj-class=\"{}\">{}</mj-section>",
            "a ".repeat(400_000),
            "<mj-column/>".repeat(4_000)
        )),
        within(
            &inline(&format!("b{}{{a:b}}", "[class]".repeat(50_000))),
            tags("<b class=\"x\">", 20_000),
        ),
        within(
            &inline(&".y{a:b}".repeat(100_000)),
            tags(&format!("<b class=\"{}\">", "x ".repeat(20_000)), 1),
        ),
        within(
            &inline(&"[y]{a:b}".repeat(30_000)),
            tags(&format!("<b {}>", "x=1 ".repeat(100_000)), 1),
        ),
        head(
            &all.replace("mj-text", "mj-all"),
            &"<mj-section/>".repeat(4_000),
        ),
    ] {
        let shape: String = source.chars().take(80).collect();
        let Err(problem) = compile_with_stack(source) else {
            panic!("{shape}");
        };
        let bounds = ["deep", "more than", "too many selectors ("];
        assert!(
            bounds.iter().any(|bound| problem.contains(bound)),
            "{problem}"
        );
    }
}

/// For a debug build while other tests run. A release build is 20 times faster.
const TIME_MAX: std::time::Duration = std::time::Duration::from_secs(30);

#[test]
fn the_largest_sources_compile_in_bounded_time() {
    let texts = column("<mj-text>a</mj-text>").replace("<mjml><mj-body>", "");
    let texts = texts.replace("</mj-body></mjml>", "").repeat(200);
    let attributes = |all: String| format!("<mj-attributes>{all}</mj-attributes>");
    let style = |css: &str| format!("<mj-style inline=\"inline\">{css}</mj-style>");
    for source in [
        body(&format!(
            "<mj-section {}/>",
            numbered(ATTRIBUTES_MAX - 1, &|i| format!("a{i}=\"{i}\" "))
        )),
        body(&"<mj-section a=\"1\" b=\"2\" c=\"3\"/>".repeat(ELEMENTS_MAX - 10)),
        body(&format!(
            "<mj-section>{}</mj-section>",
            "<mj-column/>".repeat(ELEMENTS_MAX - 10)
        )),
        head(
            &attributes(numbered(1_000, &|i| {
                format!("<mj-class name=\"c{i}\" color=\"red\"/>")
            })),
            &texts,
        ),
        head(
            &attributes(numbered(1_500, &|i| format!("<mj-all a{i}=\"{i}\"/>"))),
            &texts,
        ),
        head(
            &style(&numbered(20_000, &|i| {
                format!(".c{i} .d{i} b{{color:red}}")
            })),
            &texts,
        ),
        head(
            &style("b b b b b b b b b {color:red}"),
            &format!("<mj-raw>{}</mj-raw>", "<b>".repeat(300_000)),
        ),
        head(&style(&"div{color:red}".repeat(20_000)), &texts),
        head(&"<mj-font name=\"a\" href=\"b\"/>".repeat(4_000), &texts),
        column(&format!(
            "<mj-text mj-class=\"{}\">a</mj-text>",
            "a ".repeat(500_000)
        )),
        column(&format!("<mj-text>{}</mj-text>", "<b></i>".repeat(140_000))),
        column(&format!(
            "<mj-text>{}</mj-text>",
            "<a b=\"{{".repeat(100_000)
        )),
        column(&format!("<mj-image alt=\"{}\"/>", "é".repeat(500_000))),
        column(&format!("<mj-image alt=\"{}\"/>", "{{".repeat(500_000))),
        column(&"<mj-text>a</mj-text>".repeat(ELEMENTS_MAX - 10)),
        format!("{}{}", body(""), "<".repeat(1_000_000)),
    ] {
        let begin = std::time::Instant::now();
        let shape: String = source.chars().take(100).collect();
        let compile_with_stack = compile_with_stack(source);
        let took = begin.elapsed();
        println!(
            "{took:?} {} {shape}",
            compile_with_stack.err().unwrap_or_default()
        );
        assert!(took < TIME_MAX, "{took:?} for {shape}");
    }
}

#[test]
fn contents_can_nest_deeply() {
    for content in [
        "<b>".repeat(100_000),
        "<div><!-- </div> -->".repeat(20_000),
        "<b><br></b><b a=\"</b>\">".repeat(20_000),
    ] {
        let html = compile_with_stack(column(&format!("<mj-text>{content}</mj-text>"))).unwrap();
        assert!(html.contains(&content));
    }
}

#[test]
fn accepted_sources_do_not_overflow_the_stack() {
    let raw = format!("<mj-raw>{}</mj-raw>", "<div>".repeat(95));
    assert!(compile_with_stack(body(&raw)).is_ok());
    let wrappers = "<mj-wrapper>".repeat(95) + &"</mj-wrapper>".repeat(95);
    let _either = compile_with_stack(body(&wrappers));
    let columns = "<mj-column/>".repeat(ELEMENTS_MAX - 10);
    let _either = compile_with_stack(body(&format!("<mj-section>{columns}</mj-section>")));
}
