//! The table of `bench`'s flags.

use super::Secrecy::{Header, Json, Open, Url};
use super::Takes::{Each, Nothing, One, Several};
use super::Vllm::{Other, Ours, Same};
use super::{Flag, Secrecy, Takes, Vllm};

const fn flag(
    group: &'static str,
    name: &'static str,
    takes: Takes,
    vllm: Vllm,
    help: &'static str,
) -> Flag {
    Flag { name, short: None, also: &[], takes, group, help, vllm, secrecy: Open }
}

const fn short(flag: Flag, short: char) -> Flag {
    Flag { short: Some(short), ..flag }
}

const fn also(flag: Flag, also: &'static [&'static str]) -> Flag {
    Flag { also, ..flag }
}

const fn secret(flag: Flag, secrecy: Secrecy) -> Flag {
    Flag { secrecy, ..flag }
}

const TARGET: &str = "Target";
const LOAD: &str = "Load";
/// The group of what a workload is made of; a part of a mix takes its flags.
pub(crate) const DATA: &str = "Prompts";
const BODY: &str = "Request body";
const LIMITS: &str = "Limits";
const OBJECTIVES: &str = "Objectives";
const OUTPUT: &str = "Output";
const CLIENT: &str = "Client";

/// What flags do that `report` has too.
pub(crate) const MARKDOWN: &str = "Write the report as Markdown for GitHub, with its chart as an SVG of the same name beside it. \
     Where GITHUB_STEP_SUMMARY names a file, the report is also added to that, without any flag";
pub(crate) const CSV: &str = "Write one row for each request; undefined is empty, and text that a spreadsheet would compute begins with '";

pub(crate) const SLO: &str = "What a good request is, as 'ttft <= 300ms, tpot <= 50ms': ttft, ttfc, start, tpot, e2el, or icl.p99 and the like of its own gaps; \
     'tenant=a: ttft <= 1s' for requests with a label; mlperf:NAME for MLPerf's limits; several times";

