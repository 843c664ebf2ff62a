//! Connections that wait for their next request.

use std::collections::VecDeque;

use measure::{At, Span};

use crate::connection::Connection;

/// The connections, the one used last at the end.
#[derive(Default)]
pub(crate) struct Idle {
    connections: VecDeque<Connection>,
}

impl Idle {
    /// Takes back a connection that can carry another request.
    pub(crate) fn put(&mut self, mut connection: Connection, now: At) {
        connection.reused = true;
        connection.idle_since = now;
        self.connections.push_back(connection);
    }

    /// A connection that is younger than `limit` and looks alive; of `session`,
    /// where connections are kept apart. The one used last is the least likely
    /// to have been closed.
    pub(crate) fn take(
        &mut self,
        now: At,
        limit: Span,
        session: Option<u32>,
    ) -> Option<Connection> {
        let fits = |connection: &Connection| session.is_none() || connection.session == session;
        loop {
            let place = self.connections.iter().rposition(fits)?;
            if now - self.connections[place].idle_since >= limit {
                return None;
            }
            let connection = self.connections.remove(place)?;
            if connection.looks_alive() {
                return Some(connection);
            }
        }
    }

    /// Closes connections that are too old, at most `most`: closing a thousand
    /// at once would hold up sends for milliseconds.
    pub(crate) fn retire(&mut self, now: At, limit: Span, most: usize) {
        let old = self.connections.iter().take(most);
        let old = old.take_while(|connection| now - connection.idle_since >= limit).count();
        self.connections.drain(..old);
    }
}
