//! Where metrics of a run's server are read: from its flags and its target.

use std::net::IpAddr;
use std::sync::Arc;

use drive::Target;
use drive::collector::{self, Exporter, Place};
use wire::url::Url;

use crate::flags::storable_url;
use crate::plan::metrics::{Asked, Metrics};
use crate::target::{EMBEDDED, Resolved};

/// Where engines have their metrics.
const USUAL: &str = "/metrics";

/// The places of a run: those that were asked for, `/metrics` of each server that
/// it goes to, and the accelerators of this machine where they may be the
/// server's.
pub(crate) fn plan(metrics: &Metrics, resolved: &Resolved) -> collector::Plan {
    let mut secrets = resolved.secrets.clone();
    metrics.headers.iter().for_each(|(_, value)| secrets.add(value));
    let mut places: Vec<Place> = Vec::new();
    for asked in &metrics.asked {
        let place = place(asked, metrics, resolved);
        if !places.iter().any(|known| is_same(known, &place)) {
            places.push(place);
        }
    }
    for target in &resolved.targets {
        let place = Place::Exporter(found(target, resolved));
        if !places.iter().any(|known| is_same(known, &place)) {
            places.push(place);
        }
    }
    let is_here = resolved.embedded.is_none() && resolved.targets.iter().all(|t| is_local(&t.url));
    if metrics.nvml || is_here {
        places.push(Place::Nvml { is_found: !metrics.nvml });
    }
    tell_apart(&mut places);
    collector::Plan { places, interval: metrics.interval, secrets }
}

/// Addresses that differ in what must not be shown get numbers.
fn tell_apart(places: &mut [Place]) {
    let mut seen: Vec<String> = Vec::new();
    for place in places {
        let (Place::Exporter(exporter) | Place::PrometheusServer(exporter, _)) = place else {
            continue;
        };
        let alike = seen.iter().filter(|name| **name == exporter.name).count();
        seen.push(exporter.name.clone());
        if alike > 0 {
            exporter.name = format!("{} ({})", exporter.name, alike + 1);
        }
    }
}

fn place(asked: &Asked, metrics: &Metrics, resolved: &Resolved) -> Place {
    let Asked { url, shown, matchers } = asked;
    let server = |url: &Url| (url.secure, url.host.clone(), url.port);
    // A key is for the server that it was given for, and for no other.
    let own = resolved.targets.iter().any(|target| server(&target.url) == server(url));
    let mut headers = if own { resolved.headers.clone() } else { Vec::new() };
    headers.extend(metrics.headers.iter().cloned());
    let exporter = Exporter {
        name: shown.clone(),
        target: Target { url: url.clone(), tls: Arc::clone(&resolved.targets[0].tls) },
        headers,
        is_found: false,
    };
    match matchers {
        Some(matchers) => Place::PrometheusServer(exporter, matchers.clone()),
        None => Place::Exporter(exporter),
    }
}

fn found(target: &Target, resolved: &Resolved) -> Exporter {
    // An address that ends so is already that of the metrics.
    let own = target.url.path.as_str();
    let is_of_metrics = own.split('?').next().is_some_and(|path| path.ends_with(USUAL));
    let path = if is_of_metrics { own } else { USUAL };
    let target = Target { url: target.url.with_path(path), tls: Arc::clone(&target.tls) };
    let name = match resolved.embedded {
        // Its port is another one each time.
        Some(_) => EMBEDDED.to_owned(),
        None => storable_url(&target.url.to_string()),
    };
    Exporter { name, target, headers: resolved.headers.clone(), is_found: true }
}

fn is_same(one: &Place, other: &Place) -> bool {
    match (one, other) {
        (Place::Exporter(one), Place::Exporter(other)) => one.target.url == other.target.url,
        (Place::PrometheusServer(one, a), Place::PrometheusServer(other, b)) => {
            one.target.url == other.target.url && a == b
        }
        _ => false,
    }
}

fn is_local(url: &Url) -> bool {
    let address: Option<IpAddr> = url.host.parse().ok();
    address.map_or(url.host == "localhost", |address| address.is_loopback())
}
