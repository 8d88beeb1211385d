//! Rust. Types are checked when an answer is read, so whatever may grow has a place for what is not known yet: an enum has
//! a variant `Other`, an object of an answer has `unknown_fields`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::language::Language;
use crate::layout::wrap;
use crate::model::{Model, Type};
use crate::naming;
use crate::samples::Call;

mod details;
mod sample;

const LINE_MAX: usize = 120;

/// Words that are no names as they are. All but the last four are after `r#`.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield", "self", "super", "crate",
];

/// Rust has types of its own for what JSON has: a time is a time, an absent field is `None`.
pub(crate) struct Rust;

impl Language for Rust {
    fn directory(&self) -> &'static str {
        "rust"
    }

    fn name(&self) -> &'static str {
        "Rust"
    }

    fn spell(&self, ty: &Type, input: bool) -> String {
        match ty {
            Type::String => "String".to_owned(),
            Type::DateTime => "DateTime<Utc>".to_owned(),
            Type::Integer => "i64".to_owned(),
            Type::Number => "f64".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Any => "Value".to_owned(),
            Type::Named(name) => name.clone(),
            Type::List(item) => format!("Vec<{}>", self.spell(item, input)),
            // So that a request takes what `json!` makes.
            Type::Map(value) if input && **value == Type::Any => "Value".to_owned(),
            Type::Map(value) if **value == Type::Any => "Map<String, Value>".to_owned(),
            Type::Map(value) => format!(
                "std::collections::BTreeMap<String, {}>",
                self.spell(value, input)
            ),
            Type::Literal(Value::Bool(_)) => "bool".to_owned(),
            Type::Literal(Value::Number(_)) => "i64".to_owned(),
            Type::Literal(_) => "String".to_owned(),
            // `details::schemas` gives names to the unions within a schema, but not to one within such a union.
            Type::Union(_) => "Value".to_owned(),
            Type::Nullable(inner) => format!("Option<{}>", self.spell(inner, input)),
        }
    }

    fn spell_in_client(&self, ty: &Type, input: bool) -> String {
        // The client has a `Settings` of its own.
        self.spell(&ty.renamed(&|name| format!("types::{name}")), input)
    }

    fn member(&self, words: &[String]) -> String {
        let name = words.join("_");
        match KEYWORDS.iter().position(|keyword| *keyword == name) {
            Some(place) if place >= KEYWORDS.len() - 3 => format!("{name}_"),
            Some(_) => format!("r#{name}"),
            None => name,
        }
    }

    fn class(&self, words: &[String]) -> String {
        naming::pascal(words)
    }

    fn field(&self, name: &str) -> String {
        self.member(&naming::words(name))
    }

    fn comment(&self, text: &str, indent: usize) -> String {
        let margin = " ".repeat(indent);
        let mut comment = String::new();
        // What belongs to an item of a list is indented below it.
        let mut hanging = "";
        for line in wrap(&markdown(text.trim()), LINE_MAX - indent - "/// - ".len()) {
            match line.as_str() {
                "" => hanging = "",
                item if item.starts_with("- ") => {
                    comment.push_str(&format!("{margin}/// {item}\n"));
                    hanging = "  ";
                    continue;
                }
                _ => {}
            }
            let line = format!("{margin}/// {hanging}{line}");
            comment.push_str(line.trim_end());
            comment.push('\n');
        }
        comment
    }

    fn adapt(&self, model: &mut Model) -> Result<(), String> {
        model.schemas = details::schemas(model);
        Ok(())
    }

    fn extend(&self, model: &Model, context: &mut Value) -> Result<(), String> {
        for (index, schema) in model.schemas.iter().enumerate() {
            context["schemas"][index]["details"] = details::details(schema, model);
        }
        Ok(())
    }

    fn sample(&self, call: &Call<'_>) -> Result<String, String> {
        sample::sample(call)
    }

    fn format(&self, text: String) -> Result<String, String> {
        rustfmt(text, LINE_MAX)
    }
}

/// Lays out a text as `sdks/rust/rustfmt.toml` says, in lines of this width.
fn rustfmt(text: String, width: usize) -> Result<String, String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--quiet"])
        .args([
            "--config",
            &format!("max_width={width},use_small_heuristics=Max"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("rustfmt cannot be run: {error}"))?;
    let mut input = rustfmt.stdin.take().ok_or("rustfmt takes no input")?;
    // In a thread of its own: a pipe that is full would wait for one that is not read.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = rustfmt
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let written = writer.join().map_err(|_| "rustfmt's input broke")?;
    match written {
        Ok(()) if output.status.success() => {
            String::from_utf8(output.stdout).map_err(|error| error.to_string())
        }
        _ => Err(format!(
            "rustfmt refused the text: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// The text with what rustdoc would take for HTML, links or bare addresses made plain, except in code.
fn markdown(text: &str) -> String {
    let mut plain = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            plain.push('`');
        }
        if index % 2 == 1 {
            plain.push_str(part);
            continue;
        }
        for word in part.split_inclusive(char::is_whitespace) {
            if word.starts_with("https://") || word.starts_with("http://") {
                let address =
                    word.trim_end_matches(|c: char| c.is_whitespace() || ".,;:)".contains(c));
                plain.push_str(&format!("<{address}>{}", &word[address.len()..]));
            } else {
                plain.push_str(
                    &word
                        .replace('<', "\\<")
                        .replace('[', "\\[")
                        .replace(']', "\\]"),
                );
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled() {
        let spell = |ty: Type| Rust.spell(&ty, false);
        let map = |value| Type::Map(Box::new(value));
        assert_eq!(
            spell(Type::List(Box::new(Type::Named("Colour".to_owned())))),
            "Vec<Colour>"
        );
        assert_eq!(
            spell(Type::Nullable(Box::new(map(Type::Any)))),
            "Option<Map<String, Value>>"
        );
        assert_eq!(Rust.spell(&map(Type::Any), true), "Value");
        assert_eq!(
            spell(map(Type::Integer)),
            "std::collections::BTreeMap<String, i64>"
        );
        assert_eq!(spell(Type::Literal(true.into())), "bool");
    }

    #[test]
    fn a_keyword_is_a_name_all_the_same() {
        assert_eq!(Rust.field("type"), "r#type");
        assert_eq!(Rust.field("self"), "self_");
        assert_eq!(Rust.field("providerAccountId"), "provider_account_id");
    }

    #[test]
    fn a_comment_is_no_html_and_no_link() {
        assert_eq!(
            Rust.comment("a <b> [c] `<d> [e]`, https://example.com/x.", 4),
            "    /// a \\<b> \\[c\\] `<d> [e]`, <https://example.com/x>.\n"
        );
        assert_eq!(Rust.comment("", 0), "");
        assert_eq!(Rust.comment("a\nb\n\n- c", 0), "/// a b\n///\n/// - c\n");
        let long = format!("- {}\n\nb", "a ".repeat(60));
        let comment = Rust.comment(&long, 0);
        assert!(comment.contains("\n///   a") && comment.ends_with("\n///\n/// b\n"));
    }

    #[test]
    fn the_formatter_refuses_what_is_no_rust() {
        assert_eq!(Rust.format("fn  a( ){}".to_owned()).unwrap(), "fn a() {}\n");
        assert!(Rust.format("fn (".to_owned()).is_err());
    }
}
