//! Connections that wait for their next request.

use std::collections::VecDeque;

use measure::{At, Span};

use crate::connection::Connection;

/// The connections to each target, the one used last at the end.
#[derive(Default)]
pub(crate) struct Idle {
    of_target: Vec<VecDeque<Connection>>,
}

impl Idle {
    /// Takes back a connection that can carry another request.
    pub(crate) fn put(&mut self, mut connection: Connection, now: At) {
        connection.reused = true;
        connection.idle_since = now;
        let target = connection.target as usize;
        if self.of_target.len() <= target {
            self.of_target.resize_with(target + 1, VecDeque::new);
        }
        self.of_target[target].push_back(connection);
    }

    /// A connection to a target that is younger than `limit` and looks alive; of `session`,
    /// where connections are kept apart. The one used last is the least likely
    /// to have been closed.
    pub(crate) fn take(
        &mut self,
        now: At,
        limit: Span,
        target: u32,
        session: Option<u32>,
    ) -> Option<Connection> {
        let connections = self.of_target.get_mut(target as usize)?;
        let fits = |connection: &Connection| session.is_none() || connection.session == session;
        loop {
            let place = connections.iter().rposition(fits)?;
            if now - connections[place].idle_since >= limit {
                return None;
            }
            let connection = connections.remove(place)?;
            if connection.looks_alive() {
                return Some(connection);
            }
        }
    }

    /// Closes connections that are too old, at most `most` to a target: closing a thousand
    /// at once would hold up sends for milliseconds.
    pub(crate) fn retire(&mut self, now: At, limit: Span, most: usize) {
        for connections in &mut self.of_target {
            let old = connections.iter().take(most);
            let old = old.take_while(|connection| now - connection.idle_since >= limit).count();
            connections.drain(..old);
        }
    }
}
