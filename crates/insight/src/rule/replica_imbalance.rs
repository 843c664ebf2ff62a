//! Q7: one replica is slow or has a queue while others idle.

use std::collections::BTreeMap;

use measure::finding::{Class, Confidence};
use measure::said;
use measure::signal::{Instance, Reading, Role, Signal};
use measure::stage::Stages;

use super::{Advice, Case, Rule, client, server, signs, text};
use crate::view::{View, mean};

pub(super) static RULE: Rule = Rule {
    id: "replica_imbalance",
    code: "Q7",
    class: Class::Queueing,
    title: text("one replica is slower or fuller than the others", "某个副本比其他副本慢或更满"),
    symptom: text(
        "latencies have two humps, one for each kind of replica",
        "延迟呈双峰，随副本而异",
    ),
    required: text(
        "one engine waits or steps slowly while others idle",
        "某个引擎排队或步长变长，而其他引擎空闲",
    ),
    check: text(
        "requests pinned to each replica by itself differ in the same way",
        "分别只压每个副本，差异依旧",
    ),
    command: "goodput bench {target}",
    advice: &[
        Advice {
            text: text("route by load and not in turn", "按负载而非轮询路由"),
            flags: &[("vllm", "--data-parallel-hybrid-lb"), ("sglang", "--load-balance-method")],
        },
        Advice {
            text: text(
                "look at the slow replica: clocks, neighbours, memory",
                "检查慢副本：时钟、邻居、显存",
            ),
            flags: &[],
        },
    ],
    improves: &["ttft_ms", "e2el_ms"],
    seen_live: true,
    judge,
};

fn judge(view: &View<'_>, _stages: &Stages) -> Option<Case> {
    let by_client = by_answer(view);
    let by_server = by_engine(view);
    let clear = |times: Option<f64>| times.filter(|times| *times >= 1.5);
    let queue = hot_queue(view).filter(|(hot, rest)| *hot >= 1.0 && *rest < 0.2 * hot);
    let (told, seen) = (clear(by_server), clear(by_client));
    if told.is_none() && seen.is_none() && queue.is_none() {
        return None;
    }
    let mut evidence = Vec::new();
    evidence.extend(by_client.map(|times| {
        client(
            said!("slowest over quickest replica, TPOT", "最慢与最快副本的 TPOT 之比"),
            times,
            "",
        )
    }));
    evidence.extend(by_server.map(|times| {
        server(said!("slowest over quickest engine, step", "最慢与最快引擎的步长之比"), times, "")
    }));
    if let Some((hot, rest)) = queue {
        evidence.push(server(said!("waiting at the fullest engine", "最满引擎的等待数"), hot, ""));
        evidence.push(server(
            said!("waiting at the others, mean", "其余引擎的平均等待数"),
            rest,
            "",
        ));
    }
    let confidence = match (told.is_some() || queue.is_some(), seen.is_some()) {
        (true, true) => Confidence::Confirmed,
        (true, false) => Confidence::Likely,
        (false, _) => Confidence::Possible,
    };
    let times = told.or(seen).unwrap_or(1.0);
    let says = said!(
        "the slowest replica takes {times:.1} times as long as the quickest",
        "最慢副本耗时为最快副本的 {times:.1} 倍",
        times = times,
    );
    let part = 1.0 - 1.0 / times.max(1.2);
    Some(Case::new(confidence, signs::explains(view, part, part, part), says, evidence))
}

/// Largest over smallest of values, where there are two or more.
fn spread(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(*one), high.max(*one)));
    (values.len() >= 2).then(|| high / low)
}

/// By who answered: a header of the answer, or the address that was asked.
fn by_answer(view: &View<'_>) -> Option<f64> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for seen in &view.seen {
        let record = view.timed[seen.place].record;
        let name = record
            .answer
            .served_by
            .as_deref()
            .or_else(|| record.planned.label(measure::record::URL));
        if let Some((name, tpot_ms)) = name.zip(seen.tpot_ms) {
            groups.entry(name).or_default().push(tpot_ms);
        }
    }
    let large = groups.into_values().filter(|group| group.len() >= 8);
    spread(large.filter_map(|group| mean(group.into_iter())))
}

fn engines<'v>(view: &View<'v>) -> impl Iterator<Item = &'v Instance> {
    view.instances(|role| matches!(role, Role::Both | Role::Decode))
}

/// By what each engine says of its steps.
fn by_engine(view: &View<'_>) -> Option<f64> {
    let step = |instance: &Instance| {
        let of = |signal| instance.readings.get(&signal).and_then(Reading::value);
        of(Signal::ServerItl).or_else(|| of(Signal::ServerTpot))
    };
    spread(engines(view).filter_map(step))
}

/// Mean queue of the fullest engine, and of the others.
fn hot_queue(view: &View<'_>) -> Option<(f64, f64)> {
    let depth =
        |instance: &Instance| instance.readings.get(&Signal::QueueDepth).and_then(Reading::value);
    let mut depths: Vec<f64> = engines(view).filter_map(depth).collect();
    depths.sort_by(f64::total_cmp);
    let hot = depths.pop()?;
    Some((hot, mean(depths.into_iter())?))
}
