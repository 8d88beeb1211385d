//! The inbox: a web page of captured messages, without scripts and without external
//! resources.
//!
//! A message's HTML is shown in a sandboxed frame, under a policy that loads nothing from
//! the network.

use std::fmt::Write;

use http::{Method, StatusCode};

use crate::mail::{Captured, Kind};
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const ROWS_MAX: usize = 200;
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("inbox.css");

/// `None` if this module does not serve the path.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.method != Method::GET {
        return None;
    }
    if request.path() == "/" {
        return Some(page(StatusCode::OK, &list(state, request)));
    }
    let path = request.path().strip_prefix("/inbox/")?;
    if let Some((sequence, nth)) = path.split_once("/attachments/") {
        return Some(file(state, sequence.parse().ok()?, nth.parse().ok()?));
    }
    let sequence = path.parse().ok()?;
    Some(match state.captures.find(sequence) {
        Some(captured) => page(StatusCode::OK, &detail(&captured)),
        None => {
            let gone = "<p class=\"empty\">This mail is no longer kept.</p>";
            page(StatusCode::NOT_FOUND, gone)
        }
    })
}

/// An attachment. A browser saves it and never shows it: it may be any page.
fn file(state: &State, sequence: u64, nth: usize) -> Answer {
    let captured = state.captures.find(sequence);
    let file = captured.and_then(|captured| captured.attachments.into_iter().nth(nth));
    match file {
        Some(file) => reply::file(file.content)
            .with_header("content-disposition", &disposition(&file.filename))
            .with_header("content-security-policy", POLICY)
            .with_header("x-content-type-options", "nosniff"),
        None => page(
            StatusCode::NOT_FOUND,
            "<p class=\"empty\">This file is no longer kept.</p>",
        ),
    }
}

fn disposition(filename: &str) -> String {
    let name = percent_encoding::utf8_percent_encode(filename, percent_encoding::NON_ALPHANUMERIC);
    format!("attachment; filename*=utf-8''{name}")
}

fn list(state: &State, request: &Request) -> String {
    let address = request.query("to").unwrap_or_default();
    let address = address.trim();
    let mails = if address.is_empty() {
        state.captures.newest(None, ROWS_MAX)
    } else {
        state.captures.to(address, ROWS_MAX)
    };
    let total: u64 = state.captures.counts().iter().sum();
    let mut html = format!(
        "<form method=\"get\" action=\"/\"><label>Recipient <input type=\"search\" name=\"to\" \
         value=\"{}\" placeholder=\"address\"></label><button>Show</button>\
         <span class=\"count\">{total} accepted</span></form>",
        escape(address)
    );
    if mails.is_empty() {
        html.push_str(&match address {
            "" => "<p class=\"empty\">No mail yet. What a provider accepts appears here.</p>"
                .to_owned(),
            _ => format!(
                "<p class=\"empty\">No mail to {}. <a href=\"/\">All mail</a></p>",
                escape(address)
            ),
        });
        return html;
    }
    html.push_str(
        "<table><thead><tr><th>Accepted</th><th>Provider</th><th>To</th><th>From</th>\
         <th>Subject</th></tr></thead><tbody>",
    );
    for mail in mails.iter().rev() {
        // Writing into a String cannot fail.
        let _ = write!(
            html,
            "<tr><td class=\"time\">{}</td><td><span class=\"tag\">{}</span></td>\
             <td data-name=\"To\">{}</td><td data-name=\"From\">{}</td><td class=\"subject\"><a href=\"/inbox/{}\">{}</a></td></tr>",
            escape(&mail.accepted_at),
            mail.provider.name(),
            escape(&mail.to),
            escape(&mail.from),
            mail.sequence,
            escape(or_else(&mail.subject, "(no subject)"))
        );
    }
    html.push_str("</tbody></table>");
    html
}

