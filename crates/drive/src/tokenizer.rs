//! The server's own tokenizer, asked before a run and never during one.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use measure::{At, Span};
use wire::tokenize::Dialect;
use workload::Tokenizer;

use crate::clock::Clock;
use crate::connection::Target;
use crate::fetch::Line;

/// How long all answers together may take: a proof of words asks for some
/// thousand texts, which on loopback takes a second.
const ALTOGETHER: Span = Span::from_ms(120_000);

/// Connections over which many texts are asked for at the same time.
const LINES: usize = 16;

/// A text that any vocabulary has tokens for.
const SAMPLE: &str = "The time was";

/// Why the server's tokenizer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No answer.
    #[error("{at}: {reason}")]
    Unreachable {
        /// The address.
        at: String,
        /// What happened.
        reason: String,
    },
    /// The key is wrong or missing.
    #[error("{at} answered {status}; give a key with --api-key-env or --api-key-file")]
    Key {
        /// The address.
        at: String,
        /// The status.
        status: u16,
    },
    /// No such endpoint.
    #[error(
        "{at} answered {status}, so this server does not tell its tokens (vLLM, SGLang and \
         llama.cpp do); write the path of the model's tokenizer.json, or leave --tokenizer out"
    )]
    Absent {
        /// The address.
        at: String,
        /// The status.
        status: u16,
    },
    /// An answer of another form.
    #[error(
        "{0} answered with no list of tokens or text; write the path of the model's \
         tokenizer.json, or leave --tokenizer out"
    )]
    Answer(String),
    /// Too slow for thousands of texts.
    #[error(
        "{0} took longer than {ALTOGETHER} for all texts that are asked for; write the path of \
         the model's tokenizer.json"
    )]
    Slow(String),
}

/// A tokenizer that a server answers for, through `/tokenize` and
/// `/detokenize`. After a failed question every text has no tokens, and
/// [`Self::failure`] tells why: ask it before any count is believed.
pub struct ServerTokenizer {
    target: Target,
    headers: Vec<(String, String)>,
    model: String,
    /// Where the two paths begin.
    root: String,
    dialect: Dialect,
    name: String,
    added: u32,
    /// How long one answer may take.
    within: Span,
    clock: Clock,
    began_at: At,
    failure: Mutex<Option<AskError>>,
}

impl fmt::Debug for ServerTokenizer {
    /// Without the headers, which may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTokenizer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerTokenizer {
    /// Finds out whether the server tells its tokens, and how. `root` is the
    /// path before `/tokenize`. The tokenizer is named after the model and not
    /// after the address, on which no count depends. One answer may take
    /// `within`.
    pub fn find(
        target: Target,
        root: &str,
        headers: Vec<(String, String)>,
        model: &str,
        within: Span,
    ) -> Result<Self, AskError> {
        let clock = Clock::starting_in(Span::ZERO);
        let mut tokenizer = Self {
            target,
            headers,
            model: model.to_owned(),
            root: root.to_owned(),
            dialect: Dialect::Vllm,
            name: format!("server ({model})"),
            within,
            added: 0,
            clock,
            began_at: clock.now(),
            failure: Mutex::new(None),
        };
        let mut told = Err(AskError::Answer(tokenizer.at(TOKENIZE)));
        for dialect in Dialect::ALL {
            tokenizer.dialect = dialect;
            told = tokenizer.special(&mut tokenizer.line());
            match told {
                Ok(_) | Err(AskError::Unreachable { .. } | AskError::Key { .. }) => break,
                Err(_) => {}
            }
        }
        tokenizer.added = told?;
        Ok(tokenizer)
    }

