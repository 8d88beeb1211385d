//! The permissions that operations require, written down once more.

use waypost_core::auth::Permission;

/// The required permission, by the documentation (Authentication) and the decisions (API
/// keys, settings, audit; Routing rules; Domains; Message states).
pub(super) fn wanted(method: &str, path: &str) -> Option<Permission> {
    let is_read = method == "GET";
    let either = |read, write| if is_read { read } else { write };
    let section = path.strip_prefix("/v1/")?.split('/').next()?;
    Some(match (section, path) {
        ("send" | "emails", _) => Permission::Send,
        ("messages", path) if path.ends_with("/content") => Permission::ContentRead,
        ("messages", path) if path.contains("/attachments") => Permission::ContentRead,
        ("messages", path) if path.ends_with("/webhook-deliveries") => Permission::SettingsWrite,
        ("messages", _) => either(Permission::MetricsRead, Permission::Send),
        ("metrics", _) if is_read => Permission::MetricsRead,
        ("routing-rules", "/v1/routing-rules/resolve" | "/v1/routing-rules/simulate") => {
            Permission::ProvidersRead
        }
        ("providers" | "routing-rules" | "sender-domains", _) => {
            either(Permission::ProvidersRead, Permission::ProvidersWrite)
        }
        ("templates", "/v1/templates/{id}/preview" | "/v1/templates/{id}/preview-draft") => {
            Permission::TemplatesRead
        }
        ("templates", "/v1/templates/{id}/test-send") => Permission::Send,
        ("templates", _) => either(Permission::TemplatesRead, Permission::TemplatesWrite),
        (
            "suppressions" | "unsubscribe-groups" | "webhook-endpoints" | "api-keys" | "settings"
            | "audit-logs" | "erasures",
            _,
        ) => Permission::SettingsWrite,
        ("members" | "invitations", _) => Permission::MembersWrite,
        _ => return None,
    })
}

/// The second permission of an operation that changes what two of them protect.
pub(super) fn also_wanted(path: &str) -> Option<Permission> {
    match path {
        "/v1/providers/{id}/suppressions/import" => Some(Permission::SettingsWrite),
        "/v1/templates/{id}/test-send" => Some(Permission::TemplatesRead),
        _ => None,
    }
}
