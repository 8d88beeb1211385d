//! Access to every operation of the served document: with no key, with each kind of
//! invalid key, with each single permission, and with another organization's ids. The
//! required permissions are written down here once more, from the documentation and the
//! decisions; an operation that none of them covers fails.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use http::Method;
use serde_json::{Map, Value, json};
use waypost_core::auth::{Permission, Role};
use waypost_core::clock::Clock;
use waypost_tests::{Caller, Reply, TestApp, message_to, without_references};

use super::permissions::{also_wanted, wanted};

/// Below these paths no key is required: a token or a signature identifies the caller.
const SIGNED: [&str; 3] = ["/v1/provider-events/", "/v1/unsubscribe/", "/v1/t/"];
/// What begins or ends a session, or is about the session or the installation. `people` tests
/// these.
const OF_PEOPLE: [&str; 6] = [
    "/v1/session",
    "/v1/user",
    "/v1/invitations/look-up",
    "/v1/invitations/accept",
    "/v1/password-resets/",
    "/v1/operator/",
];

/// An operation of the document.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) method: Method,
    /// As in the document.
    pub(crate) path: String,
    documented: Value,
    wanted: Permission,
    pub(crate) body: Option<Value>,
}

impl Operation {
    pub(crate) async fn perform(&self, caller: &Caller, path: &str) -> Reply {
        caller
            .call(self.method.clone(), path, |request| match &self.body {
                Some(body) => request.json(body),
                None => request,
            })
            .await
    }

    /// The permissions that the operation requires.
    pub(crate) fn needed(&self) -> impl Iterator<Item = Permission> {
        [Some(self.wanted), also_wanted(&self.path)]
            .into_iter()
            .flatten()
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn parameters(&self) -> impl Iterator<Item = &str> {
        let segments = self.path.split('/');
        segments.filter(|segment| segment.starts_with('{'))
    }

    /// The path to an organization's own resource.
    pub(crate) fn path_to(&self, ids: &BTreeMap<&'static str, String>) -> String {
        let section = self.path.split('/').nth(2).unwrap();
        self.path_with(|parameter| match parameter {
            "{id}" => ids[section].clone(),
            other => ids[other].clone(),
        })
    }

    /// The path with the value of `id` for each of its parameters.
    pub(crate) fn path_with(&self, mut id: impl FnMut(&str) -> String) -> String {
        let mut path = self.path.clone();
        for parameter in self.parameters() {
            // An index is no id: no organization owns it.
            let value = match parameter {
                "{index}" => "0".to_owned(),
                parameter => id(parameter),
            };
            path = path.replacen(parameter, &value, 1);
        }
        path
    }
}

fn is_of_people(path: &str) -> bool {
    let mut starts = OF_PEOPLE.iter();
    starts.any(|start| {
        path == *start || path.starts_with(&format!("{}/", start.trim_end_matches('/')))
    })
}

/// Every operation that requires a key, or a session in its place.
pub(crate) async fn operations(app: &TestApp) -> Vec<Operation> {
    let anonymous = app.caller().anonymous();
    let document = without_references(&anonymous.get("/openapi.json").await.expect(200));
    let mut found = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let (method, takes_key) = (method.to_uppercase(), operation["security"] != json!([]));
            if is_of_people(path) {
                continue;
            }
            let is_signed = SIGNED.iter().any(|start| path.starts_with(start));
            assert_ne!(takes_key, is_signed, "{method} {path}");
            if is_signed {
                continue;
            }
            let wanted = wanted(&method, path);
            let wanted = wanted.unwrap_or_else(|| panic!("who may {method} {path}?"));
            let schema = operation.pointer("/requestBody/content/application~1json/schema");
            found.push(Operation {
                method: method.parse().unwrap(),
                path: path.clone(),
                documented: operation["x-required-permission"].clone(),
                wanted,
                body: schema.map(|schema| filled(example(schema))),
            });
        }
    }
    assert!(found.len() > 60, "{} operations", found.len());
    found
}

