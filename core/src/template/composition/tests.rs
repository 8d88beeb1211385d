//! What sources are composed of.

use std::sync::Arc;

use uuid::Uuid;

use super::super::{TemplateType, TextSource};
use super::build::{self, Sources, VersionParts};
use super::compose::{self, Composer, Partials, SourceMarkup, TemplatePart};

fn part(name: &str, html: &str) -> TemplatePart {
    TemplatePart {
        id: Uuid::from_u128(name.len() as u128).into(),
        version_id: Uuid::nil().into(),
        version_number: 1,
        name: name.to_owned(),
        part_type: TemplateType::Partial,
        html: html.to_owned(),
        mjml: None,
        text: None,
    }
}

fn partials(parts: &[(&str, &str)]) -> Partials {
    let parts = parts.iter().map(|(name, html)| part(name, html));
    parts
        .map(|part| (part.name.clone(), Arc::new(part)))
        .collect()
}

fn composed(source: &str, parts: &[(&str, &str)]) -> Result<String, String> {
    let composed = Composer::new(&partials(parts), SourceMarkup::Html).source(source);
    composed.map_err(String::from)
}

#[test]
fn a_partial_stands_where_its_tag_is() {
    let parts = [
        ("a", "A"),
        ("b", "[{{> a}}]"),
        ("line", "line\n"),
        ("name", "{{name}}"),
        ("empty", ""),
    ];
    for (source, expected) in [
        ("x{{> a}}y", "xAy"),
        ("{{>a}}{{>a}}", "AA"),
        ("{{> b }}", "[A]"),
        (
            "{{#if x}}{{> b}}{{else}}{{> a}}{{/if}}",
            "{{#if x}}[A]{{else}}A{{/if}}",
        ),
        // A tag alone on its line takes the line break with it.
        ("1\n  {{> line}}\n2", "1\n  line\n2"),
        ("1\n{{> line}}  \r\n2", "1\nline\n2"),
        ("{{> line}}\n2", "line\n2"),
        ("1\n{{> line}}", "1\nline\n"),
        ("1 {{> line}}\n2", "1 line\n\n2"),
        ("1\n{{> a}} 2\n", "1\nA 2\n"),
        ("{{#if x}}{{> line}}\n{{/if}}", "{{#if x}}line\n\n{{/if}}"),
        // White space that the tag strips.
        ("1 \n {{~> a~}} \n 2", "1A2"),
        ("1 {{~> a}} 2", "1A 2"),
        ("{{x~}} {{> a}}", "{{x~}} A"),
        // What is no tag of a partial.
        (
            "\\{{> a}} {{! {{> a}}{{!-- {{> a}} --}}",
            "\\{{> a}} {{! {{> a}}{{!-- {{> a}} --}}",
        ),
        (
            "{{{{raw}}}}{{> a}}{{{{/raw}}}}",
            "{{{{raw}}}}{{> a}}{{{{/raw}}}}",
        ),
        ("{{lookup x \"{{> a}}\"}}", "{{lookup x \"{{> a}}\"}}"),
        ("{ {{> name}} }{{> empty}}", "{ {{name}} }"),
    ] {
        assert_eq!(
            composed(source, &parts).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn tags_that_include_nothing_are_refused_with_their_place() {
    let parts = [
        ("a", "A"),
        ("brace", "{"),
        ("slash", "\\"),
        ("close", "} x"),
        ("tag", "{{x}}"),
        ("self", "{{> self}}"),
        ("one", "1\n {{> two}}"),
        ("two", "{{> one}}"),
        ("lost", "{{> gone}}"),
        ("d1", "{{> d2}}"),
        ("d2", "{{> d3}}"),
        ("d3", "{{> d4}}"),
        ("d4", "{{> d5}}"),
        ("d5", "{{> d6}}"),
        ("d6", "x"),
    ];
    for (source, problem) in [
        (
            "x\n {{> gone}}",
            "line 2, column 2: there is no partial gone that has a version",
        ),
        (
            "{{> lost}}",
            "line 1, column 1: in the partial lost, line 1, column 1: there is no partial gone",
        ),
        (
            "{{> self}}",
            "the partial self includes itself: self > self",
        ),
        (
            "{{> one}}",
            "the partial one includes itself: one > two > one",
        ),
        ("{{> d1}}", "more than 5 deep"),
        ("{{> a b}}", "partials take no values"),
        ("{{> a b=1}}", "partials take no values"),
        ("{{> a.b}}", "a is not the name of a partial"),
        ("{{> a/b}}", "a is not the name of a partial"),
        ("{{> (lookup . 'a')}}", "whose name is a value"),
        ("{{> \"a\"}}", "partials have a name of letters"),
        ("{{> 1}}", "partials have a name of letters"),
        ("{{> @partial-block}}", "{{{@content}}}"),
        ("{{#> a}}x{{/a}}", "layoutId"),
        ("{{> a}}}", "ends with }}"),
        ("\\\\{{> a}}", "after a backslash"),
        ("{{> brace}}{{x}}", "would make a tag"),
        ("{{> slash}}{{> tag}}", "would make a tag"),
        ("{{{> a}}", ""),
        ("{{x}}{{> close}}", "would make a tag"),
    ] {
        match composed(source, &parts) {
            Err(error) => assert!(error.contains(problem), "{source}: {error}"),
            // A syntax error is left to the parser.
            Ok(same) => assert_eq!((same.as_str(), problem), (source, ""), "{source}"),
        }
    }
    assert_eq!(composed("{{> d2}}", &parts).as_deref(), Ok("x"));
}

#[test]
fn repeated_inclusion_does_not_explode() {
    let ten = |name: &str| format!("{{{{> {name}}}}}").repeat(1_000);
    let (a, b, c, d) = (ten("b"), ten("c"), ten("d"), ten("e"));
    for leaf in ["", "x"] {
        let parts = [
            ("a", a.as_str()),
            ("b", b.as_str()),
            ("c", c.as_str()),
            ("d", d.as_str()),
            ("e", leaf),
        ];
        let began = std::time::Instant::now();
        let composed = composed("{{> a}}", &parts);
        assert_eq!(composed.is_ok(), leaf.is_empty());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}

#[test]
fn a_layout_has_one_place_for_the_content() {
    for (layout, wrapped) in [
        ("<b>{{{@content}}}</b>", Some("<b>C</b>")),
        ("<b>{{{ @content }}}</b>", Some("<b>C</b>")),
        (
            "{{#if x}}{{{@content}}}{{/if}}{{@content}}",
            Some("{{#if x}}C{{/if}}{{@content}}"),
        ),
        ("none", None),
        ("{{@content}}", None),
        ("{{! {{{@content}}} }}", None),
        ("{{{@content}}}{{{@content}}}", None),
        ("\\{{{@content}}}", None),
    ] {
        assert_eq!(
            compose::wrap(layout, "C").ok().as_deref(),
            wrapped,
            "{layout}"
        );
        let is_layout = compose::content_places(layout) == 1;
        assert_eq!(is_layout, wrapped.is_some(), "{layout}");
    }
}

#[test]
fn a_preheader_begins_the_body() {
    let preheader = |html: &str, text: &str| {
        let html = compose::insert_preheader(html, text).unwrap();
        let (before, rest) = html.split_once("<div style=\"display:none;").unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        let (text, after) = rest.split_once("</div>").unwrap();
        format!("{before}[{text}]{after}")
    };
    for (html, expected) in [
        ("<p>x</p>", "[t]<p>x</p>"),
        ("<body><p>x", "<body>[t]<p>x"),
        (
            "<!doctype html><html><head><title>a</title></head><BODY class=\"a>b\">x",
            "<!doctype html><html><head><title>a</title></head><BODY class=\"a>b\">[t]x",
        ),
        (
            "<body {{#if (gt a 1)}}class='x'{{/if}}>x",
            "<body {{#if (gt a 1)}}class='x'{{/if}}>[t]x",
        ),
        ("<head></head>x", "<head></head>[t]x"),
        ("<html>x", "<html>[t]x"),
        ("<!DOCTYPE html>x", "<!DOCTYPE html>[t]x"),
        ("<bodyguard>x", "[t]<bodyguard>x"),
        ("<body", "[t]<body"),
    ] {
        assert_eq!(preheader(html, "t"), expected);
    }
    assert_eq!(
        preheader("x", "a < b & {{name}} {{#if (lt 1 2)}}>{{/if}}"),
        "[a &lt; b &amp; {{name}} {{#if (lt 1 2)}}&gt;{{/if}}]x"
    );
}

#[test]
fn a_version_is_built_of_its_layout_partials_and_preheader() {
    let mut layout = part(
        "Frame",
        "<html><body><h1>{{> logo}}</h1>{{{@content}}}</body></html>",
    );
    layout.part_type = TemplateType::Layout;
    layout.text = Some("= {{{@content}}} =".to_owned());
    let mut logo = part("logo", "<b>Acme</b>");
    logo.text = Some("ACME".to_owned());
    let parts = VersionParts {
        layout: Some(Arc::new(layout)),
        partials: Arc::new([("logo".to_owned(), Arc::new(logo))].into()),
    };
    let mut sources = Sources {
        template_type: TemplateType::Template,
        locale: None,
        layout_id: None,
        preheader: Some("Soon".to_owned()),
        html: "<p>Hi {{name}}</p>".to_owned(),
        mjml: None,
        text: TextSource::FromHtml,
    };
    let built = build::build(&sources, &parts).unwrap();
    assert!(
        built
            .html
            .starts_with("<html><body><div style=\"display:none"),
        "{}",
        built.html
    );
    assert!(
        built
            .html
            .ends_with("Soon</div><h1><b>Acme</b></h1><p>Hi {{name}}</p></body></html>"),
        "{}",
        built.html
    );
    assert_eq!(built.text.as_deref(), Some("Acme\n\nHi {{name}}"));
    let names: Vec<&str> = built.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["logo", "Frame"]);

    sources.text = TextSource::Given("Hi {{> logo}}".to_owned());
    let built = build::build(&sources, &parts).unwrap();
    assert_eq!(built.text.as_deref(), Some("= Hi ACME ="));
    sources.text = TextSource::None;
    assert_eq!(build::build(&sources, &parts).unwrap().text, None);

    sources.mjml = Some("<mj-section></mj-section>".to_owned());
    let issues = build::build(&sources, &parts).unwrap_err();
    assert_eq!(issues[0].path, "mjmlSource");
    assert!(
        issues[0]
            .message
            .contains("Frame is HTML and cannot stand in MJML"),
        "{issues:?}"
    );
}
