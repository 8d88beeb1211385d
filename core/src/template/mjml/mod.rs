//! MJML becomes HTML when a version is created. The compiler, mrml, takes less than
//! mjml does and changes attribute values. So it never sees the source itself: `reader`
//! reads it as mjml does and bounds it, `defaults` and `adapt` say what each element's
//! attributes are, and `writer` writes a source of the same meaning for the compiler,
//! in which every content is a `code` that is put back afterwards. `head` and `patch`
//! do what the compiler does not. Includes are refused: there is nothing to include from.

mod adapt;
mod code;
mod defaults;
mod head;
mod markup;
mod patch;
mod reader;
mod selector;
mod writer;

use mrml::prelude::parser::Error as MjmlError;
use mrml::prelude::render::RenderOptions;

use super::SOURCE_BYTES_MAX;
use writer::MjmlOutput;

/// Compiles a source.
///
/// # Errors
/// What is wrong with it, with the line where that is known.
pub(super) fn compile(source: &str) -> Result<String, String> {
    let root = reader::read(source)?;
    let written = writer::write(&root)?;
    let parsed = mrml::parse(&written.source).map_err(|error| describe(&written, &error))?;
    let options = RenderOptions {
        // `head` puts them in.
        fonts: Default::default(),
        ..RenderOptions::default()
    };
    let compiled = parsed
        .element
        .render(&options)
        .map_err(|error| format!("cannot be compiled: {error}"))?;
    let too_long = || format!("compiles to more than {SOURCE_BYTES_MAX} bytes of HTML");
    let compiled = adapt::compiled(&compiled);
    let html = written.kept.put_back(&compiled, SOURCE_BYTES_MAX);
    let mut html = html.ok_or_else(too_long)?;
    html = patch::html_attributes(html, &written.html_attributes)?;
    head::add_fonts(&mut html, &written.fonts, &written.inline_styles)?;
    html = patch::inline_styles(html, &written.inline_styles)?;
    if !written.before.is_empty() {
        html = format!("{}\n{html}", written.before.join("\n"));
    }
    if html.len() > SOURCE_BYTES_MAX {
        return Err(too_long());
    }
    Ok(html)
}

/// An error of the compiler, which knows only what was written for it.
fn describe(written: &MjmlOutput<'_>, error: &MjmlError) -> String {
    let at = |position: &mrml::prelude::parser::Span, what: &str| {
        let line = written.line(position.start);
        let found = written.source.get(position.start..position.end);
        let found: String = found.unwrap_or_default().chars().take(40).collect();
        format!("line {line}: {what} {}", found.trim())
            .trim_end()
            .to_owned()
    };
    match error {
        MjmlError::UnexpectedElement { position, .. } => at(position, "unexpected element"),
        MjmlError::UnexpectedToken { position, .. } => at(position, "unexpected"),
        MjmlError::MissingAttribute { name, position, .. } => {
            at(position, &format!("the attribute {name} is missing in"))
        }
        MjmlError::InvalidAttribute { position, .. } => at(position, "invalid attribute"),
        MjmlError::InvalidFormat { position, .. } => at(position, "invalid format"),
        MjmlError::IncludeLoaderError { position, .. } => at(position, "includes are not served:"),
        MjmlError::ParserError { source, .. } => format!("cannot be compiled: {source}"),
        MjmlError::EndOfStream { .. } => {
            "the source ends before its elements are closed".to_owned()
        }
        MjmlError::NoRootNode => "there is no <mjml> element".to_owned(),
        MjmlError::SizeLimit { .. } => "is too large".to_owned(),
    }
}

#[cfg(test)]
mod tests;
