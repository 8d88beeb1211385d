//! Python.

use std::collections::BTreeSet;

use crate::language::Language;
use crate::layout::wrap;
use crate::model::{Field, Model, Shape, Type};
use crate::naming;
use crate::samples::Call;

mod sample;

const LINE_MAX: usize = 118;
/// How deep one alias may refer to another.
const DEPTH_MAX: usize = 16;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// What each record has besides its fields.
const RECORD_MEMBERS: [&str; 1] = ["raw"];

/// What each method takes besides the fields of its request.
const METHOD_ARGUMENTS: [&str; 5] = [
    "self",
    "idempotency_key",
    "timeout",
    "max_retries",
    "extra_headers",
];

/// Answers are classes, and requests are keyword arguments: the fields of the body, then those of the query. Their names
/// are in snake case. The runtime finds the name in JSON by rule, so the rule must lead back to it.
pub(crate) struct Python;

impl Language for Python {
    fn directory(&self) -> &'static str {
        "python"
    }

    fn name(&self) -> &'static str {
        "Python"
    }

    fn spell(&self, ty: &Type, input: bool) -> String {
        match ty {
            Type::String => "str".to_owned(),
            Type::DateTime if input => "Union[datetime, str]".to_owned(),
            Type::DateTime => "datetime".to_owned(),
            Type::Integer => "int".to_owned(),
            Type::Number => "float".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Any => "Any".to_owned(),
            Type::Named(name) => name.clone(),
            // Not `list`: resources have a method of that name.
            Type::List(item) if input => format!("Sequence[{}]", self.spell(item, input)),
            Type::List(item) => format!("List[{}]", self.spell(item, input)),
            Type::Map(value) if input => format!("Mapping[str, {}]", self.spell(value, input)),
            Type::Map(value) => format!("Dict[str, {}]", self.spell(value, input)),
            Type::Literal(serde_json::Value::Bool(true)) => "Literal[True]".to_owned(),
            Type::Literal(serde_json::Value::Bool(false)) => "Literal[False]".to_owned(),
            Type::Literal(serde_json::Value::Null) => "None".to_owned(),
            Type::Literal(value) => format!("Literal[{value}]"),
            Type::Union(variants) => {
                let variants: Vec<String> = variants
                    .iter()
                    .map(|variant| self.spell(variant, input))
                    .collect();
                format!("Union[{}]", variants.join(", "))
            }
            Type::Nullable(inner) => format!("Optional[{}]", self.spell(inner, input)),
        }
    }

    fn spell_in_client(&self, ty: &Type, input: bool) -> String {
        // The client has a `Settings` of its own.
        self.spell(&ty.renamed(&|name| format!("types.{name}")), input)
    }

    fn member(&self, words: &[String]) -> String {
        let name = words.join("_");
        if KEYWORDS.contains(&name.as_str()) {
            format!("{name}_")
        } else {
            name
        }
    }

    fn class(&self, words: &[String]) -> String {
        naming::pascal(words)
    }

    fn field(&self, name: &str) -> String {
        let member = self.member(&naming::words(name));
        if RECORD_MEMBERS.contains(&member.as_str()) {
            format!("{member}_")
        } else {
            member
        }
    }

    fn adapt(&self, model: &mut Model) -> Result<(), String> {
        for schema in &model.schemas {
            if let Shape::Object(fields) = &schema.shape {
                self.check_fields(fields, &schema.name)?;
            }
        }
        self.check_arguments(model)?;
        self.rename_in_texts(model);
        // Classes name others in annotations, which are read late. An alias is read at once.
        let mut schemas = model.schemas.clone();
        schemas.sort_by_key(|schema| depth(&schema.shape, model, DEPTH_MAX));
        model.schemas = schemas;
        Ok(())
    }

    fn comment(&self, text: &str, indent: usize) -> String {
        let text = text
            .trim()
            .replace('\\', "\\\\")
            .replace("\"\"\"", "\\\"\\\"\\\"");
        if text.is_empty() {
            return String::new();
        }
        let margin = " ".repeat(indent);
        let width = LINE_MAX - indent - 3;
        let mut parts = text.split("\n@param ");
        let mut lines = wrap(parts.next().unwrap_or_default().trim_end(), width);
        let described = |part: &&str| part.trim().contains(' ');
        let mut arguments = parts.filter(described).peekable();
        if arguments.peek().is_some() {
            lines.extend([String::new(), "Args:".to_owned()]);
        }
        for argument in arguments {
            let (name, description) = argument.split_once(' ').unwrap_or((argument, ""));
            let words: Vec<&str> = description.split_whitespace().collect();
            let wrapped = wrap(&format!("{name}: {}", words.join(" ")), width - 8);
            let hang = |(line, text): (usize, String)| {
                format!("{}{text}", if line == 0 { "    " } else { "        " })
            };
            lines.extend(wrapped.into_iter().enumerate().map(hang));
        }
        if let [only] = lines.as_slice()
            && !only.ends_with(['"', '\\'])
            && only.chars().count() + indent + 6 <= LINE_MAX
        {
            return format!("{margin}\"\"\"{only}\"\"\"\n");
        }
        let mut docstring = format!("{margin}\"\"\"");
        for (place, line) in lines.iter().enumerate() {
            if place > 0 && !line.is_empty() {
                docstring.push_str(&margin);
            }
            docstring.push_str(line);
            docstring.push('\n');
        }
        format!("{docstring}{margin}\"\"\"\n")
    }

    fn sample(&self, call: &Call<'_>) -> Result<String, String> {
        Ok(sample::sample(call))
    }
}

