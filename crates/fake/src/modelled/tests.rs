use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

// Several answers to one request.
mod choices;
// What goes wrong with answers when it is asked for.
mod faults;

const MS: u64 = 1_000_000;
const ANCHOR: Anchor = Anchor { monotonic_ns: 5_000 * MS, unix_s: 1_800_000_000 };
const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

fn modelled(assignments: &[&str]) -> Modelled {
    with(assignments, ModelledConfig::default())
}

fn with(assignments: &[&str], mut config: ModelledConfig) -> Modelled {
    assignments.iter().for_each(|assignment| config.settings.set(assignment).unwrap());
    Modelled::new(config, ANCHOR).unwrap()
}

fn request(connection: u64, at_ms: u64, path: &str, body: &Value) -> Request {
    Request {
        method: "POST".into(),
        target: path.into(),
        headers: vec![("x-request-id".into(), format!("r-{connection}"))],
        body: body.to_string().into_bytes(),
        arrival_ns: ANCHOR.monotonic_ns + at_ms * MS,
        connection,
        on_connection: 0,
        keep_alive: true,
        http_1_0: false,
    }
}

fn get(at_ms: u64, path: &str) -> Request {
    Request { method: "GET".into(), body: Vec::new(), ..request(999, at_ms, path, &json!(null)) }
}

/// A prompt of so many words that no other connection has, streamed.
fn streamed(name: &str, words: usize, tokens: u32) -> Value {
    let prompt: Vec<String> = (0..words).map(|word| format!("{name}{}", letters(word))).collect();
    json!({"prompt": prompt.join(" "), "stream": true, "max_tokens": tokens,
        "stream_options": {"include_usage": true}})
}

/// A number in letters, so that a word of it is one word.
fn letters(number: usize) -> String {
    number.to_string().chars().map(|digit| (b'a' + digit as u8 - b'0') as char).collect()
}

fn text_of(play: Play) -> String {
    let bytes = play.steps.flat_map(|step| match step.action {
        crate::script::Action::Send(bytes) => bytes,
        other => panic!("no bytes: {other:?}"),
    });
    String::from_utf8(bytes.collect()).unwrap()
}

