//! Handlebars sources, parsed: the grammar of handlebars.js 4.7, in a tree of a few
//! dozen bytes a tag.
//!
//! `parser` reads it, and `names` decides what a name stands for. What is not served (partials,
//! decorators, helpers that do not exist, wrong numbers of values) is refused then,
//! so that whatever was accepted renders with any variables. The parser counts how
//! deep it is: a stack that overflows ends the process.

use std::ops::Range;

use serde_json::Value;

use super::helpers::Helper;
use super::parser::{Parser, Stop};
use super::spacing;
use super::tags::{Problem, Strip};

/// How deep the blocks of a template may nest that needs no large stack.
const STRAIGHT_DEPTH_MAX: usize = 8;

/// A source that can be rendered.
pub(crate) struct ParsedTemplate {
    pub(super) source: Box<str>,
    pub(super) program: Program,
    weight: u64,
}

/// What stands between two tags of a block, or in the whole source.
#[derive(Default)]
pub(super) struct Program {
    pub(super) body: Vec<TemplateNode>,
    /// How many block parameters are named for it.
    pub(super) names: usize,
    /// Whether it is one block alone, written as `else if`.
    pub(super) is_chained: bool,
}

pub(super) enum TemplateNode {
    TextNode(TextNode),
    Comment(Strip),
    Value {
        value: Expr,
        is_escaped: bool,
        strip: Strip,
    },
    Block(Box<Block>),
}

/// A part of the source, and what of it is left by the white space rules.
pub(super) struct TextNode {
    pub(super) whole: Range<usize>,
    pub(super) kept: Range<usize>,
    pub(super) is_begin_trimmed: bool,
    pub(super) is_end_trimmed: bool,
}

pub(super) struct Block {
    pub(super) subject: BlockSubject,
    pub(super) program: Option<Program>,
    pub(super) inverse: Option<Program>,
    pub(super) open: Strip,
    pub(super) otherwise: Strip,
    pub(super) close: Strip,
}

/// What decides how a block is rendered.
pub(super) enum BlockSubject {
    /// The value of a section.
    Section(Expr),
    HelperCall(HelperCall),
}

pub(super) enum Expr {
    Path(Path),
    Literal(Box<Value>),
    HelperCall(Box<HelperCall>),
}

pub(super) struct HelperCall {
    pub(super) helper: Helper,
    pub(super) values: Vec<Expr>,
    /// The only named value that a helper looks at: that of `if` and `unless`.
    pub(super) include_zero: Option<Expr>,
}

/// Where a value is looked for.
pub(super) struct Path {
    pub(super) base: PathBase,
    pub(super) names: Box<[Box<str>]>,
}

#[derive(Clone, Copy)]
pub(super) enum PathBase {
    /// The value that a block is about, or that of a block around it.
    Context(usize),
    /// `@index` and its like, of the innermost loop or of one around it.
    Data(usize),
    /// A block parameter, counted from the outermost.
    Parameter(usize),
}

impl Program {
    /// What an `else` holds, and of a chain of `else if` what the first one holds.
    pub(super) fn unchained(&mut self) -> &mut [TemplateNode] {
        if !self.is_chained {
            return &mut self.body;
        }
        match self.body.first_mut() {
            Some(TemplateNode::Block(block)) => block.first(),
            Some(
                TemplateNode::TextNode(_) | TemplateNode::Comment(_) | TemplateNode::Value { .. },
            )
            | None => &mut [],
        }
    }
}

impl Block {
    /// The nodes behind the opening tag.
    pub(super) fn first(&mut self) -> &mut [TemplateNode] {
        let program = self.program.as_mut().or(self.inverse.as_mut());
        program.map_or(&mut [], |program| &mut program.body)
    }

    /// The nodes before the closing tag.
    pub(super) fn last(&mut self) -> &mut [TemplateNode] {
        let program = self.inverse.as_mut().or(self.program.as_mut());
        program.map_or(&mut [], |program| &mut program.body)
    }
}

impl ParsedTemplate {
    /// How much work rendering it once is, loops aside.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether rendering it passes each of its elements once at the most, on a small
    /// stack: it has no loops, no calls but those of branches, and blocks a few deep.
    pub(super) fn is_straight(&self) -> bool {
        is_straight(&self.program, STRAIGHT_DEPTH_MAX)
    }
}

fn is_straight(program: &Program, depth: usize) -> bool {
    program.body.iter().all(|node| match node {
        TemplateNode::TextNode(_) | TemplateNode::Comment(_) => true,
        TemplateNode::Value { value, .. } => !matches!(value, Expr::HelperCall(_)),
        TemplateNode::Block(block) => {
            let BlockSubject::HelperCall(call) = &block.subject else {
                return false;
            };
            let is_branch = matches!(call.helper, Helper::If | Helper::Unless);
            let mut values = call.values.iter().chain(&call.include_zero);
            let mut parts = block.program.iter().chain(&block.inverse);
            is_branch
                && depth > 0
                && values.all(|value| !matches!(value, Expr::HelperCall(_)))
                && parts.all(|part| is_straight(part, depth - 1))
        }
    })
}

