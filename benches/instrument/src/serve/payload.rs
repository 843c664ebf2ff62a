//! What the server writes, encoded before the first request: the server's own
//! work per token must be one write.

/// The one event of every token of the chat API: as long as vLLM's and
/// OpenAI's are, about 260 bytes with its SSE framing.
const CHAT: &str = concat!(
    r#"{"id":"chatcmpl-bf9f0d0c31225ee1a7c3","object":"chat.completion.chunk","#,
    r#""created":1795960280,"model":"tok","service_tier":null,"system_fingerprint":"fp_44709d6f","#,
    r#""choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#
);
/// The same of the completions API.
const COMPLETION: &str = concat!(
    r#"{"id":"cmpl-bf9f0d0c31225ee1a7c3","object":"text_completion","created":1795960280,"#,
    r#""model":"tok","service_tier":null,"system_fingerprint":"fp_44","choices":[{"index":0,"#,
    r#""text":" token","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}"#
);

/// The API of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
}

/// What tokens say, in turn, between the quotes of JSON: of different lengths,
/// with escapes and text that is not ASCII, so that a reader cannot live on one
/// event being like the one before.
const WORDS: [&str; 16] = [
    " token",
    "lications",
    " a",
    ".",
    "\\n",
    " the",
    " \\\"so",
    "corpor",
    "ate",
    " word",
    "字",
    " of",
    " agents",
    "é",
    " themselves",
    ",",
];

/// Encoded answers.
pub(crate) struct Payload {
    chat: Ring,
    completion: Ring,
    most: usize,
}

/// Token events one after the other: a full turn of the words, and as many more
/// as one write may carry.
struct Ring {
    bytes: Vec<u8>,
    /// Where each event begins, and where the last one ends.
    starts: Vec<usize>,
}

impl Ring {
    fn new(event: &str, most: usize) -> Self {
        let mut ring = Self { bytes: Vec::new(), starts: vec![0] };
        for word in WORDS.iter().cycle().take(WORDS.len() + most) {
            ring.bytes.extend(framed(&event.replace(" token", word)));
            ring.starts.push(ring.bytes.len());
        }
        ring
    }
}

/// The head of every streamed answer.
pub(crate) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; \
charset=utf-8\r\ncache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n";

impl Payload {
    /// Payloads of writes that carry up to `most` tokens.
    pub(crate) fn new(most: usize) -> Self {
        Self { chat: Ring::new(CHAT, most), completion: Ring::new(COMPLETION, most), most }
    }

    /// Tokens that one write carries at most.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// `count` token events from the `from`th of an answer on, each its own
    /// HTTP chunk, for one write.
    pub(crate) fn tokens(&self, shape: Shape, from: u32, count: usize) -> &[u8] {
        let ring = match shape {
            Shape::Chat => &self.chat,
            Shape::Completion => &self.completion,
        };
        let first = from as usize % WORDS.len();
        &ring.bytes[ring.starts[first]..ring.starts[first + count]]
    }

    /// Everything after the last token: finish reason, counts, `[DONE]`, end
    /// of the body.
    pub(crate) fn tail(shape: Shape, usage: Option<(u32, u32)>) -> Vec<u8> {
        let token = match shape {
            Shape::Chat => CHAT.replace(r#"{"content":" token"}"#, "{}"),
            Shape::Completion => COMPLETION.replace(r#"":" token""#, r#"":"""#),
        };
        let mut bytes =
            framed(&token.replace(r#""finish_reason":null"#, r#""finish_reason":"length""#));
        if let Some((prompt, completion)) = usage {
            let object = match shape {
                Shape::Chat => "chat.completion.chunk",
                Shape::Completion => "text_completion",
            };
            bytes.extend(framed(&format!(
                r#"{{"id":"cmpl-1","object":"{object}","created":1795960280,"model":"tok","choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{}}}}}"#,
                u64::from(prompt) + u64::from(completion)
            )));
        }
        bytes.extend(framed("[DONE]"));
        bytes.extend(b"0\r\n\r\n");
        bytes
    }
}

/// One SSE event as one HTTP chunk.
fn framed(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_event_of_about_260_bytes() {
        for json in [CHAT, COMPLETION] {
            serde_json::from_str::<serde_json::Value>(json).unwrap();
            let event = json.len() + "data: \n\n".len();
            assert!((255..=265).contains(&event), "{event}");
        }
    }

    #[test]
    fn a_write_carries_the_next_words_of_the_answer() {
        let payload = Payload::new(8);
        for from in 0..40 {
            let together = payload.tokens(Shape::Chat, from, 8).to_vec();
            let one_by_one: Vec<u8> = (from..from + 8)
                .flat_map(|token| payload.tokens(Shape::Chat, token, 1).to_vec())
                .collect();
            assert_eq!(together, one_by_one);
        }
        for word in WORDS {
            let json = CHAT.replace(" token", word);
            serde_json::from_str::<serde_json::Value>(&json).expect(word);
        }
    }

    #[test]
    fn the_tail_carries_finish_counts_and_both_ends() {
        for shape in [Shape::Chat, Shape::Completion] {
            let tail = String::from_utf8(Payload::tail(shape, Some((3, 5)))).unwrap();
            assert!(tail.contains(r#""finish_reason":"length""#) && !tail.contains(" token"));
            assert!(tail.contains(r#""total_tokens":8"#));
            assert!(tail.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
            assert!(!String::from_utf8(Payload::tail(shape, None)).unwrap().contains("total"));
        }
    }
}
