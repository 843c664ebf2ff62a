use super::*;

const NONE: Carries = Carries::NOTHING;

/// Hears the events and gives the rows and the answer.
fn hear(api: Api, events: &[&str]) -> (Vec<Heard>, Answer) {
    let mut listener = Listener::new(Forms::new(api), true);
    let rows = events.iter().filter_map(|data| listener.hear(b"", data.as_bytes())).collect();
    let whole = listener.is_whole() && listener.failure().is_none();
    (rows, listener.finish(whole))
}

fn failure(api: Api, kind: &str, data: &str) -> (Option<FailureKind>, Answer) {
    let mut listener = Listener::new(Forms::new(api), true);
    listener.hear(kind.as_bytes(), data.as_bytes());
    (listener.failure(), listener.finish(false))
}

fn carried(rows: &[Heard]) -> Vec<Carries> {
    rows.iter().map(|row| row.carries).collect()
}

fn tokens(rows: &[Heard]) -> Vec<u16> {
    rows.iter().map(|row| row.tokens).collect()
}

fn chat(delta: &str, finish: &str, usage: Option<u32>) -> String {
    let usage = usage.map(|n| format!(",\"usage\":{{\"completion_tokens\":{n}}}"));
    let usage = usage.unwrap_or_default();
    format!("{{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]{usage}}}")
}

fn text(content: &str, usage: Option<u32>) -> String {
    chat(&format!("{{\"content\":\"{content}\"}}"), "null", usage)
}

#[test]
fn running_usage_gives_the_tokens_of_every_event() {
    let events = [
        chat("{\"role\":\"assistant\",\"content\":\"\"}", "null", Some(0)),
        text("a", Some(3)),
        text("", Some(4)),
        text("b", Some(5)),
        chat("{}", "\"stop\"", Some(6)),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (rows, answer) = hear(Api::OpenaiChat, &events);
    assert_eq!(tokens(&rows), [0, 3, 1, 1, 1]);
    let grew: Vec<bool> = rows.iter().map(|row| row.carries.any(Carries::COUNT_GREW)).collect();
    assert_eq!(grew, [false, false, true, false, false], "not at the finish");
    assert!(rows.iter().all(|row| row.carries.any(Carries::CHOICE)));
    assert_eq!(answer.first_event_tokens, Some(Tokens::new(3)));
    assert!(answer.warnings.has(Warnings::FIRST_CHUNK_BUNDLED));
    assert_eq!(answer.counts.usage, Some(Tokens::new(6)));
}

#[test]
fn p05_usage_that_comes_once_is_no_growth_of_the_last_event() {
    let last = chat("{\"content\":\"c\"}", "\"stop\"", Some(3));
    let (rows, answer) =
        hear(Api::OpenaiChat, &[&text("a", None), &text("b", None), last.as_str()]);
    assert_eq!(tokens(&rows), [0, 0, 0]);
    assert_eq!(answer.first_event_tokens, None);
}

#[test]
fn usage_is_the_largest_value_and_never_summed() {
    let (_, answer) =
        hear(Api::OpenaiChat, &[&text("a", Some(7)), &text("b", Some(9)), &text("c", Some(3))]);
    assert_eq!(answer.counts.usage, Some(Tokens::new(9)));
}

#[test]
fn several_choices_are_told_apart() {
    let one = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let two = r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#;
    let both = r#"{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"c"}}]}"#;
    let (rows, answer) = hear(Api::OpenaiChat, &[one, two, both]);
    assert_eq!(rows.iter().map(|row| row.choice).collect::<Vec<_>>(), [0, 1, 1]);
    assert_eq!(answer.choices, 2);
    assert!(answer.warnings.has(Warnings::N_GT_1));
    assert_eq!(answer.text.as_deref(), Some("a"));
}

#[test]
fn pings_roles_sentinels_and_blank_data() {
    let role = chat("{\"role\":\"assistant\"}", "null", None);
    let (rows, answer) =
        hear(Api::OpenaiChat, &["  ", r#"{"type":"ping"}"#, &role, " [DONE] ", &text("x", None)]);
    let role = Carries::CHOICE.with(Carries::ROLE);
    assert_eq!(carried(&rows), [Carries::PING, role, Carries::DONE]);
    assert_eq!(answer.text.as_deref(), Some(""), "nothing counts behind [DONE]");
}

#[test]
fn data_that_is_no_json_is_told_from_broken_json() {
    let (rows, answer) = hear(Api::OpenaiChat, &["hello"]);
    assert_eq!(carried(&rows), [Carries::NOT_JSON]);
    assert!(answer.warnings.has(Warnings::NON_JSON_EVENT));
    let (kind, answer) = failure(Api::OpenaiChat, "", "{\"choices\":[");
    assert_eq!(kind, Some(FailureKind::MalformedEvent));
    assert_eq!(answer.message.as_deref(), Some("{\"choices\":["));
    assert_eq!(failure(Api::OpenaiChat, "", "[1]").0, None);
}

#[test]
fn bare_nan_is_read_as_null_with_a_warning() {
    let event = r#"{"choices":[{"delta":{"content":"NaN"},"logprobs":{"content":[
        {"logprob":-Infinity},{"logprob":NaN}]}}]}"#;
    let (rows, answer) = hear(Api::OpenaiChat, &[event]);
    assert_eq!((answer.text.as_deref(), tokens(&rows)), (Some("NaN"), vec![2]));
    assert!(answer.warnings.has(Warnings::NONSTANDARD_JSON));
    assert_eq!(answer.counts.logprobs, Some(Tokens::new(2)));
}

