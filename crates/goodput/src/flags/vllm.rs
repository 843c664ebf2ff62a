//! Flags of `vllm bench serve` that are refused, each with the reason. A test
//! holds this list and the table of flags to all names that vLLM has.

/// Name and reason, one sentence.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("tokenizer-mode", "the file or --tokenizer server says which kind it is; leave it out"),
    ("trust-remote-code", "nothing here runs a model's code; leave it out"),
    (
        "probe-request-rate",
        "a side probe shares the client with the load that it judges; every request here is timed from its intended instant instead",
    ),
    ("use-beam-search", "vLLM itself never reads this flag"),
    (
        "chat-template-kwargs",
        "templates are the server's job; send --extra-body '{\"chat_template_kwargs\": {…}}'",
    ),
    (
        "append-result",
        "it makes a file that is not JSON; each run has a directory of its own instead",
    ),
    (
        "profile",
        "starting the server's profiler comes in a later version; POST /start_profile yourself",
    ),
    ("plot-timeline", "the time line is in the page of --html"),
    ("timeline-itl-thresholds", "see --plot-timeline"),
    ("plot-dataset-stats", "lengths are in every report, and drawn in the page of --html"),
    ("no-stream", "it concerns data sets from a hub, which are not read"),
    ("blazedit-min-distance", "this data set is not read; use custom"),
    ("blazedit-max-distance", "this data set is not read; use custom"),
    (
        "asr-min-audio-len-sec",
        "it concerns speech data sets from a hub, which are not read; use custom_audio",
    ),
    ("asr-max-audio-len-sec", "see --asr-min-audio-len-sec"),
    ("hf-subset", "nothing is fetched from a hub; give the subset's file with --dataset-path"),
    ("hf-split", "nothing is fetched from a hub; give the split's file with --dataset-path"),
    ("hf-name", "columns decide, not a name; give them with --dataset-column"),
    ("bfcl-categories", "this data set is not read; use custom"),
    ("speed-bench-dataset-subset", "give the subset's file itself with --dataset-path"),
];

#[cfg(test)]
mod tests {
    use super::super::{BENCH, Vllm};
    use super::*;
    use std::collections::BTreeSet;

    /// All option names of `vllm bench serve` 0.27.1.
    const NAMES: &str = "backend base-url host port endpoint header insecure model \
        served-model-name tokenizer tokenizer-mode trust-remote-code skip-tokenizer-init \
        lora-modules lora-assignment request-id-prefix num-prompts request-rate burstiness \
        max-concurrency ramp-up-strategy ramp-up-start-rps ramp-up-end-rps self-timed \
        no-self-timed probe-request-rate num-warmups ready-check-timeout-sec seed ignore-eos \
        logprobs use-beam-search top-p top-k min-p temperature frequency-penalty \
        presence-penalty repetition-penalty extra-body chat-template-kwargs percentile-metrics \
        metric-percentiles goodput save-result save-detailed append-result metadata label \
        result-dir result-filename disable-tqdm profile plot-timeline timeline-itl-thresholds \
        plot-dataset-stats dataset-name dataset-path no-stream no-oversample skip-chat-template \
        enable-multimodal-chat disable-shuffle input-len output-len custom-output-len \
        custom-ensure-client-side-data spec-bench-output-len spec-bench-category \
        sonnet-input-len sonnet-output-len sonnet-prefix-len sharegpt-output-len \
        timed-trace-chunk-hash-size timed-trace-sec-multiplier timed-trace-label-timestamp \
        timed-trace-label-input-length timed-trace-label-output-length \
        timed-trace-label-hash-ids blazedit-min-distance blazedit-max-distance \
        asr-min-audio-len-sec asr-max-audio-len-sec random-input-len random-output-len \
        random-range-ratio random-prefix-len random-batch-size no-reranker \
        random-mm-base-items-per-request random-mm-num-mm-items-range-ratio \
        random-mm-limit-mm-per-prompt random-mm-bucket-config hf-subset hf-split hf-name \
        hf-output-len bfcl-categories prefix-repetition-prefix-len prefix-repetition-suffix-len \
        prefix-repetition-num-prefixes prefix-repetition-output-len speed-bench-dataset-subset \
        speed-bench-output-len speed-bench-category";

    #[test]
    fn every_vllm_flag_is_taken_or_refused_with_a_reason() {
        let theirs: BTreeSet<&str> = NAMES.split_whitespace().collect();
        assert_eq!(theirs.len(), 105, "104 names and --no-self-timed");
        let taken: BTreeSet<&str> = BENCH
            .iter()
            .filter(|flag| flag.vllm != Vllm::Ours || !flag.also.is_empty())
            .flat_map(|flag| flag.also.iter().copied().chain([flag.name]))
            .filter(|name| theirs.contains(name))
            .collect();
        let refused: BTreeSet<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
        assert!(taken.is_disjoint(&refused));
        let known: BTreeSet<&str> = taken.union(&refused).copied().collect();
        assert_eq!(known, theirs);
        assert!(REFUSED.iter().all(|(_, reason)| reason.len() > 10));
    }

    #[test]
    fn our_own_flags_do_not_pretend_to_be_vllms() {
        for flag in BENCH.iter().filter(|flag| flag.vllm == Vllm::Ours) {
            assert!(!NAMES.split_whitespace().any(|name| name == flag.name), "{}", flag.name);
        }
    }

    #[test]
    fn names_are_unique_and_every_flag_says_what_it_does() {
        let names: Vec<&str> =
            BENCH.iter().flat_map(|flag| flag.also.iter().copied().chain([flag.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let shorts: Vec<char> = BENCH.iter().filter_map(|flag| flag.short).collect();
        assert_eq!(shorts.iter().collect::<BTreeSet<_>>().len(), shorts.len());
        assert!(BENCH.iter().all(|flag| flag.help.len() > 5));
    }
}
