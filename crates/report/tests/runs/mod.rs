//! Runs of every kind, built from records: what the report and the persisted
//! forms are held to. Figures are chosen so that they can be worked out by
//! hand.

#[allow(dead_code, unused_imports, reason = "the builder serves the tests of measure first")]
#[path = "../../../measure/tests/it/build.rs"]
mod build;

use measure::definition::GOODPUT;
use measure::efficiency::{Efficiency, Figure};
use measure::facts::{LoadKind, RunFacts, WorkloadFacts};
use measure::finding::{Class, Confidence, Direction, Evidence, Finding, From, Lint};
use measure::metric::Text;
use measure::said;
use measure::signal::{Gauge, Reading, Signal, Signals, Taken};
use measure::slo::Slo;
use measure::stage::{Stage, Stages};
use measure::summary::{Inside, Summary, summarise};
use measure::{At, Carries, FailureKind, NotSentKind, Outcome, Record, SourceTimes, Span, Tokens};

use build::{Build, FINISH, ROLE, TEXT, request};

/// What was seen inside a server whose seats are taken, as rules and readings
/// would say it: every kind of content once.
pub(crate) fn seen_inside() -> Inside {
    let stage = |id, en, zh, mean_ms: f64, from, is_residual| Stage {
        id,
        name: Text { en, zh },
        mean_ms,
        share: mean_ms / 204.0,
        is_residual,
        from,
        how: said!("mean over the window", "窗口内均值"),
    };
    let stages = vec![
        stage("network", "network", "网络", 4.0, From::Client, false),
        stage("queue", "queue", "排队", 150.0, From::Server, false),
        stage("prefill", "prefill", "预填充", 40.0, From::Server, false),
        stage("front_end", "front end", "前端", 10.0, From::Server, true),
    ];
    let figure = |key, value, unit| Figure {
        key,
        value,
        unit,
        inputs: vec![said!("weights of 16.1 GB", "权重 16.1 GB")],
    };
    let unread =
        || Err(said!("DCGM was not read: add --metrics-url", "未读取 DCGM：加 --metrics-url"));
    let mut signals = Signals {
        engine: Some("vllm"),
        until: At::ZERO + Span::from_s(40.0),
        ..Signals::default()
    };
    let waiting = Gauge { mean: 12.0, min: 0.0, max: 15.0, first: 0.0, last: 3.0, n: 40 };
    signals.readings.insert(Signal::QueueDepth, Reading::Gauge(waiting));
    signals.readings.insert(Signal::Preemptions, Reading::Counter(4.0));
    let queue = Taken { count: 1000.0, sum: 150.0, buckets: Vec::new() };
    signals.readings.insert(Signal::QueueTime, Reading::Histogram(queue));
    signals.readings.insert(Signal::KvCapacity, Reading::Fact(400_000.0));
    let off =
        said!("start the server with --enable-mfu-metrics", "启动服务时加 --enable-mfu-metrics");
    signals.absent.insert(Signal::EstimatedFlops, off);
    Inside {
        unread: Vec::new(),
        signals: Some(signals),
        stages: Stages {
            ttft_mean_ms: Some(204.0),
            stages,
            foreign_share: Some(0.012),
            ..Stages::default()
        },
        efficiency: Efficiency {
            figures: vec![
                figure("mfu", Ok(0.052), "share"),
                figure("hfu", unread(), "share"),
                figure("step_over_bound", Ok(1.8), "ratio"),
                figure("prefix_hit_rate", Ok(0.5), "share"),
            ],
            panel: vec![
                figure("memory_bandwidth", Ok(0.61), "share"),
                figure("kernel_time", unread(), "share"),
                figure("mfu", Ok(0.052), "share"),
                figure("tpot_ms", Ok(12.7), "ms/token"),
                figure("communication_time", Ok(0.0), "share"),
                figure("goodput_tok_s", Ok(512.0), "tok/s"),
            ],
        },
        findings: Some(vec![found(true), found(false)]),
        lints: vec![
            Lint {
                id: "mean_only",
                concerns: "ttft_ms",
                says: said!("the mean of 204 ms hides 400 ms", "均值 204 ms 掩盖了 400 ms"),
            },
            Lint {
                id: "busy_as_efficiency",
                concerns: "mfu",
                says: said!("5 % is usual of decoding", "解码时 5 % 属正常"),
            },
            Lint {
                id: "of_no_number",
                concerns: "power_w",
                says: said!("it concerns what is not shown", "所涉指标未显示"),
            },
        ],
        missing: vec![said!("how often prefixes were evicted", "前缀被驱逐的次数")],
    }
}

