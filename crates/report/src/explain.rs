//! What a word of a report means: metrics, failure kinds, answer warnings,
//! reasons of missing values, rules of the diagnosis, as text for a terminal.

mod causes;
mod example;

use measure::metric::{self, Better, Level, METRICS, Metric, Text};
use measure::outcome::{Blame, FailureKind, NotSentKind};
use measure::record::Warnings;
use measure::undefined::Undefined;

use crate::columns::{columns, wrap};
use crate::lang::Lang;

/// Columns of the terminal text.
const COLUMNS: usize = 92;

/// Explains `word`: the key or symbol of a metric, a failure kind, a warning,
/// the reason of a missing value, a rule, or the name of a list of some,
/// whatever the case of its letters. A word that has several meanings gets all
/// of them. `None` for an unknown word; [`closest`] may have a better one.
pub fn explain(word: &str, lang: Lang) -> Option<String> {
    if let Some(list) = causes::list(&folded(word), lang) {
        return Some(list);
    }
    let entries = entries(word, lang);
    let texts: Vec<String> = entries.iter().map(Entry::render).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Every word that [`explain`] knows, each once: symbols and keys of metrics,
/// then kinds, warnings and reasons, rules, and the lists.
pub fn words() -> Vec<&'static str> {
    let metrics = METRICS.iter().flat_map(|metric| [metric.symbol, metric.key]);
    let failed = FailureKind::ALL.iter().map(|kind| kind.name());
    let not_sent = NotSentKind::ALL.iter().map(|kind| kind.name());
    let warnings = Warnings::NAMES.iter().map(|(_, name)| *name);
    let reasons = Undefined::ALL.iter().map(|reason| reason.name());
    let mut words: Vec<&'static str> = Vec::new();
    let causes = causes::rule_words().chain(causes::LISTS.iter().copied());
    let kinds = failed.chain(not_sent).chain(warnings).chain(reasons);
    for word in metrics.chain(kinds).chain(causes) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// The known word nearest to `word`, when it is near enough to be a slip of
/// the fingers: at most a third of its letters, and never more than three.
pub fn closest(word: &str) -> Option<&'static str> {
    closest_of(word, words())
}