fn body_of(text: &str) -> Value {
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// What was poured, by connection.
#[derive(Default)]
struct Poured(BTreeMap<u64, Vec<Piece>>);

impl Poured {
    /// Looks every time the model wants it, until nothing is left.
    fn all(model: &mut Modelled) -> Self {
        let mut poured = Self::default();
        while let Some(at_ns) = model.wake_ns() {
            poured.look(model, at_ns);
        }
        poured
    }

    fn look(&mut self, model: &mut Modelled, at_ns: u64) {
        assert!(model.wake(at_ns).is_empty());
        let mut piece = Piece::default();
        while model.pour(at_ns, &mut piece) {
            self.0.entry(piece.connection).or_default().push(piece.clone());
            piece.clear();
        }
    }

    /// Milliseconds of model time at which tokens were due, one entry a token.
    fn due_ms(&self, connection: u64) -> Vec<f64> {
        let tokens = self.0[&connection].iter().flat_map(|piece| &piece.tokens);
        let ms = |at_ns: u64| (at_ns - ANCHOR.monotonic_ns) as f64 / 1e6;
        tokens.flat_map(|(at_ns, count)| vec![ms(*at_ns); *count as usize]).collect()
    }

    fn text(&self, connection: u64) -> String {
        let bytes = self.0[&connection].iter().flat_map(|piece| piece.bytes.clone()).collect();
        String::from_utf8(bytes).unwrap()
    }

    fn events(&self, connection: u64) -> Vec<Value> {
        let text = self.text(connection);
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The usage of an answer, and why it ended.
    fn usage(&self, connection: u64) -> (Value, String) {
        let events = self.events(connection);
        let reason = events.iter().find_map(|event| event["choices"][0]["finish_reason"].as_str());
        (events.last().unwrap()["usage"].clone(), reason.unwrap().to_owned())
    }
}

/// The samples of an exposition at an instant.
struct Scrape(String);

impl Scrape {
    fn at(model: &mut Modelled, at_ms: u64) -> Self {
        Self(text_of(model.answer(&get(at_ms, "/metrics"))))
    }

    /// The value of the first sample whose line begins with this name and has
    /// all these labels.
    #[track_caller]
    fn value(&self, name: &str, labels: &[&str]) -> f64 {
        let is_it = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        };
        let line = self.0.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {labels:?}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[track_caller]
    fn is(&self, name: &str, labels: &[&str], expected: f64) {
        let value = self.value(name, labels);
        let near = (value - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        assert!(near, "{name} {labels:?}: {value} and not {expected}");
    }
}

/// Long after everything.
const END_MS: u64 = 100_000_000;

#[test]
fn tokens_are_due_when_the_model_says_however_late_the_server_looks() {
    let settings = Settings::default();
    struct Instants(Vec<f64>);
    impl sim::Audience for Instants {
        fn tokens(&mut self, _: sim::Choice, at_ns: u64, tokens: u32) {
            self.0.extend(vec![at_ns as f64 / 1e6; tokens as usize]);
        }
        fn ended(&mut self, _: usize, _: sim::Choice, _: &sim::Ended, _: u64) {}
    }
    let (mut cluster, mut alone) = (Cluster::new(&settings, 0).unwrap(), Instants(Vec::new()));
    let ask = |id| sim::Ask {
        id,
        prompt: Content::own(id, 40),
        answer: id,
        choices: 1,
        limit: 20,
        natural: None,
        priority: 0,
        adapter: None,
        session: 0,
        computed: 0,
    };
    cluster.submit(7 * MS, ask(1));
    cluster.advance(u64::MAX, &mut alone);

    let mut model = modelled(&[]);
    model.answer(&request(1, 7, COMPLETIONS, &streamed("w", 40, 20)));
    let on_time = Poured::all(&mut model);
    assert_eq!(on_time.due_ms(1), alone.0);
    assert_eq!(on_time.0[&1].len(), 20, "a write a token");

    let mut model = modelled(&[]);
    model.answer(&request(1, 7, COMPLETIONS, &streamed("w", 40, 20)));
    let mut late = Poured::default();
    for look in 1.. {
        late.look(&mut model, ANCHOR.monotonic_ns + look * 70 * MS);
        if model.wake_ns().is_none() {
            break;
        }
    }
    assert_eq!(late.due_ms(1), alone.0);
    assert!(late.0[&1].len() < 5, "what is overdue leaves in one write");
    assert_eq!(late.text(1), on_time.text(1));
}

/// What the front end takes for ten tokens.
const FRONTEND_NS: u64 = 2_005_000;

#[test]
fn a_request_that_was_read_late_is_in_time_for_the_step_after_it_came() {
    let first_token = |read_after_the_step: bool| {
        let mut model = modelled(&["output_overhead_us=2000"]);
        model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 10, 50)));
        let mut poured = Poured::default();
        // Just after the end of a step; the other request came just before it.
        let step_ns = loop {
            let at_ns = model.wake_ns().unwrap();
            if at_ns > ANCHOR.monotonic_ns + 60 * MS {
                break model.cluster.next_ns().unwrap();
            }
            poured.look(&mut model, at_ns);
        };
        let mut other = request(2, 0, COMPLETIONS, &streamed("b", 10, 2));
        // It reaches the scheduler 10 µs before the step ends.
        other.arrival_ns = ANCHOR.monotonic_ns + step_ns - 10_000 - FRONTEND_NS;
        if read_after_the_step {
            poured.look(&mut model, ANCHOR.monotonic_ns + step_ns + 100_000);
        }
        model.answer(&other);
        Poured::all(&mut model).due_ms(2)[0]
    };
    assert_eq!(first_token(true).to_bits(), first_token(false).to_bits());
}

