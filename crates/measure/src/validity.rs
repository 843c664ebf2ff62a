//! Whether a run can be trusted. The generator is a suspect: every check of
//! it stands in one table.

use crate::facts::{LoadFacts, LoadKind, RunFacts};
use crate::metric::Text;
use crate::outcome::{NotSentKind, Outcome};
use crate::quantile;
use crate::record::Record;
use crate::said::{Said, said};
use crate::unit::{At, Span};
use crate::window::Extent;

/// The verdict on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing speaks against the figures.
    Valid,
    /// The figures hold with care; reasons are given.
    Degraded,
    /// The figures do not describe the server.
    Invalid,
}

impl Verdict {
    /// The verdict as printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Degraded => "DEGRADED",
            Self::Invalid => "INVALID",
        }
    }
}

/// One reason against a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Name of the check.
    pub id: &'static str,
    /// What it makes of the run.
    pub verdict: Verdict,
    /// What was seen, how far it is from passing, and what to change.
    pub text: Said,
}

/// Verdict, reasons, and the figures behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct Validity {
    /// The worst reason's verdict.
    pub verdict: Verdict,
    /// All reasons, worst first.
    pub reasons: Vec<Reason>,
    /// Send lateness in µs: p50, p99, max. `None` where it is not judged.
    pub lateness_us: Option<[f64; 3]>,
    /// User stamp − kernel stamp in µs: p50, p99, max.
    pub client_lag_us: Option<[f64; 3]>,
    /// Time from the first to the last send when all was intended at once.
    pub burst_length: Option<Span>,
}

/// What the checks look at. `None` means: not judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// Records that ended well.
    pub ok: u64,
    /// Records in all.
    pub records: u64,
    /// Length of the schedule that had come due.
    pub planned: u64,
    /// Requests that were released.
    pub released: u64,
    /// Requests lost to the client's own limits.
    pub client_resource: u64,
    /// Length of a finite schedule: each of its requests must have an outcome.
    pub scheduled: Option<u64>,
    /// p99 of lateness in µs.
    pub lateness_p99_us: Option<f64>,
    /// p99 of the receive stamp's error bound in µs.
    pub stamp_error_p99_us: Option<f64>,
    /// True where answers have no tokens: E2EL stands for TTFT then.
    pub without_tokens: bool,
    /// TTFT p50 in µs.
    pub ttft_p50_us: Option<f64>,
    /// TTFT p99 in µs.
    pub ttft_p99_us: Option<f64>,
    /// Busiest thread's share.
    pub busiest_thread: Option<f64>,
    /// Throttled time.
    pub throttled: Option<Span>,
    /// Dispersion of the sends, of the plan, and half the width of its band.
    pub dispersion: Option<(f64, f64, f64)>,
    /// Mean served ÷ forced output length.
    pub forced_length_ratio: Option<f64>,
}

