//! What the trials come to: figures, and fits that hold or say why not.

use measure::quantile;
use measure::said;
use measure::said::Said;

use super::{Experiment, LEAST_INPUT, LONG, Press, Probe, RoundTrip, SHORT, Sample, Taken};
use crate::fit::{self, Curve, Gate, Group, LADDER, Point, Refused, Scaling};

/// Connections and cheap requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transport {
    /// Connections that were opened.
    pub connections: usize,
    /// The quickest, ms: one round trip.
    pub connect_ms: f64,
    /// Its TLS handshake, median ms, where there is one.
    pub secure_ms: Option<f64>,
    /// Cheap requests without load: median and P95, ms.
    pub answer_ms: Option<[f64; 2]>,
    /// The same beside the highest level of the ladder.
    pub loaded_ms: Option<[f64; 2]>,
    /// Users of that level.
    pub loaded_users: Option<u32>,
}

/// One request at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// Requests.
    pub n: usize,
    /// Prompt tokens, mean.
    pub input: f64,
    /// Answer tokens, mean.
    pub output: f64,
    /// Median TTFT, ms.
    pub ttft_ms: f64,
    /// Its P95 over its median.
    pub ttft_spread: f64,
    /// Median TPOT, ms, where answers have several tokens.
    pub tpot_ms: Option<f64>,
    /// Median E2EL, ms.
    pub e2e_ms: f64,
}

/// Prompts of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Tokens.
    pub input: f64,
    /// Requests.
    pub n: usize,
    /// Median TTFT, ms.
    pub ttft_ms: f64,
}

/// TTFT = a + bS + cS².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefill {
    /// The fit.
    pub curve: Curve,
    /// Intervals of 95 % of a, b and c; none where half of the draws were
    /// refused.
    pub intervals: Option<[[f64; 2]; 3]>,
    /// The shortest prompt that it holds for: below it, reading the weights
    /// takes longer than computing.
    pub from: f64,
}

impl Prefill {
    /// Prompt tokens a second, where attention does not matter yet.
    pub fn tokens_per_s(&self) -> f64 {
        1e3 / self.curve.b
    }

    /// Share of the quadratic part in what grows, at a length.
    pub fn quadratic(&self, input: f64) -> f64 {
        let square = self.curve.c * input * input;
        let grows = self.curve.b * input + square;
        if grows > 0.0 { square / grows } else { 0.0 }
    }
}

/// Prompts of several lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    /// One row a length.
    pub rows: Vec<Row>,
    /// The fit over them.
    pub fit: Result<Prefill, Refused>,
}

/// Answers of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputRow {
    /// Tokens.
    pub output: f64,
    /// Requests.
    pub n: usize,
    /// Median E2EL, ms.
    pub e2e_ms: f64,
    /// Median TTFT, ms.
    pub ttft_ms: f64,
}

/// E2EL = a + t(O − 1), or TPOT = t₀ + kB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The fit; its `a` is the intercept and its `b` the slope.
    pub curve: Curve,
    /// Intervals of 95 % of both, as of [`Prefill`].
    pub intervals: Option<[[f64; 2]; 2]>,
}

/// Answers of several lengths.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// One row a length.
    pub rows: Vec<OutputRow>,
    /// The fit over them.
    pub fit: Result<Line, Refused>,
}

/// A number of users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// How many.
    pub users: u32,
    /// Requests that are counted: neither those that all sent at once at the
    /// start nor those that were alone at the end.
    pub n: usize,
    /// Prompt tokens, mean.
    pub input: f64,
    /// Answer tokens, mean.
    pub output: f64,
    /// Requests a second, users ÷ mean E2EL.
    pub req_s: f64,
    /// Mean TTFT, ms.
    pub ttft_ms: f64,
    /// Mean TPOT, ms, where answers have several tokens.
    pub tpot_ms: Option<f64>,
    /// Mean E2EL, ms.
    pub e2e_ms: f64,
    /// Answers that come at a time, mean.
    pub answered: f64,
    /// Requests that are served at a time: those in flight less those that wait
    /// for more than their own prompt, by Little's law.
    pub served: f64,
    /// Share of the time that prompts add to steps; none where their time is not
    /// known.
    pub prefill_share: Option<f64>,
    /// True where requests wait for more than their own prompt.
    pub waits: bool,
}