fn found(first: bool) -> Finding {
    let number = |what, value, unit, from| Evidence { what, value, unit, from };
    let waiting = number(said!("requests waiting, mean", "平均等待数"), 12.0, "", From::Server);
    Finding {
        rule: if first { "seat_limit" } else { "prefill_backlog" },
        class: Class::Queueing,
        confidence: if first { Confidence::Confirmed } else { Confidence::Possible },
        title: said!("all seats are taken", "席位已满"),
        says: said!("74 % of TTFT is waiting", "TTFT 的 74 % 是等待"),
        evidence: vec![
            number(said!("queue time", "排队时间"), 150.0, "ms", From::Server),
            number(said!("share of TTFT", "占 TTFT 比例"), 0.735, "share", From::Client),
            waiting.clone(),
        ],
        against: if first { Vec::new() } else { vec![waiting] },
        missing: if first { Vec::new() } else { vec![said!("the seat limit", "席位上限")] },
        experiment: said!("the jump stays with longer prompts", "输入变长后跳升处不变"),
        command: first.then(|| {
            "for c in 1 4 16 64; do goodput bench http://127.0.0.1:8000 -c $c; done".to_owned()
        }),
        directions: vec![
            Direction {
                text: said!("allow more requests at once", "提高可同时运行的请求数"),
                flag: Some("--max-num-seqs".to_owned()),
            },
            Direction { text: said!("add a replica", "增加副本"), flag: None },
        ],
        improves: &["ttft_ms", "goodput_req_s"],
        share: if first { 0.74 } else { 0.1 },
        seen_live: first,
    }
}

/// The healthy run with what was seen inside its server.
pub(crate) fn seen() -> Summary {
    Summary { inside: seen_inside(), ..healthy().summary() }
}

/// Records and what is known besides.
pub(crate) struct Run {
    pub(crate) records: Vec<Record>,
    pub(crate) facts: RunFacts,
}

impl Run {
    fn new(builds: Vec<Build>, facts: RunFacts) -> Self {
        Self { records: build::records(builds), facts }
    }

    pub(crate) fn summary(&self) -> Summary {
        summarise(&self.records, &self.facts, &GOODPUT)
    }
}

/// Every run and its name.
pub(crate) fn all() -> Vec<(&'static str, Run)> {
    vec![
        ("healthy", healthy()),
        ("capped", capped()),
        ("failing", failing()),
        ("unreachable", unreachable()),
        ("nothing_sent", nothing_sent()),
        ("single", single()),
        ("imported_chat", imported_chat()),
        ("closed", closed()),
        ("burst_of_whole_chunks", burst_of_whole_chunks()),
        ("tenants", tenants()),
    ]
}

fn facts(kind: LoadKind, arrivals: &str) -> RunFacts {
    let mut facts = build::facts(kind);
    facts.run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned();
    facts.target = "http://127.0.0.1:8000/v1/chat/completions".to_owned();
    facts.model = Some("example/model-8b".to_owned());
    facts.load.arrivals = arrivals.to_owned();
    facts.load.schedule_hash = "5f2b1d00c3a94e77".to_owned();
    facts.workload = WorkloadFacts {
        source: "synthetic text (random)".to_owned(),
        input_lengths: "512 tokens".to_owned(),
        output_lengths: "21".to_owned(),
        tokenizer: None,
        cache_regime: "cold".to_owned(),
        random_text: true,
        ..WorkloadFacts::default()
    };
    facts.instrument.stamp_source = "kernel".to_owned();
    facts.instrument.client_lag_us = Some([4.0, 21.0, 96.0]);
    facts.request_timeout = Some(Span::from_ms(30_000));
    facts
}

/// 21 tokens in 21 chunks, 12 ms apart, the prompt counted; one gap is longer
/// by `stall_ms`.
fn answered(index: u32, intended_ms: i64, ttft_ms: i64, stall_ms: i64) -> Build {
    let mut build = request(index).at(intended_ms).usage(21).prompt(512).headers(5).event(5, ROLE);
    for chunk in 0..21 {
        let late = if chunk > 10 { stall_ms } else { 0 };
        build = build.event(ttft_ms + 12 * chunk + late, TEXT);
    }
    build.event(ttft_ms + 12 * 20 + stall_ms + 2, FINISH)
}

