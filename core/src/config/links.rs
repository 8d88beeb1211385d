//! The settings of the links in messages.

use std::net::Ipv4Addr;
use std::time::Duration;

use url::Url;

use super::reader::Reader;
use super::{ApiSettings, Environment};

/// Length limit of the public URL, in bytes. An unsubscribe link must fit into a header.
pub const PUBLIC_URL_BYTES_MAX: usize = 300;

/// The settings of the links in messages.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// The URL at which recipients reach the API: scheme, host, optional port and path,
    /// no trailing slash. It contains no character that HTML would have to escape.
    pub public_url: String,
    pub unsubscribe_lifetime: Duration,
    /// How long opens and clicks of a message are recorded. Its links work longer.
    pub tracking_lifetime: Duration,
    /// A request that arrives within this time after the message was composed counts as a
    /// machine's. Zero disables the check.
    pub machine_window: Duration,
}

/// Reads the settings. `api` gives the default of the public URL in development.
pub(super) fn read(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
    api: Option<&ApiSettings>,
) -> Option<LinkSettings> {
    const NAME: &str = "WAYPOST_PUBLIC_URL";
    let given = reader.given(NAME, "", "URL at which recipients reach the API, such as `https://mail.example.com`; a path may follow. Links in messages begin with it, so it must be the same in all processes. Use https: one-click unsubscribe requires it. Required in production. Default in development: the address in `WAYPOST_LISTEN`.");
    let is_development = environment == Some(Environment::Development);
    let own = api.filter(|_| is_development).map(own_url);
    let public_url = match (given, own) {
        (Some(text), _) => parse_public_url(&text),
        (None, Some(own)) => Ok(own),
        (None, None) => Err("is required: set the URL at which recipients reach the API"),
    };
    let public_url = public_url.map_err(|message| reader.reject(NAME, message));
    let unsubscribe_lifetime = reader.duration(
        "WAYPOST_UNSUBSCRIBE_LIFETIME",
        "60days",
        "How long an unsubscribe link works after the message was sent. Some countries require at least 30 days by law.",
    );
    let tracking_lifetime = reader.duration(
        "WAYPOST_TRACKING_LIFETIME",
        "400days",
        "How long opens and clicks are recorded after the message was sent. Tracked links redirect for longer: as long as the key that signed them is in `WAYPOST_ENCRYPTION_KEYS`.",
    );
    let machine_window = read_machine_window(reader, is_development);
    Some(LinkSettings {
        public_url: public_url.ok()?,
        unsubscribe_lifetime: unsubscribe_lifetime?,
        tracking_lifetime: tracking_lifetime?,
        machine_window: machine_window?,
    })
}

fn read_machine_window(reader: &mut Reader<'_>, is_development: bool) -> Option<Duration> {
    const NAME: &str = "WAYPOST_TRACKING_MACHINE_WINDOW";
    let given = reader.given(NAME, "", "Opens and clicks within this time after the message was sent are attributed to a machine, such as a virus scanner: they are marked and not counted. `0s` disables the check. Default: `2s`, in development `0s`.");
    let default = if is_development { "0s" } else { "2s" };
    let window = humantime::parse_duration(given.as_deref().unwrap_or(default)).ok();
    if window.is_none() {
        reader.reject(NAME, "must be a duration with a unit, such as 0s or 2s");
    }
    window
}

/// The URL of the API for clients on this machine.
fn own_url(api: &ApiSettings) -> String {
    let mut address = api.listen;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}")
}

fn parse_public_url(text: &str) -> Result<String, &'static str> {
    let malformed =
        "must be a URL such as https://mail.example.com, with nothing but a path after the host";
    let url = Url::parse(text).map_err(|_| malformed)?;
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%:[]".contains(&byte);
    let url_text = url.as_str().trim_end_matches('/');
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_bare {
        return Err(malformed);
    }
    if !url_text.bytes().all(is_plain) {
        return Err("must contain only letters, digits and - . _ ~ / %");
    }
    if url_text.len() > PUBLIC_URL_BYTES_MAX {
        return Err("must not be longer than 300 characters");
    }
    Ok(url_text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let variables = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect())
    }

    #[test]
    fn production_requires_a_public_url() {
        let database = ("DATABASE_URL", "postgres://localhost/waypost");
        let key = "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let key = ("WAYPOST_ENCRYPTION_KEYS", key);
        let error = read(&[database, key]).unwrap_err();
        assert_eq!(error.issues[0].path, "WAYPOST_PUBLIC_URL");
        assert_eq!(error.issues.len(), 1);
        for (text, expected) in [
            ("https://mail.example.com", Some("https://mail.example.com")),
            (
                "https://Mail.Example.com/",
                Some("https://mail.example.com"),
            ),
            (
                "http://[::1]:8080/way/post/",
                Some("http://[::1]:8080/way/post"),
            ),
            ("mail.example.com", None),
            ("ftp://mail.example.com", None),
            ("https://user@mail.example.com", None),
            ("https://mail.example.com/?a=b", None),
            ("https://mail.example.com/#a", None),
            ("https://mail.example.com/a&b", None),
            ("https://mail.example.com/a'b", None),
            (
                &format!("https://mail.example.com/{}", "a".repeat(300)),
                None,
            ),
        ] {
            let settings = read(&[database, key, ("WAYPOST_PUBLIC_URL", text)]);
            let url = settings.ok().map(|settings| settings.links.public_url);
            assert_eq!(url.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_machine_window_is_two_seconds_in_production_and_zero_in_development() {
        let base = [
            ("DATABASE_URL", "postgres://localhost/waypost"),
            (
                "WAYPOST_ENCRYPTION_KEYS",
                "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ),
            ("WAYPOST_PUBLIC_URL", "https://mail.example.com"),
        ];
        let window = |more: &[(&str, &str)]| {
            let settings = read(&[&base, more].concat());
            settings.map(|settings| settings.links.machine_window.as_millis())
        };
        assert_eq!(window(&[]).unwrap(), 2_000);
        assert_eq!(window(&[("WAYPOST_ENV", "development")]).unwrap(), 0);
        const NAME: &str = "WAYPOST_TRACKING_MACHINE_WINDOW";
        assert_eq!(window(&[(NAME, "0s")]).unwrap(), 0);
        assert_eq!(window(&[(NAME, "1500ms")]).unwrap(), 1_500);
        let error = window(&[(NAME, "soon")]).unwrap_err();
        assert_eq!(error.issues[0].path, NAME);
    }

    #[test]
    fn in_development_the_public_url_is_the_listen_address() {
        let base = [
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_ENV", "development"),
        ];
        for (listen, expected) in [
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("[::]:8080", "http://127.0.0.1:8080"),
            ("192.0.2.7:99", "http://192.0.2.7:99"),
        ] {
            let settings = read(&[base[0], base[1], ("WAYPOST_LISTEN", listen)]).unwrap();
            assert_eq!(settings.links.public_url, expected);
        }
    }
}
