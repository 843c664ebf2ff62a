//! What a Prometheus server scraped itself, asked for over its HTTP API: the
//! questions, and the answers as expositions.
//!
//! Raw samples are asked for, each with the instant at which that server scraped
//! it. Values between scrapes, which a range query would fill in, were never
//! observed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::spelling;

/// How names of engines and exporters begin: other series are not asked for.
const NAMES: &str = "(vllm|sglang|lmdeploy|llamacpp):.+|\
                     (tgi|trtllm|nv|dynamo|inference_pool|DCGM_FI|node|gpu|pcie)_.+";

/// What the server's clock says.
pub const TIME: &str = "/api/v1/query?query=time()";

/// The path that asks for the samples of the last so many seconds, of series that
/// `matchers` fit: `job="vllm"`, say, or nothing.
pub fn samples_path(matchers: &str, last_s: u64) -> String {
    let comma = if matchers.trim().is_empty() { "" } else { "," };
    let query = format!("{{__name__=~\"{NAMES}\"{comma}{matchers}}}[{last_s}s]");
    format!("/api/v1/query?query={}", percent_encoded(&query))
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON, or of another form.
    #[error("the answer is not of Prometheus' query API: {0}")]
    Form(#[from] serde_json::Error),
    /// The server refused the question.
    #[error("the server refused the query: {0}")]
    Refused(String),
    /// Something else than was asked for.
    #[error("the server answered with a {0}, which was not asked for")]
    Other(String),
}

/// What one instance told at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When it was scraped, by the server's clock: milliseconds since 1970.
    pub at_ms: i64,
    /// An exposition.
    pub text: String,
}

/// The instant of an answer to [`TIME`], by the server's clock: milliseconds since
/// 1970.
///
/// # Errors
/// Anything else than such an answer.
pub fn time_ms(body: &[u8]) -> Result<i64, AnswerError> {
    match data(body)? {
        Data::Scalar((at_s, _)) => Ok(ms(at_s)),
        other => Err(AnswerError::Other(other.name().to_owned())),
    }
}

/// What each instance told, by its name, in the order of time.
///
/// # Errors
/// Anything else than an answer to [`samples_path`].
pub fn samples(body: &[u8]) -> Result<BTreeMap<String, Vec<Told>>, AnswerError> {
    let series = match data(body)? {
        Data::Matrix(series) => series,
        other => return Err(AnswerError::Other(other.name().to_owned())),
    };
    let mut instances: BTreeMap<String, BTreeMap<i64, String>> = BTreeMap::new();
    for Series { mut metric, values } in series {
        let name = metric.remove("__name__").unwrap_or_default();
        let instance = metric.remove("instance").unwrap_or_default();
        let labels: Vec<String> =
            metric.iter().map(|(label, value)| spelling::pair(label, value)).collect();
        let labels = labels.join(",");
        let scrapes = instances.entry(instance).or_default();
        for (at_s, value) in values {
            let text = scrapes.entry(ms(at_s)).or_default();
            spelling::line(text, &name, &labels, value);
        }
    }
    let told = |scrapes: BTreeMap<i64, String>| {
        scrapes.into_iter().map(|(at_ms, text)| Told { at_ms, text }).collect()
    };
    Ok(instances.into_iter().map(|(instance, scrapes)| (instance, told(scrapes))).collect())
}

fn ms(at_s: f64) -> i64 {
    // Far beyond any date, so that arithmetic with it stays whole.
    (at_s * 1e3).round().clamp(-1e15, 1e15) as i64
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Matrix(Vec<Series>),
    Scalar((f64, String)),
    Vector(serde::de::IgnoredAny),
    String(serde::de::IgnoredAny),
}

impl Data {
    const fn name(&self) -> &'static str {
        match self {
            Self::Matrix(_) => "matrix",
            Self::Scalar(_) => "scalar",
            Self::Vector(_) => "vector",
            Self::String(_) => "string",
        }
    }
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

fn data(body: &[u8]) -> Result<Data, AnswerError> {
    let answer: Answer = serde_json::from_slice(body)?;
    answer.data.ok_or_else(|| AnswerError::Refused(answer.error.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Form of Prometheus' documentation, "HTTP API", "Range vectors".
    const MATRIX: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{"__name__":"vllm:num_requests_running","instance":"a:8000","job":"v",
                   "engine":"0"},
         "values":[[1435781430.781,"1"],[1435781445.781,"2"]]},
        {"metric":{"__name__":"vllm:kv_cache_usage_perc","instance":"a:8000","job":"v"},
         "values":[[1435781430.781,"0.5"],[1435781445.781,"NaN"]]},
        {"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","instance":"b:9400","job":"d","w":"q\"\\x"},
         "values":[[1435781431.5,"85"]]}]}}"#;

    #[test]
    fn samples_of_one_instant_are_one_exposition() {
        let told = samples(MATRIX.as_bytes()).expect("it is a matrix");
        let a = &told["a:8000"];
        assert_eq!(
            a.iter().map(|told| told.at_ms).collect::<Vec<_>>(),
            [1435781430781, 1435781445781]
        );
        let running = "vllm:num_requests_running{engine=\"0\",job=\"v\"} 2\n";
        let usage = "vllm:kv_cache_usage_perc{job=\"v\"} NaN\n";
        assert_eq!(a[1].text, [running, usage].concat());
        let b = crate::prometheus::read(told["b:9400"][0].text.as_bytes()).expect("it can be read");
        let sample = b.family("DCGM_FI_DEV_GPU_UTIL").and_then(|family| family.samples().next());
        let sample = sample.expect("the series is there");
        assert_eq!((sample.value, sample.labels.get("w")), (85.0, Some("q\"\\x")));
    }

    #[test]
    fn the_servers_clock_is_read_and_refusals_are_told() {
        let time = r#"{"status":"success","data":
            {"resultType":"scalar","result":[1435781460.781,"1435781460.781"]}}"#;
        assert_eq!(time_ms(time.as_bytes()).ok(), Some(1_435_781_460_781));
        assert!(
            matches!(samples(time.as_bytes()), Err(AnswerError::Other(what)) if what == "scalar")
        );
        let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        let told = samples(refused.as_bytes());
        assert!(matches!(told, Err(AnswerError::Refused(why)) if why == "parse error"));
        let empty = "{\"data\":{\"resultType\":\"matrix\",\"result\":[{}]}}";
        for other in ["", "[]", "<html>", "{\"data\":{}}", empty] {
            assert!(samples(other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn a_question_is_a_path() {
        let path = samples_path("job=\"v\"", 90);
        assert!(path.starts_with("/api/v1/query?query=%7B__name__%3D~%22"), "{path}");
        assert!(path.ends_with("%22%2Cjob%3D%22v%22%7D%5B90s%5D"), "{path}");
    }
}
