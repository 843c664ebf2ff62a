//! What an engine says of itself over a run: of what its own TTFT is made.

use crate::choice::Choice;
use crate::client::Watcher;
use crate::cluster::{Audience, Cluster};
use crate::scheduler::{Ended, Finish};

/// Means over the requests of a run, as their server had them, ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// From the arrival at the server to the first token; none where the server
    /// does not say it.
    pub ttft_ms: Option<f64>,
    /// From a request's first step to its first token.
    pub prefill_ms: f64,
}

impl Inside {
    /// What of its TTFT is no prefill, ms: the front end and the queue together.
    ///
    /// Engines draw the line between the two differently. A request that comes
    /// while a step is under way is taken in when that ends, and only then
    /// vLLM 0.27.1's queue time begins (`EngineCore._process_input_queue`): most
    /// of what a batch lets a newcomer wait is in no queue there. The sum is the
    /// same wherever the line is.
    pub fn waited_ms(&self) -> Option<f64> {
        Some((self.ttft_ms? - self.prefill_ms).max(0.0))
    }
}

/// Hears it of the engine model, by the definitions that servers have.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// When each request came, by number, until its first token leaves.
    came_ns: Vec<Option<u64>>,
    ttft: Mean,
    prefill: Mean,
}

impl Listening {
    /// None where no request ended.
    pub(crate) fn heard(&self) -> Option<Inside> {
        Some(Inside { ttft_ms: self.ttft.ms(), prefill_ms: self.prefill.ms()? })
    }
}

#[derive(Debug, Default)]
struct Mean {
    sum_ns: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, from_ns: u64, until_ns: u64) {
        self.sum_ns += until_ns.saturating_sub(from_ns);
        self.count += 1;
    }

    fn ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }
}

impl Audience for Listening {
    fn tokens(&mut self, choice: Choice, at_ns: u64, _tokens: u32) {
        let came_ns = self.came_ns.get_mut(choice.request as usize);
        if let Some(came_ns) = came_ns.and_then(Option::take) {
            self.ttft.add(came_ns, at_ns);
        }
    }

    fn ended(&mut self, _replica: usize, _choice: Choice, ended: &Ended, _at_ns: u64) {
        if ended.finish != Finish::Abort {
            self.prefill.add(ended.scheduled_ns, ended.first_token_ns);
        }
    }
}

impl Watcher for Listening {
    fn submitted(&mut self, id: u64, (came_ns, _): (u64, u64), _limit: u32, _choices: u8) {
        let place = id as usize;
        if place >= self.came_ns.len() {
            self.came_ns.resize(place + 1, None);
        }
        self.came_ns[place] = Some(came_ns);
    }

    fn left(&mut self, _id: u64, _answers: u32) {}

    fn next_look_ns(&self) -> u64 {
        // Instants are enough; nothing is looked at between them.
        u64::MAX
    }

    fn look(&mut self, _at_ns: u64, _cluster: &Cluster) {}
}