#[test]
fn counters_and_histograms_are_what_the_instants_say() {
    // One seat, so that the second waits for the first, and nothing planned
    // ahead, so that it begins when the first ends.
    let set = ["max_num_seqs=1", "async_scheduling=false", "output_overhead_us=300"];
    let mut model = modelled(&set);
    model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 100, 4)));
    model.answer(&request(2, 1, COMPLETIONS, &streamed("b", 50, 3)));
    let during = Scrape::at(&mut model, 20);
    let engine = ["engine=\"0\"", "model_name=\"llama-3.1-8b\""];
    during.is("vllm:num_requests_running", &engine, 1.0);
    during.is("vllm:num_requests_waiting", &engine, 1.0);
    during.is("vllm:num_requests_waiting_by_reason", &["capacity"], 1.0);
    // 100 words and up to 4 tokens lie in 7 blocks of 16.
    during.is("vllm:kv_cache_usage_perc", &engine, 7.0 / f64::from(model.facts().blocks));
    during.is("vllm:e2e_request_latency_seconds_count", &engine, 0.0);

    let poured = Poured::all(&mut model);
    let after = Scrape::at(&mut model, END_MS);
    let (first, second) = (poured.due_ms(1), poured.due_ms(2));
    assert_eq!((first.len(), second.len()), (4, 3));
    after.is("vllm:num_requests_running", &engine, 0.0);
    after.is("vllm:kv_cache_usage_perc", &engine, 0.0);
    after.is("vllm:prompt_tokens_total", &engine, 150.0);
    after.is("vllm:prompt_tokens_by_source_total", &["local_compute"], 150.0);
    after.is("vllm:prefix_cache_queries_total", &engine, 150.0);
    after.is("vllm:prefix_cache_hits_total", &engine, 0.0);
    after.is("vllm:generation_tokens_total", &engine, 7.0);
    after.is("vllm:request_success_total", &["\"length\""], 2.0);
    after.is("vllm:num_preemptions_total", &engine, 0.0);
    after.is("vllm:request_prompt_tokens_sum", &engine, 150.0);
    after.is("vllm:request_prompt_tokens_bucket", &["le=\"50.0\""], 1.0);
    after.is("vllm:request_params_max_tokens_sum", &engine, 7.0);
    after.is("vllm:request_params_n_count", &engine, 2.0);
    // Seven steps gave tokens, two of them ended a prompt.
    after.is("vllm:iteration_tokens_total_count", &engine, 7.0);
    after.is("vllm:iteration_tokens_total_sum", &engine, 157.0);
    after.is("vllm:iteration_tokens_total_bucket", &["le=\"1.0\""], 5.0);

    let s = |ms: f64| ms / 1e3;
    after.is("vllm:time_to_first_token_seconds_sum", &engine, s(first[0] + second[0] - 1.0));
    after.is("vllm:e2e_request_latency_seconds_sum", &engine, s(first[3] + second[2] - 1.0));
    let decode_s = s(first[3] - first[0] + second[2] - second[0]);
    after.is("vllm:request_decode_time_seconds_sum", &engine, decode_s);
    after.is("vllm:inter_token_latency_seconds_sum", &engine, decode_s);
    after.is("vllm:inter_token_latency_seconds_count", &engine, 5.0);
    let tpot_s = s((first[3] - first[0]) / 3.0 + (second[2] - second[0]) / 2.0);
    after.is("vllm:request_time_per_output_token_seconds_sum", &engine, tpot_s);
    // The front end takes 2 ms and 0.5 µs a token, one request after the other,
    // the way out 0.3 ms. The second is put into a step when the first one's last
    // token is there.
    let waited_s = s(first[3] - 0.3 - (2.05 + 2.025));
    after.is("vllm:request_queue_time_seconds_sum", &engine, waited_s);
    let prefill_s = s(first[0] - 0.3 - 2.05) + s(second[0] - first[3]);
    after.is("vllm:request_prefill_time_seconds_sum", &engine, prefill_s);
    after.is("vllm:request_inference_time_seconds_sum", &engine, prefill_s + decode_s);

    // Of 8.03 · 10⁹ parameters those in layers and the head compute: 2 operations
    // each for a token, and a little attention.
    let flops = after.value("vllm:estimated_flops_per_gpu_total", &engine);
    let least = 155.0 * 2.0 * 6.98e9 + 7.0 * 2.0 * 0.525e9;
    assert!((1.0..1.02).contains(&(flops / least)), "{flops} {least}");
    // 155 tokens were computed (the last of each answer is not), 131 072 bytes each.
    after.is("vllm:estimated_write_bytes_per_gpu_total", &engine, 155.0 * 131_072.0);
    // Every step reads 15.01 · 10⁹ bytes of weights at least.
    let read = after.value("vllm:estimated_read_bytes_per_gpu_total", &engine);
    assert!((1.0..1.02).contains(&(read / (7.0 * 15.01e9))), "{read}");
}

