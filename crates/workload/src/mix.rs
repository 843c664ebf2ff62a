//! Several workloads in one run, drawn by weight.
//!
//! A part is a schedule of its own, with a seed of its own: its requests in
//! their order are those of a run of the part alone, whatever other parts there
//! are. The mix only says whose turn it is.

use std::sync::Arc;

use crate::batch::Batch;
use crate::choice::{Assignment, Choice, ChoiceError};
use crate::digest::{Digest, mix};
use crate::lexicon::Lexicon;
use crate::load::{Load, Stop};
use crate::media::Pictures;
use crate::prefix::Prefixes;
use crate::prompt::{CacheRegime, PromptSource, RunNonce};
use crate::routing::{Routing, relabel};
use crate::schedule::{Note, OutputLength, Request, Schedule, Spec, SpecError};
use crate::stream::Stream;
use crate::think::Think;

/// The label of a part.
pub const WORKLOAD: &str = "workload";

/// Turns that are drawn; later ones are these again, with other requests. More
/// than a million draws say nothing new of a few shares, and would be memory.
const ROUND: u32 = 1 << 20;

/// The parts and their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    parts: Vec<Part>,
    names: Choice<String>,
}

/// One workload of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name: the value of the label `workload`.
    pub name: String,
    /// Its share is this over the sum of all.
    pub weight: f64,
    /// Where its prompts come from.
    pub prompts: PromptSource,
    /// Pictures that go with every prompt.
    pub pictures: Option<Pictures>,
    /// What they begin with.
    pub prefixes: Prefixes,
    /// What its requests carry of written texts.
    pub batch: Batch,
    /// How long its answers may be.
    pub output: OutputLength,
    /// True when the server is told to write the whole length.
    pub output_forced: bool,
    /// True when its list may begin again, by its nature or by wish.
    pub repeats: bool,
    /// Its models and priorities. Targets are the run's.
    pub routing: Routing,
}

impl Mix {
    /// A mix of these parts. They are taken in the order of their names, so
    /// that one mix has one schedule, however it is written down.
    pub fn new(mut parts: Vec<Part>) -> Result<Self, ChoiceError> {
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let weights = parts.iter().map(|part| (part.name.clone(), part.weight)).collect();
        let names = Choice::new(weights, Assignment::Random)?;
        Ok(Self { parts, names })
    }

    /// The same mix with lengths that are exact under a tokenizer.
    pub(crate) fn exact_by(self, lexicon: &Arc<Lexicon>) -> Self {
        let exact =
            |part: Part| Part { prompts: part.prompts.exact_by(Arc::clone(lexicon)), ..part };
        Self { parts: self.parts.into_iter().map(exact).collect(), ..self }
    }

    /// The parts, sorted by name.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts with their shares, from 0 to 1.
    pub fn shares(&self) -> impl Iterator<Item = (&Part, f64)> {
        self.parts.iter().zip(self.names.shares().map(|(_, share)| share))
    }

    /// The number of requests, at most `most`, until a part with a list would
    /// begin it again, and that part's name; `None` where no list ends.
    pub fn ends(&self, seed: u64, most: Option<u32>) -> Option<(u32, &str)> {
        let turns = Turns::draw(&self.names, seed, most);
        let ends = self.parts.iter().enumerate().filter(|(_, part)| !part.repeats);
        let ends = ends.filter_map(|(place, part)| {
            let rows = u32::try_from(part.prompts.listed()?).ok()?;
            Some((turns.index_of(place, rows)?, part.name.as_str()))
        });
        ends.min().filter(|(index, _)| most.is_none_or(|most| *index < most))
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.raw(b"m").number(self.parts.len() as u64);
        for part in &self.parts {
            digest.text(&part.name).float(part.weight);
            part.prompts.digest(digest);
            part.prefixes.digest(digest);
            if let Some(pictures) = &part.pictures {
                pictures.digest(digest);
            }
            part.batch.digest(digest);
        }
    }
}

/// The seed of a part: it depends on the run's and the name alone.
fn seed_of(seed: u64, name: &str) -> u64 {
    mix(Digest::new().number(seed).text(name).value())
}

/// Whose turn it is, and the how manieth of that part.
#[derive(Clone, Debug)]
struct Turns {
    parts: Vec<u16>,
    numbers: Vec<u32>,
    /// Turns of each part in one round.
    each: Vec<u32>,
}

impl Turns {
    fn draw(names: &Choice<String>, seed: u64, count: Option<u32>) -> Self {
        let length = count.unwrap_or(ROUND).clamp(1, ROUND);
        let mut each = vec![0; names.options().len()];
        let mut stream = Stream::new(seed, "mix");
        let (parts, numbers) = (0..length)
            .map(|_| {
                let part = names.drawn(&mut stream);
                each[part] += 1;
                (part as u16, each[part] - 1)
            })
            .unzip();
        Self { parts, numbers, each }
    }