/// The complete example of a schema.
fn example(schema: &Value) -> Value {
    if let Some(example) = schema.get("example") {
        return example.clone();
    }
    if let Some(items) = schema.get("items") {
        // The example of an item may be the example of the whole list.
        let item = example(items);
        return if item.is_array() { item } else { json!([item]) };
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, schema)| (name.clone(), example(schema)));
    Value::Object(fields.collect())
}

/// Turns an example into a valid request: without fields that exclude each other, and
/// without ids that do not exist.
fn filled(mut body: Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    for name in [
        "allowedIps",
        "eventSecrets",
        "cursor",
        "fallbackProviderAccountIds",
        "rateLimits",
        // Beside providerAccountId.
        "targets",
        // The account is in another.
        "region",
        // A role has permissions of its own, which the caller must have too.
        "role",
        "templateId",
        "unsubscribeGroupId",
        "versionId",
    ] {
        fields.remove(name);
    }
    if fields.contains_key("url") {
        // No server listens there, which is detected fast.
        fields.insert("url".to_owned(), json!("http://127.0.0.1:1/"));
    }
    if fields.contains_key("subject") && fields.contains_key("from") {
        // A time so far ahead is rejected, and no account has the id.
        for name in ["scheduledAt", "expiresAt", "providerAccountId"] {
            fields.remove(name);
        }
    } else if fields.contains_key("scheduledAt") {
        let at = Clock::system().now() + TimeDelta::days(1);
        fields.insert("scheduledAt".to_owned(), json!(at.to_rfc3339()));
    }
    let attachments = fields.get_mut("attachments");
    for attachment in attachments
        .into_iter()
        .flat_map(Value::as_array_mut)
        .flatten()
    {
        attachment.as_object_mut().unwrap().remove("url");
    }
    if fields.contains_key("permissions") {
        // A key cannot grant a permission that it lacks.
        fields.insert("permissions".to_owned(), json!(["SETTINGS_WRITE"]));
    }
    for message in fields
        .get_mut("messages")
        .into_iter()
        .flat_map(Value::as_array_mut)
        .flatten()
    {
        *message = filled(message.take());
    }
    body
}

pub(crate) async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

#[tokio::test]
async fn the_document_matches_the_required_permissions() {
    let app = quiet().await;
    for operation in operations(&app).await {
        let name = operation.name();
        assert_eq!(operation.documented, operation.wanted.as_str(), "{name}");
    }
}

