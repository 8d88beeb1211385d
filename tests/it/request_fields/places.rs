//! The places of fields in the bodies of requests.

use serde_json::{Value, json};

/// The JSON pointers of all objects below a schema that allow no other fields, with the
/// names of their fields. Fails if an object is neither closed nor free.
pub(super) fn closed(schema: &Value, at: &str, found: &mut Vec<(String, Vec<String>)>) {
    if let Some(items) = schema.get("items") {
        closed(items, &format!("{at}/0"), found);
    }
    // Of several forms, a field may be of any.
    if let Some(form) = schema.pointer("/anyOf/0") {
        closed(form, at, found);
    }
    let Some(fields) = schema["properties"].as_object() else {
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{at}");
    found.push((at.to_owned(), fields.keys().cloned().collect()));
    for (name, field) in fields {
        closed(field, &format!("{at}/{name}"), found);
    }
}

/// Sets a field in the object at a pointer, and creates the object if it is missing.
pub(super) fn put(body: &mut Value, at: &str, name: &str, value: Value) {
    let mut place = body;
    // In a list, a step is a number.
    let missing = |next: Option<&&str>| match next.is_some_and(|step| step.parse::<usize>().is_ok())
    {
        true => json!([{}]),
        false => json!({}),
    };
    let mut steps = at.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        if let Value::Array(items) = place {
            place = &mut items[step.parse::<usize>().unwrap()];
        } else {
            let fields = place.as_object_mut().unwrap();
            place = fields.entry(step).or_insert_with(|| missing(steps.peek()));
        }
    }
    place[name] = value;
}
