//! Names, by rule: which resource an operation belongs to, and what its method is called there. So a new operation gets
//! its place in every SDK without anybody writing it down.
//!
//! - The resource is the first segment of the path after `/v1`. A plural below an id is a resource of its own in it:
//!   `/v1/templates/{id}/versions` is `templates.versions`.
//! - The method is the verb of the operation id, and what remains of the id that the resource does not say:
//!   `list_template_versions` is `list`, `get_message_content` is `getContent`.
//!
//! Everything here is a list of lower-case words; a language joins them as it likes.

/// First segments that belong to another resource: sending is the first thing one does with a message.
const ALIASES: [(&str, &str); 2] = [("send", "messages"), ("emails", "messages")];

/// Lower-case words of an identifier in any style.
pub(crate) type Words = Vec<String>;

/// Splits an identifier: `webhook-endpoints`, `list_messages`, `providerAccountId` and `NOT_FOUND` alike.
pub(crate) fn words(identifier: &str) -> Words {
    let mut words: Words = Vec::new();
    let mut previous_lower = false;
    let mut open = false;
    for character in identifier.chars() {
        if !character.is_alphanumeric() {
            open = false;
            previous_lower = false;
            continue;
        }
        if !open || (character.is_uppercase() && previous_lower) {
            words.push(String::new());
            open = true;
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        previous_lower = character.is_lowercase() || character.is_numeric();
    }
    words
}

/// `webhookEndpoints`
pub(crate) fn camel(words: &[String]) -> String {
    let pascal = pascal(words);
    let mut characters = pascal.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// `WebhookEndpoints`
pub(crate) fn pascal(words: &[String]) -> String {
    words
        .iter()
        .map(|word| {
            let mut characters = word.chars();
            characters.next().map_or(String::new(), |first| {
                first.to_uppercase().chain(characters).collect()
            })
        })
        .collect()
}

/// The resource of a path, outermost first: `[["webhook", "endpoints"], ["deliveries"]]`.
pub(crate) fn resource_of(path: &str) -> Result<Vec<Words>, String> {
    let rest = path
        .strip_prefix("/v1/")
        .ok_or_else(|| format!("{path} does not begin with /v1/"))?;
    let segments: Vec<&str> = rest.split('/').collect();
    let first = ALIASES
        .iter()
        .find(|(from, _)| *from == segments[0])
        .map_or(segments[0], |(_, to)| to);
    let mut resource = vec![words(first)];
    for pair in segments.windows(2) {
        if is_parameter(pair[0]) && !is_parameter(pair[1]) && is_plural(pair[1]) {
            resource.push(words(pair[1]));
        }
    }
    Ok(resource)
}

/// The method of an operation in its resource: the verb, and the words that the resource does not say.
pub(crate) fn method_of(operation_id: &str, resource: &[Words]) -> Words {
    let said: Vec<String> = resource.iter().flatten().map(|word| stem(word)).collect();
    let mut words = words(operation_id).into_iter();
    let verb = words.next();
    verb.into_iter()
        .chain(words.filter(|word| !said.contains(&stem(word))))
        .collect()
}

/// The name of a path parameter: an `id` below a resource of its own is that of the outer one, `templateId`.
pub(crate) fn parameter_of(name: &str, resource: &[Words]) -> Words {
    let mut outer = match resource {
        [outer, _, ..] if name == "id" => outer.clone(),
        _ => return words(name),
    };
    if let Some(last) = outer.last_mut() {
        *last = singular(last);
    }
    outer.push("id".to_owned());
    outer
}

fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

fn is_plural(segment: &str) -> bool {
    segment.ends_with('s') && !segment.ends_with("ss")
}

/// What the forms of a word have in common, as far as operation ids need it: `deliveries` and `delivery`, `routing` and
/// `route`.
fn stem(word: &str) -> String {
    let singular = singular(word);
    let stem = singular
        .strip_suffix("ing")
        .or_else(|| singular.strip_suffix('e'))
        .unwrap_or(&singular);
    stem.to_owned()
}

/// `templates` is `template`.
pub(crate) fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(start) => format!("{start}y"),
        None if is_plural(word) => word[..word.len() - 1].to_owned(),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(operation_id: &str, path: &str) -> String {
        let resource = resource_of(path).unwrap();
        let names: Vec<String> = resource.iter().map(|words| camel(words)).collect();
        format!(
            "{}.{}",
            names.join("."),
            camel(&method_of(operation_id, &resource))
        )
    }

    #[test]
    fn identifiers_of_all_styles_are_split() {
        assert_eq!(words("webhook-endpoints"), ["webhook", "endpoints"]);
        assert_eq!(words("list_messages"), ["list", "messages"]);
        assert_eq!(words("providerAccountId"), ["provider", "account", "id"]);
        assert_eq!(words("NOT_FOUND"), ["not", "found"]);
        assert_eq!(words("Idempotency-Key"), ["idempotency", "key"]);
    }

    #[test]
    fn a_method_says_only_what_its_resource_does_not() {
        assert_eq!(name("list_messages", "/v1/messages"), "messages.list");
        assert_eq!(
            name("get_message_content", "/v1/messages/{id}/content"),
            "messages.getContent"
        );
        assert_eq!(
            name("cancel_message", "/v1/messages/{id}/cancel"),
            "messages.cancel"
        );
        assert_eq!(
            name("resolve_route", "/v1/routing-rules/resolve"),
            "routingRules.resolve"
        );
        assert_eq!(
            name(
                "rotate_webhook_endpoint_secret",
                "/v1/webhook-endpoints/{id}/rotate-secret"
            ),
            "webhookEndpoints.rotateSecret"
        );
        assert_eq!(
            name("get_metrics_summary", "/v1/metrics/summary"),
            "metrics.getSummary"
        );
        assert_eq!(name("update_settings", "/v1/settings"), "settings.update");
    }

    #[test]
    fn sending_belongs_to_messages() {
        assert_eq!(name("send_message", "/v1/send"), "messages.send");
        assert_eq!(
            name("send_message_batch", "/v1/emails/batch"),
            "messages.sendBatch"
        );
    }

    #[test]
    fn a_plural_below_an_id_is_a_resource() {
        assert_eq!(
            name("list_template_versions", "/v1/templates/{id}/versions"),
            "templates.versions.list"
        );
        assert_eq!(
            name("create_provider_domain", "/v1/providers/{id}/domains"),
            "providers.domains.create"
        );
        let replay = "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay";
        assert_eq!(
            name("replay_webhook_delivery", replay),
            "webhookEndpoints.deliveries.replay"
        );
        assert_eq!(
            name("list_template_uses", "/v1/templates/{id}/used-by"),
            "templates.listUses"
        );
    }

    #[test]
    fn the_id_of_an_outer_resource_says_whose_it_is() {
        let versions = resource_of("/v1/templates/{id}/versions/{versionId}").unwrap();
        assert_eq!(camel(&parameter_of("id", &versions)), "templateId");
        assert_eq!(camel(&parameter_of("versionId", &versions)), "versionId");
        assert_eq!(
            camel(&parameter_of(
                "id",
                &resource_of("/v1/messages/{id}").unwrap()
            )),
            "id"
        );
    }
}
