//! P4: prompts take longer because others are in the same steps.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "prefill_slowed",
    code: "P4",
    class: Class::Prefill,
    title: text("prompts are slowed down by what runs beside them", "预填充被并行的请求拖慢"),
    symptom: text("TTFT grows with the load although nobody waits", "无排队，TTFT 却随负载增长"),
    required: text(
        "no queue time, prefill time more than twice that of an undisturbed prompt, many running",
        "无排队，预填充时间超过独占时的两倍，运行数多",
    ),
    check: text(
        "with answers of one token the prefill time is that of an undisturbed prompt",
        "把输出设为 1 个 token 后预填充时间恢复",
    ),
    command: "goodput bench {target} --osl 1",
    advice: &[
        Advice {
            text: text("raise the token budget of a step", "提高单步 token 预算"),
            flags: &[("vllm", "--max-num-batched-tokens"), ("sglang", "--chunked-prefill-size")],
        },
        Advice {
            text: text("compute prompts on engines of their own", "预填充与解码分离部署"),
            flags: &[("vllm", "--kv-transfer-config"), ("sglang", "--disaggregation-mode")],
        },
    ],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, stages: &Stages) -> Option<Case> {
    let prefill_ms = view.prefill_ms()?;
    let own_ms = signs::own_prefill_ms(view, stages).filter(|ms| *ms > 0.0)?;
    let ttft_ms = view.ttft_ms()?;
    let queue = signs::queue(view).map_or(0.0, |queue| queue.of_ttft);
    let running = view.running_batch()?;
    let times = prefill_ms / own_ms;
    if times < 2.0 || queue > 0.2 || running < 4.0 || view.wrong.ttft < 0.7 {
        return None;
    }
    let evidence = vec![
        server(said!("prefill time", "预填充时间"), prefill_ms, "ms"),
        client(said!("of the quickest prompts", "最快输入的预填充"), own_ms, "ms"),
        client(said!("requests that decode at a time", "同时解码的请求数"), running, ""),
        server(said!("queue time over TTFT", "排队占 TTFT"), queue, ""),
    ];
    let says = said!(
        "prefill takes {times:.1} times as long as for the quickest prompts while {running:.0} requests decode",
        "预填充耗时为最快输入的 {times:.1} 倍，同时有 {running:.0} 个请求在解码",
        times = times,
        running = running,
    );
    let part = (prefill_ms - own_ms) / ttft_ms;
    let confidence = if times > 3.0 { Confidence::Likely } else { Confidence::Possible };
    Some(Case::new(confidence, signs::explains(view, part, 0.0, 0.0), says, evidence))
}
