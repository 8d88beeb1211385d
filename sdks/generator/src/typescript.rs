//! TypeScript.

use serde_json::Value;

use crate::language::Language;
use crate::layout::{Node, Style, wrap};
use crate::model::{Answer, Type};
use crate::naming;
use crate::samples::Call;

const LINE_MAX: usize = 118;
const SAMPLE: Style = Style {
    indent: "  ",
    padding: " ",
    width: 80,
    hugs: true,
    aligns: false,
};

/// TypeScript spells types as the JSON has them: no conversion, so nothing that a newer service adds gets lost.
pub(crate) struct TypeScript;

impl Language for TypeScript {
    fn directory(&self) -> &'static str {
        "typescript"
    }

    fn name(&self) -> &'static str {
        "TypeScript"
    }

    fn spell(&self, ty: &Type, input: bool) -> String {
        match ty {
            Type::String => "string".to_owned(),
            Type::DateTime if input => "string | Date".to_owned(),
            Type::DateTime => "string".to_owned(),
            Type::Integer | Type::Number => "number".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Any => "unknown".to_owned(),
            Type::Named(name) => name.clone(),
            // So that a request takes a constant, too.
            Type::List(item) if input => match self.spell(item, input) {
                item if item.contains([' ', '|']) => format!("ReadonlyArray<{item}>"),
                item => format!("readonly {item}[]"),
            },
            Type::List(item) => match self.spell(item, input) {
                item if item.contains([' ', '|']) => format!("Array<{item}>"),
                item => format!("{item}[]"),
            },
            Type::Map(value) => format!("Record<string, {}>", self.spell(value, input)),
            Type::Literal(value) => value.to_string(),
            Type::Union(variants) => {
                let variants: Vec<String> = variants
                    .iter()
                    .map(|variant| self.spell(variant, input))
                    .collect();
                variants.join(" | ")
            }
            Type::Nullable(inner) => format!("{} | null", self.spell(inner, input)),
        }
    }

    fn spell_in_client(&self, ty: &Type, input: bool) -> String {
        // The client has a `Settings` of its own.
        self.spell(&ty.renamed(&|name| format!("types.{name}")), input)
    }

    fn member(&self, words: &[String]) -> String {
        naming::camel(words)
    }

    fn class(&self, words: &[String]) -> String {
        naming::pascal(words)
    }

    fn field(&self, name: &str) -> String {
        let plain = name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_');
        if plain {
            name.to_owned()
        } else {
            format!("\"{name}\"")
        }
    }

    fn comment(&self, text: &str, indent: usize) -> String {
        let text = text.trim().replace("*/", "*\\/");
        let margin = " ".repeat(indent);
        if text.is_empty() {
            return String::new();
        }
        let lines = wrap(&text, LINE_MAX - indent - 3);
        if let [only] = lines.as_slice()
            && only.chars().count() + indent + 7 <= LINE_MAX
        {
            return format!("{margin}/** {only} */\n");
        }
        let lines: String = lines
            .iter()
            .map(|line| {
                if line.is_empty() {
                    format!("{margin} *\n")
                } else {
                    format!("{margin} * {line}\n")
                }
            })
            .collect();
        format!("{margin}/**\n{lines}{margin} */\n")
    }

    fn sample(&self, call: &Call<'_>) -> Result<String, String> {
        let path: Vec<String> = call
            .resource
            .path
            .iter()
            .map(|words| self.member(words))
            .collect();
        let method = format!(
            "waypost.{}.{}(",
            path.join("."),
            self.member(&call.method.name)
        );
        let mut arguments: Vec<Node> = call
            .path()
            .map(|id| Node::text(format!("{id:?}")))
            .collect();
        arguments.extend(
            call.method
                .body
                .as_ref()
                .map(|body| self.literal(&body.example)),
        );
        let call_text = Node::list(method, arguments, ")");
        let statement = match &call.method.answer {
            Answer::Page(_) => {
                let open = call_text.after("for await (const item of ").before(") {");
                format!("{}\n  console.log(item);\n}}", open.render(SAMPLE, 0))
            }
            Answer::Raw if call.has_answer() => {
                let response = call_text.after("const response = await ").before(";");
                format!(
                    "{}\nconst bytes = await response.arrayBuffer();",
                    response.render(SAMPLE, 0)
                )
            }
            Answer::Raw => call_text.after("await ").before(";").render(SAMPLE, 0),
            Answer::Whole(_) | Answer::Data(_) => {
                let variable = self.member(&call.variable());
                let answer = call_text
                    .after(&format!("const {variable} = await "))
                    .before(";");
                format!("{}\nconsole.log({variable});", answer.render(SAMPLE, 0))
            }
        };
        Ok(format!(
            "import {{ Waypost }} from \"waypost\";\n\nconst waypost = new Waypost();\n{statement}\n"
        ))
    }
}

impl TypeScript {
    /// A value as one writes it in a program.
    fn literal(&self, value: &Value) -> Node {
        match value {
            Value::Array(items) => Node::list(
                "[",
                items.iter().map(|item| self.literal(item)).collect(),
                "]",
            ),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    self.literal(value)
                        .after(&format!("{}: ", self.field(name)))
                };
                Node::list("{", fields.iter().map(field).collect(), "}")
            }
            simple @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Node::text(simple.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_spelled() {
        let spell = |ty: Type| TypeScript.spell(&ty, false);
        assert_eq!(
            spell(Type::List(Box::new(Type::Named("Colour".to_owned())))),
            "Colour[]"
        );
        assert_eq!(
            spell(Type::List(Box::new(Type::Union(vec![
                Type::String,
                Type::Integer
            ])))),
            "Array<string | number>"
        );
        assert_eq!(
            spell(Type::Nullable(Box::new(Type::Map(Box::new(Type::Any))))),
            "Record<string, unknown> | null"
        );
        assert_eq!(spell(Type::Literal("A".into())), "\"A\"");
        assert_eq!(TypeScript.spell(&Type::DateTime, true), "string | Date");
        let list = Type::List(Box::new(Type::String));
        assert_eq!(TypeScript.spell(&list, true), "readonly string[]");
    }

    #[test]
    fn a_comment_cannot_end_early() {
        assert_eq!(TypeScript.comment("a */ b", 2), "  /** a *\\/ b */\n");
        assert_eq!(TypeScript.comment("", 2), "");
        assert_eq!(
            TypeScript.comment("a\nb\n\n\n- c\n- d", 0),
            "/**\n * a b\n *\n * - c\n * - d\n */\n"
        );
    }

    #[test]
    fn a_field_that_is_no_identifier_is_quoted() {
        assert_eq!(TypeScript.field("messageId"), "messageId");
        assert_eq!(TypeScript.field("Retry-After"), "\"Retry-After\"");
    }
}
