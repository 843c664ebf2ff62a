//! Gaps between tokens as a mixture: undisturbed steps, steps that hold a
//! prompt too, stalls, and what a buffer makes of them.

use measure::quantile;

/// A gap below this share of its stream's mean came with the token before it.
const TOGETHER: f64 = 0.1;
/// From so many times the undisturbed gap on a step was slow.
const SLOW: f64 = 1.5;
/// And from so many times on it is a stall.
const STALLED: f64 = 10.0;
/// Gaps of a stream below which its own undisturbed gap is not known.
const FEWEST: usize = 8;

/// The gaps of one request, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Which request.
    pub owner: usize,
    /// Length in ms and end in seconds of the run's clock, each.
    pub gaps: Vec<(f64, f64)>,
}

/// A request that came to its first token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newcomer {
    /// Which request.
    pub owner: usize,
    /// About when its prompt began to be computed, seconds.
    pub from_s: f64,
    /// When its first token arrived, seconds.
    pub first_s: f64,
}

/// Gaps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Their share of all gaps.
    pub share: f64,
    /// What they last beyond undisturbed ones, as a share of the time of all.
    pub excess: f64,
}

/// The mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mixture {
    /// Gaps that were looked at.
    pub n: usize,
    /// Their mean, ms.
    pub mean_ms: f64,
    /// The quickest steps: the 5th percentile of what no buffer joined, ms.
    pub floor_ms: f64,
    /// The undisturbed gap of a typical stream, ms.
    pub base_ms: f64,
    /// Share of tokens that came together with the one before.
    pub together: f64,
    /// Mean distance between the deliveries of a stream, ms.
    pub delivery_ms: f64,
    /// Slow gaps: 1.5 to 10 times the undisturbed one.
    pub slow: Part,
    /// Stalls: 10 times and more.
    pub stalled: Part,
    /// Of slow gaps and stalls, by time, the share in which another request's
    /// prompt was computed.
    pub slow_with_newcomer: Option<f64>,
    /// The same share of undisturbed gaps.
    pub base_with_newcomer: Option<f64>,
    /// Share of stalls in which other streams went on.
    pub alone: Option<f64>,
}

impl Mixture {
    /// What slow gaps and stalls take beyond undisturbed ones, as a share of the
    /// time of all gaps.
    pub fn excess(&self) -> f64 {
        self.slow.excess + self.stalled.excess
    }
}

struct Gap {
    owner: usize,
    ms: f64,
    end_s: f64,
    base_ms: f64,
}

impl Gap {
    fn start_s(&self) -> f64 {
        self.end_s - self.ms / 1e3
    }

    fn over_ms(&self) -> f64 {
        (self.ms - self.base_ms).max(0.0)
    }

    fn is_slow(&self) -> bool {
        self.ms >= SLOW * self.base_ms && self.ms >= self.base_ms + 1.0
    }
}

/// The mixture of the gaps of all streams; none without gaps.
pub fn mixture(streams: &[Stream], newcomers: &[Newcomer]) -> Option<Mixture> {
    let all: Vec<f64> = streams.iter().flat_map(|stream| &stream.gaps).map(|gap| gap.0).collect();
    let total: f64 = all.iter().sum();
    if all.is_empty() || total <= 0.0 {
        return None;
    }
    let mean_ms = total / all.len() as f64;
    let (apart, together) = separate(streams, mean_ms);
    let mut sorted: Vec<f64> = apart.iter().map(|gap| gap.ms).collect();
    sorted.sort_by(f64::total_cmp);
    let mut bases: Vec<f64> = apart.iter().map(|gap| gap.base_ms).collect();
    bases.sort_by(f64::total_cmp);
    let part = |of: &dyn Fn(&Gap) -> bool| Part {
        share: apart.iter().filter(|gap| of(gap)).count() as f64 / all.len() as f64,
        excess: apart.iter().filter(|gap| of(gap)).map(Gap::over_ms).sum::<f64>() / total,
    };
    let stalled = |gap: &Gap| gap.is_slow() && gap.ms >= STALLED * gap.base_ms;
    let joined = Joined::of(newcomers);
    Some(Mixture {
        n: all.len(),
        mean_ms,
        floor_ms: quantile::linear(&sorted, 0.05)?,
        base_ms: quantile::linear(&bases, 0.5)?,
        together: together as f64 / all.len() as f64,
        delivery_ms: total / apart.len() as f64,
        slow: part(&|gap| gap.is_slow() && !stalled(gap)),
        stalled: part(&stalled),
        slow_with_newcomer: share_by_time(
            apart.iter().filter(|gap| gap.is_slow()),
            |gap| joined.has(gap),
            Gap::over_ms,
        ),
        base_with_newcomer: share_by_time(
            apart.iter().filter(|gap| !gap.is_slow()),
            |gap| joined.has(gap),
            |_| 1.0,
        ),
        alone: alone(streams, apart.iter().filter(|gap| stalled(gap))),
    })
}

