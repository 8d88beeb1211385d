//! What an API key may do: the seven permissions of the contract.

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
}

impl Permission {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 7] = [
        Self::Send,
        Self::TemplatesRead,
        Self::TemplatesWrite,
        Self::ProvidersRead,
        Self::ProvidersWrite,
        Self::MetricsRead,
        Self::SettingsWrite,
    ];

    /// The wire name.
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
    /// All seven.
    #[must_use]
    pub fn all() -> Self {
        Self(Permission::ALL.to_vec())
    }

    /// Whether `permission` is among them.
    #[must_use]
    pub fn contains(&self, permission: Permission) -> bool {
        self.0.contains(&permission)
    }

    /// These and the others.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        let either =
            |permission: &Permission| self.contains(*permission) || others.contains(*permission);
        Permission::ALL.into_iter().filter(either).collect()
    }

    /// The first of these that is not in `others`.
    #[must_use]
    pub fn first_beyond(&self, others: &Self) -> Option<Permission> {
        Permission::ALL
            .into_iter()
            .find(|permission| self.contains(*permission) && !others.contains(*permission))
    }

    /// The wire names, in the order of the contract.
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
