//! What `goodput plan` shows: bounds by degree of tensor parallelism with their
//! formulas, what the engine model makes of them, and a hosted API beside it.

use measure::capacity::{Ask, BreakEven, Degree, Line, Tried, best};
use measure::metric::Text;

use crate::document::{Document, Row, symbol};
use crate::lang::Lang;
use crate::number::{percent, short};

/// What a plan is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'a> {
    /// The model, in words.
    pub model: String,
    /// The accelerator, in words.
    pub accelerator: String,
    /// Precisions of weights, and of keys and values.
    pub precisions: [String; 2],
    /// What is asked.
    pub ask: &'a Ask,
    /// The share of requests that must meet the objective.
    pub attainment: f64,
    /// Ways to divide the model.
    pub degrees: &'a [Degree],
    /// Good requests a second that are wanted.
    pub wanted_req_s: Option<f64>,
    /// A hosted API beside it.
    pub api: Option<Api>,
}

/// A hosted API beside an own deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// The comparison.
    pub even: BreakEven,
    /// Where the capacity is from: a run's id, or the degree of the model.
    pub capacity_of: CapacityOf,
}

/// Where a capacity is from.
#[derive(Clone, Debug, PartialEq)]
pub enum CapacityOf {
    /// Goodput of a run.
    Run(String),
    /// The engine model at this degree.
    Model(u32),
}

const TITLE: Text = Text {
    en: "goodput plan · SIMULATED where it says model",
    zh: "goodput 容量规划 · 标“模型”处为模拟",
};
const OF: Text = Text { en: "{model} on {accelerator}", zh: "{model}，{accelerator}" };
const PRECISIONS: Text =
    Text { en: "weights {weights}, KV cache {kv}", zh: "权重 {weights}，KV 缓存 {kv}" };
const LENGTHS: Text = Text {
    en: "{input} prompt tokens → {output} output tokens",
    zh: "输入 {input} token → 输出 {output} token",
};
const OBJECTIVE: Text = Text {
    en: "good: {slo}, for {share} of the requests",
    zh: "目标：{slo}，{share} 的请求达标",
};
const NO_OBJECTIVE: Text = Text {
    en: "no objective: what a saturated engine finishes",
    zh: "未给出目标：按引擎饱和时的产出计算",
};
const BOUNDS: Text = Text { en: "At best, by peaks alone", zh: "理论最好（只看峰值）" };
const FORMULAS: Text =
    Text { en: "Formulas at tensor parallel {degree}", zh: "张量并行 {degree} 的公式" };
const PREDICTED: Text = Text {
    en: "By the engine model: the highest rate that meets the objective",
    zh: "引擎模型：满足目标的最高到达速率",
};
const PREDICTED_SATURATED: Text =
    Text { en: "By the engine model, saturated", zh: "引擎模型：饱和时" };
const DEGREE: Text = Text { en: "tensor parallel {degree}", zh: "张量并行 {degree}" };
const UNIT: Text = Text { en: "unit", zh: "单位" };
const REFUSED: Text =
    Text { en: "tensor parallel {degree}: {why}", zh: "张量并行 {degree}：{why}" };
const CAPACITY: Text = Text { en: "good requests", zh: "达标请求" };
const BETWEEN: Text = Text { en: "lowest rate that missed", zh: "未达标的最低速率" };
const ATTAINED: Text = Text { en: "attained", zh: "达标率" };
const OUTPUT: Text = Text { en: "output of each accelerator", zh: "单卡输出" };
const COST: Text =
    Text { en: "cost of a million output tokens", zh: "每百万输出 token 成本" };
const SHARE: Text = Text { en: "model over best", zh: "模型与理论之比" };
const UNREACHED: Text = Text {
    en: "tensor parallel {degree}: requests that meet nobody do not meet the objective either \
         (TTFT P50 {ttft} ms, TPOT {tpot} ms)",
    zh: "张量并行 {degree}：单独的请求也达不到目标（TTFT P50 {ttft} ms，TPOT {tpot} ms）",
};
const BEST: Text = Text {
    en: "Most good requests for each accelerator: tensor parallel {degree}, {rate} req/s each.",
    zh: "单卡达标请求最多：张量并行 {degree}，每张 {rate} req/s。",
};
const WANTED: Text = Text {
    en: "{wanted} req/s take {engines} engines of tensor parallel {degree}: {accelerators} accelerators.",
    zh: "{wanted} req/s 需要 {engines} 个张量并行 {degree} 的引擎，共 {accelerators} 张加速器。",
};
const JUDGED: Text = Text {
    en: "The engine model's coefficients are usual ones unless --engine FILE brings fitted ones; \
         Poisson arrivals, lengths ± 25 %, no shared prefixes.",
    zh: "引擎模型使用常见系数，除非用 --engine FILE 给出拟合结果；泊松到达，长度 ± 25 %，无公共前缀。",
};
const API: Text = Text { en: "Against a hosted API", zh: "与托管 API 对比" };
const API_REQUEST: Text = Text { en: "a request at the API", zh: "API 单请求费用" };
const OWN_REQUEST: Text =
    Text { en: "a good request here, at full load", zh: "自建满载时单个达标请求" };
