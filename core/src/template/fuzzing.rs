//! Entry points for fuzzing templates. They do what a request does, on a thread with the
//! stack size of the render pool.

use std::thread;

use serde_json::Value;
use uuid::Uuid;

use super::render_pool::STACK_BYTES;
use super::{RENDERED_BYTES_MAX, SOURCE_BYTES_MAX, TemplateVersion, TextSource};
use super::{compiled, composition, render};
use crate::clock::Timestamp;
use crate::ids::OrganizationId;

/// Builds, compiles and renders a Handlebars template, as HTML and as text, and as HTML whose
/// text is made from it.
///
/// # Panics
/// If what was built does not compile or the output exceeds its limit.
pub fn handlebars(source: &str, variables: Value) {
    if source.len() > SOURCE_BYTES_MAX {
        return;
    }
    let (html, given) = (source.to_owned(), TextSource::Given(source.to_owned()));
    on_a_thread(move || {
        for text in [given, TextSource::FromHtml] {
            let Some((html, text)) = composition::build_alone(html.clone(), None, text) else {
                continue;
            };
            let compiled = compiled::compile(OrganizationId(Uuid::nil()), &version(html, text));
            let compiled = compiled.expect("what was built compiles");
            if let Ok(rendered) = render::bodies(&compiled, &variables) {
                assert!(rendered.html.len() <= RENDERED_BYTES_MAX);
                let text = rendered.text.unwrap_or_default();
                assert!(text.len() <= RENDERED_BYTES_MAX);
            }
        }
    });
}

/// Builds and compiles an MJML template.
///
/// # Panics
/// If what was built does not compile or the HTML exceeds its limit.
pub fn mjml(source: &str) {
    if source.len() > SOURCE_BYTES_MAX {
        return;
    }
    let mjml = source.to_owned();
    on_a_thread(move || {
        let built = composition::build_alone(String::new(), Some(mjml), TextSource::FromHtml);
        if let Some((html, text)) = built {
            assert!(html.len() <= SOURCE_BYTES_MAX);
            let compiled = compiled::compile(OrganizationId(Uuid::nil()), &version(html, text));
            compiled.expect("what was built compiles");
        }
    });
}

fn version(html_content: String, text_content: Option<String>) -> TemplateVersion {
    TemplateVersion {
        id: Uuid::nil().into(),
        template_id: Uuid::nil().into(),
        version_number: 1,
        locale: None,
        subject: None,
        preheader: None,
        from_mailbox: None,
        reply_to: Vec::new(),
        layout_id: None,
        mjml_source: None,
        html_content,
        html_source: None,
        text_content,
        text_source: None,
        is_text_generated: true,
        composition: 0,
        variables_schema: None,
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
