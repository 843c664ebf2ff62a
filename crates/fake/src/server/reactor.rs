//! The event loop: absolute deadlines in a heap, an alarm just before the
//! next, a short spin, then the writes. Every turn does a bounded amount of
//! each kind of work, so that no burst of one kind starves another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::sync::Arc;

use nix::cmsg_space;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use wire::truth::Truth;

use super::connection::{Connection, Next, Read, State};
use super::{Listen, Shared};
use crate::clock::{Alarm, Margin, monotonic_ns};
use crate::request::{Progress, Request};
use crate::script::{Piece, Play, Respond};

/// Steps performed between two looks at the sockets.
const STEPS_PER_TURN: usize = 64;
/// Socket events, and accepted connections, per turn.
const EVENTS_PER_TURN: usize = 64;
/// Reads of one connection per event.
const READS_PER_EVENT: usize = 4;
/// A client may take so long to send a request that it has begun.
const REQUEST_NS: u64 = 60_000_000_000;
/// How long the rest of a closed connection is listened to.
const LINGER_NS: u64 = 1_000_000_000;
/// After the process ran out of file descriptors.
const ACCEPT_RETRY_NS: u64 = 100_000_000;

const LISTENER: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;

/// One deadline. Ordered by instant, then by when it was made, so that equal
/// deadlines keep their order from step to step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    appointment: u64,
    slot: usize,
}

pub(super) struct Reactor {
    at: Listen,
    margin: Margin,
    epoll: Epoll,
    listener: TcpListener,
    /// None while the listener is asked; else when to ask again at the latest.
    accept_paused_until_ns: Option<u64>,
    alarm: Alarm,
    respond: Box<dyn Respond>,
    shared: Arc<Shared>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Slot by number of the connection.
    slots: HashMap<u64, usize>,
    due: BinaryHeap<Reverse<Due>>,
    appointments: u64,
    accepted: u64,
    kept_body_bytes: usize,
    kept_truth_tokens: usize,
    buffer: Vec<u8>,
    control: Vec<u8>,
    piece: Piece,
}

