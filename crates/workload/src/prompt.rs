//! What is asked: prompts, where they come from, and what the server's prefix
//! cache may know of them.

use std::sync::Arc;

use measure::Tokens;

use crate::digest::Digest;
use crate::length::Lengths;
use crate::lexicon::Lexicon;
use crate::media::{Attachment, Media, Picture};
use crate::mix::Mix;
use crate::piece::Piece;
use crate::stream::Stream;
use crate::text::{self, Nonce};

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `system`, `user`, `assistant`, …: sent as it is.
    pub role: String,
    /// The text.
    pub content: String,
    /// Further members of the message, as the text of a JSON object: the tool
    /// calls of an answer, the call that a result belongs to. They win where
    /// they have the name of one of the two above.
    pub members: Option<String>,
    /// Pictures and sounds in the text, by their places; mostly none.
    pub media: Vec<Attachment>,
}

impl Message {
    /// A message of text alone.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), members: None, media: Vec::new() }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(&self.role).text(&self.content);
        if let Some(members) = &self.members {
            digest.raw(b"+").text(members);
        }
        for Attachment { before, media } in &self.media {
            digest.raw(b"&").number(*before as u64);
            media.digest(digest);
        }
    }
}

/// What a prompt holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// One text. A chat endpoint gets it as the only user message.
    Text(String),
    /// Several texts, at least one: to embed each, or a query and what is to be
    /// ranked under it.
    Texts(Vec<String>),
    /// A list of messages, at least one.
    Messages(Vec<Message>),
}

/// One prompt, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The text or messages.
    pub content: Content,
    /// About how many tokens, when someone counted. The server's own count is
    /// the one that metrics use.
    pub input_tokens: Option<Tokens>,
    /// The answer's limit that belongs to this prompt, when its source has one.
    pub max_output_tokens: Option<Tokens>,
    /// Where it stood in its file, counted from 1: the row, or the line.
    pub source_row: Option<u64>,
    /// Labels that its source gives it, name and value: they join those of the
    /// run, and win where both have the name.
    pub labels: Vec<(String, String)>,
    /// Members of the request's body that belong to this prompt, such as
    /// `tools`: name, and the text of a JSON value.
    pub body: Vec<(String, String)>,
    /// Its place in the server's queue, where its source gives one.
    pub priority: Option<i32>,
}

impl Content {
    /// The messages that it is for an API of messages: a text is the user's.
    pub fn into_messages(self) -> Vec<Message> {
        match self {
            Self::Text(text) => vec![Message::new("user", text)],
            Self::Texts(texts) => vec![Message::new("user", texts.join("\n\n"))],
            Self::Messages(messages) => messages,
        }
    }
}

impl Prompt {
    /// A prompt of one text, its length estimated.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            input_tokens: Some(Tokens::new(estimate_tokens(&text))),
            content: Content::Text(text),
            max_output_tokens: None,
            source_row: None,
            labels: Vec::new(),
            body: Vec::new(),
            priority: None,
        }
    }

    /// The text of this member of the body.
    pub fn member(&self, name: &str) -> Option<&str> {
        self.body.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Puts a nonce before everything else and counts it in.
    fn with_nonce(mut self, nonce: &str) -> Self {
        let nonce = format!("{nonce}\n\n");
        let head = match &mut self.content {
            Content::Text(text) => Some(text),
            Content::Texts(texts) => texts.first_mut(),
            Content::Messages(messages) => messages.first_mut().map(|first| {
                // Pictures stay where they were in the text, so behind it.
                first.media.iter_mut().for_each(|piece| piece.before += nonce.len());
                &mut first.content
            }),
        };
        if let Some(head) = head {
            head.insert_str(0, &nonce);
            self.input_tokens =
                self.input_tokens.map(|n| Tokens::new(n.get().saturating_add(text::NONCE_TOKENS)));
        }
        self
    }

    /// The prompt with pictures behind its text: the last message's, for a
    /// chat.
    pub(crate) fn with_pictures(mut self, pictures: Vec<Picture>) -> Self {
        if pictures.is_empty() {
            return self;
        }
        let mut messages = self.content.into_messages();
        if let Some(last) = messages.last_mut() {
            let before = last.content.len();
            let pictures = pictures.into_iter().map(Media::Picture);
            last.media.extend(pictures.map(|media| Attachment { before, media }));
        }
        self.content = Content::Messages(messages);
        self
    }

    /// What of it is no text.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        let messages = match &self.content {
            Content::Text(_) | Content::Texts(_) => &[],
            Content::Messages(messages) => messages.as_slice(),
        };
        messages.iter().flat_map(|message| &message.media).map(|piece| &piece.media)
    }

    fn digest(&self, digest: &mut Digest) {
        match &self.content {
            Content::Text(text) => {
                digest.raw(b"t").text(text);
            }
            Content::Texts(texts) => {
                digest.raw(b"n").number(texts.len() as u64);
                for text in texts {
                    digest.text(text);
                }
            }
            Content::Messages(messages) => {
                digest.raw(b"m").number(messages.len() as u64);
                for message in messages {
                    message.digest(digest);
                }
            }
        }
        // Only where there are any, so that prompts without keep their digest.
        for (name, value) in &self.body {
            match name.as_str() {
                // As it was when tools were all that a row could bring along.
                "tools" => digest.raw(b"u").text(value),
                name => digest.raw(b"b").text(name).text(value),
            };
        }
    }
}

