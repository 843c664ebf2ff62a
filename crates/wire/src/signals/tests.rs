use measure::At;
use measure::signal::{Kind, Reading, Signals};

use super::*;
use crate::exposition::{Facts, Http, Profile, Snapshot};
use crate::prometheus;

/// What a real vLLM 0.27.1 told, after a completion and a chat answer.
const CAPTURE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/captures/vllm_metrics.prom"));

fn testdata(file: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/");
    std::fs::read_to_string(format!("{path}{file}")).unwrap()
}

fn at_s(s: f64) -> At {
    At::from_us((s * 1e6) as i64)
}

/// Texts of one or more exporters at instants, over a window, seconds.
struct Seen<'a> {
    texts: &'a [(f64, &'a str, &'a str)],
    window: (f64, f64),
    model: Option<&'a str>,
}

impl Seen<'_> {
    fn read(&self) -> Signals {
        let told: Vec<Exposition> = self
            .texts
            .iter()
            .map(|(_, _, text)| prometheus::read(text.as_bytes()).unwrap())
            .collect();
        let scrapes: Vec<Scrape<'_>> = self
            .texts
            .iter()
            .zip(&told)
            .map(|((at, source, _), exposition)| Scrape { at: at_s(*at), source, exposition })
            .collect();
        read(&scrapes, at_s(self.window.0), at_s(self.window.1), self.model)
    }
}

/// Two texts of one exporter, ten seconds apart.
fn between(before: &str, after: &str) -> Signals {
    let texts = [(0.0, "a", before), (10.0, "a", after)];
    Seen { texts: &texts, window: (0.0, 10.0), model: None }.read()
}

fn close(value: Option<f64>, expected: f64) {
    let value = value.unwrap_or(f64::NAN);
    assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{value}, not {expected}");
}