impl Reactor {
    pub(super) fn new(
        at: Listen,
        listener: TcpListener,
        respond: Box<dyn Respond>,
        shared: Arc<Shared>,
        stop: &EventFd,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let alarm = Alarm::new()?;
        epoll.add(alarm.file(), EpollEvent::new(EpollFlags::EPOLLIN, ALARM))?;
        epoll.add(stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP))?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        let mut control = cmsg_space!(TimeSpec);
        control.resize(control.capacity(), 0);
        Ok(Self {
            at,
            margin: Margin::new(u64::try_from(at.spin.as_nanos()).unwrap_or(u64::MAX)),
            epoll,
            listener,
            accept_paused_until_ns: None,
            alarm,
            respond,
            shared,
            connections: Vec::new(),
            free: Vec::new(),
            slots: HashMap::new(),
            due: BinaryHeap::new(),
            appointments: 0,
            accepted: 0,
            kept_body_bytes: 0,
            kept_truth_tokens: 0,
            buffer: vec![0; 64 << 10],
            control,
            piece: Piece::default(),
        })
    }

    pub(super) fn run(mut self) {
        // Only a programming error makes the poller or the timer fail; the
        // panic reaches whoever stops the server.
        while self.turn().expect("the poller and the timer work") {}
        let unfinished = self.connections.iter_mut().flatten().filter_map(Connection::take_truth);
        let unfinished: Vec<Truth> = unfinished.collect();
        for truth in unfinished {
            keep_truth(&self.shared, &mut self.kept_truth_tokens, self.at, truth);
        }
    }

    /// One turn; false when the server is to stop.
    fn turn(&mut self) -> io::Result<bool> {
        let margin_ns = self.margin.ns();
        let timeout = match self.next_deadline_ns() {
            Some(at_ns) if at_ns <= monotonic_ns().saturating_add(margin_ns) => {
                while monotonic_ns() < at_ns {
                    std::hint::spin_loop();
                }
                self.keep_deadlines();
                EpollTimeout::ZERO
            }
            next => {
                self.alarm.set(next.map(|at_ns| at_ns - margin_ns))?;
                EpollTimeout::NONE
            }
        };
        let slept = timeout == EpollTimeout::NONE;
        let mut events = [EpollEvent::empty(); EVENTS_PER_TURN];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            match event.data() {
                STOP => return Ok(false),
                ALARM => {
                    // Only a thread that slept tells how late it is woken.
                    if let Some(late_ns) = self.alarm.rang().filter(|_| slept && count == 1) {
                        self.margin.learn(late_ns);
                    }
                }
                LISTENER => self.accept()?,
                data => self.socket_event(data, event.events()),
            }
        }
        Ok(true)
    }

    /// The earliest deadline that still counts.
    fn next_deadline_ns(&mut self) -> Option<u64> {
        while let Some(Reverse(due)) = self.due.peek() {
            if self.counts(due) {
                break;
            }
            self.due.pop();
        }
        let step = self.due.peek().map(|Reverse(due)| due.at_ns);
        let others = [self.respond.wake_ns(), self.accept_paused_until_ns];
        others.into_iter().flatten().chain(step).min()
    }

    fn counts(&self, due: &Due) -> bool {
        let connection = self.connections.get(due.slot).and_then(Option::as_ref);
        connection.is_some_and(|connection| connection.appointment == due.appointment)
    }

    /// Does what is due, a bounded number of steps.
    fn keep_deadlines(&mut self) {
        let now_ns = monotonic_ns();
        if self.respond.wake_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            for (key, play) in self.respond.wake(now_ns) {
                self.continue_answer(key, play);
            }
            self.pour_what_is_due();
        }
        if self.accept_paused_until_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.resume_accepting();
        }
        for _ in 0..STEPS_PER_TURN {
            let Some(&Reverse(due)) = self.due.peek() else { break };
            if !self.counts(&due) {
                self.due.pop();
                continue;
            }
            // Read again for each step: it is the instant that is written down.
            let now_ns = monotonic_ns();
            if due.at_ns > now_ns {
                break;
            }
            self.due.pop();
            self.keep(due.slot, now_ns);
        }
    }

    /// Writes what is due of answers that are poured, a bounded number of pieces.
    fn pour_what_is_due(&mut self) {
        let mut piece = std::mem::take(&mut self.piece);
        for _ in 0..STEPS_PER_TURN {
            piece.clear();
            if !self.respond.pour(monotonic_ns(), &mut piece) {
                break;
            }
            self.pour(&piece);
        }
        self.piece = piece;
    }

    fn pour(&mut self, piece: &Piece) {
        let Some(&slot) = self.slots.get(&piece.connection) else { return };
        // The head of the answer is a step, and comes first, even where a client
        // that reads slowly holds it back.
        while self.connections[slot].as_mut().is_some_and(Connection::has_step) {
            self.keep(slot, monotonic_ns());
        }
        let (shared, kept, at) = (&self.shared, &mut self.kept_truth_tokens, self.at);
        let connection = self.connections[slot].as_mut();
        let Some(connection) = connection.filter(|connection| connection.owes_answer()) else {
            return;
        };
        let publish = |truth| keep_truth(shared, kept, at, truth);
        match connection.pour(piece, monotonic_ns(), publish) {
            Err(_) => self.gone(slot),
            Ok(()) if piece.last => self.advance(slot),
            Ok(()) => self.ask_poller(slot),
        }
    }

    fn keep(&mut self, slot: usize, now_ns: u64) {
        let (shared, kept, at) = (&self.shared, &mut self.kept_truth_tokens, self.at);
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        connection.appointment = 0;
        match connection.state {
            State::Playing(_) => {
                match connection.perform(now_ns, |truth| keep_truth(shared, kept, at, truth)) {
                    Ok(()) => self.advance(slot),
                    Err(_) => self.gone(slot),
                }
            }
            // Idle for too long, or too slow with a request.
            State::Reading => self.linger(slot),
            State::Lingering => self.remove(slot),
        }
    }

    /// A play that continues an answer; its client may have gone.
    fn continue_answer(&mut self, key: u64, play: Play) {
        let Some(&slot) = self.slots.get(&key) else { return };
        let Some(connection) = self.connections[slot].as_mut() else { return };
        if !connection.owes_answer() {
            return;
        }
        let waits = connection.appointment == 0;
        connection.begin(play, None);
        if waits {
            self.advance(slot);
        }
    }

    /// Goes on with the connection's script, or with its next request when it
    /// is over.
    fn advance(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        match connection.prepare() {
            Next::At(at_ns) => self.appoint(slot, at_ns),
            // What was due before, such as the end of its idle time, is not now.
            Next::Wait => connection.appointment = 0,
            Next::Drop => {
                connection.arm_reset();
                self.publish_cut(slot);
                return self.remove(slot);
            }
            Next::Linger => {
                self.publish_cut(slot);
                return self.linger(slot);
            }
            Next::Finished => {
                self.publish_cut(slot);
                return self.finished(slot);
            }
        }
        self.ask_poller(slot);
    }

    /// Writes down a truth line that no step claimed as its end.
    fn publish_cut(&mut self, slot: usize) {
        if let Some(truth) = self.connections[slot].as_mut().and_then(Connection::take_truth) {
            keep_truth(&self.shared, &mut self.kept_truth_tokens, self.at, truth);
        }
    }

    /// The answer is over: the next request, or the end.
    fn finished(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        if !connection.keep_alive {
            if connection.has_unwritten() {
                // The end of the bytes will come back here.
                return self.ask_poller(slot);
            }
            return self.linger(slot);
        }
        connection.state = State::Reading;
        self.appoint_idle(slot);
        // The next request may have come while the answer played.
        self.read_requests(slot, monotonic_ns());
        self.ask_poller(slot);
    }

    fn appoint_idle(&mut self, slot: usize) {
        let keep_alive_ns = u64::try_from(self.at.keep_alive.as_nanos()).unwrap_or(u64::MAX);
        self.appoint(slot, monotonic_ns().saturating_add(keep_alive_ns));
    }

    fn appoint(&mut self, slot: usize, at_ns: u64) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        self.appointments += 1;
        connection.appointment = self.appointments;
        self.due.push(Reverse(Due { at_ns, appointment: self.appointments, slot }));
        // Idle deadlines that were overtaken lie far ahead and would pile up.
        if self.due.len() > 1024 + 4 * self.connections.len() {
            let connections = &self.connections;
            self.due.retain(|Reverse(due)| {
                let connection = connections.get(due.slot).and_then(Option::as_ref);
                connection.is_some_and(|connection| connection.appointment == due.appointment)
            });
        }
    }

    /// Tells the poller what is wanted, when that changed.
    fn ask_poller(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let wanted = connection.wanted();
        if wanted == connection.interest {
            return;
        }
        connection.interest = wanted;
        let mut event = EpollEvent::new(wanted, connection.key);
        if self.epoll.modify(&connection.stream, &mut event).is_err() {
            self.gone(slot);
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..EVENTS_PER_TURN {
            if self.slots.len() >= self.at.max_connections {
                return self.pause_accepting(u64::MAX);
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // A client that is gone already is no connection.
                    if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok() {
                        self.add(stream);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // No file descriptor or no memory: trying again at once would
                // turn in circles.
                Err(_) => return self.pause_accepting(monotonic_ns() + ACCEPT_RETRY_NS),
            }
        }
        Ok(())
    }

    fn add(&mut self, stream: std::net::TcpStream) {
        let key = self.accepted;
        let mut connection = Connection::new(stream, key, self.at.limits);
        connection.interest = connection.wanted();
        let event = EpollEvent::new(connection.interest, key);
        if self.epoll.add(&connection.stream, event).is_err() {
            return;
        }
        self.accepted += 1;
        self.shared.log().counters.accepted += 1;
        let slot = self.free.pop().unwrap_or(self.connections.len());
        if slot == self.connections.len() {
            self.connections.push(None);
        }
        self.slots.insert(key, slot);
        self.connections[slot] = Some(connection);
        match self.respond.greet(key) {
            Some(script) => self.begin(slot, Play::of(script, monotonic_ns()), None),
            None => self.appoint_idle(slot),
        }
    }

    fn begin(&mut self, slot: usize, play: Play, arrival_ns: Option<u64>) {
        if let Some(connection) = self.connections[slot].as_mut() {
            connection.begin(play, arrival_ns);
            self.advance(slot);
        }
    }

    fn pause_accepting(&mut self, until_ns: u64) -> io::Result<()> {
        self.epoll.delete(&self.listener)?;
        self.accept_paused_until_ns = Some(until_ns);
        self.shared.log().counters.accept_pauses += 1;
        Ok(())
    }

    fn resume_accepting(&mut self) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, LISTENER);
        if self.accept_paused_until_ns.take().is_some()
            && self.epoll.add(&self.listener, event).is_err()
        {
            // The kernel is short of memory: later, then.
            self.accept_paused_until_ns = Some(monotonic_ns() + ACCEPT_RETRY_NS);
        }
    }

    fn socket_event(&mut self, key: u64, flags: EpollFlags) {
        // It may have been removed by an earlier event of this turn.
        let Some(&slot) = self.slots.get(&key) else { return };
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let broken = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        if flags.intersects(broken) {
            return self.gone(slot);
        }
        if flags.contains(EpollFlags::EPOLLOUT) {
            match connection.flush() {
                Err(_) => return self.gone(slot),
                Ok(()) if connection.appointment == 0 => self.advance(slot),
                Ok(()) => self.ask_poller(slot),
            }
        }
        let Some(connection) = self.connections[slot].as_ref() else { return };
        match connection.state {
            // A client that closes its direction in the middle of an answer is
            // taken to have left, as servers of this kind do.
            State::Playing(_) if flags.contains(EpollFlags::EPOLLRDHUP) => self.gone(slot),
            State::Playing(_) => {}
            State::Reading => self.read(slot),
            State::Lingering => self.discard(slot),
        }
    }

    fn read(&mut self, slot: usize) {
        for _ in 0..READS_PER_EVENT {
            let Some(connection) = self.connections[slot].as_mut() else { return };
            if !matches!(connection.state, State::Reading) {
                break;
            }
            match connection.read(&mut self.buffer, &mut self.control) {
                Read::Nothing => break,
                Read::Over => return self.gone(slot),
                Read::Bytes(count, at_ns) => {
                    let begins = connection.reader.is_idle();
                    connection.reader.push(&self.buffer[..count]);
                    if begins {
                        self.appoint(slot, at_ns.saturating_add(REQUEST_NS));
                    }
                    self.read_requests(slot, at_ns);
                    if count < self.buffer.len() {
                        break;
                    }
                }
            }
        }
        self.ask_poller(slot);
    }

    /// Answers the request that the bytes so far complete, if any.
    fn read_requests(&mut self, slot: usize, at_ns: u64) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        match connection.reader.advance() {
            Ok(Progress::More) => {}
            Ok(Progress::Continue) => {
                if connection.interject(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
                    self.gone(slot);
                }
            }
            Ok(Progress::Whole(mut request)) => {
                request.arrival_ns = at_ns;
                request.connection = connection.key;
                request.on_connection = connection.requests;
                connection.requests += 1;
                connection.keep_alive = request.keep_alive;
                self.answer(slot, request);
            }
            Err(refusal) => {
                self.shared.log().counters.refused += 1;
                connection.keep_alive = false;
                self.begin(slot, Play::of(refusal.script(), at_ns), Some(at_ns));
            }
        }
    }

    fn answer(&mut self, slot: usize, request: Request) {
        let play = self.respond.answer(&request);
        let arrival_ns = request.arrival_ns;
        let mut log = self.shared.log();
        log.counters.requests += 1;
        let bytes = self.kept_body_bytes.saturating_add(request.body.len());
        if log.requests.len() < self.at.keep_requests && bytes <= self.at.keep_body_bytes {
            self.kept_body_bytes = bytes;
            log.requests.push(request);
        } else {
            log.counters.requests_not_kept += 1;
        }
        drop(log);
        self.begin(slot, play, Some(arrival_ns));
    }

    /// Throws away what a closed connection still sends.
    fn discard(&mut self, slot: usize) {
        for _ in 0..READS_PER_EVENT {
            let Some(connection) = self.connections[slot].as_ref() else { return };
            match connection.read(&mut self.buffer, &mut self.control) {
                Read::Bytes(..) => {}
                Read::Nothing => return,
                Read::Over => return self.remove(slot),
            }
        }
    }

    /// Closes our direction and listens a little for the client's.
    fn linger(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        if !connection.shut() {
            return self.remove(slot);
        }
        connection.state = State::Lingering;
        self.appoint(slot, monotonic_ns().saturating_add(LINGER_NS));
        self.ask_poller(slot);
    }

    /// The client left, or the connection broke.
    fn gone(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_ref() else { return };
        if connection.owes_answer() {
            let key = connection.key;
            self.shared.log().counters.left_early += 1;
            self.respond.left(key, monotonic_ns());
        }
        self.publish_cut(slot);
        self.remove(slot);
    }

    fn remove(&mut self, slot: usize) {
        if let Some(connection) = self.connections[slot].take() {
            self.slots.remove(&connection.key);
            self.free.push(slot);
            // Dropping the stream closes it, and the poller forgets it.
            drop(connection);
            self.resume_accepting();
        }
    }
}

/// Adds a truth line, within the limit on tokens.
fn keep_truth(shared: &Shared, kept_tokens: &mut usize, at: Listen, truth: Truth) {
    let tokens = kept_tokens.saturating_add(truth.token_ns.len());
    let mut log = shared.log();
    if tokens <= at.keep_truth_tokens {
        *kept_tokens = tokens;
        log.truths.push(truth);
    } else {
        log.counters.truths_not_kept += 1;
    }
}
