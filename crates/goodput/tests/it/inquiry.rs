use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fake::{Request, Script, Server};
use serde_json::{Value, json};

use crate::program::Workplace;
use crate::servers::closed_port;

/// How a server tells its tokens.
#[derive(Clone, Copy, PartialEq)]
enum Tells {
    /// As vLLM and SGLang do.
    Vllm,
    /// The same, and it puts no mark before prompts.
    Bare,
    /// As llama.cpp does.
    Llama,
    /// Not at all.
    Nothing,
    /// No list of ids.
    Nonsense,
    /// One more token to each text.
    More,
}

/// A server of completions that counts by the embedded tokenizer and puts a
/// mark before each prompt. It keeps what was asked.
struct Counting {
    server: Server,
    asked: Arc<AtomicU32>,
}

const KEY: &str = "sk-inquiry-canary";

impl Counting {
    fn start(tells: Tells, context: Option<u32>, locked: bool) -> Self {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let server = Server::start_scripted(move |request: &Request| {
            let allowed = request.header("authorization") == Some(&format!("Bearer {KEY}"));
            if locked && !allowed {
                return Script::json(401, &json!({"error": {"message": "no key"}}));
            }
            answer(tells, context, request, &count)
        });
        Self { server: server.unwrap(), asked }
    }

    fn url(&self) -> String {
        self.server.url()
    }
}

fn answer(tells: Tells, context: Option<u32>, request: &Request, asked: &AtomicU32) -> Script {
    let tokenizer = tokens::embedded();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let ids = |text: &str, special: bool| -> Vec<u32> {
        let mark = if special && tells != Tells::Bare { vec![1] } else { vec![] };
        [mark, tokenizer.encode(text)].concat()
    };
    match (request.path(), tells) {
        ("/v1/models", _) => Script::json(
            200,
            &json!({"data": [{"id": "m", "owned_by": "test", "max_model_len": context}]}),
        ),
        ("/tokenize" | "/detokenize", Tells::Nothing) => Script::json(404, &json!({})),
        ("/tokenize", Tells::Nonsense) => Script::json(200, &json!({"tokens": "many"})),
        ("/tokenize", Tells::Vllm | Tells::Bare | Tells::More) => {
            asked.fetch_add(1, Ordering::Relaxed);
            let Some(prompt) = body["prompt"].as_str() else {
                return Script::json(400, &json!({"error": {"message": "prompt is required"}}));
            };
            let mut ids = ids(prompt, body["add_special_tokens"] == json!(true));
            if tells == Tells::More {
                ids.push(2);
            }
            let answer = json!({"count": ids.len(), "max_model_len": 4096, "tokens": ids});
            Script::json(200, &answer)
        }
        ("/tokenize", Tells::Llama) => {
            asked.fetch_add(1, Ordering::Relaxed);
            let text = body["content"].as_str().unwrap_or_default();
            Script::json(200, &json!({"tokens": ids(text, body["add_special"] == json!(true))}))
        }
        ("/detokenize", _) => {
            let ids = body["tokens"].as_array().cloned().unwrap_or_default();
            let ids: Vec<u32> = ids.iter().filter_map(|id| Some(id.as_u64()? as u32)).collect();
            let key = if tells == Tells::Llama { "content" } else { "prompt" };
            Script::json(200, &json!({key: tokenizer.decode(&ids)}))
        }
        _ => {
            let prompt = match &body["prompt"] {
                Value::String(text) => ids(text, true).len(),
                Value::Array(ids) => ids.len(),
                _ => 0,
            };
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": 1});
            let choice = json!({"index": 0, "text": "a", "finish_reason": "length"});
            let event = json!({"choices": [choice], "usage": usage});
            Script::whole(200, "text/event-stream", format!("data: {event}\n\ndata: [DONE]\n\n"))
        }
    }
}

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> crate::program::Told {
    let start = ["bench", "--url", url, "--backend", "openai", "--osl", "1", "-n", "12"];
    let end = ["-c", "3", "--allow-invalid", "--json", "s.json"];
    let mut command = workplace.command(&[&start, more, &end].concat());
    command.env("OPENAI_API_KEY", KEY);
    crate::program::Told::of(command.output().unwrap())
}

fn workload(workplace: &Workplace) -> Value {
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    summary["workload"].clone()
}

#[test]
fn the_servers_own_count_is_the_length_asked_for_in_both_dialects() {
    for tells in [Tells::Vllm, Tells::Llama] {
        let workplace = Workplace::new();
        let server = Counting::start(tells, None, true);
        let more = ["--tokenizer", "server", "--isl", "48±25%", "--out", "run"];
        let told = bench(&workplace, &server.url(), &more).exits(0);
        assert!(!format!("{told:?}").contains(KEY));
        for row in workplace.export("run") {
            let planned = row["planned_input_tokens"].as_u64().unwrap();
            assert!((36..=60).contains(&planned), "{row}");
            assert_eq!(row["input_tokens"], row["planned_input_tokens"], "{row}");
        }
        assert_eq!(
            workload(&workplace)["input_lengths"],
            "48 ± 25 % tokens, exact by the tokenizer server (m), 1 of them added by the server"
        );
        // All words in three forms, and no question twice.
        let asked = server.asked.load(Ordering::Relaxed);
        assert!((3_000..6_000).contains(&asked), "{asked} questions");
    }
}

