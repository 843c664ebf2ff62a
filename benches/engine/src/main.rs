//! `cargo run --release -p engine -- --bench` tells how many requests the engine
//! model serves in a second of one core: prompts of 128 tokens, answers of 64,
//! at most 256 at a time. A word after it picks some of the benchmarks.

use divan::Bencher;
use divan::counter::ItemsCount;
use measure::{Outcome, PerSecond, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Ask, Audience, Cluster, Content, Ended, Settings};
use workload::arrival::Pace;
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Load, Prefixes, Routing, Stop, Think};

const REQUESTS: u32 = 100_000;
const INPUT: u32 = 128;
const OUTPUT: u32 = 64;
const AT_A_TIME: u32 = 256;

fn main() {
    divan::main();
}

/// What is set, besides the seats.
const ENGINES: &[&str] = &[
    "default",
    "async_scheduling=false",
    "enable_prefix_caching=false",
    "num_speculative_tokens=3",
];

fn cluster(setting: &str) -> Cluster {
    let mut settings = Settings { max_num_seqs: AT_A_TIME, ..Settings::default() };
    if setting != "default" {
        settings.set(setting).expect("a setting of the table");
    }
    Cluster::new(&settings, 1).expect("settings that go together")
}

/// Hears nothing but how many have ended.
#[derive(Default)]
struct Count(u64);

impl Audience for Count {
    fn tokens(&mut self, _: sim::Choice, _: u64, _: u32) {}

    fn ended(&mut self, _: usize, _: sim::Choice, _: &Ended, _: u64) {
        self.0 += 1;
    }
}

/// The engine by itself: each request that ends makes room for the next.
#[divan::bench(args = ENGINES, sample_count = 5, sample_size = 1)]
fn cluster_alone(bencher: Bencher<'_, '_>, setting: &str) {
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        let mut cluster = cluster(setting);
        let mut count = Count::default();
        let (mut sent, mut now_ns) = (0, 0);
        loop {
            while sent < REQUESTS.into() && sent < count.0 + u64::from(AT_A_TIME) {
                let prompt = Content::own(sent, INPUT);
                cluster.submit(
                    now_ns,
                    Ask {
                        id: sent,
                        prompt,
                        answer: !sent,
                        choices: 1,
                        limit: OUTPUT,
                        natural: None,
                        priority: 0,
                        adapter: None,
                        session: sent,
                        computed: 0,
                    },
                );
                sent += 1;
            }
            let Some(next_ns) = cluster.next_ns() else { break };
            now_ns = next_ns;
            cluster.advance(now_ns, &mut count);
        }
        assert_eq!(count.0, REQUESTS.into());
    });
}

struct Records(u32);

impl Observer for Records {
    fn ended(&mut self, record: Record) {
        self.counted(&record, &[]);
    }

    fn counted(&mut self, record: &Record, _gaps: &[(u32, u32)]) {
        assert_eq!(record.outcome, Outcome::Ok);
        self.0 += 1;
    }
}

fn schedule(load: Load) -> Schedule {
    let spec = Spec {
        seed: 0,
        load,
        stop: Stop::Count(REQUESTS),
        prompts: PromptSource::Synthetic { input: Lengths::fixed(INPUT).expect("above 0") },
        pictures: None,
        batch: Batch::One,
        output: OutputLength::Drawn(Lengths::fixed(OUTPUT).expect("above 0")),
        output_forced: true,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        prefixes: Prefixes::NONE,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    };
    Schedule::draw(spec).expect("a plan that can be drawn").0
}

fn through_the_client(bencher: Bencher<'_, '_>, load: Load) {
    let schedule = schedule(load);
    let around = Surroundings {
        one_way: Span::from_us(100),
        request_timeout: Span::from_ms(600_000),
        idle_timeout: Span::from_ms(60_000),
        is_chat: true,
        keep_events: false,
        default_output: OUTPUT,
        choices: 1,
    };
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        let mut records = Records(0);
        client::run(&schedule, RunNonce::new(1), cluster("default"), around, &mut records);
        assert_eq!(records.0, REQUESTS);
    });
}

/// A schedule and records, as whole runs have them.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn closed_loop(bencher: Bencher<'_, '_>) {
    through_the_client(bencher, Load::Closed { users: AT_A_TIME, think: Think::Fixed(Span::ZERO) });
}

/// The same by the clock, at a rate that about half the seats can take.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn open_loop(bencher: Bencher<'_, '_>) {
    through_the_client(bencher, Load::Open { pace: Pace::flat(PerSecond::new(150.0), 1.0) });
}
