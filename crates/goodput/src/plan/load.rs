//! The flags that say when requests are let go and when to stop.

use measure::{PerSecond, Span};
use workload::prompt::PromptSource;
use workload::{Growth, Load, Pace, Process, Replay, Shape, Stage, Stop, Think};

use crate::flags::{Reader, UsageError, parse_duration};

/// Flags that each say by themselves when requests arrive.
pub(super) const PACES: &[&str] = &["request-rate", "ramp-up-strategy", "stages", "load-shape"];

/// What a load lets go one by one.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// How many the data set has.
    pub(super) listed: Option<usize>,
    /// True for conversations, false for requests.
    pub(super) are_conversations: bool,
}

/// Requests, where neither a number nor a time was given.
const DEFAULT_COUNT: u32 = 100;

/// The rate over time as asked for. A ramp takes the time of the run, which is
/// known later.
enum Asked {
    Shape(Shape),
    Ramp { from: PerSecond, to: PerSecond, growth: Growth },
}

/// Resolves the load model and the stop.
pub(super) fn load(
    reader: &mut Reader<'_>,
    embedded: bool,
    seed: u64,
    prompts: &PromptSource,
    units: Units,
    replay: Option<Replay>,
    notes: &mut Vec<String>,
) -> (Load, Stop) {
    let settings = reader.settings;
    let mut asked = asked(reader);
    let mut users: Option<u32> = reader.value("max-concurrency", "a whole number from 1");
    let of_trace = replay.is_some();
    if asked.is_none() && users.is_none() && !of_trace {
        if embedded && !settings.has("request-rate") {
            asked = Some(Asked::Shape(Shape::Flat(PerSecond::new(4.0))));
        } else if !settings.has("request-rate") {
            users = Some(8);
        }
    }
    // A rate with a mistake in it is a rate, and one mistake is told once.
    let has_no_rate = |name: &&str| matches!(settings.text(name), None | Some("inf"));
    let by_the_clock = asked.is_some() || !PACES.iter().all(has_no_rate);
    let process = process(reader, by_the_clock, of_trace);
    let think = think(reader, by_the_clock || of_trace);
    let lasts = match &asked {
        Some(Asked::Shape(shape)) => shape.lasts(),
        _ => None,
    };
    let (count, duration) = limits(reader, embedded, of_trace, lasts, units);
    let count = each_row_once(reader, count, seed, prompts, of_trace, units, notes);
    // Sent again or not, a trace ends when nothing else ends the run.
    let rows = replay.as_ref().map(|replay| u32::try_from(replay.rows()).unwrap_or(u32::MAX));
    let count = count.or(rows.filter(|_| duration.is_none()));
    let pace = asked.map(|asked| Pace { process, shape: shaped(asked, count, duration) });
    let load = match replay {
        Some(replay) => Load::replay_of(replay, users),
        None => Load::new(pace, users, think),
    };
    let load = load.unwrap_or_else(|error| {
        reader.errors.push(UsageError::new("load", error));
        Load::Burst
    });
    let stop = Stop::new(count, duration).unwrap_or(Stop::Count(DEFAULT_COUNT));
    // Of stages that are wrong the length is wrong too; once is enough.
    if let (None, Err(error)) = (lasts, stop.check()) {
        reader.errors.push(UsageError::new("load", error));
    } else if let Some(0) = count {
        reader.wrong("num-prompts", "must be at least 1");
    }
    (load, stop)
}

/// How many requests and how long. `lasts` is the time of a shape that ends by
/// itself, which `--duration` can only shorten.
fn limits(
    reader: &mut Reader<'_>,
    embedded: bool,
    of_trace: bool,
    lasts: Option<Span>,
    units: Units,
) -> (Option<u32>, Option<Span>) {
    let mut count: Option<u32> = reader.value("num-prompts", "a whole number from 1");
    if let Some(conversations) = reader.value("num-conversations", "a whole number from 1") {
        if !units.are_conversations {
            reader.wrong(
                "num-conversations",
                "the requests are no turns of conversations; give --turns, --multi-turn or a data \
                 set with sessions, or say -n",
            );
        } else if count.is_some() {
            reader.wrong("num-conversations", "says the same as -n does here; give one of the two");
        }
        count = Some(conversations);
    }
    let mut duration = reader.duration("duration");
    if let Some(lasts) = lasts {
        duration = Some(duration.map_or(lasts, |duration| duration.min(lasts)));
    }
    // A trace ends by itself.
    if count.is_none() && duration.is_none() && !of_trace {
        if embedded {
            duration = Some(Span::from_ms(10_000));
        } else {
            count = Some(DEFAULT_COUNT);
        }
    }
    (count, duration)
}