/// Throughput over users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The law.
    pub law: Scaling,
    /// Intervals of 95 % of λ, σ and κ, as of [`Prefill`].
    pub intervals: Option<[[f64; 2]; 3]>,
}

/// Levels of one length of prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// Prompt tokens, as planned.
    pub input: u32,
    /// By users.
    pub levels: Vec<Level>,
    /// TPOT over the batch, without the time of prompts, below the first level
    /// that waits.
    pub batch: Result<Line, Refused>,
    /// Output tokens a second over users.
    pub scaling: Result<Scale, Refused>,
}

impl Ladder {
    /// The highest throughput that was seen, in requests of the mean length of
    /// answers a second.
    pub fn most_req_s(&self) -> Option<f64> {
        let output = mean(self.levels.iter().map(|level| level.output))?;
        let most = self.levels.iter().map(Level::output_tok_s).reduce(f64::max)?;
        (output > 0.0).then(|| most / output)
    }

    /// The highest level.
    pub fn top(&self) -> Option<&Level> {
        self.levels.last().filter(|level| level.users > 1)
    }

    /// Requests that are served at a time however many wait: N* of the highest
    /// level where prompts do not take most of the time.
    pub fn limit(&self) -> Option<f64> {
        limit(&self.levels)
    }
}

/// Share of the time from which on prompts are what takes it.
const OF_PROMPTS: f64 = 0.6;

impl Level {
    /// Output tokens a second: as many answers of other lengths make other
    /// requests a second.
    pub fn output_tok_s(&self) -> f64 {
        self.req_s * self.output
    }

    /// True where prompts take most of the time.
    pub fn is_of_prompts(&self) -> bool {
        self.prefill_share > Some(OF_PROMPTS)
    }
}

/// The same prompts twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix {
    /// Prompt tokens.
    pub input: f64,
    /// TTFT of new prompts, median ms.
    pub cold_ms: f64,
    /// TTFT of the same again.
    pub warm_ms: f64,
    /// TTFT of a prompt of a few tokens: what is left where all is found.
    pub least_ms: Option<f64>,
    /// Share that was not computed again, or why that is not known.
    pub share: Result<f64, Said>,
    /// The interval of 95 % of it.
    pub interval: Option<[f64; 2]>,
    /// The share that the server says it found, where it does.
    pub told: Option<f64>,
}

/// Prompts of one token's answer among a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canaries {
    /// Users of the load.
    pub users: u32,
    /// Short and long ones.
    pub n: [usize; 2],
    /// Their median TTFT, ms.
    pub ttft_ms: [f64; 2],
    /// The same without load.
    pub alone_ms: [f64; 2],
    /// The interval of 95 % of the difference under load: what they wait for
    /// differs more than their prefill does where many wait.
    pub interval_ms: Option<[f64; 2]>,
}

impl Canaries {
    /// What a short prompt waits for, ms.
    pub fn waiting_ms(&self) -> f64 {
        (self.ttft_ms[0] - self.alone_ms[0]).max(0.0)
    }

    /// Prefill of the load's length under load, ms.
    pub fn prefill_ms(&self) -> f64 {
        (self.ttft_ms[1] - self.ttft_ms[0]).max(0.0)
    }

    /// True where the difference under load is known to within the half of it.
    pub fn is_telling(&self) -> bool {
        let [short, long] = self.ttft_ms;
        self.interval_ms.is_some_and(|[low, high]| high - low < (long - short).abs())
    }

    /// The same without load.
    pub fn prefill_alone_ms(&self) -> f64 {
        (self.alone_ms[1] - self.alone_ms[0]).max(0.0)
    }
}

/// One rate of an open loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second.
    pub req_s: f64,
    /// Over the highest throughput of the ladder, ρ.
    pub load: f64,
    /// Requests.
    pub n: usize,
    /// Mean TTFT since the intent, ms.
    pub ttft_ms: f64,
    /// The same less that of a request alone.
    pub excess_ms: f64,
}

