//! The benchmarks, one module a part, and what they share: programs, cores,
//! repetitions and the rules that void one.

mod accuracy;
mod cost;
mod lateness;
mod memory;
mod overload;
mod peers;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::table::Table;

/// What a part gives: figures for the result file, and tables.
type Done = Result<(Value, Vec<Table>), String>;

/// One part.
struct Part {
    letter: char,
    name: &'static str,
    run: fn(&Bench) -> Done,
}

/// All parts in the order of the page.
const PARTS: &[Part] = &[
    Part { letter: 'a', name: "cost of a chunk", run: cost::run },
    Part { letter: 'b', name: "accuracy", run: accuracy::run },
    Part { letter: 'c', name: "lateness of arrivals", run: lateness::run },
    Part { letter: 'd', name: "memory", run: memory::run },
    Part { letter: 'e', name: "overload", run: overload::run },
    Part { letter: 'v', name: "validity of short runs", run: overload::short_runs },
    Part { letter: 'f', name: "peers", run: peers::run },
];

/// What every part needs.
struct Bench {
    goodput: PathBuf,
    anchor: Option<PathBuf>,
    vllm_rs: Option<PathBuf>,
    vllm: Option<PathBuf>,
    /// The server's processor; also the client's where they share one.
    server_core: usize,
    client_core: usize,
    work: PathBuf,
    quick: bool,
    repeat: usize,
}

/// Runs the parts and writes the results.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let bench = Bench::new(arguments)?;
    let wanted = arguments.text("parts").unwrap_or("abcdevf").to_owned();
    let unknown =
        |letter: &char| *letter != ',' && !PARTS.iter().any(|part| part.letter == *letter);
    if let Some(letter) = wanted.chars().find(unknown) {
        return Err(format!("--parts {letter}: there is no such part"));
    }
    let mut figures = serde_json::Map::new();
    figures.insert("machine".to_owned(), machine());
    figures.insert("quick".to_owned(), json!(bench.quick));
    let mut page = String::new();
    for part in PARTS.iter().filter(|part| wanted.contains(part.letter)) {
        crate::tell(&format!("({}) {}", part.letter, part.name));
        let (value, tables) = (part.run)(&bench)?;
        figures.insert(part.letter.to_string(), value);
        for table in tables {
            let text = table.markdown();
            crate::say(&text);
            page.push_str(&text);
            page.push('\n');
        }
    }
    let write = |name: &str, text: &str| match arguments.text(name) {
        Some(path) => fs::write(path, text).map_err(|error| format!("{path}: {error}")),
        None => Ok(()),
    };
    if arguments.text("work").is_none() {
        // What is left behind would only take room.
        let _ = fs::remove_dir_all(&bench.work);
    }
    write("json", &format!("{:#}\n", Value::Object(figures)))?;
    write("markdown", &page)
}

/// What the figures depend on besides the programs.
fn machine() -> Value {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "cpu": model.map(|(_, name)| name),
        "cores": crate::limits::allowed_cores().len(),
        "kernel": text("/proc/sys/kernel/osrelease").trim(),
        "load_average": text("/proc/loadavg").trim(),
    })
}

impl Bench {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let cores = crate::limits::allowed_cores();
        let [.., client_core, server_core] = cores[..] else {
            return Err("two processors are needed: one for the server, one for the client".into());
        };
        let set = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
        let from = |name: &str| set(name).map(PathBuf::from);
        let quick = arguments.has("quick");
        let work = match arguments.text("work") {
            Some(path) => PathBuf::from(path),
            None => std::env::temp_dir().join(format!("instrument-{}", std::process::id())),
        };
        fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
        Ok(Self {
            goodput: PathBuf::from(arguments.need("goodput")?),
            anchor: arguments.text("anchor").map(PathBuf::from),
            vllm_rs: from("VLLM_RS_BENCH"),
            vllm: from("VLLM_BENCH"),
            server_core,
            client_core,
            work,
            quick,
            repeat: arguments.number("repeat", if quick { 1 } else { 5 })?,
        })
    }

    /// A path in the working folder with nothing there.
    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.work.join(name);
        // Neither may exist; what does not cannot be removed.
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(&path);
        path
    }

    /// The command line of `goodput bench` against a server, one thread, with
    /// its run directory and its summary in the working folder.
    fn goodput(&self, address: &str, words: &str) -> Vec<String> {
        self.goodput_at(&format!("http://{address}"), words)
    }

    /// The same, at a base address with its scheme.
    fn goodput_at(&self, base: &str, words: &str) -> Vec<String> {
        let run = self.fresh("run");
        let summary = self.fresh("summary.json");
        let fixed = format!(
            "bench --url {base}/v1/chat/completions --backend openai-chat --model tok \
             --isl 8 --prefix-cache as-is --threads 1 --disable-tqdm --allow-invalid \
             --request-timeout 300 {words}"
        );
        let mut command = vec![path_text(&self.goodput)];
        command.extend(fixed.split_whitespace().map(str::to_owned));
        command.extend(["--json".to_owned(), path_text(&summary)]);
        command.extend(["--out".to_owned(), path_text(&run)]);
        command
    }

    /// The summary of the last run.
    fn summary(&self) -> Result<Value, String> {
        let path = self.work.join("summary.json");
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    /// Repeats until enough repetitions count; gives up at twice as many.
    fn repeated(
        &self,
        what: &str,
        mut run: impl FnMut() -> Result<Sample, String>,
    ) -> Result<Samples, String> {
        let mut samples = Samples::default();
        while samples.sound.len() < self.repeat && samples.tried() < 2 * self.repeat {
            let sample = run()?;
            let void = sample.void.as_deref().map_or(String::new(), |why| format!(" void: {why}"));
            crate::tell(&format!("    {what} {}{void}", samples.tried() + 1));
            match sample.void {
                None => samples.sound.push(sample.value),
                Some(why) => samples.void.push((sample.value, why)),
            }
        }
        Ok(samples)
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Words of a command line.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// One repetition's figures, and why they do not count.
struct Sample {
    value: Value,
    void: Option<String>,
}

/// Repetitions of one thing.
#[derive(Default)]
struct Samples {
    sound: Vec<Value>,
    void: Vec<(Value, String)>,
}

impl Samples {
    fn tried(&self) -> usize {
        self.sound.len() + self.void.len()
    }

    /// Those that count; when none does, all, which [`Self::count`] says.
    fn values(&self) -> Vec<&Value> {
        if self.sound.is_empty() {
            self.void.iter().map(|(value, _)| value).collect()
        } else {
            self.sound.iter().collect()
        }
    }

    /// The figure at a JSON pointer, of each.
    fn of(&self, pointer: &str) -> Vec<f64> {
        self.values().iter().filter_map(|value| value.pointer(pointer)?.as_f64()).collect()
    }

    /// How many count, of how many.
    fn count(&self) -> String {
        if self.sound.is_empty() {
            format!("all {} void", self.void.len())
        } else {
            format!("{} of {}", self.sound.len(), self.tried())
        }
    }

    fn to_json(&self) -> Value {
        let void: Vec<Value> =
            self.void.iter().map(|(value, why)| json!({"why": why, "value": value})).collect();
        json!({"sound": self.sound, "void": void})
    }
}
