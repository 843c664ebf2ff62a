//! `instrument serve`: a token server with a known clock.
//!
//! One thread, epoll, absolute deadlines, one write per token (or per
//! `--chunks-per-write`) of bytes that were encoded before. It is not an engine
//! model: it exists so that what is written is known to the microsecond and so
//! that the server's own cost per token is one system call.
//!
//! Paced: each stream has a write every `--interval-us`, all streams at the
//! same instants (`--lockstep`, as an engine steps its batch) or spread over
//! the interval; the truth log says when each token went. Flood: all streams
//! round robin as fast as the client reads, the processor handed over after
//! every 256 writes; there the server takes the client's processor time at the
//! first and the last token.

mod connection;
mod payload;
mod request;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use wire::truth;

use self::connection::{Connection, Stepped};
use self::payload::Payload;
use self::request::Taken;
use crate::arguments::Arguments;
use crate::clock::{ProcessorClock, monotonic_ns};

const LISTENER: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;
const CONTROL: u64 = u64::MAX - 2;
/// Writes between two looks at the sockets, when the server is paced.
const WRITES_PER_TURN: usize = 64;
/// Writes after which the processor is handed over, when it is not.
const WRITES_PER_YIELD: usize = 256;
/// Between two looks at whether the client is done with what it was given.
const LOOK: Duration = Duration::from_micros(20);
/// Before a deadline the thread wakes this early and spins: it is woken late.
const EARLY_NS: u64 = 80_000;
/// From the last request of a gate to the first token: the clients have read
/// the heads of their answers by then.
const LEAD_NS: u64 = 30_000_000;

/// How the server behaves.
struct Options {
    port: u16,
    flood: bool,
    lockstep: bool,
    interval_ns: u64,
    first_token_ns: u64,
    /// Requests that must have come before the first token of any; 0 for none.
    gate: usize,
    chunks: usize,
    truth: Option<PathBuf>,
    await_watch: bool,
    /// Where the certificate goes under which TLS is spoken.
    certificate: Option<PathBuf>,
}

impl Options {
    fn read(arguments: &Arguments) -> Result<Self, String> {
        let flood = match arguments.text("mode").unwrap_or("paced") {
            "paced" => false,
            "flood" => true,
            other => return Err(format!("--mode {other}: paced or flood")),
        };
        let options = Self {
            port: arguments.number("port", 0)?,
            flood,
            lockstep: arguments.has("lockstep"),
            interval_ns: arguments.number("interval-us", 20_000u64)?.max(1) * 1_000,
            first_token_ns: arguments.number("first-token-us", 0u64)? * 1_000,
            gate: arguments.number("gate", 0)?,
            chunks: arguments.number("chunks-per-write", 1usize)?.clamp(1, 64),
            truth: arguments.text("truth").map(PathBuf::from),
            await_watch: arguments.has("await-watch"),
            certificate: arguments.text("tls").map(PathBuf::from),
        };
        if options.flood && options.gate == 0 {
            return Err("--mode flood needs --gate: its streams start together".to_owned());
        }
        Ok(options)
    }
}

/// Serves until standard input ends or says `stop`. The first line on standard
/// output is the address, the last one what was done; `watch PID` on standard
/// input names the client whose processor time is taken.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let options = Options::read(arguments)?;
    if arguments.has("core") {
        let core = arguments.number("core", 0)?;
        crate::limits::pin(core).map_err(|error| format!("core {core}: {error}"))?;
    }
    crate::limits::raise_open_files();
    let mut server = Server::new(options).map_err(|error| error.to_string())?;
    server.run().map_err(|error| error.to_string())?;
    let report = server.report();
    if let Some(path) = &server.options.truth {
        std::fs::write(path, &server.truth_lines).map_err(|error| error.to_string())?;
    }
    crate::say(&report.to_string());
    Ok(())
}

/// One deadline; of equal ones the older goes first, so that the order of the
/// streams is the same at each step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    number: u64,
    slot: usize,
    key: u64,
}

/// A reading at one end of the measured window.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    tokens: u64,
    writes: u64,
    client_ns: Option<u64>,
    own_ns: Option<u64>,
}

#[derive(Default)]
struct Counts {
    requests: u64,
    tokens: u64,
    writes: u64,
    /// Times that a client had no room.
    blocked: u64,
    left_early: u64,
}

