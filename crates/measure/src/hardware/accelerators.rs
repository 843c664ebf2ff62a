//! The catalogue of accelerators: one row each.

use super::{Accelerator, FlopsPerSecond};

/// The peaks of a row in the units of data sheets.
struct Peaks {
    memory_gb: f64,
    bandwidth_gb_s: f64,
    /// Both directions together, as vendors state it.
    link_gb_s: f64,
    watts: Option<f64>,
}

/// Dense peaks in 10¹² operations a second.
struct Tera {
    fp32: Option<f64>,
    bf16: f64,
    fp8: Option<f64>,
    int8: Option<f64>,
    fp4: Option<f64>,
}

/// Where a row is from, and whether its figures were read there.
struct Source(&'static str, bool);

const fn row(
    (id, name): (&'static str, &'static str),
    aliases: &'static [&'static str],
    peaks: Peaks,
    link: &'static str,
    tera: Tera,
    source: Source,
) -> Accelerator {
    Accelerator {
        id,
        name,
        aliases,
        memory_bytes: peaks.memory_gb * 1e9,
        bandwidth_bytes_per_s: peaks.bandwidth_gb_s * 1e9,
        flops: FlopsPerSecond {
            fp32: scaled(tera.fp32),
            bf16: scaled(Some(tera.bf16)),
            fp8: scaled(tera.fp8),
            int8: scaled(tera.int8),
            fp4: scaled(tera.fp4),
        },
        watts: peaks.watts,
        link_bytes_per_s: peaks.link_gb_s * 1e9 / 2.0,
        link,
        source: source.0,
        verified: source.1,
    }
}

const fn scaled(tera: Option<f64>) -> Option<f64> {
    match tera {
        Some(tera) => Some(tera * 1e12),
        None => None,
    }
}

/// Every accelerator.
pub static ACCELERATORS: &[Accelerator] = &[
    row(
        ("l4", "NVIDIA L4"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 300.0, link_gb_s: 64.0, watts: Some(72.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(30.3), bf16: 121.0, fp8: Some(242.5), int8: Some(242.5), fp4: None },
        Source("NVIDIA L4 data sheet", false),
    ),
    row(
        ("a100-80gb-sxm", "NVIDIA A100 80GB SXM"),
        &["a100", "a100-80gb", "a100-sxm", "NVIDIA A100-SXM4-80GB"],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 2039.0, link_gb_s: 600.0, watts: Some(400.0) },
        "NVLink 3",
        Tera { fp32: Some(19.5), bf16: 312.0, fp8: None, int8: Some(624.0), fp4: None },
        Source("NVIDIA A100 data sheet", false),
    ),
    row(
        ("h100-sxm", "NVIDIA H100 SXM"),
        &["h100", "h100-80gb", "NVIDIA H100 80GB HBM3"],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 3350.0, link_gb_s: 900.0, watts: Some(700.0) },
        "NVLink 4",
        Tera { fp32: Some(67.0), bf16: 989.0, fp8: Some(1979.0), int8: Some(1979.0), fp4: None },
        Source("NVIDIA H100 data sheet", false),
    ),
    row(
        ("h200-sxm", "NVIDIA H200 SXM"),
        &["h200", "NVIDIA H200"],
        Peaks { memory_gb: 141.0, bandwidth_gb_s: 4800.0, link_gb_s: 900.0, watts: Some(700.0) },
        "NVLink 4",
        Tera { fp32: Some(67.0), bf16: 989.0, fp8: Some(1979.0), int8: Some(1979.0), fp4: None },
        Source("NVIDIA H200 data sheet", false),
    ),
];
