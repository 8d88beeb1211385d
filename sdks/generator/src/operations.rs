//! Reads the operations of the document into resources and methods, and keeps the schemas that they need.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::{Answer, Body, Field, Method, Model, Resource, Schema, Shape, Type};
use crate::naming::{self, Words};
use crate::schemas::{Schemas, parse_type, reference, text, zero_is_a_value};

const VERBS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
/// The schemas of errors and pages, which every runtime shows.
const SHARED_SCHEMAS: [&str; 5] = [
    "ErrorCode",
    "ErrorReason",
    "ErrorIssue",
    "ErrorDetails",
    "Pagination",
];

/// Builds the model of the API that an OpenAPI document describes.
pub(crate) fn model(document: &Value) -> Result<Model, String> {
    let mut builder = Builder {
        document,
        schemas: Schemas::of(document)?,
        resources: Vec::new(),
        queries: Vec::new(),
    };
    for (path, item) in document["paths"]
        .as_object()
        .ok_or("the document has no paths")?
    {
        for (verb, operation) in item.as_object().into_iter().flatten() {
            if operation["x-internal"] == true {
                continue;
            }
            if !VERBS.contains(&verb.as_str()) {
                return Err(format!("{path}: the generator does not know `{verb}`"));
            }
            builder
                .add(path, verb, operation)
                .map_err(|error| format!("{verb} {path}: {error}"))?;
        }
    }
    builder.check_names()?;
    let webhook_event = webhook_event(document)?;
    let schemas = builder.reachable(&webhook_event)?;
    Ok(Model {
        version: text(&document["info"], "version"),
        schemas,
        resources: builder.resources,
        webhook_event,
    })
}

struct Builder<'a> {
    document: &'a Value,
    schemas: Schemas<'a>,
    resources: Vec<Resource>,
    /// The schemas of queries, which the document has as parameters.
    queries: Vec<Schema>,
}

