//! The operations of the contract, one module per resource.

pub(crate) mod messages;
pub(crate) mod providers;
pub(crate) mod send;
pub(crate) mod template_versions;
pub(crate) mod templates;

use poem_openapi::Tags;

/// The sections of the document.
#[derive(Tags)]
pub(crate) enum Section {
    /// Sending messages.
    Sending,
    /// Accepted messages and their history.
    Messages,
    /// Connected accounts at providers.
    Providers,
    /// Subjects and bodies written once, and their versions.
    Templates,
}
