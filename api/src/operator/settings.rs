//! `waypost-api config`: all settings, and `waypost-api` without a command: how to begin.

use std::io::Write as _;

use clap::ValueEnum;
use serde_json::{Value, json};
use waypost_core::config::{ExaminedSettings, Settings};

use super::CommandError;
use super::output::OutputFormat;

/// How the settings are printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ConfigFormat {
    /// Environment variables, as in `.env.example`.
    Env,
    /// A table, as in `docs/configuration.md`.
    Markdown,
}

/// Says on standard error how to start Waypost, and which settings are missing or wrong.
pub(super) fn print_first_steps() {
    let mut text = String::from(
        "waypost-api needs a command. To start Waypost:\n\n\
         \x20 waypost-api migrate    create or update the database schema\n\
         \x20 waypost-api doctor     check the settings, the servers and the keys\n\
         \x20 waypost-api serve      serve the API\n\
         \x20 waypost-worker         send mail and call webhooks\n\
         \x20 waypost-scheduler      run the timed tasks\n\
         \x20 waypost-smtp           take mail over SMTP, if you want that\n\n\
         Each of them reads its settings from environment variables.",
    );
    let issues = ExaminedSettings::from_env().issues;
    if issues.is_empty() {
        text.push_str(" They are complete.\n");
    } else {
        text.push_str(" Correct these first:\n\n");
        for issue in issues {
            text.push_str(&format!("  {} {}\n", issue.path, issue.message));
        }
    }
    text.push_str("\n`waypost-api --help` lists all commands, `waypost-api config` all settings.");
    eprintln!("{text}");
}

pub(super) fn print_config(format: ConfigFormat, output: OutputFormat) -> Result<(), CommandError> {
    if output == OutputFormat::Json {
        let settings: Vec<Value> = Settings::reference()
            .iter()
            .map(|setting| {
                json!({
                    "name": setting.name, "default": setting.default, "meaning": setting.meaning,
                })
            })
            .collect();
        output.print(String::new, || Value::Array(settings));
        return Ok(());
    }
    let mut text = String::new();
    match format {
        ConfigFormat::Env => {
            for setting in Settings::reference() {
                let commented = format!("# {}={}", setting.name, setting.default);
                text.push_str(&format!("# {}\n{commented}\n\n", setting.meaning));
            }
        }
        ConfigFormat::Markdown => {
            text.push_str("| variable | default | meaning |\n|---|---|---|\n");
            for setting in Settings::reference() {
                let default = match setting.default.as_str() {
                    "" => "–".to_owned(),
                    default => format!("`{default}`"),
                };
                text.push_str(&format!(
                    "| `{}` | {default} | {} |\n",
                    setting.name, setting.meaning
                ));
            }
        }
    }
    print!("{text}");
    std::io::stdout().flush()?;
    Ok(())
}