/// The number of requests: no more than the data set has rows, unless repeats
/// are asked for. A repeated prompt finds itself in the server's prefix cache,
/// and nobody should have that without knowing.
fn each_row_once(
    reader: &mut Reader<'_>,
    count: Option<u32>,
    seed: u64,
    prompts: &PromptSource,
    of_trace: bool,
    units: Units,
    notes: &mut Vec<String>,
) -> Option<u32> {
    let settings = reader.settings;
    if settings.is_on("oversample") {
        if settings.is_on("no-oversample") {
            reader.wrong("oversample", "contradicts --no-oversample; leave out one of the two");
        }
        return count;
    }
    if let PromptSource::Mix(mix) = prompts {
        let Some((ends, part)) = mix.ends(seed, count) else { return count };
        notes.push(format!(
            "the run ends after {ends} requests, when each row of the part {part} was sent; \
             --oversample sends rows again"
        ));
        return Some(ends);
    }
    // One text for all requests is repeated by its nature.
    let rows = units.listed.filter(|_| !settings.has("prompt"));
    let Some(rows) = rows.and_then(|rows| u32::try_from(rows).ok()) else { return count };
    match count {
        Some(count) if count <= rows => return Some(count),
        Some(count) if units.are_conversations => notes.push(format!(
            "the data set has {rows} usable conversations, and {count} were asked for: each is \
             held once; --oversample holds them again"
        )),
        None if units.are_conversations => notes.push(format!(
            "the data set has {rows} usable conversations, and the run ends when each was held; \
             --oversample holds them again"
        )),
        Some(count) => notes.push(format!(
            "the data set has {rows} usable rows for {count} requests: {rows} are sent, each row \
             once; --oversample sends rows again"
        )),
        // That a trace ends with its last row needs no words.
        None if of_trace => {}
        None => notes.push(format!(
            "the data set has {rows} usable rows, and the run ends when each was sent; \
             --oversample sends rows again"
        )),
    }
    Some(rows)
}

/// What the flags ask for; `None` where nothing arrives by the clock.
fn asked(reader: &mut Reader<'_>) -> Option<Asked> {
    let settings = reader.settings;
    // Scripts for vLLM write its default out, which says that there is no rate.
    let is_given = |name: &str| {
        let text = settings.text(name);
        text.is_some_and(|text| name != "request-rate" || text != "inf")
    };
    let given: Vec<&str> = PACES.iter().copied().filter(|name| is_given(name)).collect();
    if let [first, second, ..] = given[..] {
        reader.wrong(second, format!("says when requests arrive, and so does --{first}; give one"));
    }
    let ramp_rate =
        ["ramp-up-start-rps", "ramp-up-end-rps"].into_iter().find(|name| settings.has(name));
    if let (Some(name), false) = (ramp_rate, settings.has("ramp-up-strategy")) {
        reader.wrong(name, "needs --ramp-up-strategy linear or exponential");
    }
    match *given.first()? {
        "request-rate" => {
            let rate = reader.value("request-rate", "a number above 0, or inf")?;
            // Other spellings of infinity.
            (rate != f64::INFINITY).then(|| Asked::Shape(Shape::Flat(PerSecond::new(rate))))
        }
        "ramp-up-strategy" => ramp(reader),
        "stages" => stages(reader).map(Asked::Shape),
        _ => load_shape(reader).map(Asked::Shape),
    }
}

