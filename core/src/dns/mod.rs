//! Look-ups in DNS: what a name has of one type. The answer says whether there is such a
//! record, no record, or no such name, and keeps these apart from a look-up that failed:
//! who judges a domain must not take a server that is away for a record that is missing.
//!
//! Answers are not cached: a check asks again what the resolver of the system knows. An
//! answer over 1,232 bytes is read over TCP.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tracing::warn;

/// How long a server may take to answer one query: dig's default is five seconds.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Queries of one look-up, if servers do not answer.
const QUERIES_MAX: usize = 2;
/// The longest time of a look-up, with its aliases (CNAME).
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The most values of an answer that are kept.
const VALUES_MAX: usize = 100;
/// The longest value that is kept, in characters. A TXT record of a 4,096-bit key has 736.
const VALUE_CHARS_MAX: usize = 4_096;

/// The servers to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsServers {
    /// Those of `/etc/resolv.conf`.
    System,
    Listed(Vec<SocketAddr>),
    /// None: every look-up fails.
    Disabled,
}

/// The types of records that are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DnsQuestion {
    Txt,
    Cname,
    Mx,
    /// An IPv4 address, or an IPv6 address if there is none.
    Address,
}

/// What DNS says of a name and a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "status",
    content = "values"
)]
pub enum DnsAnswer {
    /// The values: a TXT record with its strings joined, the target of a CNAME record in
    /// lower case without the final dot, `priority host` of an MX record.
    Found(Vec<String>),
    /// The name exists, without a record of this type.
    NoRecord,
    NoDomain,
    /// Nobody knows: the reason.
    Failed(String),
}

impl DnsAnswer {
    /// The values; `None` if the look-up failed.
    #[must_use]
    pub fn values(&self) -> Option<&[String]> {
        match self {
            Self::Found(values) => Some(values),
            Self::NoRecord | Self::NoDomain => Some(&[]),
            Self::Failed(_) => None,
        }
    }

    /// Whether DNS has nothing there: a void look-up (RFC 7208, 4.6.4).
    #[must_use]
    pub fn is_void(&self) -> bool {
        matches!(self, Self::NoRecord | Self::NoDomain)
    }
}

/// Asks DNS servers. Cheap to clone.
#[derive(Clone)]
pub struct DnsResolver {
    resolver: Option<TokioResolver>,
}

impl DnsResolver {
    /// A resolver that asks these servers. If the servers of the system are not known, a
    /// warning is logged and every look-up fails.
    #[must_use]
    pub fn new(servers: &DnsServers) -> Self {
        let provider = TokioRuntimeProvider::default();
        let builder = match servers {
            DnsServers::Disabled => return Self { resolver: None },
            DnsServers::System => TokioResolver::builder(provider),
            DnsServers::Listed(addresses) => {
                let servers = addresses.iter().map(|address| name_server(*address));
                let config = ResolverConfig::from_name_servers(servers.collect());
                Ok(TokioResolver::builder_with_config(config, provider))
            }
        };
        let built = builder.and_then(|mut builder| {
            set_options(builder.options_mut());
            builder.build()
        });
        if let Err(error) = &built {
            warn!(%error, "Could not read which DNS servers the system uses; domains are not looked up. Set WAYPOST_DNS_SERVERS");
        }
        Self {
            resolver: built.ok(),
        }
    }

    /// Whether there are servers to ask.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.resolver.is_some()
    }

    /// Looks up the records of a name, within five seconds.
    pub async fn look_up(&self, question: DnsQuestion, name: &str) -> DnsAnswer {
        let Some(resolver) = &self.resolver else {
            return DnsAnswer::Failed("look-ups are switched off".to_owned());
        };
        let Ok(mut name) = Name::from_ascii(name) else {
            return DnsAnswer::Failed("the name is not valid in DNS".to_owned());
        };
        // A complete name: the search domains of the system are not tried.
        name.set_fqdn(true);
        let asking = async {
            match question {
                DnsQuestion::Txt => ask(resolver, name, RecordType::TXT).await,
                DnsQuestion::Cname => ask(resolver, name, RecordType::CNAME).await,
                DnsQuestion::Mx => ask(resolver, name, RecordType::MX).await,
                DnsQuestion::Address => {
                    let answer = ask(resolver, name.clone(), RecordType::A).await;
                    match answer {
                        DnsAnswer::NoRecord => ask(resolver, name, RecordType::AAAA).await,
                        found @ (DnsAnswer::Found(_)
                        | DnsAnswer::NoDomain
                        | DnsAnswer::Failed(_)) => found,
                    }
                }
            }
        };
        let answer = timeout(LOOKUP_TIMEOUT, asking).await;
        answer.unwrap_or_else(|_| DnsAnswer::Failed("no server answered in time".to_owned()))
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = address.port();
    }
    NameServerConfig::new(address.ip(), true, connections)
}

fn set_options(options: &mut ResolverOpts) {
    options.timeout = QUERY_TIMEOUT;
    options.attempts = QUERIES_MAX;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.edns0 = true;
}

async fn ask(resolver: &TokioResolver, name: Name, wanted: RecordType) -> DnsAnswer {
    let lookup = match resolver.lookup(name, wanted).await {
        Ok(lookup) => lookup,
        Err(error) => return failed(&error),
    };
    let records = lookup.answers().iter();
    let records = records.filter(|record| record.record_type() == wanted);
    let mut values: Vec<String> = records
        .filter_map(|record| value(&record.data))
        .take(VALUES_MAX)
        .collect();
    values.sort();
    if values.is_empty() {
        return DnsAnswer::NoRecord;
    }
    DnsAnswer::Found(values)
}

fn failed(error: &NetError) -> DnsAnswer {
    if let NetError::Dns(DnsError::NoRecordsFound(none)) = error {
        if none.response_code == ResponseCode::NXDomain {
            return DnsAnswer::NoDomain;
        }
        if none.response_code == ResponseCode::NoError {
            return DnsAnswer::NoRecord;
        }
    }
    DnsAnswer::Failed(kept(&error.to_string()))
}

/// The value as text; `None` for other types.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "DNS has many types, and only these are asked for"
)]
fn value(data: &RData) -> Option<String> {
    match data {
        RData::TXT(txt) => {
            let joined: Vec<u8> = txt.txt_data.iter().flatten().copied().collect();
            Some(kept(&String::from_utf8_lossy(&joined)))
        }
        RData::CNAME(target) => Some(host(&target.0)),
        RData::MX(mx) => Some(format!("{} {}", mx.preference, host(&mx.exchange))),
        RData::A(address) => Some(address.to_string()),
        RData::AAAA(address) => Some(address.to_string()),
        _ => None,
    }
}

fn host(name: &Name) -> String {
    let name = name.to_lowercase().to_ascii();
    kept(name.strip_suffix('.').unwrap_or(&name))
}

/// The text as it can be stored: PostgreSQL stores no NUL.
fn kept(text: &str) -> String {
    let shown = text.chars().take(VALUE_CHARS_MAX);
    shown
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}
