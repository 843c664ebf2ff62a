//! What a server on the engine model tells in virtual time.

use fake::telemetry::{Scraped, Scraper};
use measure::{At, Outcome, PerSecond, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, Settings};
use wire::exposition::Profile;
use workload::arrival::Pace;
use workload::choice::{Assignment, Choice};
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Load, ModelKind, Prefixes, Stop};

#[derive(Default)]
struct Keep(Vec<Record>);

impl Observer for Keep {
    fn ended(&mut self, record: Record) {
        self.0.push(record);
    }
}

fn spec(rate: f64, count: u32) -> Spec {
    Spec {
        seed: 3,
        load: Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) },
        stop: Stop::Count(count),
        prompts: PromptSource::Synthetic { input: Lengths::fixed(300).unwrap() },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes { shared_tokens: 160, ..Prefixes::NONE },
        output: OutputLength::Drawn(Lengths::fixed(40).unwrap()),
        output_forced: true,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

fn around() -> Surroundings {
    Surroundings {
        one_way: Span::from_ms(5),
        request_timeout: Span::from_ms(600_000),
        idle_timeout: Span::from_ms(60_000),
        is_chat: true,
        keep_events: true,
        default_output: 128,
        choices: 1,
    }
}

fn with(sets: &[&str]) -> Settings {
    let mut settings = Settings::default();
    sets.iter().for_each(|set| settings.set(set).unwrap());
    settings
}

/// The records of a run in the order of their ends, and its scrapes.
fn scraped(
    spec: Spec,
    settings: &Settings,
    around: Surroundings,
) -> (Vec<Record>, Vec<(At, String)>) {
    let mut kept = Keep::default();
    let mut texts = Vec::new();
    let scraper =
        Scraper::new(settings, Profile::Vllm, "m".to_owned(), Span::from_ms(1_000), |at, text| {
            texts.push((at, text))
        });
    let mut observed = Scraped { observer: &mut kept, scraper: scraper.unwrap() };
    let cluster = Cluster::new(settings, spec.seed).unwrap();
    let schedule = Schedule::draw(spec).unwrap().0;
    client::run(&schedule, RunNonce::new(1), cluster, around, &mut observed);
    drop(observed);
    (kept.0, texts)
}

/// The sum of all series of this name with these labels.
fn value(text: &str, name: &str, label: &str) -> f64 {
    let lines = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('{')) && line.contains(label)
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn scrapes_come_before_the_run_each_second_and_after_it() {
    let (records, texts) = scraped(spec(20.0, 100), &Settings::default(), around());
    let instants: Vec<i64> = texts.iter().map(|(at, _)| at.us()).collect();
    let last = records.iter().filter_map(|record| record.stamps.ended_at).max().unwrap().us();
    assert_eq!(instants[0], 0);
    let (after, during) = instants.split_last().unwrap();
    assert!(during.iter().enumerate().all(|(second, at)| *at == second as i64 * 1_000_000));
    assert!(*after > last && after - last < 10_000, "{after} and {last}");
    assert_eq!(during.len() as i64, last / 1_000_000 + 1, "none long after the end");
    assert_eq!(value(&texts[0].1, "vllm:generation_tokens_total", ""), 0.0);
    assert!(value(&texts[2].1, "vllm:num_requests_running", "") > 0.0);
}

