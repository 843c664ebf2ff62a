//! (b) How far stamps are from the truth: server and client on processors of
//! their own, tokens at absolute deadlines, both ends on one clock.

use serde_json::{Value, json};

use super::{Bench, Done, Sample, Samples, path_text, words};
use crate::errors::{join, read_raw_log, read_run, read_truth, strays};
use crate::processes::{own_program, repetition};
use crate::table::{Table, median, short, spread};

/// The truth may stray from its plan by this factor at p99.
const STRAY: f64 = 1.5;

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Raw,
    Goodput,
    /// Goodput over TLS.
    Secured,
}

impl Client {
    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw epoll, kernel stamps",
            Self::Goodput => "goodput bench",
            Self::Secured => "goodput bench, https",
        }
    }
}

/// Streams and the gap between their tokens.
const LOADS: &[(u64, u64)] = &[(100, 20_000), (1_000, 20_000), (4_000, 40_000)];

pub(super) fn run(bench: &Bench) -> Done {
    let head = [
        "client",
        "load",
        "stamp error p50 µs",
        "p99",
        "p99.9",
        "gap error p99 µs",
        "p99.9",
        "TTFT error p99 µs",
        "lost",
        "sound",
    ];
    let mut table = Table::new("(b) Stamps against the server's own", &head);
    let mut figures = serde_json::Map::new();
    let loads = if bench.quick { &LOADS[..1] } else { LOADS };
    for &(streams, interval_us) in loads {
        for order in ["spread", "lockstep"] {
            for client in [Client::Raw, Client::Goodput, Client::Secured] {
                let load = format!("{streams} × {}/s {order}", 1_000_000 / interval_us);
                let name = format!("{} {load}", client.name());
                let samples =
                    bench.repeated(&name, || single(bench, client, streams, interval_us, order))?;
                table.rows.push(row(client.name(), &load, &samples));
                figures.insert(name, samples.to_json());
            }
        }
    }
    table.notes.push(
        "Median (lowest–highest) of the repetitions' own percentiles. Stamp error: when the \
         client says the token came, less the instant just before the server's write. Goodput's \
         stamps are whole microseconds."
            .to_owned(),
    );
    Ok((Value::Object(figures), vec![table]))
}

fn row(client: &str, load: &str, samples: &Samples) -> Vec<String> {
    let of = |pointer: &str| spread(&samples.of(pointer));
    vec![
        client.to_owned(),
        load.to_owned(),
        of("/errors/absolute_us/p50"),
        of("/errors/absolute_us/p99"),
        of("/errors/absolute_us/p999"),
        of("/errors/gap_us/p99"),
        of("/errors/gap_us/p999"),
        of("/errors/ttft_us/p99"),
        short(median(&samples.of("/errors/lost"))),
        samples.count(),
    ]
}

fn single(
    bench: &Bench,
    client: Client,
    streams: u64,
    interval_us: u64,
    order: &str,
) -> Result<Sample, String> {
    let seconds = if bench.quick { 1 } else { 3 };
    let tokens = seconds * 1_000_000 / interval_us;
    let truth = bench.fresh("truth.jsonl");
    let log = bench.fresh("raw.jsonl");
    let lockstep = if order == "lockstep" { "--lockstep" } else { "" };
    let certificate = bench.fresh("certificate.pem");
    let mut server = words(&format!(
        "--mode paced {lockstep} --interval-us {interval_us} --gate {streams} --truth {}",
        truth.display()
    ));
    if client == Client::Secured {
        server.extend(["--tls".to_owned(), path_text(&certificate)]);
    }
    let output = bench.fresh("client.out");
    let (done, _) =
        repetition((bench.server_core, &server), bench.client_core, &output, |address| {
            let load = format!("--request-rate inf -n {streams} --osl {tokens}");
            match client {
                Client::Raw => {}
                Client::Goodput => return bench.goodput(address, &load),
                Client::Secured => {
                    let load = format!("{load} --cacert {}", certificate.display());
                    return bench.goodput_at(&format!("https://{address}"), &load);
                }
            }
            let mut command = vec![path_text(&own_program().unwrap_or_default())];
            command.extend(words(&format!(
                "raw --address {address} --streams {streams} --tokens {tokens} --kernel-stamps \
                 --log {}",
                log.display()
            )));
            command
        })?;
    let truths = read_truth(&truth)?;
    let own = client != Client::Raw;
    let seen = if own { read_run(&bench.work.join("run"))?.0 } else { read_raw_log(&log)? };
    let errors = join(&seen, &truths);
    let (gap, late_us) = strays(&truths, interval_us);
    let lag = if own { bench.summary()?["validity"]["client_lag_us"].take() } else { Value::Null };
    let strayed =
        (gap > STRAY).then(|| format!("the server's own gaps were {gap:.2} × the plan at p99"));
    Ok(Sample {
        void: done.disturbed().or(strayed),
        value: json!({
            "errors": errors.to_json(),
            "client_lag_us": lag,
            "truth_gap_p99": gap,
            "truth_late_p99_us": late_us,
            "others": done.others,
            "cpu_share": done.cost.cpu_ns as f64 / done.cost.wall_ns.max(1) as f64,
        }),
    })
}