fn notes(signals: &Signals) -> String {
    signals.notes.iter().map(|note| note.en.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn q01_vllm_before_and_after_the_renames() {
    for which in ["old", "new", "both"] {
        let text = testdata(&format!("cases/prom/Q01_vllm_{which}.txt"));
        // Its counts began at 0, as the text without them does.
        let samples = prometheus::read(text.as_bytes()).unwrap().tally().samples;
        assert_eq!(samples, if which == "both" { 8 } else { 5 });
        let before = "vllm:num_requests_running 0\n";
        let signals = between(before, &text);
        assert_eq!(signals.engine, Some("vllm"));
        let itl = signals.taken(Signal::ServerItl).unwrap();
        assert_eq!((itl.count, itl.mean()), (100.0, Some(0.02)), "{which}: {itl:?}");
        let texts = [(0.0, "a", text.as_str())];
        let once = Seen { texts: &texts, window: (0.0, 10.0), model: Some("m") }.read();
        assert_eq!(once.value(Signal::KvUsage), Some(0.25), "{which}: taken once where both are");
    }
}

#[test]
fn q04_counters_are_summed_and_ratios_are_not() {
    let text = testdata("cases/prom/Q04_dp4.txt");
    assert_eq!(prometheus::read(text.as_bytes()).unwrap().tally().samples, 12);
    let none = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 10\n";
    let signals = between(none, &text);
    assert_eq!(signals.increase(Signal::GeneratedTokens), Some(1000.0));
    let texts = [(0.0, "a", text.as_str()), (10.0, "a", text.as_str())];
    let steady = Seen { texts: &texts, window: (0.0, 10.0), model: None }.read();
    assert_eq!(steady.gauge(Signal::Running).map(|gauge| gauge.mean), Some(10.0));
    let kv = steady.gauge(Signal::KvUsage).unwrap();
    close(Some(kv.mean), 0.35);
    assert_eq!((kv.min, kv.max), (0.1, 0.8));
    let names: Vec<&str> = steady.instances.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a#0", "a#1", "a#2", "a#3"]);
    let of_last = &steady.instances[3].readings;
    assert_eq!(of_last[&Signal::KvUsage].value(), Some(0.8));
    assert_eq!(of_last[&Signal::GeneratedTokens], Reading::Counter(0.0));
}

#[test]
fn q10_tensorrt_llm_is_read_from_its_prometheus_address() {
    let text = testdata("cases/prom/Q10_trtllm_prom.txt").replace("e2e_", "trtllm_e2e_");
    let none = "trtllm_num_requests_running 0\n";
    let signals = between(none, &text);
    assert_eq!(signals.engine, Some("trtllm"));
    assert_eq!(signals.value(Signal::ServerE2el), Some(1.75));
}

#[test]
fn q11_llama_cpp_by_counters_and_not_by_averages_between_scrapes() {
    let first = testdata("cases/prom/Q11_llamacpp_1.txt");
    let second = testdata("cases/prom/Q11_llamacpp_2.txt");
    let signals = between(&first, &second);
    assert_eq!(signals.engine, Some("llamacpp"));
    assert_eq!(signals.rate(Signal::GeneratedTokens), Some(50.0));
    assert_eq!(signals.value(Signal::ServerItl), Some(0.02));
    let trap = llamacpp::TABLE.entry(Signal::GeneratedTokens).unwrap().trap.unwrap();
    assert!(trap.en.contains("since the last scrape by anyone"));
}

/// The counters of a case as two engines tell them.
fn of_case(input: &serde_json::Value, when: &str) -> String {
    let mut text = String::new();
    for (key, family) in [("queries", "queries"), ("hits", "hits")] {
        for (engine, count) in input[when][key].as_array().unwrap().iter().enumerate() {
            let labels = format!("{{engine=\"{engine}\",model_name=\"m\"}}");
            text += &format!("vllm:prefix_cache_{family}_total{labels} {count}\n");
        }
    }
    text
}

#[test]
fn l09_the_hit_rate_of_the_run_is_that_of_two_scrapes() {
    let text = testdata("cases/metrics/L09_warm_prefix_cache.json");
    let case: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (before, after) = (of_case(&case["input"], "before"), of_case(&case["input"], "after"));
    let signals = between(&before, &after);
    assert_eq!(signals.hit_rate(), case["expect"]["hit_rate"].as_f64());
    let restarted = between(&after, &before);
    assert_eq!(restarted.hit_rate(), None, "a counter fell");
    assert!(notes(&restarted).contains("began anew"), "{}", notes(&restarted));
}

#[test]
fn a_real_exposition_gives_the_facts_of_its_cache() {
    let texts = [(0.0, "a", CAPTURE), (10.0, "a", CAPTURE)];
    let signals = Seen { texts: &texts, window: (0.0, 10.0), model: Some("tiny") }.read();
    assert_eq!(signals.value(Signal::KvCapacity), Some(524_288.0));
    assert_eq!(signals.value(Signal::KvBlockSize), Some(128.0));
    assert_eq!(signals.value(Signal::Running), Some(0.0));
    assert_eq!(signals.increase(Signal::Finished), Some(0.0));
    let dtype = signals.settings.iter().find(|(name, _)| name == "cache_dtype");
    assert_eq!(dtype.map(|(_, value)| value.as_str()), Some("auto"));
    let reason = &signals.absent[&Signal::EstimatedFlops].en;
    assert!(reason.contains("switched off") && reason.contains("--enable-mfu-metrics"), "{reason}");
    assert!(signals.absent[&Signal::SeatLimit].en.contains("vLLM does not tell it"));
    assert!(signals.absent[&Signal::Power].en.contains("DCGM exporter"));
    assert!(signals.absent[&Signal::DraftTokens].en.contains("--speculative-config"));
    assert!(signals.notes.is_empty(), "{}", notes(&signals));
}

#[test]
fn every_signal_is_read_or_has_a_reason() {
    for texts in [&[][..], &[(0.0, "a", CAPTURE)], &[(0.0, "a", "x 1\n"), (9.0, "a", "x 2\n")]] {
        let signals = Seen { texts, window: (0.0, 10.0), model: None }.read();
        for signal in Signal::ALL {
            let known = signals.readings.contains_key(signal);
            assert_ne!(known, signals.absent.contains_key(signal), "{signal:?}");
        }
    }
}

#[test]
fn a_counter_that_falls_began_anew() {
    let count = |count: u32| format!("vllm:generation_tokens_total{{engine=\"0\"}} {count}\n");
    let texts: Vec<String> = [100, 150, 20, 50].into_iter().map(count).collect();
    let texts: Vec<(f64, &str, &str)> =
        texts.iter().enumerate().map(|(s, text)| (s as f64, "a", text.as_str())).collect();
    let signals = Seen { texts: &texts, window: (0.0, 3.0), model: None }.read();
    assert_eq!(signals.increase(Signal::GeneratedTokens), Some(50.0 + 20.0 + 30.0));
    assert!(notes(&signals).contains("fell 1 times"), "{}", notes(&signals));
    let series: Vec<f64> =
        signals.series[&Signal::GeneratedTokens].iter().map(|(_, rate)| *rate).collect();
    assert_eq!(series, [50.0, 20.0, 30.0]);
}

#[test]
fn one_address_with_several_processes_behind_it_is_told() {
    let count = |count: u32| format!("vllm:generation_tokens_total {count}\n");
    let texts: Vec<String> = [9, 1, 9, 1, 9, 1].into_iter().map(count).collect();
    let texts: Vec<(f64, &str, &str)> =
        texts.iter().enumerate().map(|(s, text)| (s as f64, "a", text.as_str())).collect();
    let signals = Seen { texts: &texts, window: (0.0, 5.0), model: None }.read();
    assert!(notes(&signals).contains("several processes"), "{}", notes(&signals));
}

#[test]
fn a_histogram_that_falls_is_taken_anew_as_a_whole() {
    let told = |under: u32, all: u32, sum: f64| {
        format!(
            "vllm:request_queue_time_seconds_bucket{{le=\"1\"}} {under}\n\
             vllm:request_queue_time_seconds_bucket{{le=\"+Inf\"}} {all}\n\
             vllm:request_queue_time_seconds_sum {sum}\nvllm:request_queue_time_seconds_count {all}\n"
        )
    };
    let texts = [told(4, 10, 9.0), told(6, 12, 10.0), told(7, 8, 2.0)];
    let texts: Vec<(f64, &str, &str)> =
        texts.iter().enumerate().map(|(s, text)| (s as f64, "a", text.as_str())).collect();
    let signals = Seen { texts: &texts, window: (0.0, 2.0), model: None }.read();
    let queue = signals.taken(Signal::QueueTime).unwrap();
    assert_eq!((queue.count, queue.sum), (2.0 + 8.0, 1.0 + 2.0));
    assert_eq!(queue.buckets, [(1.0, 2.0 + 7.0), (f64::INFINITY, 10.0)]);
}

/// Families of engines that no capture holds, as diagnosis.md §1 names them.
#[test]
fn what_special_engines_tell_is_read() {
    let sglang = |n: u32| {
        format!(
            "sglang:new_token_ratio 0.5\n\
             sglang:num_decode_transfer_queue_reqs 2\nsglang:num_decode_prealloc_queue_reqs 1\n\
             sglang:cuda_graph_passes_total{{mode=\"decode_none\"}} {n}\n\
             sglang:cuda_graph_passes_total{{mode=\"decode_full\"}} {}\n\
             # TYPE sglang:grammar_compilation_time_seconds histogram\n\
             sglang:grammar_compilation_time_seconds_sum {n}\n\
             sglang:grammar_compilation_time_seconds_count {}\n\
             # TYPE sglang:load_back_duration_seconds histogram\n\
             sglang:load_back_duration_seconds_sum {n}\nsglang:load_back_duration_seconds_count 9\n\
             sglang:load_back_bytes_total {n}\n\
             # TYPE sglang:dp_attention_token_imbalance_ratio histogram\n\
             sglang:dp_attention_token_imbalance_ratio_sum {}\n\
             sglang:dp_attention_token_imbalance_ratio_count {n}\n",
            3 * n,
            2 * n,
            2 * n,
        )
    };
    let signals = between(&sglang(0), &sglang(10));
    close(signals.value(Signal::AdmissionReserve), 0.5);
    close(signals.value(Signal::TransferQueue), 3.0);
    close(signals.increase(Signal::EagerSteps), 10.0);
    close(signals.increase(Signal::Steps), 40.0);
    close(signals.value(Signal::GrammarTime), 0.5);
    close(signals.increase(Signal::KvLoadTime), 10.0);
    close(signals.increase(Signal::KvLoadBytes), 10.0);
    close(signals.value(Signal::RankImbalance), 2.0);
    let vllm = |n: u32| {
        format!(
            "vllm:num_requests_running 1\nvllm:nixl_num_kv_expired_reqs_total {n}\n\
             vllm:kv_offload_load_time_total {n}\nvllm:kv_offload_load_bytes_total {n}\n\
             vllm:kv_offload_allocation_failure_total {n}\nvllm:kv_offload_stores_skipped {n}\n"
        )
    };
    let signals = between(&vllm(0), &vllm(4));
    for signal in [Signal::KvExpired, Signal::KvLoadTime, Signal::KvLoadBytes] {
        close(signals.increase(signal), 4.0);
    }
    close(signals.increase(Signal::KvOffloadRefusals), 8.0);
}

#[test]
fn buckets_may_be_missing_between_the_edges() {
    let (bucket, rest) = (
        "vllm:request_queue_time_seconds_bucket{le=\"1\"}",
        "# TYPE vllm:request_queue_time_seconds histogram\nvllm:request_queue_time_seconds",
    );
    let whole = |n: u32| {
        format!("{rest}_sum {n}\nvllm:request_queue_time_seconds_count {n}\n{bucket} {n}\n")
    };
    let bare = |n: u32| format!("{rest}_sum {n}\nvllm:request_queue_time_seconds_count {n}\n");
    let texts = [whole(1), bare(3), whole(7)];
    let texts: Vec<(f64, &str, &str)> =
        texts.iter().enumerate().map(|(s, text)| (s as f64, "a", text.as_str())).collect();
    let signals = Seen { texts: &texts, window: (0.0, 2.0), model: None }.read();
    let queue = signals.taken(Signal::QueueTime).unwrap();
    assert_eq!(queue.buckets, [(1.0, 6.0), (f64::INFINITY, 6.0)]);
}

#[test]
fn a_gauge_counts_for_as_long_as_it_stood_in_the_window() {
    let level = |level: u32| format!("vllm:num_requests_running {level}\n");
    let texts: Vec<String> = [100, 2, 4, 6, 900].into_iter().map(level).collect();
    let instants = [-9.0, -1.0, 1.0, 2.0, 5.0];
    let texts: Vec<(f64, &str, &str)> =
        instants.iter().zip(&texts).map(|(at, text)| (*at, "a", text.as_str())).collect();
    let signals = Seen { texts: &texts, window: (0.0, 4.0), model: None }.read();
    let running = signals.gauge(Signal::Running).unwrap();
    // 2 for one second, 4 for one, 6 for two.
    close(Some(running.mean), (2.0 + 4.0 + 12.0) / 4.0);
    assert_eq!((running.min, running.max), (2.0, 6.0));
    assert_eq!((running.first, running.last, running.n), (2.0, 6.0, 3));
}

#[test]
fn what_was_not_seen_of_the_window_is_said() {
    let text = "vllm:num_requests_running 1\n";
    let texts = [(6.0, "a", text), (9.0, "a", text)];
    let signals = Seen { texts: &texts, window: (0.0, 10.0), model: None }.read();
    assert!(notes(&signals).contains("not seen for 7.0 s of the 10.0 s"), "{}", notes(&signals));
}

#[test]
fn series_of_another_model_are_left_out_or_said() {
    let text = "vllm:num_requests_running{model_name=\"a\"} 3\n\
                vllm:num_requests_running{model_name=\"b\"} 5\n";
    let one = "vllm:num_requests_running{model_name=\"a\"} 3\n";
    let read = |text: &str, model| {
        Seen { texts: &[(0.0, "s", text)], window: (0.0, 1.0), model: Some(model) }.read()
    };
    assert_eq!(read(text, "b").value(Signal::Running), Some(5.0));
    assert_eq!(read(one, "a").value(Signal::Running), Some(3.0));
    let other = read(one, "c");
    assert_eq!(other.value(Signal::Running), Some(3.0));
    assert!(notes(&other).contains("of the model a, and c was asked for"));
    let none = read(text, "c");
    assert_eq!(none.value(Signal::Running), None);
    assert!(notes(&none).contains("none is c"), "{}", notes(&none));
}

#[test]
fn ranks_that_tell_the_same_are_not_added() {
    let text =
        "sglang:num_running_reqs{tp_rank=\"0\"} 7\nsglang:num_running_reqs{tp_rank=\"1\"} 7\n";
    let texts = [(0.0, "a", text)];
    let signals = Seen { texts: &texts, window: (0.0, 1.0), model: None }.read();
    assert_eq!(signals.value(Signal::Running), Some(7.0));
    let dp = "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\",engine_type=\"prefill\"} 7\n\
              sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\",engine_type=\"decode\"} 8\n";
    let signals = Seen { texts: &[(0.0, "a", dp)], window: (0.0, 1.0), model: None }.read();
    assert_eq!(signals.value(Signal::Running), Some(15.0));
    let roles: Vec<Role> = signals.instances.iter().map(|instance| instance.role).collect();
    assert_eq!(roles, [Role::Prefill, Role::Decode]);
}

#[test]
fn an_engine_behind_dynamo_is_counted_once() {
    let front = "dynamo_frontend_inflight_requests{model=\"m\"} 9\n";
    let engine = "vllm:num_requests_running{model_name=\"m\"} 4\n";
    let texts = [(0.0, "front", front), (0.0, "engine", engine)];
    let signals = Seen { texts: &texts, window: (0.0, 1.0), model: Some("m") }.read();
    assert_eq!(signals.engine, Some("vllm"));
    assert_eq!(signals.value(Signal::Running), Some(4.0));
}

#[test]
fn dcgm_tells_the_same_under_both_names_and_units() {
    let old = |s: u32| {
        format!(
            "DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\"}} 85\nDCGM_FI_DEV_FB_USED{{gpu=\"0\"}} 2048\n\
             DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu=\"0\"}} {}\n\
             DCGM_FI_DEV_SM_CLOCK{{gpu=\"0\"}} 1500\nDCGM_FI_DEV_POWER_USAGE{{gpu=\"0\"}} 350\n",
            s * 350_000
        )
    };
    let new = |s: u32| {
        format!(
            "DCGM_FI_DEV_GPU_UTIL_RATIO{{gpu=\"0\"}} 0.85\n\
             DCGM_FI_DEV_FB_USED_BYTES{{gpu=\"0\"}} 2147483648\n\
             DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL{{gpu=\"0\"}} {}\n\
             DCGM_FI_DEV_SM_CLOCK_HERTZ{{gpu=\"0\"}} 1.5e9\n\
             DCGM_FI_DEV_BOARD_POWER_WATTS{{gpu=\"0\"}} 350\n",
            s * 350
        )
    };
    for (before, after) in [(old(0), old(10)), (new(0), new(10))] {
        let signals = between(&before, &after);
        assert_eq!(signals.engine, None);
        close(signals.value(Signal::GpuBusy), 0.85);
        close(signals.value(Signal::MemoryUsed), 2_147_483_648.0);
        close(signals.increase(Signal::Energy), 3500.0);
        close(signals.value(Signal::Clock), 1.5e9);
        close(signals.value(Signal::Power), 350.0);
    }
}

#[test]
fn a_host_is_busy_by_what_its_processors_were_not_idle() {
    let told = |idle: u32, user: u32| {
        let idle =
            |cpu: u32| format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"idle\"}} {idle}\n");
        let user =
            |cpu: u32| format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"user\"}} {user}\n");
        format!("node_load1 3\n{}{}{}{}", idle(0), idle(1), user(0), user(1))
    };
    let signals = between(&told(100, 50), &told(104, 56));
    close(signals.value(Signal::HostBusy), 0.6);
    close(signals.value(Signal::HostLoad), 1.5);
}

