//! K4: the accelerators' memory is full to the last, and something gave way.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, text, told};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "memory_edge",
    code: "K4",
    class: Class::Misconfiguration,
    title: text("the accelerators are about to run out of memory", "显存即将耗尽"),
    symptom: text(
        "sudden errors of the server or lost connections at a peak, good answers before and after",
        "高峰时突然出现 5xx 或断连，前后均正常",
    ),
    required: text(
        "less than 2 % of the memory free; restarts or error codes of the device",
        "空闲显存低于 2 %；有进程重启或设备错误码",
    ),
    check: text(
        "a burst of long prompts at the peak brings it back; with less memory for the engine it stays away",
        "高峰时突发长输入可复现；调低引擎显存占比后不再出现",
    ),
    command: "goodput bench {target} --isl 8000 --osl 8 -c 16 -n 64",
    advice: &[
        Advice {
            text: text(
                "leave the engine two to five points less of the memory",
                "把引擎显存占比调低 0.02 到 0.05",
            ),
            flags: &[("vllm", "--gpu-memory-utilization"), ("sglang", "--mem-fraction-static")],
        },
        Advice {
            text: text(
                "a smaller token budget or fewer recorded graphs",
                "减小 token 预算或 CUDA graph 数量",
            ),
            flags: &[("vllm", "--max-num-batched-tokens"), ("sglang", "--chunked-prefill-size")],
        },
        Advice {
            text: text("reserve room for pictures", "为图像预留显存"),
            flags: &[("vllm", "--mm-ipc-gpu-memory-gb")],
        },
    ],
    improves: &["attainment"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let signals = view.signals()?;
    let free = least_free(view).filter(|free| *free < 0.02)?;
    let outcomes = &view.summary.outcomes;
    let refused: u64 =
        outcomes.by_status.iter().filter(|(status, _)| **status >= 500).map(|(_, n)| n).sum();
    let cut = ["disconnected", "truncated", "in_band", "aborted"];
    let lost: u64 = cut.iter().filter_map(|kind| outcomes.by_kind.get(kind)).sum();
    let failed = refused + lost;
    let device = view.most(Signal::DeviceErrors).filter(|code| *code > 0.0);
    let mut evidence = vec![server(
        said!("free memory of the fullest accelerator", "最满加速器的空闲显存"),
        free,
        "",
    )];
    evidence.extend(device.and_then(|_| told(view, Signal::DeviceErrors)));
    if signals.restarts > 0 {
        let restarts = f64::from(signals.restarts);
        evidence.push(server(said!("counters that began anew", "计数器归零次数"), restarts, ""));
    }
    if failed > 0 {
        evidence.push(client(
            said!("errors of the server and lost answers", "服务端错误与中断的回答"),
            failed as f64,
            "requests",
        ));
    }
    let gave_way = device.is_some() || signals.restarts > 0;
    let confidence = match (gave_way, failed > 0) {
        (true, true) => Confidence::Confirmed,
        (true, false) | (false, true) => Confidence::Likely,
        (false, false) => Confidence::Possible,
    };
    let says = said!(
        "{free:.1} % of the memory of the fullest accelerator was free, and {failed} requests ended \
         in errors of the server or lost connections",
        "最满加速器的空闲显存只有 {free:.1} %，有 {failed} 个请求以服务端错误或断连结束",
        free = 100.0 * free,
        failed = failed,
    );
    let missing = (!gave_way).then(|| {
        said!(
            "the engine's log at that moment: an out-of-memory error stands there",
            "当时的引擎日志：其中会有显存不足的报错"
        )
    });
    let all = outcomes.total().max(1) as f64;
    let share = if failed > 0 { 0.4 + failed as f64 / all } else { 0.1 };
    Some(Case::new(confidence, share, says, evidence).missing(missing))
}

/// Share of memory that the fullest accelerator had free at its fullest.
fn least_free(view: &View<'_>) -> Option<f64> {
    let of = |used: Option<&measure::signal::Reading>, all: Option<&measure::signal::Reading>| {
        let measure::signal::Reading::Gauge(used) = used? else { return None };
        let all = all?.value().filter(|bytes| *bytes > 0.0)?;
        Some(1.0 - used.max / all)
    };
    let readings = |readings: &std::collections::BTreeMap<Signal, measure::signal::Reading>| {
        of(readings.get(&Signal::MemoryUsed), readings.get(&Signal::MemoryTotal))
    };
    let each = view.instances(|_| true).filter_map(|one| readings(&one.readings));
    each.reduce(f64::min).or_else(|| readings(&view.signals()?.readings))
}
