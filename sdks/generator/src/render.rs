//! Renders the templates of a language. A template's path below `templates/<language>/`, without `.jinja`, is the path of
//! what it makes below `sdks/<language>/`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Value, json};

use crate::language::Language;
use crate::model::{Answer, Field, Method, Model, Resource, Schema, Shape, Type};
use crate::naming::{self, Words};

/// The files of a language: their paths below `sdks/<language>/`, and their texts.
pub(crate) fn render(
    model: &Model,
    language: &'static dyn Language,
    templates: &Path,
) -> Result<Vec<(PathBuf, String)>, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.add_filter("comment", move |text: &str, indent: usize| {
        language.comment(text, indent)
    });
    environment.add_filter("json", |value: &str| {
        serde_json::to_string(value)
            .map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
    let mut model = model.clone();
    let failed = |error| format!("{}: {error}", language.directory());
    language.adapt(&mut model).map_err(failed)?;
    let mut context = context(&model, language);
    language.extend(&model, &mut context).map_err(failed)?;
    let directory = templates.join(language.directory());
    let mut files = Vec::new();
    for path in
        templates_in(&directory).map_err(|error| format!("{}: {error}", directory.display()))?
    {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let source = fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let text = environment
            .render_str(&source, &context)
            .map_err(|error| failed(&error))?;
        let text = language.format(text).map_err(|error| failed(&error))?;
        let name = path
            .strip_prefix(&directory)
            .map_err(|error| failed(&error))?
            .with_extension("");
        files.push((name, text));
    }
    Ok(files)
}

fn templates_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jinja")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The model as templates see it: everything is spelled in the language already.
fn context(model: &Model, language: &dyn Language) -> Value {
    let schemas: Vec<Value> = model
        .schemas
        .iter()
        .map(|schema| schema_context(schema, language))
        .collect();
    let resources: Vec<Value> = model
        .resources
        .iter()
        .map(|resource| resource_context(resource, model, language))
        .collect();
    json!({
        "version": model.version,
        "webhookEvent": model.webhook_event,
        "schemas": schemas,
        "resources": resources,
        "errors": error_classes(model, language),
    })
}

fn schema_context(schema: &Schema, language: &dyn Language) -> Value {
    let mut context =
        json!({"name": schema.name, "description": schema.description, "input": schema.input});
    match &schema.shape {
        Shape::Object(fields) => {
            let fields: Vec<Value> = fields
                .iter()
                .map(|field| field_context(field, schema.input, language))
                .collect();
            context["kind"] = "object".into();
            context["fields"] = fields.into();
        }
        Shape::Enum(values) => {
            context["kind"] = "enum".into();
            context["values"] = values.clone().into();
        }
        Shape::Union {
            variants,
            discriminator,
        } => {
            let variants: Vec<String> = variants
                .iter()
                .map(|variant| language.spell(variant, schema.input))
                .collect();
            context["kind"] = "union".into();
            context["variants"] = variants.into();
            context["discriminator"] = discriminator.clone().into();
        }
        Shape::Alias(ty) => {
            context["kind"] = "alias".into();
            context["type"] = language.spell(ty, schema.input).into();
        }
    }
    context
}

fn field_context(field: &Field, input: bool, language: &dyn Language) -> Value {
    json!({
        "name": language.field(&field.name),
        "member": language.member(&naming::words(&field.name)),
        "wire": field.name,
        "description": field.description,
        "required": field.required,
        "type": language.spell(&field.ty, input),
    })
}

fn resource_context(resource: &Resource, model: &Model, language: &dyn Language) -> Value {
    let children = model.resources.iter().filter(|other| {
        other
            .path
            .split_last()
            .is_some_and(|(_, above)| above == resource.path)
    });
    let children: Vec<Value> = children
        .map(|child| json!({"name": language.member(&child.path[child.path.len() - 1]), "class": class_of(child, language), "description": child.description}))
        .collect();
    let methods: Vec<Value> = resource
        .methods
        .iter()
        .map(|method| method_context(method, resource, model, language))
        .collect();
    json!({
        "name": language.member(&resource.path[resource.path.len() - 1]),
        "description": resource.description,
        "class": class_of(resource, language),
        "top": resource.path.len() == 1,
        "children": children,
        "methods": methods,
    })
}

fn class_of(resource: &Resource, language: &dyn Language) -> String {
    language.class(&resource.path.iter().flatten().cloned().collect::<Words>())
}

fn method_context(
    method: &Method,
    resource: &Resource,
    model: &Model,
    language: &dyn Language,
) -> Value {
    let parameter = |field: &Field| {
        let mut context = field_context(field, true, language);
        context["member"] = language
            .member(&naming::parameter_of(&field.name, &resource.path))
            .into();
        context
    };
    let parameters: Vec<Value> = method.path_parameters.iter().map(parameter).collect();
    let body = method.body.as_ref().map(|body| {
        json!({
            "type": language.spell_in_client(&body.ty, true),
            "required": body.required,
            "text": body.text,
            "fields": fields_in_client(&body.ty, model, language),
        })
    });
    let query = method.query.as_ref().map(|name| {
        let schema = model.schemas.iter().find(|schema| schema.name == *name);
        let required = schema.is_some_and(|schema| matches!(&schema.shape, Shape::Object(fields) if fields.iter().any(|field| field.required)));
        let ty = Type::Named(name.clone());
        json!({
            "type": language.spell_in_client(&ty, true),
            "required": required,
            "fields": fields_in_client(&ty, model, language),
        })
    });
    let (answer, ty) = match &method.answer {
        Answer::Whole(ty) => ("whole", language.spell_in_client(ty, false)),
        Answer::Data(ty) => ("data", language.spell_in_client(ty, false)),
        Answer::Page(ty) => ("page", language.spell_in_client(ty, false)),
        Answer::Raw => ("raw", String::new()),
    };
    json!({
        "name": language.member(&method.name),
        "summary": method.summary,
        "description": method.description,
        "verb": method.verb,
        "route": method.route,
        "parameters": parameters,
        "body": body,
        "query": query,
        "answer": answer,
        "type": ty,
        "idempotent": method.idempotent,
        "repeatable": method.repeatable,
    })
}

/// The fields of an object that a method takes, for languages that take each as an argument.
fn fields_in_client(ty: &Type, model: &Model, language: &dyn Language) -> Vec<Value> {
    let Some(Shape::Object(fields)) = model.shape(ty) else {
        return Vec::new();
    };
    let field = |field: &Field| {
        let mut context = field_context(field, true, language);
        context["type"] = language.spell_in_client(&field.ty, true).into();
        context
    };
    fields.iter().map(field).collect()
}

/// A class for each error code: `NotFoundError` for `NOT_FOUND`.
fn error_classes(model: &Model, language: &dyn Language) -> Vec<Value> {
    let codes = model
        .schemas
        .iter()
        .find(|schema| schema.name == "ErrorCode");
    let Some(Schema {
        shape: Shape::Enum(codes),
        ..
    }) = codes
    else {
        return Vec::new();
    };
    let class = |code: &String| {
        let mut words = naming::words(code);
        if words.last().is_none_or(|last| last != "error") {
            words.push("error".to_owned());
        }
        json!({"code": code, "class": language.class(&words)})
    };
    codes.iter().map(class).collect()
}