/// 25 req/s for 40 s. Of 1000 requests every 40th waits 400 ms for its first
/// token and misses the SLO; every 50th stalls once for 600 ms in the middle.
/// Each is sent 50 µs late, half the prompts are cached.
pub(crate) fn healthy() -> Run {
    let builds = (0..1000).map(|index| {
        let ttft_ms = if index % 40 == 39 { 400 } else { 150 + i64::from(index % 100) };
        let stall_ms = if index % 50 == 49 { 588 } else { 0 };
        let tenant = if index % 4 == 0 { "上海交易所" } else { "interactive" };
        answered(index, i64::from(index) * 40, ttft_ms, stall_ms).label("tenant", tenant).edit(
            |record| {
                let sent_at = record.stamps.intended_at + Span::from_us(50);
                record.stamps.released_at = Some(sent_at);
                record.stamps.sent_at = Some(sent_at);
                record.stamps.headers_at = Some(sent_at + Span::from_ms(5));
                record.answer.counts.cached = Some(Tokens::new(256));
            },
        )
    });
    let mut facts = facts(LoadKind::Open, "Poisson process");
    facts.load.request_rate = Some(25.0);
    facts.load.burstiness = Some(1.0);
    facts.load.planned_duration = Some(Span::from_ms(40_000));
    facts.load.seed = 7;
    facts.slo = Some(Slo::parse_goodput(["ttft:300 tpot:60"]).expect("an SLO"));
    facts.percentiles = vec![75.0, 99.0, 99.9];
    facts.instrument.stamp_error_p99_us = Some(12.0);
    facts.instrument.planned_requests = Some(1000);
    Run::new(builds.collect(), facts)
}

/// 20 req/s for 10 s against a cap of 4, each answer 400 ms: ten a second leave,
/// and request k waits until the one four places before it is through.
pub(crate) fn capped() -> Run {
    let builds = (0..200).map(|index| {
        let intended_ms = i64::from(index) * 50;
        let start_ms = i64::from(index % 4) * 50 + i64::from(index / 4) * 400;
        let waited = answered(index, intended_ms, 158, 0);
        waited.intended(intended_ms).sent(start_ms)
    });
    let mut facts = facts(LoadKind::Capped, "constant gaps");
    facts.load.request_rate = Some(20.0);
    facts.load.users = Some(4);
    facts.slo = Some(Slo::parse_goodput(["ttft:500"]).expect("an SLO"));
    Run::new(builds.collect(), facts)
}

/// 25 req/s for 8 s from three tenants. Those of `acme` have a promise of
/// their own, those of `bolt` wait twice as long, and nothing is promised to `coil`.
pub(crate) fn tenants() -> Run {
    let builds = (0..200).map(|index| {
        let (tenant, ttft_ms) = match index % 4 {
            0 | 1 => ("acme", 150),
            2 => ("bolt", 300),
            _ => ("coil", 150),
        };
        answered(index, i64::from(index) * 40, ttft_ms, 0).label("tenant", tenant)
    });
    let mut facts = facts(LoadKind::Open, "constant gaps");
    facts.load.request_rate = Some(25.0);
    facts.slo = Some(
        Slo::parse(["tenant=acme: start <= 200ms, icl.p99 <= 20ms; tenant=bolt: ttft <= 250ms"])
            .expect("an SLO"),
    );
    Run::new(builds.collect(), facts)
}

fn broken(build: Build, kind: FailureKind, after_ms: i64) -> Build {
    build.outcome(Outcome::Failed(kind)).ended(after_ms)
}

fn message(build: Build, text: &str) -> Build {
    build.edit(|record| record.answer.message = Some(text.to_owned()))
}

/// 100 requests, 10 a second: 60 well, 15 refused (12 with 429, 3 with 503),
/// 10 cut off by the time limit of 30 s, 5 disconnected after a first token, 3
/// empty, 2 errors inside the stream, 2 never sent, 3 stopped by us.
pub(crate) fn failing() -> Run {
    let builds = (0..100).map(|index| {
        let at_ms = i64::from(index) * 100;
        let sent = request(index).at(at_ms).label("tenant", "a\u{1b}[31mb\u{202e}c");
        match index % 100 {
            0..60 => answered(index, at_ms, 200 + i64::from(index), 0),
            60..72 => message(
                broken(sent, FailureKind::HttpStatus, 2).status(429),
                "{\"error\":\"slow down\u{1b}[2J\u{1b}]0;pwned\u{7}\r\n\u{202e}now\"}",
            ),
            72..75 => broken(sent, FailureKind::HttpStatus, 2).status(503),
            75..85 => broken(sent, FailureKind::TotalTimeout, 30_000),
            85..90 => broken(sent.event(300, TEXT), FailureKind::Disconnected, 900),
            90..93 => sent.event(50, FINISH).outcome(Outcome::Empty),
            93..95 => message(
                broken(sent.event(40, Carries::ERROR), FailureKind::InBand, 40),
                &"x".repeat(700),
            ),
            95..97 => sent.outcome(Outcome::NotSent(NotSentKind::ClientResource)).unreleased(),
            _ => sent.ended(100).outcome(Outcome::Cancelled),
        }
    });
    let mut facts = facts(LoadKind::Open, "constant gaps");
    facts.load.request_rate = Some(10.0);
    facts.slo = Some(Slo::parse_goodput(["ttft:300 e2el:1000"]).expect("an SLO"));
    facts.instrument.stamp_source = "user".to_owned();
    facts.instrument.client_lag_us = None;
    Run::new(builds.collect(), facts)
}