fn detail(mail: &Captured) -> String {
    let mut html = format!(
        "<p><a href=\"/\">All mail</a></p><h2>{}</h2><dl>",
        escape(or_else(&mail.subject, "(no subject)"))
    );
    row(&mut html, "From", &mail.from);
    row(&mut html, "To", &mail.to);
    let kind = match mail.kind {
        Kind::To => "To",
        Kind::Cc => "Cc",
        Kind::Bcc => "Bcc",
    };
    row(&mut html, "Named in", kind);
    row(
        &mut html,
        "Shown in To and Cc",
        &mail.visible_recipients.join(", "),
    );
    if !mail.visible_cc.is_empty() {
        row(&mut html, "Shown in Cc", &mail.visible_cc.join(", "));
    }
    row(&mut html, "Provider", mail.provider.name());
    row(&mut html, "Provider message id", &mail.provider_message_id);
    row(&mut html, "Accepted", &mail.accepted_at);
    if !mail.tags.is_empty() {
        row(&mut html, "Tags", &mail.tags.join(", "));
    }
    html.push_str("</dl>");
    pairs(&mut html, "Headers", &mail.headers);
    pairs(&mut html, "Metadata", &mail.metadata);
    if !mail.attachments.is_empty() {
        html.push_str("<h3>Attachments</h3><ul>");
        for (nth, file) in mail.attachments.iter().enumerate() {
            let (name, kind) = (escape(&file.filename), escape(&file.content_type));
            let id = file
                .content_id
                .as_deref()
                .map_or_else(String::new, |id| format!(", shown as cid:{}", escape(id)));
            let _ = write!(
                html,
                "<li><a href=\"/inbox/{}/attachments/{nth}\">{name}</a> \
                 <small>{kind}, {} bytes{id}, SHA-256 {}</small></li>",
                mail.sequence, file.bytes, file.sha256
            );
        }
        html.push_str("</ul>");
    }
    if let Some(content) = &mail.html {
        let _ = write!(
            html,
            "<h3>HTML</h3><iframe sandbox=\"allow-popups allow-popups-to-escape-sandbox\" \
             title=\"HTML body\" srcdoc=\"{}\"></iframe>",
            escape(&with_links_in_new_tabs(content))
        );
    }
    if let Some(text) = &mail.text {
        let _ = write!(html, "<h3>Text</h3><pre>{}</pre>", escape(text));
    }
    html
}

/// Links open in a new tab, since many sites refuse to be shown in a frame.
fn with_links_in_new_tabs(content: &str) -> String {
    const BASE: &str = "<base target=\"_blank\">";
    let mut content = content.to_owned();
    let lower = content.to_ascii_lowercase();
    let end_of = |tag: &str| {
        let start = lower.find(tag)?;
        let end = start + lower[start..].find('>')?;
        Some(end + 1)
    };
    // A tag before the doctype would switch browsers to quirks mode.
    let offset = end_of("<head>").or_else(|| end_of("<head "));
    let offset = offset
        .or_else(|| end_of("<html"))
        .or_else(|| end_of("<!doctype"));
    content.insert_str(offset.unwrap_or(0), BASE);
    for frame in ["_self", "_parent", "_top"] {
        content = content.replace(&format!("target=\"{frame}\""), "");
    }
    content
}

fn row(html: &mut String, name: &str, value: &str) {
    let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
}

fn pairs(html: &mut String, title: &str, pairs: &std::collections::BTreeMap<String, String>) {
    if pairs.is_empty() {
        return;
    }
    let _ = write!(html, "<h3>{title}</h3><dl>");
    for (name, value) in pairs {
        row(html, name, value);
    }
    html.push_str("</dl>");
}

fn page(status: StatusCode, content: &str) -> Answer {
    let html = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Simulator inbox</title><style>{STYLE}</style></head><body>\
         <header><h1><a href=\"/\">Simulator inbox</a></h1>\
         <p>Mail the simulated providers accepted. Nothing leaves this machine.</p></header>\
         <main>{content}</main></body></html>"
    );
    let answer = reply::html(status, html);
    let answer = answer.with_header("content-security-policy", POLICY);
    let answer = answer.with_header("x-content-type-options", "nosniff");
    answer.with_header("referrer-policy", "no-referrer")
}

fn or_else<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// Escapes for element text and for attributes in double quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"
        );
    }
}
