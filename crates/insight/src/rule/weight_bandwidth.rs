//! D1: a step takes as long as reading the weights does, and that is too long.

use measure::finding::{Class, Confidence};
use measure::hardware::roofline::Limit;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "weight_bandwidth",
    code: "D1",
    class: Class::Bandwidth,
    title: text("a step takes as long as reading the weights", "解码受权重读取带宽限制"),
    symptom: text(
        "TPOT of one request is within twice the time of reading the weights, and hardly grows with the batch",
        "单请求 TPOT 在读取权重时间的两倍以内，且几乎不随批增大",
    ),
    required: text(
        "memory busy, matrix units idle, MBU above 0.5",
        "显存繁忙、张量单元空闲、MBU 高于 0.5",
    ),
    check: text(
        "TPOT with eight users is below 1.2 times that with one",
        "8 并发的 TPOT 低于单并发的 1.2 倍",
    ),
    command: "goodput probe {target} --only ladder --max-concurrency 64",
    advice: &[
        Advice {
            text: text("quantise the weights; check quality", "量化权重；需检查质量"),
            flags: &[("vllm", "--quantization"), ("sglang", "--quantization")],
        },
        Advice {
            text: text("speculate: several tokens a step", "推测解码：每步多个 token"),
            flags: &[
                ("vllm", "--speculative-config"),
                ("sglang", "--speculative-algorithm"),
                ("llama_cpp", "--model-draft"),
            ],
        },
        Advice {
            text: text(
                "let more accelerators read a part of the weights each",
                "增加张量并行，分摊权重读取",
            ),
            flags: &[("vllm", "--tensor-parallel-size"), ("sglang", "--tp-size")],
        },
    ],
    improves: &["tpot_ms", "attainment"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let (bounds, mixture) = (view.bounds?, view.mixture?);
    let tpot_ms = view.mean(|seen| seen.tpot_ms)?;
    let base_ms = mixture.base_ms;
    let is_near = bounds.step_limit == Limit::Memory && base_ms <= 2.3 * bounds.step_ms;
    // The undisturbed step by itself must be too long.
    let allowed_ms = view.wrong.tpot_limit_ms * view.tokens_per_step();
    if view.wrong.tpot < 1.0
        || base_ms < 0.95 * allowed_ms
        || !is_near
        || bounds.kv_share > 0.4
        || base_ms < 0.6 * tpot_ms * view.tokens_per_step()
        || mixture.together > 0.2
    {
        return None;
    }
    let told = view.server_ms(Signal::ServerItl).or_else(|| view.server_ms(Signal::ServerTpot));
    let mut evidence = vec![
        client(said!("undisturbed step", "正常步长"), base_ms, "ms"),
        bound(
            said!("reading the weights at full bandwidth", "以满带宽读取权重"),
            bounds.weights_ms,
            "ms",
        ),
        bound(
            said!("share of keys and values in the bytes of a step", "单步字节中 KV 的占比"),
            bounds.kv_share,
            "",
        ),
        client(said!("requests that decode at a time", "同时解码的请求数"), bounds.batch, ""),
        client(said!("limit of TPOT", "TPOT 目标"), view.wrong.tpot_limit_ms, "ms"),
    ];
    evidence.extend(
        told.map(|ms| {
            server(said!("gap between outputs at the server", "服务端输出间隔"), ms, "ms")
        }),
    );
    evidence.extend(
        view.signal(Signal::DramActive)
            .map(|share| server(said!("memory active", "显存活跃比例"), share, "")),
    );
    let agrees = told.is_some_and(|ms| (0.7..1.5).contains(&(ms / mixture.mean_ms)));
    let is_sure = agrees && view.wrong.is_given;
    let confidence = if is_sure { Confidence::Confirmed } else { Confidence::Possible };
    let says = said!(
        "a step takes {base:.1} ms, and reading the weights alone {weights:.1} ms; TPOT may take \
         {limit:.1} ms",
        "一步需 {base:.1} ms，仅读取权重就需 {weights:.1} ms，而 TPOT 目标为 {limit:.1} ms",
        base = base_ms,
        weights = bounds.weights_ms,
        limit = view.wrong.tpot_limit_ms,
    );
    let share = signs::explains(view, 0.0, base_ms / tpot_ms, 0.3);
    Some(Case::new(confidence, share, says, evidence))
}