#[tokio::test]
async fn without_a_valid_key_all_operations_return_the_same_401() {
    let app = quiet().await;
    let organization = app.organization_id();
    let past = app.clock.now() - TimeDelta::seconds(1);
    let expired = app
        .key_until(organization, &Permission::ALL, Some(past))
        .await;
    let revoked = app.key(organization, &Permission::ALL).await;
    let good = app.key(organization, &Permission::ALL).await;
    let prefix = &revoked[..14];
    app.execute(&format!(
        "UPDATE api_keys SET revoked_at = now() WHERE prefix = '{prefix}'"
    ))
    .await;
    let mut almost = good.clone();
    almost.replace_range(39.., if good.ends_with('x') { "y" } else { "x" });
    let anonymous = app.caller().anonymous();
    let bad = [
        expired,
        revoked,
        almost,
        good.to_uppercase(),
        format!("{good}x"),
        good[..39].to_owned(),
        "wp_live_".to_owned(),
    ];
    let callers: Vec<Caller> = bad
        .iter()
        .map(|key| anonymous.with_key(key))
        .chain([anonymous.clone()])
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for operation in operations(&app).await {
        let path = operation.path_with(|_| uuid::Uuid::nil().to_string());
        for caller in &callers {
            let reply = operation.perform(caller, &path).await;
            reply.expect_error(401, "AUTHENTICATION_ERROR");
            seen.insert(reply.text);
        }
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    anonymous
        .with_key(&good)
        .get("/v1/messages")
        .await
        .expect(200);
}

#[tokio::test]
async fn exactly_the_documented_permission_allows_an_operation() {
    let app = quiet().await;
    let organization = app.organization_id();
    let mut callers = BTreeMap::new();
    for permission in Permission::ALL {
        let key = app.key(organization, &[permission]).await;
        callers.insert(permission.as_str(), app.caller().with_key(&key));
        // All other permissions together are not sufficient either.
        let others = Permission::ALL
            .into_iter()
            .filter(|other| *other != permission);
        let key = app.key(organization, &others.collect::<Vec<_>>()).await;
        callers.insert(without(permission), app.caller().with_key(&key));
    }
    for operation in operations(&app).await {
        let path = operation.path_with(|_| uuid::Uuid::nil().to_string());
        for (held, caller) in &callers {
            let reply = operation.perform(caller, &path).await;
            let name = format!("{} with {held}", operation.name());
            let lacks = |needed: &Permission| {
                let is_single = !held.starts_with("all but");
                *held == without(*needed) || (is_single && *held != needed.as_str())
            };
            assert_lacks(&reply, operation.needed().find(lacks), &name);
        }
    }
    app.leave_work();
}

/// Asserts that the caller was refused for the lacking permission alone, or not at all.
pub(crate) fn assert_lacks(reply: &Reply, lacking: Option<Permission>, name: &str) {
    match lacking {
        None => {
            let status = reply.status;
            assert!(
                ![401, 403].contains(&status) && status < 500,
                "{name}: {reply:?}"
            );
        }
        Some(lacking) => {
            let error = reply.expect_error(403, "FORBIDDEN");
            let details = json!({ "requiredPermission": lacking.as_str() });
            assert_eq!(error["details"], details, "{name}");
        }
    }
}

fn without(permission: Permission) -> &'static str {
    match permission {
        Permission::Send => "all but SEND",
        Permission::TemplatesRead => "all but TEMPLATES_READ",
        Permission::TemplatesWrite => "all but TEMPLATES_WRITE",
        Permission::ProvidersRead => "all but PROVIDERS_READ",
        Permission::ProvidersWrite => "all but PROVIDERS_WRITE",
        Permission::MetricsRead => "all but METRICS_READ",
        Permission::SettingsWrite => "all but SETTINGS_WRITE",
        Permission::ContentRead => "all but CONTENT_READ",
        Permission::MembersWrite => "all but MEMBERS_WRITE",
        Permission::Operator => "all but OPERATOR",
    }
}

