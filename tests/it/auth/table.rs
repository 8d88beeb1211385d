//! Who may call each operation, written down once more. `auth` compares it with the document.

use waypost_core::auth::Permission;

/// Every operation, and the permission that it requires.
pub(super) const OPERATIONS: [(&str, &str, Permission); 97] = [
    ("POST", "/v1/send", Permission::Send),
    ("POST", "/v1/emails/batch", Permission::Send),
    ("GET", "/v1/providers/health", Permission::ProvidersRead),
    ("GET", "/v1/providers/{}/health", Permission::ProvidersRead),
    (
        "GET",
        "/v1/providers/{}/health/domains",
        Permission::ProvidersRead,
    ),
    (
        "GET",
        "/v1/messages/{}/webhook-deliveries",
        Permission::SettingsWrite,
    ),
    (
        "GET",
        "/v1/unsubscribe-groups/{}",
        Permission::SettingsWrite,
    ),
    (
        "GET",
        "/v1/unsubscribe-groups/{}/page-preview",
        Permission::SettingsWrite,
    ),
    (
        "GET",
        "/v1/webhook-endpoints/{}/deliveries/{}",
        Permission::SettingsWrite,
    ),
    (
        "POST",
        "/v1/templates/{}/preview-draft",
        Permission::TemplatesRead,
    ),
    ("GET", "/v1/providers", Permission::ProvidersRead),
    ("POST", "/v1/providers", Permission::ProvidersWrite),
    ("GET", "/v1/providers/{}", Permission::ProvidersRead),
    ("PATCH", "/v1/providers/{}", Permission::ProvidersWrite),
    ("DELETE", "/v1/providers/{}", Permission::ProvidersWrite),
    (
        "POST",
        "/v1/providers/{}/validate",
        Permission::ProvidersWrite,
    ),
    ("GET", "/v1/providers/{}/domains", Permission::ProvidersRead),
    (
        "POST",
        "/v1/providers/{}/domains",
        Permission::ProvidersWrite,
    ),
    (
        "POST",
        "/v1/providers/{}/domains/{}/verify",
        Permission::ProvidersWrite,
    ),
    (
        "DELETE",
        "/v1/providers/{}/domains/{}",
        Permission::ProvidersWrite,
    ),
    (
        "POST",
        "/v1/providers/{}/event-webhook",
        Permission::ProvidersWrite,
    ),
    (
        "POST",
        "/v1/providers/{}/suppressions/import",
        Permission::ProvidersWrite,
    ),
    ("GET", "/v1/sender-domains", Permission::ProvidersRead),
    ("GET", "/v1/sender-domains/{}", Permission::ProvidersRead),
    (
        "POST",
        "/v1/sender-domains/{}/check",
        Permission::ProvidersWrite,
    ),
    ("GET", "/v1/templates", Permission::TemplatesRead),
    ("POST", "/v1/templates", Permission::TemplatesWrite),
    ("GET", "/v1/templates/{}", Permission::TemplatesRead),
    ("PATCH", "/v1/templates/{}", Permission::TemplatesWrite),
    ("DELETE", "/v1/templates/{}", Permission::TemplatesWrite),
    (
        "POST",
        "/v1/templates/{}/versions",
        Permission::TemplatesWrite,
    ),
    (
        "GET",
        "/v1/templates/{}/versions",
        Permission::TemplatesRead,
    ),
    (
        "GET",
        "/v1/templates/{}/versions/{}",
        Permission::TemplatesRead,
    ),
    (
        "POST",
        "/v1/templates/{}/preview",
        Permission::TemplatesRead,
    ),
    (
        "POST",
        "/v1/templates/{}/rollback/{}",
        Permission::TemplatesWrite,
    ),
    ("GET", "/v1/templates/{}/used-by", Permission::TemplatesRead),
    ("POST", "/v1/templates/{}/test-send", Permission::Send),
    ("GET", "/v1/unsubscribe-groups", Permission::SettingsWrite),
    ("POST", "/v1/unsubscribe-groups", Permission::SettingsWrite),
    (
        "PATCH",
        "/v1/unsubscribe-groups/{}",
        Permission::SettingsWrite,
    ),
    (
        "DELETE",
        "/v1/unsubscribe-groups/{}",
        Permission::SettingsWrite,
    ),
    ("GET", "/v1/suppressions", Permission::SettingsWrite),
    ("POST", "/v1/suppressions", Permission::SettingsWrite),
    ("POST", "/v1/suppressions/import", Permission::SettingsWrite),
    ("POST", "/v1/suppressions/remove", Permission::SettingsWrite),
    ("GET", "/v1/suppressions/export", Permission::SettingsWrite),
    ("DELETE", "/v1/suppressions/{}", Permission::SettingsWrite),
    ("POST", "/v1/erasures", Permission::SettingsWrite),
    ("GET", "/v1/metrics", Permission::MetricsRead),
    ("GET", "/v1/metrics/breakdown", Permission::MetricsRead),
    ("GET", "/v1/metrics/summary", Permission::MetricsRead),
    ("GET", "/v1/messages", Permission::MetricsRead),
    ("GET", "/v1/messages/{}", Permission::MetricsRead),
    ("GET", "/v1/messages/{}/content", Permission::ContentRead),
    ("GET", "/v1/messages/{}/recipients", Permission::MetricsRead),
    (
        "GET",
        "/v1/messages/{}/attachments",
        Permission::ContentRead,
    ),
    (
        "GET",
        "/v1/messages/{}/attachments/{}",
        Permission::ContentRead,
    ),
    ("POST", "/v1/messages/{}/retry", Permission::Send),
    ("POST", "/v1/messages/{}/cancel", Permission::Send),
    ("PATCH", "/v1/messages/{}", Permission::Send),
    ("GET", "/v1/routing-rules", Permission::ProvidersRead),
    ("POST", "/v1/routing-rules", Permission::ProvidersWrite),
    ("GET", "/v1/routing-rules/{}", Permission::ProvidersRead),
    (
        "GET",
        "/v1/routing-rules/{}/progress",
        Permission::ProvidersRead,
    ),
    ("PATCH", "/v1/routing-rules/{}", Permission::ProvidersWrite),
    ("DELETE", "/v1/routing-rules/{}", Permission::ProvidersWrite),
    (
        "POST",
        "/v1/routing-rules/resolve",
        Permission::ProvidersRead,
    ),
    (
        "POST",
        "/v1/routing-rules/simulate",
        Permission::ProvidersRead,
    ),
    ("GET", "/v1/api-keys", Permission::SettingsWrite),
    ("POST", "/v1/api-keys", Permission::SettingsWrite),
    ("GET", "/v1/api-keys/{}", Permission::SettingsWrite),
    ("PATCH", "/v1/api-keys/{}", Permission::SettingsWrite),
    ("DELETE", "/v1/api-keys/{}", Permission::SettingsWrite),
    ("POST", "/v1/api-keys/{}/rotate", Permission::SettingsWrite),
    ("GET", "/v1/members", Permission::MembersWrite),
    ("POST", "/v1/members", Permission::MembersWrite),
    ("GET", "/v1/members/{}", Permission::MembersWrite),
    ("PATCH", "/v1/members/{}", Permission::MembersWrite),
    ("DELETE", "/v1/members/{}", Permission::MembersWrite),
    ("GET", "/v1/invitations", Permission::MembersWrite),
    ("POST", "/v1/invitations", Permission::MembersWrite),
    ("GET", "/v1/invitations/{}", Permission::MembersWrite),
    ("PATCH", "/v1/invitations/{}", Permission::MembersWrite),
    ("DELETE", "/v1/invitations/{}", Permission::MembersWrite),
    ("GET", "/v1/settings", Permission::SettingsWrite),
    ("PATCH", "/v1/settings", Permission::SettingsWrite),
    ("GET", "/v1/audit-logs", Permission::SettingsWrite),
    ("GET", "/v1/webhook-endpoints", Permission::SettingsWrite),
    ("POST", "/v1/webhook-endpoints", Permission::SettingsWrite),
    ("GET", "/v1/webhook-endpoints/{}", Permission::SettingsWrite),
    (
        "PATCH",
        "/v1/webhook-endpoints/{}",
        Permission::SettingsWrite,
    ),
    (
        "DELETE",
        "/v1/webhook-endpoints/{}",
        Permission::SettingsWrite,
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{}/test",
        Permission::SettingsWrite,
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{}/rotate-secret",
        Permission::SettingsWrite,
    ),
    (
        "GET",
        "/v1/webhook-endpoints/{}/deliveries",
        Permission::SettingsWrite,
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{}/deliveries/{}/replay",
        Permission::SettingsWrite,
    ),
    (
        "POST",
        "/v1/webhook-endpoints/{}/replay",
        Permission::SettingsWrite,
    ),
];

