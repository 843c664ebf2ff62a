//! The node exporter: of the server's host, and of the client's.

use measure::signal::{Role, Signal};

use super::way::{all, only, per_series, rest, told};
use super::{Entry, NONE, Pick, Table, of};

const IDLE: Pick = only("node_cpu_seconds_total", "mode", &["idle", "iowait"]);

pub(super) const TABLE: Table = Table {
    key: "node",
    name: "node exporter",
    version: "1",
    prefixes: &["node_"],
    role: Role::Device,
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(
        Signal::HostLoad,
        &[per_series(all("node_load1"), only("node_cpu_seconds_total", "mode", &["idle"]))],
    )
    .trap("Over the last minute, damped.", "为最近一分钟的平滑值。"),
    of(Signal::HostBusy, &[rest(IDLE, all("node_cpu_seconds_total"))]),
    of(Signal::CpuPressure, &[told(&[all("node_pressure_cpu_waiting_seconds_total")])])
        .exposed_by("CONFIG_PSI"),
    of(Signal::Retransmits, &[told(&[all("node_netstat_Tcp_RetransSegs")])]),
    of(Signal::SegmentsSent, &[told(&[all("node_netstat_Tcp_OutSegs")])]),
    of(Signal::ListenDrops, &[told(&[all("node_netstat_TcpExt_ListenDrops")])]),
];
