//! MJML becomes HTML when a version is created. The compiler recurses over the
//! elements and repeats inherited attributes at each of them, so a first look
//! with the tokenizer that it uses itself bounds both. Includes are refused: there
//! is nothing to include from.

use htmlparser::{ElementEnd, Token, Tokenizer};
use mrml::prelude::parser::Error as MjmlError;
use mrml::prelude::render::RenderOptions;

use super::SOURCE_BYTES_MAX;

/// How deep elements may nest, HTML within texts included.
const DEPTH_MAX: usize = 100;
/// Elements at the most.
const ELEMENTS_MAX: usize = 5_000;
/// Images of carousels at the most: the styles of a carousel grow with their
/// square.
const CAROUSEL_IMAGES_MAX: usize = 50;
/// Bytes of attributes that others inherit, times the elements that may.
const INHERITED_BYTES_MAX: usize = 16 << 20;

/// Elements that never have content, as the compiler knows them.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements whose attributes those within them inherit.
const PASS_ON: [&str; 5] = [
    "mj-attributes",
    "mj-social",
    "mj-navbar",
    "mj-accordion",
    "mj-carousel",
];

/// The elements of MJML. The compiler would pass others on as HTML.
const KNOWN: [&str; 32] = [
    "mj-accordion",
    "mj-accordion-element",
    "mj-accordion-text",
    "mj-accordion-title",
    "mj-all",
    "mj-attributes",
    "mj-body",
    "mj-breakpoint",
    "mj-button",
    "mj-carousel",
    "mj-carousel-image",
    "mj-class",
    "mj-column",
    "mj-divider",
    "mj-font",
    "mj-group",
    "mj-head",
    "mj-hero",
    "mj-image",
    "mj-navbar",
    "mj-navbar-link",
    "mj-preview",
    "mj-raw",
    "mj-section",
    "mj-social",
    "mj-social-element",
    "mj-spacer",
    "mj-style",
    "mj-table",
    "mj-text",
    "mj-title",
    "mj-wrapper",
];

/// Compiles a source.
///
/// # Errors
/// What is wrong with it, with the line where that is known.
pub(super) fn compile(source: &str) -> Result<String, String> {
    scan(source)?;
    let parsed = mrml::parse(source).map_err(|error| describe(source, &error))?;
    let html = parsed
        .element
        .render(&RenderOptions::default())
        .map_err(|error| format!("cannot be compiled: {error}"))?;
    if html.len() > SOURCE_BYTES_MAX {
        return Err(format!(
            "compiles to more than {SOURCE_BYTES_MAX} bytes of HTML"
        ));
    }
    Ok(html)
}

/// What the first look counts.
#[derive(Default)]
struct Counts<'a> {
    open: Vec<&'a str>,
    elements: usize,
    carousel_images: usize,
    inherited_bytes: usize,
    /// How deep the outermost open element stands whose attributes are inherited.
    passing_on_from: Option<usize>,
}

fn scan(source: &str) -> Result<(), String> {
    let mut counts = Counts::default();
    let mut name = "";
    let mut tokenizer = Tokenizer::from(source);
    let mut is_in_tag = false;
    loop {
        let bracket = fatal_bracket(source, tokenizer.stream().pos());
        if let Some(at) = bracket.filter(|_| !is_in_tag) {
            let line = line_of(source, at);
            return Err(format!("line {line}: write &gt; for the > in this text"));
        }
        let token = match tokenizer.next() {
            None => break,
            // What the tokenizer refuses, the compiler refuses with the same words.
            Some(Err(_)) => return Ok(()),
            Some(Ok(token)) => token,
        };
        is_in_tag = matches!(token, Token::ElementStart { .. } | Token::Attribute { .. });
        let end = token_end(&token);
        if let Token::ElementStart { local, .. } = token {
            name = local.as_str();
        }
        if let Err(problem) = counts.take(&token, name) {
            return Err(format!("line {}: {problem}", line_of(source, end)));
        }
    }
    if counts.inherited_bytes.saturating_mul(counts.elements) > INHERITED_BYTES_MAX {
        return Err(
            "attributes that other elements inherit are too long for so many elements".to_owned(),
        );
    }
    Ok(())
}

/// Where the text that begins at `start` would make the tokenizer panic. It looks two
/// bytes before the first `>` for a `]]>`, and htmlparser 0.2.1 cuts a character in
/// two where `é >` stands. Found by the fuzzer.
fn fatal_bracket(source: &str, start: usize) -> Option<usize> {
    let text = source.get(start..)?.split('<').next()?;
    let bracket = text.find('>')?;
    let is_cut = !text.is_char_boundary(bracket.saturating_sub(2));
    is_cut.then_some(start + bracket)
}