#[test]
fn both_profiles_of_the_engine_model_are_read() {
    for profile in Profile::ALL {
        let facts = Facts { context: 4096, block_size: 16, blocks: 100, ..Facts::default() };
        let http = Http::default();
        let write = |tokens: u64, usage: f64| {
            let mut engine = profile.idle_engine(4096);
            (engine.running, engine.waiting, engine.kv_usage) = (5, 2, usage);
            engine.generation_tokens = tokens;
            engine.prompt_tokens.computed = 2 * tokens;
            engine.prompt_tokens.found = tokens;
            (engine.prefix_queries, engine.prefix_hits) = (3 * tokens, tokens);
            let engines = [engine];
            let snapshot = Snapshot {
                model: "m",
                created_s: 1.7e9,
                facts: &facts,
                engines: &engines,
                http: &http,
            };
            profile.write(&snapshot)
        };
        let signals = between(&write(100, 0.5), &write(350, 0.5));
        assert_eq!(signals.engine, Some(profile.name()));
        assert_eq!(signals.value(Signal::Running), Some(5.0));
        assert_eq!(signals.value(Signal::QueueDepth), Some(2.0));
        assert_eq!(signals.value(Signal::KvUsage), Some(0.5));
        assert_eq!(signals.increase(Signal::GeneratedTokens), Some(250.0));
        assert_eq!(signals.increase(Signal::PromptComputed), Some(500.0));
        assert_eq!(signals.hit_rate().map(|rate| (rate * 3.0).round()), Some(1.0));
    }
}

