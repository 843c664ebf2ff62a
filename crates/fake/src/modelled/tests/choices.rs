use super::*;

/// A streamed request for so many answers.
fn several(path: &str, n: u8, words: usize, tokens: u32) -> Value {
    let mut body = streamed("w", words, tokens);
    body["n"] = json!(n);
    if path == CHAT {
        body["messages"] = json!([{"role": "user", "content": body["prompt"]}]);
    }
    body
}

/// The text of one answer of a stream, and the finish reasons that it has.
fn of_choice(events: &[Value], index: u64, chat: bool) -> (String, Vec<String>) {
    let (mut text, mut reasons) = (String::new(), Vec::new());
    for event in events {
        let choices = event["choices"].as_array().unwrap();
        assert!(choices.len() <= 1, "vLLM sends one choice an event");
        let Some(choice) = choices.first().filter(|choice| choice["index"] == index) else {
            continue;
        };
        let said = if chat { &choice["delta"]["content"] } else { &choice["text"] };
        text.push_str(said.as_str().unwrap());
        reasons.extend(choice["finish_reason"].as_str().map(str::to_owned));
    }
    (text, reasons)
}

fn words(text: &str) -> usize {
    text.split(' ').filter(|word| !word.is_empty()).count()
}

#[test]
fn a_stream_has_the_events_of_each_answer_and_the_usage_of_all() {
    for path in [CHAT, COMPLETIONS] {
        let mut model = modelled(&[]);
        model.answer(&request(1, 0, path, &several(path, 3, 100, 20)));
        let poured = Poured::all(&mut model);
        let events = poured.events(1);
        let role = |event: &&Value| event["choices"][0]["delta"]["role"] == "assistant";
        let roles: Vec<&Value> =
            events.iter().take_while(role).map(|event| &event["choices"][0]["index"]).collect();
        assert_eq!(roles, if path == CHAT { vec![0, 1, 2] } else { vec![] });
        let said: Vec<_> = (0..3).map(|index| of_choice(&events, index, path == CHAT)).collect();
        for (text, reasons) in &said {
            assert_eq!((words(text), reasons.as_slice()), (20, &["length".to_owned()][..]));
        }
        assert!(said[0] != said[1] && said[1] != said[2] && said[0] != said[2], "{said:?}");
        let usage = &events.last().unwrap()["usage"];
        assert_eq!(
            (&usage["prompt_tokens"], &usage["completion_tokens"]),
            (&json!(100), &json!(60))
        );
        // What was cached is that of the first answer, which found nothing.
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 0);
        assert_eq!(poured.due_ms(1).len(), 60);
    }
}

#[test]
fn running_usage_is_that_of_the_answer_at_hand() {
    let mut model = modelled(&[]);
    let mut body = several(COMPLETIONS, 2, 10, 4);
    body["stream_options"]["continuous_usage_stats"] = json!(true);
    model.answer(&request(1, 0, COMPLETIONS, &body));
    let events = Poured::all(&mut model).events(1);
    let counts = |index: u64| -> Vec<u64> {
        let own = events.iter().filter(|event| event["choices"][0]["index"] == index);
        own.map(|event| event["usage"]["completion_tokens"].as_u64().unwrap()).collect()
    };
    assert_eq!((counts(0), counts(1)), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 8);
}

#[test]
fn a_whole_answer_has_all_choices_and_comes_with_the_last_of_them() {
    // Two seats: the third answer is written when the others are over.
    let mut model = modelled(&["max_num_seqs=2"]);
    let mut body = several(CHAT, 3, 100, 12);
    body["stream"] = json!(false);
    body.as_object_mut().unwrap().remove("stream_options");
    model.answer(&request(1, 0, CHAT, &body));
    let poured = Poured::all(&mut model);
    assert_eq!(poured.0[&1].len(), 1);
    assert_eq!(poured.due_ms(1).len(), 36);
    let told = body_of(&poured.text(1));
    let choices = told["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(index), &json!("length")));
        assert_eq!(words(choice["message"]["content"].as_str().unwrap()), 12);
    }
    assert_eq!(told["usage"]["completion_tokens"], 36);
    // In one piece vLLM tells what the last one to end had found.
    assert_eq!(told["usage"]["prompt_tokens_details"]["cached_tokens"], 96);
}

