use std::sync::Arc;

use drive::tokenizer::{AskError, ServerTokenizer};
use drive::{Target, tls};
use fake::{Request, Script, Server};
use measure::Span;
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::url::Url;
use workload::{Lexicon, Tokenizer};

fn find(server: &Server) -> Result<ServerTokenizer, AskError> {
    let tls = tls::client_config(&tls::Trust::System).unwrap();
    let target = Target { url: Url::parse(&server.url()).unwrap(), tls };
    let headers = vec![("authorization".to_owned(), "Bearer sk-canary".to_owned())];
    ServerTokenizer::find(target, "", headers, "m", Span::from_ms(10_000))
}

/// llama.cpp's dialect over the embedded tokenizer.
fn llama(request: &Request) -> Script {
    let tokenizer = tokens::embedded();
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let Some(text) = body["content"].as_str() else {
        let ids = body["tokens"].as_array().cloned().unwrap_or_default();
        let ids: Vec<u32> = ids.iter().filter_map(|id| Some(id.as_u64()? as u32)).collect();
        return Script::json(200, &json!({"tokens": [], "content": tokenizer.decode(&ids)}));
    };
    Script::json(200, &json!({"tokens": tokenizer.encode(text)}))
}

#[test]
fn a_server_counts_as_its_tokenizer_does() {
    let server = Server::start_scripted(llama).unwrap();
    let (asked, own) = (find(&server).unwrap(), tokens::embedded());
    let texts = ["", "The time was", "汉字 and \"quotes\"\n", " x"].map(str::to_owned);
    assert_eq!(asked.encode_all(&texts), own.encode_all(&texts));
    let ids = own.encode_all(&texts);
    assert_eq!(asked.decode_all(&ids), texts);
    assert_eq!(asked.count("The time was"), own.count("The time was"));
    assert_eq!((asked.added(), asked.failure()), (0, None));
    assert_eq!(asked.name(), "server (m)");
    assert!(!format!("{asked:?}").contains("canary"));
}

#[test]
fn a_connection_that_the_server_closes_is_opened_anew() {
    // Every third answer on a connection is its last.
    let server = Server::start_scripted(|request: &Request| {
        let script = llama(request);
        if request.on_connection % 3 == 2 { script.close(0) } else { script }
    });
    let server = server.unwrap();
    let asked = find(&server).unwrap();
    let own = tokens::embedded();
    let lexicon = Lexicon::proven(&asked).unwrap();
    assert_eq!(asked.failure(), None);
    assert_eq!(lexicon.tokenizer(), "server (m)");
    assert_eq!(asked.encode("still there"), own.encode("still there"));
}

#[test]
fn a_failure_in_the_middle_is_kept_and_nothing_more_is_asked() {
    let server = Server::start_scripted(|request: &Request| {
        if request.path() == "/detokenize" {
            return Script::json(500, &json!({"error": "out of order"}));
        }
        llama(request)
    });
    let server = server.unwrap();
    let asked = find(&server).unwrap();
    assert!(Lexicon::proven(&asked).is_err());
    let failure = asked.failure().unwrap().to_string();
    assert!(failure.contains("/detokenize answered 500"), "{failure}");
    let before = server.requests().len();
    assert_eq!(asked.encode("more"), [] as [u32; 0]);
    assert_eq!(server.requests().len(), before);
}

#[test]
fn a_refused_key_and_a_silent_server_are_told_apart() {
    let refusing = Server::start_scripted(|_: &Request| Script::json(401, &json!({}))).unwrap();
    assert!(matches!(find(&refusing), Err(AskError::Key { status: 401, .. })));
    let closing = Server::start_scripted(|_: &Request| Script::new().close(0)).unwrap();
    assert!(matches!(find(&closing), Err(AskError::Unreachable { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_answer_is_a_tokenizer_or_an_error(
        body in prop::collection::vec(any::<u8>(), 0..200), status in 200u16..600,
    ) {
        let body = Arc::new(body);
        let server = Server::start_scripted(move |_: &Request| {
            Script::whole(status, "application/json", body.as_slice())
        });
        prop_assert!(find(&server.unwrap()).is_err());
    }
}
