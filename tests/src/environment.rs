//! The environment of the tests: servers, programs, log filter.

use std::path::{Path, PathBuf};

/// The PostgreSQL server in which every test creates its own database.
pub(crate) fn database_url() -> String {
    required("WAYPOST_TEST_DATABASE_URL")
}

/// The Redis that tests share, each under its own prefix.
pub(crate) fn redis_url() -> String {
    required("WAYPOST_TEST_REDIS_URL")
}

/// The program with which tests start their own Redis.
pub(crate) fn redis_server() -> String {
    read("WAYPOST_TEST_REDIS_SERVER").unwrap_or_else(|| "redis-server".to_owned())
}

/// The log filter of tasks within the tests; without it nothing is logged.
pub(crate) fn log_filter() -> Option<String> {
    read("WAYPOST_TEST_LOG")
}

/// The variables of this process that a child process needs to start.
pub(crate) fn inherited() -> Vec<(&'static str, String)> {
    let names = ["PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    names
        .into_iter()
        .filter_map(|name| Some((name, read(name)?)))
        .collect()
}

/// The folder of the binaries: `WAYPOST_BIN_DIR`, or cargo's folder next to this program.
///
/// # Panics
/// If the path of this program is unknown.
#[must_use]
pub fn binaries() -> PathBuf {
    if let Some(told) = read("WAYPOST_BIN_DIR") {
        return PathBuf::from(told);
    }
    let own = std::env::current_exe().expect("a process knows its program");
    let deps = own.parent().expect("a program lies in a folder");
    deps.parent()
        .expect("cargo puts tests into target/<profile>/deps")
        .to_owned()
}

/// The root of the repository.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the repository")
}

fn required(name: &str) -> String {
    read(name).unwrap_or_else(|| {
        panic!("{name} is not set. `make test` starts the servers that the tests need and sets it.")
    })
}

fn read(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test runner sets where the servers are"
    )]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}