#[test]
fn a_server_that_does_not_tell_its_tokens_ends_the_run_with_one_sentence() {
    let cases: [(Tells, i32, &[&str]); 2] = [
        (Tells::Nothing, 2, &["/tokenize answered 404", "leave --tokenizer out"]),
        (Tells::Nonsense, 2, &["no list of tokens", "tokenizer.json"]),
    ];
    for (tells, code, words) in cases {
        let workplace = Workplace::new();
        let server = Counting::start(tells, None, false);
        let told = bench(&workplace, &server.url(), &["--tokenizer", "server"]).exits(code);
        assert_eq!(told.errors().len(), 1, "{}", told.err);
        told.says(words).says(&["--tokenizer server"]);
        assert!(
            !server.server.requests().iter().any(|request| request.path() == "/v1/completions")
        );
    }
    let workplace = Workplace::new();
    let more = ["--tokenizer", "server", "--model", "m"];
    bench(&workplace, &closed_port(), &more).exits(3).says(&["--tokenizer server", "/tokenize"]);
    // What else is wrong is told first, and the server is not asked.
    let server = Counting::start(Tells::Vllm, None, false);
    let wrong = ["--tokenizer", "server", "--isl", "x"];
    bench(&workplace, &server.url(), &wrong).exits(2).says(&["--isl"]);
    assert_eq!(server.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_dry_run_asks_nobody() {
    let workplace = Workplace::new();
    let more = ["bench", "--url", "http://127.0.0.1:9", "--tokenizer", "server", "--dry-run"];
    let plan = workplace.run(&[&more[..], &["--json", "-"]].concat()).exits(0).json();
    let notes = plan["workload"]["notes"].to_string();
    assert!(notes.contains("does not ask the server"), "{notes}");
}

#[test]
fn a_local_tokenizer_is_held_against_the_servers_once() {
    // Five prompts of 50 tokens: a mark before each, or one more in each.
    let marked = "counts 255 tokens in 5 prompts";
    let more = "counts 260 tokens in 5 prompts where the tokenizer embedded-1 counts 250, 1.040 \
                times as many";
    for (tells, asked, note) in [
        (Tells::Bare, 7, None),
        (Tells::Vllm, 7, Some(marked)),
        (Tells::More, 7, Some(more)),
        (Tells::Nothing, 0, None),
        (Tells::Nonsense, 0, None),
    ] {
        let workplace = Workplace::new();
        let server = Counting::start(tells, None, true);
        let more = ["--tokenizer", "embedded", "--isl", "50", "--model", "m", "--out", "run"];
        bench(&workplace, &server.url(), &more).exits(0);
        assert_eq!(server.asked.load(Ordering::Relaxed), asked);
        let said = workload(&workplace)["notes"].clone();
        assert_eq!(said.as_array().unwrap().len(), usize::from(note.is_some()), "{said}");
        assert!(said.to_string().contains(note.unwrap_or("[]")), "{said}");
    }
}

#[test]
fn lengths_that_the_context_cannot_hold_are_told_before_the_run() {
    let workplace = Workplace::new();
    let server = Counting::start(Tells::Nothing, Some(100), false);
    let told = bench(&workplace, &server.url(), &["--isl", "100"]).exits(2);
    told.says(&["--isl", "12 of 12", "100 tokens and up to 1 of output", "the context of 100"]);
    bench(&workplace, &server.url(), &["--isl", "99"]).exits(0);
    // The parts of a mix are prompts of ours too.
    let mix = ["--mix", "a isl=20", "--mix", "b isl=400"];
    bench(&workplace, &server.url(), &mix).exits(2).says(&["--isl", "the context of 100"]);
    // Of rows, those that fit are worth a run.
    let trace = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,472,2,474,Conversation log\n9,GPT-4,33,3,36,API log\n";
    workplace.file("trace.csv", trace);
    let rows = ["--dataset-name", "burstgpt", "--dataset-path", "trace.csv"];
    bench(&workplace, &server.url(), &rows).exits(0);
    let notes = workload(&workplace)["notes"].to_string();
    assert!(notes.contains("prompts with their outputs are longer than"), "{notes}");
    workplace.file("trace.csv", trace.replace("33,3", "333,3"));
    bench(&workplace, &server.url(), &rows).exits(2).says(&["--dataset-path", "context of 100"]);
}
