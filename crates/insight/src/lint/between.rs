//! Lints about two runs side by side.

use measure::finding::Lint;
use measure::metric::Text;
use measure::said;
use measure::said::Said;
use measure::summary::Summary;

use super::{Entry, Judge, LINTS};
use crate::conditions::{Difference, differences};

/// The lints of several runs: of the first beside each of the others, with the
/// place of the other one.
pub fn beside(runs: &[&Summary]) -> Vec<(usize, Lint)> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let each = others.iter().enumerate();
    each.flat_map(|(place, other)| {
        between(first, other).into_iter().map(move |lint| (place + 1, lint))
    })
    .collect()
}

/// What a lint of two runs looks at: the one before, the one after.
pub type Pair = fn(&Summary, &Summary) -> Option<Said>;

/// The lints that a comparison of two runs calls for.
pub fn between(before: &Summary, after: &Summary) -> Vec<Lint> {
    LINTS
        .iter()
        .filter_map(|entry| {
            let Judge::Pair(judge) = entry.judge else { return None };
            Some(Lint { id: entry.id, concerns: entry.concerns, says: judge(before, after)? })
        })
        .collect()
}

pub(super) const OTHER_WORK: Entry = Entry {
    id: "other_work",
    code: "L26",
    concerns: "ttft_ms",
    title: Text { en: "runs of different work", zh: "条件不同的两次测试" },
    instead: Text {
        en: "compare at the same lengths, arrivals and state of the cache",
        zh: "在相同的长度分布、到达方式与缓存状态下比较",
    },
    judge: Judge::Pair(other_work),
};

/// Conditions that are named; the others are counted.
const NAMED: usize = 2;

fn other_work(before: &Summary, after: &Summary) -> Option<Said> {
    let mut decide = differences(&[before, after]);
    decide.retain(|one| one.decides);
    if decide.is_empty() {
        return None;
    }
    let more = decide.len().saturating_sub(NAMED);
    let list = |what: fn(&Difference) -> &'static str, separator: &str, none: &str| {
        let value = |one: &Difference, place: usize| {
            one.values[place].as_ref().map_or_else(|| none.to_owned(), ToString::to_string)
        };
        let named = decide.iter().take(NAMED);
        let each =
            named.map(|one| format!("{} ({} | {})", what(one), value(one, 0), value(one, 1)));
        each.collect::<Vec<_>>().join(separator)
    };
    let (also, too) = match more {
        0 => (String::new(), String::new()),
        1 => (" and one more condition".to_owned(), format!("等共 {} 项", decide.len())),
        _ => (format!(" and {more} more conditions"), format!("等共 {} 项", decide.len())),
    };
    Some(Said {
        en: format!(
            "The two runs differ in {}{also}: what their figures differ by may come from that alone.",
            list(|one| one.what.en, ", ", "not given"),
        ),
        zh: format!(
            "两次测试的{}{too}不同：数据的差异可能仅由此造成。",
            list(|one| one.what.zh, "、", "未给出"),
        ),
    })
}

pub(super) const SINGLE_RUN: Entry = Entry {
    id: "single_run",
    code: "L15",
    concerns: "ttft_ms",
    title: Text { en: "one run each", zh: "各只跑一次" },
    instead: Text {
        en: "repeat each at least three times, in turns; what repeats differ by is no effect",
        zh: "各重复至少三次并交替进行；重复之间的差异不是效果",
    },
    judge: Judge::Pair(single_run),
};

/// A difference that a repeat of the same run may show on a shared machine.
const WITHIN_REPEATS: f64 = 0.15;

fn single_run(before: &Summary, after: &Summary) -> Option<Said> {
    let (a, b) = (figure(before, "ttft_ms", "mean")?, figure(after, "ttft_ms", "mean")?);
    let change = (a > 0.0).then(|| b / a - 1.0)?;
    (change != 0.0 && change.abs() < WITHIN_REPEATS).then(|| {
        said!(
            "The mean TTFT differs by {change:+.1} %, and each side is one run: repeats of the \
             same run may differ by as much.",
            "平均 TTFT 相差 {change:+.1} %，而两边各只跑了一次：同一配置重复压测也可能有这么大的差异。",
            change = 100.0 * change,
        )
    })
}

pub(super) const FASTER_AND_WORSE: Entry = Entry {
    id: "faster_and_worse",
    code: "L23",
    concerns: "output_tok_s",
    title: Text {
        en: "more tokens a second and less goodput", zh: "吞吐上升而 goodput 下降"
    },
    instead: Text {
        en: "judge a change by goodput and attainment; shorter prompts or more users raise tokens a second by themselves",
        zh: "以 goodput 和达标率评判改动；更短的输入或更高的并发本身就会抬高吞吐",
    },
    judge: Judge::Pair(faster_and_worse),
};

/// Changes below this are no change.
const SAME: f64 = 0.03;

fn faster_and_worse(before: &Summary, after: &Summary) -> Option<Said> {
    let change = |a: f64, b: f64| (a > 0.0).then(|| b / a - 1.0);
    let rate = |summary: &Summary| summary.throughput.output_tok_s;
    let good = |summary: &Summary| summary.goodput.as_ref().and_then(|goodput| goodput.req_s);
    let faster = change(rate(before)?, rate(after)?)?;
    let better = change(good(before)?, good(after)?)?;
    if faster < SAME || better > -SAME {
        return None;
    }
    let users = |summary: &Summary| summary.facts.load.users;
    let lengths = figure(before, "input_tokens", "mean").zip(figure(after, "input_tokens", "mean"));
    let shorter = lengths.is_some_and(|(a, b)| b < (1.0 - SAME) * a);
    let more = users(before).zip(users(after)).is_some_and(|(a, b)| b > a);
    let (en, zh) = match (shorter, more) {
        (true, true) => ("prompts are shorter and users are more", "输入变短、并发增多"),
        (true, false) => ("prompts are shorter", "输入变短"),
        (false, true) => ("users are more", "并发增多"),
        (false, false) => (
            "the batch is larger, or requests were not answered in time",
            "批量变大，或有请求未及时完成",
        ),
    };
    Some(Said {
        en: format!(
            "Output tokens a second rose by {:.0} % and goodput fell by {:.0} %: {en}. By the \
             objective the second run is worse.",
            100.0 * faster,
            -100.0 * better,
        ),
        zh: format!(
            "输出吞吐上升 {:.0} %，goodput 却下降 {:.0} %：{zh}。按 SLO 衡量，第二次更差。",
            100.0 * faster,
            -100.0 * better,
        ),
    })
}

fn figure(summary: &Summary, key: &str, statistic: &str) -> Option<f64> {
    let found = summary.metrics.iter().find(|(known, _)| *known == key);
    found.and_then(|(_, distribution)| distribution.figure(statistic))
}
