//! Requests as the server needs them: enough HTTP for the clients that are
//! compared, nothing for the open network.

use serde_json::Value;

use super::payload::Shape;

/// Most bytes of one request.
const MOST_BYTES: usize = 1 << 20;

/// A request for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// `x-request-id`, where there is one.
    pub(crate) id: Option<String>,
    /// The API.
    pub(crate) shape: Shape,
    /// Length of the answer.
    pub(crate) tokens: u32,
    /// Length of the prompt in words: the server has no tokenizer.
    pub(crate) prompt_words: u32,
    /// Send counts before `[DONE]`.
    pub(crate) usage: bool,
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// More bytes are needed.
    More,
    /// A request for a stream.
    Ask(Ask),
    /// A request that is answered at once with these bytes.
    Answer(Vec<u8>),
    /// Not understood; the connection is of no further use.
    Refused(Vec<u8>),
}

/// Takes one whole request from the front of `inbox`.
pub(crate) fn take(inbox: &mut Vec<u8>) -> Taken {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut fields);
    let head = match parsed.parse(inbox) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if inbox.len() < MOST_BYTES => return Taken::More,
        _ => return Taken::Refused(answer("400 Bad Request", "not a request")),
    };
    let field = |name: &str| {
        let found = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let length = match field("content-length").map_or(Ok(0), str::parse::<usize>) {
        Ok(length) if length <= MOST_BYTES => length,
        _ => return Taken::Refused(answer("413 Content Too Large", "too large")),
    };
    if field("transfer-encoding").is_some() {
        return Taken::Refused(answer("501 Not Implemented", "send a content-length"));
    }
    if inbox.len() < head + length {
        return Taken::More;
    }
    let id = field("x-request-id").map(str::to_owned);
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
    let body = &inbox[head..head + length];
    let taken = match (parsed.method.unwrap_or_default(), path) {
        ("POST", "/v1/chat/completions") => ask(id, Shape::Chat, body),
        ("POST", "/v1/completions") => ask(id, Shape::Completion, body),
        ("GET", "/v1/models") => Taken::Answer(answer(
            "200 OK",
            r#"{"object":"list","data":[{"id":"tok","object":"model","owned_by":"tok"}]}"#,
        )),
        ("GET", "/health") => Taken::Answer(answer("200 OK", "")),
        _ => Taken::Answer(answer("404 Not Found", "{}")),
    };
    inbox.drain(..head + length);
    taken
}

fn ask(id: Option<String>, shape: Shape, body: &[u8]) -> Taken {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Taken::Answer(answer("400 Bad Request", "the body is not JSON"));
    };
    if body["stream"] != Value::Bool(true) {
        return Taken::Answer(answer("400 Bad Request", "only streams are served here"));
    }
    let limit = |name: &str| body[name].as_u64();
    let tokens = limit("max_completion_tokens").or_else(|| limit("max_tokens")).unwrap_or(16);
    let prompt = match shape {
        Shape::Chat => &body["messages"],
        Shape::Completion => &body["prompt"],
    };
    Taken::Ask(Ask {
        id,
        shape,
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX).max(1),
        prompt_words: prompt.to_string().split_whitespace().count() as u32,
        usage: body["stream_options"]["include_usage"] == Value::Bool(true),
    })
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"stream":true,"max_tokens":5,"messages":[{"content":"a b"}],"stream_options":{"include_usage":true}}"#;

    fn post(path: &str, body: &str) -> Vec<u8> {
        format!(
            "POST {path} HTTP/1.1\r\nX-Request-Id: r-7\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    #[test]
    fn every_cut_of_a_request_waits_for_the_rest() {
        let whole = post("/v1/chat/completions", BODY);
        for cut in 0..whole.len() {
            assert_eq!(take(&mut whole[..cut].to_vec()), Taken::More, "cut at {cut}");
        }
        let mut inbox = whole.repeat(2);
        let expected = Ask {
            id: Some("r-7".to_owned()),
            shape: Shape::Chat,
            tokens: 5,
            prompt_words: 2,
            usage: true,
        };
        assert_eq!(take(&mut inbox), Taken::Ask(expected.clone()));
        assert_eq!(take(&mut inbox), Taken::Ask(expected));
        assert!(inbox.is_empty());
    }

    #[test]
    fn what_is_no_stream_is_answered_at_once() {
        let status = |bytes: Vec<u8>| match take(&mut bytes.clone()) {
            Taken::Answer(answer) | Taken::Refused(answer) => {
                String::from_utf8(answer).unwrap()[9..12].to_owned()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(status(b"GET /v1/models HTTP/1.1\r\n\r\n".to_vec()), "200");
        assert_eq!(status(b"GET /metrics HTTP/1.1\r\n\r\n".to_vec()), "404");
        assert_eq!(status(post("/v1/completions", "{}")), "400");
        assert_eq!(status(post("/v1/completions", "nonsense")), "400");
        assert_eq!(status(b"nonsense\r\n\r\n".to_vec()), "400");
        assert_eq!(
            status(b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n".to_vec()),
            "413"
        );
    }
}
