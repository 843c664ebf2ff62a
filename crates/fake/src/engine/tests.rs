use serde_json::{Value, json};

use super::*;
use crate::script::Action;

const MS: u64 = 1_000_000;
const ANCHOR: Anchor = Anchor { monotonic_ns: 1_000 * MS, unix_s: 1_800_000_000 };
const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

fn config() -> EngineConfig {
    EngineConfig {
        ttft: Duration::from_millis(40),
        ttft_per_prompt_token: Duration::from_millis(1),
        token_interval: Duration::from_millis(10),
        ..EngineConfig::default()
    }
}

fn engine(config: EngineConfig) -> Engine {
    Engine::new(config, ANCHOR).unwrap()
}

fn request(connection: u64, arrival_ms: u64, path: &str, body: &Value) -> Request {
    Request {
        method: "POST".into(),
        target: path.into(),
        headers: vec![("X-Request-Id".into(), format!("r-{connection}"))],
        body: body.to_string().into_bytes(),
        arrival_ns: arrival_ms * MS,
        connection,
        on_connection: 0,
        keep_alive: true,
        http_1_0: false,
    }
}

/// A prompt of four tokens and so many output tokens, streamed.
fn streamed(tokens: u32) -> Value {
    json!({"prompt": "four words of prompt", "stream": true, "max_tokens": tokens})
}

