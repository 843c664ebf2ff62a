//! docs/diagnosis.md: what the diagnosis does, and the rules that it goes by.
//! The tables are made from the rules themselves, so that no word stands in two
//! places.

use insight::rule::{RULES, Rule};
use measure::metric::find;

const HEAD: &str = "\
<!-- Made from the rules; do not edit. UPDATE=1 cargo test -p report --test diagnosis_page -->

# Diagnosis

`goodput diagnose RUN` says what limits a run, by which evidence, and what to change. RUN is a path, the \
beginning of an id, or `latest`; everything is computed again from the run's directory. The same \
findings stand under *Directions* in every [report](report.md), in `findings` of every \
[summary](json.md), and as one paragraph at the end of `bench` and `sim run`.

```sh
goodput diagnose latest
goodput diagnose latest --slo 'ttft <= 300ms, tpot <= 60ms'   # judged by another objective
goodput diagnose latest --json -                              # findings, stages_ms, lints, missing
goodput explain rules                                         # what is looked for
goodput explain seat_limit                                    # one rule, whole
```

## How to read a finding

- **What**: the cause in a few words, its class, the id of the rule, and what happens here in numbers.
- **Confidence**: *confirmed* when the client's symptom and the server's own evidence agree and what would \
contradict them was looked at; *likely* when two kinds of evidence agree; *possible* when only the client \
saw it and other causes would look alike.
- **Evidence**, and evidence *against it*: numbers with their source. *Client* is the records, *server* a \
scraped metric, *experiment* a probe, *given* what the user said, *bound* arithmetic on model and \
accelerator.
- **To be sure**: what was not seen, and what would show it.
- **Change**: what to do and what it costs, with the flag of the engine at hand.
- **Must improve**: the metrics by which the change is judged. They are never the tuned figure itself: \
throughput does not mend TTFT, and a busier GPU mends neither P99 nor the KV cache. Goodput and attainment \
decide.
- **Next experiment**: what would refute the finding, as a command where one does it.

Findings are sorted by confidence and by the share of what is wrong that each explains. A rule sees \
records, figures and scraped signals, never what only the engine model knows, so that a simulated run is \
diagnosed as a real one is, and says that it is simulated.

Without the server's metrics some causes look alike: waiting for a seat, for KV blocks or behind long \
prompts, missed and evicted prefixes, preemptions. Then those are not named. What could not be concluded \
is listed under the findings with the reason and what would tell.

## Rules

Codes are those of the rule base: V validity and load, Q queueing, P prefill and front end, D decode, K KV \
cache, C communication, H host, N network, E economics. *Live* marks rules that were seen to fire rightly \
on the engine model or a real engine; the others were tested on made data only.

| Code | Rule | Class | Cause | The client sees | The server shows | Must improve | Live |
|---|---|---|---|---|---|---|---|
";

/// docs/diagnosis.md, whole.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for rule in RULES {
        page.push_str(&row(rule));
    }
    page
}

fn row(rule: &Rule) -> String {
    let symbols: Vec<&str> =
        rule.improves.iter().map(|key| find(key).map_or(*key, |metric| metric.symbol)).collect();
    let cells = [
        rule.code,
        &format!("`{}`", rule.id),
        rule.class.text().en,
        rule.title.en,
        rule.symptom.en,
        rule.required.en,
        &symbols.join(", "),
        if rule.seen_live { "yes" } else { "" },
    ];
    let cells = cells.map(|cell| cell.replace('|', "&#124;").replace('<', "&lt;"));
    format!("| {} |\n", cells.join(" | "))
}
