use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::super::Listener;
use super::*;
use crate::api::Api;

/// A listener that heard these events.
fn listener(api: Api, kind: &str, events: &[String]) -> Listener {
    let mut listener = Listener::new(Forms::new(api), true);
    for event in events {
        listener.hear(kind.as_bytes(), event.as_bytes());
    }
    listener
}

/// The text that `event` has by the template learnt from `before`; `None` when
/// it does not fit.
fn fits(api: Api, kind: &str, before: &[String], event: &str) -> Option<String> {
    listener(api, kind, before).fitting(kind, event.as_bytes())
}

impl Listener {
    fn forms(&self) -> &Forms {
        self.forms.as_ref().expect("this listener makes templates")
    }

    /// The text that `event` has by the known forms.
    fn fitting(&self, kind: &str, event: &[u8]) -> Option<String> {
        let fitting = self.forms().fit(&mut self.form.clone(), kind.as_bytes(), event)?;
        Some(fitting.text().into_owned())
    }

    /// The fixed bytes of every template.
    fn learnt(&self) -> Vec<String> {
        let known = self.forms().known.borrow();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        known.templates.iter().map(|template| text(&template.fixed)).collect()
    }
}

/// The events of the APIs as servers write them: the API, the kind, and the
/// event of an index and a text as JSON.
type Form = (Api, &'static str, fn(usize, &str) -> String);

const FORMS: &[Form] = &[
    // vLLM.
    (Api::OpenaiChat, "", |_, text| {
        format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{{"index":0,"delta":{{"content":{text}}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}"#
        )
    }),
    // SGLang, with a new second now and then.
    (Api::OpenaiChat, "", |index, text| {
        let created = 1_795_960_280 + index / 3;
        format!(
            r#"{{"id":"6f","object":"chat.completion.chunk","created":{created},"model":"m","choices":[{{"index":0,"delta":{{"role":null,"content":null,"reasoning_content":{text},"tool_calls":null}},"logprobs":null,"finish_reason":null,"matched_stop":null}}],"usage":null}}"#
        )
    }),
    // llama.cpp.
    (Api::OpenaiChat, "", |index, text| {
        let created = 1_795_960_280 + index / 3;
        format!(
            r#"{{"choices":[{{"finish_reason":null,"index":0,"delta":{{"content":{text}}}}}],"created":{created},"id":"chatcmpl-x","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}}"#
        )
    }),
    // OpenAI itself.
    (Api::OpenaiChat, "", |index, text| {
        let noise = &"aZ3kQ9xWmP5t"[..index % 12];
        format!(
            r#"{{"id":"chatcmpl-D","object":"chat.completion.chunk","created":7,"model":"m","choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}],"obfuscation":"{noise}"}}"#
        )
    }),
    (Api::OpenaiCompletions, "", |_, text| {
        format!(
            r#"{{"id":"cmpl-1","object":"text_completion","created":7,"model":"m","choices":[{{"index":0,"text":{text},"logprobs":null,"finish_reason":null}}]}}"#
        )
    }),
    (Api::OpenaiResponses, "response.output_text.delta", |index, text| {
        format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{index},"item_id":"msg","output_index":0,"content_index":0,"delta":{text},"logprobs":[],"obfuscation":"{}"}}"#,
            "x".repeat(index % 5)
        )
    }),
    (Api::OpenaiResponses, "", |index, text| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","delta":{text},"sequence_number":{index}}}"#
        )
    }),
    (Api::Anthropic, "content_block_delta", |_, text| {
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}}}}"#
        )
    }),
    (Api::Ollama, "", |index, text| {
        format!(
            r#"{{"model":"m","created_at":"2026-01-01T00:00:00.{}Z","message":{{"role":"assistant","content":{text}}},"done":false}}"#,
            index * 1013
        )
    }),
    (Api::OllamaGenerate, "", |index, text| {
        format!(r#"{{"model":"m","created_at":"T{index}","response":{text},"done":false}}"#)
    }),
    (Api::Tgi, "", |index, text| {
        format!(
            r#"{{"index":{index},"token":{{"id":{},"text":{text},"logprob":-{index}.5e-3,"special":false}},"generated_text":null,"details":null}}"#,
            index * 7919 % 128_000
        )
    }),
    (Api::Triton, "", |_, text| format!(r#"{{"model_name":"m","text_output":{text}}}"#)),
];

fn two(form: Form) -> [String; 2] {
    [form.2(1, "\"a\""), form.2(2, "\"b\"")]
}

#[test]
fn from_the_third_event_on_every_api_fits_its_template() {
    for (number, &form) in FORMS.iter().enumerate() {
        let (api, kind, event) = form;
        let mut listener = listener(api, kind, &two(form));
        let mut fitting = 0;
        for index in 3..33 {
            let event = event(index, if index % 3 == 0 { "\" the\"" } else { r#""\n""# });
            fitting += u32::from(listener.fitting(kind, event.as_bytes()).is_some());
            listener.hear(kind.as_bytes(), event.as_bytes());
        }
        // A new second makes a new template.
        assert!(fitting >= 20, "form {number}: {fitting} of 30");
    }
}

#[test]
fn texts_that_look_like_structure_stay_texts() {
    for &form in FORMS {
        let (api, kind, event) = form;
        for text in [
            r#"","finish_reason":"stop""#,
            r#""},"finish_reason":"stop","index":0}]}"#,
            r#"","delta":{"content":"y"#,
            r#""content":"#,
            r#"\"#,
            r#"\\","#,
            "{}[]:,",
            "data: [DONE]\n\n",
            "\u{2028}\u{7f}é🙂",
            "\u{8}\u{c}\r\t/",
        ] {
            let literal = Value::from(text).to_string();
            assert_eq!(fits(api, kind, &two(form), &event(2, &literal)).as_deref(), Some(text));
            // Written without its escapes, the same is structure.
            let bare = format!("\"{text}\"");
            if bare != literal {
                assert_eq!(fits(api, kind, &two(form), &event(2, &bare)), None, "{api:?} {bare}");
            }
        }
    }
}

#[test]
fn what_a_parser_has_to_judge_does_not_fit() {
    for &form in FORMS {
        let (api, kind, event) = form;
        let before = two(form);
        for text in [
            "\"\"",
            "null",
            "7",
            "[\"x\"]",
            "\"\\u0041\"",
            "\"\\x\"",
            "\"\\",
            "\"\u{1f}\"",
            "\"\n\"",
            "\"x\" ",
            " \"x\"",
            "\"x",
            "\"x\"\"",
        ] {
            assert_eq!(fits(api, kind, &before, &event(2, text)), None, "{api:?} {text}");
        }
        let whole = event(2, "\"x\"");
        let known = listener(api, kind, &before);
        assert!(known.fitting(kind, whole.as_bytes()).is_some());
        assert!(known.fitting("other", whole.as_bytes()).is_none());
        for cut in 0..whole.len() {
            assert_eq!(fits(api, kind, &before, &whole[..cut]), None);
            assert_eq!(fits(api, kind, &before, &whole[cut + 1..]), None);
        }
        for more in ["}", " ", "\n", "x", "{}"] {
            assert_eq!(fits(api, kind, &before, &format!("{whole}{more}")), None);
        }
        let mut broken = event(2, "\"xx\"").into_bytes();
        let at = broken.windows(2).position(|pair| pair == b"xx").unwrap();
        broken[at] = 0xff;
        assert!(known.fitting(kind, &broken).is_none());
    }
}

#[test]
fn only_events_that_are_nothing_but_one_text_make_a_template() {
    let chat = |choices: &str, rest: &str| format!(r#"{{"choices":[{choices}]{rest}}}"#);
    let text = r#"{"index":0,"delta":{"content":"a"}}"#;
    let events = [
        chat(r#"{"index":0,"delta":{"role":"assistant","content":""}}"#, ""),
        chat(r#"{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}"#, ""),
        chat(r#"{"index":0,"delta":{"content":"a","reasoning":"b"}}"#, ""),
        chat(r#"{"index":0,"delta":{"content":"a","refusal":"b"}}"#, ""),
        chat(r#"{"index":0,"delta":{"content":["a"]}}"#, ""),
        chat(r#"{"index":0,"delta":{"content":"\u0061"}}"#, ""),
        chat(r#"{"index":0,"delta":{"tool_calls":[{"function":{"name":"f"}}]}}"#, ""),
        chat(
            r#"{"index":0,"delta":{"content":"a","tool_calls":[{"function":{"arguments":"b"}}]}}"#,
            "",
        ),
        chat(r#"{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{}]}}"#, ""),
        chat(&format!("{text},{text}"), ""),
        chat(&format!(r#"{text},{{"index":1,"delta":{{}}}}"#), ""),
        chat(text, r#","usage":{"completion_tokens":3}"#),
        chat(text, r#","usage":{"prompt_tokens_details":{"cached_tokens":3}}"#),
        chat(text, r#","timings":{"predicted_n":3}"#),
        chat(text, r#","error":"bad""#),
        chat(text, r#","usage":NaN"#),
        chat(text, r#","error":null,"error":null"#),
    ];
    for event in events {
        let listener = listener(Api::OpenaiChat, "", std::slice::from_ref(&event));
        assert!(listener.learnt().is_empty(), "{event}");
    }
    for (api, event) in [
        (Api::Sglang, r#"{"text":"a"}"#),
        (Api::Anthropic, r#"{"type":"content_block_delta","delta":{"partial_json":"a"}}"#),
        (Api::Tgi, r#"{"token":{"text":"a"},"generated_text":"b"}"#),
        (Api::Ollama, r#"{"response":"a","done":true}"#),
    ] {
        assert!(listener(api, "", &[event.to_owned()]).learnt().is_empty(), "{event}");
    }
    assert_eq!(listener(Api::OpenaiChat, "", &[chat(text, "")]).learnt().len(), 1);
}

#[test]
fn a_listener_told_to_parse_in_full_makes_no_template() {
    let forms = Forms::new(Api::Triton);
    let mut listener = Listener::new(forms.clone(), false);
    listener.parse_in_full();
    for _ in 0..3 {
        listener.hear(b"", br#"{"text_output":"x"}"#);
    }
    assert!(forms.known.borrow().templates.is_empty());
}

#[test]
fn events_that_never_fit_are_soon_let_alone() {
    let event = |n: u32| format!(r#"{{"text_output":"x","n":{n}}}"#);
    let events: Vec<String> = (0..8).map(event).collect();
    let mut listener = listener(Api::Triton, "", &events);
    let last = |listener: &Listener| listener.learnt().last().cloned();
    assert_eq!(last(&listener).as_deref(), Some(r#"{"text_output":"","n":7}"#));
    let learnt = listener.learnt();
    listener.hear(b"", event(8).as_bytes());
    assert_eq!(listener.learnt(), learnt);
    assert!(listener.fitting("", event(7).as_bytes()).is_some());
    listener.hear(b"", event(9).as_bytes());
    assert_ne!(listener.learnt(), learnt, "a fit renews the patience");
}

#[test]
fn a_form_in_use_outlives_forms_that_are_not() {
    let form = |n: u32, text: &str| format!(r#"{{"n":{n},"text_output":"{text}"}}"#);
    let mut listener = listener(Api::Triton, "", &[form(0, "a")]);
    for n in 1..100 {
        listener.hear(b"", form(n, "b").as_bytes());
        assert!(listener.fitting("", form(0, "c").as_bytes()).is_some(), "after {n}");
        assert!(listener.learnt().len() <= KEPT);
    }
}

#[test]
fn an_answer_is_read_by_the_forms_of_another() {
    for &form in FORMS {
        let (api, kind, event) = form;
        let first = listener(api, kind, &two(form));
        let mut second = Listener::new(first.forms().clone(), true);
        let heard = second.hear(kind.as_bytes(), event(3, "\"x\"").as_bytes());
        let mut alone = Listener::new(Forms::new(api), true);
        assert_eq!(heard, alone.hear(kind.as_bytes(), event(3, "\"x\"").as_bytes()));
        assert_eq!(first.learnt().len(), 1, "{api:?}: nothing new was learnt");
        assert_eq!(second.finish(true), alone.finish(true), "{api:?}");
    }
}

#[test]
fn an_event_as_it_is_framed_fits_like_its_data() {
    for &form in FORMS {
        let (api, kind, event) = form;
        let known = listener(api, kind, &two(form));
        let data = event(3, "\"x\"");
        let head = if kind.is_empty() { String::new() } else { format!("event: {kind}\n") };
        let fits = |bytes: &str, limit: usize| {
            let fitting = known.forms().fit_framed(&mut 0, bytes.as_bytes(), limit);
            fitting.map(|(fitting, behind)| (fitting.text().into_owned(), behind.len()))
        };
        let whole = format!("{head}data: {data}\n\n");
        let want = Some(("x".to_owned(), 4));
        assert_eq!(fits(&format!("{whole}data"), whole.len()), want);
        assert_eq!(fits(&format!("{whole}data"), whole.len() - 1), None);
        assert_eq!(fits(&format!("{}data", whole.replace('\n', "\r\n")), 10_000), want);
        for other in [
            format!("{head}data: {data}\n"),
            format!("{head}data: {data}\r\r"),
            format!("{head}data: {data}\n\r"),
            format!("{head}data: {data}\n:\n\n"),
            format!("{head}data: {data}\ndata: \n\n"),
            format!("{head}data:{data}\n\n"),
            format!("{head}data:  {data}\n\n"),
            format!("{head}data: {data} \n\n"),
            format!("event: other\ndata: {data}\n\n"),
            format!("{head}id: 1\ndata: {data}\n\n"),
        ] {
            assert_eq!(fits(&other, 10_000), None, "{other:?}");
        }
    }
}

#[test]
fn data_of_two_lines_is_no_form_of_a_framed_event() {
    let data = "{\"text_output\":\n\"x\"}";
    let known = listener(Api::Triton, "", &[data.to_owned()]);
    assert_eq!(known.learnt().len(), 1);
    let framed = format!("data: {data}\n\n");
    assert!(known.forms().fit_framed(&mut 0, framed.as_bytes(), 1_000).is_none());
}

#[test]
fn varying_fields_are_found_where_they_stand() {
    let data = br#"{ "a" : "x" ,"b":[{"a":1}],"c":{"a":"\"","n":-1.5e3},"a":0,"a":null,"s":"a"}"#;
    let mut found = Vec::new();
    for_each_value(data, &[(1, "a"), (2, "n")], |place, gap| found.push((place, gap)));
    let text = |place: &Range<usize>| std::str::from_utf8(&data[place.clone()]).unwrap();
    let found: Vec<_> = found.iter().map(|(place, gap)| (text(place), *gap)).collect();
    assert_eq!(found, [("x", Gap::String(1)), ("-1.5e3", Gap::Number(6)), ("0", Gap::Number(1))]);
}

proptest! {
    #[test]
    fn a_number_ends_where_a_parser_ends_it(number in "-?[0-9.eE+-]{0,8}", behind in "[,} ]?") {
        let valid = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let end = number_end(format!("{number}{behind}").as_bytes());
        if valid(&number) {
            prop_assert_eq!(end, Some(number.len()));
        } else if let Some(end) = end {
            prop_assert!(end < number.len() && valid(&number[..end]));
        }
    }

    #[test]
    fn a_glance_tells_what_a_search_tells(
        text in "[a-c0-3\"\\\\é,]{0,12}",
        number in "-?[0-3]{1,6}[,.e}]",
        likely in 0usize..12,
    ) {
        let text = text.as_bytes();
        let length = literal(text).map(|literal| literal.length);
        prop_assert_eq!(ignored_string_length(text, likely), length);
        let number = number.as_bytes();
        prop_assert_eq!(ignored_number_length(number, likely), number_end(number));
    }

    #[test]
    fn a_string_ends_where_a_parser_ends_it(
        text in prop_oneof![
            "[a\"\\\\/bn\u{1f}é ]{0,24}",
            prop::collection::vec(any::<u8>(), 0..40)
                .prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        ],
    ) {
        let quoted = format!("\"{text}\" rest of it");
        let mut values = serde_json::Deserializer::from_str(&quoted).into_iter::<String>();
        let parsed = values.next().unwrap().ok().map(|value| (values.byte_offset() - 2, value));
        match (literal(&quoted.as_bytes()[1..]), parsed) {
            (Some(Literal { length, escaped, ascii }), Some((want, value))) => {
                prop_assert_eq!(length, want);
                let raw = &quoted[1..=length];
                prop_assert_eq!(escaped, raw.contains('\\'));
                prop_assert_eq!(ascii, raw.is_ascii());
                prop_assert_eq!(unescape(raw), value);
            }
            (Some(found), None) => prop_assert!(false, "{:?} is no string", found),
            // An escape of a number is left to the parser.
            (None, Some((end, _))) => prop_assert!(quoted[..=end].contains("\\u")),
            (None, None) => {}
        }
    }

    #[test]
    fn eight_digits_are_told_at_once(
        text in prop_oneof!["[0-9]{0,24}", "[/0-9:]{0,24}", "[0-9\u{80}-\u{100}]{0,12}"],
    ) {
        let text = text.as_bytes();
        prop_assert_eq!(no_word(text, no_digits), text.iter().all(u8::is_ascii_digit));
    }

    #[test]
    fn equality_is_what_slices_say(
        one in prop::collection::vec(0u8..2, 0..100), at: Index, other in 0u8..2,
    ) {
        let mut two = one.clone();
        if !two.is_empty() {
            let at = at.index(two.len());
            two[at] = other;
        }
        prop_assert_eq!(same(&one, &two), one == two);
        prop_assert!(!same(&one, &two[..two.len().saturating_sub(1)]) || one.is_empty());
    }

    #[test]
    fn the_words_of_eight_bytes_find_what_single_bytes_find(
        bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), 0x1eu8..0x24, 0x5bu8..0x5e, Just(b'a')], 0..40,
        ),
    ) {
        let stops = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        let want = bytes.iter().position(stops).unwrap_or(bytes.len());
        prop_assert_eq!(plain_length(&bytes), (want, bytes[..want].is_ascii()));
    }
}