impl<'a> Counts<'a> {
    fn take(&mut self, token: &Token<'a>, name: &'a str) -> Result<(), String> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the other tokens are leaves, or refused by the compiler"
        )]
        match token {
            Token::ElementStart { .. } if name == "mj-include" => {
                return Err("includes are not served".to_owned());
            }
            Token::ElementStart { .. } if name.starts_with("mj-") && !KNOWN.contains(&name) => {
                return Err(format!("there is no MJML element {name}"));
            }
            Token::ElementStart { .. } => {
                self.elements += 1;
                self.carousel_images += usize::from(name == "mj-carousel-image");
                if PASS_ON.contains(&name) {
                    self.passing_on_from.get_or_insert(self.open.len());
                }
            }
            Token::Attribute { span, .. } if self.passing_on_from.is_some() => {
                self.inherited_bytes += span.as_str().len();
            }
            Token::ElementEnd { end, .. } => self.end(*end, name)?,
            _ => {}
        }
        if self.open.len() > DEPTH_MAX {
            return Err(format!("elements are nested more than {DEPTH_MAX} deep"));
        }
        if self.elements > ELEMENTS_MAX {
            return Err(format!("there are more than {ELEMENTS_MAX} elements"));
        }
        if self.carousel_images > CAROUSEL_IMAGES_MAX {
            return Err(format!(
                "there are more than {CAROUSEL_IMAGES_MAX} images in carousels"
            ));
        }
        Ok(())
    }

    fn end(&mut self, end: ElementEnd<'a>, name: &'a str) -> Result<(), String> {
        match end {
            ElementEnd::Open if VOID.contains(&name) => {}
            ElementEnd::Open => {
                self.open.push(name);
                return Ok(());
            }
            // The compiler takes any closing tag for that of the element that is
            // open. In the HTML of a text that is its author's concern.
            ElementEnd::Close(_, closed) => {
                let opened = self.open.pop().unwrap_or_default();
                let is_ours = opened.starts_with("mj") || closed.starts_with("mj");
                if is_ours && opened != closed.as_str() {
                    return Err(format!("</{closed}> closes <{opened}>"));
                }
            }
            ElementEnd::Empty => {}
        }
        if self
            .passing_on_from
            .is_some_and(|depth| self.open.len() <= depth)
        {
            self.passing_on_from = None;
        }
        Ok(())
    }
}

fn token_end(token: &Token<'_>) -> usize {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "no finding is about any other token"
    )]
    match token {
        Token::ElementStart { span, .. }
        | Token::Attribute { span, .. }
        | Token::ElementEnd { span, .. } => span.end(),
        _ => 0,
    }
}