#[test]
fn names_of_families_and_keys_are_each_of_one_table() {
    let mut keys: Vec<&str> = TABLES.iter().map(|table| table.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), TABLES.len());
    for table in TABLES {
        assert!(!table.name.is_empty() && !table.version.is_empty() && !table.prefixes.is_empty());
        for (place, entry) in table.entries.iter().enumerate() {
            let what = (table.key, entry.signal);
            assert!(!entry.ways.is_empty(), "{what:?}");
            let others = &table.entries[place + 1..];
            assert!(others.iter().all(|other| other.signal != entry.signal), "{what:?} is twice");
            let families = entry.ways.iter().flat_map(Way::families);
            assert!(families.clone().all(|family| !family.is_empty()), "{what:?}");
            for way in entry.ways {
                assert!(fits(way.how, entry.signal.entry().kind), "{what:?}: {way}");
            }
        }
    }
}

/// Whether a way can give a signal of this kind.
fn fits(how: How, kind: Kind) -> bool {
    match how {
        How::Told(_) => true,
        How::Ratio(..) | How::PerSeries(..) | How::Rest(..) | How::Rate(_) => kind == Kind::Gauge,
        How::Product(..) | How::Labels(..) => kind == Kind::Fact,
        How::Count(_) | How::Sum(_) => kind == Kind::Counter,
        How::Chain(_) | How::Pair(..) | How::Sampled(_) => kind == Kind::Histogram,
        How::Less(..) => matches!(kind, Kind::Counter | Kind::Histogram),
    }
}