#[test]
fn odd_types_carry_nothing_and_break_nothing() {
    for event in [
        r#"{"choices":null,"usage":[]}"#,
        r#"{"choices":[null,3,{"delta":"x","index":"y","finish_reason":false}]}"#,
        r#"{"usage":{"completion_tokens":-1,"prompt_tokens":1e99}}"#,
        r#"{"error":null}"#,
        r#"{"choices":[{"delta":{"content":5,"tool_calls":{}}}],"timings":7}"#,
    ] {
        let (rows, answer) = hear(Api::OpenaiChat, &[event]);
        let left = rows[0].carries.bits() & !Carries::CHOICE.bits();
        assert_eq!(left, 0, "{event}");
        assert_eq!(answer.counts, measure::Counts::default(), "{event}");
    }
}

#[test]
fn reasoning_in_several_fields_is_one_channel() {
    let delta = r#"{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a",
        "reasoning_details":[{"type":"reasoning.text","text":"a"}]}}]}"#;
    let (rows, answer) = hear(Api::OpenaiChat, &[delta]);
    assert!(rows[0].carries.any(Carries::REASONING));
    assert_eq!(answer.reasoning.as_deref(), Some("a"));
    assert_eq!(answer.reasoning_disclosure, Some(ReasoningDisclosure::Verbatim));
}

#[test]
fn how_reasoning_was_shown() {
    let summary = r#"{"choices":[{"delta":{"reasoning_details":[
        {"type":"reasoning.summary","summary":"s"}]}}]}"#;
    let encrypted = r#"{"choices":[{"delta":{"reasoning_details":[
        {"type":"reasoning.encrypted","data":"xx"}]}}]}"#;
    let hidden = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{
        "completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":8}}}"#;
    for (event, disclosure) in [
        (summary, Some(ReasoningDisclosure::Summary)),
        (encrypted, Some(ReasoningDisclosure::Redacted)),
        (hidden, Some(ReasoningDisclosure::Unknown)),
        (r#"{"choices":[]}"#, None),
    ] {
        let (_, answer) = hear(Api::OpenaiChat, &[event]);
        assert_eq!(answer.reasoning_disclosure, disclosure, "{event}");
        assert_eq!(answer.warnings.has(Warnings::HIDDEN_REASONING), event == hidden);
    }
}

