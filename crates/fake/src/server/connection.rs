//! One connection: what was read, what is being played, what could not be
//! written yet.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use wire::truth::Truth;

use crate::clock;
use crate::request::{Limits, RequestReader};
use crate::script::{Action, Break, Piece, Play, Step, Steps};

/// Bytes that may wait for a slow client before its script is held back.
const MOST_UNWRITTEN: usize = 256 << 10;

/// Bytes that may wait for a client whose answer is poured, and so cannot be held
/// back; one that reads no more than this is taken to have left.
const MOST_POURED: usize = 16 << 20;

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Number in the order of acceptance.
    pub(super) key: u64,
    pub(super) reader: RequestReader,
    pub(super) state: State,
    /// The one deadline that counts for this connection; others in the heap
    /// are of the past. Zero for none.
    pub(super) appointment: u64,
    /// What the poller was last asked for.
    pub(super) interest: EpollFlags,
    pub(super) requests: u32,
    pub(super) keep_alive: bool,
    unwritten: Unwritten,
}

#[derive(Default)]
struct Unwritten {
    bytes: Vec<u8>,
    from: usize,
}

pub(super) enum State {
    /// Between requests, or within one.
    Reading,
    Playing(Playing),
    /// Our direction is closed; the rest of what the client says is thrown
    /// away, because closing a socket with unread bytes would reset it and
    /// take the answer with it.
    Lingering,
}

pub(super) struct Playing {
    start_ns: u64,
    next: Option<Step>,
    rest: Steps,
    queued: VecDeque<Play>,
    more: bool,
    /// Plays that came from a request; a greeting is none.
    pub(super) answers: bool,
    ending: Option<Ending>,
    truth: Option<Truth>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Close,
    Reset,
    Stall,
}

/// What a connection is to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A step is due at this instant.
    At(u64),
    /// The kernel has to take bytes first, or more plays have to come.
    Wait,
    /// The script is over and the connection can be used again.
    Finished,
    /// The script closed our direction.
    Linger,
    /// The connection is to be dropped at once.
    Drop,
}

