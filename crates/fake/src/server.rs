//! The server: one thread that keeps every deadline, and the handle to it.

mod connection;
mod reactor;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use thiserror::Error;
use wire::truth::Truth;

use crate::cases::CaseBook;
use crate::engine::{Anchor, Engine, EngineConfig, EngineConfigError};
use crate::request::{Limits, Request};
use crate::script::Respond;

use self::reactor::Reactor;

/// Where and within which limits the server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address; port 0 takes a free one. The default is loopback.
    pub bind: SocketAddr,
    /// Limits of one request.
    pub limits: Limits,
    /// How long a connection may be idle between requests before the server
    /// closes it.
    pub keep_alive: Duration,
    /// Connections at a time. Above it no more are accepted until one ends:
    /// they wait in the kernel's queue.
    pub max_connections: usize,
    /// Requests kept for [`Server::requests`]; the first ones are kept.
    pub keep_requests: usize,
    /// Bytes of bodies kept for [`Server::requests`].
    pub keep_body_bytes: usize,
    /// Tokens kept in the truth log, over all requests. Sixteen bytes each.
    pub keep_truth_tokens: usize,
    /// The thread wakes at most this much before a deadline and spins, because
    /// a sleeping thread is woken late. How much of it is used follows how late
    /// this machine is seen to wake.
    pub spin: Duration,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            limits: Limits::default(),
            keep_alive: Duration::from_secs(60),
            max_connections: 8192,
            keep_requests: 1024,
            keep_body_bytes: 16 << 20,
            keep_truth_tokens: 8 << 20,
            spin: Duration::from_micros(200),
        }
    }
}

/// An embedded engine that listens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// What it is like.
    pub engine: EngineConfig,
}

/// Why the server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The engine's configuration breaks a rule.
    #[error("embedded engine: {0}")]
    Engine(#[from] EngineConfigError),
    /// The address cannot be listened on.
    #[error("cannot listen on {bind}: {source}; port 0 takes a free port")]
    Bind {
        /// The address.
        bind: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel gave no poller, timer or thread.
    #[error("cannot set up the server: {0}; the limit on open files (ulimit -n) may be reached")]
    Setup(#[from] io::Error),
}

/// What the server counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: u64,
    /// Whole requests read.
    pub requests: u64,
    /// Requests refused because they were not HTTP or over a limit.
    pub refused: u64,
    /// Answers whose client left before their end.
    pub left_early: u64,
    /// Times that accepting was paused: too many connections, or the process
    /// had no file descriptor left.
    pub accept_pauses: u64,
    /// Requests not kept for [`Server::requests`], because of its limits.
    pub requests_not_kept: u64,
    /// Truth lines not kept, because of the limit on tokens.
    pub truths_not_kept: u64,
}

/// Everything the server wrote down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Requests in order of arrival.
    pub requests: Vec<Request>,
    /// One line a request that got tokens or was promised some, in the order
    /// in which they ended.
    pub truths: Vec<Truth>,
    /// The counts.
    pub counters: Counters,
}

/// What the thread and the handle share. Locked for a push or a copy only.
#[derive(Debug, Default)]
struct Shared {
    log: Mutex<Log>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic elsewhere leaves whole entries: a push is all that is done
        // under this lock.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: EventFd,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts an embedded engine.
    ///
    /// # Errors
    /// A broken rule of the configuration, or what the kernel refused.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let engine = Engine::new(config.engine, Anchor::now())?;
        Self::start_with(config.listen, engine)
    }

    /// Starts a script player on a free loopback port: [`crate::Routes`], or a
    /// function from [`Request`] to [`crate::Script`].
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn start_scripted(respond: impl Respond + 'static) -> Result<Self, StartError> {
        Self::start_with(Listen::default(), respond)
    }

    /// Starts a player of recorded cases on a free loopback port.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn start_cases(book: CaseBook) -> Result<Self, StartError> {
        Self::start_with(Listen::default(), book)
    }

    /// Starts anything that answers.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn start_with(at: Listen, respond: impl Respond + 'static) -> Result<Self, StartError> {
        let listener =
            listener(at.bind).map_err(|source| StartError::Bind { bind: at.bind, source })?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let stop = EventFd::from_flags(flags).map_err(io::Error::from)?;
        let reactor = Reactor::new(at, listener, Box::new(respond), Arc::clone(&shared), &stop)?;
        let thread =
            std::thread::Builder::new().name("fake".to_owned()).spawn(move || reactor.run())?;
        Ok(Self { addr, shared, stop, thread: Some(thread) })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://address`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The requests so far, in order of arrival. A request is here before its
    /// answer begins.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// The truth lines so far, in the order in which the answers ended. A line
    /// is here before the last byte of its answer is sent; unfinished answers
    /// are missing.
    pub fn truths(&self) -> Vec<Truth> {
        self.shared.log().truths.clone()
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.shared.log().counters
    }

    /// Stops the server, cuts what is under way and gives the log, unfinished
    /// answers included.
    pub fn stop(mut self) -> Log {
        self.join();
        std::mem::take(&mut *self.shared.log())
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The counter of the file cannot overflow by one write.
        let _ = self.stop.write(1);
        if let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.join();
    }
}

/// A listener that loses no burst of connections: the standard library's
/// queue of 128 is shorter than the bursts a load generator makes, and a lost
/// SYN costs the client a second.
fn listener(bind: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(bind)?;
    listen(&listener, Backlog::MAXCONN)?;
    listener.set_nonblocking(true)?;
    // Accepted sockets inherit it, so that even the first request is stamped.
    // Where the kernel refuses, arrivals are stamped after the read instead.
    let _ = setsockopt(&listener, sockopt::ReceiveTimestampns, &true);
    Ok(listener)
}

#[cfg(test)]
mod tests;