#[test]
fn tool_calls_in_both_forms() {
    for delta in [
        r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
    ] {
        let (rows, answer) = hear(Api::OpenaiChat, &[&chat(delta, "null", None)]);
        assert!(rows[0].carries.any(Carries::TOOL_CALL));
        assert_eq!(answer.tool_arguments.as_deref(), Some("{}"));
    }
    let empty = r#"{"tool_calls":[{"id":"x","function":{"name":"","arguments":""}}]}"#;
    let (rows, _) = hear(Api::OpenaiChat, &[&chat(empty, "null", None)]);
    assert_eq!(carried(&rows), [Carries::CHOICE]);
}

#[test]
fn a16_cached_tokens_and_timings_of_openai_servers() {
    let llama = r#"{"choices":[],"usage":{"prompt_tokens":68,"completion_tokens":25,
        "prompt_tokens_details":{"cached_tokens":60}},"timings":{"prompt_n":8,"prompt_ms":43.2}}"#;
    let (_, answer) = hear(Api::OpenaiChat, &[llama]);
    assert_eq!(answer.counts.cached, Some(Tokens::new(60)));
    let timings = vec![("prompt_n".to_owned(), 8.0), ("prompt_ms".to_owned(), 43.2)];
    assert_eq!(answer.server_timings, timings);

    // llama.cpp puts them beside the response, not into it.
    let responses = r#"{"type":"response.completed","response":{"status":"completed",
        "usage":{"input_tokens":3,"output_tokens":2}},"timings":{"predicted_n":2}}"#;
    let (_, answer) = hear(Api::OpenaiResponses, &[responses]);
    assert_eq!(answer.server_timings, [("predicted_n".to_owned(), 2.0)]);

    let vllm = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1},
        "metrics":{"queue_time_ms":1.5,"mean_itl_ms":null}}"#;
    let (_, answer) = hear(Api::OpenaiCompletions, &[vllm]);
    assert_eq!(answer.server_timings, [("queue_time_ms".to_owned(), 1.5)]);

    for usage in [
        r#"{"choices":[],"usage":{"prompt_cache_hit_tokens":4,"completion_tokens":2}}"#,
        r#"{"choices":[],"x_groq":{"usage":{"cached_tokens":4,"completion_tokens":2}}}"#,
        r#"{"choices":[{"usage":{"cached_tokens":4,"completion_tokens":2}}]}"#,
    ] {
        let (_, answer) = hear(Api::OpenaiChat, &[usage]);
        let counts = (answer.counts.cached, answer.counts.usage);
        assert_eq!(counts, (Some(Tokens::new(4)), Some(Tokens::new(2))), "{usage}");
    }
}

