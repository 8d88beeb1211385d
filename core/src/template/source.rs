//! Handlebars sources: looked at before they are parsed, parsed, and looked at
//! again.
//!
//! The parser recurses: a few kilobytes of `{{(a (a (a` or of `{{#if a}}` would
//! overflow its stack. The first look therefore counts what may nest, without
//! understanding the text: it errs on the side of refusing, and it reads every
//! `{{` as the beginning of a tag, in comments too. What a tag may hold is narrow
//! enough that its end cannot be disputed: no braces, no backslashes, no open
//! quotes or brackets. The second look goes over the parsed tree and refuses what
//! is not served (partials, decorators, helpers that do not exist), so that a
//! version that was accepted does not fail for it when messages are sent.

use handlebars::Template;
use handlebars::template::{HelperTemplate, Parameter, TemplateElement};

use super::helpers;

/// Bytes of a tag, without comments.
const TAG_BYTES_MAX: usize = 1_000;
/// Opening parentheses and brackets in a tag.
const TAG_OPENINGS_MAX: usize = 32;
/// Tags that open a block or go on with one.
const BLOCKS_MAX: usize = 1_000;
/// Tags times bytes: the parser finds the line of each tag by counting from the
/// beginning. Enough for 2,000 tags in 100 KB; about half a second at the most.
const TAGS_BY_BYTES_MAX: usize = 200_000_000;
/// How deep blocks may nest.
const DEPTH_MAX: usize = 50;

/// How deep the blocks of a template may nest that needs no large stack.
const STRAIGHT_DEPTH_MAX: usize = 8;
/// Blocks that render what they hold once at the most.
const BRANCHES: [&str; 2] = ["if", "unless"];

/// Parses a source.
///
/// # Errors
/// What is wrong with it, with the line where that is known.
pub(super) fn parse(source: &str) -> Result<Template, String> {
    scan(source)?;
    let template = Template::compile(source).map_err(|error| {
        let reason = error.reason().to_string();
        let reason = reason.lines().next().unwrap_or_default();
        match error.pos() {
            Some((line, column)) => format!("line {line}, column {column}: {reason}"),
            None => reason.to_owned(),
        }
    })?;
    inspect(&template, 0)?;
    Ok(template)
}

/// How much work rendering a template once is, loops aside: its elements and
/// their parameters.
pub(super) fn weight(template: &Template) -> u64 {
    template.elements.iter().map(element_weight).sum()
}

fn element_weight(element: &TemplateElement) -> u64 {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the enum may grow, and what is not served is refused by `inspect`"
    )]
    match element {
        TemplateElement::Expression(helper)
        | TemplateElement::HtmlExpression(helper)
        | TemplateElement::HelperBlock(helper) => {
            let parameters = helper.params.iter().chain(helper.hash.values());
            let parameters: u64 = parameters.map(parameter_weight).sum();
            let blocks = [&helper.template, &helper.inverse];
            1 + parameters + blocks.into_iter().flatten().map(weight).sum::<u64>()
        }
        _ => 1,
    }
}

fn parameter_weight(parameter: &Parameter) -> u64 {
    let Parameter::Subexpression(inner) = parameter else {
        return 1;
    };
    1 + element_weight(&inner.element)
}

/// Whether rendering a template passes each of its elements once at the most, on a
/// small stack: it has no loops, no calls but those of branches, and blocks a few deep.
pub(super) fn is_straight(template: &Template) -> bool {
    is_straight_within(template, STRAIGHT_DEPTH_MAX)
}

fn is_straight_within(template: &Template, depth: usize) -> bool {
    template.elements.iter().all(|element| {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the enum may grow: what is not known may loop"
        )]
        match element {
            TemplateElement::RawString(_) | TemplateElement::Comment(_) => true,
            TemplateElement::Expression(helper) | TemplateElement::HtmlExpression(helper) => {
                helper.params.is_empty() && helper.hash.is_empty() && calls_alone(helper)
            }
            TemplateElement::HelperBlock(helper) => {
                let is_branch = helper
                    .name
                    .as_name()
                    .is_some_and(|name| BRANCHES.contains(&name));
                let mut blocks = [&helper.template, &helper.inverse].into_iter().flatten();
                is_branch
                    && calls_alone(helper)
                    && depth > 0
                    && blocks.all(|block| is_straight_within(block, depth - 1))
            }
            _ => false,
        }
    })
}