impl Builder<'_> {
    fn add(&mut self, path: &str, verb: &str, operation: &Value) -> Result<(), String> {
        let id = operation["operationId"]
            .as_str()
            .ok_or("there is no operationId")?;
        let resource = naming::resource_of(path)?;
        let idempotent = operation["x-idempotent"] == true;
        let (mut path_parameters, query) = self.parameters(operation, id, idempotent)?;
        let place = |field: &Field| path.find(&format!("{{{}}}", field.name));
        if path_parameters.len() != path.matches('{').count()
            || path_parameters.iter().any(|field| place(field).is_none())
        {
            return Err("the parameters are not those of the path".to_owned());
        }
        path_parameters.sort_by_key(place);
        let method = Method {
            operation_id: id.to_owned(),
            name: naming::method_of(id, &resource),
            summary: text(operation, "summary"),
            description: text(operation, "description"),
            verb: verb.to_uppercase(),
            route: path.to_owned(),
            path_parameters,
            query,
            body: body(operation)?,
            answer: self.answer(operation)?,
            idempotent,
            repeatable: operation["x-repeatable"] == true,
        };
        self.resource(resource).methods.push(method);
        Ok(())
    }

    /// The resource at this path. Those above it are made too, since it is reached through them.
    fn resource(&mut self, path: Vec<Words>) -> &mut Resource {
        for length in 1..=path.len() {
            if !self
                .resources
                .iter()
                .any(|resource| resource.path == path[..length])
            {
                let description = self.describe(&path[..length]);
                self.resources.push(Resource {
                    path: path[..length].to_vec(),
                    description,
                    methods: Vec::new(),
                });
            }
        }
        let place = self
            .resources
            .iter()
            .position(|resource| resource.path == path)
            .expect("it was just made");
        &mut self.resources[place]
    }

    /// What the document says of a resource: the description of the tag of its name.
    fn describe(&self, path: &[Words]) -> String {
        let tags = self.document["tags"].as_array().into_iter().flatten();
        let words = &path[path.len() - 1];
        let mut found =
            tags.filter(|tag| path.len() == 1 && naming::words(&text(tag, "name")) == *words);
        let description = found
            .next()
            .map(|tag| text(tag, "description"))
            .unwrap_or_default();
        if description.is_empty() {
            format!("The {}.", words.join(" "))
        } else {
            description
        }
    }

    fn parameters(
        &mut self,
        operation: &Value,
        id: &str,
        idempotent: bool,
    ) -> Result<(Vec<Field>, Option<String>), String> {
        let (mut in_path, mut in_query) = (Vec::new(), Vec::new());
        for raw in operation["parameters"].as_array().into_iter().flatten() {
            let raw = self.resolve(raw)?;
            let name = text(raw, "name");
            let field = Field {
                example: raw["schema"]["example"].clone(),
                ty: parse_type(&raw["schema"], &name)?,
                description: text(raw, "description"),
                required: raw["required"] == true,
                zero: zero_is_a_value(&raw["schema"]),
                base64: false,
                name,
            };
            match raw["in"].as_str() {
                Some("path") => in_path.push(field),
                // Lists go as `a,b`: what `explode: false` says.
                Some("query") if matches!(field.ty, Type::List(_)) && raw["explode"] != false => {
                    return Err(format!(
                        "{}: a list in the query needs `explode: false`",
                        field.name
                    ));
                }
                Some("query") => in_query.push(field),
                Some("header") if field.name == IDEMPOTENCY_KEY && idempotent => {}
                other => {
                    return Err(format!(
                        "the generator does not know the parameter {} in {other:?}",
                        field.name
                    ));
                }
            }
        }
        if in_query.is_empty() {
            return Ok((in_path, None));
        }
        let name = format!("{}Params", naming::pascal(&naming::words(id)));
        let description = format!("The parameters of \"{}\".", text(operation, "summary"));
        self.queries.push(Schema {
            name: name.clone(),
            description,
            shape: Shape::Object(in_query),
            input: true,
        });
        Ok((in_path, Some(name)))
    }

    fn resolve<'b>(&'b self, raw: &'b Value) -> Result<&'b Value, String> {
        let Some(name) = raw["$ref"].as_str() else {
            return Ok(raw);
        };
        let pointer = name
            .strip_prefix('#')
            .and_then(|pointer| self.document.pointer(pointer));
        pointer.ok_or_else(|| format!("{name} is not in the document"))
    }

    fn answer(&self, operation: &Value) -> Result<Answer, String> {
        let responses = operation["responses"]
            .as_object()
            .ok_or("there are no responses")?;
        let mut good = responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'));
        let ((_, response), None) = (
            good.next().ok_or("no response has a status of 2xx")?,
            good.next(),
        ) else {
            return Err("more than one response has a status of 2xx".to_owned());
        };
        let content = &self.resolve(response)?["content"];
        let Some(json) = content.get("application/json") else {
            return Ok(Answer::Raw);
        };
        let ty = parse_type(&json["schema"], "answer")?;
        let paginated = operation.get("x-pagination");
        if let Some(pagination) = paginated {
            let expected = [
                ("cursor", "cursor"),
                ("nextCursor", "pagination.nextCursor"),
                ("items", "data"),
            ];
            if expected
                .iter()
                .any(|(key, value)| pagination[key] != *value)
            {
                return Err(format!(
                    "the generator does not know the pagination {pagination}"
                ));
            }
        }
        let Type::Named(name) = &ty else {
            return Ok(Answer::Whole(ty));
        };
        let Shape::Object(fields) = self.schemas.schema(name)?.shape else {
            return Ok(Answer::Whole(ty));
        };
        Ok(
            match (
                fields.as_slice(),
                fields.iter().find(|field| field.name == "data"),
                paginated,
            ) {
                (
                    _,
                    Some(Field {
                        ty: Type::List(item),
                        ..
                    }),
                    Some(_),
                ) => Answer::Page(*item.clone()),
                (_, _, Some(_)) => return Err(format!("{name} has no list `data`")),
                (
                    [_],
                    Some(Field {
                        ty: Type::List(item),
                        ..
                    }),
                    None,
                ) => Answer::Page(*item.clone()),
                ([_], Some(data), None) => Answer::Data(data.ty.clone()),
                _ => Answer::Whole(ty),
            },
        )
    }

    fn check_names(&self) -> Result<(), String> {
        for resource in &self.resources {
            let mut seen = BTreeSet::new();
            let below = self.resources.iter().filter(|other| {
                other
                    .path
                    .split_last()
                    .is_some_and(|(_, above)| above == resource.path)
            });
            let children = below.filter_map(|child| child.path.last());
            for name in resource
                .methods
                .iter()
                .map(|method| &method.name)
                .chain(children)
            {
                if !seen.insert(name) {
                    let path: Vec<String> = resource
                        .path
                        .iter()
                        .map(|words| naming::camel(words))
                        .collect();
                    return Err(format!(
                        "two members of {} are called {}",
                        path.join("."),
                        naming::camel(name)
                    ));
                }
            }
        }
        Ok(())
    }

    /// The schemas that methods, errors and webhooks need: wrappers that methods unwrap are left out. What occurs in
    /// requests only is marked.
    fn reachable(&mut self, webhook_event: &str) -> Result<Vec<Schema>, String> {
        let (mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new());
        for method in self.resources.iter().flat_map(|resource| &resource.methods) {
            method.path_parameters.iter().for_each(|field| {
                field.ty.names(&mut |name| {
                    inputs.insert(name.to_owned());
                })
            });
            method.body.iter().for_each(|body| {
                body.ty.names(&mut |name| {
                    inputs.insert(name.to_owned());
                })
            });
            if let Answer::Whole(ty) | Answer::Data(ty) | Answer::Page(ty) = &method.answer {
                ty.names(&mut |name| {
                    outputs.insert(name.to_owned());
                });
            }
        }
        self.queries.iter().for_each(|query| {
            query.names(&mut |name| {
                inputs.insert(name.to_owned());
            })
        });
        outputs.extend(SHARED_SCHEMAS.iter().map(|name| (*name).to_owned()));
        outputs.insert(webhook_event.to_owned());
        self.close(&mut inputs)?;
        self.close(&mut outputs)?;
        let mut schemas = Vec::new();
        for name in self
            .schemas
            .names()
            .filter(|name| inputs.contains(*name) || outputs.contains(*name))
        {
            let mut schema = self.schemas.schema(name)?;
            schema.input = !outputs.contains(name);
            schemas.push(schema);
        }
        schemas.append(&mut self.queries);
        let mut seen = BTreeSet::new();
        match schemas.iter().find(|schema| !seen.insert(&schema.name)) {
            Some(twice) => Err(format!("two schemas are called {}", twice.name)),
            None => Ok(schemas),
        }
    }

    fn close(&self, names: &mut BTreeSet<String>) -> Result<(), String> {
        let mut open: Vec<String> = names.iter().cloned().collect();
        while let Some(name) = open.pop() {
            self.schemas.schema(&name)?.names(&mut |found| {
                if names.insert(found.to_owned()) {
                    open.push(found.to_owned());
                }
            });
        }
        Ok(())
    }
}

