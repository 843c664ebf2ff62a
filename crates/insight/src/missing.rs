//! What could not be concluded from a run, why, and what would tell.

use measure::said;
use measure::said::Said;
use measure::signal::Signal;
use measure::summary::Summary;

use crate::view::View;

/// Signals on which most causes hang: without one of them, some cannot be told
/// apart, and the reason says which flag would expose it.
const NEEDED: &[Signal] = &[
    Signal::QueueDepth,
    Signal::Running,
    Signal::SeatLimit,
    Signal::KvUsage,
    Signal::Preemptions,
    Signal::PrefixQueries,
    Signal::QueueTime,
    Signal::PrefillTime,
    Signal::DecodeTime,
];

/// One sentence for each thing that this run cannot tell.
pub fn missing(view: &View<'_>) -> Vec<Said> {
    let summary = view.summary;
    let mut missing = Vec::new();
    if summary.outcomes.ok == 0 {
        missing.push(said!(
            "no request ended well, so no latency can be explained: goodput report says what went \
             wrong",
            "没有请求成功，因此没有延迟可供分析：失败原因见 goodput report"
        ));
        return missing;
    }
    match view.signals() {
        None => missing.push(without_metrics(summary)),
        Some(signals) => {
            // Facts that the user gave are not missing.
            let given = |signal: Signal| signal == Signal::SeatLimit && view.seats().is_some();
            let lacking = NEEDED
                .iter()
                .filter(|signal| !signals.readings.contains_key(signal) && !given(**signal));
            missing.extend(lacking.map(|signal| lacks(*signal, signals.absent.get(signal))));
        }
    }
    if view.deployment.model.is_none() || view.deployment.accelerator.is_none() {
        missing.push(said!(
            "whether steps take as long as they must: the bound needs the model's shape and the \
             accelerator (--model-shape, --accelerator)",
            "单步时间是否已接近下界：需要模型结构和加速器（--model-shape、--accelerator）"
        ));
    }
    if summary.goodput.is_none() {
        missing.push(said!(
            "how many users are served well enough: no objective was given (--slo 'ttft <= 300ms, \
             tpot <= 60ms')",
            "有多少请求达标：没有给出 SLO（--slo 'ttft <= 300ms, tpot <= 60ms'）"
        ));
    }
    missing
}

/// What the client alone cannot decide, and how to get the rest.
fn without_metrics(summary: &Summary) -> Said {
    let how = if summary.facts.simulated {
        said!(
            "a run of the engine model that scrapes it has them",
            "对引擎模型采集指标的测试会包含这些数据"
        )
    } else {
        said!(
            "run goodput bench again with the engine's /metrics in reach (--metrics-url URL)",
            "请让 /metrics 可访问后重新测试（--metrics-url URL）"
        )
    };
    let what = said!(
        "waiting for a seat, for KV blocks or behind long prompts, missed and evicted prefixes, and \
         preemptions look alike from outside",
        "仅凭压测端无法区分等待席位、等待 KV 块还是排在长输入之后，也无法区分前缀未命中与被驱逐，或识别\
         抢占"
    );
    let why = summary.inside.why_unread();
    Said {
        en: format!("{}: {}; {}", what.en, why.en, how.en),
        zh: format!("{}：{}；{}", what.zh, why.zh, how.zh),
    }
}

fn lacks(signal: Signal, why: Option<&Said>) -> Said {
    let name = signal.entry().name;
    match why {
        Some(why) => {
            Said { en: format!("{}: {}", name.en, why.en), zh: format!("{}：{}", name.zh, why.zh) }
        }
        None => Said {
            en: format!("{}: the server's metrics do not tell", name.en),
            zh: format!("{}：服务端指标未给出", name.zh),
        },
    }
}
