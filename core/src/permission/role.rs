//! The roles of an organization's members. A role is a fixed set of permissions.

use std::fmt;
use std::str::FromStr;

use super::{Permission, Permissions};

/// What a member of an organization may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything, and who else may do what.
    Owner,
    /// Everything except the members.
    Admin,
    /// Sending, templates, and reading what becomes of messages.
    Developer,
    /// Reading, without the content of messages.
    Viewer,
}

impl Role {
    /// All roles, from the one with the most permissions.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Developer, Self::Viewer];

    /// The name in the API and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Admin => "ADMIN",
            Self::Developer => "DEVELOPER",
            Self::Viewer => "VIEWER",
        }
    }

    /// The permissions of a member with this role.
    #[must_use]
    pub fn permissions(self) -> Permissions {
        let is_held: fn(Permission) -> bool = match self {
            Self::Owner => |_| true,
            Self::Admin => |permission| permission != Permission::MembersWrite,
            Self::Developer => |permission| {
                [
                    Permission::Send,
                    Permission::TemplatesRead,
                    Permission::TemplatesWrite,
                    Permission::MetricsRead,
                    Permission::ProvidersRead,
                    Permission::ContentRead,
                ]
                .contains(&permission)
            },
            Self::Viewer => |permission| {
                [
                    Permission::MetricsRead,
                    Permission::TemplatesRead,
                    Permission::ProvidersRead,
                ]
                .contains(&permission)
            },
        };
        let held = Permission::ALL.into_iter();
        held.filter(|permission| is_held(*permission)).collect()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut roles = Self::ALL.into_iter();
        roles.find(|role| role.as_str() == word).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("must be one of {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_its_permissions() {
        assert_eq!(Role::Owner.permissions(), Permissions::all());
        let admin = Role::Admin.permissions();
        let lacking = Permissions::all().first_not_in(&admin);
        assert_eq!(lacking, Some(Permission::MembersWrite));
        assert_eq!(admin.names().len(), Permission::ALL.len() - 1);
        assert_eq!(
            Role::Developer.permissions().names(),
            [
                "SEND",
                "TEMPLATES_READ",
                "TEMPLATES_WRITE",
                "PROVIDERS_READ",
                "METRICS_READ",
                "CONTENT_READ"
            ]
        );
        assert_eq!(
            Role::Viewer.permissions().names(),
            ["TEMPLATES_READ", "PROVIDERS_READ", "METRICS_READ"]
        );
    }

    #[test]
    fn no_role_has_the_permission_of_the_operator() {
        for role in Role::ALL {
            assert!(!role.permissions().contains(Permission::Operator), "{role}");
            assert_eq!(role.as_str().parse(), Ok(role));
        }
    }
}