#[test]
fn each_answer_counts_as_a_request_and_what_was_asked_counts_once() {
    let config = ModelledConfig { per_request_metrics: true, ..ModelledConfig::default() };
    let mut model = with(&[], config);
    model.answer(&request(1, 0, COMPLETIONS, &several(COMPLETIONS, 3, 100, 20)));
    let poured = Poured::all(&mut model);
    assert!(
        poured.events(1).last().unwrap().get("metrics").is_none(),
        "they would be of one answer"
    );
    let scrape = Scrape::at(&mut model, END_MS);
    for (name, labels, value) in [
        ("vllm:request_success_total", &["\"length\""][..], 3.0),
        ("vllm:prompt_tokens_total", &[], 300.0),
        ("vllm:prompt_tokens_by_source_total", &["local_cache_hit"], 192.0),
        ("vllm:prefix_cache_queries_total", &[], 300.0),
        ("vllm:generation_tokens_total", &[], 60.0),
        ("vllm:time_to_first_token_seconds_count", &[], 3.0),
        ("vllm:e2e_request_latency_seconds_count", &[], 3.0),
        ("vllm:inter_token_latency_seconds_count", &[], 57.0),
        ("vllm:request_generation_tokens_sum", &[], 60.0),
        ("vllm:request_params_max_tokens_count", &[], 3.0),
        ("vllm:request_params_n_count", &[], 1.0),
        ("vllm:request_params_n_sum", &[], 3.0),
        ("vllm:request_max_num_generation_tokens_count", &[], 1.0),
        ("vllm:request_max_num_generation_tokens_sum", &[], 20.0),
        ("http_requests_total", &["2xx", COMPLETIONS], 1.0),
        ("vllm:num_requests_running", &[], 0.0),
    ] {
        scrape.is(name, labels, value);
    }
}

#[test]
fn a_client_that_leaves_ends_all_answers_that_were_under_way() {
    let mut model = modelled(&["max_num_seqs=2"]);
    let body = several(COMPLETIONS, 3, 10, 1_000);
    model.answer(&request(1, 0, COMPLETIONS, &body));
    let at_ns = ANCHOR.monotonic_ns + 50 * MS;
    Poured::default().look(&mut model, at_ns);
    let scrape = Scrape::at(&mut model, 50);
    scrape.is("vllm:num_requests_running", &[], 2.0);
    scrape.is("vllm:num_requests_waiting", &[], 1.0);
    model.left(1, at_ns);
    let scrape = Scrape::at(&mut model, 51);
    scrape.is("vllm:request_success_total", &["\"abort\""], 3.0);
    scrape.is("vllm:num_requests_running", &[], 0.0);
    scrape.is("vllm:num_requests_waiting", &[], 0.0);
    assert!(Poured::all(&mut model).0.is_empty());
}

#[test]
fn a_later_turn_finds_whichever_answer_it_carries() {
    for carried in 0..3 {
        let mut model = modelled(&[]);
        model.answer(&request(1, 0, CHAT, &several(CHAT, 3, 64, 64)));
        let events = Poured::all(&mut model).events(1);
        let (answer, _) = of_choice(&events, carried, true);
        let mut body = several(CHAT, 1, 64, 4);
        let question = body["prompt"].clone();
        body["messages"] = json!([
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "and then?"},
        ]);
        model.answer(&request(1, 10_000, CHAT, &body));
        let usage = Poured::all(&mut model).usage(1).0;
        // Of 64 words and 64 tokens the last is never computed.
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 112, "{carried}");
    }
}

#[test]
fn faults_count_the_tokens_of_all_answers_and_break_the_whole_request() {
    let tokens = |fault: &str| {
        let faults = vec![FaultShare::read(fault).unwrap()];
        let mut model = with(&[], ModelledConfig { faults, ..ModelledConfig::default() });
        model.answer(&request(1, 0, CHAT, &several(CHAT, 2, 10, 20)));
        let poured = Poured::all(&mut model);
        let aborted =
            Scrape::at(&mut model, END_MS).value("vllm:request_success_total", &["\"abort\""]);
        (poured.due_ms(1).len(), aborted, poured)
    };
    let (count, aborted, poured) = tokens("truncate,after=7");
    assert_eq!((count, aborted), (7, 2.0));
    let events = poured.events(1);
    let counts = [0, 1].map(|index| words(&of_choice(&events, index, true).0));
    assert_eq!(counts, [4, 3]);

    let (count, aborted, poured) = tokens("chunks,tokens=8");
    assert_eq!((count, aborted), (40, 0.0));
    let events = poured.events(1);
    for index in [0, 1] {
        let (text, reasons) = of_choice(&events, index, true);
        assert_eq!((words(&text), reasons.len()), (20, 1));
        let own = events.iter().filter(|event| event["choices"][0]["index"] == index);
        // The role, and 8, 8 and 4 tokens.
        assert_eq!(own.count(), 4);
    }
    let (count, _, poured) = tokens("reasoning,tokens=5");
    assert_eq!(count, 40);
    let usage = poured.events(1).last().unwrap()["usage"].clone();
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 10, "{usage}");
    let (count, _, poured) = tokens("late-usage,for=1s");
    let ends = [0, 1].map(|index| of_choice(&poured.events(1), index, true).1);
    assert_eq!((count, ends), (40, [vec!["length".to_owned()], vec!["length".to_owned()]]));
}
