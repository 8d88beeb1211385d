//! Writes the client SDKs from the OpenAPI document:
//!
//! ```text
//! waypost-sdk-generator openapi/waypost.v1.json sdks/generator/templates sdks openapi/samples.json
//! ```
//!
//! The document is read into one [`model`] of the API, which no language has shaped. Each [`language`] spells it, and its
//! templates lay it out. Nothing about a single operation, field or status is written here: what the document gains, every
//! SDK gains. What the generator does not know, it refuses.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

mod go;
mod language;
mod layout;
mod model;
mod naming;
mod operations;
mod python;
mod render;
mod rust;
mod samples;
mod schemas;
mod typescript;

const LANGUAGES: [&dyn language::Language; 4] = [
    &typescript::TypeScript,
    &python::Python,
    &go::Go,
    &rust::Rust,
];

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [document, templates, output, samples] = arguments.as_slice() else {
        eprintln!("usage: waypost-sdk-generator DOCUMENT TEMPLATES OUTPUT SAMPLES");
        return ExitCode::from(2);
    };
    match generate(document, templates, output, samples) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waypost-sdk-generator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(
    document: &Path,
    templates: &Path,
    output: &Path,
    samples: &Path,
) -> Result<(), String> {
    let text =
        fs::read_to_string(document).map_err(|error| format!("{}: {error}", document.display()))?;
    let document =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", document.display()))?;
    let model = operations::model(&document)?;
    for language in LANGUAGES {
        for (name, text) in render::render(&model, language, templates)? {
            let path = output.join(language.directory()).join(name);
            write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let text = format!("{:#}\n", samples::samples(&model, &LANGUAGES)?);
    write(samples, &text).map_err(|error| format!("{}: {error}", samples.display()))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}
