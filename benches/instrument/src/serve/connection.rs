//! One connection of the server: what was read, what is being answered, what
//! the kernel did not take yet.

use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use rustls::{ServerConfig, ServerConnection};
use wire::truth::Truth;

use super::payload::{Payload, STREAM_HEAD};
use super::request::Ask;
use crate::clock::{monotonic_ns, monotonic_of_stamp};

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// Number in the order of acceptance: a slot is used again, a key is not.
    pub(super) key: u64,
    pub(super) inbox: Vec<u8>,
    pub(super) answer: Option<Answer>,
    /// Whether the poller was asked to tell when there is room to write.
    pub(super) waits_for_room: bool,
    unwritten: Vec<u8>,
}

/// A stream under way.
pub(super) struct Answer {
    ask: Ask,
    arrival_ns: u64,
    /// Instants of the tokens since arrival; empty when no log is kept.
    token_ns: Vec<u64>,
    sent: u32,
    held: u32,
    /// When the first write was meant to be.
    pub(super) first_due_ns: u64,
}

/// What a step of an answer did.
pub(super) enum Stepped {
    /// Wrote so many tokens.
    Tokens(u32),
    /// The kernel has no room for this connection; nothing was done.
    Blocked,
    /// Wrote the tail; the answer is over.
    Over(Option<Truth>),
}

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        key: u64,
        tls: Option<&Arc<ServerConfig>>,
    ) -> io::Result<Self> {
        let session = |config| ServerConnection::new(Arc::clone(config)).map(Box::new);
        let tls = tls.map(session).transpose().map_err(io::Error::other)?;
        Ok(Self {
            stream,
            tls,
            key,
            inbox: Vec::new(),
            answer: None,
            waits_for_room: false,
            unwritten: Vec::new(),
        })
    }

    /// Takes received bytes into the inbox, deciphered where they have to be.
    fn take(&mut self, mut received: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            self.inbox.extend_from_slice(received);
            return Ok(());
        };
        while !received.is_empty() {
            tls.read_tls(&mut received)?;
            let state = tls.process_new_packets().map_err(io::Error::other)?;
            let before = self.inbox.len();
            self.inbox.resize(before + state.plaintext_bytes_to_read(), 0);
            tls.reader().read_exact(&mut self.inbox[before..])?;
        }
        // The handshake wants an answer.
        while tls.wants_write() {
            tls.write_tls(&mut self.unwritten)?;
        }
        self.flush().map(drop)
    }

    /// Reads what there is into the inbox; gives the instant at which the last
    /// of it reached this host. `None` when the client has gone.
    pub(super) fn read(&mut self, buffer: &mut [u8], control: &mut [u8]) -> Option<u64> {
        let mut arrival_ns = 0;
        loop {
            let mut slices = [IoSliceMut::new(buffer)];
            let got = recvmsg::<()>(
                self.stream.as_raw_fd(),
                &mut slices,
                Some(control),
                MsgFlags::MSG_DONTWAIT,
            );
            match got {
                Ok(message) if message.bytes == 0 => return None,
                Ok(message) => {
                    let stamp = message.cmsgs().ok().and_then(|mut parts| {
                        parts.find_map(|part| match part {
                            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                            _ => None,
                        })
                    });
                    // A thousand requests come at once; the kernel's stamp
                    // does not wait until this thread comes to each.
                    arrival_ns = stamp.map_or_else(monotonic_ns, monotonic_of_stamp);
                    let count = message.bytes;
                    if self.take(&buffer[..count]).is_err() {
                        return None;
                    }
                    if count < buffer.len() {
                        return Some(arrival_ns);
                    }
                }
                Err(Errno::EAGAIN) => return Some(arrival_ns),
                Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// Begins an answer and sends its head.
    pub(super) fn begin(&mut self, ask: Ask, arrival_ns: u64, log: bool) -> io::Result<()> {
        let capacity = if log { ask.tokens as usize } else { 0 };
        self.answer = Some(Answer {
            ask,
            arrival_ns,
            token_ns: Vec::with_capacity(capacity),
            sent: 0,
            held: 0,
            first_due_ns: 0,
        });
        self.send(STREAM_HEAD).map(drop)
    }

    /// Writes the next tokens of the answer, or its tail.
    pub(super) fn step(
        &mut self,
        payload: &Payload,
        interval_ns: u64,
        log: bool,
    ) -> io::Result<Stepped> {
        if !self.flush()? {
            return Ok(Stepped::Blocked);
        }
        let Some(answer) = self.answer.as_mut() else { return Ok(Stepped::Over(None)) };
        let left = answer.ask.tokens - answer.sent;
        if left > 0 {
            let count = left.min(payload.most() as u32);
            let bytes = payload.tokens(answer.ask.shape, answer.sent, count as usize);
            answer.sent += count;
            if log {
                let length = answer.token_ns.len() + count as usize;
                // Read last, so that nothing but the write lies behind it.
                let since = monotonic_ns().saturating_sub(answer.arrival_ns);
                answer.token_ns.resize(length, since);
            }
            let whole = self.send(bytes)?;
            if !whole && let Some(answer) = self.answer.as_mut() {
                answer.held += count;
            }
            return Ok(Stepped::Tokens(count));
        }
        let usage = answer.ask.usage.then_some((answer.ask.prompt_words, answer.ask.tokens));
        let tail = Payload::tail(answer.ask.shape, usage);
        let truth = self.answer.take().filter(|_| log);
        self.send(&tail)?;
        let per_write = payload.most() as u64;
        Ok(Stepped::Over(truth.map(|answer| answer.into_truth(self.key, per_write, interval_ns))))
    }

    /// Hands `bytes` to the kernel or keeps the rest; true when it took all.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            while tls.wants_write() {
                tls.write_tls(&mut self.unwritten)?;
            }
            return self.flush();
        }
        let written =
            if self.unwritten.is_empty() { write_some(&mut self.stream, bytes)? } else { 0 };
        self.unwritten.extend_from_slice(&bytes[written..]);
        Ok(self.unwritten.is_empty())
    }

    /// Writes what waits; true when nothing waits any more.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        if self.unwritten.is_empty() {
            return Ok(true);
        }
        let written = write_some(&mut self.stream, &self.unwritten)?;
        self.unwritten.drain(..written);
        Ok(self.unwritten.is_empty())
    }

    /// Tokens that the answer still owes.
    pub(super) fn tokens_left(&self) -> Option<u32> {
        self.answer.as_ref().map(|answer| answer.ask.tokens - answer.sent)
    }

    pub(super) fn is_blocked(&self) -> bool {
        !self.unwritten.is_empty()
    }
}

impl Answer {
    fn into_truth(self, key: u64, per_write: u64, interval_ns: u64) -> Truth {
        let first = self.first_due_ns.saturating_sub(self.arrival_ns);
        let tokens = self.token_ns.len() as u64;
        Truth {
            id: self.ask.id.unwrap_or_else(|| format!("connection-{key}")),
            arrival_ns: self.arrival_ns,
            token_ns: self.token_ns,
            planned_token_ns: Some(
                (0..tokens).map(|token| first + token / per_write * interval_ns).collect(),
            ),
            held_tokens: self.held,
        }
    }
}

/// One write; zero when the kernel has no room.
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Ok(written) => return Ok(written),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