#[test]
fn what_the_engine_model_writes_has_every_family_that_its_table_names_first() {
    // Families that appear with what the model does not have.
    let elsewhere = [
        "nixl",
        "kv_offload",
        "spec_decode",
        "spec_verify",
        "cuda_graph",
        "forward_execution",
        "process_cpu",
        "per_stage",
        "idle",
        "retracted",
        "evicted",
        "transfer",
        "bootstrap",
        "eplb",
        "dp_",
        "new_token_ratio",
        "grammar_compilation",
        "load_back",
        "prealloc",
        "expired",
    ];
    for profile in Profile::ALL {
        let (facts, http) = (Facts::default(), Http::default());
        let engines = [profile.idle_engine(4096)];
        let snapshot =
            Snapshot { model: "m", created_s: 0.0, facts: &facts, engines: &engines, http: &http };
        let told = prometheus::read(profile.write(&snapshot).as_bytes()).unwrap();
        let table = TABLES.iter().find(|table| table.key == profile.name()).unwrap();
        for entry in table.entries {
            for family in entry.ways[0].families() {
                let known = told.family(family).is_some();
                let not_modelled = elsewhere.iter().any(|part| family.contains(part));
                assert!(known || not_modelled, "{family} of {:?}", entry.signal);
            }
        }
    }
}