/// Gaps that no buffer joined, each with its stream's undisturbed one, and the
/// number of those that one did.
fn separate(streams: &[Stream], mean_ms: f64) -> (Vec<Gap>, usize) {
    let (mut apart, mut together) = (Vec::new(), 0);
    let mut pooled: Vec<f64> = streams
        .iter()
        .flat_map(|stream| &stream.gaps)
        .map(|gap| gap.0)
        .filter(|ms| *ms >= TOGETHER * mean_ms)
        .collect();
    pooled.sort_by(f64::total_cmp);
    let usual = quantile::linear(&pooled, 0.25).unwrap_or(mean_ms);
    for stream in streams {
        let own: f64 = stream.gaps.iter().map(|gap| gap.0).sum();
        let least = TOGETHER * own / stream.gaps.len().max(1) as f64;
        let mut kept: Vec<f64> =
            stream.gaps.iter().map(|gap| gap.0).filter(|ms| *ms >= least).collect();
        together += stream.gaps.len() - kept.len();
        kept.sort_by(f64::total_cmp);
        let base_ms = match quantile::linear(&kept, 0.25) {
            Some(base) if kept.len() >= FEWEST => base,
            _ => usual,
        };
        let of_it = stream.gaps.iter().filter(|gap| gap.0 >= least);
        apart.extend(of_it.map(|(ms, end_s)| Gap {
            owner: stream.owner,
            ms: *ms,
            end_s: *end_s,
            base_ms,
        }));
    }
    (apart, together)
}

/// Parts that a run is cut into by [`steps`].
const PARTS: usize = 24;

/// The quicker gaps of each part of the run: the middle of the part in seconds
/// and the lower quartile of what no buffer joined, ms. Parts with few gaps are
/// left out.
pub fn steps(streams: &[Stream]) -> Vec<(f64, f64)> {
    let all = || streams.iter().flat_map(|stream| &stream.gaps);
    let count = all().count();
    let mean_ms = all().map(|gap| gap.0).sum::<f64>() / count.max(1) as f64;
    let (from, until) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), gap| {
        (low.min(gap.1), high.max(gap.1))
    });
    let width = (until - from) / PARTS as f64;
    if count < 20 * PARTS || width <= 0.0 {
        return Vec::new();
    }
    let mut parts: Vec<Vec<f64>> = vec![Vec::new(); PARTS];
    for (ms, at_s) in all().filter(|gap| gap.0 >= TOGETHER * mean_ms) {
        parts[(((at_s - from) / width) as usize).min(PARTS - 1)].push(*ms);
    }
    let levels = parts.into_iter().enumerate().filter(|(_, part)| part.len() >= FEWEST);
    levels
        .filter_map(|(place, mut part)| {
            part.sort_by(f64::total_cmp);
            Some((from + (place as f64 + 0.5) * width, quantile::linear(&part, 0.25)?))
        })
        .collect()
}

/// Newcomers in the order of their first tokens.
struct Joined {
    sorted: Vec<Newcomer>,
    longest_s: f64,
}

/// Half a millisecond lies between tokens of one step at a client.
const NEAR_S: f64 = 0.0005;

impl Joined {
    fn of(newcomers: &[Newcomer]) -> Self {
        let mut sorted = newcomers.to_vec();
        sorted.sort_by(|a, b| a.first_s.total_cmp(&b.first_s));
        let mut lengths: Vec<f64> = sorted.iter().map(|one| one.first_s - one.from_s).collect();
        lengths.sort_by(f64::total_cmp);
        let longest_s = quantile::linear(&lengths, 0.95).unwrap_or(0.0);
        Self { sorted, longest_s }
    }

