//! E3: the objective is met with so much to spare that it is paid for twice.

use measure::finding::{Class, Confidence, From};
use measure::said;
use measure::signal::Signal;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, number, server, text};
use crate::view::View;

pub(super) static RULE: Rule = Rule {
    id: "cost_slack",
    code: "E3",
    class: Class::Underload,
    title: text("more is paid for than the objective needs", "成本高于目标所需"),
    symptom: text(
        "the objective is met with more than twice the room, and a token is dear",
        "SLO 有一倍以上余量，单 token 成本偏高",
    ),
    required: text("running requests below half of the seats", "运行数不到席位的一半"),
    check: text(
        "a higher load up to the objective's edge costs less a good token",
        "提高负载至 SLO 边缘，单位达标 token 成本下降",
    ),
    command: "for r in 1 2 4 8; do goodput bench {target} --request-rate $r --duration 30s; done",
    advice: &[
        Advice {
            text: text(
                "fewer or cheaper accelerators, or scale with the load",
                "减少或换用更便宜的加速器，或随负载伸缩",
            ),
            flags: &[],
        },
        Advice {
            text: text(
                "fill the gaps with work that can wait; compute in FP8",
                "用可等待的离线任务填充空隙；以 FP8 计算",
            ),
            flags: &[
                ("vllm", "--scheduling-policy, --quantization"),
                ("sglang", "--enable-priority-scheduling, --quantization"),
            ],
        },
    ],
    improves: &["cost_per_million_good_tokens"],
    seen_live: false,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let price = view.deployment.price_per_hour?;
    let cost = view.summary.inside.efficiency.value("cost_per_million_tokens")?;
    let attainment = view.summary.goodput.as_ref()?.attainment.filter(|share| *share >= 0.99)?;
    let (wrong, running) = (&view.wrong, view.signal(Signal::Running)?);
    let of_seats = running / view.seats().filter(|seats| *seats > 0.0)?;
    let nearest = wrong.ttft.max(wrong.tpot);
    if !wrong.is_given || nearest > 0.5 || of_seats > 0.5 {
        return None;
    }
    let evidence = vec![
        client(said!("attainment", "达标率"), attainment, ""),
        client(
            said!("P90 nearest to its limit, over it", "最接近目标的 P90 与目标之比"),
            nearest,
            "",
        ),
        server(said!("running over seats", "运行数与席位之比"), of_seats, ""),
        number(said!("cost of a million tokens", "每百万 token 成本"), cost, "$", From::Given),
        number(said!("price of an accelerator", "加速器单价"), price, "$/h", From::Given),
    ];
    let says = said!(
        "{attainment:.1} % of the requests meet the objective with {nearest:.0} % of what it allows, and \
         {seats:.0} % of the seats are taken: a million tokens cost {cost:.2}",
        "{attainment:.1} % 的请求达标，只用到目标的 {nearest:.0} %，席位占用 {seats:.0} %：每百万 token 成本 {cost:.2}",
        attainment = 100.0 * attainment,
        nearest = 100.0 * nearest,
        seats = 100.0 * of_seats,
        cost = cost,
    );
    let missing =
        said!("the highest load at which the objective still holds", "仍能达标的最高负载");
    Some(Case::new(Confidence::Likely, 0.3, says, evidence).missing([missing]))
}
