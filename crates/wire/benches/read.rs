//! What it costs to read one event, in nanoseconds, by API and by how many
//! events a read of the connection holds.
//!
//! Beside each figure stands a floor from the same round: the bytes copied once
//! and searched once for line ends. On a busy machine both move, so compare
//! their ratio, and medians rather than single rounds. `--rounds N` sets the
//! number of rounds, 31 else; `--only NAME` leaves out the other lines.
//!
//! A figure is that of whole answers: opening the reader, the head and the end
//! are in it, spread over the events.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use wire::api::Api;
use wire::reader::{Close, Reader, ReaderOptions};

/// Events of one answer.
const EVENTS: usize = 512;

/// An answer cut into the reads that it is fed in.
struct Answer {
    name: String,
    api: Api,
    options: ReaderOptions,
    reads: Vec<Vec<u8>>,
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n";

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// Words as models emit them: mostly a few letters with a space before.
const WORDS: &[&str] = &[
    " the",
    " a",
    " serving",
    " of",
    " token",
    "s",
    ",",
    " latency",
    " in",
    " is",
    " 模型",
    " to",
    "ing",
    " requests",
    ".",
    " batch",
];

/// The chat event of vLLM, `data: ` and blank line included 260 bytes on
/// average.
fn chat(word: &str) -> String {
    format!(
        r#"data: {{"id":"chatcmpl-bf9f0d0c31225ee1a1b2c3d4e5f60718","object":"chat.completion.chunk","created":1795960280,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{{"index":0,"delta":{{"content":"{word}"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}"#
    ) + "\n\n"
}

/// The chat event of a server that writes a new instant into each.
fn chat_stamped(index: usize, word: &str) -> String {
    chat(word).replace("1795960280", &(1_795_960_280 + index).to_string())
}

fn responses(index: usize, word: &str) -> String {
    let noise = &"aZ3kQ9xWmP5t"[..4 + index % 8];
    format!(
        "event: response.output_text.delta\ndata: {}\n\n",
        format_args!(
            r#"{{"type":"response.output_text.delta","sequence_number":{index},"item_id":"msg_68a1b2c3d4e5f60718293a4b5c6d7e8f","output_index":0,"content_index":0,"delta":"{word}","logprobs":[],"obfuscation":"{noise}"}}"#
        )
    )
}

fn anthropic(word: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {}\n\n",
        format_args!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{word}"}}}}"#
        )
    )
}

fn ollama(index: usize, word: &str) -> String {
    format!(
        "{{\"model\":\"llama3.1:8b\",\"created_at\":\"2026-01-01T00:00:{:02}.{:06}Z\",\
         \"message\":{{\"role\":\"assistant\",\"content\":\"{word}\"}},\"done\":false}}\n",
        index % 60,
        index * 1013 % 1_000_000,
    )
}

fn tgi(index: usize, word: &str) -> String {
    format!(
        "data:{{\"index\":{index},\"token\":{{\"id\":{},\"text\":\"{word}\",\"logprob\":-{}.{:03},\
         \"special\":false}},\"generated_text\":null,\"details\":null}}\n\n",
        index * 7919 % 128_000,
        index % 3,
        index * 17 % 1000,
    )
}

/// An answer whose events come `per_read` to a read, each in a chunk of its
/// own.
fn answer(
    name: &str,
    api: Api,
    per_read: usize,
    options: ReaderOptions,
    event: impl Fn(usize, &str) -> String,
) -> Answer {
    let media = if api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    let mut reads = vec![format!("{HEAD}content-type: {media}\r\n\r\n").into_bytes()];
    let events: Vec<Vec<u8>> =
        (0..EVENTS).map(|index| chunk(&event(index, WORDS[index % WORDS.len()]))).collect();
    reads.extend(events.chunks(per_read).map(<[Vec<u8>]>::concat));
    reads.push(b"0\r\n\r\n".to_vec());
    Answer { name: format!("{name}, {per_read} a read"), api, options, reads }
}

