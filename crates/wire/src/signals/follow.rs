//! Series of one exporter over its scrapes: levels as they were told, and what
//! counters and histograms took in from one scrape to the next.

use std::collections::BTreeMap;

use measure::At;
use measure::signal::{Role, Taken};

use super::Table;
use super::way::Pick;
use crate::prometheus::{Exposition, Histogram, Labels, Part};

/// Labels that name a model.
const MODEL_LABELS: &[&str] = &["model_name", "model"];

/// What tells an instance from others of its exporter; empty where nothing does.
pub(super) type Rank = String;

/// The scrapes of one exporter, and between which of them the window lies.
#[derive(Clone)]
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) scrapes: Vec<(At, &'a Exposition)>,
    /// The last scrape that is not after the window's beginning, or the first one.
    pub(super) begin: usize,
    /// The first scrape that is not before its end, or the last one.
    pub(super) end: usize,
    /// The model whose series are meant, where there are others too.
    pub(super) model: Option<&'a str>,
}

/// What a counter or a histogram took in.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Count and sum from the scrape before to each one. A counter has a count.
    pub(super) steps: Vec<(f64, f64)>,
    /// All of it over the window.
    pub(super) taken: Taken,
    /// The count as it was last told: since the process began.
    pub(super) since_start: f64,
    /// Scrapes before which it fell, so that its process began anew.
    pub(super) restarts: Vec<usize>,
    /// Whether bounds of the histogram contradict each other.
    pub(super) is_not_cumulative: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        name: &'a str,
        scrapes: Vec<(At, &'a Exposition)>,
        (from, until): (At, At),
    ) -> Self {
        let begin = scrapes.iter().rposition(|(at, _)| *at <= from).unwrap_or(0);
        let last = scrapes.len().saturating_sub(1);
        let end = scrapes.iter().position(|(at, _)| *at >= until).unwrap_or(last).max(begin);
        Self { name, scrapes, begin, end, model: None }
    }

    /// The models whose series the families of a table have, in its last scrape.
    pub(super) fn models(&self, table: &Table) -> Vec<&'a str> {
        let mut models = Vec::new();
        let Some((_, exposition)) = self.scrapes.last() else { return models };
        let of_table = exposition.families().filter(|family| table.has(family.name()));
        for sample in of_table.flat_map(|family| family.samples()) {
            let model = MODEL_LABELS.iter().find_map(|label| sample.labels.get(label));
            // An engine that does not know its model's name says so by this word.
            let named = model.filter(|model| !model.is_empty() && *model != "undefined");
            if let Some(model) = named
                && !models.contains(&model)
            {
                models.push(model);
            }
        }
        models
    }

    fn takes(&self, pick: &Pick, labels: &Labels) -> bool {
        let model = || MODEL_LABELS.iter().find_map(|label| labels.get(label));
        pick.takes(labels)
            && self.model.is_none_or(|wanted| model().is_none_or(|model| model == wanted))
    }

    /// Whether the series of a pick lack only because nothing was counted yet:
    /// the family has others.
    pub(super) fn has_other_series(&self, pick: &Pick) -> bool {
        let last = self.scrapes.get(self.end);
        let family = last.and_then(|(_, exposition)| exposition.family(pick.family));
        pick.only.is_some() && family.is_some_and(|family| family.samples().next().is_some())
    }

    /// How many series of a pick the last scrape of the window has.
    pub(super) fn series_at_end(&self, pick: &Pick) -> usize {
        let last = self.scrapes.get(self.end);
        let family = last.and_then(|(_, exposition)| exposition.family(pick.family));
        let samples = family.into_iter().flat_map(|family| family.samples());
        samples.filter(|sample| self.takes(pick, sample.labels)).count()
    }

    /// The instances that a family tells of, each with the same growth.
    pub(super) fn ranks(
        &self,
        table: &Table,
        family: &str,
        growth: &Growth,
    ) -> BTreeMap<Rank, Growth> {
        let last = self.scrapes.get(self.end);
        let family = last.and_then(|(_, exposition)| exposition.family(family));
        let samples = family.into_iter().flat_map(|family| family.samples());
        samples.map(|sample| (rank(sample.labels, table.instances), growth.clone())).collect()
    }

    /// The numbers in labels of a family, multiplied, of each instance.
    pub(super) fn label_values(
        &self,
        table: &Table,
        family: &str,
        labels: &[&str],
    ) -> BTreeMap<Rank, f64> {
        let last = self.scrapes.get(self.end);
        let family = last.and_then(|(_, exposition)| exposition.family(family));
        let samples = family.into_iter().flat_map(|family| family.samples());
        let value = |of: &Labels| -> Option<f64> {
            labels.iter().map(|label| of.get(label)?.parse::<f64>().ok()).product()
        };
        samples
            .filter_map(|sample| {
                Some((rank(sample.labels, table.instances), value(sample.labels)?))
            })
            .filter(|(_, value)| value.is_finite() && *value > 0.0)
            .collect()
    }

    /// Labels of a family as settings: names and values.
    pub(super) fn settings(&self, family: &str) -> Vec<(String, String)> {
        let last = self.scrapes.get(self.end);
        let family = last.and_then(|(_, exposition)| exposition.family(family));
        let sample = family.and_then(|family| family.samples().next());
        let labels = sample.into_iter().flat_map(|sample| sample.labels.iter());
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// What an instance is there for, where a label of its series says it.
    pub(super) fn role(&self, table: &Table, of: &Rank) -> Role {
        let Some(label) = table.role_label else { return table.role };
        let last = self.scrapes.get(self.end);
        let families = last.into_iter().flat_map(|(_, exposition)| exposition.families());
        let samples = families.flat_map(|family| family.samples());
        let mut told = samples
            .filter(|sample| rank(sample.labels, table.instances) == *of)
            .filter_map(|sample| sample.labels.get(label));
        match told.next() {
            Some("prefill") => Role::Prefill,
            Some("decode") => Role::Decode,
            _ => table.role,
        }
    }

    /// Levels of each instance at each scrape.
    pub(super) fn levels(&self, table: &Table, pick: &Pick) -> BTreeMap<Rank, Vec<Option<f64>>> {
        let mut levels: BTreeMap<Rank, Vec<Option<f64>>> = BTreeMap::new();
        for (place, (_, exposition)) in self.scrapes.iter().enumerate() {
            let Some(family) = exposition.family(pick.family) else { continue };
            let mut ranks: BTreeMap<(Rank, Rank), f64> = BTreeMap::new();
            for sample in family.samples().filter(|sample| self.takes(pick, sample.labels)) {
                if sample.part == Part::Value && !sample.value.is_nan() {
                    let key =
                        (rank(sample.labels, table.instances), rank(sample.labels, table.alike));
                    *ranks.entry(key).or_default() += sample.value;
                }
            }
            for ((instance, _), value) in ranks {
                let of_instance = levels.entry(instance).or_default();
                of_instance.resize(self.scrapes.len(), None);
                let told = &mut of_instance[place];
                *told = Some(told.map_or(value, |other| other.max(value)));
            }
        }
        levels
    }

    /// What series of each instance took in.
    pub(super) fn growths(&self, table: &Table, pick: &Pick) -> BTreeMap<Rank, Growth> {
        let mut series: BTreeMap<&Labels, Vec<(usize, Histogram)>> = BTreeMap::new();
        for (place, (_, exposition)) in self.scrapes.iter().enumerate() {
            let Some(family) = exposition.family(pick.family) else { continue };
            for (labels, told) in Histogram::all_of(family) {
                if self.takes(pick, labels) {
                    series.entry(labels).or_default().push((place, told));
                }
            }
        }
        let mut ranks: BTreeMap<(Rank, Rank), Growth> = BTreeMap::new();
        for (labels, told) in series {
            let key = (rank(labels, table.instances), rank(labels, table.alike));
            let growth = self.growth(table, &told);
            ranks.entry(key).and_modify(|all| all.add(&growth)).or_insert(growth);
        }
        let mut instances: BTreeMap<Rank, Growth> = BTreeMap::new();
        for ((instance, _), growth) in ranks {
            // Ranks that tell the same: the one that tells most is the most whole.
            let kept = instances.entry(instance).or_insert_with(|| growth.clone());
            if growth.taken.count > kept.taken.count {
                *kept = growth;
            }
        }
        instances
    }

    fn growth(&self, table: &Table, told: &[(usize, Histogram)]) -> Growth {
        let mut growth =
            Growth { steps: vec![(0.0, 0.0); self.scrapes.len()], ..Growth::default() };
        let mut buckets = Buckets::default();
        let mut before: Option<&Histogram> = None;
        for (place, now) in told {
            let new = match before {
                Some(then) if now.fell_since(then) => {
                    growth.restarts.push(*place);
                    buckets.restart();
                    Some(now.clone())
                }
                Some(then) => Some(now.since(then)),
                // A counter that was not there while others were began at 0.
                None => self.told_before(table, *place).then(|| now.clone()),
            };
            if let Some(new) = new {
                growth.steps[*place] = (new.count().unwrap_or(0.0), new.sum().unwrap_or(0.0));
            } else {
                buckets.start(now);
            }
            if *place == self.begin {
                buckets.start(now);
            } else if (self.begin..=self.end).contains(place) {
                buckets.take(now);
            }
            before = Some(now);
        }
        growth.since_start = before.and_then(Histogram::count).unwrap_or(0.0);
        let window = growth.steps.iter().take(self.end + 1).skip(self.begin + 1);
        let (count, sum) = window.fold((0.0, 0.0), |all, step| (all.0 + step.0, all.1 + step.1));
        let (buckets, is_cumulative) = buckets.done();
        growth.taken = Taken { count, sum, buckets };
        growth.is_not_cumulative = !is_cumulative;
        growth
    }

    /// Whether the scrape before this one had metrics of the table.
    fn told_before(&self, table: &Table, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.scrapes.get(before));
        before.is_some_and(|(_, exposition)| table.is_told_by(exposition))
    }
}