    /// Why a question got no answer, if one did not.
    pub fn failure(&self) -> Option<AskError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn line(&self) -> Line<'_> {
        Line::new(&self.target, &self.headers, self.within)
    }

    fn at(&self, path: &str) -> String {
        let url = self.target.url.with_path(&format!("{}{path}", self.root));
        url.to_string()
    }

    /// The number of tokens around a plain prompt.
    fn special(&self, line: &mut Line<'_>) -> Result<u32, AskError> {
        let mut count = |special| {
            let ids = self.ids(line, SAMPLE, special)?;
            if ids.is_empty() { Err(AskError::Answer(self.at(TOKENIZE))) } else { Ok(ids.len()) }
        };
        let (without, with) = (count(false)?, count(true)?);
        Ok(u32::try_from(with.saturating_sub(without)).unwrap_or(u32::MAX))
    }

    fn ids(&self, line: &mut Line<'_>, text: &str, special: bool) -> Result<Vec<u32>, AskError> {
        let body = self.dialect.tokenize(&self.model, text, special);
        let answer = self.ask(line, TOKENIZE, &body)?;
        self.dialect.ids(&answer).ok_or_else(|| AskError::Answer(self.at(TOKENIZE)))
    }

    fn text(&self, line: &mut Line<'_>, ids: &[u32]) -> Result<String, AskError> {
        let body = self.dialect.detokenize(&self.model, ids);
        let answer = self.ask(line, DETOKENIZE, &body)?;
        self.dialect.text(&answer).ok_or_else(|| AskError::Answer(self.at(DETOKENIZE)))
    }

    fn ask(&self, line: &mut Line<'_>, path: &str, body: &[u8]) -> Result<Vec<u8>, AskError> {
        if self.clock.now() - self.began_at > ALTOGETHER {
            return Err(AskError::Slow(self.at(path)));
        }
        let whole = format!("{}{path}", self.root);
        match line.ask("POST", &whole, Some(body)) {
            Ok((200, answer)) => Ok(answer),
            Ok((status @ (401 | 403), _)) => Err(AskError::Key { at: self.at(path), status }),
            Ok((status, _)) => Err(AskError::Absent { at: self.at(path), status }),
            Err(error) => {
                Err(AskError::Unreachable { at: self.at(path), reason: error.to_string() })
            }
        }
    }

    /// Asks for all items, a part of them over each line; empty answers from
    /// the first failure on.
    fn all<T: Sync, R: Send + Default + Clone>(
        &self,
        items: &[T],
        one: impl Fn(&mut Line<'_>, &T) -> Result<R, AskError> + Sync,
    ) -> Vec<R> {
        let mut answers = vec![R::default(); items.len()];
        let part = items.len().div_ceil(LINES).max(1);
        std::thread::scope(|scope| {
            for (items, answers) in items.chunks(part).zip(answers.chunks_mut(part)) {
                scope.spawn(|| {
                    let mut line = self.line();
                    for (item, answer) in items.iter().zip(answers) {
                        if self.failure().is_some() {
                            return;
                        }
                        match one(&mut line, item) {
                            Ok(told) => *answer = told,
                            Err(error) => return self.fail(error),
                        }
                    }
                });
            }
        });
        answers
    }

    /// The first failure is kept: later ones follow from it.
    fn fail(&self, error: AskError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

const TOKENIZE: &str = "/tokenize";
const DETOKENIZE: &str = "/detokenize";

impl Tokenizer for ServerTokenizer {
    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_all(&[text.to_owned()]).pop().unwrap_or_default()
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.decode_all(&[ids.to_vec()]).pop().unwrap_or_default()
    }

    /// As many as ids can be: the server does not tell.
    fn vocabulary_size(&self) -> u32 {
        u32::MAX
    }

    /// None: the server does not tell.
    fn special_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    fn added(&self) -> u32 {
        self.added
    }

    fn encode_all(&self, texts: &[String]) -> Vec<Vec<u32>> {
        self.all(texts, |line, text| self.ids(line, text, false))
    }

    fn decode_all(&self, lists: &[Vec<u32>]) -> Vec<String> {
        self.all(lists, |line, ids| self.text(line, ids))
    }
}
