//! AMD's device metrics exporter.

use measure::signal::{Role, Signal};

use super::way::{all, rate, told};
use super::{Entry, NONE, Table, of};

const PROFILER: &str = "the profiler's metrics in the exporter's configuration";
/// On an accelerator in partitions only the first one tells of the whole.
const FIRST_PARTITION: (&str, &str) = (
    "Of an accelerator in partitions only the first one tells it.",
    "分区的加速器仅由第一个分区上报。",
);

pub(super) const TABLE: Table = Table {
    key: "amd",
    name: "AMD device metrics exporter",
    version: "afd0fe81",
    prefixes: &["gpu_gfx_activity", "gpu_package_power", "gpu_used_vram", "gpu_prof_"],
    instances: &["hostname", "gpu_id"],
    role: Role::Device,
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::GpuBusy, &[told(&[all("gpu_gfx_activity")]).times(0.01)])
        .trap(FIRST_PARTITION.0, FIRST_PARTITION.1),
    of(Signal::SmActive, &[told(&[all("gpu_prof_sm_active")]).times(0.01)]).exposed_by(PROFILER),
    of(Signal::TensorActive, &[told(&[all("gpu_prof_tensor_active_percent")]).times(0.01)])
        .exposed_by(PROFILER),
    of(
        Signal::LinkBytes,
        &[rate(&[all("gpu_xgmi_link_tx"), all("gpu_xgmi_link_rx")]).times(1024.0)],
    ),
    of(Signal::PcieBytes, &[told(&[all("pcie_bandwidth")]).times(125_000.0)]),
    of(Signal::Power, &[told(&[all("gpu_package_power")])])
        .trap(FIRST_PARTITION.0, FIRST_PARTITION.1),
    of(Signal::Energy, &[told(&[all("gpu_energy_consumed")]).times(1e-6)]),
    of(Signal::MemoryUsed, &[told(&[all("gpu_used_vram")]).times(1_048_576.0)]),
    of(Signal::MemoryTotal, &[told(&[all("gpu_total_vram")]).times(1_048_576.0)]),
];
