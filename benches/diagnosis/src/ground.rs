//! What a world can do without its faults: the ground on which causes are put.

use std::collections::BTreeSet;

use measure::Record;
use sim::SettingsError;

use crate::cause::{at_rate, lasting, of_users};
use crate::world::{Figures, World};

/// What a world can do and does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ground {
    /// Requests a second when as many are under way as it can use.
    pub capacity: f64,
    /// Requests under way then.
    pub users: f64,
    /// Requests that run at once under the load that was chosen.
    pub running: f64,
    /// The figures under that load.
    pub figures: Figures,
}

/// The most users of the run that finds a capacity: more requests at once bring
/// little, and take long to play.
const MOST_USERS: f64 = 192.0;

impl Ground {
    /// What the world can serve.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn capacity(world: &World) -> Result<Self, SettingsError> {
        let (prompt, answer) = world.tokens();
        let settings = &world.settings;
        let cached = f64::from(settings.blocks()?) * f64::from(settings.block_size);
        let by_memory = 0.85 * cached / (prompt + answer);
        let by_seats = f64::from(settings.max_num_seqs);
        let users = by_memory.min(by_seats).clamp(2.0, MOST_USERS);
        let mut full = World { late: None, refused: 0.0, proxy: None, ..world.clone() };
        of_users(&mut full, users as u32);
        full.requests = (users * 3.0) as u32;
        let mut ends: Vec<_> = full.play()?.records.iter().filter_map(ended_us).collect();
        ends.sort_unstable();
        // Neither while seats fill nor while they empty.
        let (from, until) = (ends.len() / 4, ends.len() * 3 / 4);
        let seconds = (ends[until] - ends[from]) as f64 / 1e6;
        let capacity = (until - from) as f64 / seconds.max(1e-6);
        Ok(Self { capacity, users, ..Self::default() })
    }

    /// Gives a world a load at this share of its capacity for so many seconds, and
    /// sees what it does then.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn load(
        self,
        world: &mut World,
        level: f64,
        is_open: bool,
        seconds: f64,
    ) -> Result<Self, SettingsError> {
        let rate = level * self.capacity;
        if is_open {
            at_rate(world, rate);
        } else {
            of_users(world, (level * self.users) as u32);
        }
        lasting(world, rate, seconds);
        let mut usual = world.clone();
        if level > 0.9 {
            at_rate(&mut usual, 0.5 * self.capacity);
        }
        let records = usual.play()?.records;
        Ok(Self { running: running(&records), figures: Figures::of(&records), ..self })
    }
}

fn ended_us(record: &Record) -> Option<i64> {
    Some(record.stamps.ended_at?.us())
}

/// The mean number of requests under way in the middle half of a run.
fn running(records: &[Record]) -> f64 {
    let spans: Vec<(i64, i64)> = records
        .iter()
        .filter_map(|record| Some((record.stamps.sent_at?.us(), ended_us(record)?)))
        .collect();
    let instants: BTreeSet<i64> = spans.iter().map(|(sent, _)| *sent).collect();
    let instants: Vec<i64> = instants.into_iter().collect();
    let (Some(from), Some(until)) =
        (instants.get(instants.len() / 4), instants.get(instants.len() * 3 / 4))
    else {
        return 0.0;
    };
    let inside = |(sent, ended): &(i64, i64)| (*ended.min(until) - *sent.max(from)).max(0) as f64;
    spans.iter().map(inside).sum::<f64>() / ((until - from).max(1) as f64)
}