/// The order in which a list of prompts is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the file.
    AsIs,
    /// Shuffled by the seed.
    Shuffled,
}

/// Where prompts come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptSource {
    /// A list that is gone through in order, from the top again when it ends.
    /// Going round, and not drawing repeats at random as vLLM does, keeps two
    /// uses of one prompt as far apart as can be.
    List {
        /// At least one.
        prompts: Vec<Prompt>,
        /// The order of the first and of every later round.
        order: Order,
    },
    /// Text of our own, written for each request when it is needed, its length
    /// counted by words and marks.
    Synthetic {
        /// How long.
        input: Lengths,
    },
    /// The same, its length exact under a tokenizer.
    Exact {
        /// How long.
        input: Lengths,
        /// The words and what they cost under that tokenizer.
        lexicon: Arc<Lexicon>,
    },
    /// Those of several workloads, each request's by turns.
    Mix(Box<Mix>),
    /// Text of our own, of lengths from a list that is gone through as one of
    /// prompts is. A length that comes again has another text.
    Lengths {
        /// At least one.
        rows: Vec<LengthRow>,
        /// The order of the first and of every later round.
        order: Order,
        /// The words and what they cost under a tokenizer, by which the lengths
        /// are exact; without one they are counted by words and marks.
        lexicon: Option<Arc<Lexicon>>,
    },
}

/// A request of which only the lengths are known, as traces publish them.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthRow {
    /// Length of the prompt.
    pub input: Tokens,
    /// Length of the answer.
    pub output: Tokens,
    /// What its prompt is made of, where the file says which parts requests
    /// share.
    pub blocks: Option<Blocks>,
    /// As [`Prompt::labels`].
    pub labels: Vec<(String, String)>,
    /// As [`Prompt::source_row`].
    pub source_row: u64,
}

/// The parts of a prompt by their hashes. Prompts that begin with the same
/// hashes begin with the same text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// One for each block, the last one of which may be cut.
    pub ids: Box<[u64]>,
    /// Tokens of a block.
    pub size: Tokens,
}

impl Blocks {
    /// As parts of a prompt, which cuts the last one.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.ids.iter().map(|&id| Piece::block(id, self.size.get()))
    }
}

/// Which prompt a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptRef {
    /// The prompt at this place of the source's list, from 0.
    Listed(u32),
    /// Text of this many tokens, from the request's own stream.
    Written(Tokens),
}

impl PromptSource {
    /// The same text for every request.
    pub fn fixed(text: impl Into<String>) -> Self {
        Self::List { prompts: vec![Prompt::text(text)], order: Order::AsIs }
    }

    /// Number of rows in the list; `None` when there is none.
    pub fn listed(&self) -> Option<usize> {
        match self {
            Self::List { prompts, .. } => Some(prompts.len()),
            Self::Lengths { rows, .. } => Some(rows.len()),
            Self::Synthetic { .. } | Self::Exact { .. } | Self::Mix(_) => None,
        }
    }

    /// True when the text is ours, written for each request; of a mix, when
    /// that of a part is.
    pub fn is_written(&self) -> bool {
        match self {
            Self::List { .. } => false,
            Self::Mix(mix) => mix.parts().iter().any(|part| part.prompts.is_written()),
            Self::Synthetic { .. } | Self::Exact { .. } | Self::Lengths { .. } => true,
        }
    }

    /// True when the lengths are those of the rows of a file; of a mix, when
    /// those of a part are.
    pub fn is_of_rows(&self) -> bool {
        match self {
            Self::List { .. } | Self::Lengths { .. } => true,
            Self::Mix(mix) => mix.parts().iter().any(|part| part.prompts.is_of_rows()),
            Self::Synthetic { .. } | Self::Exact { .. } => false,
        }
    }

