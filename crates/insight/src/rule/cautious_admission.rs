//! Q10: requests wait because room is kept for answers that will not be so long.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, server, signs, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "cautious_admission",
    code: "Q10",
    class: Class::Queueing,
    title: text("admission is more cautious than it needs to be", "准入过于保守"),
    symptom: text(
        "TTFT is waiting while seats are free and nothing is retracted",
        "TTFT 主要是等待，而席位空闲且没有回退",
    ),
    required: text(
        "requests wait, KV usage below 90 %, free seats, and 40 % or more of the answers' limits set aside",
        "有请求等待，KV 占用低于 90 %，席位空闲，且预留了输出上限的 40 % 以上",
    ),
    check: text(
        "with a less conservative schedule KV usage rises, the wait falls, and nothing is retracted",
        "调低保守系数后 KV 占用上升、等待缩短且没有回退",
    ),
    command: "goodput bench {target} --osl 32",
    advice: &[
        Advice {
            text: text(
                "let the scheduler expect shorter answers: 0.3 instead of 1",
                "调低调度保守系数：如 0.3 而不是 1",
            ),
            flags: &[
                ("sglang", "--schedule-conservativeness"),
                ("vllm", "--no-scheduler-reserve-full-isl"),
            ],
        },
        Advice {
            text: text(
                "ask for no more output tokens than are needed (max_tokens)",
                "请求的 max_tokens 不要超过实际需要",
            ),
            flags: &[],
        },
    ],
    improves: &["ttft_ms", "attainment"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let reserve = view.signal(Signal::AdmissionReserve).filter(|share| *share >= 0.4)?;
    let waiting = signs::waiting(view).filter(|now| now.depth >= 0.3 || now.time >= 0.2)?;
    let queue = signs::queue(view).filter(|queue| queue.is_told && queue.of_ttft >= 0.2)?;
    let seats = view.seats();
    let is_free = seats.is_none_or(|seats| waiting.running < signs::ALL_SEATS * seats);
    let retracted = view.signal(Signal::Preemptions).unwrap_or(0.0);
    if waiting.kv >= 0.9 || !is_free || retracted > 0.0 {
        return None;
    }
    let mut evidence = vec![
        server(said!("queue time", "排队时间"), queue.ms, "ms"),
        server(said!("KV usage while others wait", "有请求等待时的 KV 占用"), waiting.kv, ""),
        server(said!("running while others wait", "有请求等待时的运行数"), waiting.running, ""),
    ];
    evidence.extend(told(view, Signal::AdmissionReserve));
    evidence.extend(told(view, Signal::Preemptions));
    evidence.extend(seats.map(|seats| server(said!("seats", "席位"), seats, "")));
    let confidence = if seats.is_some() { Confidence::Likely } else { Confidence::Possible };
    let missing = seats.is_none().then(|| {
        said!(
            "the seat limit, which would hold requests just so: --max-num-seqs of this command",
            "席位上限（同样会造成等待）：用本命令的 --max-num-seqs 给出"
        )
    });
    let says = said!(
        "{ms:.0} ms, {share:.0} % of TTFT, are waiting at {kv:.0} % KV usage: {reserve:.0} % of the \
         answers' limits are set aside, and nothing was retracted",
        "排队 {ms:.0} ms，占 TTFT 的 {share:.0} %，而 KV 占用仅 {kv:.0} %：预留了输出上限的 {reserve:.0} %，且没有回退",
        ms = queue.ms,
        share = 100.0 * queue.of_ttft,
        kv = 100.0 * waiting.kv,
        reserve = 100.0 * reserve,
    );
    let share = signs::explains(view, queue.of_ttft, 0.0, 0.0);
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}