fn answers() -> Vec<Answer> {
    let plain = ReaderOptions::default();
    let kept = ReaderOptions { keep_text: true, ..plain };
    let full = ReaderOptions { full_parse: true, ..plain };
    let mut answers = Vec::new();
    for per_read in [1, 8] {
        answers.extend([
            answer("chat", Api::OpenaiChat, per_read, plain, |_, word| chat(word)),
            answer("chat, text kept", Api::OpenaiChat, per_read, kept, |_, word| chat(word)),
            answer("chat, stamps differ", Api::OpenaiChat, per_read, plain, chat_stamped),
            answer("chat, parsed in full", Api::OpenaiChat, per_read, full, |_, word| chat(word)),
            answer("responses", Api::OpenaiResponses, per_read, plain, responses),
            answer("anthropic", Api::Anthropic, per_read, plain, |_, word| anthropic(word)),
            answer("ollama", Api::Ollama, per_read, plain, ollama),
            answer("tgi", Api::Tgi, per_read, plain, tgi),
        ]);
    }
    answers.push(answer("chat", Api::OpenaiChat, EVENTS, plain, |_, word| chat(word)));
    let mut bytewise = answer("chat", Api::OpenaiChat, 1, plain, |_, word| chat(word));
    bytewise.reads = bytewise.reads.concat().chunks(1).map(<[u8]>::to_vec).collect();
    bytewise.name = "chat, one byte a read".to_owned();
    answers.push(bytewise);
    let mut packets = answer("chat", Api::OpenaiChat, 1, plain, |_, word| chat(word));
    packets.reads = packets.reads.concat().chunks(1448).map(<[u8]>::to_vec).collect();
    packets.name = "chat, in packets of 1448 bytes".to_owned();
    answers.push(packets);
    answers
}

/// Reads the answer to its end; gives the number of events.
fn read(answer: &Answer) -> usize {
    let mut reader = Reader::new(answer.api, answer.options);
    for (at_us, bytes) in answer.reads.iter().enumerate() {
        black_box(reader.read(black_box(bytes), at_us as u32));
    }
    black_box(reader.finish(Close::Done, answer.reads.len() as u32)).events.len()
}

/// Copies the bytes of every read and looks for line ends in them.
fn floor(answer: &Answer, buffer: &mut Vec<u8>) -> usize {
    let mut lines = 0;
    for bytes in &answer.reads {
        buffer.clear();
        buffer.extend_from_slice(black_box(bytes));
        lines += memchr::memchr_iter(b'\n', black_box(buffer)).count();
    }
    lines
}

fn ns_per_event(events: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / events as f64
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Resident memory in bytes, where the system tells it.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<usize>().ok().map(|kb| kb << 10)
}

/// Bytes that an open reader holds with its head read and no event yet, and
/// behind a first few events.
fn memory(answer: &Answer, reads: usize) -> Option<usize> {
    const READERS: usize = 20_000;
    let before = resident_bytes()?;
    let mut readers = Vec::with_capacity(READERS);
    readers.resize_with(READERS, || Reader::new(answer.api, answer.options));
    for reader in &mut readers {
        for bytes in &answer.reads[..reads] {
            reader.read(bytes, 1);
        }
    }
    let after = resident_bytes()?;
    black_box(readers);
    Some(after.saturating_sub(before) / READERS)
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument =
        |name: &str| arguments.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str());
    let rounds = argument("--rounds").and_then(|rounds| rounds.parse().ok()).unwrap_or(31);
    let mut answers = answers();
    if let Some(only) = argument("--only") {
        answers.retain(|answer| answer.name == only);
    }
    let mut out = std::io::stdout().lock();
    for (what, reads) in [("before the first event", 1), ("after eight events", 9)] {
        if let Some(bytes) = answers.first().and_then(|answer| memory(answer, reads)) {
            writeln!(out, "memory of an open reader {what}: {bytes} bytes")?;
        }
    }
    writeln!(out, "of it the value itself: {} bytes", size_of::<Reader>())?;
    let mut buffer = Vec::new();
    let mut samples = vec![(Vec::new(), Vec::new()); answers.len()];
    for round in 0..rounds + 3 {
        for (answer, (ours, floors)) in answers.iter().zip(&mut samples) {
            const REPEATS: usize = 4;
            let events = REPEATS * EVENTS;
            let floor_ns = ns_per_event(events, || {
                for _ in 0..REPEATS {
                    black_box(floor(answer, &mut buffer));
                }
            });
            let our_ns = ns_per_event(events, || {
                for _ in 0..REPEATS {
                    assert_eq!(read(answer), EVENTS);
                }
            });
            // The first rounds warm the caches up.
            if round >= 3 {
                ours.push(our_ns);
                floors.push(floor_ns);
            }
        }
    }
    writeln!(
        out,
        "{:38} {:>8} {:>8} {:>8} {:>7}",
        "ns an event", "median", "best", "floor", "ratio"
    )?;
    for (answer, (ours, floors)) in answers.iter().zip(&mut samples) {
        let (ours_ns, floor_ns) = (median(ours), median(floors));
        let (name, best, ratio) = (&answer.name, ours[0], ours_ns / floor_ns);
        writeln!(out, "{name:38} {ours_ns:>8.1} {best:>8.1} {floor_ns:>8.1} {ratio:>7.1}")?;
    }
    Ok(())
}
