//! A deployment, a load and a client, as one value that can be played.

use measure::request::{Settings as MetricSettings, Timed};
use measure::statistics::Distribution;
use measure::{At, Record, Span};
use sim::client::{self, Given, Observer, Surroundings};
use sim::{Cluster, Settings, SettingsError, Totals};
use wire::exposition::Profile;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{
    Assignment, Batch, Choice, Lengths, Load, Mix, ModelKind, Part, Prefixes, Stop, Stream,
};

use crate::between::{self, Late, Proxy};

/// Prompts among the others that are far longer.
#[derive(Clone, Debug, PartialEq)]
pub struct Long {
    /// Their share of the requests.
    pub share: f64,
    /// Their prompts.
    pub input: Lengths,
    /// Their answers.
    pub output: Lengths,
}

/// Everything that a run comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Of every draw.
    pub seed: u64,
    /// The engines.
    pub settings: Settings,
    /// How requests come.
    pub load: Load,
    /// How many.
    pub requests: u32,
    /// Their prompts, besides what they begin with.
    pub input: Lengths,
    /// The limits of their answers.
    pub output: Lengths,
    /// Some that are far longer.
    pub long: Option<Long>,
    /// Where the model ends answers by itself: the mean as a share of the limit,
    /// lengths being exponential. Without it they are forced to the limit.
    pub natural: Option<f64>,
    /// What prompts begin with.
    pub prefixes: Prefixes,
    /// Adapters that requests ask for, each as often as the others; 0 for none.
    pub adapters: u32,
    /// From the client to the server, and back, each.
    pub one_way: Span,
    /// What holds answers up on their way.
    pub proxy: Option<Proxy>,
    /// What holds the client's sends up.
    pub late: Option<Late>,
    /// Share of the requests that something in front of the server refuses.
    pub refused: f64,
}

/// What a run gave.
#[derive(Debug, Default)]
pub struct Played {
    /// What the client saw, in the order of the schedule.
    pub records: Vec<Record>,
    /// What the server told, and when; empty where nobody asked.
    pub scrapes: Vec<(At, String)>,
    /// What the engines did, which no rule sees.
    pub totals: Totals,
}

/// How often the server is asked for its metrics.
pub const SCRAPE_INTERVAL: Span = Span::from_ms(1_000);

/// The model's name in answers and metrics.
pub const MODEL: &str = "served-model";

struct Keep(Vec<Record>);

impl Observer for Keep {
    fn ended(&mut self, record: Record) {
        self.0.push(record);
    }
}

impl World {
    /// The plan of its requests.
    pub fn plan(&self) -> Schedule {
        let spec = Spec {
            seed: self.seed,
            load: self.load.clone(),
            stop: Stop::Count(self.requests),
            prompts: self.prompts(),
            pictures: None,
            batch: Batch::One,
            prefixes: self.prefixes,
            output: OutputLength::Drawn(self.output.clone()),
            output_forced: self.natural.is_none(),
            cache: CacheRegime::Cold,
            nonce_in_own_prompts: false,
            labels: Vec::new(),
            routing: self.routing(),
            conversations: None,
        };
        Schedule::draw(spec).expect("worlds are drawn within the limits of schedules").0
    }

    fn routing(&self) -> Routing {
        let names = (0..self.adapters).map(|number| (format!("adapter-{number}"), 1.0)).collect();
        let models = (self.adapters > 0).then(|| {
            let choice = Choice::new(names, Assignment::Random).expect("names differ");
            (ModelKind::Adapter, choice)
        });
        Routing { models, ..Routing::default() }
    }

    fn prompts(&self) -> PromptSource {
        let usual = PromptSource::Synthetic { input: self.input.clone() };
        let Some(long) = &self.long else { return usual };
        let part = |name: &str, weight, prompts, output: &Lengths| Part {
            name: name.to_owned(),
            weight,
            prompts,
            pictures: None,
            prefixes: self.prefixes,
            batch: Batch::One,
            output: OutputLength::Drawn(output.clone()),
            output_forced: self.natural.is_none(),
            repeats: true,
            routing: self.routing(),
        };
        let longer = PromptSource::Synthetic { input: long.input.clone() };
        let parts = vec![
            part("usual", 1.0 - long.share, usual, &self.output),
            part("long", long.share, longer, &long.output),
        ];
        PromptSource::Mix(Box::new(Mix::new(parts).expect("two parts with names of their own")))
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings {
            one_way: self.one_way,
            request_timeout: Span::from_ms(600_000),
            idle_timeout: Span::from_ms(300_000),
            is_chat: true,
            keep_events: true,
            default_output: client::DEFAULT_OUTPUT,
            choices: 1,
        }
    }