const OWN_HOUR: Text = Text { en: "the deployment, an hour", zh: "自建每小时" };
const EVEN: Text = Text { en: "break-even", zh: "盈亏平衡" };
const EVEN_AT: Text = Text {
    en: "{rate} req/s, {share} of what the deployment serves well ({capacity} req/s, {of})",
    zh: "{rate} req/s，占部署达标能力的 {share}（{capacity} req/s，{of}）",
};
const NEVER_EVEN: Text = Text {
    en: "Above 100 % the API is cheaper at any load that this deployment serves well.",
    zh: "超过 100 % 表示：在该部署能达标服务的任何负载下，API 都更便宜。",
};
const OF_RUN: Text = Text { en: "goodput of run {id}", zh: "测试 {id} 的 goodput" };
const OF_MODEL: Text = Text {
    en: "the engine model at tensor parallel {degree}",
    zh: "引擎模型，张量并行 {degree}",
};

/// The plan as a document.
pub fn document(plan: &Plan<'_>, lang: Lang) -> Document {
    let mut page = Document { lang, title: lang.pick(TITLE).to_owned(), ..Document::default() };
    page.headline = lang.fill(OF, &[("model", &plan.model), ("accelerator", &plan.accelerator)]);
    let [weights, kv] = &plan.precisions;
    page.lines.push(lang.fill(PRECISIONS, &[("weights", weights), ("kv", kv)]));
    let lengths: [(&str, &dyn std::fmt::Display); 2] =
        [("input", &plan.ask.input), ("output", &plan.ask.output)];
    page.lines.push(lang.fill(LENGTHS, &lengths));
    page.lines.push(objective(plan, lang));
    bounds(&mut page, plan);
    formulas(&mut page, plan);
    predicted(&mut page, plan);
    if let Some(api) = &plan.api {
        hosted(&mut page, api);
    }
    page
}

fn objective(plan: &Plan<'_>, lang: Lang) -> String {
    if plan.ask.slo.all_terms().next().is_none() {
        return lang.pick(NO_OBJECTIVE).to_owned();
    }
    lang.fill(OBJECTIVE, &[("slo", &plan.ask.slo), ("share", &percent(plan.attainment))])
}

/// The degrees that can be.
fn possible<'a>(plan: &'a Plan<'_>) -> impl Iterator<Item = (&'a Degree, &'a [Line])> {
    plan.degrees.iter().filter_map(|degree| Some((degree, degree.bounds.as_ref().ok()?.as_slice())))
}

fn columns(plan: &Plan<'_>, lang: Lang) -> Vec<String> {
    let degree = |degree: &Degree| lang.fill(DEGREE, &[("degree", &degree.tensor_parallel)]);
    let mut columns = vec![String::new()];
    columns.extend(possible(plan).map(|(one, _)| degree(one)));
    columns.push(lang.pick(UNIT).to_owned());
    columns
}

fn row(name: Text, unit: &str, values: Vec<Option<f64>>, lang: Lang) -> Row {
    let mut cells = vec![lang.pick(name).to_owned()];
    cells.extend(values.into_iter().map(|value| value.map_or("n/a".to_owned(), short)));
    cells.push(unit.to_owned());
    Row { about: None, cells }
}

fn bounds(page: &mut Document, plan: &Plan<'_>) {
    let lang = page.lang;
    page.section("bounds", lang.pick(BOUNDS));
    let first = possible(plan).next().map(|(_, lines)| lines).unwrap_or_default();
    let rows = first.iter().map(|line| {
        let values = possible(plan).map(|(degree, _)| degree.bound(line.key)).collect();
        row(line.name, line.unit, values, lang)
    });
    page.table(columns(plan, lang), rows.collect());
    for degree in plan.degrees {
        if let Err(why) = &degree.bounds {
            let values: [(&str, &dyn std::fmt::Display); 2] =
                [("degree", &degree.tensor_parallel), ("why", why)];
            page.sentence(2, &lang.fill(REFUSED, &values));
        }
    }
}

/// The formulas of the best degree with their numbers.
fn formulas(page: &mut Document, plan: &Plan<'_>) {
    let lang = page.lang;
    let shown = best(plan.degrees).or_else(|| possible(plan).next().map(|(degree, _)| degree));
    let Some(degree) = shown else { return };
    let Ok(lines) = &degree.bounds else { return };
    page.section("formulas", &lang.fill(FORMULAS, &[("degree", &degree.tensor_parallel)]));
    let said =
        |line: &Line| lang.sentence(line.value.as_ref().err().unwrap_or(&line.formula)).to_owned();
    page.pairs(lines.iter().map(|line| (lang.pick(line.name).to_owned(), said(line))).collect());
}

