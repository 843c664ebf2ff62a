//! (c) How late requests are let go: Poisson arrivals, alone and while streams
//! in step are read on the same thread.

use serde_json::{Value, json};

use super::{Bench, Done, Sample, path_text, words};
use crate::processes::{own_program, repetition};
use crate::table::{Table, spread};

pub(super) fn run(bench: &Bench) -> Done {
    let head = ["beside", "p50 µs", "p99 µs", "p99.9 µs", "max µs", "sound"];
    let mut table = Table::new("(c) Lateness of arrivals, Poisson 500/s", &head);
    let mut figures = serde_json::Map::new();
    let busy = if bench.quick { 100 } else { 1_000 };
    for (name, streams, order) in [
        ("nothing", 0, "--lockstep"),
        ("streams spread", busy, ""),
        ("streams in lockstep", busy, "--lockstep"),
    ] {
        let name = if streams > 0 { format!("{streams} {name}") } else { name.to_owned() };
        let samples = bench.repeated(&name, || single(bench, streams, order))?;
        let of = |quantile: &str| spread(&samples.of(&format!("/lateness_us/{quantile}")));
        table.rows.push(vec![
            name.clone(),
            of("p50"),
            of("p99"),
            of("p999"),
            of("max"),
            samples.count(),
        ]);
        figures.insert(name, samples.to_json());
    }
    table.notes.push(
        "Time from the planned instant to just before the request's write, less the opening of a \
         connection, as `bench` judges it; through goodput's own send path (`instrument \
         arrivals`), one thread."
            .to_owned(),
    );
    Ok((Value::Object(figures), vec![table]))
}

fn single(bench: &Bench, streams: u32, order: &str) -> Result<Sample, String> {
    let seconds = if bench.quick { 1.0 } else { 4.0 };
    let server = words(&format!("--mode paced {order} --interval-us 20000"));
    let output = bench.fresh("client.out");
    let (done, printed) =
        repetition((bench.server_core, &server), bench.client_core, &output, |address| {
            let mut command = vec![path_text(&own_program().unwrap_or_default())];
            command.extend(words(&format!(
                "arrivals --address {address} --streams {streams} --rate 500 --seconds {seconds} \
                 --interval-us 20000"
            )));
            command
        })?;
    let mut value: Value =
        serde_json::from_str(&printed).map_err(|error| format!("{printed}: {error}"))?;
    if value["not_ok"] != json!(0) {
        return Err(format!("requests failed: {printed}"));
    }
    value["others"] = json!(done.others);
    Ok(Sample { value, void: done.disturbed() })
}
