//! The table: one entry a metric. Change a formula here and in
//! `request`, raise `definition`, and say so in CHANGELOG.md.

use super::{Better, Branch, How, Level, Metric, Text, Unit};
use crate::undefined::Undefined;

/// Every metric, in the order of the report.
pub const METRICS: &[Metric] = &[
    Metric {
        key: "ttft_ms",
        symbol: "TTFT",
        name: Text { en: "Time to first token", zh: "首 token 延迟" },
        text: Text {
            en: "How long a user waits until the answer begins. It tells the people who own chat \
                 and other interactive services whether the system feels responsive.",
            zh: "用户从提问到回答开始要等多久。做聊天等交互式服务的人先看它，判断系统反应快不\
                 快。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "first token arrival − start. A token arrival is an event with text, \
                  reasoning or \
                  tool-call content, or one whose running completion count grew. Start is \
                  intended_at in the headline figures and sent_at in service_metrics.",
        population: "requests that ended ok; an answer that a proxy held back and delivered at \
                     one \
                     instant enters with TTFT = E2EL",
        undefined_when: "the request did not end ok, or the answer came as one JSON body",
        pitfalls: Text {
            en: "It is not prefill time: client wait, network, queueing and the first sampling \
                 step are in it, so a high TTFT is often a queue and not a slow kernel. An empty \
                 role chunk does not stop it.",
            zh: "TTFT 不等于 prefill 时间：客户端等待、网络、排队和首 token 采样都算在内。TTFT 偏\
                 高往往是排队，而不是 kernel 慢。只带 role 的空 chunk 不算首 token。",
        },
        source: "seed texts 000 and 003; the same mark as AIPerf and MLPerf endpoints (first \
                 content of any kind); the start at the intended instant is ours",
        peers: "vLLM TTFT runs from just before the POST, after the concurrency wait, to the \
                first \
                event with a choice, an empty role chunk included. AIPerf time_to_first_token and \
                GuideLLM TTFT stop at the first text, reasoning or tool call; genai-bench TTFT at \
                the first text or reasoning. inference-perf TTFT ignores reasoning and tool calls, \
                so it is nearer to our TTFC. EvalScope TTFT stops at the first output since 1.14, \
                before that at the first event with a choice. All these clocks start at the send; \
                GuideLLM adds a latency from the scheduled start.",
        definition: 1,
        how: How::Request(|timed| timed.ttft()),
    },
    Metric {
        key: "ttfc_ms",
        symbol: "TTFC",
        name: Text { en: "Time to first visible text", zh: "首个可见文本延迟" },
        text: Text {
            en: "How long a user waits until readable text appears. On reasoning models this, \
                 and \
                 not TTFT, is when the answer starts for a person.",
            zh: "用户要等多久才看到可读的正文。对推理模型来说，人感受到的“开始回答”是它，而不是 \
                 TTFT。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "first event with visible text − start; start as for TTFT",
        population: "requests that ended ok and showed visible text",
        undefined_when: "the request did not end ok, no visible text came (reasoning or tool \
                         calls \
                         only), or the row was imported without it",
        pitfalls: Text {
            en: "A tool call is no visible text: an answer of tool calls alone has no TTFC. \
                 Without reasoning it equals TTFT and adds nothing.",
            zh: "工具调用不算可见文本，只有工具调用的回答没有 TTFC。没有思考过程时它等于 TTFT，不\
                 提供新信息。",
        },
        source: "ours; the mark of AIPerf's time_to_first_output_token and GuideLLM's TTFOT, \
                 restricted to text",
        peers: "AIPerf time_to_first_output_token and GuideLLM TTFOT: first content that is not \
                reasoning, tool calls included. inference-perf calls this TTFT. vLLM, genai-bench \
                and EvalScope do not have it.",
        definition: 1,
        how: How::Request(|timed| timed.ttfc()),
    },
    Metric {
        key: "thinking_ms",
        symbol: "thinking",
        name: Text { en: "Thinking time", zh: "思考时长" },
        text: Text {
            en: "The time that streamed reasoning takes before the first visible text. It \
                 separates a slow server from a model that thinks long.",
            zh: "从首个思考 token 到首个可见文本的时间。用它区分是服务慢，还是模型想得久。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Neither,
        branch: Branch::Latency,
        formula: "TTFC − TTFT",
        population: "requests that ended ok, streamed reasoning and then showed visible text",
        undefined_when: "TTFC or TTFT is undefined, or no reasoning was streamed",
        pitfalls: Text {
            en: "Reasoning that is not streamed does not show here: it is inside TTFT. Where \
                 only \
                 a summary is streamed, the time counts from the summary's first text and is too \
                 short.",
            zh: "没有流式输出的思考不在这里，而是算进了 TTFT。如果只流式输出思考摘要，则从摘要\
                 首个\
                 文本起算，数值偏小。",
        },
        source: "ours",
        peers: "No peer prints it. With AIPerf it is time_to_first_output_token − \
                time_to_first_token, with GuideLLM TTFOT − TTFT, each of one request. AIPerf's \
                thinking_efficiency is a ratio of tokens, not a time.",
        definition: 1,
        how: How::Request(|timed| timed.thinking()),
    },
    Metric {
        key: "tpot_ms",
        symbol: "TPOT",
        name: Text { en: "Time per output token", zh: "每 token 输出时间" },
        text: Text {
            en: "The mean pace of one answer after its first token, one number a request. It \
                 tells \
                 how fast decoding is for a user, and compares systems request by request.",
            zh: "首 token 之后，一次回答平均多久出一个 token，每个请求只有一个数。反映用户看到的 \
                 decode 速度，适合按请求比较系统或配置。",
        },
        unit: Unit::MillisecondsPerToken,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "(E2EL − TTFT) ÷ (OSL − 1). Where reasoning was not shown word for word: \
                  (E2EL − \
                  TTFC) ÷ (visible tokens − 1), with visible tokens = OSL − reasoning tokens.",
        population: "requests that ended ok with one choice and OSL ≥ 2; answers that came at \
                     one \
                     instant stay out",
        undefined_when: "OSL < 2, or fewer than 2 visible tokens where reasoning was hidden; the \
                         number of tokens is unknown; more than one choice shares the stream; the \
                         answer came at one instant; reasoning was hidden and its tokens are not \
                         counted or no visible text came",
        pitfalls: Text {
            en: "It is an average and hides stalls: read it beside ICL p99. Its mean weighs \
                 every \
                 request the same while ITL's weighs every token, so the two differ over many \
                 requests. It is too low when the first event carries several tokens; see TPOT \
                 adjusted.",
            zh: "TPOT 是平均值，会抹掉抖动和停顿，要和 ICL 的 P99 一起看。TPOT 均值按请求加\
                 权，ITL \
                 均值按 token 加权，多请求时两者不相等。首个事件带多个 token 时 TPOT 偏低，见 TPOT \
                 adjusted。",
        },
        source: "vLLM benchmarks/serve.py; seed texts 000 and 003",
        peers: "vLLM TPOT: the same formula, but a chat E2EL ends at the usage event, TTFT may \
                stop at the role chunk, and a one-token answer counts as 0 for goodput. AIPerf and \
                GuideLLM call this quantity ITL. GuideLLM's own TPOT is (last token − start) ÷ \
                OSL, with TTFT inside. inference-perf TPOT: (last − first) ÷ (n − 1) over \
                re-tokenised text. genai-bench TPOT: up to the usage event. EvalScope TPOT: up to \
                the last event, and one-token answers stay in the mean as 0.",
        definition: 1,
        how: How::Request(|timed| timed.tpot_streamed()),
    },
    Metric {
        key: "tpot_adjusted_ms",
        symbol: "TPOT adjusted",
        name: Text {
            en: "Time per output token, first event taken out",
            zh: "每 token 输出时间（扣除首个事件）",
        },
        text: Text {
            en: "TPOT for streams whose first event carries several tokens, as with speculative \
                 decoding or a stream interval. It corrects the divisor by the tokens that TTFT \
                 already paid for.",
            zh: "首个事件带多个 token 时（投机解码、按间隔输出）的 TPOT：从除数里扣掉 TTFT 已经覆\
                 盖的那些 token。",
        },
        unit: Unit::MillisecondsPerToken,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "(E2EL − TTFT) ÷ (OSL − k₁), with k₁ = tokens of the first output event",
        population: "requests that ended ok with one choice, whose first output event is known \
                     to \
                     carry more than one token; answers that came at one instant, or with \
                     reasoning that was not shown word for word, stay out",
        undefined_when: "k₁ is unknown or 1, OSL ≤ k₁, the number of output tokens is unknown, \
                         more than one choice shares the stream, the answer came at one instant, \
                         or reasoning was hidden or summarised",
        pitfalls: Text {
            en: "Only servers that count tokens per event allow it. Its population is smaller \
                 than \
                 TPOT's, so the two means must not be compared with each other.",
            zh: "只有逐事件给出 token 数的服务端才能算。它的样本比 TPOT 少，两者的均值不能直接对\
                 比。",
        },
        source: "ours; AIPerf and MLPerf endpoints correct the divisor in the same way",
        peers: "AIPerf inter_token_latency does this when per-chunk usage is on, under the same \
                name as without it. MLPerf endpoints tpot divides by the re-tokenised tokens after \
                the first chunk. vLLM, GuideLLM, inference-perf, genai-bench and EvalScope divide \
                by n − 1 (GuideLLM's TPOT by n).",
        definition: 1,
        how: How::Request(|timed| timed.tpot_adjusted()),
    },
    Metric {
        key: "icl_ms",
        symbol: "ICL",
        name: Text { en: "Inter-chunk latency", zh: "chunk 间隔" },
        text: Text {
            en: "Every pause between two arrivals, as a reader of the stream sees it. Its tail \
                 shows the stalls that TPOT averages away: long prefills in the batch, preemption, \
                 jitter.",
            zh: "相邻两次到达之间的停顿，也就是用户看到的流式间隔。它的尾部会暴露 TPOT 抹掉的卡\
                 顿：批里插入的长 prefill、抢占、调度抖动。",
        },
        unit: Unit::Milliseconds,
        level: Level::Gap,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "arrival − previous arrival of the same choice; the gaps of all requests are \
                  pooled",
        population: "gaps of requests that ended ok; answers that came at one instant stay out",
        undefined_when: "the answer has one arrival, came at one instant, or did not end ok",
        pitfalls: Text {
            en: "A chunk is not a token: with speculative decoding, a stream interval or a proxy \
                 that merges, one gap spans several tokens. Pooled gaps weigh long answers more. \
                 Many zeros mean that something buffers.",
            zh: "chunk 不等于 token：投机解码、按间隔输出或代理合并时，一个间隔对应多个 token。间\
                 隔是汇总统计的，长回答权重更大。大量为 0 说明中间有缓冲。",
        },
        source: "vLLM benchmarks/serve.py, which names it ITL; the name ICL is AIPerf's",
        peers: "vLLM ITL: gaps between events with a choice, the empty finish chunk included. \
                EvalScope ITL: the same before 1.14, gaps between output chunks since. AIPerf \
                inter_chunk_latency: the same as here, with zeros where one read held several \
                chunks. MLPerf endpoints: chunk_delta. GuideLLM and genai-bench keep no gaps.",
        definition: 1,
        how: How::Gaps,
    },
    Metric {
        key: "itl_ms",
        symbol: "ITL",
        name: Text { en: "Inter-token latency", zh: "token 间隔" },
        text: Text {
            en: "Mean time per later token over the whole run, every token weighing the same. It \
                 suits the pace of the system as a whole, where TPOT suits a single request.",
            zh: "整个测试中平均多久出一个后续 token，按 token 加权。适合看系统整体的输出节奏；\
                 看单\
                 个请求用 TPOT。",
        },
        unit: Unit::Milliseconds,
        level: Level::Gap,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "mean = Σ gaps ÷ Σ tokens of the later chunks, these as counted per event, else \
                  streamed tokens − tokens of the first event (1 where unknown, 1 more for each \
                  further choice); streamed tokens = OSL − reasoning tokens that were not shown. \
                  Percentiles are ICL's where at least 99 % of the chunks carry one token, else \
                  null. Imported rows: ICL's figures.",
        population: "gaps of requests that ended ok; answers that came at one instant stay out",
        undefined_when: "no gaps, the number of output tokens is unknown, reasoning was \
                         summarised \
                         or hidden and not counted, or no token follows the first chunk; \
                         percentiles also when more than 1 % of the chunks carry several tokens",
        pitfalls: Text {
            en: "Its mean is not the mean of TPOT: long answers weigh more. Multi-token chunks \
                 leave it without percentiles, because a gap spread over tokens hides the stall; \
                 read ICL there. Seed 003 divides by all output tokens, which reads slightly lower \
                 and is given beside it.",
            zh: "ITL 均值不等于 TPOT 均值：长回答权重更大。chunk 含多个 token 时不给分位数，因\
                 为把\
                 间隔平摊到 token 会掩盖停顿，此时看 ICL。种子文章 003 除以全部输出 token 数，结果\
                 略低，报告中一并给出。",
        },
        source: "seed text 003 \"LLM inference metrics\" for the weights; the divisor is ours, \
                 since N tokens have N − 1 gaps",
        peers: "vLLM and EvalScope ITL is our ICL. AIPerf and GuideLLM ITL is our TPOT, one \
                value \
                a request; GuideLLM's summary weighs it by tokens and comes near to this mean. \
                inference-perf ITL: gaps of re-tokenised text, where the tokens of one chunk share \
                a time, so that its median is often 0. genai-bench has none.",
        definition: 1,
        how: How::TokenGaps,
    },
    Metric {
        key: "e2el_ms",
        symbol: "E2EL",
        name: Text { en: "End-to-end latency", zh: "端到端延迟" },
        text: Text {
            en: "How long the whole answer takes. It is what agents and batch steps wait for, \
                 because they need the complete answer to go on.",
            zh: "整个回答从提问到结束要多久。Agent 和多步流程最看重它，因为下游要等完整回答才能继\
                 续。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "last token arrival or finish event, whichever is later − start; start as for \
                  TTFT. With one choice TTFT + Σ ICL + finish lag = E2EL exactly.",
        population: "requests that ended ok, streamed or not",
        undefined_when: "the request did not end ok, or no output came",
        pitfalls: Text {
            en: "It grows with OSL, so compare it at equal output lengths only. The usage event, \
                 [DONE] and the close of the connection do not move it. Failures are absent here; \
                 all_requests_metrics takes them as infinite.",
            zh: "E2EL 随输出长度增长，只有输出长度相同时才可比。usage 事件、[DONE] 和连接关闭都不\
                 影响它。失败请求不在其中；all_requests_metrics 把失败按无穷大计入。",
        },
        source: "seed texts 000 and 003; the end mark, chosen so that the identity holds, is \
                 ours",
        peers: "vLLM e2el: chat ends at the usage event, completions at the last event with a \
                choice. AIPerf request_latency: last content chunk. genai-bench: after the usage \
                event. EvalScope: last event of any kind. inference-perf: after the client has \
                tokenised the answer. MLPerf endpoints sample_latency: complete − issued.",
        definition: 1,
        how: How::Request(|timed| timed.e2el()),
    },
    Metric {
        key: "generation_ms",
        symbol: "generation",
        name: Text { en: "Token generation time", zh: "token 生成时间" },
        text: Text {
            en: "How long the answer streams after its first token. It is the decode part of \
                 E2EL \
                 as the client sees it.",
            zh: "首 token 之后把回答流式输出完用了多久，也就是客户端看到的 decode 阶段时长。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "E2EL − TTFT",
        population: "requests that ended ok; an answer that a proxy delivered at one instant \
                     enters with 0",
        undefined_when: "TTFT or E2EL is undefined",
        pitfalls: Text {
            en: "It grows with OSL: divide by tokens (TPOT) before comparing. It includes \
                 stalls, \
                 preemption and the finish lag, so it is more than decode kernels.",
            zh: "它随输出长度增长，比较前应换算成 TPOT。其中还包含停顿、抢占和收尾延迟，不只是 \
                 decode kernel 的时间。",
        },
        source: "seed text 003 \"LLM inference metrics\" (Token Generation Time)",
        peers: "AIPerf decode_duration and genai-bench output_latency: latency − TTFT under \
                their \
                own end marks. vLLM's engine metric request_decode_time_seconds is the server's \
                own view of it. It is not in vLLM bench's result.",
        definition: 1,
        how: How::Request(|timed| timed.generation()),
    },
    Metric {
        key: "finish_lag_ms",
        symbol: "finish lag",
        name: Text { en: "Finish lag", zh: "收尾延迟" },
        text: Text {
            en: "Time from the last token to the finish event. It is near zero on most \
                 servers; a \
                 large value means that the server or a gateway holds the end of the answer \
                 back.",
            zh: "最后一个 token 到结束事件之间的时间。通常接近 0；偏大说明服务端或网关在回答结\
                 尾处\
                 有额外耗时。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "end of E2EL − last token arrival",
        population: "requests that ended ok and streamed at least one arrival",
        undefined_when: "the answer came as one JSON body, or the row was imported",
        pitfalls: Text {
            en: "It is inside E2EL, generation and TPOT but in no gap, so a large finish lag \
                 lifts \
                 TPOT above the mean gap without any slow token.",
            zh: "它计入 E2EL、生成时间和 TPOT，但不属于任何间隔：收尾延迟大时，TPOT 会高于平均间\
                 隔，而 token 并没有变慢。",
        },
        source: "ours: the remainder that makes TTFT + Σ ICL + finish lag = E2EL exact",
        peers: "No peer names it. vLLM takes the finish chunk as one more ITL sample, and its \
                chat \
                latency runs on to the usage event.",
        definition: 1,
        how: How::Request(|timed| timed.finish_lag()),
    },
    Metric {
        key: "stall_ms",
        symbol: "stall",
        name: Text { en: "Longest stall", zh: "最长停顿" },
        text: Text {
            en: "The longest pause inside one answer, one number a request. Its percentiles say \
                 how many users saw the stream stop, which pooled gaps do not.",
            zh: "一次回答中最长的一次停顿，每个请求一个数。它的分位数说明有多少用户遇到过卡顿，汇\
                 总的间隔做不到这一点。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "largest ICL of the request",
        population: "requests that ended ok with at least two arrivals; answers that came at one \
                     instant stay out",
        undefined_when: "the answer has one arrival, came at one instant, or did not end ok",
        pitfalls: Text {
            en: "It grows with the number of gaps: long answers have more chances of a stall. \
                 Compare it at equal OSL.",
            zh: "回答越长，间隔越多，出现长停顿的机会也越大；应在输出长度相同的条件下比较。",
        },
        source: "ours",
        peers: "No peer keeps it per request. vLLM, EvalScope and AIPerf show percentiles of \
                pooled gaps; GuideLLM and genai-bench keep no gaps, so that a stall of seconds \
                inside one answer cannot be seen.",
        definition: 1,
        how: How::Request(|timed| timed.stall()),
    },
    Metric {
        key: "stall_share",
        symbol: "stall share",
        name: Text { en: "Share of stalled gaps", zh: "停顿占比" },
        text: Text {
            en: "How much of a stream's gaps are long enough to be noticed. It tells a single \
                 hiccup from a stream that stutters throughout.",
            zh: "一次回答的间隔中，长到能被察觉的占多少。用来区分偶尔卡一下和一直断断续续。",
        },
        unit: Unit::Share,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "gaps longer than --stall-ms (500 ms by default) ÷ gaps of the request",
        population: "requests that ended ok with at least two arrivals; answers that came at one \
                     instant stay out",
        undefined_when: "the answer has one arrival, came at one instant, or did not end ok",
        pitfalls: Text {
            en: "It counts gaps, not time: one stall of ten seconds among a thousand gaps is a \
                 share of 0.001. Another --stall-ms gives another metric, so compare runs with the \
                 same one.",
            zh: "它数的是间隔个数而不是时间：一千个间隔里一次十秒的停顿只占 0.001。--stall-ms 不\
                 同，结果就不可比。",
        },
        source: "ours",
        peers: "None of the peers prints it; vLLM and AIPerf give percentiles of gaps, which \
                hide \
                how many fell on one answer.",
        definition: 1,
        how: How::Request(|timed| timed.stall_share()),
    },
    Metric {
        key: "reader_stall_ms",
        symbol: "reader stall",
        name: Text { en: "Waiting time of a reader", zh: "阅读等待时间" },
        text: Text {
            en: "How long a person who reads along would sit waiting for text after the first \
                 token. Zero means that the stream kept ahead of reading speed.",
            zh: "用户边看边读时，首 token 之后总共要停下来等多久。为 0 说明输出始终跟得上阅读速\
                 度。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "Σ time in which a reader of 5 tok/s, who starts at the first arrival, has read \
                  all that came; each arrival counts as streamed tokens ÷ (gaps + 1), streamed \
                  tokens = OSL − reasoning tokens that were not shown",
        population: "requests that ended ok with at least two arrivals and a known OSL; answers \
                     that came at one instant stay out",
        undefined_when: "the answer has one arrival, came at one instant or did not end ok, the \
                         number of output tokens is unknown, or reasoning was summarised or hidden \
                         and not counted",
        pitfalls: Text {
            en: "Zero does not mean fast, only faster than reading; code that is skimmed and \
                 answers that machines read need TPOT or E2EL. Tokens are taken as spread evenly \
                 over the chunks.",
            zh: "为 0 只说明不比阅读慢，并不代表快；代码补全或由程序读取的回答应看 TPOT 或 E2EL。\
                 计算时假定 token 均匀分布在各 chunk 中。",
        },
        source: "ours; the idea that a stream should keep up with reading speed is in seed text \
                 003",
        peers: "None of the peers prints it. Rates such as AIPerf's \
                output_token_throughput_per_user can be held against reading speed, but an average \
                hides when the text came.",
        definition: 1,
        how: How::Request(|timed| timed.reader_stall()),
    },
    Metric {
        key: "normalised_latency_ms",
        symbol: "normalised latency",
        name: Text { en: "Normalised latency", zh: "归一化延迟" },
        text: Text {
            en: "The whole wait spread over the output tokens. It lets one number order requests \
                 of different length when only the complete answer counts.",
            zh: "把端到端延迟平摊到每个输出 token。只关心完整回答时，可用一个数比较长短不同的请\
                 求。",
        },
        unit: Unit::MillisecondsPerToken,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "E2EL ÷ OSL",
        population: "requests that ended ok with a known number of output tokens",
        undefined_when: "the request did not end ok, or the number of output tokens is unknown \
                         or \
                         0",
        pitfalls: Text {
            en: "TTFT is inside, so short answers read high and it never equals TPOT. A longer \
                 answer looks better at the same speed.",
            zh: "其中包含 TTFT，短回答会偏高，也不等于 TPOT。速度相同时，回答越长数值越好看。",
        },
        source: "inference-perf (NTPOT); papers on serving use it as normalised latency",
        peers: "inference-perf NTPOT: the same but 0.0 without output, and its end lies after \
                client tokenisation. GuideLLM calls (last token − start) ÷ OSL TPOT. AIPerf \
                e2e_output_token_throughput is its inverse.",
        definition: 1,
        how: How::Request(|timed| timed.normalised_latency()),
    },
    Metric {
        key: "interactivity_tok_s",
        symbol: "interactivity",
        name: Text { en: "Output speed per user", zh: "每用户输出速度" },
        text: Text {
            en: "How many tokens a second one user gets while the answer streams. It is the \
                 user's \
                 side of the trade-off with throughput per GPU.",
            zh: "流式输出时单个用户每秒拿到多少 token，即“每用户 TPS”。它与单卡吞吐构成延迟和吞吐\
                 的权衡。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Latency,
        formula: "1 ÷ TPOT, taken from each percentile of TPOT: 90 % of the requests get at \
                  least \
                  1 ÷ p90(TPOT)",
        population: "the requests that have a TPOT",
        undefined_when: "no request has a TPOT, or the figure of TPOT is 0",
        pitfalls: Text {
            en: "The slow tail of a rate is 1 ÷ p90(time), read as \"90 % get at least\"; p90 \
                 of 1 \
                 ÷ time names the fast users. Two definitions are in use, 1 ÷ TPOT and OSL ÷ E2EL: \
                 name which.",
            zh: "速率的慢尾是 1 ÷ P90(时间)，意思是“90 % 的请求至少有这么快”；对速率取 P90 得到的\
                 是快的那一头。业内有 1 ÷ TPOT 和 OSL ÷ E2EL 两种口径，引用时要说明。",
        },
        source: "seed text 003 (TPS per user); InferenceX for the name",
        peers: "AIPerf output_token_throughput_per_user: 1 ÷ ITL of each request, so its slow \
                users are in the low percentiles. InferenceX interactivity: also in a normalised \
                form, OSL ÷ E2EL. genai-bench output_inference_speed: 1 ÷ TPOT of each request, \
                with percentiles of the rate. vLLM prints none.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "client_wait_ms",
        symbol: "client wait",
        name: Text { en: "Client wait", zh: "客户端等待" },
        text: Text {
            en: "How late a request left the load generator: waiting for a concurrency slot, \
                 for a \
                 connection, or for the generator itself. It tells whether a latency is the \
                 server's or ours.",
            zh: "请求比计划晚多久才发出：等并发名额、等连接，或压测端自己来不及。用它判断延迟是服\
                 务端的还是压测端的。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "sent_at − intended_at",
        population: "every request that was sent, whatever its outcome",
        undefined_when: "the request was never sent, or the row was imported without stamps",
        pitfalls: Text {
            en: "It is not the server's time, yet users feel it, so it is in the headline \
                 latencies and not in service_metrics. Behind a concurrency cap it holds the \
                 queue; latencies measured from the send then look calm while users wait \
                 (coordinated omission).",
            zh: "这不是服务端耗时，但用户会感受到，所以计入主要延迟指标，不计入 service_metrics。\
                 设了并发上限时排队就在这里；若只从发送时刻起算，延迟看着平稳，用户却在等（协同遗\
                 漏）。",
        },
        source: "ours",
        peers: "In no latency of vLLM, genai-bench, EvalScope or inference-perf, whose clocks \
                start at the send; inference-perf reports start − scheduled apart. AIPerf \
                credit_to_start_latency: start − credit issued. GuideLLM 0.8 reports dispatch \
                delays and a latency from the scheduled start.",
        definition: 1,
        how: How::Request(|timed| timed.client_wait()),
    },
    Metric {
        key: "headers_ms",
        symbol: "headers",
        name: Text { en: "Time to response head", zh: "响应头延迟" },
        text: Text {
            en: "How long the server takes to answer with HTTP headers. Beside TTFT it separates \
                 network and front end from the engine, where the server sends the head at once.",
            zh: "从发出请求到收到完整响应头的时间。如果服务端先返回响应头再调度，它与 TTFT 对比就\
                 能把网络和前端与引擎分开。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "response head complete − sent_at, in both sets of latencies",
        population: "requests that ended ok",
        undefined_when: "the request did not end ok, or the row was imported without the stamp",
        pitfalls: Text {
            en: "Some servers send the head before the request is scheduled, others with the \
                 first \
                 token: it means the same only between runs against one server.",
            zh: "有的服务端在调度前就返回响应头，有的等到首 token 才返回；只能在同一服务端的多\
                 次测\
                 试之间比较。",
        },
        source: "ours",
        peers: "AIPerf stream_setup_latency: the same. vLLM gives this figure as TTFT and \
                latency \
                of pooling requests, before the body is read.",
        definition: 1,
        how: How::Request(|timed| timed.headers()),
    },
    Metric {
        key: "queueing_ms",
        symbol: "queueing",
        name: Text { en: "Queueing time", zh: "排队时间" },
        text: Text {
            en: "How long a request waits in the engine before it is first scheduled. It is the \
                 first thing to look at when TTFT is high and TPOT is normal.",
            zh: "请求在引擎里从入队到首次被调度等了多久。TTFT 高而 TPOT 正常时，首先看它。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "first scheduled − queued, at the server; as a mean, Δsum ÷ Δcount of the \
                  engine's queue-time histogram over the measured window",
        population: "requests that the server finished in the measured window; Δcount must match \
                     our own requests within 5 %",
        undefined_when: "the engine does not expose it, or more than 5 % of its requests were \
                         not \
                         ours",
        pitfalls: Text {
            en: "It is the wait to the first schedule only: a wait after preemption is in \
                 prefill \
                 or decode time. Histogram percentiles below the first bucket (0.3 s in vLLM) mean \
                 nothing; use the mean.",
            zh: "它只算到首次调度为止，被抢占后的再次等待算在 prefill 或 decode 时间里。落在直\
                 方图\
                 第一个桶（vLLM 为 0.3 s）以内的分位数没有意义，应看均值。",
        },
        source: "seed text 000 (Queueing Time); vLLM request_queue_time_seconds",
        peers: "vLLM request_queue_time_seconds, SGLang queue_time_seconds, TGI \
                tgi_request_queue_duration. Load tools cannot see it from outside; a wait for a \
                concurrency slot is client wait, not queueing.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "prefill_ms",
        symbol: "prefill",
        name: Text { en: "Prefill time", zh: "prefill 时间" },
        text: Text {
            en: "How long the engine works from first scheduling a request to its first token. \
                 Beside queueing it tells whether a high TTFT wants capacity or a faster \
                 prefill.",
            zh: "引擎从首次调度请求到产出首 token 用了多久。与排队时间对照，就知道 TTFT 高是该\
                 加容\
                 量，还是该优化 prefill。",
        },
        unit: Unit::Milliseconds,
        level: Level::Request,
        better: Better::Lower,
        branch: Branch::Latency,
        formula: "first token − first scheduled, at the server; as a mean, Δsum ÷ Δcount of the \
                  engine's prefill-time histogram over the measured window",
        population: "requests that the server finished in the measured window; Δcount must match \
                     our own requests within 5 %",
        undefined_when: "the engine does not expose it, or more than 5 % of its requests were \
                         not \
                         ours",
        pitfalls: Text {
            en: "It is elapsed time and not prefill work: chunked prefill shares its steps with \
                 other requests' decodes, and a prefix hit makes it short without any faster \
                 kernel.",
            zh: "它是经过的时间，不是 prefill 的计算量：分块 prefill 与其他请求的 decode 共用调度\
                 步；前缀缓存命中也会让它变短，而 kernel 并没有变快。",
        },
        source: "seed text 000 (time line); vLLM request_prefill_time_seconds",
        peers: "vLLM request_prefill_time_seconds; the time_to_first_token_ms that vLLM can put \
                into the usage event is this quantity and not TTFT. SGLang \
                per_stage_req_latency_seconds{prefill_forward}. AIPerf stream_prefill_latency, \
                TTFT − headers, is a client-side guess that includes queueing.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "input_tokens",
        symbol: "ISL",
        name: Text { en: "Input sequence length", zh: "输入长度" },
        text: Text {
            en: "Prompt tokens of a request as the server counted them. It is a condition of the \
                 test: TTFT means little without it.",
            zh: "服务端统计的每个请求的输入 token 数。它是测试条件，脱离它谈 TTFT 没有意义。",
        },
        unit: Unit::Tokens,
        level: Level::Request,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "prompt tokens of the server's usage (last or largest value)",
        population: "requests that ended ok",
        undefined_when: "the request did not end ok, or the server gave no prompt count",
        pitfalls: Text {
            en: "The chat template adds tokens, so it is larger than the length asked for. \
                 Cached \
                 tokens are in it though they are hardly any work.",
            zh: "聊天模板会增加 token，所以它大于设定的长度。命中前缀缓存的 token 也计入，但几\
                 乎不\
                 产生计算。",
        },
        source: "OpenAI usage object; ISL is the field's usual name",
        peers: "vLLM: usage, else the data set's own count. AIPerf input_sequence_length: client \
                tokens without chat template unless asked, or server usage. The word prompt length \
                elsewhere often means the length that was asked for.",
        definition: 1,
        how: How::Request(|timed| timed.input_length()),
    },
    Metric {
        key: "output_tokens",
        symbol: "OSL",
        name: Text { en: "Output sequence length", zh: "输出长度" },
        text: Text {
            en: "Output tokens of a request. It is a condition of the test: E2EL and throughput \
                 compare only at equal output lengths.",
            zh: "每个请求的输出 token 数。它是测试条件：只有输出长度相同，E2EL 和吞吐才可比。",
        },
        unit: Unit::Tokens,
        level: Level::Request,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "the best source there is, which is named: server usage (last or largest \
                  value) > \
                  other server counts > logprobs > client tokenizer > output chunks",
        population: "requests that ended ok; the choices of one request are summed",
        undefined_when: "the request did not end ok, or no source gives a count",
        pitfalls: Text {
            en: "Reasoning tokens are in it, shown or not. Chunks are only a lower bound of \
                 tokens. A mean that differs from the length asked for by more than 10 % makes two \
                 runs incomparable.",
            zh: "思考 token 无论是否展示都计入。用 chunk 数代替时只是下限。实际均值与设定相差超\
                 过 \
                 10 % 时，两次测试不可比。",
        },
        source: "ours (order of the sources); OSL is the field's usual name",
        peers: "vLLM: usage, else the re-tokenised text. AIPerf output_sequence_length: output \
                and \
                reasoning together. GuideLLM: usage, else chunks. inference-perf: re-tokenised \
                visible text by default. genai-bench and EvalScope: usage, else tokenizer.",
        definition: 1,
        how: How::Request(|timed| timed.output_length()),
    },
    Metric {
        key: "tokens_per_chunk",
        symbol: "tokens per chunk",
        name: Text { en: "Tokens per chunk", zh: "每 chunk token 数" },
        text: Text {
            en: "How many tokens one chunk of the stream carries. It says whether a gap may be \
                 read as the time of a token.",
            zh: "一个流式 chunk 平均带几个 token。它决定 chunk 间隔能不能当作 token 间隔来读。",
        },
        unit: Unit::TokensPerChunk,
        level: Level::Request,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "(OSL − reasoning tokens that were not shown) ÷ output chunks",
        population: "requests that ended ok with at least two output chunks and a known OSL",
        undefined_when: "the request did not end ok, fewer than two output chunks came, the \
                         number \
                         of output tokens is unknown, or reasoning was summarised or hidden and \
                         not counted",
        pitfalls: Text {
            en: "Above 1 it may be speculative decoding, the server's stream interval or a proxy \
                 that merges chunks. Neither large nor small is good in itself.",
            zh: "大于 1 可能是投机解码、服务端按间隔输出，或代理合并了 chunk。数值大小本身没有好\
                 坏。",
        },
        source: "ours",
        peers: "No peer prints it. vLLM and EvalScope take an event for a token in their gaps, \
                and \
                vLLM also in its peak output tok/s.",
        definition: 1,
        how: How::Request(|timed| timed.tokens_per_chunk()),
    },
    Metric {
        key: "output_tok_s",
        symbol: "output tok/s",
        name: Text { en: "Output token throughput", zh: "输出吞吐" },
        text: Text {
            en: "Tokens that the whole system delivers in a second. It measures decode capacity, \
                 for those who plan machines.",
            zh: "整个系统每秒产出多少输出 token，反映 decode 能力，做容量规划时看它。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "Σ output tokens ÷ makespan (first intended → last event); steady.output_tok_s \
                  counts the tokens that arrived inside the steady window",
        population: "output tokens of requests that ended ok; one whose tokens are unknown adds \
                     nothing",
        undefined_when: "the makespan has no length, or no request has a number of output tokens",
        pitfalls: Text {
            en: "High throughput may come with long queues: judge it together with goodput. Ramp \
                 and drain are in the makespan, so one straggler lowers it; the steady window has \
                 neither. It is a system figure, not one per user or per GPU.",
            zh: "吞吐高可能只是 batch 大、排队长，要和 goodput 一起看。makespan 包含起步和收\
                 尾，一\
                 个慢请求就会拉低它；稳态窗口不受影响。它是系统总量，不是每用户或每卡的值。",
        },
        source: "seed texts 000 and 003; vLLM benchmarks/serve.py (output_throughput)",
        peers: "vLLM output_throughput and AIPerf output_token_throughput: tokens of successes ÷ \
                duration. inference-perf: successes ÷ span over all requests. GuideLLM: a \
                time-weighted distribution of rates. genai-bench: tokens kept after trimming ÷ the \
                untrimmed time. EvalScope: ÷ (last completion − first start). MLPerf endpoints: up \
                to the completion of the request issued last.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "input_computed_tok_s",
        symbol: "computed input tok/s",
        name: Text { en: "Computed input token throughput", zh: "实算输入吞吐" },
        text: Text {
            en: "Prompt tokens that the engine really had to prefill in a second. It measures \
                 prefill capacity.",
            zh: "引擎每秒真正做了 prefill 的输入 token 数（不含缓存命中），反映 prefill 能力。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "Σ (prompt tokens − cached prompt tokens) ÷ makespan",
        population: "requests that ended ok; one that does not say how many tokens were cached \
                     counts as uncached",
        undefined_when: "the makespan has no length, no request has a prompt count, or none says \
                         how many of its tokens were cached",
        pitfalls: Text {
            en: "It falls when the prefix cache works well, and that is good news: read it \
                 beside \
                 the cached rate. Tokens recomputed after preemption are work too but in no usage \
                 count.",
            zh: "前缀缓存效果好时它反而下降，这是好事，要和缓存命中部分一起看。抢占后重算的 \
                 token \
                 也是计算量，但不会出现在 usage 里。",
        },
        source: "ours; the split follows vLLM's prompt_tokens_by_source (local_compute)",
        peers: "No load tool splits it. vLLM's log line of average prompt throughput counts \
                computed tokens only, while its counter prompt_tokens_total counts all.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "input_cached_tok_s",
        symbol: "cached input tok/s",
        name: Text { en: "Cached input token throughput", zh: "缓存命中输入吞吐" },
        text: Text {
            en: "Prompt tokens that came out of a prefix cache in a second: prefill work that \
                 was \
                 avoided.",
            zh: "每秒由前缀缓存直接提供的输入 token 数，也就是省下的 prefill 计算。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "Σ cached prompt tokens ÷ makespan",
        population: "requests that ended ok",
        undefined_when: "the makespan has no length, or no request says how many prompt tokens \
                         were cached",
        pitfalls: Text {
            en: "High in a synthetic test often means that prompts were repeated and not that \
                 the \
                 workload is kind: state the cache regime. Such tokens are nearly free and must \
                 not be sold as throughput.",
            zh: "合成压测中偏高，往往只是提示词重复，而不代表真实业务：报告要写明冷热缓存。这些 \
                 token 几乎不花计算，不能当吞吐宣传。",
        },
        source: "ours; cached_tokens of the server's usage",
        peers: "AIPerf overall_usage_prompt_cache_read_pct gives the share and not the rate. The \
                other load tools do not show it.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "cached_share",
        symbol: "cached share",
        name: Text { en: "Cached share of prompt tokens", zh: "输入 token 缓存命中占比" },
        text: Text {
            en: "The share of the run's prompt tokens that came out of a prefix cache, as the \
                 answers say. It shows whether the run had the cache state that it claims.",
            zh: "整次压测的输入 token 中由前缀缓存提供的比例，取自各个回答。它能验证实际的缓存状态\
                 是否与声明的一致。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "Σ cached prompt tokens ÷ Σ prompt tokens",
        population: "requests that ended ok; one that does not say how many tokens were cached \
                     counts as uncached where others say it",
        undefined_when: "no request says how many prompt tokens were cached",
        pitfalls: Text {
            en: "The beginning of a chat template is the same in all prompts and is cached in any \
                 regime. An engine without a prefix cache, or one that is not asked to tell \
                 (vLLM: --enable-prompt-tokens-details), gives no count, which is not 0.",
            zh: "聊天模板的开头在所有 prompt 中相同，任何缓存状态下都会命中。没有前缀缓存、或未开启\
                 上报的引擎（vLLM：--enable-prompt-tokens-details）不给出计数，这不等于 0。",
        },
        source: "ours; cached_tokens of the server's usage",
        peers: "AIPerf overall_usage_prompt_cache_read_pct. vLLM bench prints none.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "input_tok_s",
        symbol: "input tok/s",
        name: Text { en: "Input token throughput", zh: "输入吞吐" },
        text: Text {
            en: "Prompt tokens that the system takes in a second, cached or not. It is the \
                 headline of input-heavy work such as summarising long documents.",
            zh: "系统每秒处理的输入 token 数，含缓存命中。长文档摘要等输入为主的场景主要看它。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "Σ prompt tokens ÷ makespan",
        population: "prompt tokens of requests that ended ok; one without a prompt count adds \
                     nothing",
        undefined_when: "the makespan has no length, or no request has a prompt count",
        pitfalls: Text {
            en: "With a warm prefix cache it rises without any work being done. Take computed \
                 input tok/s for prefill capacity.",
            zh: "前缀缓存是热的时候，它会虚高，并没有真正的计算。衡量 prefill 能力应看实算输入吞\
                 吐。",
        },
        source: "seed text 003 \"LLM inference metrics\" (Input TPS)",
        peers: "AIPerf input_token_throughput: prompt tokens of valid requests ÷ duration. vLLM \
                prints it only inside the total; for pooling requests its total_token_throughput \
                is this one.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "total_tok_s",
        symbol: "total tok/s",
        name: Text { en: "Total token throughput", zh: "总 token 吞吐" },
        text: Text {
            en: "Input and output tokens together in a second: all the work that passed through. \
                 It compares runs only at equal input and output lengths.",
            zh: "每秒处理的输入与输出 token 之和，即总处理量。只有输入、输出长度都相同时才可比。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "(Σ prompt tokens + Σ output tokens) ÷ makespan",
        population: "requests that ended ok",
        undefined_when: "the makespan has no length, or either input or output tokens are \
                         unknown \
                         for every request",
        pitfalls: Text {
            en: "It adds cheap tokens to dear ones: long prompts inflate it, and cached prompts \
                 inflate it for nothing. Above 10 % cached tokens it is no headline.",
            zh: "它把便宜的和昂贵的 token 混在一起：长输入会抬高它，缓存命中更是白白抬高。缓存\
                 占比\
                 超过 10 % 时不应作为主要指标。",
        },
        source: "seed text 000; vLLM benchmarks/serve.py (total_token_throughput)",
        peers: "vLLM total_token_throughput, AIPerf total_token_throughput, genai-bench and \
                EvalScope: input + output over their own durations. All count cached prompt tokens \
                as if they were computed.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "req_s",
        symbol: "req/s",
        name: Text { en: "Request throughput", zh: "请求吞吐" },
        text: Text {
            en: "Requests that the system completes in a second. It is the unit in which load \
                 arrives and capacity is sold.",
            zh: "系统每秒成功完成多少个请求，对应业务侧的请求量。",
        },
        unit: Unit::RequestsPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "requests that ended ok ÷ makespan; steady.req_s counts those that ended inside \
                  the steady window",
        population: "requests that ended ok",
        undefined_when: "the makespan has no length",
        pitfalls: Text {
            en: "It says nothing about the work in a request: give concurrency, ISL, OSL, cache \
                 regime and tail latencies with it. In an open loop that keeps up it only repeats \
                 the offered rate.",
            zh: "它不反映每个请求的工作量，必须同时给出并发数、输入输出长度、缓存冷热和尾延迟。开\
                 环压测且系统跟得上时，它只是重复了到达率。",
        },
        source: "seed texts 000 and 003; vLLM benchmarks/serve.py (request_throughput)",
        peers: "vLLM and AIPerf request_throughput: successes ÷ duration. GuideLLM's requests \
                per \
                second includes errored ones. MLPerf endpoints count failures as completions. \
                inference-perf: successes ÷ span over all requests.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "wasted_tok_s",
        symbol: "wasted tok/s",
        name: Text { en: "Wasted token throughput", zh: "浪费的 token 吞吐" },
        text: Text {
            en: "Output tokens a second that were generated for answers nobody could use. It \
                 shows \
                 capacity lost to failures, time-outs and cancelled requests.",
            zh: "每秒为没能正常结束的回答白白生成的 token。反映失败、超时和取消浪费了多少产能。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Throughput,
        formula: "Σ output tokens of requests that did not end ok ÷ makespan, as the server \
                  counted them, else one a chunk",
        population: "requests that failed, ended without output or were cancelled",
        undefined_when: "the makespan has no length",
        pitfalls: Text {
            en: "It is a lower bound: a broken answer often ends before its token count comes, \
                 and \
                 then only its chunks are counted. Good answers that missed the SLO are not here \
                 but in the difference of output tok/s and goodput in tokens.",
            zh: "这是下限：中断的回答往往来不及给出 token 数，只能按 chunk 数计。正常结束但没达标\
                 的回答不算在内，它们体现为输出吞吐与 token 口径 goodput 之差。",
        },
        source: "ours",
        peers: "No peer prints it: tokens of failed requests disappear from their totals.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "goodput_req_s",
        symbol: "goodput",
        name: Text { en: "Goodput", zh: "有效吞吐" },
        text: Text {
            en: "Requests a second that met every SLO. It is the throughput that users would \
                 call \
                 served, and the figure by which two systems are judged.",
            zh: "每秒有多少请求满足全部 SLO。这才是用户认可的吞吐，也是判断两个系统孰优孰劣的依\
                 据。",
        },
        unit: Unit::RequestsPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "requests meeting all SLOs (limits inclusive) ÷ arrival window in an open \
                  loop, ÷ \
                  makespan in a closed loop or burst",
        population: "all requests intended in the window: failed, empty and truncated answers \
                     are \
                     not good; an SLO that cannot apply, as TPOT at OSL 1, counts as met and is \
                     counted as vacuous",
        undefined_when: "no SLO was given, or the window has no length",
        pitfalls: Text {
            en: "Without its SLOs the number means nothing: always print them with it. SLOs are \
                 joined by AND per request, so it is lower than any single attainment suggests. In \
                 an open loop it is attainment × offered rate and cannot exceed what was \
                 offered.",
            zh: "不写明 SLO 的 goodput 没有意义。判断按请求做“与”：任何一项不达标就不计入，所以低\
                 于各项达标率给人的印象。开环压测下它等于达标率 × 到达率，不会超过施加的负载。",
        },
        source: "seed texts 000 and 003; vLLM benchmarks/serve.py (request_goodput)",
        peers: "vLLM request_goodput: successes that meet the given limits ÷ duration, with \
                one-token answers at TPOT 0. AIPerf goodput: good ÷ duration, and a missing metric \
                means not good. GuideLLM: only in its goodput profile; incomplete requests are \
                left out. inference-perf goodput is a share over successes and not a rate. \
                genai-bench and EvalScope have none.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "goodput_tok_s",
        symbol: "goodput in tokens",
        name: Text { en: "Goodput in output tokens", zh: "有效吞吐（token 口径）" },
        text: Text {
            en: "Output tokens a second that belong to requests which met every SLO. It weighs a \
                 long good answer more than a short one.",
            zh: "满足全部 SLO 的请求每秒贡献多少输出 token。长回答权重更大。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Throughput,
        formula: "Σ known output tokens of requests meeting all SLOs ÷ the window of goodput",
        population: "requests that met all SLOs; one whose output tokens are unknown adds \
                     nothing",
        undefined_when: "no SLO was given, or the window has no length",
        pitfalls: Text {
            en: "An answer that missed its SLO by a millisecond counts nothing, however many \
                 tokens it had. Compare with output tok/s: the difference is work that users did \
                 not get in time.",
            zh: "只要差一毫秒没达标，整个回答的 token 都不计入。与输出吞吐相比，差额就是做了却\
                 没按\
                 时交付的部分。",
        },
        source: "seed text 000 (question 2 measures goodput in tokens/s)",
        peers: "No peer prints it; vLLM's and AIPerf's goodput counts requests. AIPerf \
                goodput_per_watt is a neighbour.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "attainment",
        symbol: "attainment",
        name: Text { en: "SLO attainment", zh: "SLO 达标率" },
        text: Text {
            en: "The share of requests that met every SLO, and of each SLO and label apart. It \
                 answers the question of a service-level agreement.",
            zh: "满足全部 SLO 的请求占比，也分 SLO、分标签给出。对应服务协议里承诺的那个百分比。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Quality,
        formula: "good ÷ (intended in the arrival window − client faults − undecided)",
        population: "requests intended in the arrival window; in a closed loop or burst, in the \
                     makespan. Failed, empty and truncated are bad; cancelled after breaking an \
                     SLO is bad, before it undecided; bounds says what the undecided leave open.",
        undefined_when: "no SLO was given, or no request could be judged",
        pitfalls: Text {
            en: "A share over successes only looks best when most requests fail: here failures \
                 are \
                 bad. Joint attainment is never above that of a single SLO. It is a property of \
                 the load as well: give the rate with it.",
            zh: "只对成功请求算达标率，失败越多反而越好看；这里失败一律算不达标。联合达标率不会高\
                 于任何单项。它取决于负载，要和到达率一起给出。",
        },
        source: "seed texts 000 and 003; the denominator is ours",
        peers: "AIPerf good_request_fraction: good ÷ (valid + errors). inference-perf calls its \
                share over successes goodput, so that it stays at 100 % when a fifth of the \
                requests fail. vLLM has no share. EvalScope and llm-d gate on aggregates of a run, \
                not on requests.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "jain_attainment",
        symbol: "Jain (attainment)",
        name: Text { en: "Fairness of attainment", zh: "达标率公平性" },
        text: Text {
            en: "How equally the values of a label, such as tenants, get what they were promised: 1 \
                 when all attain the same, 1 ÷ n when one of n attains all.",
            zh: "某个标签的各个取值（例如租户）兑现承诺的均衡程度：全部相同为 1，n 个中只有一个达标为 1 ÷ n。",
        },
        unit: Unit::Ratio,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Quality,
        formula: "(Σ x)² ÷ (n · Σ x²) over the values of a label; x = good ÷ judged of the value, \
                  each under the SLO that is for it",
        population: "labels with two values or more; requests without the label stay out",
        undefined_when: "no SLO was given, a value has no judged request, or none is good",
        pitfalls: Text {
            en: "All served equally badly is perfectly fair: read it beside attainment. It says \
                 nothing about who loses; the table of the label does.",
            zh: "大家一样差也算完全公平，要和达标率一起看。它不说明谁吃亏，要看按标签的表。",
        },
        source: "Jain, Chiu, Hawe, DEC-TR-301 (1984); the choice of x is ours",
        peers: "No peer prints it.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "jain_speed",
        symbol: "Jain (speed)",
        name: Text { en: "Fairness of speed", zh: "速度公平性" },
        text: Text {
            en: "How equal the output tokens a second are that a request of each label value gets \
                 while it is under way.",
            zh: "各标签取值的请求在途期间每秒得到的输出 token 数有多均衡。",
        },
        unit: Unit::Ratio,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Quality,
        formula: "(Σ x)² ÷ (n · Σ x²) over the values of a label; x = output tokens of successes ÷ \
                  Σ (end − intended) of all its requests",
        population: "labels with two values or more; failed requests add time and no tokens",
        undefined_when: "the output tokens of a value are unknown",
        pitfalls: Text {
            en: "Values with longer prompts or shorter answers get fewer tokens a second from a \
                 perfectly fair server too. Slowdown against an isolated run does not have this \
                 flaw.",
            zh: "输入更长或输出更短的取值，即使服务端完全公平，每秒得到的 token 也更少。与独占结果相比的减速没有这个问题。",
        },
        source: "Jain, Chiu, Hawe, DEC-TR-301 (1984); the choice of x is ours",
        peers: "No peer prints it.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "slowdown",
        symbol: "slowdown",
        name: Text { en: "Slowdown against isolated", zh: "相对独占的减速" },
        text: Text {
            en: "How many times slower the requests of a label are than when they have the server \
                 for themselves. The largest tells who pays for sharing.",
            zh: "某个标签的请求比独占服务时慢多少倍。最大的一项说明谁在为共享买单。",
        },
        unit: Unit::Ratio,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Quality,
        formula: "TTFT and E2EL at P50 and P99 ÷ the same of the run given with --isolated",
        population: "successes of the label; both runs by our own definitions",
        undefined_when: "no isolated run of the label was given",
        pitfalls: Text {
            en: "The isolated run has to send the same requests at the same rate, only without the \
                 others; another seed, length or cache state is another workload. P99 of few \
                 requests moves by itself.",
            zh: "独占的那次要以同样的速率发送同样的请求，只是没有其他人；换了种子、长度或缓存状态就是另一种负载。请求少时 P99 自己就会波动。",
        },
        source: "ours; the ratio is usual in work on scheduling",
        peers: "No peer prints it.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "offered_rps",
        symbol: "offered",
        name: Text { en: "Offered rate", zh: "到达速率" },
        text: Text {
            en: "Arrivals a second that the load asked for, whether or not the system kept up. \
                 It is the load of an open loop.",
            zh: "负载要求的每秒到达数，与系统是否跟得上无关。它就是开环压测的负载。",
        },
        unit: Unit::RequestsPerSecond,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "n ÷ arrival window; without a planned duration the window is (last − \
                  first)·n ÷ (n − 1)",
        population: "all requests of the schedule",
        undefined_when: "the load is closed, a burst, or of an imported file: nothing says \
                         when requests were due",
        pitfalls: Text {
            en: "It is a property of the load and not of the server. Over a short run a \
                 Poisson process misses the rate that was asked for by some percent; what was \
                 asked for stands beside it.",
            zh: "这是负载的属性，不是服务端的属性。测试较短时，泊松到达的实际速率会偏离设定值几\
                 个百分点，设定值会一并给出。",
        },
        source: "MLPerf LoadGen; open-loop load generation",
        peers: "vLLM prints the rate that was asked for and not the one that came about. \
                AIPerf and GuideLLM likewise.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "released_rps",
        symbol: "released",
        name: Text { en: "Released rate", zh: "放行速率" },
        text: Text {
            en: "Requests a second that the client let go, over the same window. Below the \
                 offered rate, a cap or the client itself held some back.",
            zh: "同一窗口内压测端每秒放行的请求数。低于到达速率说明并发上限或压测端自身拦住了一\
                 部分。",
        },
        unit: Unit::RequestsPerSecond,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "requests with released_at in the arrival window ÷ arrival window",
        population: "requests that were let go",
        undefined_when: "as the offered rate",
        pitfalls: Text {
            en: "A shortfall without a cap is the client's fault and makes the run DEGRADED \
                 below 0.99 of the plan, INVALID below 0.95.",
            zh: "没有并发上限而放行不足，是压测端的问题：低于计划的 0.99 为 DEGRADED，低于 \
                 0.95 为 INVALID。",
        },
        source: "ours",
        peers: "No peer prints it.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "completed_rps",
        symbol: "completed",
        name: Text { en: "Completed rate", zh: "完成速率" },
        text: Text {
            en: "Requests a second that ended well, over the makespan. It equals req/s.",
            zh: "总时长内每秒正常结束的请求数，与 req/s 相同。",
        },
        unit: Unit::RequestsPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Workload,
        formula: "requests that ended ok ÷ makespan",
        population: "requests that ended ok",
        undefined_when: "the makespan has no length",
        pitfalls: Text {
            en: "It is below the offered rate in every run, because the makespan holds the \
                 last answers' drain; compare the rates of the steady window.",
            zh: "它总会低于到达速率，因为总时长还包含最后一批回答的收尾；要比较请看稳态窗口的速\
                 率。",
        },
        source: "ours",
        peers: "vLLM request_throughput, AIPerf request_throughput.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "max_in_flight",
        symbol: "in flight",
        name: Text { en: "Requests in flight", zh: "在途请求数" },
        text: Text {
            en: "The largest number of requests that were sent and not over at one time.",
            zh: "同一时刻已发出而未结束的请求数的最大值。",
        },
        unit: Unit::Requests,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "maximum over time of requests between sent_at and ended_at",
        population: "requests that were sent",
        undefined_when: "never; 0 where nothing was sent",
        pitfalls: Text {
            en: "It is what the client sees: requests in the server's queue are in flight too, \
                 so it is not the engine's batch size.",
            zh: "这是压测端看到的数：在服务端排队的请求也算在途，所以它不等于引擎的 batch 大小。",
        },
        source: "ours",
        peers: "vLLM's max_concurrent_requests counts all requests that touch a second, and \
                reads higher.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "duration_s",
        symbol: "makespan",
        name: Text { en: "Makespan", zh: "总时长" },
        text: Text {
            en: "From the first intended request to the last event. Throughput divides by it.",
            zh: "从第一个计划到达到最后一个事件。吞吐以它为分母。",
        },
        unit: Unit::Seconds,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Workload,
        formula: "last ended_at − first intended_at",
        population: "requests that were let go",
        undefined_when: "nothing was let go",
        pitfalls: Text {
            en: "It holds the ramp and the drain: in a short run with long answers that is \
                 most of it, and throughput reads low.",
            zh: "它包含爬升和收尾：测试短、回答长时这部分占大头，吞吐会偏低。",
        },
        source: "ours",
        peers: "vLLM's duration begins before the first request and ends when all tasks are \
                gathered.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "lateness_us",
        symbol: "late",
        name: Text { en: "Send lateness", zh: "发送迟到" },
        text: Text {
            en: "How much later than due the client wrote requests. It is the client's own \
                 fault in every latency that starts at the intended instant.",
            zh: "请求比应发时刻晚写出多少。凡从计划时刻起算的延迟，都包含压测端的这部分误差。",
        },
        unit: Unit::Microseconds,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Instrument,
        formula: "sent_at − intended_at in an open loop, − released_at behind a cap, − end of \
                  think time in a closed loop; less the opening of a connection",
        population: "requests that were sent",
        undefined_when: "everything was due at once, or the file does not say when",
        pitfalls: Text {
            en: "Its P99 above max(1 ms, 5 % of the median TTFT) makes a run DEGRADED. It is \
                 the machine's as much as the program's: other processes and a stopped virtual \
                 processor show here.",
            zh: "P99 超过 max(1 ms，TTFT 中位数的 5 %) 时结果为 DEGRADED。它既取决于程序也取决\
                 于机器：其他进程和被暂停的虚拟处理器都会体现在这里。",
        },
        source: "wrk2; MLPerf LoadGen",
        peers: "GuideLLM shows request start lag. vLLM and inference-perf show none.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "client_lag_us",
        symbol: "client lag",
        name: Text { en: "Client's own lag", zh: "压测端滞后" },
        text: Text {
            en: "How long bytes lay in the kernel before the client read them. With kernel \
                 stamps it is in no latency; it tells how busy the client was.",
            zh: "数据到达内核后过多久才被压测端读到。使用内核时间戳时它不计入任何延迟，只反映压\
                 测端有多忙。",
        },
        unit: Unit::Microseconds,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Instrument,
        formula: "user clock at the read − the kernel's receive stamp, of each read",
        population: "reads with a kernel stamp",
        undefined_when: "the kernel gave no stamp, or the file does not say",
        pitfalls: Text {
            en: "A large lag is no error of the latencies by itself; tokens that were read \
                 together are, and stamp error bounds that.",
            zh: "滞后大本身不会让延迟出错；多个 token 被一次读到才会，时间戳误差给出了它的上界。",
        },
        source: "ours",
        peers: "No peer measures it; it is inside their latencies.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "stamp_error_p99_us",
        symbol: "stamp error",
        name: Text { en: "Error bound of receive stamps", zh: "接收时间戳误差上界" },
        text: Text {
            en: "How much earlier than its stamp an arrival may have been, at P99. It is zero \
                 for the last event of a read and at most the time since the stream was last \
                 empty for others.",
            zh: "到达时刻最多比时间戳早多少（P99）。一次读取的最后一个事件为 0，其余不超过距该\
                 流上次读空的时间。",
        },
        unit: Unit::Microseconds,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Instrument,
        formula: "stamp − the later of: when the kernel was last asked and all was read, the \
                  last byte read before on this connection",
        population: "token arrivals",
        undefined_when: "no token arrived, or the file does not say",
        pitfalls: Text {
            en: "It is a bound and not an estimate: the true error is mostly far smaller.",
            zh: "这是上界而不是估计值：真实误差通常远小于它。",
        },
        source: "ours",
        peers: "No peer has one.",
        definition: 1,
        how: How::Run,
    },
    Metric {
        key: "mfu",
        symbol: "MFU",
        name: Text { en: "Model FLOPs utilisation", zh: "模型算力利用率" },
        text: Text {
            en: "The share of the accelerators' peak arithmetic that went into useful model \
                 work. \
                 It judges prefill; decode is bound by memory and stays in single digits.",
            zh: "加速卡峰值算力中真正用于模型计算的比例。适合评价 prefill；decode 受显存带宽限\
                 制，\
                 只有百分之几是正常的。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "useful FLOPs ÷ (GPUs × dense peak of the data type × window); useful = \
                  uncached \
                  prompt tokens + accepted output tokens, attention causal, each counted once",
        population: "work of the requests in the measured window, over all provisioned \
                     accelerators",
        undefined_when: "model shape, accelerator or their number is not given, or token counts \
                         are unknown",
        pitfalls: Text {
            en: "5 % during decode is no fault: judge decode by MBU and step over bound. A peak \
                 with sparsity, or of another data type, makes it wrong by a factor of two.",
            zh: "decode 时 MFU 只有 5 % 并不是问题，应看 MBU 和每步时间与下界之比。峰值若取稀疏算\
                 力或取错数据类型，结果会差一倍。",
        },
        source: "seed text 000; the PaLM paper's definition, with cached tokens left out",
        peers: "No load tool prints it. vLLM's estimated_flops_per_gpu counter gives HFU and \
                counts attention without the causal half. Peaks in vendors' sheets often include \
                sparsity.",
        definition: 1,
        how: How::Inside(Undefined::NoHardware),
    },
    Metric {
        key: "hfu",
        symbol: "HFU",
        name: Text { en: "Hardware FLOPs utilisation", zh: "硬件算力利用率" },
        text: Text {
            en: "The share of peak arithmetic that the engine itself says it spent, recomputed \
                 work included. Its distance from MFU is waste.",
            zh: "按引擎自己的估算，实际花掉的算力占峰值的比例，含重算。它与 MFU 的差距就是浪费。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "Δ of the engine's estimated FLOPs per GPU ÷ (dense peak of the data type × \
                  window)",
        population: "all work of the engine in the measured window, other clients' included",
        undefined_when: "the engine does not estimate its FLOPs (vLLM: --enable-mfu-metrics), or \
                         the accelerator is not given",
        pitfalls: Text {
            en: "It is the engine's estimate, not a measurement: vLLM does not halve causal \
                 attention, so it reads high on long prompts. High HFU with low MFU means \
                 recomputation, as after preemption.",
            zh: "这是引擎的估算，不是实测：vLLM 对因果注意力没有减半，长输入时偏高。HFU 高而 MFU \
                 低，说明有重算，例如抢占之后。",
        },
        source: "ours for the name in serving; vLLM estimated_flops_per_gpu_total",
        peers: "No load tool prints it. vLLM calls its flag and counters MFU metrics, although \
                recomputed tokens are in them.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "mbu",
        symbol: "MBU",
        name: Text { en: "Memory bandwidth utilisation", zh: "显存带宽利用率" },
        text: Text {
            en: "The share of the accelerators' memory bandwidth that a decode step uses. It is \
                 the right measure of how good decoding is.",
            zh: "decode 每一步用到的显存带宽占峰值的比例，是衡量 decode 效率的正确指标。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "bytes per step ÷ (step time × GPUs × peak bandwidth); bytes = weights + KV \
                  cache \
                  read in the step; step time = TPOT × tokens per step",
        population: "decode steps of the measured window",
        undefined_when: "model shape or accelerator is not given, or the tokens per step are \
                         unknown, as with speculative decoding that is not reported",
        pitfalls: Text {
            en: "Above 1 the inputs are wrong: the tokens per step, the weights' data type or \
                 the \
                 experts touched. Low at small batch with low MFU means launch overhead or \
                 communication.",
            zh: "大于 1 说明输入有误：每步 token 数、权重精度或激活的专家数不对。小 batch 下 MBU \
                 和 MFU 都低，多半是启动开销或通信。",
        },
        source: "Databricks (MBU), taken per step; seed text 000 asks for bandwidth use",
        peers: "No load tool prints it. DCGM DRAM active is a device's measured time share, not \
                bytes of the model, and includes copies and recomputation.",
        definition: 1,
        how: How::Inside(Undefined::NoHardware),
    },
    Metric {
        key: "step_over_bound",
        symbol: "step over bound",
        name: Text { en: "Step time over its lower bound", zh: "每步时间与下界之比" },
        text: Text {
            en: "How many times longer a decode step takes than the hardware allows. 1 is \
                 perfect; \
                 it says how much there is to gain before buying hardware.",
            zh: "decode 每一步的实际时间是硬件下界的几倍。1 为最优，它说明不换硬件还有多少优化空\
                 间。",
        },
        unit: Unit::Ratio,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "step time ÷ max(bytes per step ÷ (GPUs × peak bandwidth), FLOPs per step ÷ \
                  (GPUs \
                  × dense peak))",
        population: "decode steps of the measured window",
        undefined_when: "model shape or accelerator is not given, or the tokens per step are \
                         unknown",
        pitfalls: Text {
            en: "Below 1 the inputs are wrong. The bound leaves out communication and \
                 launches, so \
                 that 1 is out of reach; above 2 look for overhead.",
            zh: "小于 1 说明输入有误。下界不含通信和启动开销，实际达不到 1；超过 2 就该找额外开\
                 销。",
        },
        source: "seed text 000 (question 4: step time against its bound); roofline model",
        peers: "None of the peers prints it; vLLM's estimated_read_bytes_per_gpu and its FLOPs \
                counter give the inputs of such a bound.",
        definition: 1,
        how: How::Inside(Undefined::NoHardware),
    },
    Metric {
        key: "gpu_utilisation",
        symbol: "GPU utilisation",
        name: Text { en: "GPU utilisation", zh: "GPU 利用率" },
        text: Text {
            en: "The share of time in which some kernel was on the GPU. It tells idle from busy \
                 and nothing more.",
            zh: "GPU 上有 kernel 在跑的时间占比。只能区分忙和闲，别的都说明不了。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Efficiency,
        formula: "time with at least one kernel resident ÷ time, mean over the GPUs and the \
                  measured window",
        population: "samples of all provisioned GPUs in the measured window",
        undefined_when: "no device metrics are collected (DCGM, NVML or AMD exporter)",
        pitfalls: Text {
            en: "Busy is not useful: 100 % may be waiting for memory or for another GPU. Read it \
                 with bandwidth, kernel time, MFU, TPOT, communication time and useful tok/s. \
                 Raising it does not mend P99 or a full KV cache.",
            zh: "忙不等于有用：100 % 时可能在等显存或等其他 GPU。要结合显存带宽、kernel 时间、\
                 MFU、TPOT、通信时间和有效 tok/s 判断。提高它解决不了 P99 或 KV 容量问题。",
        },
        source: "NVML (utilization.gpu); seed text 000",
        peers: "nvidia-smi GPU-Util and DCGM GPU_UTIL: the same. DCGM GR_ENGINE_ACTIVE and \
                SM_ACTIVE are other, stricter shares. AIPerf collects it from DCGM or NVML, \
                llm-d-benchmark from DCGM.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "gpu_memory",
        symbol: "GPU memory",
        name: Text { en: "GPU memory in use", zh: "显存利用率" },
        text: Text {
            en: "The share of device memory that is taken. It tells how near the machine is to \
                 running out, not how well it serves.",
            zh: "显存被占用的比例。它说明离 OOM 还有多远，不说明服务得好不好。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Efficiency,
        formula: "memory used ÷ memory of the device, mean over the GPUs and the measured window",
        population: "samples of all provisioned GPUs in the measured window",
        undefined_when: "no device metrics are collected",
        pitfalls: Text {
            en: "Engines reserve most of the memory at start, so it stands near 90 % whatever \
                 the \
                 load: read KV cache usage instead. Fuller is not better: too full means \
                 preemption, a worse P99 and the risk of running out.",
            zh: "引擎启动时就预留大部分显存，所以它总在 90 % 左右，与负载无关，应看 KV 缓存使用\
                 率。不是越高越好：过满会带来抢占、P99 变差和 OOM 风险。",
        },
        source: "NVML and DCGM (frame buffer used); seed text 000",
        peers: "nvidia-smi memory usage, DCGM FB_USED. NVML's utilization.memory is something \
                else: time in which memory was read or written. AIPerf collects it from DCGM or \
                NVML.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "kv_cache_usage",
        symbol: "KV cache usage",
        name: Text { en: "KV cache usage", zh: "KV 缓存使用率" },
        text: Text {
            en: "The share of KV-cache blocks that live requests hold. It says how much room \
                 there \
                 is for more concurrent requests.",
            zh: "正在服务的请求占用的 KV 缓存块比例，说明还能再容纳多少并发。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Efficiency,
        formula: "blocks held by live requests ÷ all blocks; mean and largest value over the \
                  measured window",
        population: "samples of the engine's gauge in the measured window, grouped by the \
                     instance's role",
        undefined_when: "the engine does not expose it",
        pitfalls: Text {
            en: "Cached blocks that no request holds count as free. Near 1 with waiting requests \
                 or preemptions it is the bottleneck; near 1 alone it is only full use.",
            zh: "没有请求引用的缓存块算空闲。接近 1 且同时有排队或抢占，才说明 KV 是瓶颈；单独\
                 接近 \
                 1 只是用得满。",
        },
        source: "vLLM kv_cache_usage_perc; seed text 000",
        peers: "vLLM kv_cache_usage_perc, in 0 to 1 in spite of its name. SGLang token_usage. \
                TensorRT-LLM kv_cache_utilization. LMDeploy gpu_cache_usage_perc.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "prefix_hit_rate",
        symbol: "prefix hit rate",
        name: Text { en: "Prefix cache hit rate", zh: "前缀缓存命中率" },
        text: Text {
            en: "The share of prompt tokens that came out of the prefix cache. It says how much \
                 prefill was avoided, and whether routing and prompt layout let it.",
            zh: "输入 token 中由前缀缓存提供的比例。反映省了多少 prefill，以及提示词排布和路由\
                 是否\
                 有利于命中。",
        },
        unit: Unit::Share,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "Δ cached prompt tokens ÷ Δ queried prompt tokens over the measured window",
        population: "prompt tokens of the requests admitted in the measured window",
        undefined_when: "the engine does not expose it, or the counters fell in the window",
        pitfalls: Text {
            en: "A repeated benchmark hits its own earlier prompts: state the cache regime. Hits \
                 come in whole blocks, so short shared prefixes may never hit. It is weighted by \
                 tokens, not by requests.",
            zh: "重复压测会命中上一轮的提示词，报告必须写明冷热。命中以块为单位，公共前缀太短可能\
                 永远不命中。它按 token 加权，不是按请求。",
        },
        source: "vLLM prefix_cache_hits_total ÷ prefix_cache_queries_total",
        peers: "vLLM as above. SGLang cached_tokens_total ÷ prompt_tokens_total. TensorRT-LLM \
                reused ÷ (reused + missed) blocks, so weighted by blocks. AIPerf \
                overall_usage_prompt_cache_read_pct, from usage.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "preemptions_per_request",
        symbol: "preemptions",
        name: Text { en: "Preemptions per request", zh: "每请求抢占次数" },
        text: Text {
            en: "How often the engine threw a running request out to make room. It is the sign \
                 that more requests were admitted than the KV cache can hold.",
            zh: "引擎为腾出 KV 空间而中断运行中请求的频率。它说明放进来的请求超过了 KV 缓存的容\
                 量。",
        },
        unit: Unit::PerRequest,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "Δ preemptions ÷ Δ finished requests over the measured window",
        population: "requests that the server finished in the measured window",
        undefined_when: "the engine does not expose it, or no request finished",
        pitfalls: Text {
            en: "A small figure can own the tail: one preemption stalls its request for seconds. \
                 Recomputed tokens are in no token counter, so throughput does not show the \
                 waste.",
            zh: "数值小也可能决定尾延迟：一次抢占会让请求卡上几秒。重算的 token 不计入任何 token \
                 计数，吞吐上看不出浪费。",
        },
        source: "vLLM num_preemptions_total; seed text 000 (preemption rate)",
        peers: "vLLM num_preemptions_total ÷ request_success_total. SGLang \
                num_retracted_requests_total ÷ num_requests_total. TensorRT-LLM \
                num_paused_requests, a gauge. TGI has none, because it reserves at admission.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "power_w",
        symbol: "power",
        name: Text { en: "Power of the deployment", zh: "部署功率" },
        text: Text {
            en: "Mean electrical power of all accelerators of the deployment while it was \
                 steady. \
                 It is the basis of energy per token.",
            zh: "稳态期间整个部署所有加速卡的平均功率，是计算每 token 能耗的基础。",
        },
        unit: Unit::Watts,
        level: Level::Run,
        better: Better::Neither,
        branch: Branch::Efficiency,
        formula: "Σ over the GPUs of the time integral of power ÷ steady window, edges \
                  interpolated",
        population: "power samples of all provisioned accelerators in the steady window",
        undefined_when: "no power samples, or a steady window below 30 s",
        pitfalls: Text {
            en: "Board power is not node or facility power: hosts, fans and cooling come on top. \
                 Low power is no merit by itself; divide by tokens.",
            zh: "这是板卡功率，不含主机、风扇和制冷，不能当机房功率用。功率低本身不算优点，要除\
                 以 \
                 token 数看。",
        },
        source: "NVML and DCGM (power usage)",
        peers: "AIPerf average_gpu_power: energy ÷ duration, GPUs only, with an energy window \
                two \
                samples longer than the duration. llm-d-benchmark scrapes DCGM's power.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "energy_per_token_j",
        symbol: "J/token",
        name: Text { en: "Energy per output token", zh: "每 token 能耗" },
        text: Text {
            en: "Joules that one output token costs in the whole deployment. It compares \
                 efficiency across hardware.",
            zh: "整个部署每产出一个输出 token 消耗多少焦耳，用于跨硬件比较能效。",
        },
        unit: Unit::JoulesPerToken,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "energy of all provisioned accelerators ÷ output tokens, both over the same \
                  steady window",
        population: "power samples and output tokens inside the steady window; edges \
                     interpolated",
        undefined_when: "no power samples, a steady window below 30 s, or the number of output \
                         tokens is unknown",
        pitfalls: Text {
            en: "Prefill's energy is in it, so long prompts make it worse at equal decode. A \
                 part \
                 of the deployment, or a window other than the tokens', gives a figure that \
                 flatters.",
            zh: "prefill 的能耗也算在内，输入越长数值越差。只统计部分机器，或能耗与 token 的窗\
                 口不\
                 一致，都会让结果好看得失真。",
        },
        source: "InferenceX aggregate_power (joules per output token, whole deployment); the \
                 window rule is ours",
        peers: "AIPerf energy_per_output_token, in mJ, and energy_per_total_token, which divides \
                by input too; their energy window is 0.67 s longer than the duration. InferenceX \
                joules_per_output_token: whole deployment, as here.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "energy_per_good_token_j",
        symbol: "J/good token",
        name: Text { en: "Energy per good output token", zh: "每有效 token 能耗" },
        text: Text {
            en: "Joules per output token of a request that met every SLO. It charges the useful \
                 tokens with the energy of the useless ones.",
            zh: "按满足全部 SLO 的请求计，每个输出 token 消耗多少焦耳。没达标的那部分能耗也摊到有\
                 效 token 上。",
        },
        unit: Unit::JoulesPerToken,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "energy of all provisioned accelerators ÷ output tokens of requests meeting all \
                  SLOs, both over the same steady window",
        population: "power samples in the steady window and output tokens of good requests in it",
        undefined_when: "energy per token is undefined, no SLO was given, or no request was good",
        pitfalls: Text {
            en: "It rises steeply past the knee, where energy per token still falls: that is its \
                 purpose. It depends on the SLOs; print them.",
            zh: "过了拐点它会急剧上升，而普通的每 token 能耗还在下降，这正是它的用处。结果取决于 \
                 SLO，要一并写明。",
        },
        source: "ours",
        peers: "AIPerf goodput_per_watt is a neighbour that counts requests.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "cost_per_million_tokens",
        symbol: "cost per token",
        name: Text { en: "Cost per million output tokens", zh: "每百万输出 token 成本" },
        text: Text {
            en: "What a million output tokens cost at the measured speed, in the currency of the \
                 price given. It compares own hardware with an API's price list.",
            zh: "按实测速度折算，每百万输出 token 要花多少钱，币种与给定单价一致。可与 API 报价对\
                 比。",
        },
        unit: Unit::CostPerMillionTokens,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "10⁶ × provisioned GPUs × price per GPU and hour ÷ (3600 × output tok/s)",
        population: "the same tokens as output tok/s",
        undefined_when: "no price (--gpu-price-per-hour) or number of GPUs is given, or output \
                         tok/s is undefined",
        pitfalls: Text {
            en: "It assumes full load around the clock: divide by the expected utilisation. \
                 Prompt \
                 tokens are not charged apart. A cost at a load that misses the SLO is not a price \
                 anyone can sell at.",
            zh: "它假定全天满载，实际要除以预期利用率。输入 token 没有单独计价。不满足 SLO 的负载\
                 下算出的成本没有参考价值。",
        },
        source: "seed texts 000 and 003 (cost per token)",
        peers: "vLLM bench and AIPerf print no cost. API price lists quote input, cached input \
                and \
                output apart, so that they compare with it only after weighing by the workload's \
                lengths.",
        definition: 1,
        how: How::Inside(Undefined::NoPrice),
    },
    Metric {
        key: "cost_per_million_good_tokens",
        symbol: "cost per good token",
        name: Text {
            en: "Cost per million good output tokens", zh: "每百万有效 token 成本"
        },
        text: Text {
            en: "What a million output tokens of requests that met every SLO cost. It charges \
                 the useful tokens with the price of the useless ones.",
            zh: "按满足全部 SLO 的请求计，每百万输出 token 的成本。没达标的那部分开销也摊到有效 \
                 token 上。",
        },
        unit: Unit::CostPerMillionTokens,
        level: Level::Run,
        better: Better::Lower,
        branch: Branch::Efficiency,
        formula: "10⁶ × provisioned GPUs × price per GPU and hour ÷ (3600 × goodput in tok/s)",
        population: "the same tokens as goodput in tok/s",
        undefined_when: "cost per token is undefined, no SLO was given, or no request was good",
        pitfalls: Text {
            en: "It is a price at the load of the run and under its SLOs: print both. Below full \
                 load it is higher than the deployment's best.",
            zh: "它是在该次负载与该组 SLO 下的成本，二者都要写明。负载不满时，它高于部署所能达到的最\
                 低成本。",
        },
        source: "ours",
        peers: "None of the peers prints it; API price lists charge good and late tokens alike.",
        definition: 1,
        how: How::Inside(Undefined::NoPrice),
    },
    Metric {
        key: "tps_per_megawatt",
        symbol: "TPS/MW",
        name: Text { en: "Output tokens per second and megawatt", zh: "每兆瓦输出吞吐" },
        text: Text {
            en: "Output throughput for a given electrical power. It is the figure of those whose \
                 limit is the power line and not the number of GPUs.",
            zh: "每兆瓦电力能支撑多少输出 token/s。电力受限的数据中心看它。",
        },
        unit: Unit::TokensPerSecondPerMegawatt,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "10⁶ × output tok/s ÷ power in W, both over the same steady window = 10⁶ ÷ \
                  (J/token)",
        population: "as energy per token",
        undefined_when: "energy per token is undefined",
        pitfalls: Text {
            en: "Board, node and facility power give three figures; this one is of the \
                 accelerators alone. Its maximum lies at large batches, where each user is slow: \
                 read it beside output speed per user.",
            zh: "按板卡、整机、机房功率会得到三个不同的数，这里只含加速卡。它在大 batch 时最\
                 高，而\
                 那时单个用户变慢，要和每用户输出速度一起看。",
        },
        source: "seed text 003 (TPS/MW)",
        peers: "AIPerf output_tps_per_watt: the same × 10⁻⁶ over its own window, GPUs only.",
        definition: 1,
        how: How::Inside(Undefined::NotCollected),
    },
    Metric {
        key: "per_gpu_output_tok_s",
        symbol: "output tok/s per GPU",
        name: Text { en: "Output throughput per GPU", zh: "单卡输出吞吐" },
        text: Text {
            en: "Output tokens a second that each provisioned accelerator contributes. It \
                 compares \
                 deployments of different size, and is the system's side of the trade-off with \
                 speed per user.",
            zh: "平均每张加速卡每秒贡献多少输出 token。用于比较规模不同的部署，与每用户输出速度构\
                 成权衡曲线的两轴。",
        },
        unit: Unit::TokensPerSecond,
        level: Level::Run,
        better: Better::Higher,
        branch: Branch::Efficiency,
        formula: "output tok/s ÷ all provisioned accelerators, prefill and decode instances \
                  together",
        population: "the same tokens as output tok/s",
        undefined_when: "the number of accelerators is not given (--topology where prefill and \
                         decode are apart), or output tok/s is undefined",
        pitfalls: Text {
            en: "Dividing by the decode GPUs alone flatters a disaggregated deployment. \
                 Compare at \
                 equal output speed per user, not at each system's maximum.",
            zh: "分离部署时只除以 decode 卡数会虚高。应在每用户输出速度相同的条件下比较，而不是各\
                 取各的最大值。",
        },
        source: "ours; InferenceX plots it against interactivity",
        peers: "InferenceX throughput per GPU. Load tools leave the division to the reader.",
        definition: 1,
        how: How::Inside(Undefined::NoHardware),
    },
];