/// The nearest of other words, by the same measure.
pub fn closest_of(
    word: &str,
    words: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let given = folded(word);
    let allowed = (given.chars().count() / 3).clamp(1, 3);
    words
        .into_iter()
        .map(|known| (edits(&given, &folded(known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// One meaning of a word: a heading and labelled paragraphs.
pub(crate) struct Entry {
    pub(crate) heading: String,
    pub(crate) opening: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

fn entries(word: &str, lang: Lang) -> Vec<Entry> {
    let word = word.trim();
    let name = folded(word);
    let mut entries = Vec::new();
    // A symbol of several words is also typed with underscores: finish_lag.
    let same_symbol = || METRICS.iter().find(|metric| folded(metric.symbol) == name);
    entries.extend(metric::find(word).or_else(same_symbol).map(|metric| of_metric(metric, lang)));
    entries.extend(FailureKind::from_name(&name).map(|kind| of_failure(kind, lang)));
    entries.extend(NotSentKind::from_name(&name).map(|kind| of_not_sent(kind, lang)));
    entries.extend(WARNINGS.iter().filter(|warning| warning.name() == name).map(|warning| Entry {
        heading: heading(warning.name(), lang.pick(Text { en: "answer warning", zh: "回答告警" })),
        opening: lang.pick(warning.means).to_owned(),
        fields: vec![(lang.pick(label::EFFECT), lang.pick(warning.effect).to_owned())],
    }));
    entries.extend(
        Undefined::ALL
            .iter()
            .filter(|reason| reason.name() == name)
            .map(|reason| of_undefined(*reason, lang)),
    );
    entries.extend(causes::rule(&name, lang));
    entries
}

fn heading(word: &str, rest: &str) -> String {
    format!("{word} — {rest}")
}

fn of_metric(metric: &Metric, lang: Lang) -> Entry {
    let mut fields = vec![
        (lang.pick(label::KEY), metric.key.to_owned()),
        (lang.pick(label::UNIT), metric.unit.symbol().to_owned()),
        (lang.pick(label::LEVEL), lang.pick(level(metric.level)).to_owned()),
        (lang.pick(label::BETTER), lang.pick(better(metric.better)).to_owned()),
        (lang.pick(label::BRANCH), lang.pick(metric.branch.name()).to_owned()),
        (lang.pick(label::FORMULA), metric.formula.to_owned()),
        (lang.pick(label::POPULATION), metric.population.to_owned()),
        (lang.pick(label::UNDEFINED_WHEN), metric.undefined_when.to_owned()),
        (lang.pick(label::PITFALLS), lang.pick(metric.pitfalls).to_owned()),
        (lang.pick(label::SOURCE), metric.source.to_owned()),
        (lang.pick(label::PEERS), metric.peers.to_owned()),
        (lang.pick(label::DEFINITION), metric.definition.to_string()),
    ];
    if let Some(example) = example::of_metric(metric.key, lang) {
        fields.push((lang.pick(label::EXAMPLE), example));
    }
    Entry {
        heading: heading(metric.symbol, lang.pick(metric.name)),
        opening: lang.pick(metric.text).to_owned(),
        fields,
    }
}

/// What a kind of failure, or of not sending, means, and what to try first.
pub(crate) fn kind_words(name: &str) -> Option<(Text, Text)> {
    if let Some(kind) = FailureKind::from_name(name) {
        return Some(failure_words(kind));
    }
    NotSentKind::from_name(name).map(not_sent_words)
}

const fn failure_words(kind: FailureKind) -> (Text, Text) {
    let zh = failure_zh(kind);
    (Text { en: kind.means(), zh: zh.means }, Text { en: kind.hint(), zh: zh.hint })
}

const fn not_sent_words(kind: NotSentKind) -> (Text, Text) {
    let zh = not_sent_zh(kind);
    (Text { en: kind.means(), zh: zh.means }, Text { en: kind.hint(), zh: zh.hint })
}

fn of_failure(kind: FailureKind, lang: Lang) -> Entry {
    let (means, hint) = failure_words(kind);
    Entry {
        heading: heading(kind.name(), lang.pick(Text { en: "failure kind", zh: "失败类型" })),
        opening: lang.pick(means).to_owned(),
        fields: vec![
            (lang.pick(label::BLAME), lang.pick(blame(kind.blame())).to_owned()),
            (lang.pick(label::HINT), lang.pick(hint).to_owned()),
        ],
    }
}

fn of_not_sent(kind: NotSentKind, lang: Lang) -> Entry {
    let (means, hint) = not_sent_words(kind);
    let what = Text { en: "why a request was not sent", zh: "请求未发出的原因" };
    Entry {
        heading: heading(kind.name(), lang.pick(what)),
        opening: lang.pick(means).to_owned(),
        fields: vec![
            (lang.pick(label::BLAME), lang.pick(blame(kind.blame())).to_owned()),
            (lang.pick(label::HINT), lang.pick(hint).to_owned()),
        ],
    }
}

fn of_undefined(reason: Undefined, lang: Lang) -> Entry {
    let what = Text { en: "why a value is missing", zh: "缺值的原因" };
    Entry {
        heading: heading(reason.name(), lang.pick(what)),
        opening: lang.pick(reason.texts()).to_owned(),
        fields: vec![(lang.pick(label::SHOWN), lang.pick(MISSING_IS_SHOWN).to_owned())],
    }
}

const MISSING_IS_SHOWN: Text = Text {
    en: "n/a in text and null in JSON, with this reason; never 0.",
    zh: "文本中为 n/a，JSON 中为 null，并附上这个原因；绝不写成 0。",
};

/// Labels of the fields.
mod label {
    use super::Text;

    pub(super) const KEY: Text = Text { en: "Key", zh: "键名" };
    pub(super) const UNIT: Text = Text { en: "Unit", zh: "单位" };
    pub(super) const LEVEL: Text = Text { en: "One value per", zh: "统计粒度" };
    pub(super) const BETTER: Text = Text { en: "Better", zh: "优劣方向" };
    pub(super) const BRANCH: Text = Text { en: "Group", zh: "维度" };
    pub(super) const FORMULA: Text = Text { en: "Formula", zh: "公式" };
    pub(super) const POPULATION: Text = Text { en: "Population", zh: "统计对象" };
    pub(super) const UNDEFINED_WHEN: Text = Text { en: "Undefined when", zh: "无值条件" };
    pub(super) const PITFALLS: Text = Text { en: "How it is misread", zh: "常见误读" };
    pub(super) const SOURCE: Text = Text { en: "Source", zh: "出处" };
    pub(super) const PEERS: Text = Text { en: "Other tools", zh: "其他工具" };
    pub(super) const DEFINITION: Text = Text { en: "Definition", zh: "口径版本" };
    pub(super) const BLAME: Text = Text { en: "Look at", zh: "先查哪里" };
    pub(super) const HINT: Text = Text { en: "Try first", zh: "先试什么" };
    pub(super) const EFFECT: Text = Text { en: "Effect on figures", zh: "对指标的影响" };
    pub(super) const EXAMPLE: Text = Text { en: "Worked example", zh: "算例" };
    pub(super) const SHOWN: Text = Text { en: "Shown as", zh: "显示为" };
}

/// What one value belongs to.
pub(crate) const fn level(level: Level) -> Text {
    match level {
        Level::Request => Text { en: "request", zh: "每个请求" },
        Level::Gap => Text { en: "gap", zh: "每个间隔" },
        Level::Run => Text { en: "run", zh: "整次测试" },
    }
}

/// Which direction is better.
pub(crate) const fn better(better: Better) -> Text {
    match better {
        Better::Lower => Text { en: "lower", zh: "越低越好" },
        Better::Higher => Text { en: "higher", zh: "越高越好" },
        Better::Neither => Text { en: "neither by itself", zh: "本身无所谓好坏" },
    }
}

/// Who has to look.
pub(crate) const fn blame(blame: Blame) -> Text {
    match blame {
        Blame::Server => Text { en: "the serving system", zh: "服务端" },
        Blame::Network => {
            Text { en: "the network and what lies between", zh: "网络及中间环节" }
        }
        Blame::Client => Text { en: "the load generator", zh: "压测端" },
    }
}

/// The Chinese words of a kind; the English ones stand with the kinds.
#[derive(Clone, Copy)]
pub(crate) struct KindZh {
    /// What it means.
    pub(crate) means: &'static str,
    /// What to try first.
    pub(crate) hint: &'static str,
}

const fn kind_zh(means: &'static str, hint: &'static str) -> KindZh {
    KindZh { means, hint }
}

/// The Chinese words of a failure kind.
pub(crate) const fn failure_zh(kind: FailureKind) -> KindZh {
    match kind {
        FailureKind::Dns => kind_zh("主机名解析失败。", "检查 --url 里的主机名和本机的 DNS 配置。"),
        FailureKind::Connect => kind_zh(
            "未能建立 TCP 连接。",
            "检查服务端是否在该地址和端口监听，以及是否有防火墙拦截。",
        ),
        FailureKind::Tls => {
            kind_zh("TLS 握手失败。", "用 --cacert 指定 CA 证书；仅在实验环境可用 --insecure。")
        }
        FailureKind::HttpStatus => kind_zh(
            "服务端返回了错误状态码。",
            "先看下面的服务端消息：401、403 要检查密钥，404 要换路径，429 要降低请求速率。",
        ),
        FailureKind::Redirect => {
            kind_zh("服务端返回重定向，压测时不会跟随。", "把最终地址直接写到 --url。")
        }
        FailureKind::BadContentType => kind_zh(
            "返回内容既不是事件流，也不是 JSON。",
            "可能是登录页或代理在应答，请看给出的开头几个字节。",
        ),
        FailureKind::UnsupportedEncoding => {
            kind_zh("响应体用了未请求且无法识别的压缩方式。", "在流式接口上关闭响应压缩。")
        }
        FailureKind::MalformedEvent => kind_zh(
            "某个事件以 JSON 开头，却不是合法的 JSON。",
            "看给出的字节：可能是代理截断或拼接了事件。",
        ),
        FailureKind::MalformedHttp => kind_zh(
            "响应不符合 HTTP/1.1 的分帧规则。",
            "确认该端口提供的是 HTTP 服务，且没有代理改写分块。",
        ),
        FailureKind::InBand => {
            kind_zh("流已正常开始，服务端却在流中返回了错误。", "看下面的服务端消息和服务端日志。")
        }
        FailureKind::Aborted => kind_zh(
            "服务端以 abort 或 error 作为结束原因终止了回答。",
            "查服务端日志：是否在停机、抢占或触发了限制。",
        ),
        FailureKind::Truncated => kind_zh(
            "回答在 HTTP 层面正常结束，但没有结束标志。",
            "引擎可能已经崩溃，而网关仍礼貌收尾；两边的日志都要看。",
        ),
        FailureKind::Disconnected => {
            kind_zh("回答传到一半，连接断开。", "检查代理超时、服务重启或过载。")
        }
        FailureKind::IdleTimeout => kind_zh(
            "超过 --idle-timeout 没有收到任何数据。",
            "如果模型本来就会停顿这么久，调大 --idle-timeout。",
        ),
        FailureKind::TotalTimeout => kind_zh(
            "在 --request-timeout 内没有完成回答。",
            "调大 --request-timeout 或降低负载；真实延迟不低于该时限。",
        ),
        FailureKind::TooLarge => kind_zh(
            "某一行、某个事件或整个响应体超过了读取上限。",
            "上限见文档；这样的回答不是 token 流。",
        ),
    }
}

/// The Chinese words of a reason for not sending.
pub(crate) const fn not_sent_zh(kind: NotSentKind) -> KindZh {
    match kind {
        NotSentKind::ClientResource => kind_zh(
            "压测端的文件描述符、内存或缓冲区已耗尽。",
            "调大打开文件数上限（ulimit -n），或降低并发。",
        ),
        NotSentKind::PortExhausted => {
            kind_zh("没有空闲的本地端口再连这个地址。", "减少连接数，或增加源地址、目标地址。")
        }
        NotSentKind::WorkerLost => {
            kind_zh("负责发送该请求的 worker 已失联。", "查看该 worker 的日志。")
        }
        NotSentKind::ParentFailed => kind_zh(
            "同一会话中较早的一轮没有正常结束，这一轮因此无法提问。",
            "查看之前各轮的失败原因，它们按各自的类型计数。",
        ),
    }
}

/// An answer warning in words: the name stands with the bit.
pub(crate) struct Warning {
    /// The bit.
    pub(crate) warning: Warnings,
    /// What was seen.
    pub(crate) means: Text,
    /// What it does to the figures.
    pub(crate) effect: Text,
}

impl Warning {
    /// The name in JSON and tables.
    pub(crate) fn name(&self) -> &'static str {
        self.warning.names().first().copied().unwrap_or_default()
    }
}

/// Every answer warning, in the order of [`Warnings::NAMES`].
pub(crate) const WARNINGS: &[Warning] = &[
    Warning {
        warning: Warnings::MISSING_DONE,
        means: Text {
            en: "The stream gave a finish reason but no [DONE].",
            zh: "流给出了结束原因，但没有 [DONE]。",
        },
        effect: Text {
            en: "None: the answer is whole, and [DONE] moves no latency.",
            zh: "无影响：回答是完整的，[DONE] 也不影响任何延迟。",
        },
    },
    Warning {
        warning: Warnings::UNTERMINATED_LAST_EVENT,
        means: Text {
            en: "The last event had no closing blank line; it was whole and was taken.",
            zh: "最后一个事件缺少结尾空行；内容完整，已照常采用。",
        },
        effect: Text {
            en: "None here; stricter clients drop such an event and its tokens.",
            zh: "对本工具无影响；更严格的客户端会丢掉这个事件及其 token。",
        },
    },
    Warning {
        warning: Warnings::NO_USAGE,
        means: Text { en: "No usage object came.", zh: "没有收到 usage。" },
        effect: Text {
            en: "Output tokens come from a weaker source, which is named. A count of chunks is a \
                 lower bound, so TPOT may read high and tok/s low.",
            zh: "输出 token 数改用较弱的来源（会注明）。用 chunk 数代替时只是下限，TPOT 可能偏高，\
                 tok/s 可能偏低。",
        },
    },
    Warning {
        warning: Warnings::MISSING_FINISH_REASON,
        means: Text {
            en: "[DONE] came without any finish reason.",
            zh: "收到了 [DONE]，但没有任何结束原因。",
        },
        effect: Text {
            en: "The answer counts as finished; whether it hit the length limit is unknown.",
            zh: "回答按正常结束计算，但无法判断是否因达到长度上限而停止。",
        },
    },
    Warning {
        warning: Warnings::COMPRESSED_STREAM,
        means: Text {
            en: "The body was compressed although no compression was asked for.",
            zh: "没有请求压缩，响应体却是压缩过的。",
        },
        effect: Text {
            en: "A compressor may hold tokens back: TTFT and gaps are then its own and not the \
                 engine's.",
            zh: "压缩器可能攒住 token 再发，此时 TTFT 和间隔反映的是压缩器，而不是引擎。",
        },
    },
    Warning {
        warning: Warnings::NOT_STREAMED,
        means: Text {
            en: "All output arrived at one instant or as one JSON body.",
            zh: "全部输出一次性到达，或以单个 JSON 返回。",
        },
        effect: Text {
            en: "TPOT and gaps of this answer are left out; TTFT, where it has one, equals E2EL.",
            zh: "这次回答不计入 TPOT 和间隔；TTFT 若有值则等于 E2EL。",
        },
    },
    Warning {
        warning: Warnings::NO_PROMPT_TOKENS,
        means: Text {
            en: "The server did not say how long the prompt was.",
            zh: "服务端没有给出输入 token 数。",
        },
        effect: Text {
            en: "ISL and the input rates leave this request out.",
            zh: "该请求不计入输入长度和输入吞吐。",
        },
    },
    Warning {
        warning: Warnings::NON_JSON_EVENT,
        means: Text {
            en: "An event carried data that is neither JSON nor the sentinel.",
            zh: "有事件的数据既不是 JSON，也不是结束标记。",
        },
        effect: Text {
            en: "It counts as an event and carries no token.",
            zh: "它算作一个事件，但不含 token。",
        },
    },
    Warning {
        warning: Warnings::NONSTANDARD_JSON,
        means: Text {
            en: "JSON held bare NaN or Infinity.",
            zh: "JSON 中出现了裸的 NaN 或 Infinity。",
        },
        effect: Text {
            en: "These were read as null; other clients fail the whole answer.",
            zh: "已按 null 读取；别的客户端可能因此判整个回答失败。",
        },
    },
    Warning {
        warning: Warnings::N_GT_1,
        means: Text {
            en: "More than one choice came in the stream (n > 1).",
            zh: "一个流里有多个候选回答（n > 1）。",
        },
        effect: Text {
            en: "Gaps are taken per choice, OSL is the sum of the choices, and TPOT is undefined.",
            zh: "间隔按候选分别计算，OSL 为各候选之和，TPOT 无值。",
        },
    },
    Warning {
        warning: Warnings::HIDDEN_REASONING,
        means: Text {
            en: "Usage counts reasoning tokens that were never shown.",
            zh: "usage 里有思考 token，但从未展示。",
        },
        effect: Text {
            en: "Thinking lies inside TTFT. TPOT is taken over the visible tokens, from the first \
                 visible text.",
            zh: "思考时间包含在 TTFT 内；TPOT 只按可见 token、从首个可见文本起算。",
        },
    },
    Warning {
        warning: Warnings::FIRST_CHUNK_BUNDLED,
        means: Text {
            en: "The first output event carried several tokens.",
            zh: "首个输出事件带了多个 token。",
        },
        effect: Text {
            en: "TPOT reads low, because TTFT already paid for those tokens; see TPOT adjusted.",
            zh: "TPOT 偏低，因为这些 token 的时间已算在 TTFT 里；请看 TPOT adjusted。",
        },
    },
    Warning {
        warning: Warnings::FRAMING_ERROR,
        means: Text {
            en: "The HTTP framing was incomplete although the answer was whole.",
            zh: "HTTP 分帧不完整，但回答本身是完整的。",
        },
        effect: Text {
            en: "None on the latencies; a server or proxy closes connections too early.",
            zh: "不影响延迟；说明服务端或代理过早关闭了连接。",
        },
    },
    Warning {
        warning: Warnings::BURSTY_DELIVERY,
        means: Text {
            en: "Most gaps are zero: something between buffers.",
            zh: "大多数间隔为 0：中间有环节在缓冲。",
        },
        effect: Text {
            en: "Percentiles of ICL describe the buffer and not the engine: the median is too \
                 small, the tail too large. Measure without the proxy.",
            zh: "ICL 分位数反映的是缓冲而不是引擎：中位数偏小，尾部偏大。请绕过代理再测。",
        },
    },
    Warning {
        warning: Warnings::CLOCK_STEP,
        means: Text {
            en: "The wall clock was stepped while the request ran.",
            zh: "请求进行期间，系统墙上时钟被跳变调整。",
        },
        effect: Text {
            en: "Kernel receive stamps follow the wall clock, so times of this request may be off \
                 by the step. Stop the time service's steps and measure again.",
            zh: "内核接收时间戳跟随墙上时钟，该请求的时间可能偏差一次跳变的幅度。请避免校时跳变后重测。",
        },
    },
    Warning {
        warning: Warnings::TOOL_RESULTS_REFITTED,
        means: Text {
            en: "An answer before it made other calls of tools than the script has results for.",
            zh: "之前的回答发起的工具调用与脚本准备的结果不一致。",
        },
        effect: Text {
            en: "Results without a call were sent as the user's words, and calls without a result \
                 got an empty one, because servers refuse both. The prompt is then not quite what \
                 an agent would send; --history scripted sends the file's own calls.",
            zh: "没有对应调用的结果作为用户消息发送，没有结果的调用得到空结果，因为服务端两者都会\
                 拒绝。此时的提示与真实代理略有不同；--history scripted 会发送文件中的调用。",
        },
    },
];

impl Entry {
    pub(crate) fn render(&self) -> String {
        let indent = 2;
        let column = self.fields.iter().map(|(label, _)| columns(label)).max().unwrap_or(0) + 2;
        let mut lines = vec![self.heading.clone()];
        let pad = " ".repeat(indent);
        lines.extend(
            wrap(&self.opening, COLUMNS - indent).iter().map(|line| format!("{pad}{line}")),
        );
        lines.push(String::new());
        for (label, text) in &self.fields {
            let mut lead = format!("{pad}{label}{}", " ".repeat(column - columns(label)));
            for line in wrap(text, COLUMNS - indent - column) {
                lines.push(format!("{lead}{line}"));
                lead = " ".repeat(indent + column);
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// A word as it is compared: lower case, words joined by underscores.
fn folded(word: &str) -> String {
    word.trim().to_lowercase().replace([' ', '-'], "_")
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn one
/// word into the other.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let unequal = usize::from(from[i - 1] != to[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + unequal);
            let swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests;
