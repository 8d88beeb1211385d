//! The URL of Redis, parsed without connecting or reading files: the address of a server, or
//! the addresses of Sentinels and the name of the master that they watch.

use std::path::PathBuf;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};
use url::Url;

use crate::secret::Secret;

/// The form of a URL, for error messages.
pub(super) const FORM: &str = "redis://user:password@host:port/number";
/// The port of a Sentinel whose address has none.
const SENTINEL_PORT: u16 = 26_379;

/// A parsed URL.
#[derive(Debug)]
pub(super) struct RedisUrl {
    /// The server. For Sentinels, only the login and the number of the database count, and
    /// whether it uses TLS.
    pub(super) server: ConnectionInfo,
    pub(super) sentinels: Option<Sentinels>,
    pub(super) files: TlsFiles,
}

/// The Sentinels that know the address of the master.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) addresses: Vec<ConnectionAddr>,
    /// The name of the master in the configuration of the Sentinels.
    pub(super) master: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
}

/// Files in PEM format, named as in the URL of Postgres.
#[derive(Debug, Default)]
pub(super) struct TlsFiles {
    /// `sslrootcert`: the authorities to trust instead of the public ones.
    pub(super) authorities: Option<PathBuf>,
    /// `sslcert` and `sslkey`: what the server knows the client by.
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

/// Parses a URL. The error completes "REDIS_URL …" and contains no password; `None` stands
/// for any other form.
pub(super) fn parse(text: &str) -> Result<RedisUrl, Option<String>> {
    let (scheme, rest) = text.split_once("://").ok_or(None)?;
    match scheme {
        "redis+sentinel" => parse_sentinels("redis", rest),
        "rediss+sentinel" => parse_sentinels("rediss", rest),
        _ => {
            let url = Url::parse(text).map_err(|_| None)?;
            let parameters = Parameters::read(&url)?;
            if parameters.sentinel != (None, None) {
                let problem = "may have sentinel_user and sentinel_password only in a URL that begins with redis+sentinel:// or rediss+sentinel://";
                return Err(Some(problem.to_owned()));
            }
            Ok(RedisUrl {
                server: text.into_connection_info().map_err(|_| None)?,
                sentinels: None,
                files: parameters.files,
            })
        }
    }
}

/// Parses what follows the scheme: `user:password@host:port,host:port/master/number`.
fn parse_sentinels(scheme: &str, rest: &str) -> Result<RedisUrl, Option<String>> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), authority),
    };
    // With one host in place of the list it is a URL that the libraries read.
    let url = Url::parse(&format!("{scheme}://{login}sentinel{path}")).map_err(|_| None)?;
    let parameters = Parameters::read(&url)?;
    let mut parts = url.path().strip_prefix('/').unwrap_or_default().split('/');
    let master = parts.next().unwrap_or_default().to_owned();
    let number = parts.next().unwrap_or_default().to_owned();
    if master.is_empty() || parts.next().is_some() {
        let problem = "must name the master that the Sentinels watch: redis+sentinel://user:password@host:26379,host:26379/master/number";
        return Err(Some(problem.to_owned()));
    }
    let mut server = url;
    server.set_path(&number);
    let addresses = hosts.split(',').map(|host| sentinel(scheme, host));
    let (user, password) = parameters.sentinel;
    Ok(RedisUrl {
        server: server.into_connection_info().map_err(|_| None)?,
        sentinels: Some(Sentinels {
            addresses: addresses.collect::<Option<_>>().ok_or(None)?,
            master,
            user,
            password: password.map(Secret::from),
        }),
        files: parameters.files,
    })
}

fn sentinel(scheme: &str, host: &str) -> Option<ConnectionAddr> {
    let mut url = Url::parse(&format!("{scheme}://{host}")).ok()?;
    if url.port().is_none() {
        url.set_port(Some(SENTINEL_PORT)).ok()?;
    }
    Some(url.into_connection_info().ok()?.addr().clone())
}

/// The parameters after the question mark.
#[derive(Default)]
struct Parameters {
    files: TlsFiles,
    sentinel: (Option<String>, Option<String>),
}