fn line_of(source: &str, at: usize) -> usize {
    let before = source.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

fn describe(source: &str, error: &MjmlError) -> String {
    let at = |position: &mrml::prelude::parser::Span, what: &str| {
        let line = line_of(source, position.start);
        let found = source.get(position.start..position.end).unwrap_or_default();
        let found: String = found.chars().take(40).collect();
        format!("line {line}: {what} {}", found.trim())
            .trim_end()
            .to_owned()
    };
    match error {
        MjmlError::UnexpectedElement { position, .. } => at(position, "unexpected element"),
        MjmlError::UnexpectedToken { position, .. } => at(position, "unexpected"),
        MjmlError::MissingAttribute { name, position, .. } => {
            at(position, &format!("the attribute {name} is missing in"))
        }
        MjmlError::InvalidAttribute { position, .. } => at(position, "invalid attribute"),
        MjmlError::InvalidFormat { position, .. } => at(position, "invalid format"),
        MjmlError::IncludeLoaderError { position, .. } => at(position, "includes are not served:"),
        MjmlError::ParserError { source, .. } => format!("line {}: {source}", source.pos().row),
        MjmlError::EndOfStream { .. } => {
            let line = line_of(source, source.len());
            format!("line {line}: the source ends before its elements are closed")
        }
        MjmlError::NoRootNode => "there is no <mjml> element".to_owned(),
        MjmlError::SizeLimit { .. } => "is too large".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(content: &str) -> String {
        format!("<mjml><mj-body>{content}</mj-body></mjml>")
    }

    fn verdict(source: String) -> Result<String, String> {
        let thread = std::thread::Builder::new().stack_size(32 << 20);
        thread
            .spawn(move || compile(&source))
            .unwrap()
            .join()
            .unwrap()
    }

    #[test]
    fn a_bracket_that_the_tokenizer_cannot_take_is_refused() {
        let text = |text: &str| {
            body(&format!(
                "\n<mj-section><mj-column><mj-text>{text}</mj-text></mj-column></mj-section>"
            ))
        };
        for fatal in ["Café > Menü", "5 €>", "x 𝄞->", "<b title=\"é\">é ></b>"] {
            let refused = verdict(text(fatal)).unwrap_err();
            assert_eq!(
                refused, "line 2: write &gt; for the > in this text",
                "{fatal}"
            );
        }
        for fine in [
            "Café &gt; Menü",
            "Café  > Menü",
            "a > b é >",
            "é<b title=\"é\">é</b>",
            "<b title=\"é >\">x</b>",
            "<!-- é > -->",
        ] {
            assert!(
                verdict(text(fine)).is_ok(),
                "{fine}: {:?}",
                verdict(text(fine))
            );
        }
    }

    #[test]
    fn mjml_becomes_html_and_tags_stay() {
        let section = "<mj-section><mj-column><mj-text>Hi {{name}}<br>{{#if (eq a \"b\")}}x{{/if}}</mj-text>\
                       <mj-button href=\"{{url}}\">Go</mj-button></mj-column></mj-section>";
        let html = verdict(body(section)).unwrap();
        for part in [
            "Hi {{name}}",
            "{{#if (eq a \"b\")}}x{{/if}}",
            "href=\"{{url}}\"",
            "<!doctype html>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (source, part) in [
            ("", "no <mjml>"),
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
                "<mjml><mj-body>\n<mj-section a=></mj-body></mjml>",
                "line 2",
            ),
        ] {
            let problem = verdict(source.to_owned()).unwrap_err();
            assert!(problem.contains(part), "{source}: {problem}");
        }
    }

    #[test]
    fn what_would_overflow_the_stack_or_grow_without_bound_is_refused_before() {
        let nest = |tag: &str, depth: usize| {
            format!(
                "{}{}",
                format!("<{tag}>").repeat(depth),
                format!("</{tag}>").repeat(depth)
            )
        };
        let text = |inner: &str| {
            format!("<mj-section><mj-column><mj-text>{inner}</mj-text></mj-column></mj-section>")
        };
        let long = "x".repeat(100_000);
        let head = format!(
            "<mjml><mj-head><mj-attributes><mj-all css-class=\"{long}\"/></mj-attributes></mj-head><mj-body>{}</mj-body></mjml>",
            "<mj-section/>".repeat(4_000)
        );
        let social = format!(
            "<mj-section><mj-column><mj-social icon-padding=\"{long}\">{}</mj-social></mj-column></mj-section>",
            "<mj-social-element/>".repeat(4_000)
        );
        let carousel = format!(
            "<mj-section><mj-column><mj-carousel>{}</mj-carousel></mj-column></mj-section>",
            "<mj-carousel-image src=\"a\"/>".repeat(51)
        );
        for source in [
            body(&nest("mj-wrapper", 100_000)),
            body(&"<mj-wrapper>".repeat(100_000)),
            body(&text(&nest("b", 100_000))),
            body(&text(&"<b>".repeat(100_000))),
            body(&format!("<mj-raw>{}</mj-raw>", nest("div", 100_000))),
            body(&format!(
                "<mj-raw>{}</mj-raw>",
                "<div><!-- </div> -->".repeat(20_000)
            )),
            body(&text(&"<b><br></b><b a=\"</b>\">".repeat(20_000))),
            body(&"<mj-section/>".repeat(ELEMENTS_MAX + 1)),
            body(&social),
            body(&carousel),
            head,
        ] {
            let problem = verdict(source).unwrap_err();
            let bounds = ["deep", "more than", "inherit"];
            assert!(
                bounds.iter().any(|bound| problem.contains(bound)),
                "{problem}"
            );
        }
    }

    #[test]
    fn what_the_scan_lets_through_compiles_on_the_stack() {
        let raw = format!(
            "<mj-raw>{}{}</mj-raw>",
            "<div>".repeat(95),
            "</div>".repeat(95)
        );
        assert!(verdict(body(&raw)).is_ok());
        let wrappers = format!(
            "{}{}",
            "<mj-wrapper>".repeat(95),
            "</mj-wrapper>".repeat(95)
        );
        let _either = verdict(body(&wrappers));
        let breaks = format!(
            "<mj-section><mj-column><mj-text>{}</mj-text></mj-column></mj-section>",
            "a<br>".repeat(1_000)
        );
        assert!(verdict(body(&breaks)).is_ok());
        let columns = format!(
            "<mj-section>{}</mj-section>",
            "<mj-column/>".repeat(ELEMENTS_MAX - 10)
        );
        let _either = verdict(body(&columns));
    }
}