fn text(step: &Step) -> String {
    match &step.action {
        Action::Send(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("no bytes: {other:?}"),
    }
}

/// Absolute milliseconds and token counts of the steps that carry tokens.
fn token_times(play: Play) -> Vec<(f64, u32)> {
    let start_ns = play.start_ns;
    let tokens = play.steps.filter(|step| step.tokens > 0);
    tokens.map(|step| ((start_ns + step.at_ns) as f64 / 1e6, step.tokens)).collect()
}

/// JSON of every event in the steps, and the bytes after the last one.
fn events(steps: impl Iterator<Item = Step>) -> Vec<Value> {
    let all: String = steps.map(|step| text(&step)).collect();
    let data = all.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect()
}

#[test]
fn chat_stream_has_vllms_shape() {
    let body = json!({"model": "m\"x", "messages": [{"role": "user", "content": "two words"}],
        "stream": true, "max_completion_tokens": 3, "stream_options": {"include_usage": true}});
    let play = engine(config()).answer(&request(7, 2_000, CHAT, &body));
    assert_eq!(play.truth_id.as_deref(), Some("r-7"));
    let events = events(play.steps);
    assert_eq!(events.len(), 6);
    for event in &events[..5] {
        assert_eq!(event["id"], "chatcmpl-r-7");
        assert_eq!(event["object"], "chat.completion.chunk");
        assert_eq!(event["created"], 1_800_000_001);
        assert_eq!(event["model"], "m\"x");
    }
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    for (event, finish) in events[1..4].iter().zip([json!(null), json!(null), json!("length")]) {
        assert!(!event["choices"][0]["delta"]["content"].as_str().unwrap().is_empty());
        assert_eq!(event["choices"][0]["finish_reason"], finish);
        assert_eq!(event.get("usage"), None);
    }
    assert_eq!(events[4]["choices"], json!([]));
    let usage = json!({"prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3});
    assert_eq!(events[4]["usage"], usage);
    assert_eq!(events[5], "[DONE]");
}

#[test]
fn completions_stream_counts_on_when_asked() {
    let mut body = streamed(2);
    body["stream_options"] = json!({"include_usage": true, "continuous_usage_stats": true});
    let play = engine(config()).answer(&request(0, 2_000, COMPLETIONS, &body));
    let events = events(play.steps);
    let counts: Vec<_> =
        events[..3].iter().map(|event| event["usage"]["completion_tokens"].clone()).collect();
    assert_eq!(counts, [1, 2, 2]);
    assert_eq!(events[0]["object"], "text_completion");
    assert!(events[1]["choices"][0]["text"].as_str().unwrap().starts_with(' '));
    assert_eq!(events[1]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[3], "[DONE]");
}

#[test]
fn continuous_usage_needs_include_usage_as_in_vllm() {
    let mut body = streamed(2);
    body["stream_options"] = json!({"continuous_usage_stats": true});
    let play = engine(config()).answer(&request(0, 2_000, COMPLETIONS, &body));
    let events = events(play.steps);
    assert!(events.iter().all(|event| event.get("usage").is_none()));
    assert_eq!(events.len(), 3);
}

#[test]
fn tokens_are_due_at_ttft_and_then_evenly() {
    let play = engine(config()).answer(&request(0, 2_000, COMPLETIONS, &streamed(3)));
    assert_eq!(token_times(play), [(2_044.0, 1), (2_054.0, 1), (2_064.0, 1)]);
}

#[test]
fn head_leaves_at_once_and_role_where_it_is_wanted() {
    let body = json!({"messages": [{"content": "one"}], "stream": true, "max_tokens": 1});
    for (role_chunk_at_accept, expected) in [(false, vec![0, 41, 41, 41]), (true, vec![0, 41, 41])]
    {
        let mut engine = engine(EngineConfig { role_chunk_at_accept, ..config() });
        let steps: Vec<_> = engine.answer(&request(0, 2_000, CHAT, &body)).steps.collect();
        let times: Vec<u64> = steps.iter().map(|step| step.at_ns / MS).collect();
        assert_eq!(times, expected);
        assert!(text(&steps[0]).starts_with("HTTP/1.1 200 OK\r\n"));
        assert_eq!(text(&steps[0]).contains("assistant"), role_chunk_at_accept);
        assert!(steps.last().unwrap().last);
    }
}

#[test]
fn whole_answer_is_one_write_when_its_last_token_is_made() {
    let body = json!({"messages": [{"content": "one"}], "max_tokens": 3});
    let play = engine(config()).answer(&request(0, 2_000, CHAT, &body));
    let steps: Vec<_> = play.steps.collect();
    assert_eq!((steps.len(), steps[0].at_ns, steps[0].tokens), (1, 61 * MS, 3));
    let text = text(&steps[0]);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["choices"][0]["message"]["role"], "assistant");
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    let words = body["choices"][0]["message"]["content"].as_str().unwrap().split(' ').count();
    assert_eq!(words, 3);
    assert_eq!(body["usage"]["total_tokens"], 4);
}

#[test]
fn chunks_of_several_tokens_keep_the_rate_of_tokens() {
    let mut engine = engine(EngineConfig { chunk_tokens: 4, ..config() });
    let play = engine.answer(&request(0, 2_000, COMPLETIONS, &streamed(10)));
    assert_eq!(token_times(play), [(2_044.0, 4), (2_084.0, 4), (2_104.0, 2)]);
    let play = engine.answer(&request(1, 2_000, COMPLETIONS, &streamed(3)));
    assert_eq!(token_times(play), [(2_044.0, 3)]);
}

#[test]
fn lockstep_puts_every_token_on_one_grid() {
    let mut engine = engine(EngineConfig { lockstep: true, ..config() });
    let a = engine.answer(&request(0, 2_001, COMPLETIONS, &streamed(3)));
    let b = engine.answer(&request(1, 2_009, COMPLETIONS, &streamed(2)));
    // Ready at 2045 and 2053 on a grid of 10 ms from 1000.
    assert_eq!(token_times(a), [(2_050.0, 1), (2_060.0, 1), (2_070.0, 1)]);
    assert_eq!(token_times(b), [(2_060.0, 1), (2_070.0, 1)]);
}

#[test]
fn scatter_is_seeded_bounded_and_common_to_a_lockstep() {
    let jitter = Some(Jitter { seed: 3, share: 0.9 });
    let mut both = [false, true].map(|lockstep| {
        let mut engine = engine(EngineConfig { jitter, lockstep, ..config() });
        [0, 1].map(|connection| {
            token_times(engine.answer(&request(connection, 2_000, COMPLETIONS, &streamed(50))))
        })
    });
    let [free, lockstep] = &mut both;
    assert_ne!(free[0], free[1]);
    assert_eq!(lockstep[0], lockstep[1]);
    for (index, (at_ms, _)) in free[0].iter().enumerate() {
        let late = at_ms - (2_044.0 + 10.0 * index as f64);
        assert!((0.0..9.0).contains(&late), "token {index} late by {late}");
    }
    assert!(free[0].is_sorted());
    let mut again = engine(EngineConfig { jitter, ..config() });
    assert_eq!(token_times(again.answer(&request(0, 2_000, COMPLETIONS, &streamed(50)))), free[0]);
}

#[test]
fn without_a_seat_a_request_waits_in_order_and_starts_when_one_is_free() {
    let mut engine = engine(EngineConfig { max_num_seqs: 1, ..config() });
    let first = engine.answer(&request(0, 2_000, COMPLETIONS, &streamed(3)));
    let second = engine.answer(&request(1, 2_001, COMPLETIONS, &streamed(1)));
    let third = engine.answer(&request(2, 2_002, COMPLETIONS, &streamed(1)));
    assert!(!first.more && second.more && third.more);
    assert_eq!(second.steps.count(), 1, "the head leaves at once");
    assert_eq!(engine.wake_ns(), Some(2_064 * MS));
    assert!(engine.wake(2_063 * MS).is_empty());
    // The call is late: both plans stay where they were.
    let started = engine.wake(2_120 * MS);
    let times: Vec<_> =
        started.into_iter().map(|(connection, play)| (connection, token_times(play))).collect();
    assert_eq!(times, [(1, vec![(2_108.0, 1)]), (2, vec![(2_152.0, 1)])]);
    assert_eq!(engine.wake_ns(), None);
}

#[test]
fn client_that_leaves_frees_its_seat_then() {
    let mut engine = engine(EngineConfig { max_num_seqs: 1, ..config() });
    for connection in 0..4 {
        engine.answer(&request(connection, 2_000, COMPLETIONS, &streamed(100)));
    }
    engine.left(1, 2_010 * MS);
    engine.left(0, 2_020 * MS);
    let started = engine.wake(2_021 * MS);
    assert_eq!(started.len(), 1);
    assert_eq!((started[0].0, started[0].1.start_ns), (2, 2_020 * MS));
}

#[test]
fn nobody_starts_before_they_came() {
    let mut engine = engine(EngineConfig { max_num_seqs: 2, ..config() });
    for connection in 0..2 {
        engine.answer(&request(connection, 2_000, COMPLETIONS, &streamed(1)));
    }
    engine.answer(&request(2, 2_010, COMPLETIONS, &streamed(1)));
    // Both seats are free from 2044 on, but nobody has looked yet.
    engine.answer(&request(3, 2_050, COMPLETIONS, &streamed(1)));
    let starts: Vec<_> =
        engine.wake(2_060 * MS).iter().map(|(key, play)| (*key, play.start_ns / MS)).collect();
    assert_eq!(starts, [(2, 2_044), (3, 2_050)]);
}

fn length_and_reason(config: EngineConfig, body: &Value) -> (u32, String) {
    let play = engine(config).answer(&request(0, 2_000, COMPLETIONS, body));
    let steps: Vec<_> = play.steps.collect();
    let tokens = steps.iter().map(|step| step.tokens).sum();
    let reason = events(steps.into_iter())
        .iter()
        .find_map(|event| event["choices"][0]["finish_reason"].as_str().map(str::to_owned));
    (tokens, reason.unwrap())
}

#[test]
fn output_length_follows_limit_default_and_the_models_own_end() {
    let unlimited = json!({"prompt": "a", "stream": true});
    let with = |key: &str, value: Value| {
        let mut body = streamed(50);
        body[key] = value;
        body
    };
    let ends = EngineConfig { output_tokens: Some((5, 5)), ..config() };
    let said = |tokens, reason: &str| (tokens, reason.to_owned());
    assert_eq!(length_and_reason(config(), &streamed(50)), said(50, "length"));
    assert_eq!(length_and_reason(config(), &unlimited), said(128, "stop"));
    assert_eq!(length_and_reason(ends.clone(), &streamed(50)), said(5, "stop"));
    assert_eq!(length_and_reason(ends.clone(), &unlimited), said(5, "stop"));
    assert_eq!(length_and_reason(ends.clone(), &streamed(3)), said(3, "length"));
    assert_eq!(length_and_reason(ends.clone(), &with("min_tokens", json!(9))), said(9, "stop"));
    assert_eq!(length_and_reason(ends, &with("ignore_eos", json!(true))), said(50, "length"));
}

#[test]
fn prompts_are_counted_from_what_they_hold() {
    let prompt_tokens = |path: &str, mut body: Value| {
        body["max_tokens"] = json!(1);
        let steps = engine(config()).answer(&request(0, 2_000, path, &body)).steps;
        let text: String = steps.map(|step| text(&step)).collect();
        let body: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        body["usage"]["prompt_tokens"].as_u64().unwrap()
    };
    assert_eq!(prompt_tokens(COMPLETIONS, json!({"prompt": ""})), 1);
    assert_eq!(prompt_tokens(COMPLETIONS, json!({"prompt": "12345"})), 2);
    assert_eq!(prompt_tokens(COMPLETIONS, json!({"prompt": ["漢字漢字漢"]})), 5);
    assert_eq!(prompt_tokens(COMPLETIONS, json!({"prompt": [1, 2, 3]})), 3);
    assert_eq!(prompt_tokens(COMPLETIONS, json!({"prompt": [[1, 2, 3, 4]]})), 4);
    let parts =
        json!([{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}]);
    let messages = json!({"messages": [{"role": "system", "content": "two words"},
        {"role": "assistant", "content": null}, {"role": "user", "content": parts}]});
    assert_eq!(prompt_tokens(CHAT, messages), 2 + 1 + 256);
}

#[test]
fn what_is_not_served_is_refused_in_vllms_error_shape() {
    let chat = |more: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let table = [
        (CHAT, "{".to_owned(), 400),
        (CHAT, String::new(), 400),
        (CHAT, "[]".to_owned(), 400),
        (CHAT, json!({"prompt": "x"}).to_string(), 400),
        (CHAT, json!({"messages": []}).to_string(), 400),
        (COMPLETIONS, json!({"model": "served"}).to_string(), 400),
        (COMPLETIONS, json!({"prompt": ["a", "b"]}).to_string(), 400),
        (CHAT, chat(json!({"max_tokens": 0})), 400),
        (CHAT, chat(json!({"max_completion_tokens": -1})), 400),
        (CHAT, chat(json!({"max_tokens": 131_072})), 400),
        (CHAT, chat(json!({"max_tokens": 5_000_000_000u64})), 400),
        (CHAT, chat(json!({"n": 2})), 400),
        (CHAT, chat(json!({"logprobs": true})), 400),
        (CHAT, chat(json!({"model": "other"})), 404),
    ];
    let mut engine = engine(EngineConfig { model: Some("served".into()), ..config() });
    for (path, body, status) in table {
        let mut request = request(0, 2_000, path, &json!(null));
        request.body = body.clone().into_bytes();
        let text: String = engine.answer(&request).steps.map(|step| text(&step)).collect();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{body}: {text}");
        let error: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(error["error"]["code"], status);
        assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string());
    }
    assert_eq!(engine.wake_ns(), None);
}

#[test]
fn broken_configurations_are_refused() {
    let refused = |config: EngineConfig| Engine::new(config, ANCHOR).unwrap_err();
    let jitter = |share| EngineConfig { jitter: Some(Jitter { seed: 0, share }), ..config() };
    assert_eq!(refused(EngineConfig { max_num_seqs: 0, ..config() }), EngineConfigError::NoSeats);
    assert_eq!(
        refused(EngineConfig { chunk_tokens: 0, ..config() }),
        EngineConfigError::EmptyChunks
    );
    let standing = EngineConfig { lockstep: true, token_interval: Duration::ZERO, ..config() };
    assert_eq!(refused(standing), EngineConfigError::NoStep);
    assert_eq!(refused(jitter(1.0)), EngineConfigError::Jitter);
    assert_eq!(refused(jitter(f64::NAN)), EngineConfigError::Jitter);
    assert_eq!(
        refused(EngineConfig { output_tokens: Some((2, 1)), ..config() }),
        EngineConfigError::OutputRange
    );
    assert_eq!(
        refused(EngineConfig { default_output_tokens: 0, ..config() }),
        EngineConfigError::DefaultOutput
    );
}

#[test]
fn endless_times_do_not_overflow() {
    let endless = EngineConfig {
        ttft: Duration::MAX,
        ttft_per_prompt_token: Duration::MAX,
        token_interval: Duration::MAX,
        jitter: Some(Jitter { seed: 1, share: 0.5 }),
        ..config()
    };
    for lockstep in [false, true] {
        let mut engine = engine(EngineConfig { lockstep, ..endless.clone() });
        let play = engine.answer(&request(0, 2_000, COMPLETIONS, &streamed(3)));
        assert_eq!(token_times(play).len(), 3);
    }
}
