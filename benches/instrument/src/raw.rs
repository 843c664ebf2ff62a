//! `instrument raw`: the floor. One thread, epoll, plain recv, one clock
//! reading per read and one memmem over it: a streaming client cannot do less
//! and still know when each token came.

use std::io::{IoSliceMut, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use memchr::memmem::Finder;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeVal};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use wire::truth::{Truth, encode_line};

use crate::arguments::Arguments;
use crate::clock::monotonic_ns;

const TOKEN: &[u8] = b"\"content\":";
const END: &[u8] = b"\r\n0\r\n\r\n";

struct Stream {
    socket: TcpStream,
    sent_ns: u64,
    over: bool,
    /// Instants of arrival since `sent_ns`, for `--log`.
    at_ns: Vec<u64>,
}

/// The client's state besides its sockets.
struct Reader {
    token: Finder<'static>,
    buffer: Vec<u8>,
    ancillary: Vec<u8>,
    kernel_stamps: bool,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC: kernel stamps are on the former.
    offset_ns: u64,
    reads: u64,
    chunks: u64,
}

/// Reads `--streams` answers of `--tokens` and prints what that cost.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    crate::limits::raise_open_files();
    let address = arguments.need("address")?;
    let count: usize = arguments.number("streams", 100)?;
    let tokens: u32 = arguments.number("tokens", 100)?;
    let log = arguments.text("log");
    let kernel_stamps = arguments.has("kernel-stamps");
    let words = |error: std::io::Error| error.to_string();
    let mut streams = open(address, count, tokens, kernel_stamps, log.is_some()).map_err(words)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(kernel_stamps);
    for (index, stream) in streams.iter_mut().enumerate() {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, index as u64);
        epoll.add(&stream.socket, event).map_err(|error| error.to_string())?;
        let request = request(index, tokens, address);
        stream.sent_ns = monotonic_ns();
        stream.socket.write_all(&request).map_err(words)?;
    }
    let expected = count as u64 * u64::from(tokens);
    let mut cost: [Option<i64>; 2] = [None, None];
    let mut open = count;
    let mut events = vec![EpollEvent::empty(); 256];
    while open > 0 {
        let ready = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(ready) => ready,
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.to_string()),
        };
        for event in &events[..ready] {
            let stream = &mut streams[event.data() as usize];
            if reader.read(stream, log.is_some())? {
                open -= 1;
            }
        }
        if cost[0].is_none() && reader.chunks > 0 {
            cost[0] = used_us();
        }
        if cost[1].is_none() && reader.chunks >= expected {
            cost[1] = used_us();
        }
    }
    if let Some(path) = log {
        write_log(path, &streams).map_err(words)?;
    }
    report(&reader, expected, cost);
    Ok(())
}

fn open(
    address: &str,
    count: usize,
    tokens: u32,
    kernel_stamps: bool,
    log: bool,
) -> std::io::Result<Vec<Stream>> {
    (0..count)
        .map(|_| {
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            if kernel_stamps {
                setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            }
            let at_ns = Vec::with_capacity(if log { tokens as usize } else { 0 });
            Ok(Stream { socket, sent_ns: 0, over: false, at_ns })
        })
        .collect()
}

fn request(index: usize, tokens: u32, address: &str) -> Vec<u8> {
    let body = json!({
        "model": "tok",
        "messages": [{"role": "user", "content": "one two three four five six seven"}],
        "max_tokens": tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
    })
    .to_string();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         x-request-id: raw-{index}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Reader {
    fn new(kernel_stamps: bool) -> Self {
        let mut ancillary = cmsg_space!(TimeSpec);
        ancillary.resize(ancillary.capacity(), 0);
        Self {
            token: Finder::new(TOKEN),
            buffer: vec![0; 64 << 10],
            ancillary,
            kernel_stamps,
            offset_ns: real_offset_ns(),
            reads: 0,
            chunks: 0,
        }
    }

    /// One read of a ready stream; true when its answer is over.
    fn read(&mut self, stream: &mut Stream, log: bool) -> Result<bool, String> {
        let descriptor = stream.socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let (got, at_ns) = if self.kernel_stamps {
            let mut slices = [IoSliceMut::new(&mut self.buffer)];
            match recvmsg::<()>(descriptor, &mut slices, Some(&mut self.ancillary), flags) {
                Ok(message) => {
                    let user_ns = monotonic_ns();
                    let stamp = message.cmsgs().ok().and_then(|mut parts| {
                        parts.find_map(|part| match part {
                            ControlMessageOwned::ScmTimestampns(stamp) => Some(
                                (stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64)
                                    .saturating_sub(self.offset_ns),
                            ),
                            _ => None,
                        })
                    });
                    (Ok(message.bytes), stamp.unwrap_or(user_ns))
                }
                Err(error) => (Err(error), 0),
            }
        } else {
            (recv(descriptor, &mut self.buffer, flags), monotonic_ns())
        };
        let count = match got {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => count,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        let bytes = &self.buffer[..count];
        let found = self.token.find_iter(bytes).count();
        self.reads += u64::from(found > 0);
        self.chunks += found as u64;
        if log {
            let length = stream.at_ns.len() + found;
            stream.at_ns.resize(length, at_ns.saturating_sub(stream.sent_ns));
        }
        let ended = bytes.ends_with(END) && !stream.over;
        stream.over |= ended;
        Ok(ended)
    }
}

fn real_offset_ns() -> u64 {
    let real = clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux has CLOCK_REALTIME");
    (real.tv_sec() as u64 * 1_000_000_000 + real.tv_nsec() as u64).saturating_sub(monotonic_ns())
}

/// Processor time of this process so far, in µs.
fn used_us() -> Option<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let us = |time: TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Some(us(usage.user_time()) + us(usage.system_time()))
}

fn write_log(path: &str, streams: &[Stream]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        lines.extend(encode_line(&Truth {
            id: format!("raw-{index}"),
            arrival_ns: stream.sent_ns,
            token_ns: stream.at_ns.clone(),
            ..Truth::default()
        }));
    }
    std::fs::write(path, lines)
}

fn report(reader: &Reader, expected: u64, cost: [Option<i64>; 2]) {
    let rss_kb = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss());
    let per_chunk = match cost {
        [Some(first), Some(last)] => {
            Some((last - first) as f64 * 1_000.0 / reader.chunks.max(1) as f64)
        }
        _ => None,
    };
    crate::say(
        &json!({
            "chunks": reader.chunks,
            "lost": expected.saturating_sub(reader.chunks),
            "cpu_ns_per_chunk": per_chunk,
            "chunks_per_read": reader.chunks as f64 / reader.reads.max(1) as f64,
            "rss_kb": rss_kb,
        })
        .to_string(),
    );
}
