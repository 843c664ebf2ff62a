//! (f) Against vLLM's two benchmark clients where they are on the machine:
//! the same server, the same load, in turns.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, Done, Sample, path_text, words};
use crate::errors::{join, read_run, read_truth};
use crate::processes::repetition;
use crate::table::{Table, spread};

/// Streams, all at once, and tokens of each at 20 ms.
fn size(bench: &Bench) -> (u64, u64) {
    if bench.quick { (100, 20) } else { (1_000, 100) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Goodput,
    VllmRs,
    Vllm,
}

pub(super) fn run(bench: &Bench) -> Done {
    let head = [
        "tool",
        "whole CPU s",
        "peak MB",
        "mean TTFT reported ms",
        "true ms",
        "off by ms",
        "ITL p99 reported ms",
        "sound",
    ];
    let mut table = Table::new("(f) Beside vLLM's clients", &head);
    let mut tools = vec![(Tool::Goodput, "goodput bench")];
    if bench.vllm_rs.is_some() {
        tools.push((Tool::VllmRs, "vllm-rs bench serve"));
    }
    if bench.vllm.is_some() {
        tools.push((Tool::Vllm, "vllm bench serve"));
    }
    write_tokenizer(&bench.work.join("tokenizer"))?;
    // In turns: a drift of the machine meets all of them.
    let mut all: Vec<super::Samples> = tools.iter().map(|_| super::Samples::default()).collect();
    for round in 0..bench.repeat {
        for ((tool, name), samples) in tools.iter().zip(&mut all) {
            let sample = single(bench, *tool)?;
            crate::tell(&format!("    {name} {}", round + 1));
            match sample.void {
                None => samples.sound.push(sample.value),
                Some(why) => samples.void.push((sample.value, why)),
            }
        }
    }
    let mut figures = serde_json::Map::new();
    for ((_, name), samples) in tools.iter().zip(&all) {
        let megabytes: Vec<f64> = samples.of("/rss_kb").iter().map(|kb| kb / 1024.0).collect();
        table.rows.push(vec![
            (*name).to_owned(),
            spread(&samples.of("/cpu_s")),
            spread(&megabytes),
            spread(&samples.of("/ttft_ms")),
            spread(&samples.of("/true_ttft_ms")),
            spread(&samples.of("/ttft_off_ms")),
            spread(&samples.of("/itl_p99_ms")),
            samples.count(),
        ]);
        figures.insert((*name).to_owned(), samples.to_json());
    }
    let (streams, tokens) = size(bench);
    table.notes.push(format!(
        "{streams} streams × {tokens} tokens every 20 ms in lockstep, all sent at once, client on \
         one processor. True TTFT is the mean over the server's log. goodput's is from `sent_at`."
    ));
    Ok((Value::Object(figures), vec![table]))
}

fn single(bench: &Bench, tool: Tool) -> Result<Sample, String> {
    let truth = bench.fresh("truth.jsonl");
    let server = words(&format!(
        "--mode paced --lockstep --interval-us 20000 --first-token-us 20000 --truth {}",
        truth.display()
    ));
    let size = size(bench);
    let (streams, tokens) = size;
    let result = bench.fresh("peer.json");
    let output = bench.fresh("client.out");
    let (done, printed) = repetition(
        (bench.server_core, &server),
        bench.client_core,
        &output,
        |address| match tool {
            Tool::Goodput => {
                bench.goodput(address, &format!("--request-rate inf -n {streams} --osl {tokens}"))
            }
            Tool::VllmRs => peer(bench.vllm_rs.as_deref(), address, &bench.work, size),
            Tool::Vllm => peer(bench.vllm.as_deref(), address, &bench.work, size),
        },
    )?;
    let truths = read_truth(&truth)?;
    let own_ms: Vec<f64> =
        truths.iter().filter_map(|truth| Some(*truth.token_ns.first()? as f64 / 1e6)).collect();
    let true_ms = own_ms.iter().sum::<f64>() / own_ms.len().max(1) as f64;
    let (ttft_ms, itl_ms, errors) = if tool == Tool::Goodput {
        let summary = bench.summary()?;
        let (seen, _) = read_run(&bench.work.join("run"))?;
        (
            summary["service_metrics"]["ttft_ms"]["mean"].as_f64(),
            summary["service_metrics"]["icl_ms"]["p99"].as_f64(),
            join(&seen, &truths).to_json(),
        )
    } else {
        let text = fs::read_to_string(&result)
            .map_err(|error| format!("{}: {error}\n{printed}", result.display()))?;
        let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        (report["mean_ttft_ms"].as_f64(), report["p99_itl_ms"].as_f64(), Value::Null)
    };
    Ok(Sample {
        void: done.disturbed(),
        value: json!({
            "cpu_s": done.cost.cpu_ns as f64 / 1e9,
            "rss_kb": done.cost.rss_kb,
            "ttft_ms": ttft_ms,
            "true_ttft_ms": true_ms,
            "ttft_off_ms": ttft_ms.map(|ms| ms - true_ms),
            "itl_p99_ms": itl_ms,
            "errors": errors,
            "requests": truths.len(),
            "others": done.others,
        }),
    })
}

/// The command line of either of vLLM's clients, which share their flags. Both
/// want a tokenizer, if only to make prompts of words.
fn peer(program: Option<&Path>, address: &str, work: &Path, size: (u64, u64)) -> Vec<String> {
    let (streams, tokens) = size;
    let mut command = vec![program.map(path_text).unwrap_or_default()];
    command.extend(words(&format!(
        "bench serve --backend openai-chat --base-url http://{address} --endpoint \
         /v1/chat/completions --model tok --tokenizer {tokenizer} --dataset-name random \
         --random-input-len 8 --random-output-len {tokens} --num-prompts {streams} \
         --request-rate inf --ignore-eos --temperature 0 --disable-tqdm \
         --percentile-metrics ttft,itl --save-result --result-dir {folder} \
         --result-filename peer.json",
        tokenizer = work.join("tokenizer").display(),
        folder = work.display()
    )));
    command
}

/// A tokenizer of a thousand words, in the form that both clients load from a
/// folder: nothing has to be fetched from anywhere.
fn write_tokenizer(folder: &Path) -> Result<(), String> {
    let mut vocabulary = serde_json::Map::new();
    vocabulary.insert("[UNK]".to_owned(), json!(0));
    for number in 1..1_000 {
        vocabulary.insert(format!("w{number}"), json!(number));
    }
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": null,
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    let class = json!({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"});
    let config = json!({"model_type": "gpt2", "vocab_size": 1_000});
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for (name, value) in
        [("tokenizer.json", tokenizer), ("tokenizer_config.json", class), ("config.json", config)]
    {
        fs::write(folder.join(name), value.to_string()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