impl Growth {
    /// What it took in beyond another one.
    pub(super) fn less(mut self, part: &Self) -> Self {
        for (one, part) in self.steps.iter_mut().zip(&part.steps) {
            *one = ((one.0 - part.0).max(0.0), 0.0);
        }
        let count = (self.taken.count - part.taken.count).max(0.0);
        self.taken = Taken { count, ..Taken::default() };
        self.restarts.extend_from_slice(&part.restarts);
        self
    }

    /// Takes what another series of the same instance took in.
    pub(super) fn add(&mut self, other: &Self) {
        for (one, other) in self.steps.iter_mut().zip(&other.steps) {
            *one = (one.0 + other.0, one.1 + other.1);
        }
        self.taken = together(&self.taken, &other.taken);
        self.since_start += other.since_start;
        self.restarts.extend_from_slice(&other.restarts);
        self.is_not_cumulative |= other.is_not_cumulative;
    }
}

/// Two distributions as one, over the bounds that both have.
pub(super) fn together(one: &Taken, other: &Taken) -> Taken {
    let under = |bound: f64| other.buckets.iter().find(|(also, _)| *also == bound);
    let buckets = one.buckets.iter();
    Taken {
        count: one.count + other.count,
        sum: one.sum + other.sum,
        buckets: buckets
            .filter_map(|(bound, count)| Some((*bound, count + under(*bound)?.1)))
            .collect(),
    }
}

