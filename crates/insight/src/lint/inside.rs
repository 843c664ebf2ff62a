//! Lints about what was seen inside the server, and about efficiency.

use measure::hardware::FeedForward;
use measure::metric::Text;
use measure::said;
use measure::said::Said;
use measure::signal::{Role, Signal};

use super::{Entry, Judge};
use crate::view::View;

pub(super) const BUSY_IS_USEFUL: Entry = Entry {
    id: "busy_is_useful",
    code: "L4",
    concerns: "gpu_utilisation",
    title: Text { en: "utilisation taken for efficiency", zh: "把 GPU 利用率当作效率" },
    instead: Text {
        en: "utilisation says that some kernel ran; MFU, MBU and tokens say what came of it",
        zh: "利用率只说明有内核在运行；产出看 MFU、MBU 和 token 数",
    },
    judge: Judge::Run(busy_is_useful),
};

/// Utilisation that looks like a full accelerator.
const LOOKS_FULL: f64 = 0.8;
/// Shares of the peaks above which it is used well.
const USED_WELL: f64 = 0.5;

fn busy_is_useful(view: &View<'_>) -> Option<Said> {
    let busy = view.signal(Signal::GpuBusy).filter(|busy| *busy >= LOOKS_FULL)?;
    let efficiency = &view.summary.inside.efficiency;
    let (mfu, mbu) = (efficiency.value("mfu"), efficiency.value("mbu"));
    if mfu.into_iter().chain(mbu).any(|share| share >= USED_WELL) {
        return None;
    }
    let share = |value: Option<f64>, zh: bool| match value {
        Some(value) => format!("{:.0} %", 100.0 * value),
        None if zh => "未知".to_owned(),
        None => "not known".to_owned(),
    };
    Some(Said {
        en: format!(
            "Kernels ran {:.0} % of the time, which is not how well the accelerator is used: MFU \
             is {}, MBU {}.",
            100.0 * busy,
            share(mfu, false),
            share(mbu, false),
        ),
        zh: format!(
            "{:.0} % 的时间里有内核在运行，但这不等于加速器用得好：MFU {}，MBU {}。",
            100.0 * busy,
            share(mfu, true),
            share(mbu, true),
        ),
    })
}

pub(super) const FULL_IS_GOOD: Entry = Entry {
    id: "full_is_good",
    code: "L6",
    concerns: "kv_cache_usage",
    title: Text { en: "full memory taken for a good sign", zh: "认为显存占用越高越好" },
    instead: Text {
        en: "read KV usage with preemptions, waiting requests, hit rate and P99",
        zh: "KV 占用要与抢占、等待数、命中率和 P99 一起看",
    },
    judge: Judge::Run(full_is_good),
};

/// KV usage that leaves no room for a request.
const NO_ROOM: f64 = 0.95;

fn full_is_good(view: &View<'_>) -> Option<Said> {
    let kv = view.signals()?.gauge(Signal::KvUsage).filter(|kv| kv.max >= NO_ROOM)?;
    let waiting = view.signals()?.gauge(Signal::QueueDepth).map_or(0.0, |gauge| gauge.mean);
    let preempted = view.signals()?.increase(Signal::Preemptions).unwrap_or(0.0);
    (waiting >= 0.5 || preempted > 0.0).then(|| {
        said!(
            "The KV cache was {kv:.0} % full while {waiting:.1} requests waited and {preempted:.0} \
             lost their blocks and were computed again: it is a bottleneck and no good use.",
            "KV 缓存占用达 {kv:.0} %，同时平均有 {waiting:.1} 个请求在等待，{preempted:.0} 次抢占后\
             重算：这是瓶颈，而不是用得好。",
            kv = 100.0 * kv.max,
            waiting = waiting,
            preempted = preempted,
        )
    })
}

pub(super) const OTHER_PEAK: Entry = Entry {
    id: "other_peak",
    code: "L16",
    concerns: "mfu",
    title: Text { en: "a share of the wrong peak", zh: "以错误的峰值计算占比" },
    instead: Text {
        en: "MFU is against the dense peak of the precision that multiplies; sparse ones are twice that",
        zh: "MFU 以实际运算精度的稠密峰值为分母；稀疏峰值是它的两倍",
    },
    judge: Judge::Run(other_peak),
};

fn other_peak(view: &View<'_>) -> Option<Said> {
    let accelerator = view.deployment.accelerator.as_ref()?;
    let weights = view.deployment.weights?;
    view.summary.inside.efficiency.value("mfu")?;
    let computes = accelerator.compute_precision(weights);
    (computes != weights).then(|| {
        said!(
            "Weights are {weights} and {accelerator} multiplies them as {computes}: MFU is against \
             that peak, so it does not compare with one that multiplies {weights}.",
            "权重为 {weights}，而 {accelerator} 以 {computes} 运算：MFU 以后者的峰值为分母，不能与\
             直接以 {weights} 运算的结果相比。",
            weights = weights.name(),
            computes = computes.name(),
            accelerator = accelerator.name,
        )
    })
}

pub(super) const COST_WITHOUT_BASIS: Entry = Entry {
    id: "cost_without_basis",
    code: "L17",
    concerns: "cost_per_million_tokens",
    title: Text { en: "a cost at any latency", zh: "未说明延迟条件的成本" },
    instead: Text {
        en: "give price, accelerators and objective with a cost; the cost of good tokens is what users pay",
        zh: "成本要写明价格、卡数和 SLO；用户真正付的是达标 token 的成本",
    },
    judge: Judge::Run(cost_without_basis),
};