    /// The part of request `index` and the number of its earlier ones.
    fn at(&self, index: u32) -> (usize, u32) {
        let (round, turn) = (index / self.parts.len() as u32, index as usize % self.parts.len());
        let part = usize::from(self.parts[turn]);
        (part, round * self.each[part] + self.numbers[turn])
    }

    /// The request that is number `number` of a part; `None` where none is.
    fn index_of(&self, part: usize, number: u32) -> Option<u32> {
        let (round, number) = (number.checked_div(self.each[part])?, number % self.each[part]);
        let mut turns = self.parts.iter().zip(&self.numbers);
        let turn = turns.position(|(own, n)| (usize::from(*own), *n) == (part, number))?;
        round.checked_mul(self.parts.len() as u32)?.checked_add(turn as u32)
    }

    /// Requests of a part among the first `count`.
    fn of_part(&self, part: usize, count: u32) -> u32 {
        let (rounds, rest) = (count / self.parts.len() as u32, count as usize % self.parts.len());
        let rest = self.parts[..rest].iter().filter(|turn| usize::from(**turn) == part).count();
        rounds * self.each[part] + rest as u32
    }
}

/// A mix with the schedules of its parts drawn.
#[derive(Clone, Debug)]
pub(crate) struct Mixed {
    turns: Turns,
    parts: Vec<(String, Schedule)>,
}

impl Mixed {
    /// Draws the parts of a run of `count` requests, and says what a reader
    /// must know of each.
    pub(crate) fn draw(
        mix: &Mix,
        spec: &Spec,
        count: Option<u32>,
    ) -> Result<(Self, Vec<Note>), SpecError> {
        let turns = Turns::draw(&mix.names, spec.seed, count);
        let (mut parts, mut of_parts) = (Vec::new(), Vec::new());
        for (place, part) in mix.parts.iter().enumerate() {
            let own = count.map(|count| turns.of_part(place, count));
            let stop = match (own, spec.stop.duration()) {
                (None, Some(duration)) => Stop::Duration(duration),
                (own, _) => Stop::Count(own.unwrap_or(u32::MAX).max(1)),
            };
            let spec = Spec {
                seed: seed_of(spec.seed, &part.name),
                load: Load::Closed { users: 1, think: Think::NONE },
                stop,
                prompts: part.prompts.clone(),
                pictures: part.pictures.clone(),
                prefixes: part.prefixes,
                batch: part.batch.clone(),
                output: part.output.clone(),
                output_forced: part.output_forced,
                cache: spec.cache,
                nonce_in_own_prompts: spec.nonce_in_own_prompts,
                labels: spec.labels.clone(),
                routing: part.routing.clone(),
                conversations: None,
            };
            let (schedule, own_notes) = Schedule::draw(spec)?;
            let own_notes = match own {
                Some(0) => vec![Note::NoRequest],
                _ => own_notes,
            };
            of_parts.push((part.name.as_str(), own_notes));
            parts.push((part.name.clone(), schedule));
        }
        Ok((Self { turns, parts }, together(&of_parts)))
    }

    /// The schedules of the parts, by name.
    pub(crate) fn parts(&self) -> &[(String, Schedule)] {
        &self.parts
    }

    /// The request of the part whose turn `index` is, by its own number.
    pub(crate) fn request(&self, index: u32) -> Option<Request> {
        let (place, number) = self.turns.at(index);
        let (name, schedule) = &self.parts[place];
        let mut request = schedule.request(number)?;
        relabel(&mut request.labels, WORKLOAD, name.clone());
        Some(request)
    }

    /// The schedule that request `index` is of, its number there, and the nonce
    /// of its prompt: no two requests of a run may share one where each has its
    /// own.
    pub(crate) fn of(&self, index: u32, nonce: RunNonce) -> (&Schedule, u32, RunNonce) {
        let (place, number) = self.turns.at(index);
        let (name, schedule) = &self.parts[place];
        let nonce = match schedule.cache() {
            CacheRegime::None => RunNonce::new(seed_of(nonce.bits(), name)),
            CacheRegime::Cold | CacheRegime::Warm | CacheRegime::AsIs => nonce,
        };
        (schedule, number, nonce)
    }
}

/// The notes of parts; once, where one holds for all.
fn together(of_parts: &[(&str, Vec<Note>)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (name, own) in of_parts {
        for note in own {
            if of_parts.iter().any(|(_, other)| !other.contains(note)) {
                notes.push(note.clone().of_part(name));
            } else if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests;
