//! `--slo`: objectives by label and by gaps, and rules over them.

use crate::program::{Told, Workplace};
use crate::servers::{engine, reasoning, slow_engine};

/// Nine requests of two tenants, and three of none.
fn tenants(workplace: &Workplace) -> &'static str {
    let rows: String = (0..12)
        .map(|n| {
            let label = match n % 4 {
                0 => r#", "label": {"tenant": "a"}"#,
                1 | 2 => r#", "label": {"tenant": "b"}"#,
                _ => "",
            };
            format!("{{\"prompt\": \"question {n}\", \"output_tokens\": 3{label}}}\n")
        })
        .collect();
    workplace.file("tenants.jsonl", rows)
}

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "--out", "run", "--allow-invalid"];
    let data = ["--dataset-name", "custom", "--dataset-path", tenants(workplace)];
    workplace.run(&[&start[..], &data, &["--num-prompts", "12", "--json", "-"], more].concat())
}

#[test]
fn each_label_is_judged_by_its_own_slo() {
    let (workplace, server) = (Workplace::new(), engine());
    let slo = ["--slo", "tenant=a: e2el <= 1us", "--slo", "b: e2el <= 60s; icl.p99 <= 60s"];
    let told = bench(&workplace, &server.url(), &slo).exits(0);
    let goodput = &told.json()["goodput"];
    assert_eq!((&goodput["good"], &goodput["of"]), (&9.into(), &12.into()), "{goodput}");
    let tenants = &goodput["per_label"]["tenant"];
    assert_eq!((&tenants["a"]["good"], &tenants["a"]["of"]), (&0.into(), &3.into()));
    assert_eq!((&tenants["b"]["good"], &tenants["b"]["of"]), (&6.into(), &6.into()));
    assert_eq!(tenants["b"]["slo"], "e2el ≤ 60000 ms");
    let of = |name: &str| goodput["per_slo"][name]["of"].as_u64();
    assert_eq!(of("tenant=b:e2el"), Some(6));
    assert_eq!(of("icl.p99"), Some(3));
    // The table of labels shows latencies and attainment of the same parts.
    let told = workplace.run(&["report", "run"]).exits(0);
    assert!(told.out.contains("SLO met"), "{}", told.out);
    assert!(told.out.contains("its own SLO: e2el ≤ 0.001 ms"), "{}", told.out);
    told.says(&[]);
}

#[test]
fn a_run_is_judged_again_by_other_objectives() {
    let (workplace, server) = (Workplace::new(), engine());
    let slo = ["--slo", "tenant=a: ttft <= 1us", "--goodput", "e2el:60000"];
    let stored = bench(&workplace, &server.url(), &slo).exits(0).json();
    let again = workplace.run(&["report", "run", "--json", "-"]).exits(0).json();
    assert_eq!(again["goodput"], stored["goodput"]);
    let other = ["report", "run", "--json", "-", "--slo", "a: itl.max <= 60s"];
    let other = workplace.run(&other).exits(0).json();
    assert_eq!(other["goodput"]["not_asked"], 9);
    assert_eq!(other["goodput"]["slo"], "tenant=a: itl.max ≤ 60000 ms");
    workplace
        .run(&["report", "run", "--slo", "tenant=c: ttft <= 1s"])
        .exits(2)
        .says(&["--slo", "tenant=a, tenant=b"]);
}

#[test]
fn rules_ask_for_the_attainment_of_a_set() {
    let (workplace, server) = (Workplace::new(), engine());
    let slo = "tenant=a: e2el <= 1us; tenant=b: e2el <= 60s";
    let with = |rule: &str| {
        let workplace = Workplace::new();
        bench(&workplace, &server.url(), &["--slo", slo, "--fail-if", rule])
    };
    with("attainment.tenant=a < 99%").exits(99).says(&["tenant=a"]);
    with("attainment.b < 99%").exits(0);
    with("attainment.tenant=a:e2el < 1%").exits(99);
    with("attainment.ttft < 99%").exits(2).says(&["--fail-if", "has no ttft"]);
    with("attainment.tenant=c < 99%").exits(99).says(&["not defined"]);
    drop(workplace);
}

#[test]
fn the_presets_of_mlperf_are_limits_of_each_request() {
    let workplace = Workplace::new();
    let dry = ["bench", "--dry-run", "--json", "-", "--slo", "mlperf:llama2-70b-interactive"];
    assert_eq!(workplace.run(&dry).exits(0).json()["slo"], "ttft ≤ 450 ms, tpot ≤ 40 ms");
    let dry = ["bench", "--dry-run", "--slo", "mlperf:llama9"];
    workplace.run(&dry).exits(2).says(&["--slo", "deepseek-r1-interactive"]);
}

#[test]
fn a_start_is_judged_by_text_where_the_model_reasons() {
    let (workplace, server) = (Workplace::new(), reasoning());
    let more = ["-n", "2", "--slo", "start <= 60s", "--json", "-"];
    let summary = workplace.bench(&server.url(), &more).exits(0).json();
    assert_eq!(summary["goodput"]["per_slo"]["ttfc"]["met"], 2, "{}", summary["goodput"]);
    let (workplace, server) = (Workplace::new(), slow_engine());
    let more = ["-n", "2", "--osl", "2", "--slo", "start <= 60s", "--json", "-"];
    let summary = workplace.bench(&server.url(), &more).exits(0).json();
    assert_eq!(summary["goodput"]["per_slo"]["ttft"]["met"], 2, "{}", summary["goodput"]);
}

#[test]
fn a_wrong_objective_is_told_before_anything_is_sent() {
    let (workplace, server) = (Workplace::new(), engine());
    for (more, words) in [
        (&["--slo", "ttft <= 300"][..], &["--slo", "write 300ms"][..]),
        (&["--slo", "ttft < 300ms"], &["--slo", "<="]),
        (&["--slo", "icl <= 300ms"], &["--slo", "p99"]),
        (&["--slo", "tenant=z: ttft <= 1s"], &["--slo", "tenant=a, tenant=b"]),
        (&["--slo", "z: ttft <= 1s"], &["--slo", "tenant=a, tenant=b"]),
        (&["--slo", "ttft <= 1s", "--goodput", "tpot:3"], &["--goodput and --slo"]),
        (&["--slo", "tpot <= 1s", "--extra-body", r#"{"n": 2}"#], &["--slo", "several answers"]),
        (&["--goodput", "ttft:3", "--extra-body", r#"{"stream": false}"#], &["--goodput", "e2el"]),
    ] {
        bench(&workplace, &server.url(), more).exits(2).says(words);
    }
    assert!(server.requests().is_empty());
}
