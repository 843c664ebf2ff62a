//! The split of TTFT into stages.
//!
//! Each stage is measured by itself as far as it can be: the wait in the client
//! by its own stamps, the network by round trips, the queue and the prefill by
//! the server. One stage at most is what is left, and says so.

use measure::Outcome;
use measure::finding::From;
use measure::metric::Text;
use measure::request::Timed;
use measure::said;
use measure::said::Said;
use measure::signal::{Reading, Role, Signal, Taken};
use measure::stage::{Stage, Stages};

use crate::view::{Timings, View};

/// Share of requests of others, or of ours that are missing, from which on the
/// server's figures are not ours.
const FOREIGN: f64 = 0.05;
/// Share of TTFT by which a stage may be below 0: means of the client and the
/// server are not of exactly the same requests.
const BELOW_ZERO: f64 = -0.02;
/// Share of our requests that must have timings for these to be used.
const WITH_TIMINGS: f64 = 0.95;

const CLIENT_WAIT: Text = Text { en: "wait in the client", zh: "客户端等待" };
const NETWORK: Text = Text { en: "network", zh: "网络" };
const GATEWAY: Text = Text { en: "gateway", zh: "网关" };
const FRONT_END: Text = Text { en: "front end", zh: "服务端前端" };
const MODEL_LOAD: Text = Text { en: "loading the model", zh: "加载模型" };
const QUEUE: Text = Text { en: "queue", zh: "排队" };
const PREFILL: Text = Text { en: "prefill", zh: "预填充" };
const KV_TRANSFER: Text = Text { en: "transfer of keys and values", zh: "KV 传输" };
const ADMISSION: Text = Text { en: "admission to decode", zh: "解码侧准入" };
const SERVER: Text = Text { en: "server", zh: "服务端" };

/// A mean that was found, and how.
struct Found {
    ms: f64,
    from: From,
    how: Said,
}

fn found(ms: f64, from: From, how: Said) -> Found {
    Found { ms, from, how }
}

/// What the server says of its stages.
#[derive(Default)]
struct Server {
    load: Option<Found>,
    gateway: Option<Found>,
    front_end: Option<Found>,
    queue: Option<Found>,
    prefill: Option<Found>,
    transfer: Option<Found>,
    admission: Option<Found>,
    /// Its own TTFT.
    ttft_ms: Option<f64>,
}

impl Server {
    fn is_silent(&self) -> bool {
        self.queue.is_none() && self.prefill.is_none() && self.ttft_ms.is_none()
    }
}

/// Splits the mean TTFT of the requests of a run that ended well.
pub fn split(view: &View<'_>) -> Stages {
    let mut stages = Stages::default();
    let Some(ttft_ms) = view.mean(|seen| Some(seen.wait_ms + seen.ttft_ms?)) else {
        stages.refused = Some(said!("no request has a TTFT", "没有请求有 TTFT"));
        return stages;
    };
    stages.ttft_mean_ms = Some(ttft_ms);
    stages.foreign_share = foreign_share(view);
    let stranger = stages.foreign_share.filter(|share| share.abs() > FOREIGN).map(not_ours);
    let server = if stranger.is_none() { by_metrics(view) } else { Server::default() };
    let server = by_timings(view).unwrap_or(server);
    stages.refused = match stranger {
        Some(reason) if server.is_silent() => Some(reason),
        Some(reason) => {
            stages.notes.push(reason);
            None
        }
        None if server.is_silent() => Some(silent(view)),
        None => None,
    };
    let wait = view.mean(|seen| Some(seen.wait_ms)).unwrap_or(0.0);
    let network = network(view);
    let listed = list(ttft_ms, wait, network, server);
    if let Some(bad) = listed.iter().find(|stage| stage.share < BELOW_ZERO) {
        stages.refused = Some(said!(
            "the stage {id} comes out as {ms:.1} ms: the server's figures are not of the same \
             requests or not what their names say",
            "阶段 {id} 算出 {ms:.1} ms：服务端指标不是同一批请求的，或含义与名称不符",
            id = bad.id,
            ms = bad.mean_ms,
        ));
        return stages;
    }
    stages.stages = listed;
    stages
}