#[test]
fn errors_of_openai_servers_in_every_shape() {
    for (kind, data, message, code) in [
        ("", r#"{"error":{"message":"m","type":"t","code":500}}"#, "m", Some("500")),
        ("", r#"{"error":"m"}"#, "m", None),
        ("", r#"{"object":"error","message":"m","code":40303}"#, "m", Some("40303")),
        ("error", r#"{"message":"m"}"#, "m", None),
        ("error", r#"{"detail":"m"}"#, "m", None),
    ] {
        let (kind, answer) = failure(Api::OpenaiChat, kind, data);
        assert_eq!(kind, Some(FailureKind::InBand), "{data}");
        assert_eq!(answer.message.as_deref(), Some(message), "{data}");
        assert_eq!(answer.error_code.as_deref(), code, "{data}");
    }
}

#[test]
fn a_malformed_event_outweighs_an_error_and_an_abort() {
    let mut listener = Listener::new(Forms::new(Api::OpenaiChat), false);
    listener.hear(b"", chat("{}", "\"abort\"", None).as_bytes());
    assert_eq!(listener.failure(), Some(FailureKind::Aborted));
    listener.hear(b"", br#"{"error":"x"}"#);
    assert_eq!(listener.failure(), Some(FailureKind::InBand));
    listener.hear(b"", b"{");
    assert_eq!(listener.failure(), Some(FailureKind::MalformedEvent));
}

#[test]
fn responses_channels_and_ends() {
    let api = Api::OpenaiResponses;
    let delta = |kind: &str| format!("{{\"type\":\"response.{kind}.delta\",\"delta\":\"x\"}}");
    for (kind, channel, disclosure) in [
        ("output_text", Carries::TEXT, None),
        ("refusal", Carries::TEXT, None),
        ("reasoning_text", Carries::REASONING, Some(ReasoningDisclosure::Verbatim)),
        ("reasoning_summary_text", Carries::REASONING, Some(ReasoningDisclosure::Summary)),
        ("function_call_arguments", Carries::TOOL_CALL, None),
        ("unknown", NONE, None),
    ] {
        let (rows, answer) = hear(api, &[&delta(kind)]);
        assert_eq!(carried(&rows), [channel], "{kind}");
        assert_eq!(answer.reasoning_disclosure, disclosure, "{kind}");
    }
    let end = |status: &str| {
        format!(
            r#"{{"type":"response.{status}","response":{{"status":"{status}","usage":
            {{"input_tokens":8,"output_tokens":3,"input_tokens_details":{{"cached_tokens":2}},
            "output_tokens_details":{{"reasoning_tokens":1}}}}}}}}"#
        )
    };
    for status in ["completed", "incomplete"] {
        let (rows, answer) = hear(api, &[&delta("output_text"), &end(status), "{}", "[DONE]"]);
        assert_eq!(rows.len(), 3, "only the sentinel counts behind the end");
        assert_eq!(rows[1].carries, Carries::FINISH.with(Carries::USAGE));
        assert_eq!(answer.finish_reason.as_deref(), Some(status));
        let counts = &answer.counts;
        let seen = [counts.prompt, counts.usage, counts.cached, counts.reasoning];
        assert_eq!(seen, [8, 3, 2, 1].map(|n| Some(Tokens::new(n))));
    }
    let failed = r#"{"type":"response.failed","response":{"status":"failed",
        "error":{"code":"server_error","message":"m"}}}"#;
    let error = r#"{"type":"error","code":"server_error","message":"m","param":null}"#;
    for event in [failed, error] {
        let (kind, answer) = failure(api, "", event);
        assert_eq!(kind, Some(FailureKind::InBand), "{event}");
        assert_eq!(answer.message.as_deref(), Some("m"), "{event}");
        assert_eq!(answer.error_code.as_deref(), Some("server_error"), "{event}");
    }
    assert_eq!(failure(api, "", &end("cancelled")).0, Some(FailureKind::Aborted));
}