/// Whether none of what a helper is given is another's answer.
fn calls_alone(helper: &HelperTemplate) -> bool {
    let given = helper.params.iter().chain(helper.hash.values());
    let mut given = given.chain([&helper.name]);
    given.all(|given| !matches!(given, Parameter::Subexpression(_)))
}

/// The first look.
fn scan(source: &str) -> Result<(), String> {
    let bytes = source.as_bytes();
    let mut blocks = 0;
    let mut tags = 0;
    let mut at = 0;
    while let Some(found) = source[at..].find("{{") {
        let start = at + found;
        let braces = bytes[start..]
            .iter()
            .take_while(|byte| **byte == b'{')
            .count();
        let inner = start + braces;
        let rest = source[inner..].trim_start();
        let rest = rest.strip_prefix('~').unwrap_or(rest).trim_start();
        at = inner;
        tags += 1;
        if rest.starts_with('!') {
            continue;
        }
        let is_block = braces >= 4 || rest.starts_with(['#', '^']) || rest.starts_with("else");
        blocks += usize::from(is_block);
        let (tag, is_closed) = match rest.find("}}") {
            Some(end) => (&rest[..end], true),
            None => (rest, false),
        };
        let problem = scan_tag(tag, is_closed).err().or_else(|| {
            (blocks > BLOCKS_MAX).then(|| format!("there are more than {BLOCKS_MAX} blocks"))
        });
        if let Some(problem) = problem {
            let line = source[..start].matches('\n').count() + 1;
            return Err(format!("line {line}: {problem}"));
        }
    }
    if source.len().saturating_mul(tags) > TAGS_BY_BYTES_MAX {
        return Err(format!(
            "{tags} tags are too many in {} bytes",
            source.len()
        ));
    }
    Ok(())
}

fn scan_tag(tag: &str, is_closed: bool) -> Result<(), String> {
    if tag.len() > TAG_BYTES_MAX {
        return Err(if is_closed {
            format!("a tag is longer than {TAG_BYTES_MAX} bytes")
        } else {
            "a tag is not closed by }}".to_owned()
        });
    }
    let openings = tag.bytes().filter(|byte| matches!(byte, b'(' | b'['));
    if openings.count() > TAG_OPENINGS_MAX {
        return Err(format!(
            "a tag has more than {TAG_OPENINGS_MAX} parentheses and brackets"
        ));
    }
    if tag.contains(['{', '\\']) {
        return Err("a tag must not hold braces or backslashes".to_owned());
    }
    let mut within: Option<char> = None;
    for character in tag.chars() {
        within = match (within, character) {
            (None, '"' | '\'') => Some(character),
            (None, '[') => Some(']'),
            (Some(']'), '"' | '\'') => {
                return Err("a tag must not hold quotes within brackets".to_owned());
            }
            (Some(end), _) if end == character => None,
            (within, _) => within,
        };
    }
    match within {
        Some(_) if is_closed => {
            Err("a tag's quotes and brackets must be closed, and hold no }}".to_owned())
        }
        _ => Ok(()),
    }
}

/// The second look.
fn inspect(template: &Template, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("blocks are nested more than {DEPTH_MAX} deep"));
    }
    for (element, place) in template.elements.iter().zip(&template.mapping) {
        inspect_element(element, depth).map_err(|problem| {
            if problem.starts_with("line ") {
                problem
            } else {
                format!("line {}, column {}: {problem}", place.0, place.1)
            }
        })?;
    }
    // A chain of "else if" is a nested element without a place of its own.
    for element in template.elements.iter().skip(template.mapping.len()) {
        inspect_element(element, depth)?;
    }
    Ok(())
}

fn inspect_element(element: &TemplateElement, depth: usize) -> Result<(), String> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the enum may grow: what is not known is not served"
    )]
    match element {
        TemplateElement::RawString(_) | TemplateElement::Comment(_) => Ok(()),
        TemplateElement::Expression(helper) | TemplateElement::HtmlExpression(helper) => {
            inspect_helper(helper)
        }
        TemplateElement::HelperBlock(helper) => {
            inspect_helper(helper)?;
            let blocks = [&helper.template, &helper.inverse];
            blocks
                .into_iter()
                .flatten()
                .try_for_each(|block| inspect(block, depth + 1))
        }
        _ => Err("partials and decorators are not served".to_owned()),
    }
}