/// Rates of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Queueing {
    /// By rate, the highest first.
    pub rates: Vec<Rate>,
    /// c of excess = c·ρ ÷ (1 − ρ), ms, by the two lower rates, and the excess
    /// that it predicts for the highest one; none with fewer rates.
    pub predicted: Option<[f64; 2]>,
}

impl Queueing {
    /// Whether the highest rate is within 30 % of what the others predict.
    pub fn is_consistent(&self) -> Option<bool> {
        let [_, predicted] = self.predicted?;
        let seen = self.rates.first()?.excess_ms;
        Some((seen - predicted).abs() <= 0.3 * predicted.max(seen))
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Connections.
    pub transport: Option<Transport>,
    /// One at a time.
    pub baseline: Option<Baseline>,
    /// Lengths of prompts.
    pub lengths: Option<Lengths>,
    /// Users, by lengths of prompts: the workload's first.
    pub ladders: Vec<Ladder>,
    /// The same prompts twice.
    pub prefix: Option<Prefix>,
    /// Lengths of answers.
    pub outputs: Option<Outputs>,
    /// Short prompts beside a load.
    pub canaries: Option<Canaries>,
    /// An open loop.
    pub rates: Option<Queueing>,
}

impl Figures {
    /// What has been found so far.
    pub fn of(probe: &Probe) -> Self {
        let lengths = lengths(probe);
        let ladders: Vec<Ladder> = [Experiment::Ladder, Experiment::Contexts]
            .into_iter()
            .filter_map(|experiment| ladder(probe, experiment))
            .collect();
        let most = ladders.first().and_then(Ladder::most_req_s);
        Self {
            transport: transport(probe),
            baseline: baseline(probe),
            prefix: prefix(probe),
            outputs: outputs(probe),
            canaries: canaries(probe),
            rates: rates(probe, most),
            lengths,
            ladders,
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Median and P95.
fn middle_and_high(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let values = sorted(values);
    Some([quantile::linear(&values, 0.5)?, quantile::linear(&values, 0.95)?])
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    middle_and_high(values).map(|[middle, _]| middle)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0u32);
    for value in values {
        (sum, n) = (sum + value, n + 1);
    }
    (n > 0).then(|| sum / f64::from(n))
}

fn of(probe: &Probe, experiment: Experiment) -> impl Iterator<Item = &Taken> {
    probe.taken.iter().filter(move |taken| taken.trial.experiment == experiment)
}

fn transport(probe: &Probe) -> Option<Transport> {
    let answers =
        |trips: &[RoundTrip]| middle_and_high(trips.iter().filter_map(|trip| trip.answer_ms));
    let connect_ms = probe.idle.iter().map(|trip| trip.connect_ms).reduce(f64::min)?;
    let loaded = of(probe, Experiment::Ladder).filter(|taken| !taken.observed.beside.is_empty());
    let loaded = loaded.max_by_key(|taken| taken.trial.press.users());
    Some(Transport {
        connections: probe.idle.len(),
        connect_ms,
        secure_ms: middle(probe.idle.iter().filter_map(|trip| trip.secure_ms)),
        answer_ms: answers(&probe.idle),
        loaded_ms: loaded.and_then(|taken| answers(&taken.observed.beside)),
        loaded_users: loaded.map(|taken| taken.trial.press.users()),
    })
}

/// One request at a time, from all trials of the baseline.
pub(super) fn baseline(probe: &Probe) -> Option<Baseline> {
    let samples: Vec<&Sample> =
        of(probe, Experiment::Baseline).flat_map(|taken| &taken.observed.samples).collect();
    let [ttft_ms, high] = middle_and_high(samples.iter().map(|sample| sample.ttft_ms))?;
    Some(Baseline {
        n: samples.len(),
        input: mean(samples.iter().map(|sample| sample.input))?,
        output: mean(samples.iter().map(|sample| sample.output))?,
        ttft_ms,
        ttft_spread: if ttft_ms > 0.0 { high / ttft_ms } else { 1.0 },
        tpot_ms: middle(samples.iter().filter_map(|sample| sample.tpot_ms)),
        e2e_ms: middle(samples.iter().map(|sample| sample.e2e_ms))?,
    })
}

fn row(taken: &Taken) -> Option<Row> {
    let samples = &taken.observed.samples;
    Some(Row {
        input: mean(samples.iter().map(|sample| sample.input))?,
        n: samples.len(),
        ttft_ms: middle(samples.iter().map(|sample| sample.ttft_ms))?,
    })
}

/// TTFT of a prompt without load: by what was measured on both sides of its
/// length, or in proportion above the longest.
pub(super) fn solo_ttft_ms(probe: &Probe, input: f64) -> Option<f64> {
    let alone = probe.taken.iter().filter(|taken| {
        let again = taken.trial.experiment == Experiment::Prefix;
        taken.trial.press == Press::Users(1) && !again
    });
    let mut rows: Vec<Row> = alone.filter_map(row).collect();
    rows.sort_by(|a, b| a.input.total_cmp(&b.input));
    let above = rows.iter().position(|row| row.input >= input);
    match above {
        None => rows.last().map(|last| last.ttft_ms * (input / last.input).max(1.0)),
        Some(0) => rows.first().map(|first| first.ttft_ms),
        Some(place) => {
            let (low, high) = (rows[place - 1], rows[place]);
            let part = (input - low.input) / (high.input - low.input).max(1e-9);
            Some(low.ttft_ms + part * (high.ttft_ms - low.ttft_ms))
        }
    }
}

/// The shortest prompt that was sent by itself, tokens.
pub(super) fn shortest(probe: &Probe) -> Option<f64> {
    let alone = probe.taken.iter().filter(|taken| taken.trial.press == Press::Users(1));
    alone.filter_map(row).map(|row| row.input).reduce(f64::min)
}

fn ttft_groups(probe: &Probe) -> Vec<Group> {
    of(probe, Experiment::Lengths)
        .filter_map(|taken| {
            let samples = &taken.observed.samples;
            let x = mean(samples.iter().map(|sample| sample.input))?;
            Some(Group { x, samples: samples.iter().map(|sample| sample.ttft_ms).collect() })
        })
        .collect()
}

/// A prompt whose TTFT is within this share of the shortest one's is as quick as
/// can be: reading the weights takes longer than computing it.
const AS_QUICK: f64 = 0.15;

fn lengths(probe: &Probe) -> Option<Lengths> {
    let rows: Vec<Row> = of(probe, Experiment::Lengths).filter_map(row).collect();
    let groups = ttft_groups(probe);
    let least = rows.first()?.ttft_ms;
    let quick = |group: &&Group| group.point().is_some_and(|at| at.y <= (1.0 + AS_QUICK) * least);
    // Two of them make a floor, on which no curve stands.
    let floor = Some(groups.iter().take_while(quick).count()).filter(|floor| *floor > 1);
    let rest = &groups[floor.unwrap_or(0)..];
    let enough = rest.len() >= LADDER.values;
    let fit = prefill(if enough { rest } else { &groups });
    Some(Lengths { rows, fit })
}

fn prefill(groups: &[Group]) -> Result<Prefill, Refused> {
    let curve = fit::curve(&fit::points(groups), true, LADDER)?;
    let intervals = fit::intervals(groups, |points| {
        fit::curve(points, true, LADDER).ok().map(|curve| [curve.a, curve.b, curve.c])
    });
    let from = groups.first().map_or(0.0, |group| group.x);
    Ok(Prefill { curve, intervals, from })
}

fn outputs(probe: &Probe) -> Option<Outputs> {
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    for taken in of(probe, Experiment::Outputs) {
        let samples = &taken.observed.samples;
        let values = |of: fn(&Sample) -> f64| samples.iter().map(of);
        let Some(output) = mean(values(|sample| sample.output)) else { continue };
        rows.extend(
            middle(values(|sample| sample.e2e_ms))
                .zip(middle(values(|sample| sample.ttft_ms)))
                .map(|(e2e_ms, ttft_ms)| OutputRow { output, n: samples.len(), e2e_ms, ttft_ms }),
        );
        groups.push(Group { x: output - 1.0, samples: values(|sample| sample.e2e_ms).collect() });
    }
    let fit = line(&groups, LADDER);
    (!rows.is_empty()).then_some(Outputs { rows, fit })
}

fn line(groups: &[Group], gate: Gate) -> Result<Line, Refused> {
    let fitted = |points: &[Point]| fit::curve(points, false, gate);
    let curve = fitted(&fit::points(groups))?;
    let intervals =
        fit::intervals(groups, |points| fitted(points).ok().map(|curve| [curve.a, curve.b]));
    Ok(Line { curve, intervals })
}

/// For TPOT over the batch: three levels make a line.
const BATCH: Gate = Gate { values: 3, r2: 0.9, residual: 0.1 };

fn ladder(probe: &Probe, experiment: Experiment) -> Option<Ladder> {
    let mut taken: Vec<&Taken> = of(probe, experiment).collect();
    let first = taken.first()?;
    let input = first.trial.input;
    // The baseline is the workload with one user.
    let alone = of(probe, Experiment::Baseline).filter(|_| experiment == Experiment::Ladder);
    let alone = alone.max_by_key(|taken| taken.trial.requests);
    taken.extend(alone);
    taken.sort_by_key(|taken| taken.trial.press.users());
    let alone = taken.first().filter(|taken| taken.trial.press == Press::Users(1));
    let alone_ms = alone.and_then(|taken| mean_ttft(&taken.observed.samples));
    let alone_ms = alone_ms.or_else(|| solo_ttft_ms(probe, f64::from(input)));
    // What a prompt adds to a step that is taken anyway.
    let added_ms = least(probe).zip(solo_ttft_ms(probe, f64::from(input)));
    let added_ms = added_ms.map(|(least_ms, alone_ms)| (alone_ms - least_ms).max(0.0));
    let made: Vec<(&Taken, Level)> = taken
        .into_iter()
        .filter_map(|taken| Some((taken, level(taken, alone_ms, added_ms)?)))
        .collect();
    let batch: Vec<Group> = made
        .iter()
        .take_while(|(_, level)| !level.waits)
        .map(|(taken, level)| {
            let alone = 1.0 - level.prefill_share.unwrap_or(0.0).min(0.9);
            let tpot = counted(taken).iter().filter_map(|sample| sample.tpot_ms);
            Group { x: level.answered, samples: tpot.map(|ms| ms * alone).collect() }
        })
        .filter(|group| !group.samples.is_empty())
        .collect();
    let throughput: Vec<Group> = made
        .iter()
        .map(|(taken, level)| {
            let users = f64::from(level.users);
            let tok_s = |sample: &Sample| 1e3 * users * sample.output / sample.e2e_ms.max(1e-6);
            Group { x: users, samples: counted(taken).iter().map(tok_s).collect() }
        })
        .collect();
    let levels: Vec<Level> = made.into_iter().map(|(_, level)| level).collect();
    let scaling = match limit(&levels) {
        Some(at) => Err(Refused::Capped { at }),
        None => scaling(&throughput),
    };
    Some(Ladder { input, batch: over_batch(&batch), scaling, levels })
}

/// Requests that are served at a time however many wait.
fn limit(levels: &[Level]) -> Option<f64> {
    let top = levels.last().filter(|top| top.waits && !top.is_of_prompts())?;
    Some(top.served).filter(|served| *served < 0.9 * f64::from(top.users))
}

fn scaling(groups: &[Group]) -> Result<Scale, Refused> {
    let law = fit::scaling(&fit::points(groups))?;
    let intervals = fit::intervals(groups, |points| {
        fit::scaling(points).ok().map(|law| [law.single, law.contention, law.coherency])
    });
    Ok(Scale { law, intervals })
}

fn over_batch(groups: &[Group]) -> Result<Line, Refused> {
    let moves = moves(groups);
    if moves < MOVES { Err(Refused::Flat { moves }) } else { line(groups, BATCH) }
}

/// Growth of TPOT below which it is as good as constant.
const MOVES: f64 = 0.05;

/// The highest of the medians over the lowest, less 1; endless where there are
/// no two.
fn moves(groups: &[Group]) -> f64 {
    let values: Vec<f64> = fit::points(groups).iter().map(|point| point.y).collect();
    let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
    ends.filter(|_| values.len() > 1).map_or(f64::INFINITY, |(low, high)| high / low - 1.0)
}

/// TTFT of a prompt of a few tokens, without load; none where it was not
/// measured.
fn least(probe: &Probe) -> Option<f64> {
    let shortest = of(probe, Experiment::Lengths).min_by_key(|taken| taken.trial.input);
    let shortest = shortest.filter(|taken| taken.trial.input <= LEAST_INPUT);
    shortest.and_then(row).map(|row| row.ttft_ms)
}

fn mean_ttft(samples: &[Sample]) -> Option<f64> {
    mean(samples.iter().map(|sample| sample.ttft_ms))
}

/// How many times its own TTFT a request takes, and how many more wait than
/// would, from which on somebody waits.
const TIMES: f64 = 2.5;
const MORE: f64 = 0.75;

/// The requests of a level that count: neither those that all sent at once at the
/// start nor those that were alone at the end, where others are left.
fn counted(taken: &Taken) -> &[Sample] {
    let samples = &taken.observed.samples;
    let users = taken.trial.press.users();
    let ramp = if users > 1 { users as usize } else { 0 };
    let counted = samples.get(ramp..samples.len().saturating_sub(ramp));
    counted.filter(|counted| !counted.is_empty()).unwrap_or(samples)
}

fn level(taken: &Taken, solo_ms: Option<f64>, added_ms: Option<f64>) -> Option<Level> {
    let Press::Users(users) = taken.trial.press else { return None };
    let counted = counted(taken);
    let of = |value: fn(&Sample) -> f64| mean(counted.iter().map(value));
    let (ttft_ms, e2e_ms) = (of(|sample| sample.ttft_ms)?, of(|sample| sample.e2e_ms)?);
    let (input, many) = (of(|sample| sample.input)?, f64::from(users));
    let req_s = 1e3 * many / e2e_ms.max(1e-6);
    let solo_ms = solo_ms.unwrap_or(ttft_ms);
    let waiting = many * (ttft_ms - solo_ms) / e2e_ms.max(1e-6);
    Some(Level {
        users,
        n: counted.len(),
        input,
        output: of(|sample| sample.output)?,
        req_s,
        ttft_ms,
        tpot_ms: mean(counted.iter().filter_map(|sample| sample.tpot_ms)),
        e2e_ms,
        answered: many * (1.0 - ttft_ms / e2e_ms.max(1e-6)).max(0.0),
        served: many - waiting.max(0.0),
        prefill_share: added_ms.map(|ms| (req_s * ms / 1e3).min(1.0)),
        waits: users > 1 && ttft_ms > TIMES * solo_ms && waiting > MORE,
    })
}

/// How many times longer than the least a new prompt must take, so that a share
/// of it can be told.
const TELLING: f64 = 1.5;

fn prefix(probe: &Probe) -> Option<Prefix> {
    let mut trials = of(probe, Experiment::Prefix);
    let (cold, warm) = (trials.next()?, trials.next()?);
    let (cold_row, warm_row) = (row(cold)?, row(warm)?);
    let least_ms = least(probe);
    let share = share(cold_row.ttft_ms, warm_row.ttft_ms, least_ms);
    let samples = |taken: &Taken, x: f64| Group {
        x,
        samples: taken.observed.samples.iter().map(|sample| sample.ttft_ms).collect(),
    };
    let groups = [samples(cold, 0.0), samples(warm, 1.0)];
    let drawn = fit::intervals(&groups, |points| {
        let [cold, warm] = points else { return None };
        share_of(cold.y, warm.y, least_ms).map(|share| [share])
    });
    let told = warm.observed.samples.iter().map(|sample| Some(sample.cached? / sample.input));
    let told: Option<Vec<f64>> = told.collect();
    Some(Prefix {
        input: cold_row.input,
        cold_ms: cold_row.ttft_ms,
        warm_ms: warm_row.ttft_ms,
        least_ms,
        interval: drawn.map(|[share]| share).filter(|_| share.is_ok()),
        share,
        told: told.and_then(|told| mean(told.into_iter())),
    })
}

fn share_of(cold_ms: f64, warm_ms: f64, least_ms: Option<f64>) -> Option<f64> {
    let least_ms = least_ms?;
    let telling = cold_ms > TELLING * least_ms;
    telling.then(|| (1.0 - (warm_ms - least_ms) / (cold_ms - least_ms)).clamp(0.0, 1.0))
}

fn share(cold_ms: f64, warm_ms: f64, least_ms: Option<f64>) -> Result<f64, Said> {
    let missing = || match least_ms {
        None => said!(
            "the TTFT of a prompt of a few tokens was not measured (--only lengths)",
            "未测得极短输入的 TTFT（--only lengths）"
        ),
        Some(least) => said!(
            "a long prompt takes {cold:.0} ms and a short one {least:.0} ms: too little lies between them",
            "长输入 {cold:.0} ms，短输入 {least:.0} ms：差距太小，无法分辨",
            cold = cold_ms,
            least = least,
        ),
    };
    share_of(cold_ms, warm_ms, least_ms).ok_or_else(missing)
}

/// Canaries of a kind from which on their median means something.
const FEWEST_CANARIES: usize = 3;

fn canaries(probe: &Probe) -> Option<Canaries> {
    let taken = of(probe, Experiment::Canary).next()?;
    let samples = &taken.observed.samples;
    let of_label = |label: &str| -> Vec<&Sample> {
        samples.iter().filter(|sample| sample.label.as_deref() == Some(label)).collect()
    };
    let (short, long) = (of_label(SHORT), of_label(LONG));
    let is_alone_known = least(probe).is_some();
    if short.len().min(long.len()) < FEWEST_CANARIES || !is_alone_known {
        return None;
    }
    let ttft = |samples: &[&Sample]| middle(samples.iter().map(|sample| sample.ttft_ms));
    let alone =
        |samples: &[&Sample]| solo_ttft_ms(probe, mean(samples.iter().map(|sample| sample.input))?);
    let group = |x: f64, samples: &[&Sample]| Group {
        x,
        samples: samples.iter().map(|sample| sample.ttft_ms).collect(),
    };
    let interval = fit::intervals(&[group(0.0, &short), group(1.0, &long)], |points| {
        let [short, long] = points else { return None };
        Some([long.y - short.y])
    });
    Some(Canaries {
        users: taken.trial.press.users(),
        n: [short.len(), long.len()],
        ttft_ms: [ttft(&short)?, ttft(&long)?],
        alone_ms: [alone(&short)?, alone(&long)?],
        interval_ms: interval.map(|[interval]| interval),
    })
}

fn rates(probe: &Probe, most_req_s: Option<f64>) -> Option<Queueing> {
    let most_req_s = most_req_s?;
    let alone_ms = of(probe, Experiment::Baseline).max_by_key(|taken| taken.trial.requests);
    let alone_ms = alone_ms.and_then(|taken| mean_ttft(&taken.observed.samples))?;
    let rate = |taken: &Taken| {
        let Press::Rate { req_s, .. } = taken.trial.press else { return None };
        let samples = &taken.observed.samples;
        let ttft_ms = mean(samples.iter().map(|sample| sample.ttft_ms + sample.wait_ms))?;
        let excess_ms = (ttft_ms - alone_ms).max(0.0);
        Some(Rate { req_s, load: req_s / most_req_s, n: samples.len(), ttft_ms, excess_ms })
    };
    let mut rates: Vec<Rate> = of(probe, Experiment::Rates).filter_map(rate).collect();
    rates.sort_by(|a, b| b.req_s.total_cmp(&a.req_s));
    let crowd = |load: f64| load / (1.0 - load).max(0.01);
    let predicted = match rates.as_slice() {
        [highest, others @ ..] if others.len() >= 2 => {
            let (top, below): (f64, f64) = others.iter().fold((0.0, 0.0), |(top, below), rate| {
                let x = crowd(rate.load);
                (top + x * rate.excess_ms, below + x * x)
            });
            let c = top / below;
            Some([c, c * crowd(highest.load)])
        }
        _ => None,
    };
    (!rates.is_empty()).then_some(Queueing { rates, predicted })
}
