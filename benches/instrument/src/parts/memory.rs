//! (d) Peak memory of a long run.

use serde_json::{Value, json};

use super::{Bench, Done, Sample, words};
use crate::processes::repetition;
use crate::table::{Table, spread};

pub(super) fn run(bench: &Bench) -> Done {
    let head = ["tokens", "peak MB", "bytes per token", "whole CPU s", "wall s", "sound"];
    let mut table = Table::new("(d) Memory of one run", &head);
    let mut figures = serde_json::Map::new();
    let sizes: &[(u64, u64)] =
        if bench.quick { &[(200, 1_000)] } else { &[(1_000, 1_000), (1_000, 10_000)] };
    for &(streams, tokens) in sizes {
        let all = streams * tokens;
        let samples =
            bench.repeated(&format!("{all} tokens"), || single(bench, streams, tokens))?;
        let megabytes: Vec<f64> = samples.of("/rss_kb").iter().map(|kb| kb / 1024.0).collect();
        let bytes: Vec<f64> =
            samples.of("/rss_kb").iter().map(|kb| kb * 1024.0 / all as f64).collect();
        table.rows.push(vec![
            all.to_string(),
            spread(&megabytes),
            spread(&bytes),
            spread(&samples.of("/cpu_s")),
            spread(&samples.of("/wall_s")),
            samples.count(),
        ]);
        figures.insert(all.to_string(), samples.to_json());
    }
    table.notes.push(
        "`goodput bench` with 1 000 streams all at once, 8 chunks a write, as fast as it reads; \
         time and memory include the report and the run directory. Memory does not depend on what \
         else the machine does, so no repetition is void here."
            .to_owned(),
    );
    Ok((Value::Object(figures), vec![table]))
}

fn single(bench: &Bench, streams: u64, tokens: u64) -> Result<Sample, String> {
    let server = words(&format!("--mode flood --gate {streams} --chunks-per-write 8"));
    let output = bench.fresh("client.out");
    let (done, _) =
        repetition((bench.server_core, &server), bench.client_core, &output, |address| {
            bench.goodput(address, &format!("--request-rate inf -n {streams} --osl {tokens}"))
        })?;
    let summary = bench.summary()?;
    if summary["outcomes"]["ok"].as_u64() != Some(streams) {
        return Err(format!("not every answer was whole: {}", summary["outcomes"]));
    }
    Ok(Sample {
        value: json!({
            "rss_kb": done.cost.rss_kb,
            "cpu_s": done.cost.cpu_ns as f64 / 1e9,
            "wall_s": done.cost.wall_ns as f64 / 1e9,
            "others": done.others,
        }),
        void: None,
    })
}