impl Python {
    fn check_fields(&self, fields: &[Field], at: &str) -> Result<(), String> {
        let lost = fields
            .iter()
            .find(|field| wire(&self.field(&field.name)) != field.name);
        lost.map_or(Ok(()), |field| {
            let name = self.field(&field.name);
            Err(format!(
                "{at}: the runtime would write {name} as {}, not as {}",
                wire(&name),
                field.name
            ))
        })
    }

    /// Descriptions call fields as JSON does, in backticks: `templateId`. Here they have other names.
    fn rename_in_texts(&self, model: &mut Model) {
        let names = field_names(model);
        let rename = |text: &mut String| {
            let parts = text.split('`').map(|part| {
                // Names of one word stay: they may be something else.
                let is_name = names.contains(part) && part.contains(char::is_uppercase);
                if is_name {
                    self.field(part)
                } else {
                    part.to_owned()
                }
            });
            *text = parts.collect::<Vec<_>>().join("`");
        };
        for schema in &mut model.schemas {
            rename(&mut schema.description);
            if let Shape::Object(fields) = &mut schema.shape {
                fields
                    .iter_mut()
                    .for_each(|field| rename(&mut field.description));
            }
        }
        for resource in &mut model.resources {
            rename(&mut resource.description);
            for method in &mut resource.methods {
                rename(&mut method.description);
                let path = method.path_parameters.iter_mut();
                path.for_each(|field| rename(&mut field.description));
            }
        }
    }

    /// A method takes all as arguments: they need different names, and a body has to be an object.
    fn check_arguments(&self, model: &Model) -> Result<(), String> {
        for resource in &model.resources {
            for method in &resource.methods {
                let at = format!("{} {}", method.verb, method.route);
                let mut names: Vec<String> = METHOD_ARGUMENTS.map(str::to_owned).to_vec();
                let path = method.path_parameters.iter();
                names.extend(
                    path.map(|field| {
                        self.member(&naming::parameter_of(&field.name, &resource.path))
                    }),
                );
                let mut given: BTreeSet<String> = BTreeSet::new();
                if let Some(body) = &method.body {
                    let Some(Shape::Object(fields)) = model.shape(&body.ty) else {
                        return Err(format!("{at}: the body is not an object"));
                    };
                    given.extend(fields.iter().map(|field| self.field(&field.name)));
                }
                // A name that is in both the body and the query means the same.
                if let Some(query) = &method.query
                    && let Some(Shape::Object(fields)) = model.shape(&Type::Named(query.clone()))
                {
                    given.extend(fields.iter().map(|field| self.field(&field.name)));
                }
                if let Some(twice) = names.iter().find(|name| given.contains(*name)) {
                    return Err(format!("{at}: two arguments are called {twice}"));
                }
            }
        }
        Ok(())
    }
}

/// The names of all fields, without those that are also values of an enumeration.
fn field_names(model: &Model) -> BTreeSet<String> {
    let (mut names, mut values) = (BTreeSet::new(), BTreeSet::new());
    for schema in &model.schemas {
        match &schema.shape {
            Shape::Object(fields) => names.extend(fields.iter().map(|field| field.name.clone())),
            Shape::Enum(found) => values.extend(found.iter().cloned()),
            Shape::Union { .. } | Shape::Alias(_) => {}
        }
    }
    names.difference(&values).cloned().collect()
}

/// The name in JSON of a field or key, as the runtime finds it.
fn wire(name: &str) -> String {
    naming::camel(
        &name
            .trim_end_matches('_')
            .split('_')
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    )
}