    /// The same prompts with lengths that are exact under a tokenizer, where
    /// the text is ours.
    #[must_use]
    pub fn exact_by(self, lexicon: Arc<Lexicon>) -> Self {
        match self {
            Self::Synthetic { input } | Self::Exact { input, .. } => Self::Exact { input, lexicon },
            Self::Lengths { rows, order, .. } => {
                Self::Lengths { rows, order, lexicon: Some(lexicon) }
            }
            Self::Mix(mix) => Self::Mix(Box::new(mix.exact_by(&lexicon))),
            Self::List { .. } => self,
        }
    }

    /// The words that text is written of, and what each costs.
    pub(crate) fn lexicon(&self) -> &Lexicon {
        self.exact_lexicon().unwrap_or_else(|| Lexicon::by_words())
    }

    /// The lexicon of a tokenizer, where lengths are said to be exact.
    pub fn exact_lexicon(&self) -> Option<&Lexicon> {
        match self {
            Self::Exact { lexicon, .. } | Self::Lengths { lexicon: Some(lexicon), .. } => {
                Some(lexicon)
            }
            Self::Mix(mix) => mix.parts().iter().find_map(|part| part.prompts.exact_lexicon()),
            Self::List { .. } | Self::Synthetic { .. } | Self::Lengths { .. } => None,
        }
    }

    /// The shortest prompt that can be written: one token of text after those
    /// that the server adds.
    pub(crate) fn least(&self) -> Tokens {
        Tokens::new(self.lexicon().special() + 1)
    }

    /// The shortest prompt that may be asked for, where the text is ours.
    pub(crate) fn shortest(&self) -> Option<Tokens> {
        match self {
            Self::Synthetic { input } | Self::Exact { input, .. } => Some(input.range().0),
            Self::Lengths { rows, .. } => rows.iter().map(|row| row.input).min(),
            // Each part's schedule looks at its own.
            Self::List { .. } | Self::Mix(_) => None,
        }
    }

    /// The list's length and the order of its use.
    pub(crate) fn list(&self) -> Option<(usize, Order)> {
        match self {
            Self::List { prompts, order } => Some((prompts.len(), *order)),
            Self::Lengths { rows, order, .. } => Some((rows.len(), *order)),
            Self::Synthetic { .. } | Self::Exact { .. } | Self::Mix(_) => None,
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::List { prompts, order } => {
                digest.raw(match order {
                    Order::AsIs => b"a",
                    Order::Shuffled => b"s",
                });
                digest.number(prompts.len() as u64);
                for prompt in prompts {
                    prompt.digest(digest);
                }
            }
            Self::Synthetic { input } => {
                digest.raw(b"w");
                input.digest(digest);
            }
            Self::Exact { input, lexicon } => {
                digest.raw(b"x");
                input.digest(digest);
                lexicon.digest(digest);
            }
            Self::Mix(mix) => mix.digest(digest),
            Self::Lengths { rows, order, lexicon } => {
                digest.raw(match order {
                    Order::AsIs => b"l",
                    Order::Shuffled => b"k",
                });
                digest.number(rows.len() as u64);
                for row in rows {
                    digest.number(row.input.get().into()).number(row.output.get().into());
                    if let Some(blocks) = &row.blocks {
                        digest.number(blocks.size.get().into()).number(blocks.ids.len() as u64);
                        blocks.ids.iter().for_each(|&id| {
                            digest.number(id);
                        });
                    }
                }
                if let Some(lexicon) = lexicon {
                    lexicon.digest(digest);
                }
            }
        }
    }
}

/// What the server's prefix cache may hold of the prompts. Runs of different
/// regimes are different workloads and are never pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheRegime {
    /// One nonce per run at the head of every group of prompts that begin
    /// alike: no hits from earlier runs, while sharing inside the run is kept.
    Cold,
    /// One nonce per request: no hits at all.
    None,
    /// No nonce; what each group begins with is sent once, unmeasured, before
    /// the run, or every prompt where there are no groups.
    Warm,
    /// No nonce, and whatever the cache holds.
    AsIs,
}

impl CacheRegime {
    /// All regimes.
    pub const ALL: &[Self] = &[Self::Cold, Self::None, Self::Warm, Self::AsIs];

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::None => "none",
            Self::Warm => "warm",
            Self::AsIs => "as-is",
        }
    }

    /// The regime of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|regime| regime.name() == name)
    }

    /// True when prompts under this regime carry a nonce.
    pub const fn has_nonce(self) -> bool {
        matches!(self, Self::Cold | Self::None)
    }
}

/// What sets one run's prompts apart from every other run's. It must come from
/// the operating system's randomness and be kept with the run: drawn from the
/// seed, a second run with the same seed would find the first one's prompts in
/// the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunNonce(u64);