struct Server {
    options: Options,
    payload: Payload,
    epoll: Epoll,
    listener: TcpListener,
    alarm: TimerFd,
    control: File,
    /// What the runner said of a line so far.
    said: Vec<u8>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    accepted: u64,
    due: BinaryHeap<Reverse<Due>>,
    numbers: u64,
    /// Streams that wait for the gate.
    waiting: Vec<usize>,
    gate_open: bool,
    /// Instant of a common step, in lockstep.
    base_ns: u64,
    watched: Option<ProcessorClock>,
    window: [Option<Mark>; 2],
    counts: Counts,
    truth_lines: Vec<u8>,
    buffer: Vec<u8>,
    ancillary: Vec<u8>,
    tls: Option<Arc<ServerConfig>>,
    stopped: bool,
}

/// TLS under an authority made for this server, whose certificate is written to
/// `path`.
fn tls(path: &Path) -> io::Result<Arc<ServerConfig>> {
    let names = [Ipv4Addr::LOCALHOST.to_string()];
    let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    std::fs::write(path, made.cert.pem())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key)
        })
        .map_err(io::Error::other)?;
    Ok(Arc::new(config))
}

impl Server {
    fn new(options: Options) -> io::Result<Self> {
        // Before the address is told: a client may come at once.
        let tls = options.certificate.as_deref().map(tls).transpose()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        // The standard library's queue is shorter than the bursts here.
        listen(&listener, Backlog::MAXCONN)?;
        listener.set_nonblocking(true)?;
        setsockopt(&listener, sockopt::ReceiveTimestampns, &true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let alarm = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        let control = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        epoll.add(&alarm, EpollEvent::new(EpollFlags::EPOLLIN, ALARM))?;
        epoll.add(&control, EpollEvent::new(EpollFlags::EPOLLIN, CONTROL))?;
        crate::say(&json!({"address": listener.local_addr()?.to_string()}).to_string());
        let mut ancillary = cmsg_space!(TimeSpec);
        ancillary.resize(ancillary.capacity(), 0);
        Ok(Self {
            payload: Payload::new(options.chunks),
            gate_open: options.gate == 0,
            options,
            epoll,
            listener,
            alarm,
            control,
            said: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            accepted: 0,
            due: BinaryHeap::new(),
            numbers: 0,
            waiting: Vec::new(),
            base_ns: monotonic_ns(),
            watched: None,
            window: [None, None],
            counts: Counts::default(),
            truth_lines: Vec::new(),
            buffer: vec![0; 64 << 10],
            ancillary,
            tls,
            stopped: false,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        while !self.stopped {
            let next = self.due.peek().map(|Reverse(due)| due.at_ns);
            let timeout = match next {
                Some(at_ns) if at_ns <= monotonic_ns() + EARLY_NS => {
                    while monotonic_ns() < at_ns {
                        std::hint::spin_loop();
                    }
                    self.keep_deadlines();
                    EpollTimeout::ZERO
                }
                next => {
                    self.set_alarm(next)?;
                    EpollTimeout::NONE
                }
            };
            self.poll(timeout)?;
            self.open_gate()?;
        }
        Ok(())
    }

    fn set_alarm(&self, at_ns: Option<u64>) -> io::Result<()> {
        let Some(at_ns) = at_ns else { return Ok(self.alarm.unset()?) };
        let early = at_ns.saturating_sub(EARLY_NS).max(1);
        let at = TimeSpec::new((early / 1_000_000_000) as i64, (early % 1_000_000_000) as i64);
        Ok(self.alarm.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    fn poll(&mut self, timeout: EpollTimeout) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            match event.data() {
                LISTENER => self.accept()?,
                // Reading it clears it; there is nothing to learn from it.
                ALARM => drop(self.alarm.wait()),
                CONTROL => self.obey()?,
                data => self.socket_event(data as usize, event.events()),
            }
        }
        Ok(())
    }

    /// Reads words from the runner.
    fn obey(&mut self) -> io::Result<()> {
        let mut words = [0; 256];
        let count = self.control.read(&mut words)?;
        self.stopped |= count == 0;
        self.said.extend_from_slice(&words[..count]);
        // A line may come in pieces: its writer may not buffer.
        while let Some(end) = self.said.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim();
            match line.split_once(' ') {
                Some(("watch", pid)) => {
                    self.watched = pid.parse().ok().and_then(ProcessorClock::of)
                }
                _ => self.stopped |= line == "stop",
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..WRITES_PER_TURN {
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn add(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, slot as u64))?;
        self.accepted += 1;
        let connection = Connection::new(stream, self.accepted, self.tls.as_ref())?;
        self.connections[slot] = Some(connection);
        Ok(())
    }

    fn socket_event(&mut self, slot: usize, flags: EpollFlags) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        if flags.contains(EpollFlags::EPOLLOUT) && connection.flush().is_err() {
            return self.remove(slot);
        }
        if flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR) {
            match connection.read(&mut self.buffer, &mut self.ancillary) {
                Some(arrival_ns) => self.take_requests(slot, arrival_ns),
                None => return self.remove(slot),
            }
        }
        self.ask_for_room(slot);
    }

    fn take_requests(&mut self, slot: usize, arrival_ns: u64) {
        let log = self.options.truth.is_some();
        let Some(connection) = self.connections[slot].as_mut() else { return };
        while connection.answer.is_none() {
            let sent = match request::take(&mut connection.inbox) {
                Taken::More => return,
                Taken::Answer(bytes) => connection.send(&bytes).map(drop),
                Taken::Refused(bytes) => {
                    // It is told why, if it still listens, and then left.
                    let _ = connection.send(&bytes);
                    return self.remove(slot);
                }
                Taken::Ask(ask) => {
                    self.counts.requests += 1;
                    let begun = connection.begin(ask, arrival_ns, log);
                    if begun.is_ok() {
                        self.waiting.push(slot);
                    }
                    begun
                }
            };
            if sent.is_err() {
                return self.remove(slot);
            }
        }
    }

    /// Starts the streams that wait, once enough have come.
    fn open_gate(&mut self) -> io::Result<()> {
        let watched = self.watched.is_some() || !self.options.await_watch;
        if !self.gate_open && (self.waiting.len() < self.options.gate || !watched) {
            return Ok(());
        }
        let gated = !self.gate_open;
        self.gate_open = true;
        let slots = std::mem::take(&mut self.waiting);
        if self.options.flood && !slots.is_empty() {
            return self.flood(&slots);
        }
        let now_ns = monotonic_ns();
        let count = slots.len().max(1) as u64;
        if gated {
            self.base_ns = now_ns + LEAD_NS;
        }
        for (place, slot) in slots.into_iter().enumerate() {
            let interval_ns = self.options.interval_ns;
            let due_ns = if gated && !self.options.lockstep {
                self.base_ns + interval_ns * place as u64 / count
            } else if gated {
                self.base_ns
            } else {
                let earliest_ns = now_ns + self.options.first_token_ns;
                let steps = earliest_ns.saturating_sub(self.base_ns).div_ceil(interval_ns);
                if self.options.lockstep { self.base_ns + steps * interval_ns } else { earliest_ns }
            };
            if let Some(connection) = self.connections[slot].as_mut() {
                if let Some(answer) = connection.answer.as_mut() {
                    answer.first_due_ns = due_ns;
                }
                let key = connection.key;
                self.appoint(slot, key, due_ns);
            }
        }
        Ok(())
    }

    fn appoint(&mut self, slot: usize, key: u64, at_ns: u64) {
        self.numbers += 1;
        self.due.push(Reverse(Due { at_ns, number: self.numbers, slot, key }));
    }

    /// Does what is due, a bounded number of writes.
    fn keep_deadlines(&mut self) {
        for _ in 0..WRITES_PER_TURN {
            let Some(&Reverse(due)) = self.due.peek() else { return };
            if due.at_ns > monotonic_ns() {
                return;
            }
            self.due.pop();
            let same = |connection: &Connection| connection.key == due.key;
            if !self.connections[due.slot].as_ref().is_some_and(same) {
                continue;
            }
            if !matches!(self.step(due.slot), None | Some(Stepped::Over(_))) {
                self.appoint(due.slot, due.key, due.at_ns + self.options.interval_ns);
            }
        }
    }

    /// One write of one stream, with everything that follows from it; `None`
    /// when its client has gone.
    fn step(&mut self, slot: usize) -> Option<Stepped> {
        let log = self.options.truth.is_some();
        let connection = self.connections[slot].as_mut()?;
        let Ok(stepped) = connection.step(&self.payload, self.options.interval_ns, log) else {
            self.remove(slot);
            return None;
        };
        match &stepped {
            Stepped::Tokens(count) => {
                self.counts.tokens += u64::from(*count);
                self.counts.writes += 1;
            }
            Stepped::Blocked => self.counts.blocked += 1,
            Stepped::Over(truth) => {
                if let Some(truth) = truth {
                    self.truth_lines.extend(truth::encode_line(truth));
                }
                // The next request may have come while this one was answered.
                self.take_requests(slot, monotonic_ns());
            }
        }
        self.ask_for_room(slot);
        Some(stepped)
    }

    /// All streams round robin, as fast as the clients read.
    fn flood(&mut self, slots: &[usize]) -> io::Result<()> {
        let total: u64 = slots
            .iter()
            .filter_map(|slot| self.connections[*slot].as_ref()?.tokens_left())
            .map(u64::from)
            .sum();
        let from = self.counts.tokens;
        let mut open: Vec<usize> = slots.to_vec();
        let mut writes = 0;
        while !open.is_empty() && !self.stopped {
            let written = self.counts.tokens - from;
            // A tenth is left out: connections and allocations warm up there.
            if self.window[0].is_none() && written * 10 >= total {
                self.window[0] = Some(self.mark());
            }
            if self.window[1].is_none() && written >= total {
                self.window[1] = Some(self.mark());
            }
            let mut still = Vec::with_capacity(open.len());
            for slot in open {
                match self.step(slot) {
                    Some(Stepped::Over(_)) | None => {}
                    Some(_) => still.push(slot),
                }
                writes += 1;
                if writes % WRITES_PER_YIELD == 0 {
                    self.hand_over();
                }
            }
            open = still;
            self.hand_over();
            self.poll(EpollTimeout::ZERO)?;
        }
        Ok(())
    }

    /// Lets the client read what was written. Yielding alone is not enough: the
    /// scheduler gives both the same time, so a client that costs more than
    /// this server would fall behind and read several batches at once, which is
    /// cheaper and late. So the server looks, asleep between the looks, until
    /// the client's processor time stands still.
    fn hand_over(&self) {
        std::thread::yield_now();
        let Some(client) = self.watched else { return };
        let mut before = client.ns();
        for doubled in 0.. {
            // Each look interrupts a client that still reads.
            std::thread::sleep(LOOK * (1 << doubled.min(5)));
            let now = client.ns();
            if now == before {
                return;
            }
            before = now;
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            at_ns: monotonic_ns(),
            tokens: self.counts.tokens,
            writes: self.counts.writes,
            client_ns: self.watched.and_then(ProcessorClock::ns),
            own_ns: ProcessorClock::own().ns(),
        }
    }

    /// Tells the poller whether this connection waits for room, when that
    /// changed.
    fn ask_for_room(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let blocked = connection.is_blocked();
        if blocked == connection.waits_for_room {
            return;
        }
        connection.waits_for_room = blocked;
        let out = if blocked { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN | out, slot as u64);
        if self.epoll.modify(&connection.stream, &mut event).is_err() {
            self.remove(slot);
        }
    }

    fn remove(&mut self, slot: usize) {
        if let Some(connection) = self.connections[slot].take() {
            self.counts.left_early += u64::from(connection.answer.is_some());
            self.waiting.retain(|waiting| *waiting != slot);
            self.free.push(slot);
        }
    }

    fn report(&self) -> Value {
        let window = match self.window {
            [Some(first), Some(last)] => {
                let between = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
                json!({
                    "wall_ns": last.at_ns - first.at_ns,
                    "tokens": last.tokens - first.tokens,
                    "writes": last.writes - first.writes,
                    "client_cpu_ns": between(first.client_ns, last.client_ns),
                    "server_cpu_ns": between(first.own_ns, last.own_ns),
                })
            }
            _ => Value::Null,
        };
        json!({
            "requests": self.counts.requests,
            "tokens": self.counts.tokens,
            "writes": self.counts.writes,
            "blocked": self.counts.blocked,
            "left_early": self.counts.left_early,
            "cpu_ns": ProcessorClock::own().ns(),
            "window": window,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever reads the report must see all of it.
        let _ = io::stdout().flush();
    }
}