/// Enumerations first, then classes, then aliases, each after those that it names.
fn depth(shape: &Shape, model: &Model, left: usize) -> usize {
    let mut deepest = 0;
    match shape {
        Shape::Enum(_) => return 0,
        Shape::Object(_) => return 1,
        Shape::Union { variants, .. } => variants.iter().for_each(|variant| {
            deepest = deepest.max(depth_of_names(variant, model, left));
        }),
        Shape::Alias(ty) => deepest = depth_of_names(ty, model, left),
    }
    deepest.max(1) + 1
}

fn depth_of_names(ty: &Type, model: &Model, left: usize) -> usize {
    let mut deepest = 0;
    ty.names(&mut |name| {
        if let (Some(shape), 1..) = (model.shape(&Type::Named(name.to_owned())), left) {
            deepest = deepest.max(depth(shape, model, left - 1));
        }
    });
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Schema;

    fn model(schemas: Vec<Schema>) -> Model {
        Model {
            version: "1".to_owned(),
            schemas,
            resources: Vec::new(),
            webhook_event: "Event".to_owned(),
        }
    }

    fn schema(name: &str, shape: Shape) -> Schema {
        let (name, description, input) = (name.to_owned(), String::new(), false);
        Schema {
            name,
            description,
            shape,
            input,
        }
    }

    fn object(field: &str) -> Shape {
        let (name, description, required) = (field.to_owned(), String::new(), true);
        Shape::Object(vec![Field {
            name,
            description,
            required,
            ty: Type::String,
            zero: false,
            base64: false,
            example: serde_json::Value::Null,
        }])
    }

    #[test]
    fn types_are_spelled() {
        let spell = |ty: Type, input| Python.spell(&ty, input);
        let colours = Type::List(Box::new(Type::Named("Colour".to_owned())));
        assert_eq!(spell(colours.clone(), false), "List[Colour]");
        assert_eq!(spell(colours.clone(), true), "Sequence[Colour]");
        assert_eq!(
            Python.spell_in_client(&colours, false),
            "List[types.Colour]"
        );
        let map = Type::Nullable(Box::new(Type::Map(Box::new(Type::Any))));
        assert_eq!(spell(map, false), "Optional[Dict[str, Any]]");
        assert_eq!(spell(Type::Literal(true.into()), false), "Literal[True]");
        assert_eq!(spell(Type::Literal("A".into()), false), "Literal[\"A\"]");
        assert_eq!(spell(Type::DateTime, true), "Union[datetime, str]");
    }

    #[test]
    fn names_that_python_needs_itself_get_an_underscore() {
        assert_eq!(Python.field("from"), "from_");
        assert_eq!(Python.field("raw"), "raw_");
        assert_eq!(Python.field("createdAt"), "created_at");
        assert_eq!(wire("from_"), "from");
        assert_eq!(wire("created_at"), "createdAt");
    }

    #[test]
    fn a_name_that_the_rule_would_change_is_refused() {
        let error = Python
            .adapt(&mut model(vec![schema("Odd", object("URL"))]))
            .unwrap_err();
        assert_eq!(error, "Odd: the runtime would write url as url, not as URL");
    }

    #[test]
    fn an_alias_stands_behind_what_it_names() {
        let alias = |name: &str| Shape::Alias(Type::Named(name.to_owned()));
        let schemas = vec![
            schema("A", alias("B")),
            schema("B", alias("C")),
            schema("C", object("id")),
            schema("D", Shape::Enum(vec!["X".to_owned()])),
        ];
        let mut model = model(schemas);
        Python.adapt(&mut model).unwrap();
        let names: Vec<&str> = model
            .schemas
            .iter()
            .map(|schema| schema.name.as_str())
            .collect();
        assert_eq!(names, ["D", "C", "B", "A"]);
    }

    #[test]
    fn texts_have_the_names_of_this_language() {
        let mut model = model(vec![
            schema("A", object("templateId")),
            schema("B", Shape::Enum(vec!["recipientDomain".to_owned()])),
        ]);
        model.schemas[0].description =
            "`templateId`, `{{templateId}}`, `recipientDomain`".to_owned();
        Python.adapt(&mut model).unwrap();
        let text = &model.schemas[1].description;
        assert_eq!(text, "`template_id`, `{{templateId}}`, `recipientDomain`");
    }

    #[test]
    fn a_docstring_lists_the_arguments_and_cannot_end_early() {
        assert_eq!(
            Python.comment("a \"\"\" \\d", 0),
            "\"\"\"a \\\"\\\"\\\" \\\\d\"\"\"\n"
        );
        assert_eq!(Python.comment("say \"a\"", 0), "\"\"\"say \"a\"\n\"\"\"\n");
        assert_eq!(
            Python.comment("Get.\n\n@param id The id\nof it.\n@param more ", 2),
            "  \"\"\"Get.\n\n  Args:\n      id: The id of it.\n  \"\"\"\n"
        );
    }
}