fn ramp(reader: &mut Reader<'_>) -> Option<Asked> {
    let growths = [Growth::Linear, Growth::Exponential].map(|growth| (growth.name(), growth));
    let growth = reader.choice("ramp-up-strategy", &growths);
    let mut rate = |name| {
        if !reader.settings.has(name) {
            reader.wrong(name, "is missing: a ramp goes from one rate to another");
        }
        reader.number(name).map(PerSecond::new)
    };
    let (from, to) = (rate("ramp-up-start-rps"), rate("ramp-up-end-rps"));
    Some(Asked::Ramp { from: from?, to: to?, growth: growth? })
}

/// The shape, with the length of a ramp: that of the run, or as long as so many
/// requests take.
fn shaped(asked: Asked, count: Option<u32>, duration: Option<Span>) -> Shape {
    match asked {
        Asked::Shape(shape) => shape,
        Asked::Ramp { from, to, growth } => {
            let of_count = || {
                let mean = growth.mean(from, to).get();
                Span::from_s(f64::from(count.unwrap_or(DEFAULT_COUNT)) / mean)
            };
            Shape::Ramp { from, to, over: duration.unwrap_or_else(of_count), growth }
        }
    }
}

/// Reads `RATE:DURATION,RATE:DURATION,…`.
fn stages(reader: &mut Reader<'_>) -> Option<Shape> {
    let text = reader.settings.text("stages")?;
    let mut stages = Vec::new();
    for (place, stage) in (1..).zip(text.split(',')) {
        let read = stage.split_once(':').and_then(|(rate, lasts)| {
            let rate = rate.trim().parse().ok()?;
            Some(Stage { rate: PerSecond::new(rate), lasts: parse_duration(lasts)? })
        });
        let Some(stage) = read else {
            let rule = format!(
                "stage {place} is {:?}; write RATE:DURATION,RATE:DURATION, such as 5:30s,10:1m",
                stage.trim()
            );
            reader.wrong("stages", rule);
            return None;
        };
        stages.push(stage);
    }
    Some(Shape::Stages(stages))
}

/// Reads `sine:mean=…,amplitude=…,period=…` and
/// `bursts:on=…,off=…,on_for=…,off_for=…`.
fn load_shape(reader: &mut Reader<'_>) -> Option<Shape> {
    const FLAG: &str = "load-shape";
    let text = reader.settings.text(FLAG)?;
    let (name, values) = text.split_once(':').unwrap_or((text, ""));
    match name.trim() {
        "sine" => {
            let values = keyed(reader, FLAG, values, ["mean", "amplitude", "period"])?;
            let [mean, amplitude] = [values[0], values[1]].map(|text| rate(reader, FLAG, text));
            let period = time(reader, FLAG, values[2]);
            Some(Shape::Sine { mean: mean?, amplitude: amplitude?, period: period? })
        }
        "bursts" => {
            let values = keyed(reader, FLAG, values, ["on", "off", "on_for", "off_for"])?;
            let [on, off] = [values[0], values[1]].map(|text| rate(reader, FLAG, text));
            let [on_for, off_for] = [values[2], values[3]].map(|text| time(reader, FLAG, text));
            Some(Shape::Bursts {
                on: Stage { rate: on?, lasts: on_for? },
                off: Stage { rate: off?, lasts: off_for? },
            })
        }
        _ => {
            let rule = format!(
                "{text:?} is no shape; write sine:mean=10,amplitude=5,period=60s or \
                 bursts:on=20,off=0,on_for=5s,off_for=10s"
            );
            reader.wrong(FLAG, rule);
            None
        }
    }
}

/// The pause of a user before a request, or before a conversation.
fn think(reader: &mut Reader<'_>, by_the_clock: bool) -> Think {
    const FLAG: &str = "think-time";
    if by_the_clock && reader.settings.has(FLAG) {
        reader.wrong(
            FLAG,
            "is the pause of a user who waits for answers, and with a rate requests do not wait; \
             leave out the rate and give -c, or --turn-think-time between turns",
        );
    }
    think_of(reader, FLAG)
}

