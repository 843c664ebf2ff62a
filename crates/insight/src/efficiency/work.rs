//! Shares of the peak arithmetic: by our requests (MFU), and by what the engine
//! says that it spent (HFU). The two are never mixed.

use measure::finding::From;
use measure::hardware::ModelShape;
use measure::request::Timed;
use measure::said::{Said, said};
use measure::signal::Signal;
use measure::summary::prompt_excludes_cached;
use measure::undefined::Undefined;

use super::{
    Found, Known, accelerator, accelerators, input, model, no_signal, of_signal, peak,
    said_of_accelerator, said_of_model, said_of_weights, short,
};
use crate::view::View;

/// Useful operations ÷ (accelerators × dense peak × window).
pub(super) fn mfu(view: &View<'_>) -> Known<Found> {
    let model = model(view)?;
    let accelerator = accelerator(view)?;
    let count = accelerators(view)?;
    let (peak, of_peak) = peak(view)?;
    let (lengths, of_cached) = lengths(view)?;
    let window_s = view.summary.load.duration_s.filter(|length| *length > 0.0);
    let window_s = window_s.ok_or_else(|| Said::from(Undefined::NoTime.texts()))?;
    let flops: f64 = lengths.iter().map(|one| one.flops(model)).sum();
    let (shown, length) = (short(flops), short(window_s));
    let words = said!(
        "{shown} useful FLOP of requests that ended well, in {length} s",
        "成功请求的有效计算量 {shown} FLOP，窗口 {length} s",
        shown = shown,
        length = length,
    );
    let inputs = vec![
        input(words, From::Client),
        of_cached,
        said_of_model(model),
        said_of_accelerator(accelerator, count),
        said_of_weights(view),
        of_peak,
    ];
    Ok(Found { value: flops / (f64::from(count) * peak * window_s), inputs })
}

/// The engine's own estimate of its operations ÷ (dense peak × window), for one
/// accelerator.
pub(super) fn hfu(view: &View<'_>) -> Known<Found> {
    let signals = view.signals();
    let spent = signals.and_then(|signals| signals.increase(Signal::EstimatedFlops));
    let spent = spent.ok_or_else(|| no_signal(view, Signal::EstimatedFlops))?;
    let (peak, of_peak) = peak(view)?;
    let length_s = signals.map_or(0.0, |signals| signals.length_s());
    if length_s <= 0.0 {
        return Err(Undefined::NoTime.texts().into());
    }
    let length = short(length_s);
    let words = said!("in {length} s", "窗口 {length} s", length = length);
    let inputs = vec![
        of_signal(Signal::EstimatedFlops, spent),
        input(words, From::Server),
        said_of_weights(view),
        of_peak,
    ];
    Ok(Found { value: spent / (peak * length_s), inputs })
}

/// Tokens of one request that ended well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lengths {
    /// Prompt tokens that were computed.
    pub(super) computed: f64,
    /// Prompt tokens that were found.
    pub(super) cached: f64,
    /// Output tokens of each choice.
    pub(super) output: f64,
    /// Choices.
    pub(super) choices: f64,
}

impl Lengths {
    /// Operations that the request needs, each token computed once: the last
    /// token of an answer is drawn and never read, the first one is drawn from
    /// the prompt.
    fn flops(&self, model: &ModelShape) -> f64 {
        let prompt = self.computed + self.cached;
        let read = (self.output - 1.0).max(0.0);
        let linear = (self.computed + self.choices * read) * model.linear_flops_per_token();
        let drawn = self.choices * self.output * model.logits_flops();
        let attention = model.attention_flops(self.computed, self.cached)
            + self.choices * model.decode_attention_flops(read, prompt);
        linear + drawn + attention
    }
}

/// What our requests had to compute, and who said what of their prompts was
/// cached.
pub(super) fn lengths(view: &View<'_>) -> Known<(Vec<Lengths>, Said)> {
    let ok: Vec<&Timed<'_>> = view.ok().collect();
    if ok.is_empty() {
        return Err(Undefined::NoSamples.texts().into());
    }
    let (share, said) = cached_share(view, &ok)?;
    let excludes = prompt_excludes_cached(&view.summary.facts);
    let of = |request: &&Timed<'_>| -> Result<Lengths, Undefined> {
        let counts = &request.record.answer.counts;
        let stated = counts.prompt.ok_or(Undefined::NoPromptCount)?.get();
        let own = counts.cached.map_or(0.0, |cached| f64::from(cached.get()));
        let prompt = f64::from(stated) + if excludes { own } else { 0.0 };
        let cached = share.map_or(own, |share| share * prompt).min(prompt);
        let choices = f64::from(request.record.answer.choices.max(1));
        let output = f64::from(request.output_tokens()?) / choices;
        Ok(Lengths { computed: prompt - cached, cached, output, choices })
    };
    let lengths: Result<Vec<Lengths>, Undefined> = ok.iter().map(of).collect();
    Ok((lengths.map_err(|why| Said::from(why.texts()))?, said))
}

/// The share of every prompt that was cached, where requests do not say it one
/// by one; `None` where they do.
fn cached_share(view: &View<'_>, ok: &[&Timed<'_>]) -> Known<(Option<f64>, Said)> {
    if ok.iter().any(|request| request.record.answer.counts.cached.is_some()) {
        let said = said!("cached tokens by the usage of answers", "缓存命中数取自回答的 usage");
        return Ok((None, input(said, From::Client)));
    }
    let increase = |signal| view.signals().and_then(|signals| signals.increase(signal));
    let of = |part: Signal, whole: Signal| {
        let whole = increase(whole).filter(|whole| *whole > 0.0)?;
        Some((increase(part)? / whole).clamp(0.0, 1.0))
    };
    let by_server = |share: f64, signal: Signal| {
        let (id, shown) = (signal.entry().id, short(share));
        let said = said!(
            "{shown} of all prompt tokens cached, by {id}",
            "输入 token 的缓存比例 {shown}，取自 {id}",
            shown = shown,
            id = id,
        );
        Ok((Some(share), input(said, From::Server)))
    };
    if let Some(computed) = of(Signal::PromptComputed, Signal::PromptTokens) {
        return by_server(1.0 - computed, Signal::PromptComputed);
    }
    if let Some(hits) = of(Signal::PrefixHits, Signal::PrefixQueries) {
        return by_server(hits, Signal::PrefixHits);
    }
    let workload = &view.summary.facts.workload;
    let is_fresh = matches!(workload.cache_regime.as_str(), "cold" | "none");
    if workload.prefix_tokens == Some(0) && is_fresh {
        let said = said!(
            "nothing cached: no two prompts begin alike",
            "无缓存命中：任何两个提示词的开头都不相同"
        );
        return Ok((Some(0.0), input(said, From::Client)));
    }
    Err(said!(
        "nobody says which prompt tokens were cached: vLLM tells with --enable-prompt-tokens-details, \
         or in its metrics",
        "没有来源说明哪些输入 token 命中缓存：vLLM 可用 --enable-prompt-tokens-details，或读取其指标"
    ))
}
