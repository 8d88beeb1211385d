//! The templates that vendors' requests name: by their ids in Waypost, or by those that they had
//! at the vendor before they were imported.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;
use waypost_core::fault::Fault;
use waypost_core::ids::{OrganizationId, TemplateId};
use waypost_core::import::imported_objects;

use super::Vendor;
use crate::context::Context;

/// What a request says that names no template.
pub(super) const UNKNOWN: &str =
    "must be the id of a template: of one in Waypost, or of one that was imported";

/// What ids of dynamic templates begin with at SendGrid. Its client for Node.js sends data only
/// with such an id, so ids of Waypost's may have it before them.
const DYNAMIC: &str = "d-";

/// The templates that a request names.
#[derive(Debug, Default)]
pub(super) struct NamedTemplates(BTreeMap<String, TemplateId>);

impl NamedTemplates {
    /// Finds the templates with these ids. Whether an id of Waypost's is one of a template shows
    /// at acceptance.
    ///
    /// # Errors
    /// A fault.
    pub(super) async fn find(
        context: &Context,
        organization_id: OrganizationId,
        vendor: Vendor,
        ids: BTreeSet<String>,
    ) -> Result<Self, Fault> {
        let mut found = BTreeMap::new();
        for id in ids {
            let source = vendor.import_source();
            let imported =
                imported_objects::find_template(&context.pool, organization_id, source, &id)
                    .await?;
            let template = imported
                .or_else(|| own(&id))
                .or_else(|| own(id.strip_prefix(DYNAMIC)?));
            found.extend(template.map(|template| (id, template)));
        }
        Ok(Self(found))
    }

    /// The template with this id.
    pub(super) fn get(&self, id: &str) -> Option<TemplateId> {
        self.0.get(id).copied()
    }
}

/// A template of Waypost's, if the text is an id.
fn own(id: &str) -> Option<TemplateId> {
    Uuid::parse_str(id).ok().map(TemplateId)
}