#[test]
fn a_prompt_whose_beginning_is_cached_is_found_and_forgotten_on_request() {
    let mut model = modelled(&[]);
    let cached = |model: &mut Modelled, at_ms, body: &Value| {
        model.answer(&request(1, at_ms, COMPLETIONS, body));
        Poured::all(model).usage(1).0["prompt_tokens_details"]["cached_tokens"].clone()
    };
    let (same, longer) = (streamed("a", 100, 5), streamed("a", 200, 5));
    assert_eq!(cached(&mut model, 0, &same), 0);
    // 100 tokens are 6 whole blocks; the last token is computed in any case.
    assert_eq!(cached(&mut model, 1_000, &same), 96);
    assert_eq!(cached(&mut model, 2_000, &longer), 96);
    let scrape = Scrape::at(&mut model, 3_000);
    scrape.is("vllm:prefix_cache_hits_total", &[], 192.0);
    scrape.is("vllm:prompt_tokens_by_source_total", &["local_cache_hit"], 192.0);
    scrape.is("vllm:prompt_tokens_cached_total", &[], 192.0);
    scrape.is("vllm:request_prefill_kv_computed_tokens_sum", &[], 400.0 - 192.0);

    let reset = request(2, 4_000, "/reset_prefix_cache", &json!({}));
    assert!(text_of(model.answer(&reset)).starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(cached(&mut model, 5_000, &same), 0);
    model.answer(&request(1, 6_000, COMPLETIONS, &same));
    let busy = text_of(model.answer(&request(2, 6_010, "/reset_prefix_cache", &json!({}))));
    assert!(busy.starts_with("HTTP/1.1 409 "), "{busy}");
}

#[test]
fn another_name_than_the_models_is_an_adapter_with_blocks_of_its_own() {
    let mut model = modelled(&["max_loras=1", "lora_load_ms=500"]);
    let asks = |model: &mut Modelled, at_ms, name: &str| {
        let mut body = streamed("a", 100, 2);
        body["model"] = json!(name);
        model.answer(&request(1, at_ms, COMPLETIONS, &body));
        let poured = Poured::all(model);
        let cached = poured.usage(1).0["prompt_tokens_details"]["cached_tokens"].clone();
        (cached.as_u64().unwrap(), poured.due_ms(1)[0] - at_ms as f64 > 500.0)
    };
    assert_eq!(asks(&mut model, 0, "llama-3.1-8b"), (0, false));
    assert_eq!(asks(&mut model, 1_000, "sql"), (0, true), "it is loaded");
    assert_eq!(asks(&mut model, 3_000, "sql"), (96, false));
    assert_eq!(asks(&mut model, 4_000, "llama-3.1-8b"), (96, false));
}

#[test]
fn a_later_turn_finds_the_answer_that_it_carries() {
    let byte_tokens: Arc<dyn Tokenizer> = Arc::new(Bytes);
    for (tokenizer, answers_are_found) in [(None, true), (Some(byte_tokens), false)] {
        let mut model = with(&[], ModelledConfig { tokenizer, ..ModelledConfig::default() });
        let user = |text: &str| json!({"role": "user", "content": text});
        let question = streamed("q", 64, 1)["prompt"].as_str().unwrap().to_owned();
        let body = |messages: Value| {
            json!({"messages": messages, "stream": true, "max_tokens": 64,
                "stream_options": {"include_usage": true}})
        };
        model.answer(&request(1, 0, CHAT, &body(json!([user(&question)]))));
        let first = Poured::all(&mut model);
        let answer: String = first.events(1).iter().fold(String::new(), |text, event| {
            text + event["choices"][0]["delta"]["content"].as_str().unwrap_or("")
        });
        let asked = first.usage(1).0["prompt_tokens"].as_u64().unwrap();
        let said = json!({"role": "assistant", "content": answer});
        let next = json!([user(&question), said, user("and then?")]);
        model.answer(&request(1, 10_000, CHAT, &body(next)));
        let usage = Poured::all(&mut model).usage(1).0;
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        // Of 64 words and 64 tokens the last is never computed.
        let found = if answers_are_found { 112 } else { asked / 16 * 16 };
        assert_eq!(cached, found, "{usage}");
    }
}

/// A tokenizer for which a word is no token.
#[derive(Debug)]
struct Bytes;

impl Tokenizer for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&ids.iter().map(|id| *id as u8).collect::<Vec<_>>()).into_owned()
    }

    fn vocabulary_size(&self) -> u32 {
        256
    }

    fn special_ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[test]
