//! The words of the report, by section, and of what is told below it. What a
//! figure, a failure, a reason or a caveat means stands with it; here is what
//! stands around them.

use measure::metric::Text;

macro_rules! texts {
    ($($name:ident = $en:literal, $zh:literal;)*) => {
        $(#[doc = $en] pub const $name: Text = Text { en: $en, zh: $zh };)*

        /// Every text of the report and its name.
        #[cfg(test)]
        pub(super) const ALL: &[(&str, Text)] = &[$((stringify!($name), $name)),*];
    };
}

/// Signals of the panel that are no metric of the registry, by key.
pub const PANEL_NAMES: &[(&str, Text)] = &[
    ("memory_bandwidth", Text { en: "memory bandwidth used", zh: "显存带宽利用率" }),
    ("kernel_time", Text { en: "time in kernels", zh: "kernel 执行时间占比" }),
    ("communication_time", Text { en: "time between accelerators", zh: "卡间通信时间占比" }),
];

texts! {
    // Between the parts of a list: of sentences and figures, of names.
    COMMA = ", ", "，";
    BETWEEN_NAMES = ", ", "、";
    NOT_AVAILABLE = "n/a ({why})", "n/a（{why}）";
    NAMES_NOT_AVAILABLE = "{names} n/a ({why})", "{names} n/a（{why}）";
    NOT_MEASURED = "not measured", "未测量";
    NEVER = "never", "未返回";
    FEW = " (n={n})", "（n={n}）";
    P50_P99_MAX = "P50 {p50}, P99 {p99}, max {max}", "P50 {p50}，P99 {p99}，最大 {max}";

    // Head.
    TITLE = "goodput report", "goodput 报告";
    TITLE_SIMULATED = "goodput report · SIMULATED: an engine model answered", "goodput 报告 · 模拟数据：应答的是引擎模型";
    NEEDS_SCRIPT = "Charts and the playground are drawn by scripts inside this file, which are switched off here.", "图表和指标实验场由本文件内的脚本绘制，当前脚本已被禁用。";
    RUN = "run {id}", "测试 {id}";
    CONDITIONS = "conditions: input {input} · output {output} · {load} · prefix cache {regime}", "条件：输入 {input} · 输出 {output} · {load} · 前缀缓存 {regime}";
    HEADLINE_ATTAINED = " ({share} attained)", "（达标率 {share}）";
    HEADLINE_OF = "of the {ok} of {total} ok: ", "{total} 个请求中成功的 {ok} 个：";
    HEADLINE_OUTPUT = "{rate} output tok/s", "输出 {rate} tok/s";
    HEADLINE_INPUT = "{rate} input tok/s", "输入 {rate} tok/s";
    HEADLINE_NO_INPUT = "input tok/s n/a", "输入 tok/s n/a";
    HEADLINE_NO_OUTPUT = "output tok/s n/a", "输出 tok/s n/a";

    // Definitions.
    DEFINITIONS = "Definitions ({name})", "指标口径（{name}）";
    GAPS = "gaps", "间隔";
    TOKEN_COUNTS = "token counts", "token 计数";
    PERCENTILES = "percentiles", "分位数";
    FAILURES = "failures", "失败请求";
    CAP = "cap", "并发上限";
    SOURCE_OF_ANSWERS = "{source} ({n} answers)", "{source}（{n} 个回答）";
    NO_ANSWER_COUNTED = "n/a (no answer was counted)", "n/a（没有可计数的回答）";

    // What was offered.
    OFFERED_TITLE = "What was offered, and whether the run can be trusted", "负载情况与结果可信度";
    LOAD = "load", "负载";
    OFFERED = "offered", "到达速率";
    ASKED_FOR = " (asked for: {rate} req/s)", "（设定值 {rate} req/s）";
    RELEASED = "released", "放行速率";
    COMPLETED = "completed", "完成速率";
    IN_FLIGHT = "in flight, at most", "最大在途请求";
    REQUEST = "{n} request", "{n} 个";
    REQUESTS = "{n} requests", "{n} 个";
    USER = "{n} user", "{n} 个用户";
    USERS = "{n} users", "{n} 个用户";
    MAKESPAN = "makespan", "总时长（makespan）";
    OUTCOMES = "requests", "请求结果";
    OUTCOMES_OF = "{parts} of {total}", "共 {total} 个：{parts}";
    OK = "{n} ok", "成功 {n}";
    EMPTY = "{n} empty", "空回答 {n}";
    FAILED = "{n} failed", "失败 {n}";
    NOT_SENT = "{n} not sent", "未发出 {n}";
    CANCELLED = "{n} cancelled", "已取消 {n}";
    CONVERSATIONS = "conversations", "会话";
    CONVERSATIONS_OF = "{parts} of {total} begun; {ok} of {turns} turns ok", "已开始 {total} 个：{parts}；{turns} 轮中成功 {ok} 轮";
    CONVERSATION_LASTED = "those held to the end lasted {figures}", "完整进行的会话用时 {figures}";
    HELD = "{n} held to the end", "完整进行 {n}";
    BROKEN = "{n} broken by a failed turn", "因某轮失败而中断 {n}";
    STOPPED = "{n} stopped", "被停止 {n}";
    OPEN = "open loop", "开环";
    CAPPED = "open loop capped at {users} in flight", "开环，在途请求上限 {users}";
    CAPPED_SOMEWHERE = "open loop with a cap", "开环，有并发上限";
    CLOSED = "closed loop, {users}", "闭环，{users}";
    CLOSED_SOMEHOW = "closed loop", "闭环";
    BURST = "burst", "突发";
    LOAD_UNKNOWN = "n/a (the imported file does not say)", "n/a（导入的文件没有说明）";
    VALIDITY = "validity", "可信度";
    REASON = "{verdict}: {text}", "{verdict}：{text}";
    SENT_LATE = "sent late by", "发送迟到";
    BURST_WITHIN = "burst sent within", "突发发送用时";
    STAMPS = "receive stamps", "接收时间戳";
    STAMP_ERROR = "{source}; the arrival was at most {error} earlier, at P99", "{source}；实际到达时刻至多早 {error}（P99）";
    NOTHING_RECEIVED = "n/a (nothing was received)", "n/a（没有收到任何数据）";
    CLIENT_LAG = "client's own lag", "压测端滞后";
    FLOOR = "floor of this machine", "本机误差下限";
    FLOOR_FIGURES = "late P99 {late}, lag P99 {lag}, stamp error P99 {stamp}, valid up to {chunks} chunks/s (selftest)", "迟到 P99 {late}，滞后 P99 {lag}，时间戳误差 P99 {stamp}，{chunks} chunk/s 以内可信（selftest）";
    STEADY = "steady window", "稳态窗口";
    STEADY_WINDOW = "{length}, from {from} to {until}, {n} in flight on average", "{length}，从 {from} 到 {until}，平均在途请求数 {n}";
    NO_STEADY = "none ({why})", "无（{why}）";

    // Failures.
    FAILURES_TITLE = "What went wrong", "失败与异常";
    NO_REQUESTS = "n/a (there are no requests)", "n/a（没有请求）";
    ALL_WELL = "nothing: every request ended well", "没有异常：所有请求都正常结束";
    EMPTY_MEANS = "{n} empty: finished without any output", "空回答 {n}：正常结束但没有任何输出";
    CANCELLED_MEANS = "{n} cancelled: stopped by goodput: an interrupt, the end of the run or a stop rule", "已取消 {n}：由 goodput 停止，原因是中断、压测结束或停止规则";
    KIND_MEANS = "{n} {kind}: {means}", "{kind} {n}：{means}";
    HTTP_STATUS = "HTTP {status}: {n}", "HTTP {status}：{n}";
    HINT = "hint: {hint}", "建议：{hint}";
    FIRST_SAID = "the first said: {message}", "首个报错：{message}";

    // Workload.
    WORKLOAD = "Workload", "工作负载";
    PROMPTS = "prompts", "prompt 来源";
    INPUT_LENGTH = "input length", "输入长度";
    OUTPUT_LENGTH = "output length", "输出长度";
    PREFIX_CACHE = "prefix cache", "前缀缓存";
    CACHED_SHARE = "{regime}; {share} of prompt tokens came from it", "{regime}；{share} 的输入 token 由它提供";
    CACHED_UNKNOWN = "{regime}; cached share {why}", "{regime}；命中占比 {why}";
    SCHEDULE = "schedule", "到达计划";
    SEED_AND_DIGEST = "seed {seed}, digest {digest}", "随机种子 {seed}，摘要 {digest}";
    NOT_STATED = "n/a (not stated)", "n/a（未说明）";
    FIXED_LENGTH = "{n} tokens", "{n} 个 token";
    LENGTH_SERVED = "asked {asked}; served mean {mean}, P50 {p50}, max {max} tokens", "设定 {asked}；实际均值 {mean}，P50 {p50}，最大 {max} 个 token";
    LENGTH_NOT_SERVED = "asked {asked}; served n/a ({why})", "设定 {asked}；实际 n/a（{why}）";

    // Replay.
    REPLAY_TITLE = "Replay of the trace", "trace 回放";
    REPLAY_OF = "trace", "trace 行数";
    REPLAY_ROWS = "{rows} rows at speed {speed}{cut}", "{rows} 行，速度 {speed}{cut}";
    REPLAY_WINDOW = ", cut to {from} to {until} of its time", "，截取其时间 {from} 至 {until}";
    REPLAY_ARRIVALS = "arrivals", "到达";
    REPLAY_COUNTS = "{planned} planned, {sent} sent, {missed} missed, {duplicated} rows sent again", "计划 {planned}，已发送 {sent}，未发送 {missed}，重复发送的行 {duplicated}";
    REPLAY_LAG = "behind the trace", "相对 trace 的滞后";
    REPLAY_SPAN = "first to last", "首尾间隔";
    REPLAY_SPANS = "{planned} planned, {sent} as sent", "计划 {planned}，实际 {sent}";
    REPLAY_INPUT = "prompt tokens", "prompt token 数";
    REPLAY_OUTPUT = "answer tokens", "回答 token 数";
    REPLAY_KEPT = "{requested} requested, {served} served ({share}); {exact} of {n} requests exact", "请求 {requested}，实际 {served}（{share}）；{n} 个请求中 {exact} 个完全一致";
    NOTHING_SENT = "nothing was sent", "没有发送任何请求";

    // Latencies.
    PHASES_TITLE = "Latencies and phases, requests that ended well", "延迟与各阶段耗时（正常结束的请求）";
    COLUMN_UNIT = "unit", "单位";
    COLUMN_MEAN = "mean", "均值";
    COLUMN_STD = "std", "标准差";
    COLUMN_MIN = "min", "最小";
    COLUMN_MAX = "max", "最大";
    FEW_SAMPLES = "* fewer than ten samples lie beyond this percentile: a single request moves it", "* 该分位数之外的样本不足十个，一个请求就能改变它";
    PERCENTILES_OF = "{symbol} percentiles", "{symbol} 分位数";
    PHASES_NOT_AVAILABLE = "phases n/a ({why})", "各阶段 n/a（{why}）";
    INTENDED_TO_SENT = "intended → sent", "计划时刻 → 发出";
    SENT_TO_FIRST = "sent → first token", "发出 → 首 token";
    FIRST_TO_END = "first token → end", "首 token → 结束";
    LAST_TO_END = "last token → end", "末 token → 结束";
    AS_REPORTED = "as the source tool reported, by its definitions; its file does not let us recompute:", "原工具自报，按它的口径；文件内容不足以重算：";

    // Mean against tail.
    TAIL_TITLE = "Mean against tail", "均值与尾延迟";
    NO_TAIL = "n/a (a tail needs more than one request that ended well)", "n/a（至少要两个正常结束的请求才谈得上尾延迟）";
    MEAN_TPOT = "mean TPOT", "TPOT 均值";
    BY_REQUEST = "{ms} ms/token: every request counts once", "{ms} ms/token：按请求加权，每个请求算一次";
    MEAN_ITL = "mean ITL", "ITL 均值";
    BY_TOKEN = "{ms} ms: every token counts once, long answers weigh more{over_osl}", "{ms} ms：按 token 加权，长回答权重更大{over_osl}";
    OVER_OSL = "; Σ gaps ÷ Σ OSL {ms} ms", "；Σ 间隔 ÷ Σ OSL 为 {ms} ms";
    LONGEST_GAP = "longest gap", "最长停顿";
    STALLS = "{figures}; mean share of gaps above {limit}: {share}", "{figures}；超过 {limit} 的间隔平均占 {share}";
    READER_WAITS = "a reader waits", "读者等待";
    READER_WAIT = "{figures} in all, at {rate} tok/s from the first token on", "累计 {figures}；按首 token 之后每秒读 {rate} 个 token 计";
    EVERYBODY = "over all requests, failures too:", "全部请求，失败的也算：";
    NEVER_MEANS = "never: the request failed, so that its answer did not come at all", "未返回：请求失败，回答始终没有到达";
    AT_LEAST_MEANS = "≥: a time-out cut the wait off, the true value is at least this", "≥：等待被超时截断，真实值不小于此";
    BY_INPUT = "by prompt length, as the server counted it:", "按输入长度（以服务端计数为准）：";
    BY_LABEL = "by label {name}:", "按标签 {name}：";
    COLUMN_PROMPT = "prompt tokens", "输入 token";
    COLUMN_OK = "ok", "成功";
    UNLABELLED = "without it", "未标注";
    FAIRNESS = "fairness", "公平性";
    FAIRNESS_INDICES = "Jain's index between values of {name}: {indices} (1 is equal)", "{name} 各取值之间的 Jain 指数：{indices}（1 为完全公平）";
    JAIN_ATTAINMENT = "{index} of attainment", "达标率 {index}";
    JAIN_SPEED = "{index} of the tok/s that a request gets", "单个请求得到的 tok/s {index}";
    SLOWDOWN = "slowdown", "相对独占";
    LARGEST_SLOWDOWN = "{ratio}× of its isolated run at most: {figure} of {label}", "最多为独占时的 {ratio} 倍：{label} 的 {figure}";
    NO_ISOLATED = "no isolated run of {label} is known: send its requests alone, then add --isolated {label}:RUN", "没有 {label} 独占时的结果：单独发送其请求，再加 --isolated {label}:RUN";
    USE_CASE = "use case {name}: {reason}", "用例 {name}：{reason}";
    STEADY_ALONE = "in the steady window alone:", "只看稳态窗口：";

    // Throughput.
    THROUGHPUT = "Throughput ({rule})", "吞吐（{rule}）";
    IN_STEADY = "in the steady window", "稳态窗口内";
    NO_STEADY_SEE = "n/a (there is none, see 2)", "n/a（没有稳态窗口，见第 2 节）";
    OUTPUT_RATE = "{rate} output tok/s", "输出 {rate} tok/s";
    NO_OUTPUT_RATE = "output tok/s n/a ({why})", "输出 tok/s n/a（{why}）";
    REQUEST_RATE = "{rate} req/s", "请求 {rate} req/s";
    NO_REQUEST_RATE = "req/s n/a ({why})", "请求 req/s n/a（{why}）";
    INTERACTIVITY = "interactivity", "每用户输出速度";
    INTERACTIVITY_TAIL = "90 % of users get at least {rate} tok/s{few}", "90 % 的用户至少有 {rate} tok/s{few}";
    PEAK_SECOND = "peak second", "峰值（一秒内）";
    PEAK_EVENTS = "{n} events with a choice (vLLM's peak tok/s)", "{n} 个带 choice 的事件（即 vLLM 的峰值 tok/s）";
    PEAK_REQUESTS = "{n} requests touched (vLLM's peak concurrency)", "{n} 个请求在途（即 vLLM 的峰值并发）";

    // Stages of TTFT.
    STAGES_OF = "where the mean TTFT of {ms} goes, in the order in which a request passes:", "平均 TTFT {ms} 的构成，按请求经过的顺序：";
    COLUMN_STAGE = "stage", "阶段";
    COLUMN_SHARE = "share", "占比";
    COLUMN_FROM = "from", "来源";
    RESIDUAL = "{name}, what is left", "{name}（剩余部分）";
    STAGE_HOW = "{name}: {how}", "{name}：{how}";
    NO_FULL_SPLIT = "no full split: {why}", "未能完整拆分：{why}";
    STAGES = "stages of TTFT", "TTFT 各阶段";
    FOREIGN_SHARE = "{share} of the requests in the server's figures are of others", "服务端数据中有 {share} 的请求来自其他客户端";

    // Resources and directions.
    RESOURCES = "Resources", "资源效率";
    INPUTS = "{value}; {inputs}", "{value}；{inputs}";
    SEMICOLON = "; ", "；";
    PANEL = "busy is not useful: six signals that are read together", "忙碌不等于高效：以下六个信号须一起看";
    DIRECTIONS = "Directions", "优化方向";
    FINDINGS = "findings", "诊断结论";
    NOTHING_FOUND = "nothing stands out: no rule found a cause in these figures", "没有明显瓶颈：没有规则在这些数据中找到原因";
    FINDING_SAYS = "{title} ({class}; {rule}): {says}", "{title}（{class}；{rule}）：{says}";
    EVIDENCE = "evidence", "证据";
    EVIDENCE_ITEM = "{what} {value} ({from})", "{what} {value}（{from}）";
    AGAINST = "against it", "反面证据";
    NOTHING_AGAINST = "nothing was seen that speaks against it", "未见反面证据";
    STILL_MISSING = "to be sure", "尚缺证据";
    NEXT_EXPERIMENT = "next experiment", "下一步实验";
    CHANGE = "change", "调整方向";
    DIRECTION = "{text}: {flag}", "{text}：{flag}";
    MUST_IMPROVE = "must improve", "应改善";
    ONLY_MADE_DATA = "this rule was tested on made data only", "此规则只在构造数据上验证过";
    JUDGED_BY = "a change is judged by goodput and attainment, not by the figure that was tuned", "改动是否有效以有效吞吐和达标率为准，而不是被调的那个指标";
    NOT_CONCLUDED = "could not be concluded:", "无法得出结论：";
    LINT = "easily misread, {symbol}: {says} ({id})", "易误读，{symbol}：{says}（{id}）";
    BESIDE_TITLE = "goodput report · {n} runs side by side", "goodput 报告 · {n} 次测试并列";
    BESIDE_RUNS = "The runs", "各次测试";
    BESIDE_CONDITIONS = "Whether they can be compared", "是否可比";
    SAME_CONDITIONS = "lengths, arrivals and the state of the prefix cache are the same", "长度分布、到达方式和前缀缓存状态一致";
    NOT_COMPARABLE = "not comparable: the runs differ in what decides their figures", "不可比：以下决定数值的条件不同";
    ALSO_DIFFER = "they also differ in:", "其他不同之处：";
    COLUMN_CONDITION = "condition", "条件";
    NOT_GIVEN = "–", "（无）";
    BESIDE_FIGURES = "Figures", "数据对照";
    COLUMN_FIGURE = "figure", "指标";
    NO_VERDICT = "Which difference is more than chance is not said here: one run of each has no interval.", "这里不判断差异是否超出偶然：每种只测一次，没有置信区间。";
    STAGES_TITLE = "Where the time to the first token goes", "首 token 时间的构成";
    LINTS_TITLE = "Numbers that are easily misread here", "此次测试中易误读的数字";
    NO_LINTS = "none", "无";
    DIAGNOSE_TITLE = "goodput diagnose", "goodput 诊断";
    DIAGNOSE_TITLE_SIMULATED = "goodput diagnose · SIMULATED: an engine model answered", "goodput 诊断 · 模拟数据：应答的是引擎模型";
    IN_SHORT = "Diagnosis ({confidence}): {title}. {says}. To change: {change}. Must improve: {improves}. Details: goodput diagnose {run}", "诊断（{confidence}）：{title}。{says}。调整方向：{change}。应改善：{improves}。详情：goodput diagnose {run}";
    IN_SHORT_SIMULATED = "Diagnosis of a simulation ({confidence}): {title}. {says}. To change: {change}. Must improve: {improves}. Details: goodput diagnose {run}", "模拟数据的诊断（{confidence}）：{title}。{says}。调整方向：{change}。应改善：{improves}。详情：goodput diagnose {run}";
    IN_SHORT_NOTHING = "Diagnosis: no rule found a cause in these figures", "诊断：没有规则在这些数据中找到原因";
    IN_SHORT_NOT_SAID = "{nothing}. Not concluded: {missing}. Details: goodput diagnose {run}", "{nothing}。无法得出结论：{missing}。详情：goodput diagnose {run}";
    IN_SHORT_INVALID = "Diagnosis: none, because the run is INVALID: its figures do not describe the server", "诊断：无。此次测试为 INVALID，数据不能代表服务端";
    ASK_EXPLAIN = "goodput explain WORD tells what a figure or a failure means and how it is misread", "运行 goodput explain WORD 可查任一指标或失败类型的含义和常见误读";

    // Goodput.
    GOODPUT_TITLE = "Goodput and attainment, by which a change is judged", "有效吞吐（goodput）与达标率：评判改动的依据";
    NO_SLO = "n/a (no SLO was given; add --slo 'ttft <= 300ms, tpot <= 60ms')", "n/a（没有给出 SLO；可加 --slo 'ttft <= 300ms, tpot <= 60ms'）";
    SLO_JOINTLY = "SLO, jointly", "SLO（须同时满足）";
    NO_WINDOW = "n/a (the window has no length)", "n/a（时间窗口长度为零）";
    GOODPUT = "goodput", "有效吞吐";
    GOODPUT_RATES = "{requests} · {tokens} ({window})", "{requests} · {tokens}（{window}）";
    OVER_DURATION = "over the duration of the run", "按整次测试时长计";
    OVER_ARRIVALS = "over the arrival window of {length}", "按 {length} 的到达窗口计";
    OVER_MAKESPAN = "over the makespan", "按 makespan 计";
    ATTAINMENT = "attainment", "达标率";
    SHARE_OF = "{share} ({part} of {of})", "{share}（{part}/{of} 个请求）";
    NONE_JUDGED = "n/a (no request could be judged)", "n/a（没有可判定的请求）";
    VACUOUS = "{n} good with one output token, where TPOT cannot apply", "{n} 个达标请求只有一个输出 token，TPOT 不适用";
    UNDECIDED = "{n} could not be judged: attainment lies between {low} and {high}", "{n} 个请求无法判定：达标率在 {low} 到 {high} 之间";
    NOT_ASKED = "no SLO is for {n} requests, which stay out", "{n} 个请求没有对应的 SLO，不计入";
    OWN_SLO = "its own SLO: {slo}", "自己的 SLO：{slo}";
    SEVERAL_SLOS = "several SLOs, by other labels", "按其他标签分别适用不同的 SLO";
    NO_OWN_SLO = "no SLO is for it", "没有对应的 SLO";
    COLUMN_ATTAINED = "SLO met", "达标";
    CLIENT_FAULTS = "{n} never sent by the client's own fault stay out", "{n} 个请求因压测端自身原因未发出，不计入";

    // Caveats.
    CAVEATS = "Caveats", "注意事项";
    NO_CAVEATS = "none", "无";
    ANSWER_WARNINGS = "answers with a warning: {warnings} (goodput explain NAME)", "带告警的回答：{warnings}（可用 goodput explain NAME 查询）";
    WARNING = "{name} {n}", "{name}：{n}";

    // Below the report: where the run is, rules of --fail-if, and a server's own log.
    RUN_DIRECTORY = "run directory  {path}", "结果目录  {path}";
    RULE_MISSED = "--fail-if {rule}: is {value} {unit}", "--fail-if {rule}：未通过，实际为 {value} {unit}";
    RULE_UNDEFINED = "--fail-if {rule}: is not defined for this run, so it counts as missed", "--fail-if {rule}：此次测试没有该值，按未通过处理";
    TRUTH_TITLE = "Error of the client against ground truth (µs), {joined} requests joined, {unmatched} not", "压测端相对真值（ground truth）的误差（µs）：匹配 {joined} 个请求，未匹配 {unmatched} 个";
    TRUTH_ABSOLUTE = "absolute", "绝对时刻";
    TRUTH_FIGURES = "n {n}, mean {mean}, {figures}", "n {n}，均值 {mean}，{figures}";

    // Charts of files.
    CURVES_TITLE = "Share of requests whose answer began (TTFT) and ended (E2EL) within a time", "在某一时间内开始应答（TTFT）和结束应答（E2EL）的请求占比";
    CURVES_SIMULATED = "SIMULATED", "模拟";
    NO_CURVE_NO_REQUESTS = "No curve: there are no requests.", "没有曲线：没有任何请求。";
    NO_CURVE_NONE_WELL = "No curve: none of the {of} requests ended well.", "没有曲线：{of} 个请求无一成功。";
    NO_CURVE_ONE = "No curve: it needs two requests that ended well. The only one: {figures}.", "没有曲线：至少需要两个成功的请求。唯一的一个：{figures}。";
    NO_CURVE_UNMEASURED = "No curve: neither TTFT nor E2EL could be measured.", "没有曲线：TTFT 和 E2EL 均无法测得。";
    CURVES_ENDED = "{ok} of {of} requests ended well.", "{of} 个请求中 {ok} 个成功。";
    BARS_TITLE = "TTFT of the {ok} requests that ended well, log axis", "{ok} 个成功请求的 TTFT，对数轴";
    NO_BARS = "No bars: fewer than two requests have a TTFT.", "没有柱状图：有 TTFT 的请求不足两个。";
    BARS_NEVER = "without one: {never} requests failed or were empty", "没有 TTFT：{never} 个请求失败或应答为空";
    SECTIONS_CUT = "The sections are left out: this page takes no more.", "各节略去：此页面容纳不下更多内容。";
}