    /// Plays it, without asking the server for anything.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn play(&self) -> Result<Played, SettingsError> {
        self.played(false)
    }

    /// Plays it with a look at the server's metrics each second.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn play_and_scrape(&self) -> Result<Played, SettingsError> {
        self.played(true)
    }

    fn played(&self, scrapes: bool) -> Result<Played, SettingsError> {
        let cluster = Cluster::new(&self.settings, self.seed)?;
        let drawn = self.plan();
        let sendings = between::sendings(self, &drawn);
        let schedule = match &sendings {
            Some(sendings) => between::replay(self, sendings).plan(),
            None => drawn,
        };
        let given = |index: u32| Given {
            natural: self.natural_length(&schedule, index),
            ..Given::default()
        };
        let mut kept = Keep(Vec::new());
        let mut played = Played::default();
        let nonce = RunNonce::new(self.seed);
        let around = self.surroundings();
        let after = if scrapes {
            let texts = &mut played.scrapes;
            let scraper = fake::telemetry::Scraper::new(
                &self.settings,
                Profile::Vllm,
                MODEL.to_owned(),
                SCRAPE_INTERVAL,
                |at, text| texts.push((at, text)),
            )?;
            let mut observed = fake::telemetry::Scraped { observer: &mut kept, scraper };
            client::run_given(&schedule, nonce, cluster, around, &given, &mut observed)
        } else {
            client::run_given(&schedule, nonce, cluster, around, &given, &mut kept)
        };
        played.totals = after.totals();
        played.records = kept.0;
        if let Some(sendings) = sendings {
            between::restore(self, &mut played, &sendings);
        }
        played.records.sort_by_key(|record| record.index);
        between::on_the_way(self, &after, &mut played.records);
        Ok(played)
    }

    fn natural_length(&self, schedule: &Schedule, index: u32) -> Option<u32> {
        let share = self.natural?;
        let limit = schedule.unit(index)?.first()?.max_output_tokens?;
        let drawn = Stream::numbered(self.seed, "natural end", index.into()).exponential();
        Some(((f64::from(limit.get()) * share * drawn) as u32).clamp(1, limit.get()))
    }

    /// Tokens of a usual prompt, with what it begins with, and of its answer.
    pub fn tokens(&self) -> (f64, f64) {
        let prompt = self.input.mean() + f64::from(self.prefixes.tokens());
        (prompt, self.output.mean())
    }

    /// Requests a second, where they come by the clock.
    pub fn rate(&self) -> Option<f64> {
        self.load.rate().map(measure::PerSecond::get)
    }
}

/// Figures by which worlds are held against each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Mean TTFT, ms.
    pub ttft_ms: f64,
    /// 95th percentile of TTFT, ms.
    pub ttft_p95_ms: f64,
    /// Mean TPOT, ms.
    pub tpot_ms: f64,
    /// Median gap between tokens, ms.
    pub icl_p50_ms: f64,
    /// 99th percentile of the gaps, ms.
    pub icl_p99_ms: f64,
    /// Mean E2EL, ms.
    pub e2el_ms: f64,
    /// 95th percentile of E2EL, ms.
    pub e2el_p95_ms: f64,
}

/// One of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Mean TTFT.
    Ttft,
    /// Its 95th percentile.
    TtftTail,
    /// Mean TPOT.
    Tpot,
    /// 99th percentile of gaps.
    GapTail,
    /// Mean E2EL.
    E2el,
    /// Its 95th percentile.
    E2elTail,
}

impl Figures {
    /// Of the requests that ended well.
    pub fn of(records: &[Record]) -> Self {
        let timed =
            |record| Timed::new(record, &measure::definition::GOODPUT, MetricSettings::default());
        let timed: Vec<Timed<'_>> = records.iter().map(timed).filter(|one| one.success).collect();
        let spread = |values: Vec<f64>| Distribution::of(values, Vec::new(), &[]);

        let gaps = spread(timed.iter().filter_map(|one| one.gaps().ok()).flatten().collect());
        let ttft = spread(timed.iter().filter_map(|one| one.ttft().ok()).collect());
        let tpot = spread(timed.iter().filter_map(|one| one.tpot().ok()).collect());
        let e2el = spread(timed.iter().filter_map(|one| one.e2el().ok()).collect());
        let of = |one: &Distribution, name: &str| one.figure(name).unwrap_or(0.0);
        Self {
            ttft_ms: of(&ttft, "mean"),
            ttft_p95_ms: of(&ttft, "p95"),
            tpot_ms: of(&tpot, "mean"),
            icl_p50_ms: of(&gaps, "p50"),
            icl_p99_ms: of(&gaps, "p99"),
            e2el_ms: of(&e2el, "mean"),
            e2el_p95_ms: of(&e2el, "p95"),
        }
    }

    /// One of them.
    pub const fn get(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Ttft => self.ttft_ms,
            Figure::TtftTail => self.ttft_p95_ms,
            Figure::Tpot => self.tpot_ms,
            Figure::GapTail => self.icl_p99_ms,
            Figure::E2el => self.e2el_ms,
            Figure::E2elTail => self.e2el_p95_ms,
        }
    }
}