fn a_server_tells_its_tokens_in_vllms_shape() {
    use wire::tokenize::Dialect::Vllm;

    let asks = |model: &mut Modelled, path, body: Vec<u8>| {
        let mut request = request(1, 0, path, &json!(null));
        request.body = body;
        text_of(model.answer(&request))
    };
    let body = |text: &str| text.split_once("\r\n\r\n").unwrap().1.as_bytes().to_vec();
    let config = ModelledConfig { tokenizer: Some(Arc::new(Bytes)), ..ModelledConfig::default() };
    let mut model = with(&[], config);
    let told = asks(&mut model, "/tokenize", Vllm.tokenize("m", "hé", true));
    assert_eq!(Vllm.ids(&body(&told)).unwrap(), [104, 195, 169]);
    assert_eq!(body_of(&told)["max_model_len"], 131_072);
    let told = asks(&mut model, "/detokenize", Vllm.detokenize("m", &[104, 105]));
    assert_eq!(Vllm.text(&body(&told)).as_deref(), Some("hi"));
    assert!(asks(&mut model, "/detokenize", b"{}".to_vec()).starts_with("HTTP/1.1 400 "));

    // Without a tokenizer words are tokens, and have no text that they stand for.
    let mut model = modelled(&[]);
    let told = asks(&mut model, "/tokenize", Vllm.tokenize("m", "one two, three", false));
    assert_eq!(Vllm.ids(&body(&told)).unwrap().len(), 4);
    let chat = json!({"messages": [{"role": "user", "content": "one two"}]}).to_string();
    assert_eq!(body_of(&asks(&mut model, "/tokenize", chat.into_bytes()))["count"], 2);
    assert!(asks(&mut model, "/tokenize", b"{}".to_vec()).starts_with("HTTP/1.1 400 "));
    let told = asks(&mut model, "/detokenize", Vllm.detokenize("m", &[1]));
    assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("--tokenizer"), "{told}");
    assert!(text_of(model.answer(&get(0, "/tokenize"))).starts_with("HTTP/1.1 405 "));
}

#[test]
fn a_client_that_leaves_frees_its_seat_and_is_counted() {
    let mut model = modelled(&["max_num_seqs=1"]);
    for connection in 1..=3 {
        let body = streamed(&letters(connection as usize), 10, 1_000);
        model.answer(&request(connection, 0, COMPLETIONS, &body));
    }
    let at_ns = |ms: u64| ANCHOR.monotonic_ns + ms * MS;
    let mut poured = Poured::default();
    poured.look(&mut model, at_ns(50));
    let told = poured.due_ms(1).len();
    assert!(told > 0 && !poured.0.contains_key(&2));
    model.left(1, at_ns(50));
    model.left(3, at_ns(51));
    let scrape = Scrape::at(&mut model, 80);
    scrape.is("vllm:request_success_total", &["\"abort\""], 2.0);
    scrape.is("vllm:num_requests_running", &[], 1.0);
    scrape.is("vllm:num_requests_waiting", &[], 0.0);
    let rest = Poured::all(&mut model);
    assert_eq!(rest.due_ms(2).len(), 1_000);
    assert!(!rest.0.contains_key(&1) && !rest.0.contains_key(&3));
    let scrape = Scrape::at(&mut model, END_MS);
    scrape.is("vllm:request_success_total", &["\"length\""], 1.0);
    scrape.is("vllm:e2e_request_latency_seconds_count", &[], 1.0);
}

#[test]
fn when_blocks_run_out_preemptions_are_counted_and_tokens_are_not_counted_twice() {
    let set = ["num_gpu_blocks_override=40", "max_model_len=640", "enable_prefix_caching=false"];
    let mut model = modelled(&set);
    for connection in 1..=3 {
        let body = streamed(&letters(connection as usize), 100, 300);
        model.answer(&request(connection, 0, COMPLETIONS, &body));
    }
    let poured = Poured::all(&mut model);
    (1..=3).for_each(|connection| assert_eq!(poured.due_ms(connection).len(), 300));
    let scrape = Scrape::at(&mut model, END_MS);
    assert!(scrape.value("vllm:num_preemptions_total", &[]) >= 1.0);
    scrape.is("vllm:generation_tokens_total", &[], 900.0);
    scrape.is("vllm:prompt_tokens_total", &[], 300.0);
    scrape.is("vllm:cache_config_info", &["num_gpu_blocks=\"40\"", "block_size=\"16\""], 1.0);
}

