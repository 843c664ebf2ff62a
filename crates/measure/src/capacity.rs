//! What a model on some accelerators can do at best: weights, KV cache, seats,
//! least latencies, capacity under an objective, cost. Every figure carries its
//! formula with the numbers in it.
//!
//! All of it are bounds: peaks of the hardware, no host, no communication, prompts
//! and answers in the same steps, whose weights are read once. What an engine takes
//! beyond them, the engine model predicts and a run measures.

use crate::deployment::Deployment;
use crate::hardware::{Accelerator, Bound, ModelShape, Precision, Work};
use crate::metric::Text;
use crate::said::{Said, said};
use crate::slo::{Quantity, Slo};

/// What is asked of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Tokens of a prompt.
    pub input: u32,
    /// Tokens of an answer.
    pub output: u32,
    /// What a good request is.
    pub slo: Slo,
    /// Price of one accelerator for an hour.
    pub price_per_hour: Option<f64>,
}

impl Ask {
    /// The limit of a quantity for all requests, ms.
    fn limit_ms(&self, quantities: &[Quantity]) -> Option<f64> {
        let terms = self.slo.terms.iter().filter(|term| quantities.contains(&term.quantity));
        terms.map(|term| term.limit_ms).reduce(f64::min)
    }

    /// The limit of TTFT.
    pub fn ttft_ms(&self) -> Option<f64> {
        self.limit_ms(&[Quantity::Ttft, Quantity::Ttfc, Quantity::Start])
    }

    /// The limit of TPOT; where only whole answers are bounded, what they leave
    /// for each later token.
    pub fn tpot_ms(&self) -> Option<f64> {
        let whole = self.limit_ms(&[Quantity::E2el]).filter(|_| self.output > 1);
        let of_whole = whole.map(|limit_ms| limit_ms / f64::from(self.output - 1));
        [self.limit_ms(&[Quantity::Tpot]), of_whole].into_iter().flatten().reduce(f64::min)
    }
}

/// One engine, as far as bounds go.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// The model.
    pub model: ModelShape,
    /// What it runs on.
    pub accelerator: Accelerator,
    /// Accelerators that share each layer.
    pub tensor_parallel: u32,
    /// Stages of layers.
    pub pipeline_parallel: u32,
    /// Precision of weights.
    pub weights: Precision,
    /// Precision of keys and values.
    pub kv_cache: Precision,
    /// Memory of one accelerator that the engine takes, bytes.
    pub usable_bytes: f64,
    /// What of it holds neither weights nor keys and values, bytes.
    pub reserved_bytes: f64,
    /// Tokens that its KV cache holds.
    pub kv_capacity_tokens: f64,
    /// Sequences that may run at a time.
    pub seats: u32,
}

/// A figure of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its key in JSON, with its unit.
    pub key: &'static str,
    /// What it is.
    pub name: Text,
    /// The unit.
    pub unit: &'static str,
    /// The value, or why there is none.
    pub value: Result<f64, Said>,
    /// The formula with the numbers in it.
    pub formula: Said,
}

impl Engine {
    /// Accelerators of the engine.
    pub fn accelerators(&self) -> u32 {
        self.tensor_parallel.saturating_mul(self.pipeline_parallel).max(1)
    }

    /// The same as a deployment of one engine.
    pub fn deployment(&self, price_per_hour: Option<f64>) -> Deployment {
        Deployment {
            model: Some(self.model.clone()),
            accelerator: Some(self.accelerator),
            topology: vec![(String::new(), self.accelerators())],
            tensor_parallel: Some(self.tensor_parallel),
            pipeline_parallel: Some(self.pipeline_parallel),
            weights: Some(self.weights),
            kv_cache: Some(self.kv_cache),
            price_per_hour,
            seats: Some(self.seats),
            token_budget: None,
        }
    }

    fn bound(&self, work: Work) -> Bound {
        let precision = self.accelerator.compute_precision(self.weights);
        let none = Bound { compute_s: f64::INFINITY, memory_s: f64::INFINITY };
        work.bound(&self.accelerator, precision, self.accelerators()).unwrap_or(none)
    }

    /// The least time that a prompt takes, alone in its step, seconds.
    pub fn prompt_s(&self, ask: &Ask) -> f64 {
        let input = f64::from(ask.input);
        self.bound(Work::prefill(&self.model, self.weights, self.kv_cache, input, 0.0)).seconds()
    }

    /// The least time of a step that decodes for so many, at the middle of their
    /// answers, seconds.
    pub fn step_s(&self, ask: &Ask, batch: f64) -> f64 {
        let context = middle(ask);
        self.bound(Work::decode(&self.model, self.weights, self.kv_cache, batch, context)).seconds()
    }