/// Operations that require a second permission.
pub(super) const SECOND: [(&str, Permission); 2] = [
    (
        "/v1/providers/{}/suppressions/import",
        Permission::SettingsWrite,
    ),
    ("/v1/templates/{}/test-send", Permission::TemplatesRead),
];

/// The operations of the installation, which no key may call.
pub(super) const OF_OPERATORS: [(&str, &str); 6] = [
    ("GET", "/v1/operator/tasks"),
    ("GET", "/v1/operator/workers"),
    ("GET", "/v1/operator/queues"),
    ("GET", "/v1/operator/dead-jobs"),
    ("POST", "/v1/operator/dead-jobs/{}/retry"),
    ("DELETE", "/v1/operator/dead-jobs/{}"),
];

/// The operations that require a session, whatever its permissions.
pub(super) const OF_SESSIONS: [(&str, &str); 7] = [
    ("GET", "/v1/session"),
    ("PATCH", "/v1/session"),
    ("DELETE", "/v1/session"),
    ("PATCH", "/v1/user"),
    ("POST", "/v1/user/totp"),
    ("POST", "/v1/user/totp/confirm"),
    ("POST", "/v1/user/totp/disable"),
];

/// The operations without a key: their token identifies the caller, or they sign somebody in.
pub(super) const PUBLIC: [(&str, &str); 18] = [
    ("GET", "/v1/session/methods"),
    ("POST", "/v1/session"),
    ("GET", "/v1/session/oidc"),
    ("GET", "/v1/session/oidc/callback"),
    ("POST", "/v1/invitations/look-up"),
    ("POST", "/v1/invitations/accept"),
    ("POST", "/v1/password-resets/look-up"),
    ("POST", "/v1/password-resets/accept"),
    ("POST", "/v1/provider-events/{}"),
    ("GET", "/v1/unsubscribe/{}"),
    ("HEAD", "/v1/unsubscribe/{}"),
    ("POST", "/v1/unsubscribe/{}"),
    ("GET", "/v1/unsubscribe/{}/undo"),
    ("POST", "/v1/unsubscribe/{}/undo"),
    ("GET", "/v1/t/o/{}"),
    ("HEAD", "/v1/t/o/{}"),
    ("GET", "/v1/t/c/{}"),
    ("HEAD", "/v1/t/c/{}"),
];