/// Parses a source.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn parse(source: &str) -> Result<ParsedTemplate, String> {
    parse_at(source).map_err(|problem| {
        let before = &source[..problem.at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        format!("line {line}, column {column}: {}", problem.text)
    })
}

fn parse_at(source: &str) -> Result<ParsedTemplate, Problem> {
    let mut parser = Parser::new(source);
    let (mut program, stop) = parser.program()?;
    if let Some(stop) = stop {
        return Err(match stop {
            Stop::End { at, .. } => Problem::new(at, "there is no block open to be closed"),
            Stop::Else { at, .. } | Stop::ElseIf { at, .. } => {
                Problem::new(at, "an else stands within a block")
            }
        });
    }
    spacing::trim(source, &mut program);
    Ok(ParsedTemplate {
        source: source.into(),
        program,
        weight: parser.weight,
    })
}

impl Program {
    pub(super) fn of(body: Vec<TemplateNode>) -> Self {
        Self {
            body,
            names: 0,
            is_chained: false,
        }
    }
}

impl TextNode {
    pub(super) fn new(whole: Range<usize>) -> Self {
        Self {
            kept: whole.clone(),
            whole,
            is_begin_trimmed: false,
            is_end_trimmed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::CALL_DEPTH_MAX;
    use super::super::parser::{BLOCK_NAMES_MAX, DEPTH_MAX, TAGS_MAX, VALUES_MAX};
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
            with_stack(move || parse(&source).unwrap().is_straight())
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
            "{{#items}}{{this}}{{/items}}",
            "{{#if a}}{{#each items}}{{this}}{{/each}}{{/if}}",
            "{{#with user}}{{name}}{{/with}}",
            "{{#if (eq a b)}}c{{/if}}",
            "{{len items}}{{lookup a b}}",
            &nested(STRAIGHT_DEPTH_MAX + 1),
        ] {
            assert!(!straight(source), "{source}");
        }
    }

    #[test]
    fn what_is_not_served_is_refused_with_its_line() {
        for (source, part) in [
            ("a\n{{> header}}", "line 2, column 1: partials"),
            ("{{#> layout}}x{{/layout}}", "partials"),
            ("{{#*inline \"x\"}}y{{/inline}}", "decorators"),
            ("{{* x}}", "decorators"),
            (
                "a\nb\n é{{shout name}}",
                "line 3, column 3: there is no helper shout",
            ),
            ("{{#each}}x{{/each}}", "takes 1 value"),
            ("{{if}}", "this.if"),
            ("{{#if a b}}x{{/if}}", "takes 1 value"),
            ("{{eq a}}", "takes 2 values"),
            ("{{#if a}}{{shout b}}{{/if}}", "there is no helper shout"),
            ("{{#if (shout b)}}{{/if}}", "there is no helper shout"),
            ("{{shout a=1}}", "there is no helper shout"),
            ("{{a.b c}}", "there is no helper a.b"),
            ("{{#if a as |b|}}x{{/if}}", "only each and with"),
            (
                "{{#if a}}x{{/unless}}",
                "line 1, column 11: if is closed by unless",
            ),
            ("{{name", "line 1"),
            ("{{#if a}}", "if is not closed"),
            ("{{else}}", "an else stands within a block"),
            ("{{/if}}", "no block open"),
            ("{{a.this}}", "is no path"),
            ("{{{a}}", "}}}"),
            ("{{a \"b}}", "not closed"),
            ("{{{{raw}}}} x", "raw block"),
            ("{{}}", "a name is expected"),
            ("{{a b=1 c}}", "before the named"),
        ] {
            let problem = verdict(source).unwrap_err();
            assert!(problem.contains(part), "{source}: {problem}");
        }
    }

