//! `--use-case`, what synthetic workloads hide, and fairness between labels.

use measure::use_case::USE_CASES;
use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::{engine, reasoning, slow_engine};

fn dry(arguments: &[&str]) -> Told {
    Workplace::new().run(&[&["bench", "--dry-run", "--json", "-"], arguments].concat())
}

fn setting(plan: &Value, name: &str) -> (String, String) {
    let found = plan["config"].as_array().unwrap().iter().find(|one| one["name"] == name);
    let text = |key: &str| found.map_or(String::new(), |one| one[key].as_str().unwrap().to_owned());
    (text("value"), text("origin"))
}

#[test]
fn each_use_case_sets_what_its_page_says() {
    let page = include_str!("../../../../docs/use-cases.md");
    for use_case in USE_CASES {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}`", use_case.name)))
            .unwrap_or_else(|| panic!("docs/use-cases.md has no row of {}", use_case.name));
        for setting in use_case.settings {
            let words = format!("`--{} {}` ({})", setting.flag, setting.value, setting.from.name());
            assert!(row.contains(&words), "{words} is not in {row}");
        }
        for limit in use_case.limits {
            let words = format!("`{}` ({})", limit.term, limit.from.name());
            assert!(row.contains(&words), "{words} is not in {row}");
        }
        assert!(row.contains(use_case.reason.en), "{} is not in {row}", use_case.reason.en);
        if use_case.needs_slo {
            dry(&["--use-case", use_case.name]).exits(2).says(&["--slo or --goodput"]);
            dry(&["--use-case", use_case.name, "--goodput", "ttft:3"]).exits(0);
            continue;
        }
        let plan = dry(&["--use-case", use_case.name]).exits(0).json();
        for set in use_case.settings {
            let (value, origin) = setting(&plan, set.flag);
            assert_eq!((value.as_str(), origin.as_str()), (set.value, "use case"));
        }
    }
}

#[test]
fn a_wrong_use_case_is_told_with_the_right_ones() {
    dry(&["--use-case", "poetry"]).exits(2).says(&["--use-case", "code-completion", "custom"]);
}

#[test]
fn the_command_line_wins_over_the_use_case() {
    let plan = dry(&["--use-case", "chat", "--isl", "64", "--slo", "ttft <= 1s"]).exits(0).json();
    assert_eq!(setting(&plan, "isl"), ("64".to_owned(), "command line".to_owned()));
    assert_eq!(setting(&plan, "osl"), ("256".to_owned(), "use case".to_owned()));
    assert_eq!(plan["slo"], "ttft ≤ 1000 ms");
    let plan = dry(&["--use-case", "offline", "-n", "7"]).exits(0).json();
    assert_eq!((&plan["load_kind"], &plan["requests"]), (&"burst".into(), &7.into()));
}

#[test]
fn a_report_begins_with_the_figures_of_its_use_case() {
    let (workplace, server) = (Workplace::new(), engine());
    let more = ["-n", "3", "--isl", "16", "--osl", "3", "--out", "run", "--allow-invalid"];
    let told = workplace.bench(&server.url(), &[&["--use-case", "agent"][..], &more].concat());
    let told = told.exits(0);
    // A run that a busy machine made INVALID begins with the reason alone.
    let headline = told.out.lines().find(|line| line.contains("E2EL P99"));
    assert_eq!(headline.is_none(), told.out.contains("INVALID ·"), "{}", told.out);
    let begins = |line: &str| line.contains("E2EL P50") && !line.contains("TTFT");
    assert!(headline.is_none_or(begins), "{headline:?}");
    assert!(told.out.contains("use case agent: E2EL of a turn"), "{}", told.out);
    let page = workplace.run(&["report", "run", "--markdown", "r.md", "--html", "r.html"]).exits(0);
    drop(page);
    for file in ["r.md", "r.html"] {
        assert!(workplace.read(file).contains("use case agent"), "{file}");
    }
    let summary = workplace.run(&["report", "run", "--json", "-"]).exits(0).json();
    assert_eq!(summary["workload"]["use_case"], "agent");
    assert_eq!(summary["goodput"]["per_slo"]["e2el"]["limit"], 10_000.0);
}

#[test]
fn a_chat_is_judged_by_text_where_the_model_reasons() {
    let (workplace, server) = (Workplace::new(), reasoning());
    let more = ["-n", "2", "--use-case", "chat", "--json", "summary.json", "--allow-invalid"];
    let told = workplace.bench(&server.url(), &more).exits(0);
    // A run that a busy machine made INVALID begins with the reason alone.
    assert_eq!(told.out.contains("TTFC P99"), !told.out.contains("INVALID ·"), "{}", told.out);
    let summary: Value = serde_json::from_str(&workplace.read("summary.json")).unwrap();
    assert_eq!(summary["goodput"]["per_slo"]["ttfc"]["limit"], 500.0);
    assert!(summary["caveats"].to_string().contains("judged_by_ttfc"));
}

/// A run whose prompts are what `more` says.
fn sent(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    workplace.run(&[&["bench", "--url", url, "--model", "m"], more].concat())
}

fn caveats(more: &[&str]) -> String {
    let (workplace, server) = (Workplace::new(), engine());
    let few = ["-n", "2", "--osl", "2", "--allow-invalid", "--json", "-"];
    let summary = sent(&workplace, &server.url(), &[&few, more].concat()).exits(0).json();
    summary["caveats"].to_string()
}

#[test]
fn what_a_synthetic_workload_hides_is_said_of_engines_that_are_known() {
    let unknown = caveats(&["--ignore-eos"]);
    assert!(!unknown.contains("speculation") && !unknown.contains("moe"), "{unknown}");
    let known = caveats(&["--ignore-eos", "--engine-facts", "speculation,moe"]);
    for id in ["random_text_speculation", "random_text_moe", "ignore_eos_speculation"] {
        assert!(known.contains(id), "{known}");
    }
    let own = caveats(&["--prompt", "hello", "--engine-facts", "speculation"]);
    assert!(!own.contains("speculation"), "{own}");
    dry(&["--engine-facts", "fast"]).exits(2).says(&["--engine-facts", "speculation, moe"]);
}

fn of_tenants(workplace: &Workplace, url: &str, tenants: &[&str], more: &[&str]) -> Told {
    let rows: String = (0..10)
        .map(|n| {
            let tenant = tenants[n % tenants.len()];
            format!(
                "{{\"prompt\": \"question {n}\", \"output_tokens\": 3, \"label\": {{\"tenant\": \"{tenant}\"}}}}\n"
            )
        })
        .collect();
    let file = workplace.file("tenants.jsonl", rows);
    let data = ["--dataset-name", "custom", "--dataset-path", file, "-n", "10", "--allow-invalid"];
    sent(workplace, url, &[&data, more].concat())
}

#[test]
fn a_value_with_a_colon_can_have_an_isolated_run() {
    let (workplace, server) = (Workplace::new(), engine());
    of_tenants(&workplace, &server.url(), &["h:1"], &["--out", "alone"]).exits(0);
    let with = ["--isolated", "tenant=h:1:alone", "--json", "-", "--out", "both"];
    let shared = of_tenants(&workplace, &server.url(), &["h:1", "h:2"], &with).exits(0).json();
    assert_eq!(shared["fairness"]["tenant"]["without_isolated"], serde_json::json!(["h:2"]));
}

#[test]
fn what_hides_behind_random_words_is_told_of_a_mix_too() {
    let (workplace, server) = (Workplace::new(), engine());
    let url = server.url();
    let start = ["bench", "--url", &url, "--model", "m", "-n", "4", "--json", "-"];
    let mix = ["--mix", "a isl=9 osl=2 ignore-eos", "--mix", "b isl=9 osl=2", "--allow-invalid"];
    let facts = ["--engine-facts", "speculation,moe"];
    let summary = workplace.run(&[&start[..], &mix, &facts].concat()).exits(0).json();
    let caveats = summary["caveats"].to_string();
    for id in ["random_text_speculation", "random_text_moe", "ignore_eos_speculation"] {
        assert!(caveats.contains(id), "{id}: {caveats}");
    }
}

#[test]
fn labels_are_held_against_runs_of_their_own() {
    let (workplace, quick, slow) = (Workplace::new(), engine(), slow_engine());
    of_tenants(&workplace, &quick.url(), &["a"], &["--out", "alone"]).exits(0);
    of_tenants(&workplace, &quick.url(), &["a", "b"], &["--out", "both"]).exits(0);
    let with = ["--isolated", "alone", "--json", "-", "--slo", "tenant=a: e2el <= 60s"];
    let shared =
        of_tenants(&workplace, &slow.url(), &["a", "b"], &[&with[..], &["--out", "slow"]].concat());
    let fairness = &shared.exits(0).json()["fairness"]["tenant"];
    // 800 ms against 10 ms, whatever else the machine does.
    let ratio = fairness["values"]["a"]["slowdown"]["ttft"]["p50"].as_f64().unwrap();
    assert!(ratio > 2.0, "{fairness}");
    assert_eq!(fairness["largest_slowdown"]["value"], "a");
    assert_eq!(fairness["without_isolated"], serde_json::json!(["b"]));
    assert!(fairness["jain_speed"].as_f64().unwrap() > 0.5, "{fairness}");
    // Nothing is promised to b, so there is no share of it to compare.
    assert!(fairness.get("jain_attainment").is_none(), "{fairness}");
    let again = workplace.run(&["report", "slow", "--json", "-"]).exits(0).json();
    assert_eq!(&again["fairness"]["tenant"], fairness);
    let told = workplace.run(&["report", "slow"]).exits(0);
    assert!(told.out.contains("--isolated tenant=b:RUN"), "{}", told.out);
    let report = |isolated: &str| workplace.run(&["report", "slow", "--isolated", isolated]);
    report("tenant=a:both").exits(2).says(&["--isolated", "tenant=b"]);
    report("both").exits(2).says(&["--isolated", "share no label"]);
    report("tenant=b:alone").exits(2).says(&["--isolated", "tenant=a"]);
}
