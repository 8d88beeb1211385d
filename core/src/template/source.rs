//! The syntax tree of a Handlebars template (grammar of handlebars.js 4.7), with a few dozen
//! bytes for each tag.
//!
//! `parser` builds the tree and `names` resolves names. Unsupported features (partials,
//! decorators, unknown helpers, wrong numbers of arguments) are refused here, so that every
//! accepted template renders with any variables. The parser limits the nesting, because a
//! stack overflow ends the process.

use std::ops::Range;

use serde_json::Value;

use super::helpers::Helper;
use super::lexer::{Strip, SyntaxError};
use super::parser::{Parser, Stop};
use super::problem::Problem;
use super::whitespace;

/// The deepest nesting of blocks that needs no large stack.
const SIMPLE_DEPTH_MAX: usize = 8;

/// A source that can be rendered.
pub(crate) struct ParsedTemplate {
    pub(super) source: Box<str>,
    pub(super) program: Program,
    weight: u64,
}

/// A sequence of nodes: the content between two tags of a block, or the whole template.
#[derive(Default)]
pub(super) struct Program {
    pub(super) body: Vec<TemplateNode>,
    /// The number of its block parameters.
    pub(super) names: usize,
    /// Whether it consists of one block that was written as `else if`.
    pub(super) is_chained: bool,
}

pub(super) enum TemplateNode {
    Text(TextNode),
    Comment(Strip),
    Value {
        value: Expr,
        is_escaped: bool,
        strip: Strip,
    },
    Block(Box<Block>),
}

/// A text in the source, before and after whitespace control.
pub(super) struct TextNode {
    pub(super) whole: Range<usize>,
    pub(super) trimmed: Range<usize>,
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

/// The value or helper that controls a block.
pub(super) enum BlockSubject {
    /// `{{#name}}` with a variable.
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
    /// The only named argument that helpers use: `includeZero` of `if` and `unless`.
    pub(super) include_zero: Option<Expr>,
}

/// The path of a variable.
pub(super) struct Path {
    pub(super) base: PathBase,
    pub(super) names: Box<[Box<str>]>,
}

#[derive(Clone, Copy)]
pub(super) enum PathBase {
    /// The context of the current block (0) or of an outer one (`../`).
    Context(usize),
    /// `@index` and similar of the innermost loop (0) or of an outer one.
    Data(usize),
    /// The index of a block parameter, counted from the outermost.
    Parameter(usize),
}

impl Program {
    /// The nodes of an `else`, or of the first `else if` of a chain.
    pub(super) fn unchained(&mut self) -> &mut [TemplateNode] {
        if !self.is_chained {
            return &mut self.body;
        }
        match self.body.first_mut() {
            Some(TemplateNode::Block(block)) => block.first(),
            Some(TemplateNode::Text(_) | TemplateNode::Comment(_) | TemplateNode::Value { .. })
            | None => &mut [],
        }
    }
}

impl Block {
    /// The nodes after the opening tag.
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
    /// The work of one rendering without loops: the number of elements.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Whether a rendering visits each element at most once and needs a small stack: there
    /// are no loops, no helpers except `if` and `unless`, and only shallow nesting.
    pub(super) fn is_simple(&self) -> bool {
        is_simple(&self.program, SIMPLE_DEPTH_MAX)
    }
}

fn is_simple(program: &Program, depth: usize) -> bool {
    program.body.iter().all(|node| match node {
        TemplateNode::Text(_) | TemplateNode::Comment(_) => true,
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
                && parts.all(|part| is_simple(part, depth - 1))
        }
    })
}

/// Parses a template.
///
/// # Errors
/// The first syntax error, with its line and column.
pub(super) fn parse(source: &str) -> Result<ParsedTemplate, Problem> {
    parse_tree(source).map_err(|error| locate(source, &error))
}

/// A syntax error with its line and column.
pub(super) fn locate(source: &str, error: &SyntaxError) -> Problem {
    let before = &source[..error.at];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    Problem::at(line, column, &*error.text)
}