/// Reads a fixed think time, `exponential:mean=…` or `uniform:from=…,to=…`.
pub(super) fn think_of(reader: &mut Reader<'_>, flag: &str) -> Think {
    let Some(text) = reader.settings.text(flag) else { return Think::NONE };
    let read = match text.split_once(':') {
        None => reader.duration(flag).map(Think::Fixed),
        Some(("exponential", values)) => keyed(reader, flag, values, ["mean"])
            .and_then(|[mean]| Some(Think::Exponential { mean: time(reader, flag, mean)? })),
        Some(("uniform", values)) => {
            keyed(reader, flag, values, ["from", "to"]).and_then(|values| {
                let [from, to] = values.map(|text| time(reader, flag, text));
                Some(Think::Uniform { from: from?, to: to? })
            })
        }
        Some(_) => {
            let rule = format!(
                "{text:?} is no think time; write 2s, exponential:mean=2s or uniform:from=1s,to=3s"
            );
            reader.wrong(flag, rule);
            None
        }
    };
    read.unwrap_or(Think::NONE)
}

/// The values of these keys in this order, from `KEY=VALUE,KEY=VALUE`, each
/// exactly once.
fn keyed<'t, const N: usize>(
    reader: &mut Reader<'_>,
    flag: &str,
    text: &'t str,
    keys: [&str; N],
) -> Option<[&'t str; N]> {
    let mut values = [None; N];
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(place) = keys.iter().position(|known| *known == key.trim()) else {
            reader.wrong(flag, format!("{:?} is not one of {}", key.trim(), keys.join(", ")));
            return None;
        };
        if values[place].replace(value.trim()).is_some() {
            reader.wrong(flag, format!("{} stands there twice; give it once", keys[place]));
            return None;
        }
    }
    let missing: Vec<&str> = keys
        .iter()
        .zip(&values)
        .filter(|(_, value)| value.is_none())
        .map(|(key, _)| *key)
        .collect();
    if !missing.is_empty() {
        reader.wrong(flag, format!("lacks {}; write {}=…", missing.join(", "), missing[0]));
        return None;
    }
    Some(values.map(Option::unwrap_or_default))
}

fn rate(reader: &mut Reader<'_>, flag: &str, text: &str) -> Option<PerSecond> {
    let read = text.parse().ok().map(PerSecond::new);
    if read.is_none() {
        reader
            .wrong(flag, format!("{text:?} is not a rate; write requests per second, such as 10"));
    }
    read
}

fn time(reader: &mut Reader<'_>, flag: &str, text: &str) -> Option<Span> {
    let read = parse_duration(text);
    if read.is_none() {
        reader.wrong(flag, format!("{text:?} is not a duration; write 500ms, 30s, 5m or 1h"));
    }
    read
}

/// The process that arrivals follow, from its name and vLLM's burstiness.
fn process(reader: &mut Reader<'_>, by_the_clock: bool, of_trace: bool) -> Process {
    let burstiness: Option<f64> = reader.value("burstiness", "a number above 0, or inf");
    let by_burstiness = Process::of_burstiness(burstiness.unwrap_or(1.0));
    if !reader.settings.has("arrivals") {
        return by_burstiness;
    }
    if !by_the_clock {
        let rule = if of_trace {
            "says how requests come at a rate, and these come when the trace says; leave it out, \
             or give --request-rate too"
        } else {
            "says how requests come by the clock; give --request-rate, --stages, --load-shape or \
             --ramp-up-strategy too"
        };
        reader.wrong("arrivals", rule);
    }
    let names: [(&str, Option<f64>); 4] = [
        ("constant", Some(f64::INFINITY)),
        ("poisson", Some(1.0)),
        ("gamma", burstiness),
        ("uniform", None),
    ];
    let name = reader.settings.text("arrivals").unwrap_or_default();
    let Some(of_name) = reader.choice("arrivals", &names) else { return by_burstiness };
    if name == "gamma" && burstiness.is_none() {
        reader.wrong("arrivals", "gamma needs --burstiness: 0.5 is bursty, 4 is rather even");
    } else if burstiness.is_some() && burstiness != of_name {
        let rule =
            format!("{name} has a burstiness of its own; leave out --burstiness, or say gamma");
        reader.wrong("arrivals", rule);
    }
    if name == "uniform" {
        Process::Uniform
    } else {
        Process::of_burstiness(of_name.unwrap_or(1.0))
    }
}