    /// What a step has to do where so many decode and each that ends is followed
    /// by another: a token for each, and the share of their prompts that falls on
    /// one step. A step that does both reads the weights once.
    pub fn mixed(&self, ask: &Ask, batch: f64) -> Work {
        let share = batch / f64::from(ask.output.max(1));
        let (input, kv) = (f64::from(ask.input), self.kv_cache);
        let decode = Work::decode(&self.model, self.weights, kv, batch, middle(ask));
        let prompt = Work::prefill(&self.model, self.weights, kv, input, 0.0);
        let weights = |tokens: f64| self.model.weight_bytes_read(self.weights, tokens);
        Work {
            flops: decode.flops + share * prompt.flops,
            bytes: decode.bytes - weights(batch)
                + weights(batch + share * input)
                + share * input * self.model.kv_bytes_per_token(kv),
        }
    }

    /// The least TPOT where so many decode and prompts come between, seconds.
    pub fn tpot_s(&self, ask: &Ask, batch: f64) -> f64 {
        self.bound(self.mixed(ask, batch)).seconds()
    }

    /// Prompts a second where nothing else is done and any number share a step.
    pub fn prompts_per_s(&self, ask: &Ask) -> f64 {
        let (input, kv) = (f64::from(ask.input), self.kv_cache);
        let prompt = Work::prefill(&self.model, self.weights, kv, input, 0.0);
        let bytes = input * self.model.kv_bytes_per_token(kv);
        1.0 / self.bound(Work { bytes, ..prompt }).seconds()
    }

    /// Sequences that fit the KV cache on average over time, each at its middle.
    pub fn seats_by_kv(&self, ask: &Ask) -> f64 {
        self.kv_capacity_tokens / middle(ask)
    }

    /// The most sequences that may run and fit.
    pub fn most_seats(&self, ask: &Ask) -> f64 {
        self.seats_by_kv(ask).floor().min(f64::from(self.seats)).max(0.0)
    }

    /// The largest batch whose TPOT is within the objective, at most the seats;
    /// 0 where one alone is not.
    pub fn largest_batch(&self, ask: &Ask) -> f64 {
        let most = self.most_seats(ask);
        let Some(limit_ms) = ask.tpot_ms() else { return most };
        let fits = |batch: f64| 1e3 * self.tpot_s(ask, batch) <= limit_ms;
        if most < 1.0 || !fits(1.0) {
            return 0.0;
        }
        // TPOT grows with the batch: halve until one apart.
        let (mut low, mut high) = (1.0, most);
        if fits(high) {
            return high;
        }
        while high - low > 1.0 {
            let middle = ((low + high) / 2.0).floor();
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }

    /// Requests a second that a batch of that size serves for ever: each sits
    /// through its answer's steps, and the batch's prompts come between.
    pub fn requests_per_s(&self, ask: &Ask, batch: f64) -> f64 {
        batch / (f64::from(ask.output) * self.tpot_s(ask, batch))
    }
}

/// Tokens of a sequence at the middle of its answer.
fn middle(ask: &Ask) -> f64 {
    f64::from(ask.input) + f64::from(ask.output) / 2.0
}

fn line(
    key: &'static str,
    name: Text,
    unit: &'static str,
    value: Result<f64, Said>,
    formula: Said,
) -> Line {
    Line { key, name, unit, value, formula }
}

/// Numbers are shown with four digits, whole ones as they are.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        let digits = (3 - value.abs().max(1e-3).log10().floor() as i32).clamp(0, 6) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.3e}")
    }
}

/// Every bound of an engine under what is asked of it.
pub fn bounds(engine: &Engine, ask: &Ask) -> Vec<Line> {
    let mut lines = memory(engine, ask);
    lines.extend(latency(engine, ask));
    lines.extend(capacity(engine, ask));
    lines
}

