use measure::{Carries, FailureKind, Outcome, Warnings};
use proptest::prelude::*;

use crate::api::Api;
use crate::reader::{Close, Limits, Reader, ReaderOptions, Reading};

fn read(api: Api, wanted: u32, head: &str, body: &[u8]) -> Reading {
    let options = ReaderOptions { expected_results: wanted, ..ReaderOptions::default() };
    let mut reader = Reader::new(api, options);
    let head = format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n", body.len());
    reader.read(head.as_bytes(), 100);
    reader.read(body, 250);
    reader.finish(Close::Done, 300)
}

fn json(api: Api, wanted: u32, body: &str) -> Reading {
    read(api, wanted, "content-type: application/json\r\n", body.as_bytes())
}

/// The answer of OpenAI's reference ("Create embeddings"), shortened.
const OPENAI: &str = r#"{"object": "list", "data": [{"object": "embedding",
    "embedding": [0.0023064255, -0.009327292], "index": 0}],
    "model": "text-embedding-ada-002", "usage": {"prompt_tokens": 8, "total_tokens": 8}}"#;

/// The answer of vLLM 0.27 to POST /v1/rerank by its documentation, shortened.
const VLLM: &str = r#"{"id": "rerank-fae51b2b664d4ed38f5969b612edff77",
    "model": "BAAI/bge-reranker-base", "usage": {"total_tokens": 56}, "results": [
    {"index": 1, "document": {"text": "Paris"}, "relevance_score": 0.99853515625},
    {"index": 0, "document": {"text": "Brasilia"}, "relevance_score": 0.0005860328674316406}]}"#;

/// llama.cpp's by its server README.
const LLAMA: &str = r#"{"model": "m", "object": "list", "usage": {"prompt_tokens": 74,
    "total_tokens": 74}, "results": [{"index": 0, "relevance_score": -8.2}]}"#;

/// Cohere's v2 reference: no tokens are counted.
const COHERE: &str = r#"{"results": [{"index": 3, "relevance_score": 0.99}],
    "id": "07734bd2", "meta": {"api_version": {"version": "2"},
    "billed_units": {"search_units": 1}}}"#;

#[test]
fn whole_answers_are_ok_and_have_one_row_and_no_tokens() {
    for (api, wanted, body, tokens) in [
        (Api::Embeddings, 1, OPENAI, Some(8)),
        (Api::EmbeddingsChat, 1, OPENAI, Some(8)),
        (Api::Pooling, 1, r#"{"data": [{"data": [[0.1], [0.2]]}]}"#, None),
        (Api::Embeddings, 1, r#"{"data": [{"embedding": "AAAAAA=="}]}"#, None),
        (Api::Rerank, 2, VLLM, Some(56)),
        (Api::Rerank, 1, LLAMA, Some(74)),
        (Api::Rerank, 1, COHERE, None),
    ] {
        let reading = json(api, wanted, body);
        assert_eq!(reading.outcome, Outcome::Ok, "{body}");
        let prompt = reading.answer.counts.prompt.map(measure::Tokens::get);
        assert_eq!(prompt, tokens, "{body}");
        assert_eq!(reading.answer.counts.usage, None);
        assert_eq!(reading.answer.warnings, Warnings::NONE, "{body}");
        let carries = &reading.events.carries;
        assert!(carries.len() == 1 && carries[0].any(Carries::RESULT));
        assert!(!carries[0].is_arrival() && reading.events.at_us == [250]);
    }
}

#[test]
fn no_content_type_is_taken_for_json() {
    assert_eq!(read(Api::Embeddings, 1, "", OPENAI.as_bytes()).outcome, Outcome::Ok);
}

#[test]
fn answers_that_are_not_what_was_asked_for_are_told() {
    let malformed = Outcome::Failed(FailureKind::MalformedEvent);
    let ten = r#"{"data": [{"embedding": [1]}, {"embedding": []}]}"#;
    for (api, wanted, body, outcome, said) in [
        (Api::Embeddings, 2, OPENAI, malformed, "1 data came and 2 were asked for"),
        (Api::Rerank, 3, VLLM, malformed, "2 results came and 3 were asked for"),
        (Api::Embeddings, 2, ten, malformed, "1 of 2 data of the answer hold nothing"),
        (Api::Rerank, 1, r#"{"results": [{"index": 0}]}"#, malformed, "1 of 1 results"),
        (Api::Embeddings, 1, "{}", malformed, "the answer has no data"),
        (Api::Rerank, 1, OPENAI, malformed, "the answer has no results"),
        (Api::Embeddings, 1, "[1]", malformed, "the answer is no JSON object"),
        (Api::Embeddings, 1, "7", malformed, "the answer is no JSON object"),
        (Api::Embeddings, 1, r#"{"data": 7}"#, Outcome::Empty, ""),
        (Api::Embeddings, 1, r#"{"data": []}"#, Outcome::Empty, ""),
        (Api::Embeddings, 1, "{\"data\": [", malformed, "{\"data\": ["),
        (
            Api::Embeddings,
            1,
            r#"{"error": {"message": "no such model", "code": 404}}"#,
            Outcome::Failed(FailureKind::InBand),
            "no such model",
        ),
    ] {
        let reading = json(api, wanted, body);
        assert_eq!(reading.outcome, outcome, "{body}");
        let message = reading.answer.message.unwrap_or_default();
        assert!(message.starts_with(said), "{body}: {message}");
    }
}

#[test]
fn a_stream_or_a_page_is_no_answer() {
    let bad = Outcome::Failed(FailureKind::BadContentType);
    for kind in ["text/event-stream", "text/html", "application/x-ndjson"] {
        let head = format!("content-type: {kind}\r\n");
        assert_eq!(read(Api::Rerank, 1, &head, b"data: {}\n\n").outcome, bad, "{kind}");
    }
}

#[test]
fn a_body_without_end_is_too_large() {
    let limits = Limits { event: 100, ..Limits::DEFAULT };
    let options = ReaderOptions { limits, ..ReaderOptions::default() };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    // A batch of vectors may have eight times what an event may.
    for (bytes, failed) in [(800, false), (801, true)] {
        let mut reader = Reader::new(Api::Embeddings, options);
        reader.read(head.as_bytes(), 1);
        reader.read(&vec![b' '; bytes], 2);
        let reading = reader.finish(Close::Eof, 3);
        let large = reading.outcome == Outcome::Failed(FailureKind::TooLarge);
        assert_eq!(large, failed, "{bytes}");
    }
}

proptest! {
    #[test]
    fn any_body_is_read_and_is_one_outcome(
        body in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"\{"(data|results|usage)": (\[\{"(embedding|data|score)": [\[\]"0-9a,]{0,6}\}\]|null|\{\}|-1)\}"#
                .prop_map(String::into_bytes),
        ],
        wanted in 0u32..3,
        rank: bool,
    ) {
        let api = if rank { Api::Rerank } else { Api::Embeddings };
        let reading = read(api, wanted, "", &body);
        let results = reading.events.carries.iter().filter(|c| c.any(Carries::RESULT)).count();
        prop_assert!(results <= 1);
        prop_assert!(reading.outcome != Outcome::Ok || results == 1);
    }
}
