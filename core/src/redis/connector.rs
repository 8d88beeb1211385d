//! Makes connections to Redis. With Sentinels, each connection goes to the master of the
//! moment: the Sentinels are asked anew for each, so connections follow a failover.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_ok;
use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind,
    RedisError, RedisResult, TlsCertificates, TlsMode,
};
use secrecy::ExposeSecret as _;

use super::url::{RedisUrl, Sentinels, TlsFiles};

/// Makes connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connector(Arc<RedisTarget>);

enum RedisTarget {
    Server(Client),
    Master(Master),
}

/// The master that Sentinels watch.
struct Master {
    sentinels: Sentinels,
    /// The login and the database at the master; not its address.
    server: ConnectionInfo,
    certificates: Option<TlsCertificates>,
}

impl Connector {
    /// Reads the files of a URL. Does not connect.
    ///
    /// # Errors
    /// A sentence about a file that cannot be used.
    pub(super) fn new(url: RedisUrl) -> Result<Self, String> {
        let certificates = certificates(&url.files)?;
        let target = match url.sentinels {
            Some(sentinels) => RedisTarget::Master(Master {
                sentinels,
                server: url.server,
                certificates,
            }),
            None => RedisTarget::Server(
                match certificates {
                    Some(certificates) => Client::build_with_tls(url.server, certificates),
                    None => Client::open(url.server),
                }
                .map_err(|error| error.to_string())?,
            ),
        };
        let connector = Self(Arc::new(target));
        // The Sentinels' client reads the certificates when it is built.
        if let RedisTarget::Master(master) = &*connector.0 {
            for address in &master.sentinels.addresses {
                let built = master.by(address).and_then(SentinelClientBuilder::build);
                built.map_err(|error| error.to_string())?;
            }
        }
        Ok(connector)
    }

    /// Connects `within` a time. A call on the connection fails if there is no reply after
    /// `answer_within`.
    pub(crate) async fn connect(
        &self,
        within: Duration,
        answer_within: Option<Duration>,
    ) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(within))
            .set_response_timeout(answer_within);
        let connecting = async {
            match &*self.0 {
                RedisTarget::Server(client) => {
                    client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await
                }
                RedisTarget::Master(master) => {
                    let client = master.find().await?;
                    client
                        .get_multiplexed_async_connection_with_config(&config)
                        .await
                }
            }
        };
        let late = || RedisError::from((ErrorKind::Io, "no connection in time"));
        let connected = tokio::time::timeout(within, connecting).await;
        connected.unwrap_or_else(|_late| Err(late()))
    }

    /// Where Redis is, for the operator.
    pub(super) fn address(&self) -> String {
        match &*self.0 {
            RedisTarget::Server(client) => client.get_connection_info().addr().to_string(),
            RedisTarget::Master(master) => {
                let sentinels = &master.sentinels;
                let addresses: Vec<String> = sentinels
                    .addresses
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let (name, addresses) = (&sentinels.master, addresses.join(", "));
                format!("the master {name} of the Sentinels {addresses}")
            }
        }
    }

    pub(super) fn has_sentinels(&self) -> bool {
        match &*self.0 {
            RedisTarget::Server(_) => false,
            RedisTarget::Master(_) => true,
        }
    }
}

impl Master {
    /// Asks all Sentinels at once for the master, and takes the first answer that is
    /// confirmed by that master. The library asks several too, but takes their answers in
    /// their order, and so waits for one that hangs.
    async fn find(&self) -> RedisResult<Client> {
        let addresses = self.sentinels.addresses.iter();
        let asked = addresses.map(|address| {
            Box::pin(async {
                let mut sentinel = self.by(address)?.build()?;
                sentinel.async_get_client().await
            })
        });
        Ok(select_ok(asked).await?.0)
    }

    /// A client that asks one Sentinel.
    fn by(&self, address: &ConnectionAddr) -> RedisResult<SentinelClientBuilder> {
        let (sentinels, login) = (&self.sentinels, self.server.redis_settings());
        let kind = SentinelServerType::Master;
        let mut client = SentinelClientBuilder::new([address.clone()], &sentinels.master, kind)?
            .set_client_to_redis_db(login.db())
            .set_client_to_redis_protocol(login.protocol());
        if matches!(self.server.addr(), ConnectionAddr::TcpTls { .. }) {
            client = client
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(user) = login.username() {
            client = client.set_client_to_redis_username(user);
        }
        if let Some(password) = login.password() {
            client = client.set_client_to_redis_password(password);
        }
        if let Some(user) = &sentinels.user {
            client = client.set_client_to_sentinel_username(user);
        }
        if let Some(password) = &sentinels.password {
            client = client.set_client_to_sentinel_password(password.expose_secret());
        }
        if let Some(certificates) = &self.certificates {
            client = client
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        Ok(client)
    }
}

/// Reads the files; `None` if the URL names none.
fn certificates(files: &TlsFiles) -> Result<Option<TlsCertificates>, String> {
    if files.authorities.is_none() && files.client.is_none() {
        return Ok(None);
    }
    let authorities = files.authorities.as_deref();
    let root_cert = authorities
        .map(|path| read("sslrootcert", path))
        .transpose()?;
    let client = files.client.as_ref();
    let client_tls = client.map(|(certificate, key)| {
        Ok::<_, String>(ClientTlsConfig {
            client_cert: read("sslcert", certificate)?,
            client_key: read("sslkey", key)?,
        })
    });
    Ok(Some(TlsCertificates {
        client_tls: client_tls.transpose()?,
        root_cert,
    }))
}

fn read(parameter: &str, path: &Path) -> Result<Vec<u8>, String> {
    let content = std::fs::read(path);
    let path = path.display();
    let content = content.map_err(|error| {
        format!("the file {path}, which {parameter} names, cannot be read: {error}")
    })?;
    // The library takes a file without a certificate for an empty list.
    if !content.windows(11).any(|part| part == b"-----BEGIN ") {
        return Err(format!(
            "the file {path}, which {parameter} names, is not in PEM format"
        ));
    }
    Ok(content)
}
