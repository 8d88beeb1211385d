//! `waypost-api import`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _};

use clap::{Args, ValueEnum};
use waypost_core::ids::{OrganizationId, ProviderAccountId};
use waypost_core::import::report::{ImportAction, ImportReport, ImportSection};
use waypost_core::import::{ImportJob, ImportKind, ImportSource, Importer, VendorKey};
use waypost_core::provider_account::AccountRefusal;
use waypost_core::secret::Secret;

use super::CommandError;
use super::output::OutputFormat;
use super::tools::CommandTools;
use crate::context::Context;

/// The longest key that is read, in bytes.
const KEY_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// Where to take over from: sendgrid, postmark, mailgun, ses or resend.
    #[arg(long)]
    from: ImportSource,
    /// The id of the organization that gets it.
    #[arg(long)]
    organization: OrganizationId,
    /// The id of a provider account of the organization whose credentials are used. Its domains
    /// are imported.
    #[arg(long)]
    account: Option<ProviderAccountId>,
    /// What is imported, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<KindOption>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindOption {
    Suppressions,
    Templates,
    Domains,
    Webhooks,
}

impl From<KindOption> for ImportKind {
    fn from(kind: KindOption) -> Self {
        match kind {
            KindOption::Suppressions => Self::Suppressions,
            KindOption::Templates => Self::Templates,
            KindOption::Domains => Self::Domains,
            KindOption::Webhooks => Self::Webhooks,
        }
    }
}

pub(super) async fn run(
    arguments: ImportArguments,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let tools = CommandTools::new("import").await?;
    tools.organization(arguments.organization).await?;
    let context = Context::new(&tools.settings, &tools.clock)?;
    let vendor = vendor(&arguments, &context).await?;
    let mut kinds: Vec<ImportKind> = arguments.only.iter().copied().map(Into::into).collect();
    if kinds.is_empty() {
        kinds = ImportKind::ALL.into();
    }
    let job = ImportJob {
        organization_id: arguments.organization,
        origin: tools.origin(),
        source: arguments.from,
        vendor,
        account: arguments.account,
        kinds,
        is_dry_run: arguments.dry_run,
    };
    let importer = Importer {
        pool: context.pool.clone(),
        accounts: context.accounts.clone(),
        suppressions: context.suppressions.clone(),
        templates: context.templates.clone(),
        endpoints: context.webhook_endpoints.clone(),
        resend_base: tools.settings.resend_base_url.clone(),
    };
    let mut report = ImportReport::new(arguments.from, arguments.dry_run);
    let done = importer
        .run(&job, &mut report, &|line| eprintln!("{line}"))
        .await;
    format.print(|| text(&report), || report.to_json());
    done?;
    let incomplete = report.incomplete();
    if incomplete.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not complete: {}. Repeat the command when the cause is removed; what is imported stays",
        incomplete.join(", ")
    )
    .into())
}

/// The key: of a connected account, or from standard input.
async fn vendor(arguments: &ImportArguments, context: &Context) -> Result<VendorKey, CommandError> {
    let (source, organization) = (arguments.from, arguments.organization);
    let Some(id) = arguments.account else {
        let key = read_key()?;
        let parsed = VendorKey::parse(source, &key);
        return Ok(parsed.map_err(|error| format!("the key on standard input: {error}"))?);
    };
    let credentials = match context.accounts.open(organization, id).await {
        Ok((_, credentials)) => credentials,
        Err(AccountRefusal::Fault(fault)) => return Err(fault.into()),
        Err(
            AccountRefusal::NotFound
            | AccountRefusal::InvalidCredentials { .. }
            | AccountRefusal::Undecided { .. },
        ) => {
            return Err(format!("organization {organization} has no provider account {id}").into());
        }
    };
    let kind = credentials.provider_type();
    if Some(kind) != source.provider_type() {
        return Err(format!("account {id} is of {kind}, not of {}", source.title()).into());
    }
    Ok(VendorKey::Provider(credentials))
}

fn read_key() -> Result<Secret, CommandError> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(
            "standard input must have the key, for example `waypost-api import … < key.txt`; or name a provider account with --account".into(),
        );
    }
    let mut key = String::new();
    input
        .take(KEY_BYTES_MAX)
        .read_to_string(&mut key)
        .map_err(|error| format!("cannot read the key from standard input: {error}"))?;
    if key.trim().is_empty() {
        return Err("standard input has no key; or name a provider account with --account".into());
    }
    Ok(Secret::from(key))
}

fn text(report: &ImportReport) -> String {
    let mut out = String::new();
    let verb = if report.is_dry_run {
        "would be imported"
    } else {
        "imported"
    };
    for section in &report.sections {
        section_text(section, verb, &mut out);
    }
    out.push_str(match (report.is_dry_run, report.changed_nothing()) {
        (true, true) => "Dry run: there is nothing to import.\n",
        (true, false) => "Dry run: nothing was written.\n",
        (false, true) => "Nothing has changed.\n",
        (false, false) => "",
    });
    out
}

fn section_text(section: &ImportSection, verb: &str, out: &mut String) {
    let kind = section.kind.as_str();
    let mut line = |text: String| {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{text}");
    };
    if let Some(counts) = section.addresses {
        line(format!(
            "{kind}: {} {verb}, {} are here already, {} cannot be used",
            counts.imported, counts.unchanged, counts.unusable
        ));
    } else {
        let count = |action| section.count(action);
        line(format!(
            "{kind}: {} {verb}, {} updated, {} unchanged, {} kept, {} left out",
            count(ImportAction::Imported),
            count(ImportAction::Updated),
            count(ImportAction::Unchanged),
            count(ImportAction::Kept),
            count(ImportAction::LeftOut)
        ));
    }
    for entry in &section.entries {
        let id = entry.id.map(|id| format!(" → {id}")).unwrap_or_default();
        let name = if entry.name == entry.vendor_id {
            printable(&entry.name)
        } else {
            format!(
                "{} ({})",
                printable(&entry.name),
                printable(&entry.vendor_id)
            )
        };
        line(format!("  {:9}  {name}{id}", entry.action.as_str()));
        for note in &entry.notes {
            line(format!("             {}", printable(note)));
        }
    }
    for note in &section.notes {
        line(format!("  {note}"));
    }
    if let Some(problem) = &section.problem {
        line(format!("  NOT COMPLETE: {}", printable(problem)));
    }
}

/// A text of the vendor without characters that a terminal interprets.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
