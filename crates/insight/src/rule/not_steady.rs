//! V4: the figures move one way while the run lasts.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "not_steady",
    code: "V4",
    class: Class::Workload,
    title: text("the run is not steady", "压测未达稳态"),
    symptom: text(
        "TTFT or the number in flight moves one way over the run",
        "TTFT 或在途请求数在压测期间单向变化",
    ),
    required: text("queue or KV usage still ramp", "队列或 KV 占用仍在爬升"),
    check: text("a run that is three times as long gives other figures", "延长三倍时长后数字不同"),
    command: "goodput bench {target} --duration 3m --num-warmups 8",
    advice: &[Advice {
        text: text("run longer and leave the warm-up out", "延长压测并去掉预热段"),
        flags: &[],
    }],
    improves: &["ttft_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let flow = &view.flow;
    let middle = view.at_share(0.5, |seen| seen.ttft_ms)?;
    let ttft = flow
        .ttft
        .filter(|trend| trend.p < 0.001 && trend.change().abs() > (0.4 * middle).max(10.0))?;
    let in_flight = flow.in_flight.map_or(0.0, |trend| trend.change());
    let evidence = vec![
        client(said!("change of TTFT over the run", "TTFT 在压测期间的变化"), ttft.change(), "ms"),
        client(said!("probability by chance", "偶然出现的概率"), ttft.p, ""),
        client(said!("change of the number in flight", "在途请求数的变化"), in_flight, ""),
    ];
    let says = said!(
        "TTFT changes by {change:.0} ms over the run, {share:.0} % of its median",
        "TTFT 在压测期间变化了 {change:.0} ms，为中位数的 {share:.0} %",
        change = ttft.change(),
        share = 100.0 * ttft.change() / middle,
    );
    let share = 0.5 * (ttft.change().abs() / (middle + ttft.change().abs()));
    Some(Case::new(Confidence::Possible, share, says, evidence))
}