#[test]
fn anthropic_thinking_redaction_and_errors() {
    let api = Api::Anthropic;
    let delta = |delta: &str| format!("{{\"type\":\"content_block_delta\",\"delta\":{delta}}}");
    let thinking = delta(r#"{"type":"thinking_delta","thinking":"hm"}"#);
    let signature = delta(r#"{"type":"signature_delta","signature":"xx"}"#);
    let (rows, answer) = hear(api, &[&thinking, &signature]);
    assert_eq!(carried(&rows), [Carries::REASONING, NONE]);
    assert_eq!(answer.reasoning_disclosure, Some(ReasoningDisclosure::Verbatim));
    let redacted = r#"{"type":"content_block_start","content_block":
        {"type":"redacted_thinking","data":"xx"}}"#;
    let (rows, answer) = hear(api, &[redacted]);
    assert_eq!(carried(&rows), [NONE]);
    assert_eq!(answer.reasoning_disclosure, Some(ReasoningDisclosure::Redacted));
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    let (kind, answer) = failure(api, "error", error);
    assert_eq!(kind, Some(FailureKind::InBand));
    assert_eq!(answer.error_code.as_deref(), Some("overloaded_error"));
}

#[test]
fn a04_the_start_count_of_anthropic_is_used_only_for_a_whole_answer() {
    let start = r#"{"type":"message_start","message":{"usage":
        {"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let (_, cut) = hear(Api::Anthropic, &[start]);
    assert_eq!((cut.counts.usage, cut.counts.cached), (None, Some(Tokens::new(4))));
    let (rows, whole) = hear(Api::Anthropic, &[start, stop]);
    assert_eq!(whole.counts.usage, Some(Tokens::new(1)));
    assert_eq!(rows[1].carries, Carries::DONE, "no latency ends at message_stop");
}

#[test]
fn ollama_chat_generate_tools_and_durations() {
    let lines = [
        r#"{"message":{"content":"","thinking":"hm"},"done":false}"#,
        r#"{"response":"x","done":false}"#,
        r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}}]}}"#,
        r#"{"done":true,"done_reason":"load","eval_count":5,"eval_duration":7,
        "prompt_eval_count":3}"#,
    ];
    let (rows, answer) = hear(Api::Ollama, &lines);
    assert_eq!(
        carried(&rows),
        [
            Carries::REASONING,
            Carries::TEXT,
            Carries::TOOL_CALL,
            Carries::FINISH.with(Carries::USAGE)
        ]
    );
    assert_eq!(answer.tool_arguments.as_deref(), Some(r#"{"a": 1}"#));
    assert_eq!(answer.server_timings, [("eval_duration".to_owned(), 7.0)]);
    assert_eq!(answer.counts.server, Some(Tokens::new(5)));
    assert_eq!(answer.counts.usage, None);
    assert_eq!(answer.warnings, Warnings::NONE);
}

#[test]
fn tgi_ends_with_or_without_details_and_names_its_errors() {
    let token = r#"{"token":{"text":"x","special":false},"generated_text":null,"details":null}"#;
    let last = r#"{"token":{"text":"</s>","special":true},"generated_text":"x"}"#;
    let mut listener = Listener::new(Forms::new(Api::Tgi), true);
    assert_eq!(listener.hear(b"", token.as_bytes()).unwrap().tokens, 1);
    assert!(!listener.is_whole());
    let row = listener.hear(b"", last.as_bytes()).unwrap();
    assert_eq!((row.carries, row.tokens), (NONE, 1));
    assert!(listener.is_whole());
    let error = r#"{"error":"m","error_type":"validation"}"#;
    let (kind, answer) = failure(Api::Tgi, "error", error);
    assert_eq!(kind, Some(FailureKind::InBand));
    assert_eq!(answer.error_code.as_deref(), Some("validation"));
}

#[test]
fn sglang_counts_growth_and_explains_an_abort() {
    let event = |text: &str, n: u32, reason: &str| {
        format!(
            r#"{{"text":"{text}","meta_info":{{"prompt_tokens":6,"completion_tokens":{n},
            "cached_tokens":4,"finish_reason":{reason},"e2e_latency":0.5}}}}"#
        )
    };
    let events = [
        event("a b", 2, "null"),
        event("a b", 3, "null"),
        event("a b c", 4, r#"{"type":"abort","message":"memory"}"#),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (rows, answer) = hear(Api::Sglang, &events);
    assert_eq!(tokens(&rows), [2, 1, 1]);
    assert!(!rows[1].carries.is_arrival());
    assert_eq!(answer.message.as_deref(), Some("memory"));
    assert_eq!(answer.counts.cached, Some(Tokens::new(4)));
    assert_eq!(answer.server_timings, [("e2e_latency".to_owned(), 0.5)]);
    assert!(!answer.warnings.has(Warnings::FIRST_CHUNK_BUNDLED), "its interval is its own");
    assert_eq!(failure(Api::Sglang, "", events[2]).0, Some(FailureKind::Aborted));
}

#[test]
fn triton_pieces_and_errors() {
    let (rows, answer) = hear(Api::Triton, &[r#"{"text_output":"x"}"#, r#"{"text_output":""}"#]);
    assert_eq!(carried(&rows), [Carries::TEXT, NONE]);
    assert_eq!(answer.text.as_deref(), Some("x"));
    assert_eq!(failure(Api::Triton, "", r#"{"error":"m"}"#).0, Some(FailureKind::InBand));
}

#[test]
fn h13_whole_bodies_of_every_api() {
    for (api, body, tokens) in [
        (
            Api::OpenaiChat,
            r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],
            "usage":{"completion_tokens":4}}"#,
            Some(4),
        ),
        (
            Api::OpenaiCompletions,
            r#"{"choices":[{"text":"hi","finish_reason":"stop"}],"usage":{"completion_tokens":4}}"#,
            Some(4),
        ),
        (
            Api::OpenaiResponses,
            r#"{"status":"completed","error":null,"output":[{"type":"message","content":
            [{"type":"output_text","text":"hi"}]}],"usage":{"output_tokens":4}}"#,
            Some(4),
        ),
        (
            Api::Anthropic,
            r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",
            "usage":{"output_tokens":4}}"#,
            Some(4),
        ),
        (Api::Ollama, r#"{"message":{"content":"hi"},"done":true,"eval_count":4}"#, Some(4)),
        (Api::OllamaGenerate, r#"{"response":"hi","done":true,"eval_count":4}"#, Some(4)),
        (
            Api::Tgi,
            r#"[{"generated_text":"hi","details":
            {"finish_reason":"length","generated_tokens":4}}]"#,
            Some(4),
        ),
        (
            Api::Sglang,
            r#"{"text":"hi","meta_info":{"completion_tokens":4,"finish_reason":{"type":"stop"}}}"#,
            Some(4),
        ),
        (Api::Triton, r#"{"text_output":"hi"}"#, None),
    ] {
        let mut listener = Listener::new(Forms::new(api), true);
        let row = listener.hear_whole(body.as_bytes()).unwrap();
        assert_eq!(row.carries, Carries::WHOLE.with(Carries::FINISH), "{api:?}");
        assert_eq!((listener.arrivals(), listener.failure()), (1, None), "{api:?}");
        assert!(listener.is_whole());
        let answer = listener.finish(true);
        assert_eq!(answer.text.as_deref(), Some("hi"), "{api:?}");
        let counted = answer.counts.usage.or(answer.counts.server);
        assert_eq!(counted.map(Tokens::get), tokens, "{api:?}");
        assert!(answer.warnings.has(Warnings::NOT_STREAMED));
        assert!(!answer.warnings.has(Warnings::MISSING_DONE));
    }
}

