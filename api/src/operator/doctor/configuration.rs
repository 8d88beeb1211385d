//! Checks of the settings and of this process.

use std::net::IpAddr;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::{Host, Url};
use waypost_core::clock::Clock;
use waypost_core::config::{Environment, ExaminedSettings, Settings};
use waypost_core::network::guard::AddressGuard;
use waypost_core::process;
use waypost_core::provider::transport::{Transport, TransportSettings};

use super::report::{Report, Severity};
use crate::submission;

/// How long the look-up of a name may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long before its end a certificate should be renewed: those of Let's Encrypt are renewed a
/// month before, so that half of the tries have failed by then.
const RENEWAL_DUE: TimeDelta = TimeDelta::days(14);
/// Open files that an API needs beside its clients' connections.
const OTHER_FILES: u64 = 300;

pub(super) async fn check(examined: &ExaminedSettings, report: &mut Report) {
    const NAME: &str = "configuration";
    for issue in &examined.issues {
        let fix = match issue.path.as_str() {
            "WAYPOST_ENCRYPTION_KEYS" => {
                "new installations make one with `echo \"1:$(openssl rand -base64 32)\"`; others use the key of their stored data"
            }
            _ => "`waypost-api config` says what each setting means",
        };
        let message = format!("{} {}", issue.path, issue.message);
        report.found(Severity::Error, NAME, message, fix);
    }
    if examined.issues.is_empty() {
        report.ok(NAME, "every setting can be read");
    }
    let Some(settings) = &examined.settings else {
        return;
    };
    for name in &settings.unknown {
        let message = format!("there is no setting {name}");
        let fix = "correct its name, or remove it";
        report.found(Severity::Warning, NAME, message, fix);
    }
    check_certificates(settings, report);
    check_smtp_certificate(settings, report);
    if examined.is_right("WAYPOST_PUBLIC_URL") && settings.environment == Environment::Production {
        check_public_url(&settings.links.public_url, report).await;
    }
    check_open_files(settings, report);
}

/// Creating the transport reads the certificate file.
fn check_certificates(settings: &Settings, report: &mut Report) {
    let smtp = settings.smtp.clone();
    let transport = Transport::new(&TransportSettings {
        smtp,
        ..TransportSettings::default()
    });
    if let Err(fault) = transport {
        let fix = "install the system's root certificates (ca-certificates), and check WAYPOST_SMTP_CA_FILE";
        report.found(Severity::Error, "certificates", fault.chain(), fix);
    }
}

/// The certificate of `waypost-smtp`, where the settings of this process name one.
fn check_smtp_certificate(settings: &Settings, report: &mut Report) {
    const NAME: &str = "smtp-certificate";
    const RENEW: &str = "renew it; waypost-smtp uses the new file without a restart";
    let Some(files) = &settings.submission.certificate else {
        return;
    };
    let expires_at = match submission::check_certificate(files) {
        Ok(expires_at) => expires_at,
        Err(problem) => {
            let fix = "waypost-smtp does not start without it";
            report.found(Severity::Error, NAME, problem, fix);
            return;
        }
    };
    let now = Clock::system().now();
    match expires_at {
        Some(end) if end <= now => {
            let message = format!("it expired on {}, and clients refuse it", end.date_naive());
            report.found(Severity::Error, NAME, message, RENEW);
        }
        Some(end) if end - now < RENEWAL_DUE => {
            let message = format!("it expires on {}", end.date_naive());
            report.found(Severity::Warning, NAME, message, RENEW);
        }
        Some(_) | None => report.ok(NAME, "can be read and belongs to its key"),
    }
}

async fn check_public_url(text: &str, report: &mut Report) {
    const NAME: &str = "public-url";
    let fix = "set it to the https URL at which recipients reach the API";
    let url = Url::parse(text).ok();
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host()?))) else {
        return;
    };
    let addresses = resolve(&host).await;
    let message = if addresses.is_empty() {
        format!("the host of WAYPOST_PUBLIC_URL, {host}, does not resolve to an address")
    } else if addresses.iter().all(IpAddr::is_loopback) {
        let message =
            format!("WAYPOST_PUBLIC_URL is {text}, which leads recipients to their own machine");
        report.found(Severity::Error, NAME, message, fix);
        return;
    } else if !addresses
        .iter()
        .any(|address| AddressGuard::default().permits(*address))
    {
        format!("WAYPOST_PUBLIC_URL is {text}, which cannot be reached from the Internet")
    } else if url.scheme() == "http" {
        format!("WAYPOST_PUBLIC_URL is {text}, and one-click unsubscribe works with https only")
    } else {
        report.ok(NAME, text);
        return;
    };
    report.found(Severity::Warning, NAME, message, fix);
}

/// The addresses of a host; none if it has none.
async fn resolve(host: &Host<&str>) -> Vec<IpAddr> {
    let name = match host {
        Host::Ipv4(address) => return vec![(*address).into()],
        Host::Ipv6(address) => return vec![(*address).into()],
        Host::Domain(name) => *name,
    };
    match timeout(RESOLVE_TIMEOUT, lookup_host((name, 0))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn check_open_files(settings: &Settings, report: &mut Report) {
    const NAME: &str = "open-files";
    let connections = settings.api.connections_max;
    let needed = u64::try_from(connections).unwrap_or(u64::MAX) + OTHER_FILES;
    match process::open_files_max() {
        Some(most) if most < needed => report.found(
            Severity::Warning,
            NAME,
            format!("a process started here may open {most} files, and an API with WAYPOST_API_CONNECTIONS_MAX={connections} needs {needed}"),
            format!("raise the hard limit (`ulimit -Hn {needed}`, `LimitNOFILE=` in systemd), or lower the setting"),
        ),
        Some(_) | None => report.ok(NAME, format!("enough for {connections} connections")),
    }
}
