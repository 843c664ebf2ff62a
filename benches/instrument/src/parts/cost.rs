//! (a) Processor time per chunk, as a ratio to the raw epoll client. Server
//! and client share one processor and the server hands it over after every
//! batch, so that neither sleeping nor a server's limit is in the figure; the
//! order is R X R, because speeds of a machine drift by more than the clients
//! differ.

use serde_json::{Value, json};

use super::{Bench, Done, Sample, Samples, path_text, words};
use crate::errors::read_run;
use crate::processes::repetition;
use crate::table::{Table, median, short, spread};

/// Two R of a triple that differ by more make it void.
const DRIFT: f64 = 0.10;

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Raw,
    RawStamped,
    Goodput,
    Anchor,
}

impl Reader {
    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw epoll, recv",
            Self::RawStamped => "raw epoll, kernel stamps",
            Self::Goodput => "goodput bench",
            Self::Anchor => "reqwest + eventsource-stream",
        }
    }
}

/// The size of a run.
#[derive(Clone, Copy)]
struct Size {
    streams: u64,
    tokens: u64,
    chunks: u64,
}

pub(super) fn run(bench: &Bench) -> Done {
    let head = [
        "client",
        "chunks/write",
        "ratio to R",
        "CPU ns/chunk",
        "chunks/read",
        "chunks/sleep",
        "RSS MB",
        "whole process ns/chunk",
        "sound triples",
    ];
    let mut table = Table::new("(a) CPU per chunk", &head);
    let mut figures = serde_json::Map::new();
    let mut readers = vec![Reader::RawStamped, Reader::Goodput];
    if bench.anchor.is_some() {
        readers.push(Reader::Anchor);
    }
    for chunks in [1, 8] {
        let streams = if bench.quick { 200 } else { 1000 };
        let tokens = if bench.quick { 100 } else { 300 } * if chunks == 1 { 1 } else { 6 };
        let size = Size { streams, tokens, chunks };
        for &reader in &readers {
            let samples = bench.repeated(reader.name(), || triple(bench, reader, size))?;
            if reader == Reader::RawStamped {
                table.rows.push(row(Reader::Raw, &samples, chunks, "r"));
            }
            table.rows.push(row(reader, &samples, chunks, "x"));
            figures.insert(format!("{} x{chunks}", reader.name()), samples.to_json());
        }
    }
    table.notes.push(
        "Median (lowest–highest). R is the raw client with plain recv; its row is the median of \
         the R before each X. CPU is the client process's own clock, read by the server at a \
         tenth of the tokens and at the last one."
            .to_owned(),
    );
    Ok((Value::Object(figures), vec![table]))
}

fn row(reader: Reader, samples: &Samples, chunks: u64, who: &str) -> Vec<String> {
    let of = |name: &str| samples.of(&format!("/{who}/{name}"));
    let ratio = if who == "x" { spread(&samples.of("/ratio")) } else { "1".to_owned() };
    let megabytes: Vec<f64> = of("rss_kb").iter().map(|kb| kb / 1024.0).collect();
    vec![
        reader.name().to_owned(),
        chunks.to_string(),
        ratio,
        spread(&of("cpu_ns_per_chunk")),
        spread(&of("chunks_per_read")),
        short(median(&of("chunks_per_sleep"))),
        spread(&megabytes),
        spread(&of("whole_ns_per_chunk")),
        samples.count(),
    ]
}

/// R X R.
fn triple(bench: &Bench, reader: Reader, size: Size) -> Result<Sample, String> {
    let first = single(bench, Reader::Raw, size)?;
    let between = single(bench, reader, size)?;
    let second = single(bench, Reader::Raw, size)?;
    let cost = |value: &Value| value["cpu_ns_per_chunk"].as_f64().unwrap_or(f64::NAN);
    let mean = f64::midpoint(cost(&first), cost(&second));
    let drift = (cost(&first) - cost(&second)).abs() / mean;
    let void = [&first, &between, &second].iter().find_map(|value| value["void"].as_str());
    let void = void
        .map(str::to_owned)
        .or_else(|| (drift > DRIFT).then(|| format!("the two R differ by {:.0} %", drift * 100.0)));
    Ok(Sample { value: json!({"ratio": cost(&between) / mean, "r": first, "x": between}), void })
}

fn single(bench: &Bench, reader: Reader, size: Size) -> Result<Value, String> {
    let Size { streams, tokens, chunks } = size;
    let server =
        words(&format!("--mode flood --gate {streams} --chunks-per-write {chunks} --await-watch"));
    let command = |address: &str| match reader {
        Reader::Raw | Reader::RawStamped => {
            let own = crate::processes::own_program().unwrap_or_default();
            let stamps = if reader == Reader::RawStamped { "--kernel-stamps" } else { "" };
            let mut command = vec![path_text(&own)];
            command.extend(words(&format!(
                "raw --address {address} --streams {streams} --tokens {tokens} {stamps}"
            )));
            command
        }
        Reader::Goodput => {
            bench.goodput(address, &format!("--request-rate inf -n {streams} --osl {tokens}"))
        }
        Reader::Anchor => {
            let mut command = vec![bench.anchor.as_deref().map(path_text).unwrap_or_default()];
            command.extend(words(&format!("{address} {streams} {tokens}")));
            command
        }
    };
    let core = bench.server_core;
    let output = bench.fresh("client.out");
    let (done, printed) = repetition((core, &server), core, &output, command)?;
    let window = &done.server["window"];
    let (Some(cpu_ns), Some(counted)) =
        (window["client_cpu_ns"].as_f64(), window["tokens"].as_f64())
    else {
        return Err(format!("{}: the server saw no whole window", reader.name()));
    };
    let all = (streams * tokens) as f64;
    let chunks_per_read = if reader == Reader::Goodput {
        let (seen, shared) = read_run(&bench.work.join("run"))?;
        let arrivals: u64 = seen.iter().map(|request| request.at_ns.len() as u64).sum();
        if arrivals != streams * tokens {
            return Err(format!("goodput saw {arrivals} tokens of {all}"));
        }
        arrivals as f64 / arrivals.saturating_sub(shared).max(1) as f64
    } else {
        let report: Value =
            serde_json::from_str(&printed).map_err(|error| format!("{printed}: {error}"))?;
        if report["lost"].as_u64() != Some(0) {
            return Err(format!("{} lost tokens: {printed}", reader.name()));
        }
        // The anchor sees pieces of bodies, not reads; NaN becomes null.
        report["chunks_per_read"].as_f64().unwrap_or(f64::NAN)
    };
    Ok(json!({
        "cpu_ns_per_chunk": cpu_ns / counted,
        "whole_ns_per_chunk": done.cost.cpu_ns as f64 / all,
        "chunks_per_read": chunks_per_read,
        "rss_kb": done.cost.rss_kb,
        "chunks_per_sleep": all / done.cost.switches.0.max(1) as f64,
        "preempted": done.cost.switches.1,
        "others": done.others,
        "void": done.disturbed(),
    }))
}