/// The stages in the order in which a request passes them.
fn list(ttft_ms: f64, wait_ms: f64, network: Option<Found>, server: Server) -> Vec<Stage> {
    let stage = |id, name: Text, part: Found, is_residual| Stage {
        id,
        name,
        mean_ms: part.ms,
        share: if ttft_ms > 0.0 { part.ms / ttft_ms } else { 0.0 },
        is_residual,
        from: part.from,
        how: part.how,
    };
    let wait =
        found(wait_ms, From::Client, said!("from the intent to the send", "从计划时刻到实际发出"));
    let mut listed = vec![stage("client_wait", CLIENT_WAIT, wait, false)];
    let silent = server.is_silent();
    let is_whole = server.queue.is_some() && server.prefill.is_some();
    let inside = [
        ("model_load", MODEL_LOAD, server.load),
        ("queue", QUEUE, server.queue),
        ("prefill", PREFILL, server.prefill),
        ("kv_transfer", KV_TRANSFER, server.transfer),
        ("decode_admission", ADMISSION, server.admission),
    ];
    let mut later: Vec<Stage> = Vec::new();
    for (id, name, part) in inside {
        later.extend(part.map(|part| stage(id, name, part, false)));
    }
    let known: f64 = later.iter().map(|stage| stage.mean_ms).sum();
    // The server's own TTFT has its front end in it.
    let front_end = server.front_end.or_else(|| {
        let ms = server.ttft_ms.filter(|_| is_whole)? - known;
        let how =
            said!("the server's own TTFT less its other stages", "服务端 TTFT 减去其余服务端阶段");
        Some(found(ms, From::Server, how))
    });
    let has_network = network.is_some();
    listed.extend(network.map(|part| stage("network", NETWORK, part, false)));
    listed.extend(server.gateway.map(|part| stage("gateway", GATEWAY, part, false)));
    let has_front_end = front_end.is_some();
    let front_end = front_end.map(|part| stage("front_end", FRONT_END, part, false));
    let all = listed.iter().chain(&front_end).chain(&later).map(|stage| stage.mean_ms);
    let left = ttft_ms - all.sum::<f64>();
    let rest = found(left, From::Client, said!("what is left of TTFT", "TTFT 的剩余部分"));
    let (id, name) = match (silent || !is_whole, has_network, has_front_end) {
        (true, ..) => ("server", SERVER),
        (false, false, true) => ("network", NETWORK),
        (false, _, false) => ("front_end", FRONT_END),
        (false, true, true) => ("gateway", GATEWAY),
    };
    let residual = stage(id, name, rest, true);
    // What is left lies where it says.
    let is_measured = listed.iter().any(|stage| stage.id == id);
    listed.push(if is_measured {
        Stage { id: "elsewhere", name: ELSEWHERE, ..residual }
    } else {
        residual
    });
    listed.extend(front_end);
    listed.extend(later);
    listed
}

const ELSEWHERE: Text = Text { en: "elsewhere", zh: "其他" };

/// Requests of others among those that the server counted, as a share; below 0
/// where ours are missing there. None where the server counts none.
fn foreign_share(view: &View<'_>) -> Option<f64> {
    let signals = view.signals()?;
    let began = view.courses.iter().filter(|course| course.first_token_s.is_some()).count();
    // A server may have counted a token of an answer without text, or none.
    let empty = |timed: &&Timed<'_>| timed.record.outcome == Outcome::Empty;
    let empty = view.timed.iter().filter(empty).count();
    let counted = [
        (Signal::ServerTtft, began),
        (Signal::PrefillTime, view.seen.len()),
        (Signal::QueueTime, view.seen.len()),
        (Signal::Finished, view.seen.len()),
    ];
    let (theirs, ours) = counted.into_iter().find_map(|(signal, ours)| {
        let theirs = signals.increase(signal).filter(|count| *count > 0.0)?;
        Some((theirs, theirs.clamp(ours as f64, (ours + empty) as f64)))
    })?;
    Some(if theirs >= ours { 1.0 - ours / theirs } else { theirs / ours - 1.0 })
}

fn not_ours(share: f64) -> Said {
    if share > 0.0 {
        said!(
            "{share:.0} % of the requests that the server counted are not of this run, so its \
             means are not ours",
            "服务端统计的请求中有 {share:.0} % 不属于本次压测，其均值不能用于拆分",
            share = 100.0 * share,
        )
    } else {
        said!(
            "the server's metrics miss {share:.0} % of our requests: not every engine was read",
            "服务端指标缺少本次压测 {share:.0} % 的请求：并非所有实例都被采集",
            share = -100.0 * share,
        )
    }
}

