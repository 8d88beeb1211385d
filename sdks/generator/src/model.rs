//! The API as all languages see it: schemas, resources and their methods. [`crate::schemas`] and [`crate::operations`]
//! build it from the OpenAPI document; a [`crate::language::Language`] spells it.

use serde_json::Value;

use crate::naming::Words;

/// The whole API.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// The version of the API, which is that of the SDKs.
    pub(crate) version: String,
    /// All named types that the methods, errors and webhooks need, in the order of the document.
    pub(crate) schemas: Vec<Schema>,
    /// The resources of the client, in the order of the document.
    pub(crate) resources: Vec<Resource>,
    /// The schema of what is posted to webhook endpoints.
    pub(crate) webhook_event: String,
}

impl Model {
    /// What a type that has a name is.
    pub(crate) fn shape(&self, ty: &Type) -> Option<&Shape> {
        let Type::Named(name) = ty else { return None };
        let mut schemas = self.schemas.iter();
        schemas
            .find(|schema| schema.name == *name)
            .map(|schema| &schema.shape)
    }

    /// The variant of a union that a value is of: a list, a text, or the object with its fields.
    pub(crate) fn variant_of<'a>(&self, value: &Value, variants: &'a [Type]) -> Option<&'a Type> {
        variants.iter().find(|variant| match value {
            Value::Array(_) => matches!(variant, Type::List(_)),
            Value::String(_) => **variant == Type::String,
            Value::Object(given) => match self.shape(variant) {
                Some(Shape::Object(fields)) => {
                    let has = |key: &String| fields.iter().any(|field| field.name == *key);
                    let is_given =
                        |field: &Field| !field.required || given.contains_key(&field.name);
                    given.keys().all(has) && fields.iter().all(is_given)
                }
                Some(Shape::Enum(_) | Shape::Union { .. } | Shape::Alias(_)) | None => false,
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        })
    }
}

/// A named type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) shape: Shape,
    /// Whether it occurs in requests only, so that a language may take more kinds of values for its fields.
    pub(crate) input: bool,
}

/// What a named type is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Object(Vec<Field>),
    /// Open: a newer service may send other values.
    Enum(Vec<String>),
    Union {
        variants: Vec<Type>,
        discriminator: Option<String>,
    },
    Alias(Type),
}

/// A field of an object, or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// As it is in JSON or in the query.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) required: bool,
    pub(crate) ty: Type,
    /// A value that the service takes, or null.
    pub(crate) example: Value,
    /// Whether the zero of its type (an empty text, 0) is a value of its own, by its limits and its format.
    pub(crate) zero: bool,
    /// Whether it is a text that has bytes in base64.
    pub(crate) base64: bool,
}

/// The type of a field, parameter or answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    String,
    DateTime,
    Integer,
    Number,
    Boolean,
    Any,
    Named(String),
    List(Box<Type>),
    Map(Box<Type>),
    Literal(Value),
    Union(Vec<Type>),
    Nullable(Box<Type>),
}

impl Type {
    /// Calls `visit` with each schema that the type names.
    pub(crate) fn names(&self, visit: &mut dyn FnMut(&str)) {
        match self {
            Self::Named(name) => visit(name),
            Self::List(inner) | Self::Map(inner) | Self::Nullable(inner) => inner.names(visit),
            Self::Union(variants) => variants.iter().for_each(|variant| variant.names(visit)),
            Self::String
            | Self::DateTime
            | Self::Integer
            | Self::Number
            | Self::Boolean
            | Self::Any
            | Self::Literal(_) => {}
        }
    }
}

impl Type {
    /// The same type, with other names for the schemas.
    pub(crate) fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Self {
        let inner = |ty: &Self| Box::new(ty.renamed(rename));
        match self {
            Self::Named(name) => Self::Named(rename(name)),
            Self::List(item) => Self::List(inner(item)),
            Self::Map(value) => Self::Map(inner(value)),
            Self::Nullable(ty) => Self::Nullable(inner(ty)),
            Self::Union(variants) => Self::Union(
                variants
                    .iter()
                    .map(|variant| variant.renamed(rename))
                    .collect(),
            ),
            Self::String
            | Self::DateTime
            | Self::Integer
            | Self::Number
            | Self::Boolean
            | Self::Any
            | Self::Literal(_) => self.clone(),
        }
    }
}

impl Schema {
    /// Calls `visit` with each schema that this one names.
    pub(crate) fn names(&self, visit: &mut dyn FnMut(&str)) {
        match &self.shape {
            Shape::Object(fields) => fields.iter().for_each(|field| field.ty.names(visit)),
            Shape::Union { variants, .. } => {
                variants.iter().for_each(|variant| variant.names(visit))
            }
            Shape::Alias(ty) => ty.names(visit),
            Shape::Enum(_) => {}
        }
    }
}

/// A group of methods, such as `messages`.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// Its names, outermost first: `templates` and `versions` for `templates.versions`.
    pub(crate) path: Vec<Words>,
    pub(crate) description: String,
    pub(crate) methods: Vec<Method>,
}

/// An operation of the API.
#[derive(Debug, Clone)]
pub(crate) struct Method {
    /// Its name in the document: `send_message`.
    pub(crate) operation_id: String,
    pub(crate) name: Words,
    pub(crate) summary: String,
    pub(crate) description: String,
    /// `GET`, `POST`, …
    pub(crate) verb: String,
    /// The path with its parameters: `/v1/messages/{id}`.
    pub(crate) route: String,
    pub(crate) path_parameters: Vec<Field>,
    /// The schema of the query, if there is one.
    pub(crate) query: Option<String>,
    pub(crate) body: Option<Body>,
    pub(crate) answer: Answer,
    /// Whether the service takes an idempotency key, so that a repeated call is done once.
    pub(crate) idempotent: bool,
    /// Whether a POST without a key may be repeated, since a second one changes nothing more.
    pub(crate) repeatable: bool,
}

/// What a method sends.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) ty: Type,
    pub(crate) required: bool,
    /// The media type of a text that may be sent instead of JSON, such as `text/csv`.
    pub(crate) text: Option<String>,
    /// A body that the service takes.
    pub(crate) example: Value,
}

/// What a method gives.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The JSON of the answer.
    Whole(Type),
    /// The `data` of the answer.
    Data(Type),
    /// Items by pages, or all of them in one page.
    Page(Type),
    /// The bytes of the answer.
    Raw,
}
