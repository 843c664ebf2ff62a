//! One connection: where it leads, how it is opened, and its bytes in the
//! clear whether TLS lies between or not.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use measure::{At, FailureKind, NotSentKind, Outcome};
use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;
use wire::url::Url;

use crate::clock::Clock;

/// Where requests go, and how.
#[derive(Clone)]
pub struct Target {
    /// The full address of the endpoint.
    pub url: Url,
    /// TLS settings; needed for https.
    pub tls: Arc<ClientConfig>,
}

/// An open connection. Its socket does not block and, where the kernel can,
/// stamps what it receives.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    tls: Option<Box<Secured>>,
    /// Whether a request went over it before, or it was opened ahead: a reset
    /// before the first byte is then an artefact of ours.
    pub(crate) reused: bool,
    /// When it was last used.
    pub(crate) idle_since: At,
    /// The place of the target that it leads to.
    pub(crate) target: u32,
    /// The conversation that it belongs to, where connections are kept apart.
    pub(crate) session: Option<u32>,
}

/// TLS on a connection.
struct Secured {
    session: ClientConnection,
    records: Records,
    /// When the read was, on CLOCK_MONOTONIC, that began the record which is
    /// not whole yet.
    cut_ns: Option<i64>,
}

/// Follows where records end. What a record holds can be read only when it is
/// whole, so that a record cut into several reads makes its events look late.
#[derive(Debug, Default)]
struct Records {
    /// The bytes seen of the header of the current record: type, version,
    /// length.
    header: Vec<u8>,
    /// Bytes to come of its content.
    left: usize,
    /// The handshake has taken the beginning of a record: where records end is
    /// not known.
    lost: bool,
}

/// The longest content of a record, by RFC 5246 (RFC 8446 allows less).
const RECORD_LIMIT: usize = (1 << 14) + 2048;

impl Records {
    /// Takes what was received; gives whether a record ended in it, and whether
    /// it ends inside a record.
    fn follow(&mut self, mut bytes: &[u8]) -> (bool, bool) {
        let mut ended = false;
        while let (false, Some((&byte, behind))) = (self.lost, bytes.split_first()) {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                ended |= self.left == 0;
                continue;
            }
            self.header.push(byte);
            bytes = behind;
            if let &[kind, major, _, high, low] = &*self.header {
                self.left = usize::from(high) << 8 | usize::from(low);
                self.lost = !(20..=24).contains(&kind) || major != 3 || self.left > RECORD_LIMIT;
                self.header.clear();
                ended |= self.left == 0;
            }
        }
        (ended, !self.lost && (self.left > 0 || !self.header.is_empty()))
    }
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
    pub(crate) fn failed(kind: FailureKind, message: String) -> Self {
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
    /// Opens a connection to the first of `addresses` that answers. `stamps`
    /// gets each step as it is taken, so that whoever gives up on a connection
    /// knows how far it came.
    pub(crate) async fn open(
        target: &Target,
        addresses: &[SocketAddr],
        clock: Clock,
        stamps: &mut OpenStamps,
    ) -> Result<Self, OpenError> {
        *stamps = OpenStamps { resolved_at: Some(clock.now()), ..OpenStamps::default() };
        let mut refused = None;
        for address in addresses {
            match connect(*address).await {
                Ok(tcp) => {
                    stamps.connected_at = Some(clock.now());
                    let unready = |error: io::Error| OpenError::connecting(&error, address);
                    // Nagle would hold back the tail of a request.
                    tcp.set_nodelay(true).map_err(unready)?;
                    // Without kernel stamps a run is still good, and says so.
                    let _ = setsockopt(&tcp, sockopt::ReceiveTimestampns, &true);
                    let (tcp, tls) = if target.url.secure {
                        let (tcp, tls) = secure(target, tcp).await?;
                        stamps.secured_at = Some(clock.now());
                        let records = Records::default();
                        (tcp, Some(Box::new(Secured { session: tls, records, cut_ns: None })))
                    } else {
                        (tcp, None)
                    };
                    let connection = Self {
                        socket: tcp.into_std().map_err(unready)?,
                        tls,
                        reused: false,
                        idle_since: clock.now(),
                        target: 0,
                        session: None,
                    };
                    return Ok(connection);
                }
                Err(error) => refused = Some(OpenError::connecting(&error, address)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            OpenError::failed(FailureKind::Dns, format!("{} has no address", target.url.host))
        }))
    }

    /// Writes what the kernel takes of `bytes`; gives the number of them that
    /// is off our hands.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return (&self.socket).write(bytes) };
        let taken = tls.session.writer().write(bytes)?;
        self.flush_tls()?;
        Ok(taken)
    }

    /// Writes pending TLS records; `WouldBlock` when some are left.
    pub(crate) fn flush_tls(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.session.wants_write() {
            tls.session.write_tls(&mut &self.socket)?;
        }
        Ok(())
    }

    /// Says that `received` was read at `at_ns`. Gives when the read was that
    /// began the record which ends in it, where that was an earlier one.
    pub(crate) fn follow_records(&mut self, received: &[u8], at_ns: i64) -> Option<i64> {
        let tls = self.tls.as_mut()?;
        let before_ns = tls.cut_ns.take();
        let (ended, inside) = tls.records.follow(received);
        if inside {
            // A record that is still the same began when it began.
            tls.cut_ns = before_ns.filter(|_| !ended).or(Some(at_ns));
        }
        before_ns
    }

    /// Turns received bytes into plain ones and hands them on. Without TLS
    /// they are that already. `Ok(false)` means that the peer said farewell.
    pub(crate) fn decipher(
        &mut self,
        mut received: &[u8],
        plain: &mut [u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            take(received);
            return Ok(true);
        };
        let session = &mut tls.session;
        let mut open = true;
        while !received.is_empty() {
            session.read_tls(&mut received)?;
            let state = session
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            open &= !state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let count = session.reader().read(plain)?;
                if count == 0 {
                    break;
                }
                take(&plain[..count]);
                left = left.saturating_sub(count);
            }
        }
        // A key update must be answered; that it may block is no matter now.
        let _ = self.flush_tls();
        Ok(open)
    }

    /// True when the peer has not closed an idle connection, as far as can be
    /// told without a round trip.
    pub(crate) fn looks_alive(&self) -> bool {
        match self.socket.peek(&mut [0]) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            // On TLS a session ticket may lie unread on a healthy connection;
            // in the clear an unasked byte makes it unfit.
            Ok(count) => count > 0 && self.tls.is_some(),
        }
    }
}