    /// Whether some other request's prompt was computed during a gap.
    fn has(&self, gap: &Gap) -> bool {
        let start_s = gap.start_s() + NEAR_S;
        let from = self.sorted.partition_point(|one| one.first_s < start_s);
        self.sorted[from..]
            .iter()
            .take_while(|one| one.first_s <= gap.end_s + self.longest_s + NEAR_S)
            .any(|one| one.owner != gap.owner && one.from_s < gap.end_s - NEAR_S)
    }
}

fn share_by_time<'g>(
    gaps: impl Iterator<Item = &'g Gap>,
    is: impl Fn(&Gap) -> bool,
    weight: impl Fn(&Gap) -> f64,
) -> Option<f64> {
    let (mut of_it, mut all) = (0.0, 0.0);
    for gap in gaps {
        let own = weight(gap);
        all += own;
        of_it += if is(gap) { own } else { 0.0 };
    }
    (all > 0.0).then(|| of_it / all)
}

/// Share of gaps during which other streams got three tokens or more.
fn alone<'g>(streams: &[Stream], gaps: impl Iterator<Item = &'g Gap>) -> Option<f64> {
    let mut arrivals: Vec<f64> =
        streams.iter().flat_map(|stream| &stream.gaps).map(|gap| gap.1).collect();
    arrivals.sort_by(f64::total_cmp);
    let (mut alone, mut all) = (0usize, 0usize);
    for gap in gaps {
        let margin_s = gap.ms / 1e4;
        let from = arrivals.partition_point(|at| *at < gap.start_s() + margin_s);
        let until = arrivals.partition_point(|at| *at < gap.end_s - margin_s);
        all += 1;
        alone += usize::from(until.saturating_sub(from) >= 3);
    }
    (all > 0).then(|| alone as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that begins at `from_s` with these gaps in ms.
    fn stream(owner: usize, from_s: f64, gaps_ms: &[f64]) -> Stream {
        let mut end_s = from_s;
        let gaps = gaps_ms.iter().map(|ms| {
            end_s += ms / 1e3;
            (*ms, end_s)
        });
        Stream { owner, gaps: gaps.collect() }
    }

    #[test]
    fn the_measured_case_of_four_long_prompts_is_slow_steps_with_newcomers() {
        // D6 of the rule base: four of 300 gaps last 638 ms, others 3.4 ms.
        let mut gaps = vec![3.4; 300];
        for place in [50, 110, 170, 230] {
            gaps[place] = 638.0;
        }
        let streams: Vec<Stream> = (0..4).map(|owner| stream(owner, 1.0, &gaps)).collect();
        let newcomers: Vec<Newcomer> = streams[0]
            .gaps
            .iter()
            .enumerate()
            .filter(|(_, gap)| gap.0 > 600.0)
            .map(|(place, gap)| Newcomer {
                owner: 100 + place,
                from_s: gap.1 - 0.6,
                first_s: gap.1,
            })
            .collect();
        let found = mixture(&streams, &newcomers).unwrap();
        assert_eq!((found.n, found.base_ms, found.floor_ms), (1_200, 3.4, 3.4));
        assert!((found.stalled.share - 4.0 / 300.0).abs() < 1e-9);
        assert!(found.stalled.excess > 0.6 && found.together == 0.0);
        assert_eq!((found.slow_with_newcomer, found.base_with_newcomer), (Some(1.0), Some(0.0)));
        assert_eq!(found.alone, Some(0.0), "all streams stood still");
    }

    #[test]
    fn a_stall_beside_streams_that_go_on_is_its_own() {
        let mut own = vec![10.0; 100];
        own[60] = 900.0;
        let streams = [stream(0, 0.0, &own), stream(1, 0.0, &[10.0; 190])];
        let found = mixture(&streams, &[]).unwrap();
        assert_eq!(found.alone, Some(1.0));
        assert_eq!(found.slow_with_newcomer, Some(0.0));
    }

    #[test]
    fn a_buffer_makes_tokens_come_together() {
        let gaps: Vec<f64> =
            (0..200).map(|place| if place % 10 == 9 { 100.0 } else { 0.0 }).collect();
        let found = mixture(&[stream(0, 0.0, &gaps)], &[]).unwrap();
        assert!((found.together - 0.9).abs() < 1e-9);
        assert_eq!((found.delivery_ms, found.mean_ms), (100.0, 10.0));
        assert_eq!(found.excess(), 0.0);
        assert_eq!(mixture(&[], &[]), None);
    }
}
