//! V5: answers are as long as the model likes.

use measure::finding::{Class, Confidence};
use measure::said;
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, text};
use crate::fit;
use crate::view::{View, mean};

pub(super) static RULE: Rule = Rule {
    id: "uncontrolled_lengths",
    code: "V5",
    class: Class::Workload,
    title: text("the length of answers is not controlled", "输出长度不受控"),
    symptom: text(
        "answers end long before their limit, at very different lengths",
        "回答远早于上限结束，且长度差异很大",
    ),
    required: text("finish reasons are stop and not length", "结束原因是 stop 而非 length"),
    check: text(
        "with lengths forced the spread of E2EL is gone",
        "强制输出长度后，E2EL 的离散消失",
    ),
    command: "goodput bench {target} --ignore-eos",
    advice: &[Advice {
        text: text(
            "force the length to compare servers; compare at equal served lengths otherwise",
            "比较服务时强制输出长度；否则在相同实际输出长度下比较",
        ),
        flags: &[],
    }],
    improves: &["e2el_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let of_limit = |seen: &crate::view::Seen| {
        let planned = &view.timed[seen.place].record.planned;
        let limit = planned.max_output_tokens.filter(|_| !planned.output_forced)?;
        Some((seen.output?, f64::from(limit.get())))
    };
    let lengths: Vec<(f64, f64)> = view.seen.iter().filter_map(of_limit).collect();
    if lengths.len() < 20 {
        return None;
    }
    let used = mean(lengths.iter().map(|(output, limit)| output / limit))?;
    let middle = mean(lengths.iter().map(|(output, _)| *output))?;
    let variance = mean(lengths.iter().map(|(output, _)| (output - middle).powi(2)))?;
    let spread = variance.sqrt() / middle.max(1.0);
    if used > 0.7 || spread < 0.4 {
        return None;
    }
    let pairs: Vec<(f64, f64)> =
        view.seen.iter().filter_map(|seen| Some((seen.output?, seen.e2el_ms?))).collect();
    let by_length = fit::correlation(&pairs).unwrap_or(0.0).max(0.0);
    let evidence = vec![
        client(said!("served length over its limit", "实际长度与上限之比"), used, ""),
        client(said!("coefficient of variation of lengths", "长度的变异系数"), spread, ""),
        client(said!("correlation of E2EL and length", "E2EL 与长度的相关系数"), by_length, ""),
    ];
    let says = said!(
        "answers use {used:.0} % of their limit and vary by {spread:.0} %; length explains {share:.0} % \
         of the variance of E2EL",
        "回答平均只用到上限的 {used:.0} %，长度变异 {spread:.0} %；E2EL 方差的 {share:.0} % 由长度解释",
        used = 100.0 * used,
        spread = 100.0 * spread,
        share = 100.0 * by_length.powi(2),
    );
    let share = 0.6 * by_length.powi(2);
    Some(Case::new(Confidence::Likely, share, says, evidence))
}