fn body(operation: &Value) -> Result<Option<Body>, String> {
    let Some(raw) = operation.get("requestBody") else {
        return Ok(None);
    };
    let content = raw["content"]
        .as_object()
        .ok_or("the body has no content")?;
    let json = content
        .get("application/json")
        .ok_or("the body is not JSON")?;
    let mut text = None;
    for (media_type, other) in content
        .iter()
        .filter(|(media_type, _)| *media_type != "application/json")
    {
        if other["schema"]["type"] != "string" || text.replace(media_type.clone()).is_some() {
            return Err(format!(
                "the generator does not know a body of {media_type}"
            ));
        }
    }
    Ok(Some(Body {
        ty: parse_type(&json["schema"], "body")?,
        required: raw["required"] == true,
        text,
        example: json["example"].clone(),
    }))
}

fn webhook_event(document: &Value) -> Result<String, String> {
    let webhooks = document["x-webhooks"]
        .as_object()
        .ok_or("the document has no x-webhooks")?;
    let mut webhooks = webhooks.values();
    let (Some(only), None) = (webhooks.next(), webhooks.next()) else {
        return Err("one entry of x-webhooks was expected".to_owned());
    };
    let schema = &only["post"]["requestBody"]["content"]["application/json"]["schema"];
    reference(schema)
        .map(str::to_owned)
        .ok_or_else(|| "the body of x-webhooks has no schema".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(paths: Value) -> Value {
        let page = json!({"type": "object", "properties": {
            "data": {"type": "array", "items": {"$ref": "#/components/schemas/Message"}},
            "pagination": {"type": "object"}}});
        json!({
            "info": {"version": "1.2.3"},
            "paths": paths,
            "x-webhooks": {"event": {"post": {"requestBody": {"content": {"application/json": {"schema":
                {"$ref": "#/components/schemas/Event"}}}}}}},
            "components": {"schemas": {
                "Message": {"type": "object", "properties": {"id": {"type": "string"}}},
                "MessageResponse": {"type": "object", "properties": {"data": {"$ref": "#/components/schemas/Message"}}},
                "MessagePage": page, "NewMessage": {"type": "object", "properties": {}},
                "Event": {"type": "object", "properties": {}}, "Unused": {"type": "object", "properties": {}},
                "ErrorCode": {"type": "string", "enum": ["NOT_FOUND"]}, "ErrorReason": {"type": "string", "enum": ["X"]},
                "ErrorIssue": {"type": "object", "properties": {}}, "ErrorDetails": {"type": "object", "properties": {}}, "Pagination": {"type": "object", "properties": {}},
            }},
        })
    }

    fn operation(id: &str, schema: &str) -> Value {
        let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
        json!({"operationId": id, "responses": {"200": {"content": {"application/json": {"schema": schema}}}}})
    }

    #[test]
    fn a_list_is_a_page_and_one_record_is_unwrapped() {
        let mut list = operation("list_messages", "MessagePage");
        list["x-pagination"] =
            json!({"cursor": "cursor", "nextCursor": "pagination.nextCursor", "items": "data"});
        let mut get = operation("get_message", "MessageResponse");
        get["parameters"] =
            json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
        let paths = json!({"/v1/messages": {"get": list}, "/v1/messages/{id}": {"get": get}});
        let model = model(&document(paths)).unwrap();
        let methods = &model.resources[0].methods;
        assert!(matches!(&methods[0].answer, Answer::Page(Type::Named(name)) if name == "Message"));
        assert!(matches!(&methods[1].answer, Answer::Data(Type::Named(name)) if name == "Message"));
        let names: Vec<&str> = model
            .schemas
            .iter()
            .map(|schema| schema.name.as_str())
            .collect();
        assert!(
            names.contains(&"Message")
                && !names.contains(&"MessageResponse")
                && !names.contains(&"Unused")
        );
    }

    #[test]
    fn an_internal_operation_is_left_out() {
        let mut internal = operation("track_open", "MessageResponse");
        internal["x-internal"] = json!(true);
        let model = model(&document(json!({"/v1/t/{token}": {"get": internal}}))).unwrap();
        assert!(model.resources.is_empty());
    }

    #[test]
    fn a_schema_of_requests_only_is_marked() {
        let mut send = operation("send_message", "MessageResponse");
        send["requestBody"] = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewMessage"}}}});
        let model = model(&document(json!({"/v1/send": {"post": send}}))).unwrap();
        let input = |name: &str| {
            model
                .schemas
                .iter()
                .find(|schema| schema.name == name)
                .unwrap()
                .input
        };
        assert!(input("NewMessage") && !input("Message"));
    }

    #[test]
    fn two_methods_of_one_name_are_refused() {
        let operation = operation("get_message", "MessageResponse");
        let error = model(&document(
            json!({"/v1/messages": {"get": operation, "post": operation}}),
        ))
        .unwrap_err();
        assert_eq!(error, "two members of messages are called get");
    }

    #[test]
    fn an_unknown_pagination_is_refused() {
        let mut list = operation("list_messages", "MessagePage");
        list["x-pagination"] = json!({"cursor": "after"});
        let error = model(&document(json!({"/v1/messages": {"get": list}}))).unwrap_err();
        assert!(
            error.starts_with("get /v1/messages: the generator does not know the pagination"),
            "{error}"
        );
    }
}