/// An organization's resources, by the first segment of their paths, and by the
/// parameter's name if that is not `{id}`.
pub(crate) async fn belongings(app: &TestApp, caller: &Caller) -> BTreeMap<&'static str, String> {
    let make = async |path: &str, body: Value| {
        let made = caller.post(path, &body).await.data(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let receiver = waypost_tests::Receiver::start().await;
    let mut ids = BTreeMap::new();
    let account = json!({ "providerType": "SENDGRID", "displayName": "Main", "credentials": { "apiKey": "SG.key" } });
    ids.insert("providers", make("/v1/providers", account).await);
    let domains = format!("/v1/providers/{}/domains", ids["providers"]);
    let domain = caller.get(&domains).await.data(200)[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    ids.insert("{domainId}", domain);
    ids.insert("{domain}", own_domain(app, &ids["providers"]).await);
    let rule = json!({ "name": "All", "providerAccountId": ids["providers"] });
    ids.insert("routing-rules", make("/v1/routing-rules", rule).await);
    ids.insert(
        "templates",
        make("/v1/templates", json!({ "name": "Letter" })).await,
    );
    let versions = format!("/v1/templates/{}/versions", ids["templates"]);
    ids.insert(
        "{versionId}",
        make(&versions, json!({ "htmlContent": "x" })).await,
    );
    let group = json!({ "name": "News" });
    ids.insert(
        "unsubscribe-groups",
        make("/v1/unsubscribe-groups", group).await,
    );
    let suppression = json!({ "email": "gone@example.org" });
    ids.insert("suppressions", make("/v1/suppressions", suppression).await);
    let key = json!({ "name": "A key", "permissions": ["SEND"] });
    ids.insert("api-keys", make("/v1/api-keys", key).await);
    let endpoint = json!({ "url": receiver.url(), "events": ["QUEUED"] });
    ids.insert(
        "webhook-endpoints",
        make("/v1/webhook-endpoints", endpoint).await,
    );
    let mut message = message_to("ada@example.org");
    message["scheduledAt"] = json!(app.clock.now() + TimeDelta::hours(1));
    let message = caller.post("/v1/send", &message).await;
    let message = message.expect(202)["messageId"]
        .as_str()
        .unwrap()
        .to_owned();
    ids.insert("messages", message);

    let invitation = json!({ "email": "grace@example.com", "role": "VIEWER" });
    ids.insert("invitations", make("/v1/invitations", invitation).await);
    let organization = caller.get("/v1/api-keys").await.data(200)[0]["organizationId"].clone();
    let organization = organization.as_str().unwrap().parse().unwrap();
    let email = format!("member-{organization}@example.com");
    app.user(&email, &[(organization, Role::Viewer)]).await;
    let member = caller.get("/v1/members").await.data(200)[0]["id"].clone();
    ids.insert("members", member.as_str().unwrap().to_owned());

    let delivery = format!(
        "SELECT id FROM webhook_deliveries WHERE webhook_endpoint_id = '{}' LIMIT 1",
        ids["webhook-endpoints"]
    );
    ids.insert("{deliveryId}", app.value(&delivery).await.unwrap());
    ids
}

/// A sender domain that the other organization does not have: the simulator's accounts share
/// theirs.
async fn own_domain(app: &TestApp, account: &str) -> String {
    let name = format!("{account}.example.org");
    app.execute(&format!(
        "UPDATE provider_domains SET domain = '{name}'
         WHERE provider_account_id = '{account}' AND domain = 'unverified.example.net'",
    ))
    .await;
    name
}

/// All rows of an organization, table by table. The time of a key's last use is left out,
/// since it is recorded later.
pub(crate) async fn state(app: &TestApp, organization: &str) -> Map<String, Value> {
    let tables = app
        .value(
            "SELECT string_agg(table_name, ',' ORDER BY table_name) FROM information_schema.columns
             WHERE column_name = 'organization_id' AND table_schema = 'public'",
        )
        .await
        .unwrap();
    let mut state = Map::new();
    for table in tables.split(',') {
        let rows = app
            .value(&format!(
                "SELECT coalesce(string_agg((to_jsonb(t) - 'last_used_at')::text, E'\\n' ORDER BY t::text), '')
                 FROM {table} t WHERE organization_id = '{organization}'"
            ))
            .await;
        state.insert(table.to_owned(), json!(rows));
    }
    assert!(state.len() > 15, "{:?}", state.keys());
    state
}

#[tokio::test]
async fn another_organizations_ids_are_not_found_and_change_nothing() {
    let app = quiet().await;
    let victim = app.tenant("Victim").await;
    let theirs = belongings(&app, &victim.caller).await;
    let own = belongings(&app, app.caller()).await;
    let organization = victim.organization_id.to_string();
    // A session of an owner reaches as little as a key with all permissions.
    let session = app.member(app.organization_id(), Role::Owner).await;
    let before = state(&app, &organization).await;
    let mut count = 0;
    for operation in operations(&app).await {
        let section = operation.path.split('/').nth(2).unwrap();
        let key = |parameter: &str| {
            if parameter == "{id}" {
                section
            } else {
                parameter
            }
            .to_owned()
        };
        let parameters = operation.parameters().count();
        // Each parameter alone, and all of them together, may be another organization's.
        let foreign = (0..parameters)
            .map(|at| vec![at])
            .chain([(0..parameters).collect()]);
        for foreign in foreign.filter(|foreign: &Vec<usize>| !foreign.is_empty()) {
            let mut at = 0;
            let path = operation.path_with(|parameter| {
                let ids = if foreign.contains(&at) { &theirs } else { &own };
                at += 1;
                ids[key(parameter).as_str()].clone()
            });
            for caller in [app.caller(), &session] {
                let reply = operation.perform(caller, &path).await;
                let name = operation.name();
                assert_eq!(reply.status, 404, "{name} at {path}: {reply:?}");
                reply.expect_error(404, "NOT_FOUND");
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} requests");
    assert_eq!(before, state(&app, &organization).await);
    app.leave_work();
}

/// Requests that are valid except for an id of another organization.
fn astray(
    theirs: &BTreeMap<&'static str, String>,
    own: &BTreeMap<&'static str, String>,
) -> Vec<(Method, String, Value)> {
    let account = json!(theirs["providers"]);
    let group = json!(theirs["unsubscribe-groups"]);
    let send = |field: &str, section: &str| {
        let mut message = message_to("ada@example.org");
        message[field] = json!(theirs[section]);
        message
    };
    let rule = |main: &Value, fallbacks: Value| json!({ "name": "Astray", "providerAccountId": main, "fallbackProviderAccountIds": fallbacks });
    let rules = "/v1/routing-rules".to_owned();
    let own_rule = format!("{rules}/{}", own["routing-rules"]);
    let preview = format!("/v1/templates/{}/preview", own["templates"]);
    let to = |path: &str, body| (Method::POST, path.to_owned(), body);
    let at = |body| (Method::PATCH, own_rule.clone(), body);
    vec![
        to("/v1/send", send("templateId", "templates")),
        to("/v1/send", send("unsubscribeGroupId", "unsubscribe-groups")),
        to(&rules, rule(&account, json!([]))),
        to(&rules, rule(&json!(own["providers"]), json!([account]))),
        at(json!({ "providerAccountId": account })),
        at(json!({ "fallbackProviderAccountIds": [account] })),
        to(
            "/v1/suppressions",
            json!({ "email": "x@example.org", "unsubscribeGroupId": group }),
        ),
        to(
            "/v1/suppressions/import",
            json!({ "emails": ["x@example.org"], "unsubscribeGroupId": group }),
        ),
        to(
            "/v1/suppressions/remove",
            json!({ "emails": ["x@example.org"], "unsubscribeGroupId": group }),
        ),
        to(
            &format!("/v1/providers/{}/suppressions/import", theirs["providers"]),
            json!({}),
        ),
        to(&preview, json!({ "versionId": theirs["{versionId}"] })),
    ]
}

#[tokio::test]
async fn another_organizations_ids_in_a_body_or_a_query_are_not_found() {
    let app = quiet().await;
    let victim = app.tenant("Victim").await;
    let theirs = belongings(&app, &victim.caller).await;
    let own = belongings(&app, app.caller()).await;
    let organization = victim.organization_id.to_string();
    let before = state(&app, &organization).await;
    for (method, path, body) in astray(&theirs, &own) {
        let reply = app
            .caller()
            .call(method, &path, |request| request.json(&body))
            .await;
        assert!(
            [404, 422].contains(&reply.status),
            "{path} {body}: {reply:?}"
        );
    }
    let mut message = message_to("ada@example.org");
    message["templateId"] = json!(theirs["templates"]);
    let batch = json!({ "messages": [message] });
    let batch = app.post("/v1/emails/batch", &batch).await.expect(200);
    assert!(batch["results"][0]["error"].is_string(), "{batch}");
    for (path, field) in [
        ("/v1/suppressions", "groupId"),
        ("/v1/audit-logs", "targetId"),
    ] {
        // The name of a domain is no id.
        for (_, theirs) in theirs.iter().filter(|(key, _)| **key != "{domain}") {
            let list = app.caller().query(path, &[(field, theirs)]).await;
            assert_eq!(list.data(200), json!([]), "{path} {field}");
        }
    }
    assert_eq!(before, state(&app, &organization).await);
    app.leave_work();
}