fn memory(engine: &Engine, ask: &Ask) -> Vec<Line> {
    let Engine { model, weights, kv_cache: kv, .. } = engine;
    let count = engine.accelerators();
    let gb = |bytes: f64| short(bytes / 1e9);
    let all = model.weight_bytes(*weights);
    let per_token = model.kv_bytes_per_token(*kv);
    let of_one = model.kv_bytes_per_token_of_one(*kv, engine.tensor_parallel)
        / f64::from(engine.pipeline_parallel.max(1));
    let each = all / f64::from(count);
    let worst = f64::from(ask.input) + f64::from(ask.output);
    vec![
        line(
            "weight_gb_per_accelerator",
            Text { en: "weights on each accelerator", zh: "每张加速器上的权重" },
            "GB",
            Ok(each / 1e9),
            said!(
                "{parameters}·10⁹ parameters × {bytes} bytes ÷ {count}",
                "{parameters}·10⁹ 参数 × {bytes} 字节 ÷ {count}",
                parameters = short(model.total_parameters() / 1e9),
                bytes = weights.bytes_per_value(),
                count = count,
            ),
        ),
        line(
            "kv_bytes_per_token",
            Text { en: "KV cache of a token", zh: "每 token 的 KV 缓存" },
            "B",
            Ok(per_token),
            said!(
                "{layers} layers × values of a layer × {bytes} bytes; {of_one} on each accelerator",
                "{layers} 层 × 每层的值 × {bytes} 字节；每张加速器 {of_one}",
                layers = model.layers,
                bytes = kv.bytes_per_value(),
                of_one = short(of_one),
            ),
        ),
        line(
            "kv_capacity_tokens",
            Text { en: "KV capacity", zh: "KV 容量" },
            "tokens",
            Ok(engine.kv_capacity_tokens),
            said!(
                "({usable} GB for the engine − {weights} weights − {reserved} other) ÷ {of_one} B, in \
                 whole blocks",
                "（引擎可用 {usable} GB − 权重 {weights} − 其他 {reserved}）÷ {of_one} B，按整块计",
                usable = gb(engine.usable_bytes),
                weights = gb(each),
                reserved = gb(engine.reserved_bytes),
                of_one = short(of_one),
            ),
        ),
        line(
            "seats_by_kv",
            Text { en: "seats by KV cache", zh: "KV 可容纳的并发" },
            "requests",
            Ok(engine.seats_by_kv(ask)),
            said!(
                "{tokens} ÷ ({input} + {output} ÷ 2); {worst} if all were at their end",
                "{tokens} ÷ ({input} + {output} ÷ 2)；若都处于末尾则为 {worst}",
                tokens = short(engine.kv_capacity_tokens),
                input = ask.input,
                output = ask.output,
                worst = short(engine.kv_capacity_tokens / worst),
            ),
        ),
        line(
            "seats",
            Text { en: "seats", zh: "席位" },
            "requests",
            Ok(engine.most_seats(ask)),
            said!(
                "the smaller of {seats} (max_num_seqs) and {kv} by KV cache",
                "max_num_seqs {seats} 与 KV 可容纳 {kv} 中较小者",
                seats = engine.seats,
                kv = short(engine.seats_by_kv(ask).floor()),
            ),
        ),
    ]
}

fn latency(engine: &Engine, ask: &Ask) -> Vec<Line> {
    let prompt =
        Work::prefill(&engine.model, engine.weights, engine.kv_cache, f64::from(ask.input), 0.0);
    let alone = Work::decode(&engine.model, engine.weights, engine.kv_cache, 1.0, middle(ask));
    let (batch, most) = (engine.largest_batch(ask), engine.most_seats(ask));
    let within = ask.tpot_ms().map_or_else(
        || said!("no limit of TPOT is given: all seats", "未给出 TPOT 上限：全部席位"),
        |limit_ms| {
            said!(
                "largest B of {most} with TPOT(B) ≤ {limit} ms",
                "满足 TPOT(B) ≤ {limit} ms 的最大 B，不超过 {most}",
                most = short(most),
                limit = short(limit_ms),
            )
        },
    );
    let ms = |seconds: f64| 1e3 * seconds;
    vec![
        line(
            "least_ttft_ms",
            Text { en: "least TTFT", zh: "最小 TTFT" },
            "ms",
            Ok(ms(engine.prompt_s(ask))),
            of_work(engine, prompt),
        ),
        line(
            "least_tpot_ms",
            Text { en: "least TPOT, one alone", zh: "单请求最小 TPOT" },
            "ms/token",
            Ok(ms(engine.step_s(ask, 1.0))),
            of_work(engine, alone),
        ),
        line(
            "largest_batch",
            Text { en: "largest batch within the objective", zh: "满足目标的最大批量" },
            "requests",
            if batch >= 1.0 { Ok(batch) } else { Err(too_slow(engine, ask)) },
            within,
        ),
        line(
            "tpot_ms_at_largest_batch",
            Text { en: "least TPOT at that batch", zh: "该批量下的最小 TPOT" },
            "ms/token",
            if batch >= 1.0 {
                Ok(ms(engine.tpot_s(ask, batch)))
            } else {
                Err(too_slow(engine, ask))
            },
            of_work(engine, engine.mixed(ask, batch.max(1.0))),
        ),
    ]
}

