//! Pages of runs: `--html` on bench and report, and what is wrong with a run.

use crate::program::Workplace;
use crate::servers::engine;

/// A workplace with one run of six requests, and its id.
fn with_run() -> (Workplace, String) {
    let (workplace, server) = (Workplace::new(), engine());
    let more = ["-n", "6", "-c", "2", "--osl", "4", "--html", "bench.html", "--json", "-"];
    let told = workplace.bench(&server.url(), &more);
    let id = told.exits(0).json()["run_id"].as_str().unwrap().to_owned();
    (workplace, id)
}

/// The data of a page.
fn data(page: &str) -> serde_json::Value {
    let mark = "<script type=\"application/json\" id=\"page\">";
    let (_, rest) = page.split_once(mark).expect("the page holds its data");
    let (data, _) = rest.split_once("</script>").expect("the data ends");
    serde_json::from_str(data).expect("the data is JSON")
}

#[test]
fn bench_and_report_write_the_same_page() {
    let (workplace, id) = with_run();
    workplace.run(&["report", &id, "--html", "report.html"]).exits(0);
    let (bench, report) = (workplace.read("bench.html"), workplace.read("report.html"));
    assert_eq!(data(&bench), data(&report));
    let page = data(&report);
    assert_eq!(page["runs"][0]["id"], id);
    assert_eq!(page["runs"][0]["picture"]["requests"]["of"], 6);
    assert!(report.len() < 600_000, "{} bytes", report.len());
    for mark in ["src=\"http", "href=\"http", "src=\"//"] {
        assert!(!report.contains(mark), "{mark}");
    }
}

#[test]
fn a_page_is_in_the_language_that_was_asked_for() {
    let (workplace, id) = with_run();
    workplace.run(&["report", &id, "--html", "zh.html", "--lang", "zh"]).exits(0);
    let page = workplace.read("zh.html");
    assert!(page.contains("<html lang=\"zh-CN\">"));
    assert_eq!(data(&page)["lang"], "zh");
    workplace.run(&["report", &id, "--lang", "fr"]).exits(2).says(&["--lang", "fr", "zh"]);
}

#[test]
fn a_place_that_cannot_be_written_to_costs_no_run() {
    let (workplace, server) = (Workplace::new(), engine());
    let told = workplace.bench(&server.url(), &["-n", "2", "--html", "missing/page.html"]);
    told.exits(2).says(&["missing/page.html"]);
    assert!(!workplace.at("runs").exists(), "nothing was measured");
}

#[test]
fn several_runs_are_drawn_over_each_other_in_a_page() {
    let (workplace, id) = with_run();
    let both = ["report", &id, &id, "--html", "both.html"];
    workplace.run(&both).exits(0);
    assert_eq!(data(&workplace.read("both.html"))["runs"].as_array().unwrap().len(), 2);
    let more = ["--fail-if", "ttft.p50 > 1ms"];
    workplace.run(&[&both[..], &more[..]].concat()).exits(2).says(&[more[0], "one run"]);
}

#[test]
fn a_run_of_a_newer_version_is_refused_by_its_number() {
    let (workplace, id) = with_run();
    let name = format!("runs/{id}/run.json");
    let mut manifest: serde_json::Value = serde_json::from_str(&workplace.read(&name)).unwrap();
    manifest["format_version"] = 99.into();
    workplace.file(&name, manifest.to_string());
    let told = workplace.run(&["report", &id, "--html", "new.html"]);
    told.exits(2).says(&["run.json", "99"]);
    assert!(!workplace.at("new.html").exists());
}

#[test]
fn a_damaged_part_is_said_on_the_page_and_the_rest_is_drawn() {
    let (workplace, id) = with_run();
    let part = format!("runs/{id}/requests-1-0.parquet");
    workplace.file(&part, b"PAR1 this is no Parquet file PAR1");
    workplace.run(&["report", &id, "--html", "damaged.html"]).exits(0).says(&["left out"]);
    let page = data(&workplace.read("damaged.html"));
    let notes = page["runs"][0]["notes"].to_string();
    assert!(notes.contains("left out") && notes.contains("requests-1-0"), "{notes}");
    assert_eq!(page["runs"][0]["picture"]["requests"]["of"], 6);
}

#[test]
fn a_run_still_being_written_is_shown_as_far_as_it_is() {
    let (workplace, id) = with_run();
    let name = format!("runs/{id}/run.json");
    let mut manifest: serde_json::Value = serde_json::from_str(&workplace.read(&name)).unwrap();
    manifest["facts"]["interrupted"] = true.into();
    workplace.file(&name, manifest.to_string());
    std::fs::remove_file(workplace.at(&format!("runs/{id}/summary.json"))).unwrap();
    workplace.run(&["report", &id, "--html", "half.html"]).exits(0);
    let page = data(&workplace.read("half.html"));
    let caveats = page["runs"][0]["documents"]["en"].to_string();
    assert!(caveats.contains("stopped before its end"), "{caveats}");
}

#[test]
fn a_run_without_rows_has_an_empty_page_that_says_so() {
    let (workplace, id) = with_run();
    for entry in std::fs::read_dir(workplace.at(&format!("runs/{id}"))).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "parquet") {
            std::fs::remove_file(path).unwrap();
        }
    }
    workplace.run(&["report", &id, "--html", "empty.html"]).exits(0).says(&["no rows"]);
    let page = data(&workplace.read("empty.html"));
    let run = &page["runs"][0];
    assert!(run["notes"].to_string().contains("no rows"), "{}", run["notes"]);
    assert_eq!(run["picture"]["requests"]["of"], 0);
    assert_eq!(run["documents"]["en"]["sections"].as_array().unwrap().len(), 11);
}