impl Parameters {
    fn read(url: &Url) -> Result<Self, Option<String>> {
        let mut parameters = Self::default();
        let (mut certificate, mut key) = (None, None);
        for (name, value) in url.query_pairs() {
            let file = || Some(PathBuf::from(value.as_ref()));
            match name.as_ref() {
                "sslrootcert" => parameters.files.authorities = file(),
                "sslcert" => certificate = file(),
                "sslkey" => key = file(),
                "sentinel_user" => parameters.sentinel.0 = Some(value.into_owned()),
                "sentinel_password" => parameters.sentinel.1 = Some(value.into_owned()),
                // Those of the client library; the last three are for Unix sockets.
                "protocol" | "db" | "user" | "pass" => {}
                _ => return Err(Some(unknown(&name))),
            }
        }
        parameters.files.client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Some("must have both of sslcert and sslkey".to_owned()));
            }
        };
        let has_files = parameters.files.authorities.is_some() || parameters.files.client.is_some();
        if has_files && !matches!(url.scheme(), "rediss" | "valkeys") {
            return Err(Some(
                "must begin with rediss:// or rediss+sentinel:// if it has sslrootcert, sslcert or sslkey".to_owned(),
            ));
        }
        if url.fragment().is_some() {
            let problem = "must not contain #: in a password, # is written as %23";
            return Err(Some(problem.to_owned()));
        }
        Ok(parameters)
    }
}

/// Names an unknown parameter. What does not look like a name may be a part of a password.
fn unknown(name: &str) -> String {
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let name = if is_name { name } else { "" };
    format!(
        "has an unknown parameter {name}: the parameters are sslrootcert, sslcert, sslkey, sentinel_user and sentinel_password, and a ? in a password is written as %3F"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_sentinels_has_several_addresses_and_a_master() {
        let url = parse(
            "rediss+sentinel://ann:p%40ss@one:1,[::1],two/main/3?sslrootcert=/ca&sentinel_user=bob&sentinel_password=x",
        );
        let url = url.unwrap();
        let sentinels = url.sentinels.unwrap();
        let addresses: Vec<String> = sentinels
            .addresses
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(addresses, ["one:1", "::1:26379", "two:26379"]);
        assert_eq!(sentinels.master, "main");
        assert_eq!(sentinels.user.as_deref(), Some("bob"));
        let login = url.server.redis_settings();
        assert_eq!(
            (login.username(), login.password()),
            (Some("ann"), Some("p@ss"))
        );
        assert_eq!(login.db(), 3);
        assert_eq!(url.files.authorities, Some(PathBuf::from("/ca")));
        let is_tls = |address| matches!(address, &ConnectionAddr::TcpTls { .. });
        assert!(is_tls(url.server.addr()) && sentinels.addresses.iter().all(is_tls));
    }

    #[test]
    fn a_wrong_url_is_explained_without_the_password() {
        for (text, part) in [
            ("redis+sentinel://:canary@one,two", "must name the master"),
            ("redis+sentinel://:canary@one/a/0/b", "must name the master"),
            (
                "redis://:canary@one?sslrootcert=/ca",
                "begin with rediss://",
            ),
            (
                "rediss://:canary@one?sslcert=/c",
                "both of sslcert and sslkey",
            ),
            (
                "rediss://:canary@one?sslrotcert=/ca",
                "parameter sslrotcert:",
            ),
            ("redis://one?CANARY@two", "an unknown parameter :"),
            ("rediss://:canary@one/0#insecure", "must not contain #"),
            ("redis://:canary@one?sentinel_user=x", "only in a URL"),
        ] {
            let problem = parse(text).unwrap_err().unwrap();
            assert!(problem.contains(part), "{text}: {problem}");
            assert!(!problem.to_lowercase().contains("canary"), "{problem}");
        }
        for text in [
            "redis+sentinel://one,:/main",
            "http://one",
            "one:6379",
            "redis+sentinel:///main",
        ] {
            assert!(matches!(parse(text), Err(None)), "{text}");
        }
    }
}
