//! What the kernel knows of a connection: its shortest round trip.
//!
//! A handshake that is timed here is longer by what this process is late, and one
//! is all that a connection has. The kernel takes the time of everything that the
//! peer's kernel acknowledges.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use measure::Span;
use nix::libc;
use nix::sys::socket::getsockopt;
use nix::sys::utsname::uname;

/// `struct tcp_info` of `linux/tcp.h` as words, so far as it is read here. The
/// kernel fills what it is given room for.
type Info = [u32; MIN_RTT + 1];

/// The word that `tcpi_min_rtt` is, in µs.
const MIN_RTT: usize = 37;

/// The first kernel whose structure has it. Of an older one, which fills less,
/// nix makes a panic.
const SINCE: (u32, u32) = (4, 6);

/// The question, which nix asks: any bits are words, so no answer is wrong.
#[derive(Clone, Copy, Debug)]
struct TcpInfo;
nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    Info,
    nix::sys::socket::sockopt::GetStruct<Info>
);

/// The shortest round trip of late; None where the kernel does not tell.
pub(crate) fn round_trip(socket: &impl AsFd) -> Option<Span> {
    static IS_TOLD: OnceLock<bool> = OnceLock::new();
    let asked = || uname().ok().and_then(|name| release(name.release().to_str()?));
    if !*IS_TOLD.get_or_init(|| asked().is_some_and(|release| release >= SINCE)) {
        return None;
    }
    let us = getsockopt(socket, TcpInfo).ok()?[MIN_RTT];
    // Neither is a time: of a connection without one, and of a socket of another kind.
    (!matches!(us, 0 | u32::MAX)).then(|| Span::from_us(us.into()))
}

/// The first two numbers of a kernel's release.
fn release(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_tells_the_round_trip_of_a_connection() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let trip = round_trip(&socket).unwrap();
        assert!(trip > Span::ZERO && trip < Span::from_ms(1_000), "{trip:?}");
        assert_eq!(round_trip(&listener), None, "a listener has no peer");
        let (local, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(round_trip(&local), None);
    }

    #[test]
    fn a_release_is_ordered_by_its_numbers() {
        assert_eq!(release("6.18.44-fc-v782"), Some((6, 18)));
        assert_eq!(release("4.4.0"), Some((4, 4)));
        assert!(release("3.10.0-1160.el7.x86_64").unwrap() < SINCE);
        assert!(release("10.0-rc1").unwrap() > SINCE);
        assert_eq!(release("unknown"), None);
    }
}