#[test]
fn the_last_scrape_has_counted_what_the_client_saw() {
    let (records, texts) = scraped(spec(20.0, 100), &with(&["max_num_seqs=4"]), around());
    let text = &texts.last().unwrap().1;
    let of = |name: &str| value(text, name, "");
    assert_eq!(of("vllm:request_success_total"), 100.0);
    assert_eq!(of("vllm:generation_tokens_total"), 100.0 * 40.0);
    let counts = records.iter().map(|record| record.answer.counts);
    let prompts: u32 = counts.clone().map(|counts| counts.prompt.unwrap().get()).sum();
    let cached: u32 = counts.map(|counts| counts.cached.unwrap().get()).sum();
    assert!(cached > 0);
    assert_eq!(of("vllm:prompt_tokens_total"), f64::from(prompts));
    assert_eq!(of("vllm:prompt_tokens_cached_total"), f64::from(cached));
    let timing = |name: &str| -> f64 {
        let timings = records.iter().flat_map(|record| &record.answer.server_timings);
        timings.filter(|(known, _)| known == name).map(|(_, ms)| ms / 1e3).sum()
    };
    let queue_s = of("vllm:request_queue_time_seconds_sum");
    assert!((timing("queue_time_ms") - queue_s).abs() < 1e-6, "both count from the queue");
    let prefill_s = of("vllm:request_prefill_time_seconds_sum");
    assert!((timing("time_to_first_token_ms") - prefill_s).abs() < 1e-6);
    assert!(queue_s > prefill_s, "four seats make a queue");
    assert_eq!((of("vllm:num_requests_running"), of("vllm:num_requests_waiting")), (0.0, 0.0));
}

#[test]
fn each_answer_counts_as_a_request_in_virtual_time_too() {
    let three = Surroundings { choices: 3, ..around() };
    let (records, texts) = scraped(spec(20.0, 40), &Settings::default(), three);
    let text = &texts.last().unwrap().1;
    let of = |name: &str| value(text, name, "");
    assert_eq!(of("vllm:request_success_total"), 120.0);
    assert_eq!(of("vllm:generation_tokens_total"), 120.0 * 40.0);
    let prompts: u32 = records.iter().map(|one| one.answer.counts.prompt.unwrap().get()).sum();
    assert_eq!(of("vllm:prompt_tokens_total"), 3.0 * f64::from(prompts));
    assert_eq!(of("vllm:request_params_n_count"), 40.0);
    assert_eq!(of("vllm:request_params_n_sum"), 120.0);
    assert_eq!(of("vllm:request_max_num_generation_tokens_sum"), 40.0 * 40.0);
}

#[test]
fn looking_changes_nothing() {
    let settings = with(&["num_gpu_blocks_override=200", "max_model_len=2048"]);
    let (records, _) = scraped(spec(30.0, 80), &settings, around());
    let mut alone = Keep::default();
    let schedule = Schedule::draw(spec(30.0, 80)).unwrap().0;
    let cluster = Cluster::new(&settings, 3).unwrap();
    client::run(&schedule, RunNonce::new(1), cluster, around(), &mut alone);
    assert_eq!(records, alone.0);
}

#[test]
fn those_who_give_up_are_counted_as_aborted() {
    let short = Surroundings { request_timeout: Span::from_ms(400), ..around() };
    let (records, texts) = scraped(spec(40.0, 60), &with(&["max_num_seqs=2"]), short);
    let text = &texts.last().unwrap().1;
    let failed = records.iter().filter(|record| record.outcome != Outcome::Ok).count();
    assert!(failed > 10, "{failed}");
    let of = |reason: &str| value(text, "vllm:request_success_total", reason);
    assert_eq!(of("abort") + of("stop") + of("length"), 60.0);
    // Some were done when their client left.
    assert!(of("abort") <= failed as f64 && of("abort") > 0.5 * failed as f64, "{text}");
}

#[test]
fn those_without_a_place_for_their_adapter_are_deferred() {
    let names = ["a", "b", "c"].map(|name| (name.to_owned(), 1.0)).to_vec();
    let choice = Choice::new(names, Assignment::Random).unwrap();
    let routing = Routing { models: Some((ModelKind::Adapter, choice)), ..Routing::default() };
    let spec = Spec { routing, ..spec(60.0, 200) };
    let (_, texts) = scraped(spec, &with(&["max_loras=1"]), around());
    let most = |reason: &str| {
        let of = |text: &str| value(text, "vllm:num_requests_waiting_by_reason", reason);
        texts.iter().map(|(_, text)| of(text)).fold(0.0, f64::max)
    };
    assert!(most("deferred") > 0.0, "{} for capacity", most("capacity"));
    assert!(texts.iter().all(|(_, text)| {
        let by_reason = value(text, "vllm:num_requests_waiting_by_reason", "");
        by_reason == value(text, "vllm:num_requests_waiting", "")
    }));
}