/// What one read gave.
pub(super) enum Read {
    /// So many bytes, the last of which reached the host then.
    Bytes(usize, u64),
    Nothing,
    Over,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, key: u64, limits: Limits) -> Self {
        Self {
            stream,
            key,
            reader: RequestReader::new(limits),
            state: State::Reading,
            appointment: 0,
            interest: EpollFlags::empty(),
            requests: 0,
            keep_alive: true,
            unwritten: Unwritten::default(),
        }
    }

    /// What the poller should tell about. While an answer plays nothing is
    /// read: the next request can wait, a client that leaves is told apart by
    /// its FIN.
    pub(super) fn wanted(&self) -> EpollFlags {
        let reads = match self.state {
            State::Reading | State::Lingering => EpollFlags::EPOLLIN,
            State::Playing(_) => EpollFlags::empty(),
        };
        let writes =
            if self.unwritten.is_empty() { EpollFlags::empty() } else { EpollFlags::EPOLLOUT };
        reads | writes | EpollFlags::EPOLLRDHUP
    }

    /// Begins a play, or continues the answer that is under way.
    pub(super) fn begin(&mut self, play: Play, arrival_ns: Option<u64>) {
        if let State::Playing(playing) = &mut self.state {
            playing.queued.push_back(play);
            return;
        }
        let truth = play.truth_id.map(|id| Truth {
            id,
            arrival_ns: arrival_ns.unwrap_or(play.start_ns),
            planned_token_ns: Some(Vec::new()),
            ..Truth::default()
        });
        self.state = State::Playing(Playing {
            start_ns: play.start_ns,
            next: None,
            rest: play.steps,
            queued: VecDeque::new(),
            more: play.more,
            answers: arrival_ns.is_some(),
            ending: None,
            truth,
        });
    }

    /// Makes the next step ready, encoded, and says when it is due.
    pub(super) fn prepare(&mut self) -> Next {
        let State::Playing(playing) = &mut self.state else { return Next::Wait };
        if let Some(ending) = playing.ending {
            return if !self.unwritten.is_empty() {
                Next::Wait
            } else {
                match ending {
                    Ending::Close => Next::Linger,
                    Ending::Reset => Next::Drop,
                    Ending::Stall => Next::Wait,
                }
            };
        }
        if self.unwritten.len() > MOST_UNWRITTEN {
            return Next::Wait;
        }
        loop {
            if playing.next.is_none() {
                playing.next = playing.rest.next();
            }
            if let Some(step) = &playing.next {
                return Next::At(playing.start_ns.saturating_add(step.at_ns));
            }
            match playing.queued.pop_front() {
                Some(play) => {
                    playing.start_ns = play.start_ns;
                    playing.rest = play.steps;
                    playing.more = play.more;
                }
                None if playing.more => return Next::Wait,
                None => return Next::Finished,
            }
        }
    }

    /// Performs the step that is due; `now_ns` is the clock just before. A
    /// truth line that is complete is given back through `publish` before the
    /// client can know of the end.
    pub(super) fn perform(&mut self, now_ns: u64, publish: impl FnOnce(Truth)) -> io::Result<()> {
        let State::Playing(playing) = &mut self.state else { return Ok(()) };
        let Some(step) = playing.next.take() else { return Ok(()) };
        if let Some(truth) = &mut playing.truth
            && step.tokens > 0
        {
            let due_ns = playing.start_ns.saturating_add(step.at_ns);
            write_down(truth, now_ns, due_ns, step.tokens);
        }
        if step.last
            && let Some(truth) = playing.truth.take()
        {
            publish(truth);
        }
        match step.action {
            Action::Send(bytes) => {
                let held = self.unwritten.send(&mut self.stream, bytes)?;
                if held && let Some(truth) = &mut playing.truth {
                    truth.held_tokens = truth.held_tokens.saturating_add(step.tokens);
                }
            }
            Action::Close => playing.ending = Some(Ending::Close),
            Action::Reset => playing.ending = Some(Ending::Reset),
            Action::Stall => playing.ending = Some(Ending::Stall),
        }
        Ok(())
    }

    /// True when a step of the script is to come, whether it waits for its deadline
    /// or for the kernel to take what lies before it.
    pub(super) fn has_step(&mut self) -> bool {
        let State::Playing(playing) = &mut self.state else { return false };
        if playing.next.is_none() && playing.ending.is_none() {
            playing.next = playing.rest.next();
        }
        playing.next.is_some()
    }

    /// Writes a piece of the answer under way; `now_ns` is the clock just before.
    /// Its truth line is given to `publish` as [`Self::perform`] does.
    pub(super) fn pour(
        &mut self,
        piece: &Piece,
        now_ns: u64,
        publish: impl FnOnce(Truth),
    ) -> io::Result<()> {
        let State::Playing(playing) = &mut self.state else { return Ok(()) };
        if let Some(truth) = &mut playing.truth {
            for (due_ns, tokens) in &piece.tokens {
                write_down(truth, now_ns, *due_ns, *tokens);
            }
        }
        if piece.last {
            playing.more = false;
            playing.ending = piece.breaks.map(|breaks| match breaks {
                Break::Close => Ending::Close,
                Break::Reset => Ending::Reset,
            });
            if let Some(truth) = playing.truth.take() {
                publish(truth);
            }
        }
        let held = self.unwritten.pour(&mut self.stream, &piece.bytes)?;
        if held && let Some(truth) = &mut playing.truth {
            let tokens = piece.tokens.iter().map(|(_, tokens)| tokens).sum::<u32>();
            truth.held_tokens = truth.held_tokens.saturating_add(tokens);
        }
        if self.unwritten.len() > MOST_POURED {
            return Err(ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    /// The truth line of an answer that did not come to its end.
    pub(super) fn take_truth(&mut self) -> Option<Truth> {
        match &mut self.state {
            State::Playing(playing) => playing.truth.take(),
            _ => None,
        }
    }

    /// True while an answer to a request is not over.
    pub(super) fn owes_answer(&self) -> bool {
        matches!(&self.state, State::Playing(playing) if playing.answers)
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.unwritten.flush(&mut self.stream)
    }

    /// Sends bytes outside any script.
    pub(super) fn interject(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unwritten.send(&mut self.stream, bytes.to_vec()).map(drop)
    }

    pub(super) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Ends our direction; false when the connection is gone already.
    pub(super) fn shut(&self) -> bool {
        self.stream.shutdown(Shutdown::Write).is_ok()
    }

    /// Makes the coming close a reset.
    pub(super) fn arm_reset(&self) {
        // Without it the client would see a FIN; a socket that refuses the
        // option is one that is gone already.
        let _ = setsockopt(
            &self.stream,
            sockopt::Linger,
            &nix::libc::linger { l_onoff: 1, l_linger: 0 },
        );
    }

    /// Reads once. The arrival instant is the kernel's own stamp where there
    /// is one: this thread may be busy with a step of many streams when the
    /// bytes come.
    pub(super) fn read(&self, buffer: &mut [u8], control: &mut [u8]) -> Read {
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        match recvmsg::<()>(self.stream.as_raw_fd(), &mut slices, Some(control), flags) {
            Ok(message) if message.bytes == 0 => Read::Over,
            Ok(message) => {
                let stamp = message.cmsgs().ok().and_then(|mut parts| {
                    parts.find_map(|part| match part {
                        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                        _ => None,
                    })
                });
                let at_ns = stamp.map_or_else(clock::monotonic_ns, clock::monotonic_of_stamp);
                Read::Bytes(message.bytes, at_ns)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Read::Nothing,
            Err(_) => Read::Over,
        }
    }
}

/// Writes tokens down as they are about to be written.
fn write_down(truth: &mut Truth, now_ns: u64, due_ns: u64, tokens: u32) {
    let length = truth.token_ns.len() + tokens as usize;
    truth.token_ns.resize(length, now_ns.saturating_sub(truth.arrival_ns));
    if let Some(planned) = &mut truth.planned_token_ns {
        planned.resize(length, due_ns.saturating_sub(truth.arrival_ns));
    }
}

impl Unwritten {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.from
    }

    /// Hands bytes to the kernel, or keeps what it does not take; true when
    /// something was kept.
    fn send(&mut self, stream: &mut TcpStream, bytes: Vec<u8>) -> io::Result<bool> {
        if bytes.is_empty() {
            return Ok(false);
        }
        if !self.is_empty() {
            self.bytes.extend_from_slice(&bytes);
            return Ok(true);
        }
        // Most writes are taken whole, so the bytes are not copied first.
        let written = write_some(stream, &bytes)?;
        if written == bytes.len() {
            return Ok(false);
        }
        self.bytes = bytes;
        self.from = written;
        Ok(true)
    }

    /// The same with bytes that stay the caller's.
    fn pour(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<bool> {
        let written = if self.is_empty() { write_some(stream, bytes)? } else { 0 };
        self.bytes.extend_from_slice(&bytes[written..]);
        Ok(written < bytes.len())
    }

    fn flush(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.from < self.bytes.len() {
            let written = write_some(stream, &self.bytes[self.from..])?;
            if written == 0 {
                break;
            }
            self.from += written;
        }
        if self.from == self.bytes.len() {
            self.bytes.clear();
            self.from = 0;
        } else if self.from > MOST_UNWRITTEN {
            self.bytes.drain(..self.from);
            self.from = 0;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (client, Connection::new(stream, 0, Limits::default()))
    }

    fn token(at_ns: u64, bytes: Vec<u8>) -> Step {
        Step { at_ns, action: Action::Send(bytes), tokens: 1, last: false }
    }

    #[test]
    fn tokens_that_the_kernel_does_not_take_are_counted_and_hold_the_script_back() {
        let (mut client, mut connection) = pair();
        // More than any socket buffer takes without a reader.
        let large = vec![b'x'; 32 << 20];
        let steps = [token(5, b"one".to_vec()), token(6, large.clone()), token(7, b"two".to_vec())];
        connection.begin(
            Play {
                start_ns: 100,
                steps: Box::new(steps.into_iter()),
                truth_id: Some("r".into()),
                more: false,
            },
            Some(90),
        );
        for due_ns in [105, 106] {
            assert_eq!(connection.prepare(), Next::At(due_ns));
            connection.perform(due_ns + 1, |_| panic!("no step ends the answer")).unwrap();
        }
        assert_eq!(connection.prepare(), Next::Wait);
        assert!(connection.wanted().contains(EpollFlags::EPOLLOUT));

        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; 3 + (32 << 20)];
            client.read_exact(&mut bytes).unwrap();
            (client, bytes)
        });
        while connection.has_unwritten() {
            connection.flush().unwrap();
        }
        let (_client, bytes) = reader.join().unwrap();
        assert!(bytes.starts_with(b"onexxx") && bytes.ends_with(b"x"));
        assert_eq!(connection.prepare(), Next::At(107));
        connection.perform(1_000, |_| panic!("no step ends the answer")).unwrap();
        let expected = Truth {
            id: "r".into(),
            arrival_ns: 90,
            token_ns: vec![16, 17, 910],
            planned_token_ns: Some(vec![15, 16, 17]),
            held_tokens: 1,
        };
        assert_eq!(connection.take_truth(), Some(expected));
        assert_eq!(connection.prepare(), Next::Finished);
    }

    /// What waits for a slow client when it asks again holds the script back, and an
    /// answer that is poured is held back by nothing.
    #[test]
    fn the_head_comes_before_what_is_poured_however_much_waits() {
        let (mut client, mut connection) = pair();
        setsockopt(&connection.stream, sockopt::SndBuf, &(64 << 10)).unwrap();
        connection.interject(&vec![b'x'; 12 << 20]).unwrap();
        assert!((MOST_UNWRITTEN..MOST_POURED).contains(&connection.unwritten.len()));
        let head = Step { at_ns: 0, ..token(0, b"head".to_vec()) };
        let begun = Play {
            start_ns: 100,
            steps: Box::new(std::iter::once(head)),
            truth_id: None,
            more: true,
        };
        connection.begin(begun, Some(100));
        assert_eq!(connection.prepare(), Next::Wait, "the script is held back");
        while connection.has_step() {
            connection.perform(101, |_| panic!("no step ends the answer")).unwrap();
        }
        let piece = Piece { bytes: b"body".to_vec(), last: true, ..Piece::default() };
        connection.pour(&piece, 102, |_| panic!("it has no truth line")).unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = vec![0; (12 << 20) + 8];
            client.read_exact(&mut bytes).unwrap();
            bytes
        });
        while connection.has_unwritten() {
            connection.flush().unwrap();
        }
        let bytes = reader.join().unwrap();
        assert!(bytes.ends_with(b"xxheadbody"));
        assert_eq!(connection.prepare(), Next::Finished);
    }

    #[test]
    fn an_answer_that_is_cut_short_ends_its_connection_or_leaves_it_open() {
        for (breaks, next) in [
            (None, Next::Finished),
            (Some(Break::Close), Next::Linger),
            (Some(Break::Reset), Next::Drop),
        ] {
            let (_client, mut connection) = pair();
            let begun = Play {
                start_ns: 100,
                steps: Box::new(std::iter::empty()),
                truth_id: Some("r".into()),
                more: true,
            };
            connection.begin(begun, Some(100));
            assert_eq!(connection.prepare(), Next::Wait);
            let bytes = b"part".to_vec();
            let piece =
                Piece { bytes, tokens: vec![(110, 1)], last: true, breaks, ..Piece::default() };
            let mut truths = Vec::new();
            connection.pour(&piece, 111, |truth| truths.push(truth)).unwrap();
            assert_eq!(truths[0].token_ns, [11]);
            assert_eq!(connection.prepare(), next);
        }
    }
}