impl Inputs {
    /// e of the design: the larger of lateness and stamp error, at p99.
    fn error_us(&self) -> Option<f64> {
        match (self.lateness_p99_us, self.stamp_error_p99_us) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    fn released_share(&self) -> f64 {
        if self.planned == 0 { 1.0 } else { self.released as f64 / self.planned as f64 }
    }
}

struct Check {
    id: &'static str,
    verdict: Verdict,
    judge: fn(&Inputs) -> Option<Said>,
}

/// The one table. A check gives the sentence that speaks against the run, or
/// nothing.
const CHECKS: &[Check] = &[
    Check { id: "no_ok_request", verdict: Verdict::Invalid, judge: no_ok_request },
    Check { id: "counts_not_conserved", verdict: Verdict::Invalid, judge: counts_conserved },
    Check {
        id: "client_resource",
        verdict: Verdict::Invalid,
        judge: |inputs| {
            let share = inputs.client_resource as f64 / inputs.records.max(1) as f64;
            (share > 0.01).then(|| {
                said!(
                    "{percent:.1} % of requests were lost to the client's own limits (limit 1 %); \
                     raise the open-file limit or lower the concurrency",
                    "{percent:.1} % 的请求因压测端自身限制而未能发出（上限 1 %）；请调大打开文件数\
                     上限，或降低并发",
                    percent = share * 100.0,
                )
            })
        },
    },
    Check {
        id: "instrument_error",
        verdict: Verdict::Invalid,
        judge: |inputs| {
            let floor = 0.10 * inputs.ttft_p99_us.unwrap_or(0.0);
            let rule = if inputs.without_tokens {
                Text { en: "max(5 ms, 10 % of E2EL p99)", zh: "max(5 ms, E2EL P99 的 10 %)" }
            } else {
                Text { en: "max(5 ms, 10 % of TTFT p99)", zh: "max(5 ms, TTFT P99 的 10 %)" }
            };
            error_above(inputs, f64::max(5_000.0, floor), rule)
        },
    },
    Check {
        id: "instrument_error",
        verdict: Verdict::Degraded,
        judge: |inputs| {
            let floor = 0.05 * inputs.ttft_p50_us.unwrap_or(0.0);
            let rule = if inputs.without_tokens {
                Text { en: "max(1 ms, 5 % of E2EL p50)", zh: "max(1 ms, E2EL P50 的 5 %)" }
            } else {
                Text { en: "max(1 ms, 5 % of TTFT p50)", zh: "max(1 ms, TTFT P50 的 5 %)" }
            };
            error_above(inputs, f64::max(1_000.0, floor), rule)
        },
    },
    Check {
        id: "released_below_planned",
        verdict: Verdict::Invalid,
        judge: |inputs| released_below(inputs, 0.95),
    },
    Check {
        id: "released_below_planned",
        verdict: Verdict::Degraded,
        judge: |inputs| released_below(inputs, 0.99),
    },
    Check {
        id: "thread_busy",
        verdict: Verdict::Degraded,
        judge: |inputs| {
            inputs.busiest_thread.filter(|busy| *busy > 0.8).map(|busy| {
                said!(
                    "a sending thread was busy {percent:.0} % of the time (limit 80 %); use \
                     --threads or another machine",
                    "有发送线程 {percent:.0} % 的时间都在忙（上限 80 %）；请加大 --threads 或换一台\
                     机器",
                    percent = busy * 100.0,
                )
            })
        },
    },
    Check {
        id: "throttled",
        verdict: Verdict::Degraded,
        judge: |inputs| {
            inputs.throttled.filter(|time| *time > Span::ZERO).map(|time| {
                said!(
                    "the control group held this process back for {time}; raise its CPU quota",
                    "压测进程被 cgroup 限流 {time}；请调高它的 CPU 配额",
                    time = time,
                )
            })
        },
    },
    Check {
        id: "arrivals_not_poisson",
        verdict: Verdict::Degraded,
        judge: |inputs| {
            let (sent, planned, half) = inputs.dispersion?;
            // A schedule that is itself outside the band by the luck of the
            // draw is no fault of the sender.
            let outside = |value: f64| (value - 1.0).abs() > half;
            (outside(sent) && !outside(planned)).then(|| {
                said!(
                    "sends were not Poisson: index of dispersion {sent:.2}, 99 % band 1 ± {half:.2}",
                    "实际发送不符合泊松过程：离散指数 {sent:.2}，99 % 区间为 1 ± {half:.2}",
                    sent = sent,
                    half = half,
                )
            })
        },
    },
    Check {
        id: "output_length_off",
        verdict: Verdict::Degraded,
        judge: |inputs| {
            inputs.forced_length_ratio.filter(|ratio| (ratio - 1.0).abs() > 0.10).map(|ratio| {
                said!(
                    "answers had {percent:.0} % of the forced output length (limit 100 ± 10 %); \
                     the server ignores ignore_eos or stops early",
                    "实际输出长度是强制长度的 {percent:.0} %（允许 100 ± 10 %）；服务端忽略了 \
                     ignore_eos，或提前停止",
                    percent = ratio * 100.0,
                )
            })
        },
    },
];

fn no_ok_request(inputs: &Inputs) -> Option<Said> {
    (inputs.ok == 0).then(|| {
        said!(
            "none of {n} requests ended well, so there is no latency to report; see the failures",
            "{n} 个请求无一正常结束，没有延迟可报；请看失败原因",
            n = inputs.records,
        )
    })
}

fn counts_conserved(inputs: &Inputs) -> Option<Said> {
    inputs.scheduled.filter(|scheduled| *scheduled != inputs.records).map(|scheduled| {
        said!(
            "{scheduled} requests were scheduled and {n} have an outcome; this is a defect of \
             goodput",
            "计划了 {scheduled} 个请求，却有 {n} 个结果；这是 goodput 自身的缺陷",
            scheduled = scheduled,
            n = inputs.records,
        )
    })
}

fn error_above(inputs: &Inputs, limit_us: f64, rule: Text) -> Option<Said> {
    let error_us = inputs.error_us().filter(|error| *error > limit_us)?;
    let (error, limit) = (error_us / 1e3, limit_us / 1e3);
    let Text { en, zh } = rule;
    Some(Said {
        en: format!(
            "the client's own error is {error:.2} ms at p99 (limit {limit:.2} ms = {en}); lower \
             the load, add --threads, or free the machine"
        ),
        zh: format!(
            "压测端自身误差的 P99 为 {error:.2} ms（上限 {limit:.2} ms = {zh}）；请降低负载、加大 \
             --threads，或腾出机器"
        ),
    })
}

fn released_below(inputs: &Inputs, limit: f64) -> Option<Said> {
    let share = inputs.released_share();
    (share < limit).then(|| {
        said!(
            "{released} of {planned} planned requests were sent ({percent:.1} %, limit \
             {limit:.0} %); the client or its cap could not keep up",
            "计划的 {planned} 个请求只发出 {released} 个（{percent:.1} %，下限 {limit:.0} %）；压测\
             端或并发上限跟不上",
            released = inputs.released,
            planned = inputs.planned,
            percent = share * 100.0,
            limit = limit * 100.0,
        )
    })
}

/// Judges the inputs by the table. Of two checks of one name only the worse
/// speaks.
pub fn judge(inputs: &Inputs) -> (Verdict, Vec<Reason>) {
    let mut reasons: Vec<Reason> = Vec::new();
    for check in CHECKS {
        if reasons.iter().any(|reason| reason.id == check.id) {
            continue;
        }
        if let Some(text) = (check.judge)(inputs) {
            reasons.push(Reason { id: check.id, verdict: check.verdict, text });
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
    let verdict = reasons.first().map_or(Verdict::Valid, |reason| reason.verdict);
    (verdict, reasons)
}

/// How late the generator sent a request: from when it should have been sent
/// to the first write, less the time that opening a connection for it took.
pub fn lateness(record: &Record, load: &LoadFacts) -> Option<Span> {
    if record.source.is_some() {
        // Another tool's file does not say when a request was due.
        return None;
    }
    let stamps = &record.stamps;
    let sent = stamps.sent_at?;
    let due = match load.kind {
        LoadKind::Open | LoadKind::Closed => stamps.intended_at,
        LoadKind::Capped => stamps.released_at?,
        LoadKind::Burst | LoadKind::Unknown => return None,
    };
    let opened = stamps.secured_at.or(stamps.connected_at);
    Some(match opened {
        // The connection was the network's time, not the generator's.
        Some(opened) => sent - opened + (stamps.released_at? - due).max(Span::ZERO),
        None => sent - due,
    })
}

/// What the checks count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    ok: u64,
    records: u64,
    planned: u64,
    released: u64,
    client_resource: u64,
    /// Output tokens of answers whose length was forced: served and asked for.
    forced: (f64, f64),
}

impl Seen {
    /// Counts a request; `came_due` says whether an interrupted run owed it.
    pub(crate) fn add(&mut self, record: &Record, came_due: bool) {
        self.ok += u64::from(record.outcome == Outcome::Ok);
        self.records += 1;
        // A turn after one that failed could not be sent by anybody.
        if came_due && record.outcome != Outcome::NotSent(NotSentKind::ParentFailed) {
            self.planned += 1;
            self.released += u64::from(record.stamps.sent_at.is_some() || tried(record));
        }
        self.client_resource += u64::from(matches!(
            record.outcome,
            Outcome::NotSent(NotSentKind::ClientResource | NotSentKind::PortExhausted)
        ));
        if let (true, Outcome::Ok, Some((served, _)), Some(asked)) = (
            record.planned.output_forced,
            record.outcome,
            record.output_tokens(),
            record.planned.max_output_tokens,
        ) {
            self.forced.0 += f64::from(served.get());
            // Each of several answers was forced to it.
            self.forced.1 += f64::from(asked.get()) * f64::from(record.answer.choices.max(1));
        }
    }

    /// Judges the run.
    pub(crate) fn validity(
        &self,
        facts: &RunFacts,
        ttft_ms: (Option<f64>, Option<f64>),
        lateness_us: Option<[f64; 3]>,
        dispersion: Option<(f64, f64, f64)>,
        sends: Option<Span>,
    ) -> Validity {
        let burst = facts.load.kind == LoadKind::Burst;
        let judged = facts.load.kind != LoadKind::Unknown;
        let (served, asked) = self.forced;
        let inputs = Inputs {
            ok: self.ok,
            records: self.records,
            planned: if burst || !judged { 0 } else { self.planned },
            released: self.released,
            client_resource: self.client_resource,
            scheduled: facts.instrument.planned_requests,
            lateness_p99_us: lateness_us.map(|[_, p99, _]| p99),
            stamp_error_p99_us: facts.instrument.stamp_error_p99_us,
            without_tokens: !facts.endpoint.generates(),
            ttft_p50_us: ttft_ms.0.map(|ms| ms * 1e3),
            ttft_p99_us: ttft_ms.1.map(|ms| ms * 1e3),
            busiest_thread: facts.instrument.busiest_thread,
            throttled: facts.instrument.throttled,
            dispersion,
            forced_length_ratio: (asked > 0.0).then(|| served / asked),
        };
        let (verdict, reasons) = judge(&inputs);
        Validity {
            verdict,
            reasons,
            lateness_us,
            client_lag_us: facts.instrument.client_lag_us,
            burst_length: sends.filter(|_| burst),
        }
    }
}

/// Collects the inputs from a run and judges them.
pub(crate) fn validity(
    records: &[Record],
    extent: &Extent,
    facts: &RunFacts,
    ttft_ms: (Option<f64>, Option<f64>),
) -> Validity {
    let mut late: Vec<f64> = records
        .iter()
        .filter_map(|record| lateness(record, &facts.load))
        .map(|span| span.us() as f64)
        .collect();
    late.sort_by(f64::total_cmp);
    let came_due = |record: &Record| {
        // After an interrupt, what had not come due was never owed; without a
        // schedule in time nothing comes due but by being released.
        let came = facts.load.kind.has_schedule()
            && extent.ended.last().is_some_and(|end| record.stamps.intended_at <= end);
        !facts.interrupted || record.stamps.released_at.is_some() || came
    };
    let mut seen = Seen::default();
    records.iter().for_each(|record| seen.add(record, came_due(record)));
    let dispersion = dispersion(records, &facts.load);
    seen.validity(facts, ttft_ms, three(&late), dispersion, extent.sent.length())
}

/// A request that failed before its first byte was still released.
fn tried(record: &Record) -> bool {
    record.stamps.released_at.is_some() && matches!(record.outcome, Outcome::Failed(_))
}

fn three(sorted: &[f64]) -> Option<[f64; 3]> {
    Some([
        quantile::linear(sorted, 0.5)?,
        quantile::linear(sorted, 0.99)?,
        quantile::linear(sorted, 1.0)?,
    ])
}

/// Index of dispersion of counts in about n/5 equal windows, of the sends and
/// of the plan, and half the width of the 99 % band around 1. Only for a
/// Poisson open loop of one rate with at least 50 requests: where the rate
/// changes by plan, counts vary more than those of a Poisson process.
fn dispersion(records: &[Record], load: &LoadFacts) -> Option<(f64, f64, f64)> {
    let is_poisson = load.burstiness == Some(1.0) && load.request_rate.is_some();
    if load.kind != LoadKind::Open || !is_poisson {
        return None;
    }
    let mut sent: Vec<At> = Vec::new();
    let mut planned: Vec<At> = Vec::new();
    for record in records.iter().filter(|record| record.arrives()) {
        if let Some(at) = record.stamps.sent_at {
            sent.push(at);
            planned.push(record.stamps.intended_at);
        }
    }
    if sent.len() < 50 {
        return None;
    }
    let windows = (sent.len() / 5).clamp(10, 1000);
    let half = 2.576 * (2.0 / (windows as f64 - 1.0)).sqrt();
    Some((index_of_dispersion(&sent, windows)?, index_of_dispersion(&planned, windows)?, half))
}

fn index_of_dispersion(instants: &[At], windows: usize) -> Option<f64> {
    let first = *instants.iter().min()?;
    let length = (*instants.iter().max()? - first).us();
    if length == 0 {
        return None;
    }
    let mut counts = vec![0.0f64; windows];
    for at in instants {
        let position = (*at - first).us() as f64 / length as f64 * windows as f64;
        counts[(position as usize).min(windows - 1)] += 1.0;
    }
    let mean = instants.len() as f64 / windows as f64;
    let variance =
        counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (windows as f64 - 1.0);
    Some(variance / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Inputs {
        Inputs {
            ok: 10,
            records: 10,
            planned: 10,
            released: 10,
            scheduled: Some(10),
            ..Inputs::default()
        }
    }

    fn check(inputs: &Inputs, verdict: Verdict, ids: &[&str]) {
        let (got, reasons) = judge(inputs);
        assert_eq!(got, verdict, "{reasons:?}");
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        for Said { en, zh } in reasons.iter().map(|reason| &reason.text) {
            assert!(!en.contains(is_han) && zh.contains(is_han), "{en}\n{zh}");
        }
        assert_eq!(reasons.iter().map(|reason| reason.id).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn a_clean_run_is_valid() {
        check(&good(), Verdict::Valid, &[]);
    }

    #[test]
    fn each_check_speaks_at_its_limit() {
        check(&Inputs { ok: 0, ..good() }, Verdict::Invalid, &["no_ok_request"]);
        check(
            &Inputs { scheduled: Some(11), ..good() },
            Verdict::Invalid,
            &["counts_not_conserved"],
        );
        let lost = Inputs { client_resource: 1, ..good() };
        check(&lost, Verdict::Invalid, &["client_resource"]);
        let late = |us| Inputs { lateness_p99_us: Some(us), ..good() };
        check(&late(1_000.0), Verdict::Valid, &[]);
        check(&late(1_001.0), Verdict::Degraded, &["instrument_error"]);
        check(&late(5_001.0), Verdict::Invalid, &["instrument_error"]);
        let slow = Inputs { ttft_p50_us: Some(1e6), ttft_p99_us: Some(2e6), ..late(40_000.0) };
        check(&slow, Verdict::Valid, &[]);
        let released = |released| Inputs { planned: 100, released, ..good() };
        check(&released(98), Verdict::Degraded, &["released_below_planned"]);
        check(&released(94), Verdict::Invalid, &["released_below_planned"]);
        check(
            &Inputs { busiest_thread: Some(0.81), ..good() },
            Verdict::Degraded,
            &["thread_busy"],
        );
        check(
            &Inputs { throttled: Some(Span::from_ms(3)), ..good() },
            Verdict::Degraded,
            &["throttled"],
        );
        check(
            &Inputs { forced_length_ratio: Some(0.89), ..good() },
            Verdict::Degraded,
            &["output_length_off"],
        );
    }

    #[test]
    fn dispersion_blames_only_what_the_sender_did() {
        let inputs = |sent, planned| Inputs { dispersion: Some((sent, planned, 0.3)), ..good() };
        check(&inputs(6.0, 1.1), Verdict::Degraded, &["arrivals_not_poisson"]);
        check(&inputs(1.5, 1.5), Verdict::Valid, &[]);
    }
}
