//! Where metrics of servers are read beside a run: `--metrics-url` and its like.

use measure::Span;
use wire::url::Url;

use crate::flags::{Reader, storable_url};

/// What is read, as far as flags decide it.
pub(crate) struct Metrics {
    /// The distance between two readings.
    pub(crate) interval: Span,
    /// Addresses that were asked for.
    pub(crate) asked: Vec<Asked>,
    /// Headers for them.
    pub(crate) headers: Vec<(String, String)>,
    /// Whether this machine's accelerators were asked for.
    pub(crate) nvml: bool,
}

/// An address that was asked for.
pub(crate) struct Asked {
    pub(crate) url: Url,
    /// As it may be stored.
    pub(crate) shown: String,
    /// Of a Prometheus server: matchers of labels, perhaps none.
    pub(crate) matchers: Option<String>,
}

/// A reading takes a part of the distance to the next one, and less than this is
/// no time for it.
pub(crate) const SHORTEST: Span = Span::from_ms(100);

/// Gauges that are looked at less often say nothing.
pub(crate) const LONGEST: Span = Span::from_ms(60_000);

/// How an address of a Prometheus server begins.
const PROMETHEUS: &str = "prometheus:";

/// Reads the flags; none where no metrics are to be read.
pub(crate) fn metrics(reader: &mut Reader<'_>) -> Option<Metrics> {
    let settings = reader.settings;
    if settings.is_on("no-metrics") {
        let others = ["metrics-url", "metrics-header", "metrics-interval", "nvml"];
        for other in others.into_iter().filter(|other| settings.has(other)) {
            reader.wrong(other, "asks for metrics and --no-metrics for none; leave one out");
        }
        return None;
    }
    let interval = reader.duration("metrics-interval").unwrap_or(Span::from_ms(1_000));
    if !(SHORTEST..=LONGEST).contains(&interval) {
        let rule = format!("is not between {SHORTEST} and {LONGEST}; write 1s");
        reader.wrong("metrics-interval", rule);
    }
    let mut asked = Vec::new();
    for text in settings.all("metrics-url") {
        match address(text) {
            Ok(address) => asked.push(address),
            Err(rule) => reader.wrong("metrics-url", rule),
        }
    }
    let mut headers = Vec::new();
    for text in settings.all("metrics-header") {
        match wire::head::parse_header(text) {
            Ok(header) => headers.push(header),
            Err(error) => reader.wrong("metrics-header", error),
        }
    }
    if asked.is_empty() && !headers.is_empty() {
        reader.wrong("metrics-header", "is for --metrics-url, and there is none");
    }
    Some(Metrics { interval, asked, headers, nvml: settings.is_on("nvml") })
}

fn address(text: &str) -> Result<Asked, String> {
    let (address, matchers) = match text.strip_prefix(PROMETHEUS) {
        Some(rest) => match rest.split_once('#') {
            Some((address, matchers)) => (address, Some(matchers.to_owned())),
            None => (rest, Some(String::new())),
        },
        None => (text, None),
    };
    let mut url = Url::parse(address).map_err(|error| error.to_string())?;
    // Of an exporter only its address need be known.
    if matchers.is_none() && url.path == "/" {
        url = url.with_path("/metrics");
    }
    Ok(Asked { shown: storable_url(&url.to_string()), url, matchers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_exporters_or_prometheus_servers() {
        let told = |text: &str| {
            let Asked { url, matchers, .. } = address(text).unwrap();
            (url.to_string(), matchers)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(told("http://a:9400"), ("http://a:9400/metrics".to_owned(), None));
        assert_eq!(told("http://a/x?y=1").0, "http://a/x?y=1");
        assert_eq!(told("prometheus:http://p:9090"), ("http://p:9090/".to_owned(), some("")));
        let matched = "prometheus:http://p:9090/root#job=\"vllm\",model=~\"a#b\"";
        let found = ("http://p:9090/root".to_owned(), some("job=\"vllm\",model=~\"a#b\""));
        assert_eq!(told(matched), found);
        assert!(address("a:9400").is_err() && address("prometheus:p:9090").is_err());
        assert!(!address("http://a/m?key=secret").unwrap().shown.contains("secret"));
    }
}
