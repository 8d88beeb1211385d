//! The TLS certificate. Its files are looked at before a handshake, so that a renewed
//! certificate is used without a restart.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use waypost_core::clock::Timestamp;
use waypost_core::config::CertificateFiles;
use waypost_core::fault::Fault;
use waypost_core::warn_seldom;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// How long a look at the files counts.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The certificate of the server.
pub(super) struct TlsCertificate {
    files: CertificateFiles,
    loaded: Mutex<LoadedCertificate>,
}

struct LoadedCertificate {
    config: Arc<ServerConfig>,
    changed: FilesChanged,
    looked_at: Instant,
}

/// When the two files were changed.
type FilesChanged = [Option<SystemTime>; 2];

impl TlsCertificate {
    /// Reads the files.
    ///
    /// # Errors
    /// A fault that names the setting and the file.
    pub(super) fn load(files: CertificateFiles) -> Result<Self, Fault> {
        let changed = changed(&files);
        let config = read(&files).map_err(|problem| Fault::internal("use TLS", problem))?;
        Ok(Self {
            files,
            loaded: Mutex::new(LoadedCertificate {
                config,
                changed,
                looked_at: Instant::now(),
            }),
        })
    }

    /// What makes handshakes with the certificate of the files. If they have become wrong, the
    /// one before stays.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.looked_at.elapsed() >= LOOK_AGAIN_AFTER {
            loaded.looked_at = Instant::now();
            let changed = changed(&self.files);
            if changed != loaded.changed {
                match read(&self.files) {
                    Ok(config) => {
                        loaded.config = config;
                        loaded.changed = changed;
                        tracing::info!("Uses the renewed TLS certificate");
                    }
                    Err(problem) => {
                        warn_seldom!("Still uses the former TLS certificate: {problem}");
                    }
                }
            }
        }
        TlsAcceptor::from(Arc::clone(&loaded.config))
    }
}

fn changed(files: &CertificateFiles) -> FilesChanged {
    [&files.certificate, &files.key].map(|path| fs::metadata(path).ok()?.modified().ok())
}

/// When the server's certificate, the first of the file, expires; `None` if it cannot be read.
pub(super) fn expires_at(files: &CertificateFiles) -> Option<Timestamp> {
    let der = CertificateDer::from_pem_file(&files.certificate).ok()?;
    let certificate = Certificate::from_der(&der).ok()?;
    let validity = certificate.tbs_certificate().validity();
    let since_1970 = validity.not_after.to_unix_duration();
    Some((SystemTime::UNIX_EPOCH + since_1970).into())
}

/// Reads both files.
///
/// # Errors
/// What is wrong, with the setting and the path.
pub(super) fn read(files: &CertificateFiles) -> Result<Arc<ServerConfig>, String> {
    const CERTIFICATE: &str = "WAYPOST_SUBMISSION_TLS_CERTIFICATE";
    const KEY: &str = "WAYPOST_SUBMISSION_TLS_KEY";
    let text = |setting: &str, path: &Path| {
        fs::read(path).map_err(|error| format!("{setting}: {}: {error}", path.display()))
    };
    let no_pem = |setting: &str, path: &Path, what: &str| {
        format!("{setting}: {} has no {what} in PEM form", path.display())
    };
    let pem = text(CERTIFICATE, &files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| no_pem(CERTIFICATE, &files.certificate, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&text(KEY, &files.key)?)
        .map_err(|_| no_pem(KEY, &files.key, "private key"))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = builder.with_no_client_auth().with_single_cert(chain, key);
    let config = config.map_err(|error| {
        format!("{CERTIFICATE} and {KEY} do not belong together or are not supported: {error}")
    })?;
    Ok(Arc::new(config))
}
