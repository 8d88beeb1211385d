//! The simulator as a program: it listens until SIGTERM or SIGINT.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use waypost_simulator::{Config, Simulator};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulates the HTTP APIs of SendGrid, Postmark, Mailgun and Amazon SES, and an SMTP
/// server.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Address and port to listen on.
    #[arg(long, env = "SIMULATOR_LISTEN", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Address and port of the SMTP server with STARTTLS; no such server if not given.
    #[arg(long, env = "SIMULATOR_SMTP_LISTEN")]
    smtp_listen: Option<SocketAddr>,
    /// Address and port of the SMTP server with TLS from the first byte.
    #[arg(long, env = "SIMULATOR_SMTPS_LISTEN")]
    smtps_listen: Option<SocketAddr>,
    /// File for the SMTP server's certificate as PEM; each start generates a new one.
    #[arg(long, env = "SIMULATOR_SMTP_CERTIFICATE")]
    smtp_certificate: Option<PathBuf>,
    /// Accepted recipients to keep in full; older ones are only counted.
    #[arg(long, env = "SIMULATOR_KEEP", default_value_t = Config::default().keep_recipients_max)]
    keep: usize,
    /// Bytes of accepted messages to keep; older messages are only counted.
    #[arg(long, env = "SIMULATOR_KEEP_BYTES", default_value_t = Config::default().keep_bytes_max)]
    keep_bytes: usize,
    /// Whether to keep text and HTML. Load tests turn it off.
    #[arg(
        long,
        env = "SIMULATOR_KEEP_BODIES",
        default_value_t = true,
        action = clap::ArgAction::Set
    )]
    keep_bodies: bool,
    /// The secret of an SES access key, as `ACCESS_KEY_ID=SECRET`; may be repeated. For
    /// other keys any secret is accepted.
    #[arg(long = "ses-credential", value_parser = parse_ses_credential)]
    ses_credentials: Vec<(String, String)>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waypost-simulator: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> std::io::Result<()> {
    // Before listening, so that no early signal is lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(path) = options.smtp_certificate {
        std::fs::write(path, waypost_simulator::smtp_certificate())?;
    }
    let simulator = Simulator::start(Config {
        listen: options.listen,
        smtp_listen: options.smtp_listen,
        smtps_listen: options.smtps_listen,
        keep_recipients_max: options.keep,
        keep_bytes_max: options.keep_bytes,
        keep_bodies: options.keep_bodies,
        ses_credentials: options.ses_credentials,
        ses_any_secret: true,
    })?;
    println!("waypost-simulator listens on {}", simulator.url());
    for (address, how) in [
        (simulator.smtp_address(), "STARTTLS"),
        (simulator.smtps_address(), "TLS"),
    ] {
        if let Some(address) = address {
            println!("waypost-simulator accepts mail on {address}, with {how}");
        }
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    simulator.shutdown().await;
    Ok(())
}

fn parse_ses_credential(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, secret)) if !id.is_empty() && !secret.is_empty() => {
            Ok((id.to_owned(), secret.to_owned()))
        }
        _ => Err("expected ACCESS_KEY_ID=SECRET".to_owned()),
    }
}
