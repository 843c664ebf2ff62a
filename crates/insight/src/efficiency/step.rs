//! A decode step: how long it takes, what it reads, and what the hardware allows.
//!
//! Step time is the token-weighted mean gap between tokens times the tokens that
//! a sequence gains in a step. The running batch is what was under way while
//! anything was (Little's law over the records, without idle time), the context
//! that of each answer at its middle. With pipeline stages a step here is one
//! round of all micro-batches.

use measure::finding::From;
use measure::hardware::{Bound, Limit, ModelShape, Precision, Work};
use measure::request::Timed;
use measure::said::{Said, said};
use measure::signal::Signal;
use measure::window;

use super::work::{Lengths, lengths};
use super::{
    Found, Known, accelerator, accelerators, accelerators_of_engine, given, input, kv_cache, model,
    no_signal, of_signal, peak, said_of_accelerator, said_of_kv, said_of_model, said_of_weights,
    short, weights,
};
use crate::view::View;

/// The share of arrivals that must carry one token for a step to be one token
/// where no engine says it.
const SINGLE: f64 = 0.99;

/// The mean decode step of one engine.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// How long it takes, seconds.
    pub(super) seconds: f64,
    /// Sequences in it.
    pub(super) batch: f64,
    /// What it must move and compute.
    work: Work,
    /// The least time for that on the engine's accelerators.
    bound: Bound,
    inputs: Vec<Said>,
}

impl Step {
    /// Bytes ÷ (step time × accelerators × bandwidth).
    pub(super) fn mbu(self) -> Known<Found> {
        let gigabytes = short(self.work.bytes / 1e9);
        let words = said!("{gigabytes} GB a step", "每步 {gigabytes} GB", gigabytes = gigabytes,);
        let mut inputs = self.inputs;
        inputs.push(input(words, From::Bound));
        Ok(Found { value: self.bound.memory_s / self.seconds, inputs })
    }

    /// Step time ÷ the longer of its two bounds.
    pub(super) fn over_bound(self) -> Known<Found> {
        let ms = short(1e3 * self.bound.seconds());
        let words = match self.bound.limit() {
            Limit::Memory => {
                said!("at least {ms} ms by memory", "下界 {ms} ms（显存带宽）", ms = ms)
            }
            Limit::Compute => {
                said!("at least {ms} ms by arithmetic", "下界 {ms} ms（算力）", ms = ms)
            }
        };
        let mut inputs = self.inputs;
        inputs.push(input(words, From::Bound));
        Ok(Found { value: self.seconds / self.bound.seconds(), inputs })
    }
}

/// Tokens of a sequence in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PerStep {
    /// Those that are given out.
    gained: f64,
    /// Those that are computed, rejected drafts too.
    computed: f64,
}

/// The mean decode step of a run.
pub(super) fn step(view: &View<'_>) -> Known<Step> {
    let model = model(view)?;
    let accelerator = accelerator(view)?;
    let engine = accelerators_of_engine(view)?;
    let (engines, of_engines) = engines(view, engine)?;
    let (per_step, of_tokens) = per_step(view)?;
    let gap_s = mean_gap_s(view)?;
    let (lengths, _) = lengths(view).or_else(|_| uncached(view))?;
    let seconds = gap_s * per_step.gained;
    let (batch, of_batch) = batch(view, engines)?;
    let work = work(view, model, &lengths, batch, per_step)?;
    let precision = accelerator.compute_precision(weights(view).0);
    let bound = work
        .bound(accelerator, precision, engine)
        .ok_or_else(|| peak(view).err().unwrap_or_else(|| said!("no peak is known", "峰值未知")))?;
    let (gap, step) = (short(1e3 * gap_s), short(1e3 * seconds));
    let words = said!(
        "step {step} ms from a token-weighted mean ITL of {gap} ms",
        "每步 {step} ms，由按 token 加权的平均 ITL {gap} ms 得出",
        step = step,
        gap = gap,
    );
    let inputs = vec![
        input(words, From::Client),
        of_tokens,
        of_batch,
        of_engines,
        said_of_model(model),
        said_of_accelerator(accelerator, engine),
        said_of_weights(view),
        said_of_kv(view),
    ];
    Ok(Step { seconds, batch, work, bound, inputs })
}

/// Engines that decode.
fn engines(view: &View<'_>, engine: u32) -> Known<(f64, Said)> {
    let topology = &given(view).topology;
    let decoding = topology.iter().filter(|(role, _)| role == "decode").map(|(_, count)| *count);
    let decoding: u32 = decoding.sum();
    let all = if decoding > 0 { decoding } else { accelerators(view)? };
    let engines = (f64::from(all) / f64::from(engine)).max(1.0);
    let shown = short(engines);
    let words = said!("{shown} engines that decode", "{shown} 个解码引擎", shown = shown);
    Ok((engines, input(words, From::Given)))
}

/// Σ gaps ÷ Σ tokens of the chunks that ended them, seconds.
fn mean_gap_s(view: &View<'_>) -> Known<f64> {
    if let Some(ms) = view.summary.weighted.itl_mean_ms.filter(|ms| *ms > 0.0) {
        return Ok(ms / 1e3);
    }
    Err(said!("no gap between tokens was seen", "没有观测到 token 间隔"))
}