/// Source addresses to try on loopback when the ports of one run out: each has
/// some 28 000 of its own to the same target.
const LOOPBACK_SOURCES: std::ops::RangeInclusive<u8> = 2..=33;

async fn connect(address: SocketAddr) -> io::Result<tokio::net::TcpStream> {
    let socket = || match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let first = socket()?.connect(address).await;
    let exhausted = |error: &io::Error| error.kind() == io::ErrorKind::AddrNotAvailable;
    match first {
        Err(error) if exhausted(&error) && is_loopback_v4(address) => {
            for last in LOOPBACK_SOURCES {
                let other = socket()?;
                other.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)))?;
                match other.connect(address).await {
                    Err(error) if exhausted(&error) => {}
                    done => return done,
                }
            }
            Err(error)
        }
        done => done,
    }
}

fn is_loopback_v4(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.is_loopback())
}

async fn secure(
    target: &Target,
    tcp: tokio::net::TcpStream,
) -> Result<(tokio::net::TcpStream, ClientConnection), OpenError> {
    let failed = |words: String| OpenError::failed(FailureKind::Tls, words);
    let name = ServerName::try_from(target.url.host.clone())
        .map_err(|error| failed(format!("{}: {error}", target.url.host)))?;
    let stream = TlsConnector::from(Arc::clone(&target.tls))
        .connect(name, tcp)
        .await
        .map_err(|error| failed(error.to_string()))?;
    Ok(stream.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_followed_at_any_cut() {
        let record = |length: usize| {
            let mut record = vec![23, 3, 3, (length >> 8) as u8, length as u8];
            record.resize(5 + length, 0xaa);
            record
        };
        let stream = [record(300), record(0), record(1), record(17)].concat();
        let ends = [305, 310, 316, 338];
        assert_eq!(Records::default().follow(&stream[3..]), (false, false), "no header: lost");
        for cut in 0..=stream.len() {
            let mut records = Records::default();
            let inside = cut > 0 && !ends.contains(&cut);
            assert_eq!(records.follow(&stream[..cut]), (cut >= 305, inside), "cut at {cut}");
            assert_eq!(records.follow(&stream[cut..]), (cut < stream.len(), false));
        }
    }
}