fn predicted(page: &mut Document, plan: &Plan<'_>) {
    let lang = page.lang;
    let has_slo = plan.ask.slo.all_terms().next().is_some();
    page.section("predicted", lang.pick(if has_slo { PREDICTED } else { PREDICTED_SATURATED }));
    let of = |value: &dyn Fn(&Degree) -> Option<f64>| -> Vec<Option<f64>> {
        possible(plan).map(|(degree, _)| value(degree)).collect()
    };
    let met = |degree: &Degree| degree.predicted?.met;
    let tried = |value: fn(Tried) -> Option<f64>| of(&|degree| value(met(degree)?));
    let output = f64::from(plan.ask.output);
    let mut rows = vec![row(CAPACITY, "req/s", of(&Degree::predicted_req_s), lang)];
    if has_slo {
        let missed = of(&|degree| Some(degree.predicted?.missed?.req_s));
        rows.push(row(BETWEEN, "req/s", missed, lang));
        rows.push(row(ATTAINED, "", tried(|one| Some(one.attainment)), lang));
    }
    rows.extend([
        row(symbol("TTFT P50"), "ms", tried(|one| Some(one.ttft_ms[0])), lang),
        row(symbol("TTFT P99"), "ms", tried(|one| Some(one.ttft_ms[1])), lang),
        row(symbol("TPOT"), "ms/token", tried(|one| Some(one.tpot_ms?[0])), lang),
        row(symbol("TPOT P99"), "ms/token", tried(|one| Some(one.tpot_ms?[1])), lang),
        row(OUTPUT, "tok/s", of(&|degree| Some(degree.predicted_by_accelerator()? * output)), lang),
        row(SHARE, "", of(&Degree::share_of_bound), lang),
    ]);
    if plan.ask.price_per_hour.is_some() {
        rows.push(row(COST, "/1M", of(&|degree| degree.predicted_cost(plan.ask)), lang));
    }
    page.table(columns(plan, lang), rows);
    unreached(page, plan);
    chosen(page, plan);
    page.sentence(2, lang.pick(JUDGED));
}

/// Degrees at which no load meets the objective.
fn unreached(page: &mut Document, plan: &Plan<'_>) {
    let lang = page.lang;
    for (degree, _) in possible(plan) {
        let Some(prediction) = degree.predicted.filter(|found| found.met.is_none()) else {
            continue;
        };
        let Some(missed) = prediction.missed else { continue };
        let tpot = missed.tpot_ms.map_or("n/a".to_owned(), |[mean, _]| short(mean));
        let values: [(&str, &dyn std::fmt::Display); 3] = [
            ("degree", &degree.tensor_parallel),
            ("ttft", &short(missed.ttft_ms[0])),
            ("tpot", &tpot),
        ];
        page.sentence(2, &lang.fill(UNREACHED, &values));
    }
}

/// The degree to take, and how many of it a load takes.
fn chosen(page: &mut Document, plan: &Plan<'_>) {
    let lang = page.lang;
    let Some(degree) = best(plan.degrees) else { return };
    let rate = degree.predicted_by_accelerator().unwrap_or_default();
    let values: [(&str, &dyn std::fmt::Display); 2] =
        [("degree", &degree.tensor_parallel), ("rate", &short(rate))];
    page.sentence(2, &lang.fill(BEST, &values));
    let Some((wanted, one)) = plan.wanted_req_s.zip(degree.predicted_req_s()) else { return };
    let engines = (wanted / one).ceil();
    let accelerators = engines * f64::from(degree.accelerators);
    let values: [(&str, &dyn std::fmt::Display); 4] = [
        ("wanted", &short(wanted)),
        ("engines", &short(engines)),
        ("degree", &degree.tensor_parallel),
        ("accelerators", &short(accelerators)),
    ];
    page.sentence(2, &lang.fill(WANTED, &values));
}

fn hosted(page: &mut Document, api: &Api) {
    let lang = page.lang;
    let even = &api.even;
    page.section("api", lang.pick(API));
    page.pair(API_REQUEST, &money(even.api_per_request));
    page.pair(OWN_REQUEST, &money(even.own_per_request()));
    page.pair(OWN_HOUR, &money(3_600.0 * even.own_per_second));
    let of = match &api.capacity_of {
        CapacityOf::Run(id) => lang.fill(OF_RUN, &[("id", id)]),
        CapacityOf::Model(degree) => lang.fill(OF_MODEL, &[("degree", degree)]),
    };
    let values: [(&str, &dyn std::fmt::Display); 4] = [
        ("rate", &short(even.req_s())),
        ("share", &percent(even.utilisation())),
        ("capacity", &short(even.capacity_req_s)),
        ("of", &of),
    ];
    page.pair(EVEN, &lang.fill(EVEN_AT, &values));
    if even.utilisation() > 1.0 {
        page.sentence(2, lang.pick(NEVER_EVEN));
    }
}

/// An amount of money, however small.
fn money(amount: f64) -> String {
    if amount >= 0.01 { short(amount) } else { format!("{amount:.3e}") }
}