impl RunNonce {
    /// A nonce of these bits.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for the run's manifest.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The seed of pixels: of pictures that no earlier run has sent where the
    /// regime says so, else of the run's seed.
    pub(crate) const fn pixels(self, regime: CacheRegime, seed: u64) -> u64 {
        if regime.has_nonce() { self.0 } else { seed }
    }

    /// What a prompt's nonce is made of. The first 2³² numbers
    /// are the requests', those after them the run's, one for each group of
    /// prompts that begin alike.
    pub(crate) fn of(self, regime: CacheRegime, index: u32, group: u32) -> Option<Nonce> {
        let number = match regime {
            CacheRegime::Cold => (1 << 32) + u64::from(group),
            CacheRegime::None => u64::from(index),
            CacheRegime::Warm | CacheRegime::AsIs => return Option::None,
        };
        let stream = Stream::numbered(self.0, "nonce", number);
        // Half of the bits, so that numbers in a row stay in a row.
        Some(Nonce { number: (self.0 >> 32) + number, stream })
    }
}

/// The prompt written of these pieces: it depends on these arguments only, not
/// on which worker asks or when. Its length holds what the server adds too.
pub(crate) fn written(
    seed: u64,
    pieces: &[Piece],
    lexicon: &Lexicon,
    nonce: Option<Nonce>,
) -> Prompt {
    let written: u32 = pieces.iter().map(|piece| piece.tokens).sum();
    Prompt {
        content: Content::Text(text::write(pieces, seed, lexicon, nonce)),
        input_tokens: Some(Tokens::new(written + lexicon.special())),
        max_output_tokens: None,
        source_row: None,
        labels: Vec::new(),
        body: Vec::new(),
        priority: None,
    }
}

/// A prompt from the list as a request carries it.
pub(crate) fn listed(prompt: &Prompt, nonce: Option<Nonce>) -> Prompt {
    match nonce {
        Some(nonce) => prompt.clone().with_nonce(&text::nonce(nonce)),
        None => prompt.clone(),
    }
}

/// How many tokens a nonce adds to a prompt from a list.
pub(crate) const NONCE_TOKENS: u32 = text::NONCE_TOKENS;

/// About how many tokens a text is, without a tokenizer. A run of letters is
/// one token up to 11 letters and one more for every further 6; of digits, one
/// per started 3; of one repeated mark, one per started 4; a run of space is
/// one if it holds a line end, else part of the next word; a letter of the East
/// Asian scripts is one.
///
/// Held against cl100k, o200k and Llama 3 on English prose, technical Markdown
/// and Chinese, it was within 15 %; on code and on other scripts it is worse.
/// It is for choosing and labelling prompts, never for a metric.
pub fn estimate_tokens(text: &str) -> u32 {
    let mut tokens = 0u32;
    estimated_pieces(text, |_, count| tokens = tokens.saturating_add(count));
    tokens
}

/// The runs of a text that [`estimate_tokens`] counts, in their order, each with
/// its number of tokens; what is part of the next word is left out.
pub fn estimated_pieces<'t>(text: &'t str, mut each: impl FnMut(&'t str, u32)) {
    let mut chars = text.char_indices().peekable();
    while let Some((begins, first)) = chars.next() {
        let kind = Kind::of(first);
        let (mut run, mut line_end) = (1u32, first == '\n');
        let mut ends = begins + first.len_utf8();
        while let Some(&(at, next)) = chars.peek() {
            if kind != Kind::of(next) || kind == Kind::Ideograph {
                break;
            }
            line_end |= next == '\n';
            run = run.saturating_add(1);
            ends = at + next.len_utf8();
            chars.next();
        }
        let tokens = match kind {
            Kind::Letter => 1 + run.saturating_sub(11).div_ceil(6),
            Kind::Digit => run.div_ceil(3),
            Kind::Space => u32::from(line_end),
            Kind::Ideograph => 1,
            Kind::Mark(_) => run.div_ceil(4),
        };
        if tokens > 0 {
            each(&text[begins..ends], tokens);
        }
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Kind {
    Letter,
    Digit,
    Space,
    Ideograph,
    Mark(char),
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_whitespace() => Self::Space,
            // From the CJK radicals on: kana, ideographs, Hangul, full-width.
            _ if u32::from(c) >= 0x2e80 => Self::Ideograph,
            _ if c.is_alphabetic() => Self::Letter,
            _ if c.is_numeric() => Self::Digit,
            _ => Self::Mark(c),
        }
    }
}

#[cfg(test)]
mod tests;
