//! What to send, and when.
//!
//! A [`Schedule`] is a value: drawn from a seed before the first byte is sent,
//! the same for one worker or a hundred, on any machine. Nothing here reads a
//! clock, a socket, a file or an ambient random source; what must differ
//! between two runs (the [`RunNonce`]) comes in as an argument.

pub mod arrival;
pub mod batch;
pub mod choice;
pub mod clients;
pub mod conversation;
pub mod digest;
pub mod length;
pub mod lexicon;
pub mod load;
pub mod media;
pub mod mix;
pub mod piece;
pub mod prefix;
pub mod prompt;
pub mod replay;
pub mod routing;
pub mod schedule;
pub mod shape;
pub mod stream;
pub mod stretch;
pub mod think;

mod text;
pub mod tokenizer;
mod words;

pub use arrival::{Arrivals, Dispersion, Pace, Process, index_of_dispersion};
pub use batch::{Batch, BatchError, Ranking};
pub use choice::{Assignment, Choice, ChoiceError, named_weight};
pub use clients::{Active, Client, Clients, Gaps, Origin, Sizes};
pub use conversation::{Conversation, Conversations, History, Script, Turn, TurnCount, Turns};
pub use length::{Bell, Bucket, Histogram, LengthError, Lengths, MAX_TOKENS};
pub use lexicon::{Lexicon, LexiconError};
pub use load::{Load, LoadError, Stop};
pub use media::{Attachment, Media, Picture, Pictures};
pub use mix::{Mix, Part};
pub use piece::Piece;
pub use prefix::Prefixes;
pub use prompt::{
    Blocks, CacheRegime, Content, LengthRow, Message, Order, Prompt, PromptRef, PromptSource,
    RunNonce, estimate_tokens,
};
pub use replay::{Replay, ReplayError};
pub use routing::{Dealt, ModelKind, Route, Routing};
pub use schedule::{
    After, GraphError, Note, OutputLength, Request, Schedule, Spec, SpecError, WrongLength,
};
pub use shape::{Growth, Phase, Shape, ShapeError, Stage};
pub use stream::Stream;
pub use think::Think;
pub use tokenizer::Tokenizer;
