//! The permissions of API keys and sessions, and the roles of people, which are sets of them.

pub mod role;

use std::fmt;
use std::str::FromStr;

pub use role::Role;

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
    /// Manage the members of the organization and their roles.
    MembersWrite,
    /// See and change what belongs to the installation. No API key and no role has it: only the
    /// sessions of users whom the operator made operators.
    Operator,
}

impl Permission {
    /// The permissions that an API key or a role can have: those of the contract, in its order,
    /// then the others.
    pub const ALL: [Self; 9] = [
        Self::Send,
        Self::TemplatesRead,
        Self::TemplatesWrite,
        Self::ProvidersRead,
        Self::ProvidersWrite,
        Self::MetricsRead,
        Self::SettingsWrite,
        Self::ContentRead,
        Self::MembersWrite,
    ];

    /// All permissions.
    pub const EVERY: [Self; 10] = [
        Self::Send,
        Self::TemplatesRead,
        Self::TemplatesWrite,
        Self::ProvidersRead,
        Self::ProvidersWrite,
        Self::MetricsRead,
        Self::SettingsWrite,
        Self::ContentRead,
        Self::MembersWrite,
        Self::Operator,
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
            Self::MembersWrite => "MEMBERS_WRITE",
            Self::Operator => "OPERATOR",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses a permission that an API key can have.
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
    /// Those that an API key can have.
    #[must_use]
    pub fn all() -> Self {
        Self(Permission::ALL.to_vec())
    }

    /// Whether the set contains `permission`.
    #[must_use]
    pub fn contains(&self, permission: Permission) -> bool {
        self.0.contains(&permission)
    }

    /// The same set with one permission more.
    #[must_use]
    pub fn with(mut self, permission: Permission) -> Self {
        if !self.contains(permission) {
            self.0.push(permission);
        }
        self
    }

    /// The permissions of both sets.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        let either =
            |permission: &Permission| self.contains(*permission) || others.contains(*permission);
        Permission::EVERY.into_iter().filter(either).collect()
    }

    /// The first permission of this set that is not in `others`.
    #[must_use]
    pub fn first_not_in(&self, others: &Self) -> Option<Permission> {
        Permission::EVERY
            .into_iter()
            .find(|permission| self.contains(*permission) && !others.contains(*permission))
    }

    /// The names of the permissions, in the order of [`Permission::EVERY`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        Permission::EVERY
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
