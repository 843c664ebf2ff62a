//! D2: a step takes as long as reading the keys and values of its sequences.

use measure::finding::{Class, Confidence};
use measure::hardware::roofline::Limit;
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, bound, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "kv_bandwidth",
    code: "D2",
    class: Class::Bandwidth,
    title: text("a step takes as long as reading keys and values", "解码受 KV 读取带宽限制"),
    symptom: text(
        "TPOT grows with the number of users, the faster the longer their contexts",
        "TPOT 随并发增长，上下文越长增长越快",
    ),
    required: text("memory busy, KV usage high", "显存繁忙，KV 占用高"),
    check: text(
        "with twice the context the slope of TPOT over the batch doubles",
        "上下文加倍后 TPOT 对批的斜率翻倍",
    ),
    command: "goodput probe {target} --only lengths,ladder,contexts --max-concurrency 64",
    advice: &[
        Advice {
            text: text(
                "keep keys and values in FP8: half the bytes; check quality",
                "以 FP8 保存 KV：字节减半；需检查质量",
            ),
            flags: &[("vllm", "--kv-cache-dtype fp8"), ("sglang", "--kv-cache-dtype fp8_e5m2")],
        },
        Advice {
            text: text("let fewer run at once", "减少同时运行的请求"),
            flags: &[
                ("vllm", "--max-num-seqs"),
                ("sglang", "--max-running-requests"),
                ("llama_cpp", "--parallel"),
            ],
        },
        Advice {
            text: text(
                "shorten contexts, or take a model with fewer key and value heads",
                "缩短上下文，或改用 GQA/MLA 模型",
            ),
            flags: &[],
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
    let is_near = bounds.step_limit == Limit::Memory && base_ms <= 2.5 * bounds.step_ms;
    // The undisturbed step by itself must be too long.
    let allowed_ms = view.wrong.tpot_limit_ms * view.tokens_per_step();
    let is_long = view.wrong.tpot >= 1.0 && base_ms >= 0.95 * allowed_ms;
    if !is_long || !is_near || bounds.kv_share <= 0.4 || mixture.together > 0.2 {
        return None;
    }
    let told = view.server_ms(Signal::ServerItl).or_else(|| view.server_ms(Signal::ServerTpot));
    let mut evidence = vec![
        client(said!("undisturbed step", "正常步长"), base_ms, "ms"),
        bound(said!("the same at full bandwidth", "以满带宽计算"), bounds.step_ms, "ms"),
        bound(
            said!("share of keys and values in its bytes", "其中 KV 字节占比"),
            bounds.kv_share,
            "",
        ),
        client(said!("requests that decode at a time", "同时解码的请求数"), bounds.batch, ""),
        client(said!("context, mean", "平均上下文"), bounds.context, "tokens"),
    ];
    evidence.extend(
        told.map(|ms| {
            server(said!("gap between outputs at the server", "服务端输出间隔"), ms, "ms")
        }),
    );
    evidence.extend(
        view.most(Signal::KvUsage)
            .map(|usage| server(said!("KV usage, most", "KV 占用峰值"), usage, "")),
    );
    let agrees = told.is_some_and(|ms| (0.7..1.5).contains(&(ms / mixture.mean_ms)));
    let is_sure = agrees && view.wrong.is_given;
    let confidence = if is_sure { Confidence::Confirmed } else { Confidence::Possible };
    let says = said!(
        "{share:.0} % of the bytes of a step are keys and values of {batch:.0} sequences of {context:.0} \
         tokens; it takes {base:.1} ms, {ideal:.1} ms at full bandwidth",
        "单步字节的 {share:.0} % 是 {batch:.0} 个 {context:.0} token 序列的 KV；一步需 {base:.1} ms，满带宽为 {ideal:.1} ms",
        share = 100.0 * bounds.kv_share,
        batch = bounds.batch,
        context = bounds.context,
        base = base_ms,
        ideal = bounds.step_ms,
    );
    let share = signs::explains(view, 0.0, bounds.kv_share * (base_ms / tpot_ms).min(1.0), 0.3);
    Some(Case::new(confidence, share, says, evidence))
}
