//! P1: computing a prompt takes as long as the accelerator's arithmetic needs,
//! and that is too long.

use measure::finding::{Class, Confidence};
use measure::hardware::roofline::Limit;
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefill_bound",
    code: "P1",
    class: Class::Prefill,
    title: text("prompts take as long as arithmetic needs", "预填充受算力限制"),
    symptom: text(
        "TTFT is too high with one user already, and linear in the prompt's length",
        "单用户时 TTFT 就已过高，且与输入长度成正比",
    ),
    required: text(
        "prefill time is TTFT, no queue, near the peak of arithmetic",
        "TTFT 基本等于预填充时间，无排队，接近算力峰值",
    ),
    check: text(
        "the slope of TTFT over the prompt's length is that of the peak at about 60 %",
        "TTFT 对输入长度的斜率约为峰值算力 60 % 对应的值",
    ),
    command: "goodput probe {target} --only lengths",
    advice: &[
        Advice {
            text: text("compute in FP8 or FP4; check quality", "以 FP8/FP4 计算；需检查质量"),
            flags: &[("vllm", "--quantization"), ("sglang", "--quantization")],
        },
        Advice {
            text: text(
                "let more accelerators share each layer, or take faster ones",
                "增加张量并行，或使用更快的加速器",
            ),
            flags: &[("vllm", "--tensor-parallel-size"), ("sglang", "--tp-size")],
        },
        Advice {
            text: text("share prefixes, shorten prompts", "共享前缀、缩短输入"),
            flags: &[("vllm", "--enable-prefix-caching")],
        },
    ],
    improves: &["ttft_ms", "attainment"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let own_ms = signs::own_prefill_ms(view, stages).filter(|ms| *ms > 0.0)?;
    let ttft_ms = view.ttft_ms()?;
    let limit_ms = view.wrong.ttft_limit_ms;
    let queue = signs::queue(view).map_or(0.0, |queue| queue.of_ttft);
    // A prompt by itself takes most of what may be taken.
    if view.wrong.ttft < 1.0 || own_ms < 0.5 * limit_ms || own_ms < 0.4 * ttft_ms || queue > 0.5 {
        return None;
    }
    let bounds = view.bounds?;
    let reached = bounds.prefill_ms / own_ms;
    if bounds.prefill_limit != Limit::Compute || reached < 0.35 {
        return None;
    }
    let mut evidence = vec![
        client(said!("a prompt by itself", "单个输入独占时"), own_ms, "ms"),
        bound(
            said!("the same at the peak of arithmetic", "以算力峰值计算"),
            bounds.prefill_ms,
            "ms",
        ),
        client(said!("limit of TTFT", "TTFT 目标"), limit_ms, "ms"),
    ];
    let told = view.prefill_ms();
    evidence.extend(told.map(|ms| server(said!("prefill time", "预填充时间"), ms, "ms")));
    evidence.extend(view.queue_ms().map(|ms| server(said!("queue time", "排队时间"), ms, "ms")));
    let is_sure = told.is_some() && view.wrong.is_given;
    let confidence = if is_sure { Confidence::Confirmed } else { Confidence::Possible };
    let says = said!(
        "a prompt by itself takes {own:.0} ms, {share:.0} % of the peak of arithmetic, and TTFT may \
         take {limit:.0} ms",
        "单个输入的预填充需 {own:.0} ms，已达算力峰值的 {share:.0} %，而 TTFT 目标为 {limit:.0} ms",
        own = own_ms,
        share = 100.0 * reached,
        limit = limit_ms,
    );
    let share = signs::explains(view, own_ms / ttft_ms, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence))
}
