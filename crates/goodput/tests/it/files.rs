//! Files for people and spreadsheets: `--markdown` with its chart, `--csv`, and
//! the page of a CI job.

use crate::program::{Told, Workplace};
use crate::servers::engine;

const SMALL: &[&str] = &["-n", "4", "-c", "2", "--osl", "5", "--goodput", "ttft:300"];

/// A step's page may hold this much.
const STEP_BYTES: usize = 1 << 20;

fn bench(workplace: &Workplace, more: &[&str]) -> Told {
    workplace.bench(&engine().url(), &[SMALL, more].concat())
}

/// The same with a file that the job shows.
fn in_a_job(workplace: &Workplace, file: &str, more: &[&str]) -> Told {
    let more = [SMALL, more, &["--allow-invalid"]].concat();
    let server = engine();
    let mut command = workplace.bench_command(&server.url(), &more);
    Told::of(command.env("GITHUB_STEP_SUMMARY", file).output().unwrap())
}

/// Names of what lies in the workplace, besides runs.
fn names(workplace: &Workplace) -> Vec<String> {
    let entries = std::fs::read_dir(workplace.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "runs").collect();
    names.sort();
    names
}

#[test]
fn a_run_and_its_report_write_the_same_files() {
    let workplace = Workplace::new();
    let told = bench(&workplace, &["--markdown", "out.md", "--csv", "out.csv"]).exits(0);
    assert!(told.out.contains("Latencies"), "the report is printed all the same");
    assert_eq!(names(&workplace), ["out.csv", "out.md", "out.svg"]);
    let files = ["out.csv", "out.md", "out.svg"].map(|name| workplace.read(name));
    let [csv, markdown, svg] = &files;
    assert!(
        markdown.contains("](out.svg)") && markdown.contains("| TTFT | ms | 4 |"),
        "{markdown}"
    );
    assert!(svg.starts_with("<svg ") && svg.contains("curve ttft"), "{svg}");
    assert_eq!(csv.matches("\r\n").count(), 5, "{csv}");
    let again = ["report", "latest", "--markdown", "out.md", "--csv", "out.csv"];
    workplace.run(&again).exits(0);
    assert_eq!(files, ["out.csv", "out.md", "out.svg"].map(|name| workplace.read(name)));
    workplace.run(&["export", "latest", "--to", "rows.csv"]).exits(0);
    assert_eq!(*csv, workplace.read("rows.csv"));
}

#[test]
fn without_a_flag_or_a_job_there_is_no_file() {
    let workplace = Workplace::new();
    in_a_job(&workplace, "", &[]).exits(0);
    assert!(names(&workplace).is_empty());
}

#[test]
fn a_device_takes_the_text_with_its_chart_inside() {
    let workplace = Workplace::new();
    bench(&workplace, &[]).exits(0);
    let told =
        workplace.run(&["report", "latest", "--json", "out.json", "--markdown", "/dev/stdout"]);
    let told = told.exits(0);
    assert!(told.out.contains("```text\nTTFT of the 4 requests"), "{}", told.out);
    assert_eq!(names(&workplace), ["out.json"]);
}

#[test]
fn the_page_of_a_job_grows_and_loses_nothing() {
    let workplace = Workplace::new();
    let page = workplace.file("page.md", "what another step wrote");
    in_a_job(&workplace, page, &[]).exits(0);
    let first = workplace.read(page);
    assert!(first.starts_with("what another step wrote\n## goodput report"), "{first}");
    assert!(first.contains("```text\nTTFT of the 4 requests"), "{first}");
    assert!(!first.contains("!["), "a picture beside the page would not be found");
    let mut command = workplace.command(&["report", "latest"]);
    Told::of(command.env("GITHUB_STEP_SUMMARY", page).output().unwrap()).exits(0);
    let second = workplace.read(page);
    assert!(second.starts_with(&first), "{second}");
    assert_eq!(second.matches("## goodput report").count(), 2);
}

#[test]
fn a_page_that_cannot_be_written_costs_nothing() {
    let workplace = Workplace::new();
    for (place, says) in [("no/page.md", "check the path"), ("/dev/full", "free some space")] {
        let told = in_a_job(&workplace, place, &["--csv", "out.csv"]).exits(0);
        let told = told.says(&["GITHUB_STEP_SUMMARY was not added to", place, says]);
        assert_eq!(told.err.matches("GITHUB_STEP_SUMMARY").count(), 1, "{}", told.err);
        assert!(told.errors().is_empty() && told.out.contains("run directory"), "{}", told.err);
        assert_eq!(workplace.read("out.csv").lines().count(), 5);
    }
}

#[test]
fn a_page_never_grows_over_what_is_taken_of_a_step() {
    let workplace = Workplace::new();
    let page = workplace.file("page.md", "x".repeat(STEP_BYTES - 2_500));
    in_a_job(&workplace, page, &[]).exits(0);
    let cut = workplace.read(page);
    assert!(cut.len() <= STEP_BYTES && cut.contains("run 0") && !cut.contains("<details>"));
    let page = workplace.file("page.md", "x".repeat(STEP_BYTES - 10));
    in_a_job(&workplace, page, &[]).exits(0).says(&["would hold more than 1048576 bytes"]);
    assert_eq!(workplace.read(page).len(), STEP_BYTES - 10);
}

#[test]
fn a_place_that_takes_no_file_is_found_before_anything_is_sent() {
    let (workplace, server) = (Workplace::new(), engine());
    std::fs::create_dir(workplace.at("taken.svg")).unwrap();
    for (flag, path, says) in [
        ("--markdown", "no/out.md", "check the path"),
        ("--markdown", "taken.md", "taken.svg"),
        ("--markdown", "out.svg", "ends in .md"),
        ("--csv", "no/out.csv", "check the path"),
        ("--csv", ".", "give the path of a file"),
    ] {
        let told = workplace.bench(&server.url(), &[flag, path]).exits(2).says(&[says]);
        assert_eq!(told.errors().len(), 1, "{}", told.err);
        workplace.run(&["report", "latest", flag, path]).exits(2).says(&[says]);
    }
    assert!(server.requests().is_empty() && !workplace.at("runs").exists());
    assert_eq!(names(&workplace), ["taken.svg"]);
}

#[test]
fn several_runs_have_no_table_and_a_text_without_a_chart() {
    let workplace = Workplace::new();
    bench(&workplace, &[]).exits(0);
    for more in [&[][..], &["--html", "out.html"], &["--markdown", "out.md"]] {
        let both = [&["report", "latest", "latest", "--csv", "out"], more].concat();
        workplace.run(&both).exits(2).says(&["--csv", "is of one run"]);
    }
    assert!(names(&workplace).is_empty());
    workplace.run(&["report", "latest", "latest", "--markdown", "out.md"]).exits(0);
    assert_eq!(names(&workplace), ["out.md"]);
    assert!(workplace.read("out.md").contains("2 runs side by side"));
}