/// Nobody listens: 20 requests, none connected.
pub(crate) fn unreachable() -> Run {
    let builds = (0..20).map(|index| {
        let refused = request(index).at(i64::from(index) * 100);
        let refused = broken(refused, FailureKind::Connect, 1).edit(|record| {
            let released_at = record.stamps.released_at;
            record.stamps.ended_at = released_at.map(|at| at + Span::from_us(300));
            record.stamps.sent_at = None;
            record.answer.http_status = None;
        });
        message(refused, "connection refused (os error 111)")
    });
    let mut facts = facts(LoadKind::Open, "Poisson process");
    facts.slo = Some(Slo::parse_goodput(["ttft:300"]).expect("an SLO"));
    facts.percentiles = vec![99.9];
    Run::new(builds.collect(), facts)
}

/// Interrupted before the first request.
pub(crate) fn nothing_sent() -> Run {
    let mut facts = facts(LoadKind::Closed, "an answer frees a user");
    facts.load.users = Some(8);
    facts.interrupted = true;
    Run::new(Vec::new(), facts)
}

/// One request, by the embedded engine.
pub(crate) fn single() -> Run {
    let mut facts = facts(LoadKind::Closed, "an answer frees a user");
    facts.load.users = Some(1);
    facts.target = "embedded engine".to_owned();
    facts.simulated = true;
    Run::new(vec![answered(0, 0, 150, 0)], facts)
}

/// A chat run of vLLM's client: its file holds TTFT and gaps of each request,
/// and TPOT and E2EL only as aggregates.
pub(crate) fn imported_chat() -> Run {
    let builds = (0..10).map(|index| {
        let start_s = f64::from(index) * 0.5;
        let source = SourceTimes {
            ttft_s: Some(0.1 + 0.01 * f64::from(index)),
            itl_s: vec![0.02; 20],
            start_s: Some(12_345.0 + start_s),
            latency_s: None,
        };
        let lasted_s = 0.1 + 0.01 * f64::from(index) + 0.4;
        request(index).usage(21).prompt(512).source(source).edit(|record| {
            let at = At::ZERO + Span::from_s(start_s);
            record.stamps.intended_at = at;
            record.stamps.released_at = Some(at);
            record.stamps.sent_at = Some(at);
            record.stamps.ended_at = Some(at + Span::from_s(lasted_s));
            record.answer.http_status = None;
        })
    });
    let mut facts = facts(LoadKind::Open, "gamma gaps of shape 1 at 2 req/s, rescaled");
    facts.run_id = String::new();
    facts.target = "imported from vllm bench serve".to_owned();
    facts.load.request_rate = Some(2.0);
    facts.load.schedule_hash = String::new();
    facts.workload = WorkloadFacts {
        source: "not in the file".to_owned(),
        input_lengths: "not in the file".to_owned(),
        output_lengths: "not in the file".to_owned(),
        cache_regime: "not in the file".to_owned(),
        prefix_tokens: None,
        ..WorkloadFacts::default()
    };
    facts.instrument = measure::facts::InstrumentFacts::default();
    facts.request_timeout = None;
    facts.source_duration_s = Some(5.5);
    facts.as_reported = vec![
        ("mean_tpot_ms".to_owned(), 20.123_456),
        ("median_tpot_ms".to_owned(), 20.1),
        ("p99_tpot_ms".to_owned(), 20.9),
        ("mean_e2el_ms".to_owned(), 551.5),
        ("p99_e2el_ms".to_owned(), 12_345.678),
    ];
    Run::new(builds.collect(), facts)
}

/// Four users for half a minute; each answer takes 502 ms and the user asks
/// again at once, 60 times.
pub(crate) fn closed() -> Run {
    let builds = (0..240).map(|index| {
        let at_ms = i64::from(index % 4) * 10 + i64::from(index / 4) * 502;
        answered(index, at_ms, 260, 0)
    });
    let mut facts = facts(LoadKind::Closed, "an answer frees a user");
    facts.load.users = Some(4);
    facts.engine = Some("vllm 0.27.1".to_owned());
    Run::new(builds.collect(), facts)
}

/// Five requests at once, answered in chunks of ten tokens each: ITL has a mean and
/// no percentiles.
pub(crate) fn burst_of_whole_chunks() -> Run {
    let builds = (0..5).map(|index| {
        let sent = request(index).usage(30).prompt(512).event(100, TEXT).event(220, TEXT);
        sent.event(340, TEXT.with(FINISH))
    });
    Run::new(builds.collect(), facts(LoadKind::Burst, "all at once"))
}
