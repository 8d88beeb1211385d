//! Rows 22 and 23: what attachments cost, and mails that all recipients of a message share.

use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::fixture::{Builder, Cpu, Plan};
use crate::load::{self, Until, Writer};
use crate::report::{Bound, Figure, Report};
use crate::requests;
use crate::sending::wait_until_drained;
use crate::{Failure, progress, usage};

/// The argument that makes this program a proxy.
pub(crate) const COMMAND: &str = "proxy";
/// Bytes of an attachment. A multiple of 3, so that its base64 has no padding.
const FILE_BYTES: usize = 200 * 1_024 / 3 * 3;
/// Messages with an attachment.
const FILES: u64 = 2_000;
/// Concurrent requests of these rows.
const CONNECTIONS: usize = 16;
/// Messages of row 23, each to [`RECIPIENTS`].
const MESSAGES: u64 = 3_000;
const RECIPIENTS: u64 = 10;

/// Rows 22 and 23.
pub(crate) async fn run(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    attachments(builder, report).await?;
    shared(builder, report).await
}

/// Row 22. The proxy moves the bytes that Waypost sends to the provider.
async fn attachments(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let megabytes = (FILES as usize * FILE_BYTES) as f64 / 1e6;
    let floor = proxied(builder).await? / megabytes * 1e3;
    let (cpu, worker) = deliver(builder, FILES, FILES, &with_file(builder)).await?;
    let each = cpu.sum() / megabytes * 1e3;
    report.add(Figure {
        row: "22",
        what: "CPU of a message with 200 KB attached, per MB",
        figure: format!("{each:.1} ms"),
        baseline: format!("{floor:.2} ms bare proxy"),
        ratio: Some(each / floor),
        bound: Bound::AtMost(45.0),
    });
    report.keep(
        "whole",
        "attachment",
        json!({ "cpu_ms_per_mb": each, "floor_ms_per_mb": floor, "worker_pss_mib": worker,
                "cpu": cpu.per_message(FILES) }),
    );
    progress(cpu.per_message(FILES));
    Ok(())
}

/// Row 23: mails to ten recipients against ten private mails each.
async fn shared(builder: &Builder, report: &mut Report) -> Result<(), Failure> {
    let recipients = MESSAGES * RECIPIENTS;
    let private = to_ten(builder, "");
    let (private, _) = deliver(builder, MESSAGES, recipients, &private).await?;
    let shared = to_ten(builder, "\"delivery\":\"shared\",");
    let (shared, _) = deliver(builder, MESSAGES, recipients, &shared).await?;
    let ratio = shared.sum() / private.sum();
    report.add(Figure {
        row: "23",
        what: "CPU of mails that ten recipients share",
        figure: format!("{:.3} s for 1,000", shared.sum() / MESSAGES as f64 * 1e3),
        baseline: format!("{:.3} s private", private.sum() / MESSAGES as f64 * 1e3),
        ratio: Some(ratio),
        bound: Bound::AtMost(1.1),
    });
    report.keep(
        "whole",
        "shared",
        json!({ "ratio": ratio, "shared": shared.per_message(MESSAGES),
                "private": private.per_message(MESSAGES) }),
    );
    progress(shared.per_message(MESSAGES));
    Ok(())
}

/// Accepts and delivers messages. Returns the CPU that it took, and the worker's memory at its
/// peak.
async fn deliver(
    builder: &Builder,
    messages: u64,
    recipients: u64,
    sends: &Writer,
) -> Result<(Cpu, f64), Failure> {
    let fixture = builder.fixture(Plan::ONE_OF_EACH).await?;
    builder.simulator.clear_captured();
    let before = fixture.cpu();
    let delivering = async {
        let until = Until::Count(messages);
        let sends = Arc::clone(sends);
        load::closed_loop(&fixture.addresses, CONNECTIONS, 0, until, sends)
            .await?
            .require_success()?;
        wait_until_drained(builder, &fixture, recipients).await
    };
    let (delivered, worker) = usage::peak_mib(fixture.workers[0].id(), delivering).await;
    delivered?;
    let cpu = fixture.cpu().since(before);
    fixture.remove(builder).await?;
    Ok((cpu, worker))
}

