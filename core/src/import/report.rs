//! What an import did, or would do.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{ImportKind, ImportSource};

/// The report of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReport {
    pub source: ImportSource,
    pub is_dry_run: bool,
    pub sections: Vec<ImportSection>,
}

/// The report of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSection {
    pub kind: ImportKind,
    /// The addresses, of which only numbers are reported.
    pub addresses: Option<AddressCounts>,
    pub entries: Vec<ImportedEntry>,
    /// What concerns all of the kind.
    pub notes: Vec<String>,
    /// Why the import of the kind is not complete.
    pub problem: Option<String>,
}

/// Numbers of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressCounts {
    pub imported: u64,
    /// Suppressed before.
    pub unchanged: u64,
    /// Entries that name no address, or that hold for some mail only.
    pub unusable: u64,
}

/// An object at the vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedEntry {
    pub vendor_id: String,
    pub name: String,
    pub action: ImportAction,
    /// The object here.
    pub id: Option<Uuid>,
    pub notes: Vec<String>,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportAction {
    Imported,
    /// It changed at the vendor since the last import.
    Updated,
    /// It is here already.
    Unchanged,
    /// It changed here since the last import, and stays as it is.
    Kept,
    /// It is not imported; the notes say why.
    LeftOut,
}

impl ImportAction {
    /// The name in the report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept",
            Self::LeftOut => "left out",
        }
    }
}

impl ImportReport {
    /// A report without anything in it.
    #[must_use]
    pub fn new(source: ImportSource, is_dry_run: bool) -> Self {
        Self {
            source,
            is_dry_run,
            sections: Vec::new(),
        }
    }

    /// Whether everything was read and nothing was written, because it was there.
    #[must_use]
    pub fn changed_nothing(&self) -> bool {
        self.sections.iter().all(|section| {
            let imports = section.addresses.is_some_and(|counts| counts.imported > 0);
            let changes = section.entries.iter().any(|entry| match entry.action {
                ImportAction::Imported | ImportAction::Updated => true,
                ImportAction::Unchanged | ImportAction::Kept | ImportAction::LeftOut => false,
            });
            !imports && !changes
        })
    }

    /// The kinds of which not everything could be read.
    #[must_use]
    pub fn incomplete(&self) -> Vec<&'static str> {
        let sections = self.sections.iter();
        let incomplete = sections.filter(|section| section.problem.is_some());
        incomplete.map(|section| section.kind.as_str()).collect()
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let sections = self.sections.iter().map(|section| {
            json!({
                "kind": section.kind.as_str(),
                "addresses": section.addresses.map(|counts| json!({
                    "imported": counts.imported, "unchanged": counts.unchanged,
                    "unusable": counts.unusable,
                })),
                "objects": section.entries.iter().map(entry_json).collect::<Value>(),
                "notes": section.notes,
                "problem": section.problem,
            })
        });
        json!({
            "from": self.source.as_str(), "dryRun": self.is_dry_run,
            "changedNothing": self.changed_nothing(),
            "sections": sections.collect::<Value>(),
        })
    }
}

fn entry_json(entry: &ImportedEntry) -> Value {
    json!({
        "vendorId": entry.vendor_id, "name": entry.name, "action": entry.action.as_str(),
        "id": entry.id, "notes": entry.notes,
    })
}

impl ImportSection {
    /// A section without anything in it.
    #[must_use]
    pub fn new(kind: ImportKind) -> Self {
        Self {
            kind,
            addresses: None,
            entries: Vec::new(),
            notes: Vec::new(),
            problem: None,
        }
    }

    /// How many objects have this action.
    #[must_use]
    pub fn count(&self, action: ImportAction) -> usize {
        let entries = self.entries.iter();
        entries.filter(|entry| entry.action == action).count()
    }
}