/// The larger of two terms, in numbers.
fn of_work(engine: &Engine, work: Work) -> Said {
    let bound = engine.bound(work);
    let count = engine.accelerators();
    said!(
        "the longer of {tera} TFLOP at peak {compute} ms and {gb} GB at peak {memory} ms, over {count}",
        "取较长者：{tera} TFLOP 按峰值 {compute} ms，{gb} GB 按峰值 {memory} ms，共 {count} 张",
        tera = short(work.flops / 1e12),
        compute = short(1e3 * bound.compute_s),
        gb = short(work.bytes / 1e9),
        memory = short(1e3 * bound.memory_s),
        count = count,
    )
}

/// Why no batch meets the objective.
fn too_slow(engine: &Engine, ask: &Ask) -> Said {
    if engine.most_seats(ask) < 1.0 {
        return said!(
            "not one request of {input} + {output} tokens fits the KV cache of {tokens}",
            "KV 缓存 {tokens} 容纳不下一个 {input} + {output} token 的请求",
            input = ask.input,
            output = ask.output,
            tokens = short(engine.kv_capacity_tokens),
        );
    }
    said!(
        "one request alone has a TPOT of at least {least} ms and the limit is {limit}",
        "单个请求的 TPOT 至少 {least} ms，而上限为 {limit}",
        least = short(1e3 * engine.tpot_s(ask, 1.0)),
        limit = short(ask.tpot_ms().unwrap_or(f64::INFINITY)),
    )
}

/// Why nothing can be served within the objective, if so.
fn impossible(engine: &Engine, ask: &Ask) -> Option<Said> {
    let ttft_ms = 1e3 * engine.prompt_s(ask);
    if let Some(limit_ms) = ask.ttft_ms().filter(|limit_ms| ttft_ms > *limit_ms) {
        return Some(said!(
            "a prompt alone takes at least {least} ms and the limit of TTFT is {limit}",
            "仅预填充至少 {least} ms，而 TTFT 上限为 {limit}",
            least = short(ttft_ms),
            limit = short(limit_ms),
        ));
    }
    (engine.largest_batch(ask) < 1.0).then(|| too_slow(engine, ask))
}

fn capacity(engine: &Engine, ask: &Ask) -> Vec<Line> {
    let why = impossible(engine, ask);
    let or_why = |value: f64| why.clone().map_or(Ok(value), Err);
    let batch = engine.largest_batch(ask).max(1.0);
    let (step_s, tpot_s) = (engine.step_s(ask, batch), engine.tpot_s(ask, batch));
    let prompts = engine.prompts_per_s(ask);
    let output = f64::from(ask.output);
    let requests = engine.requests_per_s(ask, batch);
    let count = f64::from(engine.accelerators());
    let mut lines = vec![
        line(
            "prefill_req_s",
            Text { en: "prompts alone", zh: "仅预填充" },
            "req/s",
            or_why(prompts),
            said!(
                "1 ÷ {prompt} s, any number in a step",
                "1 ÷ {prompt} s，一步可含任意多个",
                prompt = short(1.0 / prompts),
            ),
        ),
        line(
            "decode_req_s",
            Text { en: "answers alone", zh: "仅解码" },
            "req/s",
            or_why(batch / (output * step_s)),
            said!(
                "{batch} ÷ ({output} × {step} s)",
                "{batch} ÷ ({output} × {step} s)",
                batch = short(batch),
                output = ask.output,
                step = short(step_s),
            ),
        ),
        line(
            "capacity_req_s",
            Text {
                en: "capacity within the objective, at best", zh: "满足目标的理论容量"
            },
            "req/s",
            or_why(requests),
            said!(
                "{batch} ÷ ({output} × TPOT {tpot} s)",
                "{batch} ÷ ({output} × TPOT {tpot} s)",
                batch = short(batch),
                output = ask.output,
                tpot = short(tpot_s),
            ),
        ),
        line(
            "output_tok_s_per_accelerator",
            Text { en: "output of each accelerator, at best", zh: "单卡理论输出" },
            "tok/s",
            or_why(requests * output / count),
            said!(
                "{requests} req/s × {output} ÷ {count}",
                "{requests} req/s × {output} ÷ {count}",
                requests = short(requests),
                output = ask.output,
                count = engine.accelerators(),
            ),
        ),
    ];
    if let Some(price) = ask.price_per_hour {
        lines.push(line(
            "cost_per_million_tokens",
            Text {
                en: "cost of a million output tokens, at best",
                zh: "每百万输出 token 的最低成本",
            },
            "per 1M tokens",
            or_why(1e6 * count * price / 3_600.0 / (requests * output)),
            said!(
                "10⁶ × {count} × {price} an hour ÷ (3600 × {rate} tok/s)",
                "10⁶ × {count} × 每小时 {price} ÷ (3600 × {rate} tok/s)",
                count = engine.accelerators(),
                price = short(price),
                rate = short(requests * output),
            ),
        ));
    }
    lines
}