#[test]
fn samples_are_bounded_and_hold_no_keys() {
    for (text, want) in [
        ("plain words, sk- and Bearer token", "plain words, sk- and Bearer token"),
        ("key=sk-proj-1234567890.", "key=[redacted]"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
        (r#"{"k":"hf_abcdefgh"}"#, r#"{"k":"[redacted]"}"#),
    ] {
        assert_eq!(sample(text), want);
    }
    assert_eq!(sample(&"漢".repeat(400)).len(), 498);
}

#[test]
fn pieces_of_calls_are_put_together_in_every_api() {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let calls = |api: Api, events: &[&str]| {
        let mut listener = Listener::new(Forms::new(api), true);
        events.iter().for_each(|data| {
            listener.hear(b"", data.as_bytes());
        });
        listener.take_calls()
    };
    let want = vec![call("a", "f", "{\"x\":1}"), call("b", "g", "{}")];
    let piece = |piece: &str| chat(&format!("{{\"tool_calls\":[{piece}]}}"), "null", None);
    let chat = [
        piece(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#),
        piece(r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#),
        piece(
            r#"{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"}"}}"#,
        ),
    ];
    assert_eq!(calls(Api::OpenaiChat, &chat.each_ref().map(String::as_str)), want);
    let anthropic = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    ];
    assert_eq!(calls(Api::Anthropic, &anthropic), want);
    let responses = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\":1}"}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"b","name":"g","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
    ];
    assert_eq!(calls(Api::OpenaiResponses, &responses), want);
    let ollama = [
        r#"{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}},{"function":{"name":"g","arguments":{}}}]}}"#,
    ];
    assert_eq!(calls(Api::Ollama, &ollama), [call("", "f", "{\"x\":1}"), call("", "g", "{}")]);
    let nothing = piece(r#"{"function":{"other":"b"}}"#);
    assert_eq!(calls(Api::OpenaiChat, &[&nothing]), []);
    let whole = r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}"#;
    let mut listener = Listener::new(Forms::new(Api::OpenaiChat), true);
    listener.hear_whole(whole.as_bytes());
    assert_eq!(listener.take_calls(), want);
}