#[test]
fn what_does_not_fit_or_is_not_made_is_refused_and_counted() {
    let config = ModelledConfig { model: Some("served".into()), ..ModelledConfig::default() };
    let mut model = with(&["max_model_len=100"], config);
    let cases = [
        (json!({"prompt": "a", "max_tokens": 100}), 400, "the context holds 100 tokens"),
        (streamed("a", 100, 1), 400, "the context holds 100 tokens"),
        (json!({"prompt": "a", "n": 129}), 400, "n must be a whole number from 1 to 128, got 129"),
        (
            json!({"prompt": "a", "n": 2, "temperature": 0}),
            400,
            "n must be 1 under greedy sampling",
        ),
        (json!({"prompt": "a", "best_of": 2}), 400, "best_of is not offered"),
        (json!({"prompt": "a", "model": "other"}), 404, "does not exist"),
        (json!({"messages": []}), 400, "prompt is missing"),
    ];
    for (body, status, sentence) in &cases {
        let told = text_of(model.answer(&request(1, 0, COMPLETIONS, body)));
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
        assert!(told.contains(sentence), "{told}");
    }
    assert_eq!(model.wake_ns(), None);
    let scrape = Scrape::at(&mut model, 1);
    scrape.is("http_requests_total", &["4xx", COMPLETIONS], cases.len() as f64);
    let list = body_of(&text_of(model.answer(&get(0, "/v1/models"))));
    assert_eq!(
        (&list["data"][0]["id"], &list["data"][0]["max_model_len"]),
        (&json!("served"), &json!(100))
    );
    for path in ["/health", "/version"] {
        assert!(text_of(model.answer(&get(0, path))).starts_with("HTTP/1.1 200 "));
    }
    assert!(text_of(model.answer(&get(0, "/v1/nothing"))).starts_with("HTTP/1.1 404 "));
}

#[test]
fn answers_without_a_limit_end_by_themselves_and_whole_ones_come_in_one_piece() {
    let mut model = modelled(&[]);
    let ends = |model: &mut Modelled, more: Value| {
        let mut body = json!({"prompt": "a", "stream": true,
            "stream_options": {"include_usage": true}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        model.answer(&request(1, 0, COMPLETIONS, &body));
        let (usage, reason) = Poured::all(model).usage(1);
        (usage["completion_tokens"].as_u64().unwrap(), reason)
    };
    let said = |tokens, reason: &str| (tokens, reason.to_owned());
    assert_eq!(ends(&mut model, json!({})), said(128, "stop"));
    assert_eq!(ends(&mut model, json!({"min_tokens": 200})), said(200, "stop"));
    assert_eq!(ends(&mut model, json!({"ignore_eos": true})), said(128, "length"));
    assert_eq!(ends(&mut model, json!({"max_tokens": 9})), said(9, "length"));

    let body = json!({"messages": [{"role": "user", "content": "a b"}], "max_tokens": 6});
    let play = model.answer(&request(4, 0, CHAT, &body));
    assert_eq!((play.steps.count(), play.more), (0, true));
    let poured = Poured::all(&mut model);
    assert_eq!(poured.0[&4].len(), 1);
    assert_eq!(poured.0[&4][0].tokens[0].1, 6);
    let body = body_of(&poured.text(4));
    assert_eq!(body["choices"][0]["message"]["content"].as_str().unwrap().split(' ').count(), 6);
    assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

#[test]
fn vectors_take_a_prompts_time_and_no_tokens() {
    let mut model = modelled(&[]);
    let body = json!({"input": ["one two", "three"]});
    model.answer(&request(1, 0, "/v1/embeddings", &body));
    let poured = Poured::all(&mut model);
    let body = body_of(&poured.text(1));
    assert_eq!(body["data"].as_array().unwrap().len(), 2);
    assert_eq!(body["usage"]["prompt_tokens"], 3);
    assert!(poured.due_ms(1).is_empty());
    let scrape = Scrape::at(&mut model, END_MS);
    scrape.is("vllm:prompt_tokens_total", &[], 3.0);
    scrape.is("vllm:generation_tokens_total", &[], 0.0);
    scrape.is("http_requests_total", &["2xx", "/v1/embeddings"], 1.0);
}

#[test]
fn an_answer_carries_the_servers_own_timings_where_they_are_asked_for() {
    let config = ModelledConfig { per_request_metrics: true, ..ModelledConfig::default() };
    let mut model = with(&["max_num_seqs=1", "async_scheduling=false"], config);
    for connection in 1..=2 {
        let body = streamed(&letters(connection as usize), 10, 5);
        model.answer(&request(connection, 0, COMPLETIONS, &body));
    }
    let poured = Poured::all(&mut model);
    let metrics = poured.events(2).last().unwrap()["metrics"].clone();
    let ms = |name: &str| metrics[name].as_f64().unwrap();
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
    let (first, second) = (poured.due_ms(1), poured.due_ms(2));
    near(ms("generation_time_ms"), second[4] - second[0]);
    near(ms("mean_itl_ms"), (second[4] - second[0]) / 4.0);
    // The front end takes 2.005 ms for each, so it waits from 4.01 ms until the
    // first one's last token, which left 0.4 ms after it was there.
    near(ms("queue_time_ms"), first[4] - 0.4 - 4.01);
    near(ms("time_to_first_token_ms"), second[0] - first[4]);
    near(ms("tokens_per_second"), 5.0 / (second[4] - first[4]) * 1e3);
}

#[test]
fn drafts_put_several_tokens_into_one_event() {
    let mut model = modelled(&["num_speculative_tokens=3", "acceptance_rate=0.8"]);
    model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 10, 200)));
    let poured = Poured::all(&mut model);
    let text: String = poured
        .events(1)
        .iter()
        .map(|event| event["choices"][0]["text"].as_str().unwrap_or("").to_owned())
        .collect();
    assert_eq!(text.split(' ').count(), 200);
    let scrape = Scrape::at(&mut model, END_MS);
    let drafts = scrape.value("vllm:spec_decode_num_drafts_total", &[]);
    let accepted = scrape.value("vllm:spec_decode_num_accepted_tokens_total", &[]);
    // The first token comes of the prompt; every step after it gives one more
    // than it accepts.
    assert!((1.0 + drafts + accepted - 200.0).abs() < 1e-9, "{drafts} {accepted}");
    assert!(accepted > drafts && poured.0[&1].len() < 120);
    scrape.is("vllm:spec_decode_num_draft_tokens_total", &[], 3.0 * drafts);
}