/// Sends with one attachment, each with another content.
fn with_file(builder: &Builder) -> Writer {
    let (tenants, html) = (Arc::clone(&builder.tenants), requests::html());
    Arc::new(move |number, request| {
        let body = format!(
            "{{\"from\":\"Bench <news@example.com>\",\"to\":\"{}\",\"subject\":\"Invoice {number}\",\"html\":\"{html}\",\
             \"attachments\":[{{\"filename\":\"invoice.pdf\",\"content\":\"{}\"}}]}}",
            requests::recipient(number),
            file(number)
        );
        let tenant = requests::tenant(&tenants, number);
        requests::write(request, "/v1/send", tenant, None, &body);
    })
}

/// A file in base64 that only this number has.
fn file(number: u64) -> String {
    let mut content = vec![b'%'; FILE_BYTES];
    content[..8].copy_from_slice(&number.to_be_bytes());
    STANDARD.encode(content)
}

/// Sends to [`RECIPIENTS`]; `fields` are JSON members, each with its comma.
fn to_ten(builder: &Builder, fields: &'static str) -> Writer {
    let (tenants, html) = (Arc::clone(&builder.tenants), requests::html());
    Arc::new(move |number, request| {
        let addresses = (0..RECIPIENTS).map(|offset| {
            let address = requests::recipient(number * RECIPIENTS + offset);
            format!("\"{address}\"")
        });
        let body = format!(
            "{{\"from\":\"Bench <news@example.com>\",\"to\":[{}],\"subject\":\"Minutes {number}\",{fields}\
             \"html\":\"{html}\"}}",
            addresses.collect::<Vec<_>>().join(",")
        );
        let tenant = requests::tenant(&tenants, number);
        requests::write(request, "/v1/send", tenant, None, &body);
    })
}

/// CPU seconds of a proxy through which the files reach the provider.
async fn proxied(builder: &Builder) -> Result<f64, Failure> {
    let program = std::env::current_exe()?;
    let target = builder.simulator.url();
    let mut child: Child = Command::new(program)
        .arg(COMMAND)
        .arg(target.trim_start_matches("http://"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut address = String::new();
    let stdout = child.stdout.take().ok_or("it is piped")?;
    BufReader::new(stdout).read_line(&mut address).await?;
    let id = child.id().ok_or("it runs")?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("http://{}/v3/mail/send", address.trim());
    for number in 0..FILES {
        let mail = json!({
            "personalizations": [{ "to": [{ "email": requests::recipient(number) }] }],
            "from": { "email": "news@example.com" },
            "subject": "Invoice",
            "content": [{ "type": "text/html", "value": requests::html() }],
            "attachments": [{ "filename": "invoice.pdf", "type": "application/pdf", "content": file(number) }],
        });
        let key = &builder.tenants[0].provider_key;
        let answer = client
            .post(&url)
            .bearer_auth(key)
            .json(&mail)
            .send()
            .await?;
        answer.error_for_status()?.bytes().await?;
    }
    Ok(usage::cpu_seconds(id))
}

/// Runs the proxy: it copies the bytes of each connection to the address in the second
/// argument, and prints its own address.
pub(crate) async fn run_proxy() {
    let target = std::env::args().nth(2).expect("it has a target");
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("the loopback interface has free ports");
    let address = listener.local_addr().expect("a listener has an address");
    println!("{address}");
    while let Ok((mut client, _)) = listener.accept().await {
        let target = target.clone();
        tokio::spawn(async move {
            if let Ok(mut server) = TcpStream::connect(target).await {
                let _closed = copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
