//! Entry points for fuzzing templates. They do what a request does, on a thread with the
//! stack size of the render pool.

use std::thread;

use serde_json::Value;
use uuid::Uuid;

use super::render_pool::STACK_BYTES;
use super::{RENDERED_BYTES_MAX, SOURCE_BYTES_MAX, TemplateVersion, VersionContent};
use super::{compiled, render};
use crate::clock::Timestamp;
use crate::ids::OrganizationId;

/// Checks, compiles and renders a Handlebars template, as HTML and as text.
///
/// # Panics
/// If checked content does not compile or the output exceeds its limit.
pub fn handlebars(source: &str, variables: Value) {
    if source.len() > SOURCE_BYTES_MAX {
        return;
    }
    let content = VersionContent {
        mjml_source: None,
        html_content: source.to_owned(),
        text_content: Some(source.to_owned()),
        variables_schema: None,
    };
    on_a_thread(move || {
        let Ok(content) = compiled::check(content) else {
            return;
        };
        let version = version(content);
        let compiled = compiled::compile(OrganizationId(Uuid::nil()), &version);
        let compiled = compiled.expect("what was checked compiles");
        if let Ok(rendered) = render::bodies(&compiled, &variables) {
            assert!(rendered.html.len() <= RENDERED_BYTES_MAX);
            assert!(
                rendered
                    .text
                    .is_some_and(|text| text.len() <= RENDERED_BYTES_MAX)
            );
        }
    });
}

/// Checks and compiles an MJML template.
///
/// # Panics
/// If checked content does not compile or the HTML exceeds its limit.
pub fn mjml(source: &str) {
    if source.len() > SOURCE_BYTES_MAX {
        return;
    }
    let content = VersionContent {
        mjml_source: Some(source.to_owned()),
        html_content: String::new(),
        text_content: None,
        variables_schema: None,
    };
    on_a_thread(move || {
        if let Ok(content) = compiled::check(content) {
            assert!(content.html_content.len() <= SOURCE_BYTES_MAX);
            let compiled = compiled::compile(OrganizationId(Uuid::nil()), &version(content));
            compiled.expect("what was checked compiles");
        }
    });
}

fn version(content: VersionContent) -> TemplateVersion {
    TemplateVersion {
        id: Uuid::nil().into(),
        template_id: Uuid::nil().into(),
        version_number: 1,
        mjml_source: content.mjml_source,
        html_content: content.html_content,
        text_content: content.text_content,
        variables_schema: content.variables_schema,
        created_by: String::new(),
        created_at: Timestamp::default(),
    }
}

fn on_a_thread(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let thread = thread.expect("the system can start a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