/// What the buckets of one histogram took in since the window began. They may
/// be missing from scrapes in between.
#[derive(Default)]
struct Buckets {
    since: Since,
    taken: Option<Histogram>,
}

/// What the next buckets are compared with.
#[derive(Default)]
enum Since {
    /// Nothing: it began at 0 in the window, or anew.
    #[default]
    Zero,
    /// What was told last.
    Told(Histogram),
    /// The window's beginning has none, so nothing can be said of it.
    Unknown,
}

impl Buckets {
    fn start(&mut self, now: &Histogram) {
        let is_known = now.has_buckets();
        self.taken = is_known.then(|| now.since(now));
        self.since = if is_known { Since::Told(now.clone()) } else { Since::Unknown };
    }

    fn restart(&mut self) {
        if matches!(self.since, Since::Told(_)) {
            self.since = Since::Zero;
        }
    }

    fn take(&mut self, now: &Histogram) {
        let new = match &self.since {
            _ if !now.has_buckets() => return,
            Since::Unknown => return,
            Since::Zero => now.clone(),
            Since::Told(before) => now.since(before),
        };
        self.taken = Some(self.taken.as_ref().map_or(new.clone(), |taken| taken.with(&new)));
        self.since = Since::Told(now.clone());
    }

    /// The buckets, and whether they do not contradict each other.
    fn done(self) -> (Vec<(f64, f64)>, bool) {
        let taken = self.taken.unwrap_or_default();
        match taken.buckets() {
            Ok(buckets) => (buckets.to_vec(), true),
            Err(_) => (Vec::new(), false),
        }
    }
}

fn rank(labels: &Labels, of: &[&str]) -> Rank {
    let values: Vec<&str> = of.iter().filter_map(|label| labels.get(label)).collect();
    values.join("/")
}