fn inspect_helper(helper: &HelperTemplate) -> Result<(), String> {
    let parameters = helper.params.iter().chain(helper.hash.values());
    for parameter in parameters.chain([&helper.name]) {
        if let Parameter::Subexpression(inner) = parameter {
            inspect_element(&inner.element, 0)?;
        }
    }
    let Some(name) = helper.name.as_name() else {
        return Ok(());
    };
    let is_call = helper.block || !helper.params.is_empty() || !helper.hash.is_empty();
    match helpers::parameters_of(name) {
        Some(count) if helper.params.len() < count => {
            let values = if count == 1 { "value" } else { "values" };
            Err(format!(
                "the helper {name} takes {count} {values}; a variable of that name is written this.{name}"
            ))
        }
        Some(_) => Ok(()),
        None if is_call && helper.block => Err(format!(
            "there is no helper {name}; is it meant as {{{{#each {name}}}}} or {{{{#if {name}}}}}?"
        )),
        None if is_call => Err(format!("there is no helper {name}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the workshop does it.
    fn with_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(32 << 20).spawn(work);
        thread.unwrap().join().unwrap()
    }

    fn verdict(source: &str) -> Result<(), String> {
        let source = source.to_owned();
        with_stack(move || parse(&source).map(|_| ()))
    }

    #[test]
    fn straight_is_what_renders_nothing_twice() {
        let straight = |source: &str| {
            let source = source.to_owned();
            with_stack(move || is_straight(&parse(&source).unwrap()))
        };
        let nested = |depth: usize| "{{#if a}}".repeat(depth) + "b" + &"{{/if}}".repeat(depth);
        for source in [
            "plain",
            "{{name}} {{{user.name}}} {{this.len}}{{! each }}",
            "{{#if a}}b{{else if c}}{{d}}{{else}}e{{/if}}{{#unless a}}{{b}}{{/unless}}",
            &nested(STRAIGHT_DEPTH_MAX),
        ] {
            assert!(straight(source), "{source}");
        }
        for source in [
            "{{#each items}}{{this}}{{/each}}",
            "{{#if a}}{{#each items}}{{this}}{{/each}}{{/if}}",
            "{{#with user}}{{name}}{{/with}}",
            "{{#if (eq a b)}}c{{/if}}",
            "{{len items}}{{lookup a b}}",
            "{{#if (lookup a b)}}c{{/if}}",
            &nested(STRAIGHT_DEPTH_MAX + 1),
        ] {
            assert!(!straight(source), "{source}");
        }
    }

    #[test]
    fn what_people_write_is_taken() {
        for source in [
            "plain { text } with {one brace}",
            "{{name}} {{{name}}} {{& name}} {{~name~}} {{../name}} {{@index}} {{this.a.[b c]}}",
            "{{#if (eq plan \"pro\")}}a{{else if (and a (not b))}}b{{else}}c{{/if}}",
            "{{#each items as |item index|}}{{index}}{{item.name}}{{else}}none{{/each}}",
            "{{#with user}}{{first}}{{/with}}{{#unless a}}b{{/unless}}",
            "{{! a comment with {{name}} }}{{!-- another --}}",
            "{{{{raw}}}}{{not a tag}}{{{{/raw}}}}",
            "@media (max-width: 600px) { .a { color: red } }",
            "{{lookup prices plan}} {{len items}}",
        ] {
            assert_eq!(verdict(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn what_is_not_served_is_refused_with_its_line() {
        for (source, part) in [
            ("a\n{{> header}}", "line 2"),
            ("{{#> layout}}x{{/layout}}", "partials"),
            ("{{#*inline \"x\"}}y{{/inline}}", "decorators"),
            ("{{* x}}", "decorators"),
            (
                "a\nb\n{{log name}}",
                "line 3, column 1: there is no helper log",
            ),
            ("{{#items}}x{{/items}}", "#each items"),
            ("{{#each}}x{{/each}}", "takes 1 value"),
            ("{{eq a}}", "takes 2 values"),
            ("{{#if a}}{{shout b}}{{/if}}", "there is no helper shout"),
            ("{{#if (shout b)}}{{/if}}", "there is no helper shout"),
            ("{{#if a}}x{{/unless}}", "line 1"),
            ("{{name", "line 1"),
            ("{{#if a}}", "line 1"),
        ] {
            let problem = verdict(source).unwrap_err();
            assert!(problem.contains(part), "{source}: {problem}");
        }
    }

    #[test]
    fn texts_that_would_overflow_the_parsers_stack_are_refused_before() {
        for depth in [100, 1_000, 100_000] {
            for source in [
                format!("{{{{{}a{}}}}}", "(a ".repeat(depth), ")".repeat(depth)),
                format!("{{{{{}", "(a ".repeat(depth)),
                format!("{{{{a {}", "[".repeat(depth)),
                format!("{{{{a {}1{}}}}}", "[".repeat(depth), "]".repeat(depth)),
                format!("{{{{a {}", "{\"a\":".repeat(depth)),
                format!("{{{{x \"}}}}\" {}", "(a ".repeat(depth)),
                format!("{{{{x '}}}}' {}", "(a ".repeat(depth)),
                format!("{{{{x.[\"] \"]}}}}\" {}", "(a ".repeat(depth)),
                format!("{{{{x.[}}}}] {}", "(a ".repeat(depth)),
                format!("{{{{x \"\\\"}}}}\" {}", "(a ".repeat(depth)),
                format!("\\{{{{! {{{{ {} }}}}", "(a ".repeat(depth)),
                format!("{{{{!-- }}}} --}}}}{{{{{}", "(a ".repeat(depth)),
                format!("{}{}", "{{#if a}}".repeat(depth), "{{/if}}".repeat(depth)),
                format!("{}{}", "{{~#if a}}".repeat(depth), "{{/if}}".repeat(depth)),
                format!(
                    "{}{}",
                    "{{#if a}}{{! {{/if}} }}".repeat(depth),
                    "{{/if}}".repeat(depth)
                ),
                format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(depth)),
                format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{^if a}}".repeat(depth)),
                "{{#if a}}".repeat(depth),
                "{{#> a}}".repeat(depth),
                "{{#*inline \"a\"}}".repeat(depth),
                "{{{{a}}}}".repeat(depth),
            ] {
                let start: String = source.chars().take(60).collect();
                assert!(verdict(&source).is_err(), "{start} × {depth}");
            }
        }
    }

    #[test]
    fn what_the_scan_lets_through_can_be_parsed_on_the_stack() {
        let nested = format!(
            "{}{}",
            "{{#if a}}".repeat(BLOCKS_MAX),
            "{{/if}}".repeat(BLOCKS_MAX)
        );
        assert!(verdict(&nested).unwrap_err().contains("deep"));
        let unclosed = "{{#if a}}".repeat(BLOCKS_MAX);
        assert!(verdict(&unclosed).is_err());
        let chain = format!(
            "{{{{#if a}}}}{}{{{{/if}}}}",
            "{{else if a}}".repeat(DEPTH_MAX - 1)
        );
        assert_eq!(verdict(&chain), Ok(()));
        let openings = "(not ".repeat(TAG_OPENINGS_MAX);
        let deep = format!(
            "{{{{#if {openings}a{}}}}}x{{{{/if}}}}",
            ")".repeat(TAG_OPENINGS_MAX)
        );
        assert_eq!(verdict(&deep), Ok(()));
        let half = format!("{{{{#if {openings}a}}}}x{{{{/if}}}}");
        assert!(verdict(&half).is_err());
        let blocks = "{{#if a}}x{{/if}}".repeat(BLOCKS_MAX);
        assert_eq!(verdict(&blocks), Ok(()));
    }

    #[test]
    fn texts_that_would_keep_the_parser_busy_for_minutes_are_refused_before() {
        for unit in ["{{a}}", "{{a}}\n", "{{!}}", "{{~a~}}"] {
            let source = unit.repeat((1 << 20) / unit.len());
            assert!(verdict(&source).unwrap_err().contains("too many"), "{unit}");
        }
        assert_eq!(verdict(&"x".repeat(1 << 20)), Ok(()));
        assert_eq!(verdict(&"{{a}}\n".repeat(1_000)), Ok(()));
    }
}
