//! The permissions of API keys.

use std::fmt;
use std::str::FromStr;

/// One permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    Send,
    TemplatesRead,
    /// Create, update and delete templates.
    TemplatesWrite,
    /// Read provider accounts, their domains and the routing rules.
    ProvidersRead,
    /// Connect, update and delete provider accounts, domains and routing rules.
    ProvidersWrite,
    /// Read delivery metrics and messages.
    MetricsRead,
    /// Manage the organization: keys, settings, suppressions, webhook endpoints.
    SettingsWrite,
    /// Read the content of messages: bodies, headers, attachments.
    ContentRead,
}

impl Permission {
    /// All permissions: those of the contract, in its order, then the others.
    pub const ALL: [Self; 8] = [
        Self::Send,
        Self::TemplatesRead,
        Self::TemplatesWrite,
        Self::ProvidersRead,
        Self::ProvidersWrite,
        Self::MetricsRead,
        Self::SettingsWrite,
        Self::ContentRead,
    ];

    /// The name in the API and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::TemplatesRead => "TEMPLATES_READ",
            Self::TemplatesWrite => "TEMPLATES_WRITE",
            Self::ProvidersRead => "PROVIDERS_READ",
            Self::ProvidersWrite => "PROVIDERS_WRITE",
            Self::MetricsRead => "METRICS_READ",
            Self::SettingsWrite => "SETTINGS_WRITE",
            Self::ContentRead => "CONTENT_READ",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Permission {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.as_str() == word)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::as_str).join(", ");
                format!("must be one of {known}")
            })
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions(Vec<Permission>);

impl Permissions {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self(Permission::ALL.to_vec())
    }

    /// Whether the set contains `permission`.
    #[must_use]
    pub fn contains(&self, permission: Permission) -> bool {
        self.0.contains(&permission)
    }

    /// The permissions of both sets.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        let either =
            |permission: &Permission| self.contains(*permission) || others.contains(*permission);
        Permission::ALL.into_iter().filter(either).collect()
    }

    /// The first permission of this set that is not in `others`.
    #[must_use]
    pub fn first_not_in(&self, others: &Self) -> Option<Permission> {
        Permission::ALL
            .into_iter()
            .find(|permission| self.contains(*permission) && !others.contains(*permission))
    }

    /// The names of the permissions, in the order of [`Permission::ALL`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        Permission::ALL
            .into_iter()
            .filter(|permission| self.contains(*permission))
            .map(|permission| permission.as_str().to_owned())
            .collect()
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().collect())
    }
}