#[test]
fn prompts_computed_elsewhere_are_told_where_they_were_computed() {
    let mut model = modelled(&["prefill_replicas=1"]);
    model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 100, 5)));
    assert_eq!(Poured::all(&mut model).due_ms(1).len(), 5);
    let scrape = Scrape::at(&mut model, END_MS);
    let by = "vllm:prompt_tokens_by_source_total";
    scrape.is(by, &["engine=\"0\"", "local_compute"], 100.0);
    scrape.is(by, &["engine=\"1\"", "external_kv_transfer"], 99.0);
    scrape.is(by, &["engine=\"1\"", "local_compute"], 1.0);
    scrape.is("vllm:generation_tokens_total", &["engine=\"1\""], 5.0);
    scrape.is("vllm:request_success_total", &["engine=\"1\"", "\"length\""], 1.0);
}

#[test]
fn the_same_state_is_told_under_sglangs_names() {
    let config = ModelledConfig { profile: Profile::Sglang, ..ModelledConfig::default() };
    let mut model = with(&[], config);
    for (connection, at_ms) in [(1, 0), (2, 1_000)] {
        model.answer(&request(connection, at_ms, COMPLETIONS, &streamed("a", 100, 5)));
        Poured::all(&mut model);
    }
    let scrape = Scrape::at(&mut model, END_MS);
    let streamed = ["is_streaming=\"true\""];
    scrape.is("sglang:prompt_tokens_total", &streamed, 200.0);
    scrape.is("sglang:generation_tokens_total", &streamed, 10.0);
    scrape.is("sglang:num_requests_total", &streamed, 2.0);
    scrape.is("sglang:cached_tokens_total", &["device"], 96.0);
    scrape.is("sglang:realtime_tokens_total", &["prefill_compute"], 104.0);
    scrape.is("sglang:time_to_first_token_seconds_count", &streamed, 2.0);
    scrape.is("sglang:inter_token_latency_seconds_count", &[], 8.0);
    scrape.is("sglang:max_total_num_tokens", &[], f64::from(model.facts().blocks) * 16.0);
    assert!(!scrape.0.contains("vllm:"));
}

#[test]
fn settings_that_cannot_be_are_refused_in_a_sentence() {
    let mut config = ModelledConfig::default();
    config.settings.set("gpu_memory_utilization=0.1").unwrap();
    let refused = Modelled::new(config, ANCHOR).unwrap_err().to_string();
    assert!(refused.contains("does not fit on"), "{refused}");
}