fn silent(view: &View<'_>) -> Said {
    if view.signals().is_some() {
        said!(
            "the server's metrics have no queue, prefill or first-token time",
            "服务端指标中没有排队、预填充或首 token 时间"
        )
    } else {
        said!(
            "the server's metrics were not read, so the wait inside it cannot be told apart",
            "没有读取服务端指标，无法区分服务端内部的等待"
        )
    }
}

/// The shortest round trip and the writing of the request. The first byte
/// of an answer cannot come sooner.
fn network(view: &View<'_>) -> Option<Found> {
    let trip = view.round_trip_ms()?;
    let first_byte = view.courses.iter().filter_map(|course| course.first_byte_ms);
    let trip = first_byte.fold(trip, f64::min);
    let writes = view.courses.iter().filter_map(|course| course.write_ms);
    let write = crate::view::mean(writes).unwrap_or(0.0);
    let how = said!(
        "the shortest round trip, {trip:.2} ms, and the writing of a request, {write:.2} ms",
        "最短往返时延 {trip:.2} ms，加上请求写出 {write:.2} ms",
        trip = trip,
        write = write,
    );
    Some(found(trip + write, From::Client, how))
}

/// Of timings that came with the answers: they are of our requests only.
fn by_timings(view: &View<'_>) -> Option<Server> {
    let with = view.seen.iter().filter(|seen| seen.timings.prefill_ms.is_some()).count();
    if view.seen.is_empty() || (with as f64) < WITH_TIMINGS * view.seen.len() as f64 {
        return None;
    }
    let part = |of: fn(&Timings) -> Option<f64>| {
        let how = || said!("the timings that came with answers", "随回答返回的服务端计时");
        view.mean(|seen| of(&seen.timings)).map(|ms| found(ms, From::Server, how()))
    };
    let foreign = foreign_share(view).is_some_and(|share| share.abs() > FOREIGN);
    Some(Server {
        load: part(|timings| timings.load_ms),
        queue: part(|timings| timings.queue_ms),
        prefill: part(|timings| timings.prefill_ms),
        // Without a queue in the timings, the server's TTFT would count it as
        // its front end.
        ttft_ms: if foreign { None } else { view.server_ms(Signal::ServerTtft) },
        ..by_metrics_beside(view)
    })
}

/// What metrics say beside timings.
fn by_metrics_beside(view: &View<'_>) -> Server {
    Server {
        gateway: metric(view, Signal::GatewayTime, |_| true),
        front_end: metric(view, Signal::FrontEndTime, |_| true),
        ..Server::default()
    }
}

fn by_metrics(view: &View<'_>) -> Server {
    // A prompt is computed by engines that do both or prompts only; what waits
    // at an engine that writes answers waits after its prompt.
    let splits = view.instances(|role| role == Role::Prefill).next().is_some();
    let computes = move |role: Role| !splits || role == Role::Prefill;
    Server {
        queue: metric(view, Signal::QueueTime, computes),
        prefill: metric(view, Signal::PrefillTime, computes),
        transfer: metric(view, Signal::KvTransferTime, |_| splits),
        admission: metric(view, Signal::QueueTime, |role| splits && role == Role::Decode),
        ttft_ms: if splits { None } else { view.server_ms(Signal::ServerTtft) },
        ..by_metrics_beside(view)
    }
}

/// The mean of a histogram over the instances of some roles: of all together
/// where instances are not told apart.
fn metric(view: &View<'_>, signal: Signal, role: impl Fn(Role) -> bool) -> Option<Found> {
    let how = said!("the server's {id}", "服务端指标 {id}", id = signal.entry().id);
    let split = view.instances(|role| role == Role::Prefill).next().is_some();
    let ms = if split {
        let takings =
            view.instances(&role).filter_map(|instance| match instance.readings.get(&signal)? {
                Reading::Histogram(taken) => Some(taken),
                _ => None,
            });
        let add = |all: Taken, one: &Taken| Taken {
            count: all.count + one.count,
            sum: all.sum + one.sum,
            ..all
        };
        takings.fold(Taken::default(), add).mean()? * 1e3
    } else {
        role(Role::Both).then(|| view.server_ms(signal)).flatten()?
    };
    Some(found(ms, From::Server, how))
}
