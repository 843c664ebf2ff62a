//! NVIDIA's DCGM exporter: names of before 4.9 and of after, whose units differ.
//! Readings by NVML are told under the earlier names.

use measure::signal::{Role, Signal};

use super::way::{all, rate, told};
use super::{Entry, NONE, Table, of};

const MEBIBYTE: f64 = 1_048_576.0;
const COUNTERS_FILE: &str = "a line in the exporter's counters file";

pub(super) const TABLE: Table = Table {
    key: "dcgm",
    name: "DCGM exporter",
    version: "4.5 to 4.9",
    prefixes: &["DCGM_FI_"],
    instances: &["Hostname", "hostname", "gpu", "GPU_I_ID"],
    role: Role::Device,
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(
        Signal::GpuBusy,
        &[
            told(&[all("DCGM_FI_PROF_GR_ENGINE_ACTIVE")]),
            told(&[all("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO")]),
            told(&[all("DCGM_FI_DEV_GPU_UTIL")]).times(0.01),
            told(&[all("DCGM_FI_DEV_GPU_UTIL_RATIO")]),
        ],
    )
    .trap(
        "Busy is not useful: some kernel ran, waiting for memory or a link too.",
        "忙不等于有效：只表示有内核在运行，等待显存或互联也算。",
    ),
    of(
        Signal::SmActive,
        &[told(&[all("DCGM_FI_PROF_SM_ACTIVE")]), told(&[all("DCGM_FI_PROF_SM_UTIL_RATIO")])],
    )
    .exposed_by(COUNTERS_FILE),
    of(
        Signal::TensorActive,
        &[
            told(&[all("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")]),
            told(&[all("DCGM_FI_PROF_TENSOR_UTIL_RATIO")]),
        ],
    ),
    of(
        Signal::DramActive,
        &[told(&[all("DCGM_FI_PROF_DRAM_ACTIVE")]), told(&[all("DCGM_FI_PROF_DRAM_UTIL_RATIO")])],
    )
    .trap("About 0.8 to 0.9 is the most that is reached.", "实际上限约为 0.8 到 0.9。"),
    of(
        Signal::LinkBytes,
        &[
            told(&[all("DCGM_FI_PROF_NVLINK_TX_BYTES"), all("DCGM_FI_PROF_NVLINK_RX_BYTES")]),
            rate(&[
                all("DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL"),
                all("DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL"),
            ]),
            told(&[all("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL")]),
            told(&[all("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")]).times(1_024_000.0),
        ],
    )
    .exposed_by(COUNTERS_FILE)
    .trap("Both directions, headers too.", "双向之和，含包头。"),
    of(
        Signal::PcieBytes,
        &[
            told(&[all("DCGM_FI_PROF_PCIE_TX_BYTES"), all("DCGM_FI_PROF_PCIE_RX_BYTES")]),
            rate(&[
                all("DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL"),
                all("DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL"),
            ]),
        ],
    )
    .trap(
        "A level in bytes a second, although the exporter's file calls it a counter.",
        "是每秒字节数，尽管导出器的配置文件把它标为计数器。",
    ),
    of(
        Signal::Power,
        &[
            told(&[all("DCGM_FI_DEV_POWER_USAGE")]),
            told(&[all("DCGM_FI_DEV_BOARD_POWER_WATTS")]),
            told(&[all("DCGM_FI_DEV_POWER_USAGE_INSTANT")]),
            told(&[all("DCGM_FI_DEV_BOARD_POWER_RAW_WATTS")]),
        ],
    ),
    of(
        Signal::Energy,
        &[
            told(&[all("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")]).times(1e-3),
            told(&[all("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL")]),
        ],
    ),
    of(
        Signal::MemoryUsed,
        &[
            told(&[all("DCGM_FI_DEV_FB_USED")]).times(MEBIBYTE),
            told(&[all("DCGM_FI_DEV_FB_USED_BYTES")]),
        ],
    )
    .trap(
        "Engines reserve nearly all at the start: look at kv_usage.",
        "引擎启动时就几乎占满：应看 kv_usage。",
    ),
    of(
        Signal::MemoryTotal,
        &[
            told(&[all("DCGM_FI_DEV_FB_TOTAL")]).times(MEBIBYTE),
            told(&[all("DCGM_FI_DEV_FB_CAPACITY_BYTES")]),
            told(&[all("DCGM_FI_DEV_FB_USED"), all("DCGM_FI_DEV_FB_FREE")]).times(MEBIBYTE),
            told(&[all("DCGM_FI_DEV_FB_USED_BYTES"), all("DCGM_FI_DEV_FB_FREE_BYTES")]),
        ],
    ),
    of(
        Signal::Clock,
        &[
            told(&[all("DCGM_FI_DEV_SM_CLOCK")]).times(1e6),
            told(&[all("DCGM_FI_DEV_SM_CLOCK_HERTZ")]),
        ],
    ),
    of(
        Signal::ThrottleBits,
        &[
            told(&[all("DCGM_FI_DEV_CLOCKS_EVENT_REASONS")]),
            told(&[all("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")]),
        ],
    )
    .exposed_by(COUNTERS_FILE)
    .trap("The bit of the power cap alone is no fault.", "仅有功率上限位并不代表故障。"),
    of(
        Signal::ThermalViolation,
        &[
            told(&[all("DCGM_FI_DEV_THERMAL_VIOLATION")]).times(1e-9),
            told(&[
                all("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"),
                all("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"),
            ])
            .times(1e-9),
        ],
    )
    .exposed_by(COUNTERS_FILE),
    of(
        Signal::PowerViolation,
        &[
            told(&[all("DCGM_FI_DEV_POWER_VIOLATION")]).times(1e-9),
            told(&[all("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS")]).times(1e-9),
        ],
    )
    .exposed_by(COUNTERS_FILE),
    of(
        Signal::Temperature,
        &[told(&[all("DCGM_FI_DEV_GPU_TEMP")]), told(&[all("DCGM_FI_DEV_GPU_TEMP_CELSIUS")])],
    ),
    of(
        Signal::DeviceErrors,
        &[told(&[all("DCGM_FI_DEV_XID_ERRORS")]), told(&[all("DCGM_FI_DEV_XID_ERROR")])],
    ),
];
