//! Compiles MJML to HTML when a version is created. The compiler, mrml, accepts less than
//! mjml and changes attribute values, so it does not get the original source. `reader`
//! parses the source as mjml does and checks its limits. `defaults` and `adapt` compute the
//! attributes of each element. `writer` writes an equivalent source for the compiler, with
//! `placeholders` for all content, which are replaced afterwards. `head` and `patch` add
//! what the compiler does not support. Includes are refused, because there are no files to
//! include.

mod adapt;
mod defaults;
mod head;
mod markup;
mod patch;
mod placeholders;
mod reader;
mod selector;
mod writer;

use mrml::prelude::parser::Error as MjmlError;
use mrml::prelude::render::RenderOptions;

use super::SOURCE_BYTES_MAX;
use super::problem::Problem;
use writer::CompilerInput;

/// Compiles MJML to HTML.
///
/// # Errors
/// The first error, with its line if it is known.
pub(super) fn compile(source: &str) -> Result<String, Problem> {
    let root = reader::read(source)?;
    let input = writer::write(&root)?;
    let parsed = mrml::parse(&input.source).map_err(|error| describe(&input, &error))?;
    let options = RenderOptions {
        // `head` adds the fonts.
        fonts: Default::default(),
        ..RenderOptions::default()
    };
    let compiled = parsed
        .element
        .render(&options)
        .map_err(|error| format!("cannot be compiled: {error}"))?;
    let too_long = || format!("compiles to more than {SOURCE_BYTES_MAX} bytes of HTML");
    let compiled = adapt::compiled(&compiled);
    let html = input.placeholders.restore(&compiled, SOURCE_BYTES_MAX);
    let mut html = html.ok_or_else(too_long)?;
    html = patch::html_attributes(html, &input.html_attributes)?;
    head::add_fonts(&mut html, &input.fonts, &input.inline_styles)?;
    html = patch::inline_styles(html, &input.inline_styles)?;
    if !input.before.is_empty() {
        html = format!("{}\n{html}", input.before.join("\n"));
    }
    if html.len() > SOURCE_BYTES_MAX {
        return Err(too_long().into());
    }
    Ok(html)
}

/// Describes an error of the compiler with the line in the original source.
fn describe(input: &CompilerInput<'_>, error: &MjmlError) -> Problem {
    let at = |position: &mrml::prelude::parser::Span, what: &str| {
        let line = input.line(position.start);
        let found = input.source.get(position.start..position.end);
        let found: String = found.unwrap_or_default().chars().take(40).collect();
        Problem::at_line(line, format!("{what} {}", found.trim()).trim_end())
    };
    let text = match error {
        MjmlError::UnexpectedElement { position, .. } => return at(position, "unexpected element"),
        MjmlError::UnexpectedToken { position, .. } => return at(position, "unexpected"),
        MjmlError::MissingAttribute { name, position, .. } => {
            return at(position, &format!("the attribute {name} is missing in"));
        }
        MjmlError::InvalidAttribute { position, .. } => return at(position, "invalid attribute"),
        MjmlError::InvalidFormat { position, .. } => return at(position, "invalid format"),
        MjmlError::IncludeLoaderError { position, .. } => {
            return at(position, "includes are not supported:");
        }
        MjmlError::ParserError { source, .. } => format!("cannot be compiled: {source}"),
        MjmlError::EndOfStream { .. } => {
            "the source ends before its elements are closed".to_owned()
        }
        MjmlError::NoRootNode => "there is no <mjml> element".to_owned(),
        MjmlError::SizeLimit { .. } => "is too large".to_owned(),
    };
    text.into()
}

#[cfg(test)]
mod tests;
