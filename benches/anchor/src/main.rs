//! The familiar client, for scale: reqwest, eventsource-stream and typed serde
//! on a runtime with one worker, as most Rust programs read a stream of tokens.
//!
//!     anchor HOST:PORT STREAMS TOKENS
//!
//! It prints one JSON object like `instrument raw`'s.

use std::error::Error;
use std::time::Instant;

use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use nix::sys::resource::{UsageWho, getrusage};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Event {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

/// Reads one answer; gives the instants of its tokens.
async fn read(
    client: reqwest::Client,
    address: String,
    index: usize,
    tokens: usize,
) -> Result<Vec<Instant>, reqwest::Error> {
    let body = json!({
        "model": "tok",
        "messages": [{"role": "user", "content": "one two three four five six seven"}],
        "max_tokens": tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let answer = client
        .post(format!("http://{address}/v1/chat/completions"))
        .header("content-type", "application/json")
        .header("x-request-id", format!("anchor-{index}"))
        .body(body.to_string())
        .send()
        .await?;
    let mut seen = Vec::new();
    let mut events = answer.bytes_stream().eventsource();
    while let Some(event) = events.next().await {
        let Ok(event) = event else { break };
        if event.data == "[DONE]" {
            continue;
        }
        let at = Instant::now();
        let Ok(parsed) = serde_json::from_str::<Event>(&event.data) else { continue };
        let content = parsed.choices.first().and_then(|choice| choice.delta.content.as_deref());
        if content.is_some_and(|text| !text.is_empty()) {
            seen.push(at);
        }
    }
    Ok(seen)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, streams, tokens] = words.as_slice() else {
        return Err("usage: anchor HOST:PORT STREAMS TOKENS".into());
    };
    let (streams, tokens): (usize, usize) = (streams.parse()?, tokens.parse()?);
    let client = reqwest::Client::builder().tcp_nodelay(true).build()?;
    let tasks: Vec<_> = (0..streams)
        .map(|index| tokio::spawn(read(client.clone(), address.clone(), index, tokens)))
        .collect();
    let mut chunks = 0;
    for task in tasks {
        chunks += task.await??.len() as u64;
    }
    let expected = (streams * tokens) as u64;
    let report = json!({
        "chunks": chunks,
        "lost": expected.saturating_sub(chunks),
        // Pieces of bodies are no reads, so the figure is left open.
        "chunks_per_read": null,
        "rss_kb": getrusage(UsageWho::RUSAGE_SELF)?.max_rss(),
    });
    println!("{report}");
    Ok(())
}