/// A hosted API's prices for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApiPrice {
    /// Prompt tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Prompt tokens that it had cached; as [`Self::input`] where nothing is said.
    pub cached: Option<f64>,
}

impl ApiPrice {
    /// What requests with these tokens cost.
    pub fn of(&self, computed: f64, cached: f64, output: f64) -> f64 {
        let of_cached = cached * self.cached.unwrap_or(self.input);
        (computed * self.input + of_cached + output * self.output) / 1e6
    }
}

/// The load from which on an own deployment is cheaper than a hosted API.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakEven {
    /// What a request costs at the API.
    pub api_per_request: f64,
    /// What the deployment costs a second, used or not.
    pub own_per_second: f64,
    /// Good requests a second that it can serve.
    pub capacity_req_s: f64,
}

impl BreakEven {
    /// Requests a second at which both cost the same.
    pub fn req_s(&self) -> f64 {
        self.own_per_second / self.api_per_request
    }

    /// The same as a share of what the deployment can serve; above 1 the API is
    /// cheaper at any load that it can serve.
    pub fn utilisation(&self) -> f64 {
        self.req_s() / self.capacity_req_s
    }

    /// What a good request costs at full load.
    pub fn own_per_request(&self) -> f64 {
        self.own_per_second / self.capacity_req_s
    }
}

/// A load on the engine model and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Arrivals a second.
    pub req_s: f64,
    /// Requests that were judged, of which none was there while the engine filled.
    pub judged: u32,
    /// The share of them that met the objective.
    pub attainment: f64,
    /// True where a queue grew to the end.
    pub grows: bool,
    /// TTFT, median and 99th percentile, ms.
    pub ttft_ms: [f64; 2],
    /// TPOT, mean and 99th percentile, ms; none where answers have one token.
    pub tpot_ms: Option<[f64; 2]>,
}

/// What a search over the rate found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The highest rate that met the objective; none where requests that meet
    /// nobody do not.
    pub met: Option<Tried>,
    /// The lowest that was tried and did not; none where the highest rate that
    /// was tried did.
    pub missed: Option<Tried>,
    /// Loads that were tried.
    pub tries: u32,
}

/// One way to divide a model over accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct Degree {
    /// Accelerators that share each layer.
    pub tensor_parallel: u32,
    /// Accelerators in all.
    pub accelerators: u32,
    /// What it can do at best, or the arithmetic of why it cannot be.
    pub bounds: Result<Vec<Line>, String>,
    /// What the engine model makes of it.
    pub predicted: Option<Prediction>,
}

impl Degree {
    /// A bound by its key.
    pub fn bound(&self, key: &str) -> Option<f64> {
        let lines = self.bounds.as_ref().ok()?;
        lines.iter().find(|line| line.key == key)?.value.as_ref().ok().copied()
    }

    /// Good requests a second that the engine model serves.
    pub fn predicted_req_s(&self) -> Option<f64> {
        Some(self.predicted.as_ref()?.met.as_ref()?.req_s)
    }

    /// The same for each accelerator.
    pub fn predicted_by_accelerator(&self) -> Option<f64> {
        Some(self.predicted_req_s()? / f64::from(self.accelerators.max(1)))
    }

    /// What the model predicts over what is possible at best.
    pub fn share_of_bound(&self) -> Option<f64> {
        Some(self.predicted_req_s()? / self.bound("capacity_req_s")?)
    }

    /// Cost of a million output tokens by the model's capacity.
    pub fn predicted_cost(&self, ask: &Ask) -> Option<f64> {
        let rate = self.predicted_req_s()? * f64::from(ask.output);
        let price = ask.price_per_hour? * f64::from(self.accelerators);
        Some(1e6 * price / 3_600.0 / rate)
    }
}

/// The degree that serves most good requests with each accelerator.
pub fn best(degrees: &[Degree]) -> Option<&Degree> {
    degrees.iter().filter(|degree| degree.predicted_by_accelerator().is_some()).max_by(|a, b| {
        a.predicted_by_accelerator()
            .partial_cmp(&b.predicted_by_accelerator())
            .unwrap_or(std::cmp::Ordering::Equal)
    })
}
