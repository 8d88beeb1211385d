//! The permissions as types, so that a handler's signature names the one that its operation
//! requires: `caller: Requires<permission::Send>`. Both the check and the document read it
//! there.

use waypost_core::auth::Permission;

/// A permission as a type.
pub(crate) trait PermissionType {
    /// The permission.
    const PERMISSION: Permission;
}

macro_rules! permission_types {
    ($($name:ident),+ $(,)?) => {
        $(
            pub(crate) enum $name {}

            impl PermissionType for $name {
                const PERMISSION: Permission = Permission::$name;
            }
        )+
    };
}

permission_types!(
    Send,
    TemplatesRead,
    TemplatesWrite,
    ProvidersRead,
    ProvidersWrite,
    MetricsRead,
    SettingsWrite,
    ContentRead,
    MembersWrite,
    Operator,
);