fn cost_without_basis(view: &View<'_>) -> Option<Said> {
    let price = view.deployment.price_per_hour?;
    let cost = view.summary.inside.efficiency.value("cost_per_million_tokens")?;
    view.summary.facts.slo.is_none().then(|| {
        said!(
            "{cost:.2} for a million output tokens (at {price:.2} an hour) is at whatever latency \
             came of it: no objective was given, so it is not the cost of tokens that are worth \
             something.",
            "每百万输出 token {cost:.2}（按每小时 {price:.2}）没有延迟条件：未给出 SLO，因此不是\
             达标 token 的成本。",
            cost = cost,
            price = price,
        )
    })
}

pub(super) const COARSE_BUCKETS: Entry = Entry {
    id: "coarse_buckets",
    code: "L21",
    concerns: "queueing_ms",
    title: Text { en: "a percentile from coarse buckets", zh: "由粗分桶推算的分位数" },
    instead: Text {
        en: "inside one bucket a percentile is a guess; read the mean, or per-request timings",
        zh: "落在同一个桶内的分位数只是猜测；看平均值或逐请求时间",
    },
    judge: Judge::Run(coarse_buckets),
};

/// Share of TTFT from which on the wait is worth a percentile.
const WAIT_MATTERS: f64 = 0.1;
/// Share of the observations that makes a bucket all of them.
const IN_ONE_BUCKET: f64 = 0.9;

fn coarse_buckets(view: &View<'_>) -> Option<Said> {
    let queue = view.signals()?.taken(Signal::QueueTime)?;
    let (bound, below) = *queue.buckets.first()?;
    let ttft_ms = view.figure("ttft_ms", "mean")?;
    let mean_ms = 1e3 * queue.mean()?;
    let in_one = queue.count > 0.0 && below >= IN_ONE_BUCKET * queue.count;
    (in_one && mean_ms > WAIT_MATTERS * ttft_ms && bound > 3.0 * queue.mean()?).then(|| {
        said!(
            "{share:.0} % of the waits fall into the server's first bucket, up to {bound:.0} ms: \
             its percentiles are guesses, the mean of {mean:.0} ms is not.",
            "{share:.0} % 的排队时间落在服务端的第一个桶（不超过 {bound:.0} ms）：由它推算的分位数\
             不可信，平均值 {mean:.0} ms 可信。",
            share = 100.0 * below / queue.count,
            bound = 1e3 * bound,
            mean = mean_ms,
        )
    })
}

pub(super) const MIXED_SCOPES: Entry = Entry {
    id: "mixed_scopes",
    code: "L22",
    concerns: "per_gpu_output_tok_s",
    title: Text { en: "figures of different scopes", zh: "统计范围不一致" },
    instead: Text {
        en: "divide by all accelerators of the deployment, and take power and energy of the same",
        zh: "按部署中的全部加速器折算，功率与能耗也取同一范围",
    },
    judge: Judge::Run(mixed_scopes),
};

fn mixed_scopes(view: &View<'_>) -> Option<Said> {
    let told = view.deployment.accelerators()?;
    let instances = &view.signals()?.instances;
    let measured = |instance: &&measure::signal::Instance| {
        instance.role == Role::Device && instance.readings.contains_key(&Signal::Power)
    };
    let seen = instances.iter().filter(measured).count() as u32;
    (seen > 0 && seen != told).then(|| {
        said!(
            "Power was read of {seen} accelerators and the deployment has {told}: figures per \
             accelerator and per joule are of different machines.",
            "读到了 {seen} 块加速器的功率，而部署有 {told} 块：按卡与按焦耳的数字不是同一批机器。",
            seen = seen,
            told = told,
        )
    })
}

pub(super) const RANDOM_TEXT: Entry = Entry {
    id: "random_text",
    code: "L25",
    concerns: "tpot_ms",
    title: Text {
        en: "random text for an engine that guesses", zh: "对会推测的引擎使用随机文本"
    },
    instead: Text {
        en: "use real text where drafts are accepted or experts are chosen by what is said",
        zh: "推测解码的接受率和专家的选择都取决于文本内容，应使用真实文本",
    },
    judge: Judge::Run(random_text),
};

/// The same is a caveat where the user says what the engine does; here the
/// engine's own counters or the model's shape say it.
fn random_text(view: &View<'_>) -> Option<Said> {
    let workload = &view.summary.facts.workload;
    let told = |fact: &str| workload.engine_facts.iter().any(|known| known == fact);
    if !workload.random_text {
        return None;
    }
    let drafted = view.signals().and_then(|signals| signals.increase(Signal::DraftTokens));
    if let Some(drafted) = drafted.filter(|tokens| *tokens > 0.0 && !told("speculation")) {
        let accepted = view.signals()?.increase(Signal::AcceptedTokens)?;
        return Some(said!(
            "Prompts are words in random order and the engine speculates: {share:.0} % of its \
             drafts were accepted, which real text would change, and TPOT with it.",
            "输入是随机词序的文本，而引擎在做推测解码：草稿接受率为 {share:.0} %，真实文本会有不同，\
             TPOT 也随之改变。",
            share = 100.0 * accepted / drafted,
        ));
    }
    let model = view.deployment.model.as_ref()?;
    let has_experts = matches!(model.feed_forward, FeedForward::Mixture { .. });
    (has_experts && !told("moe")).then(|| {
        said!(
            "Prompts are words in random order and {model} has experts: which of them are busy is \
             not what real text gives.",
            "输入是随机词序的文本，而 {model} 是 MoE：专家的负载分布与真实文本不同。",
            model = model.name,
        )
    })
}
