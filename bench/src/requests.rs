//! The requests of the load, as bytes.

use std::io::Write as _;
use std::sync::Arc;

use crate::fixture::Tenant;
use crate::load::Writer;

/// Bytes of HTML in each message.
const HTML_BYTES: usize = 1_024;
/// Messages per batch.
pub(crate) const BATCH: u64 = 100;
/// Recipients of a large send.
pub(crate) const RECIPIENTS: u64 = 1_000;

/// The address of the recipient with this number.
pub(crate) fn recipient(number: u64) -> String {
    format!("reader{number}@mail{}.example.net", number % 50)
}

/// HTML of [`HTML_BYTES`].
pub(crate) fn html() -> String {
    let mut html = "<html><body>".to_owned();
    while html.len() < HTML_BYTES - 24 {
        html.push_str("<p>Thank you for your order.</p>");
    }
    html.truncate(HTML_BYTES - 14);
    html + "</body></html>"
}

/// Sends of one message to one recipient; every other request has an idempotency key.
pub(crate) fn sends(tenants: &Arc<Vec<Tenant>>) -> Writer {
    let (tenants, html) = (Arc::clone(tenants), html());
    Arc::new(move |number, request| {
        let body = format!(
            "{{\"from\":\"Bench <news@example.com>\",\"to\":\"{}\",\"subject\":\"Order {number}\",\
             \"tags\":[\"receipt\"],\"html\":\"{html}\"}}",
            recipient(number)
        );
        let key = number.is_multiple_of(2).then_some(number);
        write(request, "/v1/send", tenant(&tenants, number), key, &body);
    })
}

/// The same with a stored template.
pub(crate) fn templated(tenants: &Arc<Vec<Tenant>>) -> Writer {
    let tenants = Arc::clone(tenants);
    Arc::new(move |number, request| {
        let tenant = tenant(&tenants, number);
        let body = format!(
            "{{\"from\":\"Bench <news@example.com>\",\"to\":\"{}\",\"subject\":\"Receipt\",\"tags\":[\"receipt\"],\"templateId\":\"{}\",\
             \"variables\":{{\"name\":\"Ada\",\"amount\":\"{number}.00\"}}}}",
            recipient(number),
            tenant.template_id,
        );
        let key = number.is_multiple_of(2).then_some(number);
        write(request, "/v1/send", tenant, key, &body);
    })
}

/// Batches of [`BATCH`] messages.
pub(crate) fn batches(tenants: &Arc<Vec<Tenant>>) -> Writer {
    let (tenants, html) = (Arc::clone(tenants), html());
    Arc::new(move |number, request| {
        let mut body = "{\"messages\":[".to_owned();
        for offset in 0..BATCH {
            let nth = number * BATCH + offset;
            let comma = if offset == 0 { "" } else { "," };
            body.push_str(&format!(
                "{comma}{{\"from\":\"Bench <news@example.com>\",\"to\":\"{}\",\"subject\":\"Order {nth}\",\
                 \"tags\":[\"receipt\"],\"html\":\"{html}\"}}",
                recipient(nth)
            ));
        }
        body.push_str("]}");
        write(
            request,
            "/v1/emails/batch",
            tenant(&tenants, number),
            None,
            &body,
        );
    })
}

/// Sends of one message to [`RECIPIENTS`].
pub(crate) fn large(tenants: &Arc<Vec<Tenant>>) -> Writer {
    to_many(tenants, "")
}

/// The same with a pixel of its own in each mail.
pub(crate) fn large_tracked(tenants: &Arc<Vec<Tenant>>) -> Writer {
    to_many(tenants, "\"tracking\":{\"opens\":true},")
}

/// Sends of one message to [`RECIPIENTS`]; `fields` are JSON members, each with its comma.
fn to_many(tenants: &Arc<Vec<Tenant>>, fields: &'static str) -> Writer {
    let (tenants, html) = (Arc::clone(tenants), html());
    Arc::new(move |number, request| {
        let addresses = (0..RECIPIENTS)
            .map(|offset| format!("\"{}\"", recipient(number * RECIPIENTS + offset)));
        let body = format!(
            "{{\"from\":\"Bench <news@example.com>\",\"to\":[{}],\"subject\":\"Digest\",\"tags\":[\"digest\"],{fields}\
             \"html\":\"{html}\"}}",
            addresses.collect::<Vec<_>>().join(",")
        );
        write(request, "/v1/send", tenant(&tenants, number), None, &body);
    })
}

pub(crate) fn tenant(tenants: &[Tenant], number: u64) -> &Tenant {
    &tenants[number as usize % tenants.len()]
}

pub(crate) fn write(
    request: &mut Vec<u8>,
    path: &str,
    tenant: &Tenant,
    key: Option<u64>,
    body: &str,
) {
    let key = key.map_or_else(String::new, |key| {
        format!("Idempotency-Key: bench-{key}\r\n")
    });
    write!(
        request,
        "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         {key}Content-Length: {}\r\n\r\n{body}",
        tenant.key,
        body.len()
    )
    .expect("writing to a vector cannot fail");
}