    #[test]
    fn texts_that_would_overflow_a_stack_are_refused() {
        for depth in [DEPTH_MAX + 1, 1_000, 100_000] {
            for source in [
                format!("{{{{{}a{}}}}}", "(a ".repeat(depth), ")".repeat(depth)),
                format!(
                    "{{{{not {}a{}}}}}",
                    "(not ".repeat(depth),
                    ")".repeat(depth)
                ),
                format!("{{{{not {}", "(not ".repeat(depth)),
                format!("{{{{a {}", "[".repeat(depth)),
                format!("{}{}", "{{#if a}}".repeat(depth), "{{/if}}".repeat(depth)),
                format!("{}{}", "{{~^a}}".repeat(depth), "{{/a}}".repeat(depth)),
                format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(depth)),
                "{{#if a}}".repeat(depth),
                "{{{{a}}}}".repeat(depth),
            ] {
                let start: String = source.chars().take(60).collect();
                assert!(verdict(&source).is_err(), "{start} × {depth}");
            }
        }
        let nested = |depth: usize| "{{#if a}}".repeat(depth) + &"{{/if}}".repeat(depth);
        assert_eq!(verdict(&nested(DEPTH_MAX)), Ok(()));
        let calls = "(not ".repeat(CALL_DEPTH_MAX);
        let deep = format!("{{{{not {calls}a{}}}}}", ")".repeat(CALL_DEPTH_MAX));
        assert_eq!(verdict(&deep), Ok(()));
    }

    #[test]
    fn reading_takes_time_by_the_length_alone() {
        for unit in [
            "{{a}}",
            "{{!}}",
            "{{~a~}}",
            "{{a [b\\]}}",
            "{{!--",
            "\\{{a",
            "{{{{a}}}}",
        ] {
            let source = unit.repeat((1 << 20) / unit.len());
            let began = std::time::Instant::now();
            assert!(
                verdict(&source).is_err() || unit.starts_with('\\'),
                "{unit}"
            );
            assert!(
                began.elapsed().as_secs() < 5,
                "{unit}: {:?}",
                began.elapsed()
            );
        }
        assert_eq!(verdict(&"{{a}}\n".repeat(TAGS_MAX)), Ok(()));
        // As many as there may be, and a long rest that each could be looked for in.
        for unit in [
            "{{!-- a --}}",
            "{{!-- a --~}}",
            "{{! a }}",
            "{{~! a ~}}",
            "\\{{!-- a --}}",
            "{{a as}}",
            "{{[a\\]]}}",
        ] {
            let began = std::time::Instant::now();
            let source = unit.repeat(TAGS_MAX - 1) + &"x".repeat(1 << 20);
            let _verdict = verdict(&source);
            let took = began.elapsed();
            assert!(took.as_secs() < 5, "{unit}: {took:?}");
        }
    }

    #[test]
    fn a_comment_ends_at_the_first_of_its_two_ends() {
        for (source, texts) in [
            ("{{!-- a --}}b--~}}", 1),
            ("{{!-- a --~}}b--}}", 1),
            ("{{!-- a }} --}}b", 1),
            ("{{!-- a -}} ~}} -~}} --}}b", 1),
            ("{{!-- a ---}}b", 1),
            ("{{!--}}b--}}", 1),
            ("{{! a }}b--}}", 1),
            ("{{!-- a --}}{{!-- b --}}", 0),
        ] {
            let source = source.to_owned();
            let found = with_stack(move || {
                let body = parse(&source).unwrap().program.body;
                let texts = body
                    .iter()
                    .filter(|node| matches!(node, TemplateNode::TextNode(_)));
                (texts.count(), source)
            });
            assert_eq!(found.0, texts, "{}", found.1);
        }
        for source in ["{{!-- a }}", "{{!-- a -~}}", "{{! a", "{{!-- --", "{{!--~}"] {
            let problem = verdict(source).unwrap_err();
            assert!(problem.contains("a comment is not closed"), "{source}");
        }
    }

    #[test]
    fn too_many_of_anything_is_refused_with_its_place() {
        let names = |count: usize| {
            let names: Vec<String> = (0..count).map(|name| format!("n{name}")).collect();
            format!(
                "{{{{#each a as |{}|}}}}{{{{n0}}}}{{{{/each}}}}",
                names.join(" ")
            )
        };
        assert_eq!(verdict(&names(BLOCK_NAMES_MAX)), Ok(()));
        let nested = format!(
            "{}{}",
            "{{#each a as |b c|}}".repeat(BLOCK_NAMES_MAX / 2 + 1),
            "{{/each}}".repeat(BLOCK_NAMES_MAX / 2 + 1)
        );
        let path = |parts: usize| format!("{{{{{}a}}}}", "a.".repeat(parts - 1));
        assert_eq!(verdict(&path(VALUES_MAX)), Ok(()));
        for (source, part) in [
            (names(BLOCK_NAMES_MAX + 1), "more than 100 names here"),
            (names(50_000), "more than 100 names here"),
            (nested, "more than 100 names here"),
            (path(VALUES_MAX + 1), "more than 100000 values and parts"),
            (
                format!("{{{{and {}}}}}", "1 ".repeat(VALUES_MAX + 1)),
                "more than 100000 values and parts",
            ),
            (
                format!("{{{{and a b {}}}}}", "c=1 ".repeat(VALUES_MAX)),
                "more than 100000 values and parts",
            ),
            (
                format!("{{{{#if {}a}}}}x{{{{/if}}}}", "../".repeat(VALUES_MAX)),
                "more than 100000 values and parts",
            ),
            ("{{a}}".repeat(TAGS_MAX + 1), "more than 20000 tags"),
            ("{{!a}}".repeat(TAGS_MAX + 1), "more than 20000 tags"),
            (
                "{{#if a}}{{/if}}".repeat(TAGS_MAX / 2 + 1),
                "more than 20000 tags",
            ),
        ] {
            let problem = verdict(&source).unwrap_err();
            assert!(problem.contains(part), "{problem}");
            assert!(problem.starts_with("line 1, column "), "{problem}");
        }
    }
}