fn parse_tree(source: &str) -> Result<ParsedTemplate, SyntaxError> {
    let mut parser = Parser::new(source);
    let (mut program, stop) = parser.program()?;
    if let Some(stop) = stop {
        return Err(match stop {
            Stop::End { at, .. } => SyntaxError::new(at, "there is no open block to close"),
            Stop::Else { at, .. } | Stop::ElseIf { at, .. } => {
                SyntaxError::new(at, "else is only allowed inside a block")
            }
        });
    }
    whitespace::trim(source, &mut program);
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
            trimmed: whole.clone(),
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

    /// Runs `work` with the stack size of the render pool.
    fn with_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(32 << 20).spawn(work);
        thread.unwrap().join().unwrap()
    }

    fn check(source: &str) -> Result<(), String> {
        let source = source.to_owned();
        with_stack(move || parse(&source).map(|_| ()).map_err(String::from))
    }

    #[test]
    fn simple_templates_render_each_element_at_most_once() {
        let is_simple = |source: &str| {
            let source = source.to_owned();
            with_stack(move || parse(&source).unwrap().is_simple())
        };
        let nested = |depth: usize| "{{#if a}}".repeat(depth) + "b" + &"{{/if}}".repeat(depth);
        for source in [
            "plain",
            "{{name}} {{{user.name}}} {{this.len}}{{! each }}",
            "{{#if a}}b{{else if c}}{{d}}{{else}}e{{/if}}{{#unless a}}{{b}}{{/unless}}",
            &nested(SIMPLE_DEPTH_MAX),
        ] {
            assert!(is_simple(source), "{source}");
        }
        for source in [
            "{{#each items}}{{this}}{{/each}}",
            "{{#items}}{{this}}{{/items}}",
            "{{#if a}}{{#each items}}{{this}}{{/each}}{{/if}}",
            "{{#with user}}{{name}}{{/with}}",
            "{{#if (eq a b)}}c{{/if}}",
            "{{len items}}{{lookup a b}}",
            &nested(SIMPLE_DEPTH_MAX + 1),
        ] {
            assert!(!is_simple(source), "{source}");
        }
    }

    #[test]
    fn unsupported_and_invalid_tags_are_refused_with_their_line() {
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
            ("{{else}}", "else is only allowed inside a block"),
            ("{{/if}}", "no open block"),
            ("{{a.this}}", "is not a valid path"),
            ("{{{a}}", "}}}"),
            ("{{a \"b}}", "not closed"),
            ("{{{{raw}}}} x", "raw block"),
            ("{{}}", "expected a name"),
            ("{{a b=1 c}}", "before the named"),
        ] {
            let error = check(source).unwrap_err();
            assert!(error.contains(part), "{source}: {error}");
        }
    }

    #[test]
    fn sources_that_would_overflow_the_stack_are_refused() {
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
                assert!(check(&source).is_err(), "{start} × {depth}");
            }
        }
        let nested = |depth: usize| "{{#if a}}".repeat(depth) + &"{{/if}}".repeat(depth);
        assert_eq!(check(&nested(DEPTH_MAX)), Ok(()));
        let calls = "(not ".repeat(CALL_DEPTH_MAX);
        let deep = format!("{{{{not {calls}a{}}}}}", ")".repeat(CALL_DEPTH_MAX));
        assert_eq!(check(&deep), Ok(()));
    }

    #[test]
    fn parsing_takes_time_proportional_to_the_length() {
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
            assert!(check(&source).is_err() || unit.starts_with('\\'), "{unit}");
            assert!(
                began.elapsed().as_secs() < 5,
                "{unit}: {:?}",
                began.elapsed()
            );
        }
        assert_eq!(check(&"{{a}}\n".repeat(TAGS_MAX)), Ok(()));
        // The maximum number of tags, and a long text that a parser could search for each.
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
            let _verdict = check(&source);
            let took = began.elapsed();
            assert!(took.as_secs() < 5, "{unit}: {took:?}");
        }
    }

    #[test]
    fn a_comment_ends_at_its_first_end_mark() {
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
                    .filter(|node| matches!(node, TemplateNode::Text(_)));
                (texts.count(), source)
            });
            assert_eq!(found.0, texts, "{}", found.1);
        }
        for source in ["{{!-- a }}", "{{!-- a -~}}", "{{! a", "{{!-- --", "{{!--~}"] {
            let error = check(source).unwrap_err();
            assert!(error.contains("a comment is not closed"), "{source}");
        }
    }

    #[test]
    fn exceeded_limits_are_refused_with_their_position() {
        let names = |count: usize| {
            let names: Vec<String> = (0..count).map(|name| format!("n{name}")).collect();
            format!(
                "{{{{#each a as |{}|}}}}{{{{n0}}}}{{{{/each}}}}",
                names.join(" ")
            )
        };
        assert_eq!(check(&names(BLOCK_NAMES_MAX)), Ok(()));
        let nested = format!(
            "{}{}",
            "{{#each a as |b c|}}".repeat(BLOCK_NAMES_MAX / 2 + 1),
            "{{/each}}".repeat(BLOCK_NAMES_MAX / 2 + 1)
        );
        let path = |parts: usize| format!("{{{{{}a}}}}", "a.".repeat(parts - 1));
        assert_eq!(check(&path(VALUES_MAX)), Ok(()));
        for (source, part) in [
            (names(BLOCK_NAMES_MAX + 1), "more than 100 names here"),
            (names(50_000), "more than 100 names here"),
            (nested, "more than 100 names here"),
            (
                path(VALUES_MAX + 1),
                "more than 100000 values and path segments",
            ),
            (
                format!("{{{{and {}}}}}", "1 ".repeat(VALUES_MAX + 1)),
                "more than 100000 values and path segments",
            ),
            (
                format!("{{{{and a b {}}}}}", "c=1 ".repeat(VALUES_MAX)),
                "more than 100000 values and path segments",
            ),
            (
                format!("{{{{#if {}a}}}}x{{{{/if}}}}", "../".repeat(VALUES_MAX)),
                "more than 100000 values and path segments",
            ),
            ("{{a}}".repeat(TAGS_MAX + 1), "more than 20000 tags"),
            ("{{!a}}".repeat(TAGS_MAX + 1), "more than 20000 tags"),
            (
                "{{#if a}}{{/if}}".repeat(TAGS_MAX / 2 + 1),
                "more than 20000 tags",
            ),
        ] {
            let error = check(&source).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert!(error.starts_with("line 1, column "), "{error}");
        }
    }
}