/// Tokens that a sequence gains and computes in a step.
fn per_step(view: &View<'_>) -> Known<(PerStep, Said)> {
    let increase = |signal| view.signals().and_then(|signals| signals.increase(signal));
    let drafts = increase(Signal::Drafts).filter(|drafts| *drafts > 0.0);
    if let Some((drafts, accepted)) = drafts.zip(increase(Signal::AcceptedTokens)) {
        let gained = 1.0 + accepted / drafts;
        let drafted = increase(Signal::DraftTokens).map_or(gained, |all| 1.0 + all / drafts);
        let per_step = PerStep { gained, computed: drafted.max(gained) };
        return Ok((per_step, of_signal(Signal::AcceptedTokens, accepted)));
    }
    let (single, arrivals) = view
        .ok()
        .filter_map(|request: &Timed<'_>| request.single_token_arrivals().ok())
        .fold((0u64, 0u64), |(a, b), (c, d)| (a + u64::from(c), b + u64::from(d)));
    // Percentiles of ITL are given where nearly every chunk has one token, which
    // is all that a run without rows says of it.
    let one_each = if view.summary.facts.rows_kept {
        arrivals > 0 && single as f64 >= SINGLE * arrivals as f64
    } else {
        view.figure("itl_ms", "p50").is_some()
    };
    if one_each {
        let said = said!("one token a step, as answers came", "每步一个 token（按到达情况）");
        return Ok((PerStep { gained: 1.0, computed: 1.0 }, input(said, From::Client)));
    }
    let why = no_signal(view, Signal::Drafts);
    Err(Said {
        en: format!(
            "chunks carry several tokens, and whether a step gives as many is not known: {}",
            why.en
        ),
        zh: format!("数据块含多个 token，无法得知每步产出多少：{}", why.zh),
    })
}

/// Sequences that one engine decodes while it decodes any.
fn batch(view: &View<'_>, engines: f64) -> Known<(f64, Said)> {
    let writing = window::writing(view.ok().map(|request| request.record));
    let together = writing
        .at_a_time()
        .ok_or_else(|| said!("no answer took any time to be written", "没有任何回答有写出时间"))?;
    // Answers that name their servers are counted by server already.
    let apart = (engines / f64::from(writing.servers)).max(1.0);
    let batch = (together / apart).max(1.0);
    let shown = short(batch);
    let words = said!(
        "{shown} answers at a time by one engine",
        "每个引擎同时写 {shown} 个回答",
        shown = shown,
    );
    Ok((batch, input(words, From::Client)))
}

/// Lengths where nobody knows what was cached: a step reads all of a context
/// whoever computed it.
fn uncached(view: &View<'_>) -> Known<(Vec<Lengths>, Said)> {
    let of = |request: &Timed<'_>| {
        let prompt = f64::from(request.record.answer.counts.prompt?.get());
        let choices = f64::from(request.record.answer.choices.max(1));
        let output = f64::from(request.output_tokens().ok()?) / choices;
        Some(Lengths { computed: prompt, cached: 0.0, output, choices })
    };
    let lengths: Option<Vec<Lengths>> = view.ok().map(of).collect();
    let lengths = lengths.filter(|lengths| !lengths.is_empty()).ok_or_else(|| {
        said!("the lengths of prompts or answers are not known", "输入或输出的 token 数未知")
    })?;
    Ok((lengths, said!("", "")))
}

/// What a step over `batch` sequences has to do. Each answer's context counts
/// for as long as it is written.
fn work(
    view: &View<'_>,
    model: &ModelShape,
    lengths: &[Lengths],
    batch: f64,
    per_step: PerStep,
) -> Known<Work> {
    let (weights, kv) = (weights(view).0, kv_cache(view).0);
    let deployment = given(view);
    let stages = f64::from(deployment.pipeline_parallel.unwrap_or(1).max(1));
    let mut held = 0.0;
    let mut pairs = 0.0;
    let mut steps = 0.0;
    for one in lengths {
        let later = one.choices * (one.output - 1.0).max(0.0);
        let context = one.computed + one.cached + one.output / 2.0;
        held += later * model.kv_bytes_of_context(kv, context);
        pairs += later * model.attention_flops(1.0, context - 1.0);
        steps += later;
    }
    if steps <= 0.0 {
        return Err(said!("no answer has a second token", "没有任何回答有第二个 token"));
    }
    let positions = batch * per_step.computed;
    let copies = copies(model, kv, deployment.tensor_parallel.unwrap_or(1));
    let each = model.linear_flops_per_token() + model.logits_flops() + pairs / steps;
    Ok(Work {
        flops: positions * each,
        bytes: stages * model.weight_bytes_read(weights, positions / stages)
            + batch * copies * held / steps,
    })
}

/// How often keys and values are stored where `tensor_parallel` accelerators
/// share a model: key heads that cannot be divided are copied.
fn copies(model: &ModelShape, kv: Precision, tensor_parallel: u32) -> f64 {
    let all = model.kv_bytes_per_token(kv);
    f64::from(tensor_parallel) * model.kv_bytes_per_token_of_one(kv, tensor_parallel) / all
}
