//! One connection: opening it with its stamps, and reading with a stamp taken
//! before anything else is done with the bytes.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use measure::{At, FailureKind, NotSentKind, Outcome};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wire::url::Url;

use crate::clock::Clock;

/// The largest TLS record.
const TLS_RECORD: usize = 16 * 1024;

/// Where requests go, and how.
#[derive(Clone)]
pub struct Target {
    /// The full address of the endpoint.
    pub url: Url,
    /// TLS settings; needed for https.
    pub tls: Arc<ClientConfig>,
}

/// An open connection.
pub(crate) struct Connection {
    stream: Stream,
    /// Whether a request went over it before, or it was opened ahead: a reset
    /// before the first byte is then an artefact of ours.
    pub(crate) reused: bool,
    /// When it was last used.
    pub(crate) idle_since: At,
}

enum Stream {
    Plain(TcpStream),
    Tls { tls: Box<TlsStream<TcpStream>>, buffer: Box<[u8]> },
}

/// Stamps of opening a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenStamps {
    pub(crate) resolved_at: Option<At>,
    pub(crate) connected_at: Option<At>,
    pub(crate) secured_at: Option<At>,
}

/// Why a connection was not opened: how the request ended, and the words.
#[derive(Clone, Debug)]
pub(crate) struct OpenError {
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
}

impl OpenError {
    fn failed(kind: FailureKind, message: String) -> Self {
        Self { outcome: Outcome::Failed(kind), message }
    }

    fn connecting(error: &io::Error, target: &SocketAddr) -> Self {
        use nix::errno::Errno;
        let errno = error.raw_os_error().map(Errno::from_raw);
        let not_sent = match errno {
            Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                Some(NotSentKind::ClientResource)
            }
            Some(Errno::EADDRNOTAVAIL | Errno::EADDRINUSE) => Some(NotSentKind::PortExhausted),
            _ => None,
        };
        match not_sent {
            Some(kind) => {
                Self { outcome: Outcome::NotSent(kind), message: format!("{target}: {error}") }
            }
            None => Self::failed(FailureKind::Connect, format!("{target}: {error}")),
        }
    }
}

/// Addresses of a host: from its literal, or from the resolver.
pub(crate) async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, OpenError> {
    if let Ok(address) = url.host.parse() {
        return Ok(vec![SocketAddr::new(address, url.port)]);
    }
    let failed = |words: String| {
        OpenError::failed(FailureKind::Dns, format!("{} does not resolve: {words}", url.host))
    };
    let found = tokio::net::lookup_host((url.host.as_str(), url.port))
        .await
        .map_err(|error| failed(error.to_string()))?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() { Err(failed("no address".to_owned())) } else { Ok(addresses) }
}

impl Connection {
    /// Opens a connection to the first of `addresses` that answers.
    pub(crate) async fn open(
        target: &Target,
        addresses: &[SocketAddr],
        clock: Clock,
    ) -> Result<(Self, OpenStamps), OpenError> {
        let mut stamps = OpenStamps { resolved_at: Some(clock.now()), ..OpenStamps::default() };
        let mut refused = None;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(tcp) => {
                    stamps.connected_at = Some(clock.now());
                    // Nagle would hold back the tail of a request.
                    tcp.set_nodelay(true)
                        .map_err(|error| OpenError::connecting(&error, address))?;
                    let stream = if target.url.secure {
                        let tls = secure(target, tcp).await?;
                        stamps.secured_at = Some(clock.now());
                        Stream::Tls {
                            tls: Box::new(tls),
                            buffer: vec![0; TLS_RECORD].into_boxed_slice(),
                        }
                    } else {
                        Stream::Plain(tcp)
                    };
                    let connection = Self { stream, reused: false, idle_since: clock.now() };
                    return Ok((connection, stamps));
                }
                Err(error) => refused = Some(OpenError::connecting(&error, address)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            OpenError::failed(FailureKind::Dns, format!("{} has no address", target.url.host))
        }))
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(tcp) => tcp.write_all(bytes).await,
            Stream::Tls { tls, .. } => {
                tls.write_all(bytes).await?;
                tls.flush().await
            }
        }
    }

    /// Reads what there is, at most a buffer full, stamps it before anything
    /// else is done, and hands both to `take`. `Ok(false)` means that the peer
    /// closed. Plain connections share the worker's one buffer: nothing is
    /// borrowed while waiting.
    pub(crate) async fn read(
        &mut self,
        shared: &RefCell<Box<[u8]>>,
        clock: Clock,
        take: &mut dyn FnMut(&[u8], At),
    ) -> io::Result<bool> {
        match &mut self.stream {
            Stream::Plain(tcp) => loop {
                tcp.readable().await?;
                let mut buffer = shared.borrow_mut();
                match tcp.try_read(&mut buffer) {
                    Ok(count) => {
                        let at = clock.now();
                        if count > 0 {
                            take(&buffer[..count], at);
                        }
                        return Ok(count > 0);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            },
            Stream::Tls { tls, buffer } => {
                let count = match tls.read(buffer).await {
                    // A peer that closes TCP without TLS's own farewell has
                    // closed all the same.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                    other => other?,
                };
                let at = clock.now();
                if count > 0 {
                    take(&buffer[..count], at);
                }
                Ok(count > 0)
            }
        }
    }

    /// True when the peer has not closed an idle connection, as far as can be
    /// told without a round trip.
    pub(crate) fn looks_alive(&self) -> bool {
        // On TLS a session ticket may lie unread on a healthy connection.
        let Stream::Plain(tcp) = &self.stream else { return true };
        let mut byte = [0u8; 1];
        // Any readiness on an idle connection is an end or an unasked byte;
        // neither makes it fit for another request.
        matches!(tcp.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

async fn secure(target: &Target, tcp: TcpStream) -> Result<TlsStream<TcpStream>, OpenError> {
    let failed = |words: String| OpenError::failed(FailureKind::Tls, words);
    let name = ServerName::try_from(target.url.host.clone())
        .map_err(|error| failed(format!("{}: {error}", target.url.host)))?;
    TlsConnector::from(Arc::clone(&target.tls))
        .connect(name, tcp)
        .await
        .map_err(|error| failed(error.to_string()))
}
