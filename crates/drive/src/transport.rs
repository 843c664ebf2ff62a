//! What the way to a server costs: a connection of its own, and a cheap request
//! over it, each timed.

use measure::Span;

use crate::clock::Clock;
use crate::connection::{Connection, OpenStamps, Target, resolve};
use crate::fetch::{FetchError, Line, within_runtime};

/// A connection that was opened, and a request over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// From the resolved name to the connection.
    pub connect: Span,
    /// From there to the end of the TLS handshake, where there is one.
    pub secure: Option<Span>,
    /// From the request to the end of its answer, and the status.
    pub answer: Option<(Span, u16)>,
}

/// Opens a connection and GETs `path` over it with the run's headers. A request
/// without an answer leaves the connection's own times.
///
/// # Errors
/// No connection.
pub fn round_trip(
    target: &Target,
    path: &str,
    headers: &[(String, String)],
    within: Span,
) -> Result<RoundTrip, FetchError> {
    let clock = Clock::starting_in(Span::ZERO);
    let mut stamps = OpenStamps::default();
    let connection = within_runtime(within, async {
        let addresses = resolve(&target.url).await?;
        Connection::open(target, &addresses, clock, &mut stamps).await
    })?;
    let unopened = || FetchError::Unreachable("the connection was not opened".to_owned());
    let resolved_at = stamps.resolved_at.ok_or_else(unopened)?;
    let connected_at = stamps.connected_at.ok_or_else(unopened)?;
    connection.socket.set_nonblocking(false).map_err(|_| unopened())?;
    let mut line = Line { connection: Some(connection), ..Line::new(target, headers, within) };
    let asked_at = clock.now();
    let answered = line.ask("GET", path, None);
    Ok(RoundTrip {
        connect: connected_at - resolved_at,
        secure: stamps.secured_at.map(|at| at - connected_at),
        answer: answered.ok().map(|(status, _)| (clock.now() - asked_at, status)),
    })
}
