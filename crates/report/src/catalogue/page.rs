//! The words of the HTML pages, by the key that the page's scripts say.

use measure::metric::Text;

const fn both(en: &'static str, zh: &'static str) -> Text {
    Text { en, zh }
}

/// Every key of the pages.
pub const PAGE: &[(&str, Text)] = &[
    ("nav", both("Parts of this page", "页面导航")),
    ("nav_report", both("Report", "报告")),
    ("nav_playground", both("Playground", "指标实验场")),
    ("nav_glossary", both("Glossary", "指标词典")),
    ("switch_theme", both("Light / dark", "浅色／深色")),
    (
        "footer",
        both(
            "Made by goodput {version}. This page loads nothing from anywhere.",
            "由 goodput {version} 生成。本页不从任何地方加载内容。",
        ),
    ),
    ("contents", both("Contents", "目录")),
    (
        "simulated",
        both(
            "SIMULATED: an engine model answered, not a real engine.",
            "模拟数据：应答的是引擎模型，而不是真实引擎。",
        ),
    ),
    ("no_runs", both("There is no run in this page.", "本页没有任何测试结果。")),
    ("run", both("run", "测试")),
    ("request", both("request", "请求")),
    ("beside_title", both("The runs beside each other", "多次测试并列")),
    (
        "beside_lead",
        both(
            "Figures side by side; whether a difference is more than chance needs repeated runs and is not said here.",
            "数字并列显示；差异是否超出偶然，需要重复测试才能判断，这里不下结论。",
        ),
    ),
    // Charts.
    (
        "chart_empty",
        both("Nothing to draw: no request has this value.", "没有可画的数据：没有请求具有这个值。"),
    ),
    (
        "chart_keys",
        both(
            "Arrow keys move the cursor, Home and End go to the ends.",
            "方向键移动光标，Home 和 End 到两端。",
        ),
    ),
    ("chart_requests", both("Requests over time", "请求数随时间变化")),
    ("chart_in_flight", both("Requests in flight over time", "在途请求数随时间变化")),
    ("chart_lateness", both("How late requests were sent", "请求发送的迟到量")),
    ("chart_tokens", both("Output tokens a second over time", "每秒输出 token 数随时间变化")),
    ("chart_ttft_input", both("TTFT against prompt length", "首 token 延迟与 prompt 长度")),
    (
        "chart_icl_flight",
        both("Gaps between arrivals against requests in flight", "到达间隔与在途请求数"),
    ),
    ("chart_lanes", both("Time lines of single requests", "单个请求的时间线")),
    ("chart_histogram", both("Distribution of {symbol}", "{symbol} 的分布")),
    ("chart_cdf", both("Share of samples up to a value: {symbol}", "不超过某值的比例：{symbol}")),
    ("chart_over_time", both("Percentiles of {symbol} over time", "{symbol} 分位数随时间变化")),
    ("axis_time", both("seconds", "秒")),
    ("axis_requests", both("requests", "请求数")),
    ("axis_input", both("prompt tokens", "输入 token 数")),
    ("axis_flight", both("requests in flight", "在途请求数")),
    ("axis_count", both("samples", "样本数")),
    ("axis_share", both("share", "比例")),
    ("line_offered", both("offered", "计划到达")),
    ("line_completed", both("completed", "完成")),
    ("line_failed", both("failed", "失败")),
    ("line_in_flight", both("in flight", "在途")),
    ("line_cap_wait", both("held back by the cap", "因并发上限等待")),
    ("line_lateness", both("late by", "迟到")),
    ("line_tokens", both("output tok/s", "输出 tok/s")),
    ("line_count", both("samples", "样本数")),
    ("line_share", both("share", "比例")),
    (
        "lag_known",
        both(
            "The client's own lag between a byte's arrival and its reading: P50 {p50} µs, P99 {p99} µs, at most {max} µs.",
            "压测端自身从字节到达到读取的滞后：P50 {p50} µs，P99 {p99} µs，最大 {max} µs。",
        ),
    ),
    (
        "lag_unknown",
        both(
            "The client's own lag was not measured in this run.",
            "这次测试没有测量压测端自身的滞后。",
        ),
    ),
    ("lane_wait", both("waiting for the first token", "等待首 token")),
    ("lane_first", both("first token", "首 token")),
    ("lane_token", both("every further token", "后续每个 token")),
    ("lane_failed", both("failed", "失败")),
    ("lanes_which", both("Requests", "显示哪些请求")),
    ("lanes_slowest", both("the slowest", "最慢的")),
    ("lanes_spread", both("spread over the run", "均匀抽取的")),
    ("lanes_aligned", both("start all at zero", "全部从零对齐")),
    ("tail_which", both("Latency", "延迟指标")),
    // Metric cards and the glossary.
    ("field_formula", both("Formula", "公式")),
    ("field_unit", both("Unit", "单位")),
    ("field_level", both("One value per", "统计粒度")),
    ("field_better", both("Better", "优劣方向")),
    ("field_population", both("Population", "统计对象")),
    ("field_undefined_when", both("Undefined when", "无值条件")),
    ("field_pitfalls", both("How it is misread", "常见误读")),
    ("field_peers", both("Other tools", "其他工具")),
    ("field_source", both("Source", "出处")),
    ("glossary_title", both("Metrics of LLM serving", "LLM Serving 指标体系")),
    (
        "glossary_lead",
        both(
            "Four branches: how long users wait, how much is done, how well the hardware is used, and how many were served well. Each leaf opens its definition.",
            "四个维度：用户等多久、单位时间做多少、硬件用得好不好、多少请求达标。点开叶子可见定义。",
        ),
    ),
    // The playground.
    (
        "play_title",
        both("Playground: what the metrics do when the numbers change", "延迟指标实验场"),
    ),
    (
        "play_lead",
        both(
            "Change the times of requests and watch TPOT, goodput and the means. Everything is computed in this page.",
            "改动请求的时间，观察 TPOT、有效吞吐（goodput）和各种均值。所有计算都在本页完成。",
        ),
    ),
    ("one_title", both("One request", "单个请求")),
    ("unit_tokens", both("tokens", "token")),
    ("output_tokens", both("output tokens", "输出 token 数")),
    ("generation_time", both("token generation time", "Token 生成时间")),
    ("speed", both("speed", "速度")),
    (
        "tpot_of_one",
        both(
            "TPOT is undefined: one token has no gap behind it.",
            "TPOT 无定义：只有一个 token，没有后续间隔。",
        ),
    ),
    ("timeline_title", both("The request on its time line", "请求时间线")),
    ("timeline_ttft", both("queueing + prefill", "排队 + prefill")),
    (
        "timeline_caption",
        both(
            "t0 sent · t2 first token · tN last token; one mark for every {stride} token(s). TTFT holds queueing and prefill; a client cannot see where one ends and the other begins (dashed).",
            "t0 发出请求 · t2 首 token · tN 最后一个 token；每 {stride} 个 token 画一条线。TTFT 含排队和 prefill，客户端看不到两者的分界（虚线）。",
        ),
    ),
    (
        "reading_faster",
        both(
            "{ratio} times as fast as a reader of {reading} tokens a second.",
            "是阅读速度（每秒 {reading} 个 token）的 {ratio} 倍。",
        ),
    ),
    (
        "reading_slower",
        both(
            "{ratio} times slower than a reader of {reading} tokens a second: the reader waits.",
            "比阅读速度（每秒 {reading} 个 token）慢 {ratio} 倍：读者要等。",
        ),
    ),
    (
        "fault_number",
        both(
            "TTFT {ttft}, E2EL {e2el} and tokens {tokens} must all be numbers.",
            "TTFT {ttft}、E2EL {e2el} 和 token 数 {tokens} 都必须是数字。",
        ),
    ),
    (
        "fault_negative",
        both(
            "No time is negative: TTFT {ttft} ms, E2EL {e2el} ms.",
            "时间不能为负：TTFT {ttft} ms，E2EL {e2el} ms。",
        ),
    ),
    (
        "fault_tokens",
        both(
            "An answer has a whole number of tokens, at least 1; this says {tokens}.",
            "输出 token 数必须是不小于 1 的整数，当前为 {tokens}。",
        ),
    ),
    (
        "fault_order",
        both(
            "E2EL {e2el} ms is less than TTFT {ttft} ms: the answer would end before its first token.",
            "E2EL {e2el} ms 小于 TTFT {ttft} ms：回答会在首 token 之前结束。",
        ),
    ),
    (
        "fault_huge",
        both(
            "More than an answer can be: at most {most_ms} ms and {most_tokens} tokens are computed.",
            "超出合理范围：最多计算 {most_ms} ms 和 {most_tokens} 个 token。",
        ),
    ),
    (
        "fault_columns",
        both(
            "Line {line}: three numbers are needed: TTFT, E2EL, output tokens.",
            "第 {line} 行：需要三个数字：TTFT、E2EL、输出 token 数。",
        ),
    ),
    ("table_title", both("A table of requests, judged together", "示例请求与 SLO 判定")),
    ("presets", both("Examples", "示例数据")),
    ("preset_mixed", both("Mixed", "混合负载")),
    ("preset_tail", both("Tail latency", "尾延迟")),
    ("preset_streaming", both("Streaming app", "流式应用")),
    (
        "preset_joint",
        both("Six requests in 10 s, ttft:300 tpot:60", "6 个请求 10 s，ttft:300 tpot:60"),
    ),
    ("load_run", both("Load run {run}", "载入测试 {run}")),
    (
        "run_sampled",
        both(
            "{kept} of {of} requests were loaded, spread evenly, the slowest among them.",
            "共 {of} 个请求，均匀抽取 {kept} 个载入，含最慢的一个。",
        ),
    ),
    (
        "run_beyond",
        both(
            "The run was also judged by what this table cannot hold, so its goodput is another: {terms}.",
            "此次测试还按本表无法表达的条件判定，因此有效吞吐与这里不同：{terms}。",
        ),
    ),
    ("paste_csv", both("Paste CSV", "粘贴 CSV")),
    ("take_csv", both("Take these rows", "使用这些行")),
    (
        "csv_empty",
        both(
            "There is no row: give one request a line, TTFT, E2EL, output tokens.",
            "没有数据行：每行一个请求，依次为 TTFT、E2EL、输出 token 数。",
        ),
    ),
    ("duration", both("over", "时长")),
    ("remove", both("remove", "删除")),
    ("remove_request", both("Remove {name}", "删除 {name}")),
    ("add_request", both("Add a request", "添加请求")),
    (
        "rows_hidden",
        both(
            "The first {shown} of {of} requests are shown; the figures below are of all.",
            "只显示前 {shown} 个请求（共 {of} 个）；下面的数字按全部请求计算。",
        ),
    ),
    (
        "rows_left_out",
        both(
            "{count} row(s) with absurd numbers are left out.",
            "有 {count} 行数字不合理，未计入。",
        ),
    ),
    ("met", both("meets every limit", "全部达标")),
    ("goodput", both("Goodput", "Goodput（有效吞吐）")),
    ("attainment", both("attainment", "达标率")),
    ("throughput", both("throughput", "吞吐")),
    ("goodput_rates", both("of it good", "其中达标")),
    ("means_title", both("Why mean TPOT is not mean ITL", "为什么平均 TPOT 不等于平均 ITL")),
    (
        "means_lead",
        both(
            "Of one request both are the same. Over many, mean TPOT counts every request once and mean ITL every gap once, so long answers weigh more.",
            "对单个请求两者相等。对多个请求，平均 TPOT 每个请求计一次，平均 ITL 每个间隔计一次，长回答权重更高。",
        ),
    ),
    ("mean_by_request", both("mean TPOT: every request once", "平均 TPOT：按请求加权")),
    ("mean_by_token", both("mean ITL: Σ gaps ÷ Σ (N − 1)", "平均 ITL：Σ 间隔 ÷ Σ (N − 1)")),
    ("mean_over_tokens", both("the ÷ N variant: Σ gaps ÷ Σ N", "÷ N 变体：Σ 间隔 ÷ Σ N")),
    ("weights_title", both("Weight of each request in mean ITL", "各请求在平均 ITL 中的权重")),
    (
        "means_which",
        both(
            "Mean TPOT suits the comparison of configurations as one user sees them, mean ITL the pace of the system as a whole. N tokens have N − 1 gaps: dividing by N, as some texts do, reads a little too fast.",
            "平均 TPOT 适合比较单个用户的体验，平均 ITL 适合衡量系统整体速度。N 个 token 只有 N − 1 个间隔：有些文章除以 N，结果会略微偏快。",
        ),
    ),
    (
        "outlier_title",
        both("Mean, median and P99 with one outlier", "一个离群值对均值、中位数和 P99 的影响"),
    ),
    (
        "outlier_lead",
        both("Drag the TTFT of the slowest request of the table.", "拖动表中最慢请求的 TTFT。"),
    ),
    (
        "outlier_note",
        both(
            "Of {n} requests. The median hardly moves; the mean moves by the n-th part; P99 follows the outlier nearly alone, because few samples lie beyond it.",
            "共 {n} 个请求。中位数几乎不动；均值移动 1/n；P99 几乎只跟着离群值走，因为它之外的样本太少。",
        ),
    ),
    ("mean", both("mean", "均值")),
    ("median", both("median", "中位数")),
    ("was", both("was {value} · × {ratio}", "原为 {value} · × {ratio}")),
];