/// Every flag of `bench`, in the order of the help.
pub(crate) const BENCH: &[Flag] = &[
    secret(
        flag(
            TARGET,
            "url",
            One("URL"),
            Ours,
            "Address to measure: the endpoint itself, or a base to which the API's usual path is added. Without one the embedded engine is measured",
        ),
        Url,
    ),
    secret(
        flag(
            TARGET,
            "also-url",
            Each("URL"),
            Ours,
            "Further address beside --url, for replicas without a router; several times. Model, API, headers and key are the same for all",
        ),
        Url,
    ),
    flag(
        TARGET,
        "url-strategy",
        One("HOW"),
        Ours,
        "Which address a request goes to: round-robin, per-session (turns of a conversation stay at one), weighted (sessions, by --url-weights at random) [round-robin]",
    ),
    flag(
        TARGET,
        "url-weights",
        Several("W"),
        Ours,
        "Weights of the addresses in their order: --url first, then each --also-url [1 each]",
    ),
    secret(
        flag(
            TARGET,
            "base-url",
            One("URL"),
            Other("the API's usual path is added when it is missing"),
            "As --url",
        ),
        Url,
    ),
    flag(
        TARGET,
        "host",
        One("HOST"),
        Other(
            "only together with --port or alone it names a target; without any address the embedded engine is measured",
        ),
        "Host of the target, plain http",
    ),
    flag(
        TARGET,
        "port",
        One("PORT"),
        Other("see --host"),
        "Port of the target [8000 when --host is given]",
    ),
    secret(
        flag(
            TARGET,
            "endpoint",
            One("PATH"),
            Other("chosen by --backend when not given"),
            "Path on the target, such as /v1/completions",
        ),
        Url,
    ),
    flag(
        TARGET,
        "backend",
        One("API"),
        Other("openai-chat is the default; the path follows from it"),
        "API: openai-chat, openai (= openai-completions, vllm), openai-responses, anthropic, ollama, tgi, sglang, triton [openai-chat]",
    ),
    flag(TARGET, "model", One("NAME"), Same, "Model asked for [the first that /v1/models names]"),
    flag(
        TARGET,
        "served-model-name",
        One("NAME"),
        Same,
        "Model name sent in requests, when it differs from --model",
    ),
    flag(
        TARGET,
        "lora-modules",
        Several("NAME[:W]"),
        Other(
            "a weight may follow a name, as in sql:3 chat:1, and a conversation keeps its adapter",
        ),
        "LoRA adapters, one of which each session asks for in place of the model: sql chat, or sql:3 chat:1",
    ),
    flag(
        TARGET,
        "lora-assignment",
        One("HOW"),
        Other("warm-up requests are dealt out too"),
        "How --lora-modules are dealt out: random, by the seed, or round-robin [random]",
    ),
    flag(
        TARGET,
        "model-mix",
        Several("NAME[:W]"),
        Ours,
        "Models, one of which each session asks for: big:1 small:3",
    ),
    flag(
        TARGET,
        "model-assignment",
        One("HOW"),
        Ours,
        "How --model-mix is dealt out: random, by the seed, or round-robin [random]",
    ),
    secret(
        flag(
            TARGET,
            "header",
            Each("K=V"),
            Same,
            "Header of every request, 'K: V' or K=V; several times",
        ),
        Header,
    ),
    flag(
        TARGET,
        "api-key-env",
        One("VAR"),
        Ours,
        "Environment variable that holds the key [OPENAI_API_KEY]",
    ),
    flag(TARGET, "api-key-file", One("FILE"), Ours, "File that holds the key"),
    flag(TARGET, "insecure", Nothing, Same, "Accept any TLS certificate"),
    flag(
        TARGET,
        "cacert",
        One("FILE"),
        Ours,
        "Certificate authorities to trust besides the system's, PEM",
    ),
    also(
        flag(
            TARGET,
            "ready-timeout",
            One("D"),
            Other(
                "--ready-check-timeout-sec: waits until the port takes connections and sends no request",
            ),
            "Wait up to this long until the target takes connections [0]",
        ),
        &["ready-check-timeout-sec"],
    ),
    flag(
        TARGET,
        "request-id-prefix",
        One("TEXT"),
        Same,
        "Head of each x-request-id [the run's id]",
    ),
    short(
        flag(
            LOAD,
            "num-prompts",
            One("N"),
            Other("100 is the default, and no default with --duration"),
            "Number of requests [100]",
        ),
        'n',
    ),
    flag(
        LOAD,
        "duration",
        One("D"),
        Ours,
        "Time in which requests are intended: 30, 30s, 5m; the tail is always awaited",
    ),
    flag(
        LOAD,
        "request-rate",
        One("R"),
        Other("arrivals are not rescaled to end at N/R; inf without -c sends everything at once"),
        "Requests per second, open loop; inf for no schedule",
    ),
    flag(
        LOAD,
        "burstiness",
        One("K"),
        Same,
        "Shape of the gaps: 1 Poisson, below 1 burstier, inf constant [1]",
    ),
    flag(
        LOAD,
        "arrivals",
        One("NAME"),
        Ours,
        "How arrivals lie between each other: constant, poisson, gamma, uniform [poisson]",
    ),
    flag(
        LOAD,
        "ramp-up-strategy",
        One("WAY"),
        Other("over time; vLLM ramps over the number of requests, which is steeper in time"),
        "Ramp from one rate to another over the run: linear, exponential",
    ),
    flag(
        LOAD,
        "ramp-up-start-rps",
        One("R"),
        Other("fractions too, 0 with linear too, and above the end for a ramp down"),
        "Rate at the start of the ramp",
    ),
    flag(LOAD, "ramp-up-end-rps", One("R"), Other("fractions too"), "Rate at its end"),
    flag(
        LOAD,
        "stages",
        One("LIST"),
        Ours,
        "Rates one after the other, RATE:DURATION,…: 5:30s,10:30s",
    ),
    flag(
        LOAD,
        "load-shape",
        One("SHAPE"),
        Ours,
        "sine:mean=10,amplitude=5,period=60s, or bursts:on=20,off=0,on_for=5s,off_for=10s",
    ),
    short(
        flag(
            LOAD,
            "max-concurrency",
            One("C"),
            Other(
                "without a rate: C users, each asking again when answered; with a rate: a cap, whose wait is in the latencies",
            ),
            "Users of a closed loop, or the cap of an open one [8 when no rate is given]",
        ),
        'c',
    ),
    also(
        flag(
            LOAD,
            "think-time",
            One("D"),
            Ours,
            "Pause of a closed-loop user before a request: 2s, exponential:mean=2s, uniform:from=1s,to=3s [0]",
        ),
        &["think"],
    ),
    flag(
        LOAD,
        "seed",
        One("N"),
        Other("drawn and printed unless given; vLLM's default is 0, which repeats the prompts"),
        "Seed of arrivals, lengths and prompts: the same seed repeats them [drawn]",
    ),
    flag(
        LOAD,
        "num-warmups",
        One("N"),
        Other(
            "N different requests one after the other, which are not measured and not sent again",
        ),
        "Unmeasured requests before the run [0]",
    ),
    flag(
        DATA,
        "dataset-name",
        One("NAME"),
        Other("hf and speed_bench take a local file"),
        "Where prompts come from: random, random-mm, prefix_repetition, sharegpt, custom, custom_image, custom_audio, hf, burstgpt, azure, mooncake, timed_trace, sonnet, spec_bench, speed_bench [random]",
    ),
    flag(
        DATA,
        "dataset-path",
        One("FILE"),
        Other("always a file on this machine: nothing is fetched from a hub"),
        "File of the data set",
    ),
    flag(
        DATA,
        "dataset-column",
        Each("FIELD=COLUMN"),
        Ours,
        "Columns of hf (prompt, output, label, tools), azure and burstgpt (input, output, time, label), as in prompt=question,output=answer; several times",
    ),
    flag(
        DATA,
        "mix",
        Each("PART|FILE"),
        Ours,
        "Several workloads in one run, drawn by weight for each request: 'chat:3 isl=512 osl=256', several times, or a TOML file with a table for each. A part takes the flags of this group, and has those of the run where it gives none",
    ),
    flag(DATA, "prompt", One("TEXT"), Ours, "The same text in every request"),
    also(
        flag(
            DATA,
            "isl",
            One("LENGTH"),
            Other(
                "--input-len, --random-input-len: exact with --tokenizer, else by words and marks",
            ),
            "Input length of synthetic prompts in tokens, exactly: 512, 512±25%, normal:mean=512,std=64, lognormal:median=512,sigma=0.6, 128:0.5,2048:0.5, histogram:FILE [512 ± 25 %; 4096 on the embedded engine]",
        ),
        &["input-len", "random-input-len"],
    ),
    also(
        flag(
            DATA,
            "osl",
            One("LENGTH"),
            Other("--output-len, --random-output-len: exact"),
            "Output limit in tokens, exactly, in the forms of --isl [128 ± 25 %; 128 on the embedded engine]",
        ),
        &["output-len", "random-output-len"],
    ),
    flag(
        DATA,
        "tokenizer",
        One("NAME"),
        Other("never downloads: a file, a folder, or a model that lies in the cache already"),
        "What prompt lengths are exact by: a tokenizer.json or its folder, ORG/MODEL from the Hugging Face cache, server to ask the target's own, or embedded [embedded on the embedded engine; else lengths are estimates]",
    ),
    flag(
        DATA,
        "random-range-ratio",
        One("R"),
        Same,
        "Spread of --isl and --osl: uniform within ± R, or of each: {\"input\": 0.3, \"output\": 0.5} [0]",
    ),
    also(
        flag(
            DATA,
            "shared-prefix-len",
            One("N"),
            Other("--random-prefix-len: besides the input length, as there"),
            "Tokens that all synthetic prompts begin with, as with a system prompt, besides --isl [0]",
        ),
        &["random-prefix-len"],
    ),
    flag(
        DATA,
        "session-prefix-len",
        One("N"),
        Ours,
        "Tokens that the synthetic prompts of one session begin with, besides --isl [0]",
    ),
    flag(
        DATA,
        "prefix-repetition-prefix-len",
        One("N"),
        Same,
        "Length of the prefixes of prefix_repetition [256]",
    ),
    flag(
        DATA,
        "prefix-repetition-suffix-len",
        One("N"),
        Other("--isl is taken too, and wins"),
        "Length of what comes after a prefix in prefix_repetition [256]",
    ),
    flag(
        DATA,
        "prefix-repetition-num-prefixes",
        One("N"),
        Other("requests that do not divide by it are sent too; vLLM drops the remainder"),
        "Number of prefixes of prefix_repetition: requests are dealt to them evenly [10]",
    ),
    flag(
        DATA,
        "prefix-repetition-output-len",
        One("N"),
        Other("--osl is taken too, and wins"),
        "Output limit of prefix_repetition [128]",
    ),
    flag(
        DATA,
        "random-mm-base-items-per-request",
        One("N"),
        Same,
        "Pictures of each request of random-mm [1]",
    ),
    flag(
        DATA,
        "random-mm-num-mm-items-range-ratio",
        One("R"),
        Same,
        "Spread of the number of pictures: uniform within ± R, ends rounded outwards [0]",
    ),
    flag(
        DATA,
        "random-mm-limit-mm-per-prompt",
        One("JSON"),
        Other("only image counts, and 255 is the most"),
        "Most pictures of a request, as in '{\"image\": 3}' [255]",
    ),
    flag(
        DATA,
        "random-mm-bucket-config",
        One("SIZES"),
        Other("videos (a third number above 1) are refused unless their share is 0"),
        "Sizes of pictures (height, width, 1) and their shares ['{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}']",
    ),
    flag(
        DATA,
        "random-mm-image-format",
        One("FORMAT"),
        Ours,
        "How pictures of random-mm are written: jpeg, png [jpeg, as vLLM]",
    ),
    flag(
        DATA,
        "custom-ensure-client-side-data",
        Nothing,
        Other(
            "files are always sent inside the request; with it, rows with an image at an address are skipped, since nothing is fetched",
        ),
        "Take rows of custom_image only whose pictures are files or data",
    ),
    flag(
        DATA,
        "enable-multimodal-chat",
        Nothing,
        Other("does nothing: pictures and sounds are always parts of chat messages"),
        "Taken and without effect",
    ),
    flag(
        DATA,
        "sharegpt-output-len",
        One("N"),
        Same,
        "Output limit in place of the answer's length",
    ),
    flag(
        DATA,
        "custom-output-len",
        One("N"),
        Other("applies to lines without a length of their own; -1 sends no limit for them"),
        "Output limit of custom prompts that have none [256]",
    ),
    flag(
        DATA,
        "hf-output-len",
        One("N"),
        Same,
        "Output limit of hf rows in place of the answer's length",
    ),
    flag(
        DATA,
        "burstgpt-model",
        One("NAME"),
        Ours,
        "Take the rows of this model only, such as GPT-4 [all; vLLM takes GPT-4 only]",
    ),
    flag(
        DATA,
        "sonnet-input-len",
        One("N"),
        Other("--isl is taken too; lengths by the estimate of this version"),
        "Length of sonnet prompts, not exceeded [550]",
    ),
    flag(DATA, "sonnet-output-len", One("N"), Same, "Output limit of sonnet prompts [150]"),
    flag(
        DATA,
        "sonnet-prefix-len",
        One("N"),
        Other("lengths by the estimate of this version"),
        "Length that all sonnet prompts begin with, within --sonnet-input-len [200]",
    ),
    flag(DATA, "spec-bench-output-len", One("N"), Same, "Output limit of spec_bench [256]"),
    flag(
        DATA,
        "spec-bench-category",
        One("NAME"),
        Same,
        "Take the questions of this category only [all]",
    ),
    flag(DATA, "speed-bench-output-len", One("N"), Same, "Output limit of speed_bench [4096]"),
    flag(
        DATA,
        "speed-bench-category",
        One("NAME"),
        Same,
        "Take the questions of this category only [all]",
    ),
    also(
        flag(
            DATA,
            "replay",
            Nothing,
            Other("for every data set with times, and the first arrival is at 0"),
            "Let requests go when those of the trace came [so for azure, mooncake and timed_trace, unless a rate is given; not for burstgpt]; -c is a cap then",
        ),
        &["self-timed"],
    ),
    also(
        flag(
            DATA,
            "no-replay",
            Nothing,
            Same,
            "Take lengths and prompts of a trace and not its times",
        ),
        &["no-self-timed"],
    ),
    flag(
        DATA,
        "trace-speed",
        One("X"),
        Ours,
        "Replay so many times as fast; 2 halves every gap [1]",
    ),
    flag(
        DATA,
        "trace-window",
        One("FROM..TO"),
        Ours,
        "Replay this part of the trace only, in its own time from its first row, as in 10m..20m; either end may be left out [all]",
    ),
    flag(
        DATA,
        "trace-sort",
        Nothing,
        Ours,
        "Put the rows of a trace into the order of time; without it, one that goes back in time is refused",
    ),
    flag(
        DATA,
        "timed-trace-chunk-hash-size",
        One("N"),
        Same,
        "Tokens of a block that a hash of timed_trace names: 512 for Mooncake, 16 for the traces of Qwen [16]",
    ),
    flag(
        DATA,
        "timed-trace-sec-multiplier",
        One("X"),
        Same,
        "What times of timed_trace are multiplied by to be seconds; 0.001 for milliseconds [1]",
    ),
    flag(
        DATA,
        "timed-trace-label-timestamp",
        One("KEY"),
        Same,
        "Key of the time in timed_trace [timestamp]",
    ),
    flag(
        DATA,
        "timed-trace-label-input-length",
        One("KEY"),
        Same,
        "Key of the prompt's length in timed_trace [input_length]",
    ),
    flag(
        DATA,
        "timed-trace-label-output-length",
        One("KEY"),
        Same,
        "Key of the answer's length in timed_trace [output_length]",
    ),
    flag(
        DATA,
        "timed-trace-label-hash-ids",
        One("KEY"),
        Same,
        "Key of the blocks' hashes in timed_trace [hash_ids]",
    ),
    flag(DATA, "disable-shuffle", Nothing, Same, "Take the rows of a data set in their order"),
    flag(
        DATA,
        "oversample",
        Nothing,
        Ours,
        "Send rows again when there are more requests than rows; repeats hit prefix caches",
    ),
    flag(
        DATA,
        "no-oversample",
        Nothing,
        Other("always so unless --oversample is given; vLLM repeats rows by default"),
        "Accepted for scripts: each row is sent once at most",
    ),
    flag(
        DATA,
        "prefix-cache",
        One("REGIME"),
        Ours,
        "What the server's prefix cache may know: cold, none, warm, as-is [cold; as-is for own prompts]",
    ),
    flag(
        DATA,
        "skip-chat-template",
        Nothing,
        Other("always so: the template is the server's job"),
        "Accepted for scripts: templates are never rendered on this side",
    ),
    flag(
        DATA,
        "skip-tokenizer-init",
        Nothing,
        Other("no tokenizer is needed, and one is read with --tokenizer only"),
        "Accepted for scripts: no tokenizer is needed",
    ),
    flag(
        BODY,
        "ignore-eos",
        Nothing,
        Other("never forced by the data set; sent only to APIs that know it"),
        "Ask the server to write the whole output limit",
    ),
    flag(BODY, "temperature", One("X"), Same, "Sampling temperature"),
    flag(BODY, "top-p", One("X"), Same, "Nucleus sampling"),
    flag(BODY, "top-k", One("N"), Same, "Top-k sampling"),
    flag(BODY, "min-p", One("X"), Same, "Min-p sampling"),
    flag(BODY, "frequency-penalty", One("X"), Same, "Frequency penalty"),
    flag(BODY, "presence-penalty", One("X"), Same, "Presence penalty"),
    flag(
        BODY,
        "repetition-penalty",
        One("X"),
        Other("not sent unless given"),
        "Repetition penalty",
    ),
    flag(BODY, "logprobs", One("N"), Same, "Log-probabilities per token (completions)"),
    secret(
        flag(
            BODY,
            "extra-body",
            One("JSON"),
            Same,
            "JSON object merged into every request body last",
        ),
        Json,
    ),
    flag(
        BODY,
        "priority",
        Several("N[:W]"),
        Ours,
        "Place in the server's queue, sent as `priority`: one number, or several by weight: 0:3 10:1. Engines differ in which end comes first",
    ),
    flag(
        BODY,
        "token-counts",
        One("WHEN"),
        Ours,
        "final, or continuous to ask for a count in every event [final]",
    ),
    flag(
        BODY,
        "length-field",
        One("NAME"),
        Ours,
        "max_completion_tokens or max_tokens, for chat servers that know only one [max_completion_tokens]",
    ),
    flag(
        LIMITS,
        "idle-timeout",
        One("D"),
        Ours,
        "A begun answer fails after this long without a byte [60s]",
    ),
    flag(LIMITS, "request-timeout", One("D"), Ours, "Any request fails after this long [600s]"),
    flag(LIMITS, "max-errors", One("N"), Ours, "Stop after more failures than this"),
    flag(
        LIMITS,
        "max-error-rate",
        One("SHARE"),
        Ours,
        "Stop when more than this share failed, of at least 20",
    ),
    flag(
        OBJECTIVES,
        "goodput",
        Several("NAME:MS"),
        Other("failures are bad requests; nan, inf and a name given twice are refused"),
        "Limits of a good request, jointly: ttft:300 tpot:60 e2el:10000, in ms",
    ),
    flag(OBJECTIVES, "slo", Each("SLO"), Ours, SLO),
    flag(
        OBJECTIVES,
        "fail-if",
        Each("RULE"),
        Ours,
        "Exit 99 when true: 'ttft.p99 > 500ms', 'attainment < 0.99', 'error_rate > 0.01'; several times",
    ),
    flag(OBJECTIVES, "strict", Nothing, Ours, "Exit 4 when the run is DEGRADED"),
    flag(OBJECTIVES, "allow-invalid", Nothing, Ours, "Exit as if an INVALID run were valid"),
    flag(
        OUTPUT,
        "json",
        One("FILE|-"),
        Ours,
        "Write the summary as one JSON object; - is standard output, with nothing else on it",
    ),
    flag(
        OUTPUT,
        "html",
        One("FILE"),
        Ours,
        "Write the report as one page with charts and the playground, which opens from disk",
    ),
    flag(OUTPUT, "markdown", One("FILE"), Ours, MARKDOWN),
    flag(OUTPUT, "csv", One("FILE"), Ours, CSV),
    flag(OUTPUT, "lang", One("en|zh"), Ours, "Language of what people read [by the locale]"),
    flag(OUTPUT, "out", One("DIR"), Ours, "Run directory [RUNS-DIR/<id>]"),
    flag(OUTPUT, "runs-dir", One("DIR"), Ours, "Where run directories are kept [runs]"),
    flag(OUTPUT, "save-text", Nothing, Ours, "Keep the texts of answers in the run directory"),
    flag(
        OUTPUT,
        "definitions",
        One("PRESET"),
        Ours,
        "Report under a tool's definitions: goodput, vllm-0.27, vllm [goodput]",
    ),
    flag(
        OUTPUT,
        "percentile-metrics",
        One("LIST"),
        Other(
            "chooses the rows of the printed latency table; the JSON always has all; unknown names are refused",
        ),
        "Rows of the latency table: ttft,tpot,itl,e2el …",
    ),
    flag(
        OUTPUT,
        "metric-percentiles",
        One("LIST"),
        Other("in addition to P50, P90, P95, P99, P99.9, which are always there"),
        "Further percentiles, such as 75,99.99",
    ),
    flag(
        OUTPUT,
        "save-result",
        Nothing,
        Other(
            "every run is kept in its directory; with --result-filename a copy of its summary is written there",
        ),
        "Accepted for scripts: results are always kept",
    ),
    flag(
        OUTPUT,
        "save-detailed",
        Nothing,
        Other("rows of all requests are always kept"),
        "Accepted for scripts: rows are always kept",
    ),
    flag(OUTPUT, "result-dir", One("DIR"), Same, "Folder of --result-filename [.]"),
    flag(
        OUTPUT,
        "result-filename",
        One("FILE"),
        Other("holds goodput's summary"),
        "Write a copy of the summary to this file",
    ),
    flag(OUTPUT, "metadata", Several("K=V"), Same, "Kept with the run"),
    flag(OUTPUT, "label", One("TEXT"), Same, "Kept with the run"),
    flag(OUTPUT, "disable-tqdm", Nothing, Same, "No progress display"),
    flag(
        OUTPUT,
        "dry-run",
        Nothing,
        Ours,
        "Print the resolved configuration and the schedule, send nothing",
    ),
    flag(
        OUTPUT,
        "ground-truth",
        One("FILE"),
        Ours,
        "Truth log of a server with a known clock: print the client's errors against it",
    ),
    flag(
        CLIENT,
        "threads",
        One("N"),
        Ours,
        "Sending threads: a number, or auto: one for each 50 000 expected chunks/s, at most one a core [auto]",
    ),
    flag(
        CLIENT,
        "selftest",
        Nothing,
        Ours,
        "Run goodput selftest --quick first, and show its floor beside the run's own figures",
    ),
    flag(
        CLIENT,
        "connection-reuse",
        One("WHEN"),
        Ours,
        "Which requests share a connection: always, per-session (turns of one conversation), never [always]",
    ),
    flag(CLIENT, "stall-ms", One("MS"), Ours, "A gap longer than this counts as a stall [500]"),
    flag(
        CLIENT,
        "config",
        One("FILE"),
        Ours,
        "TOML file with flags as keys; the command line and GOODPUT_* variables win over it",
    ),
];
