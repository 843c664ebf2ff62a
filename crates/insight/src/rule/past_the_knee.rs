//! E1: more is completed than users can use.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "past_the_knee",
    code: "E1",
    class: Class::Queueing,
    title: text("the server runs past its knee", "运行点越过拐点"),
    symptom: text(
        "throughput hardly grows while latencies do, and goodput falls",
        "吞吐几乎不增而延迟上升，goodput 下降",
    ),
    required: text("seats or KV cache at their limit", "席位或 KV 到顶"),
    check: text("with a fifth less load goodput is higher", "负载降低五分之一后 goodput 上升"),
    command: "for r in 1 2 4 8; do goodput bench {target} --request-rate $r --duration 30s; done",
    advice: &[
        Advice {
            text: text(
                "offer what gives the highest goodput, and let batch work wait apart",
                "按 goodput 最大处的负载运行，批处理任务分流",
            ),
            flags: &[],
        },
        Advice {
            text: text(
                "where it is TPOT that is missed: fewer seats or a smaller token budget",
                "若未达标的是 TPOT：减少席位或 token 预算",
            ),
            flags: &[("vllm", "--max-num-seqs"), ("sglang", "--max-running-requests")],
        },
    ],
    improves: &["goodput_req_s", "attainment"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let goodput = view.summary.goodput.as_ref()?;
    let attainment = goodput.attainment.filter(|attainment| *attainment < 0.8)?;
    let queue = signs::queue(view).filter(|queue| queue.of_ttft >= 0.3)?;
    let completed = view.summary.throughput.req_s?;
    let good = goodput.req_s?;
    if good > 0.8 * completed {
        return None;
    }
    let waiting = signs::waiting(view);
    let mut evidence = vec![
        client(said!("completed", "完成速率"), completed, "req/s"),
        client(said!("good", "达标速率"), good, "req/s"),
        client(said!("attainment", "达标率"), attainment, ""),
        client(said!("queue over TTFT", "排队占 TTFT"), queue.of_ttft, ""),
    ];
    evidence.extend(
        waiting.map(|waiting| server(said!("waiting, mean", "平均等待数"), waiting.depth, "")),
    );
    let says = said!(
        "{completed:.2} requests are completed a second and {good:.2} of them meet the objectives",
        "每秒完成 {completed:.2} 个请求，其中 {good:.2} 个达标",
        completed = completed,
        good = good,
    );
    Some(Case::new(Confidence::Possible, 0.3 * (1.0 - attainment), says, evidence))
}
