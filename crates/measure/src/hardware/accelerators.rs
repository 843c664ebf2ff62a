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

const AIC: &str =
    "aiconfigurator-core 0.12 (NVIDIA), its file of the system; fp32: ML Engineering or gpu-specs";
const GPU_SPECS: &str = "gpu-specs (G. Masse), specs.md, after NVIDIA's data sheets";
const ML_ENGINEERING: &str = "ML Engineering (S. Bekman), compute/accelerator, 2026-08, after NVIDIA's pages; link: aiconfigurator-core 0.12";
const AMD: &str = "ML Engineering (S. Bekman), compute/accelerator, 2026-08, after AMD's pages; bf16 and fp8 of MI300X: AMD's data sheet as quoted; link: AMD's links times seven";
const TPU: &str = "cloud.google.com/tpu/docs; fp8: the page of TPU7x";

/// Every accelerator.
pub static ACCELERATORS: &[Accelerator] = &[
    // NVIDIA, data centre.
    row(
        ("v100-sxm2", "NVIDIA V100 SXM2"),
        &["v100", "v100-32gb", "Tesla V100-SXM2-32GB"],
        Peaks { memory_gb: 32.0, bandwidth_gb_s: 900.0, link_gb_s: 300.0, watts: Some(300.0) },
        "NVLink 2",
        Tera { fp32: Some(15.7), bf16: 125.0, fp8: None, int8: None, fp4: None },
        Source("gpu-specs (G. Masse), specs.md; link: llm-analysis 0.2.2", true),
    ),
    row(
        ("t4", "NVIDIA T4"),
        &["Tesla T4"],
        Peaks { memory_gb: 16.0, bandwidth_gb_s: 300.0, link_gb_s: 32.0, watts: Some(70.0) },
        "PCIe 3.0 x16",
        Tera { fp32: Some(8.1), bf16: 65.0, fp8: None, int8: Some(130.0), fp4: None },
        Source(GPU_SPECS, true),
    ),
    row(
        ("a10", "NVIDIA A10"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 600.0, link_gb_s: 64.0, watts: Some(150.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(31.2), bf16: 125.0, fp8: None, int8: Some(250.0), fp4: None },
        Source(GPU_SPECS, true),
    ),
    row(
        ("a30", "NVIDIA A30"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 933.0, link_gb_s: 64.0, watts: Some(165.0) },
        "PCIe 4.0 x16",
        Tera { fp32: None, bf16: 165.0, fp8: None, int8: Some(330.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("a100-40gb-sxm", "NVIDIA A100 40GB SXM"),
        &["a100-40gb", "NVIDIA A100-SXM4-40GB"],
        Peaks { memory_gb: 40.0, bandwidth_gb_s: 1555.0, link_gb_s: 600.0, watts: Some(400.0) },
        "NVLink 3",
        Tera { fp32: Some(19.5), bf16: 312.0, fp8: None, int8: Some(624.0), fp4: None },
        Source("Digital Garden of G. Lockwood, processors/A100, after NVIDIA's data sheet", true),
    ),
    row(
        ("a100-80gb-pcie", "NVIDIA A100 80GB PCIe"),
        &["a100-pcie", "NVIDIA A100 80GB PCIe"],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 1935.0, link_gb_s: 64.0, watts: Some(300.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(19.5), bf16: 312.0, fp8: None, int8: Some(624.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("a100-80gb-sxm", "NVIDIA A100 80GB SXM"),
        &["a100", "a100-80gb", "a100-sxm", "NVIDIA A100-SXM4-80GB"],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 2039.0, link_gb_s: 600.0, watts: Some(400.0) },
        "NVLink 3",
        Tera { fp32: Some(19.5), bf16: 312.0, fp8: None, int8: Some(624.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("l4", "NVIDIA L4"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 300.0, link_gb_s: 64.0, watts: Some(72.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(30.3), bf16: 121.0, fp8: Some(242.0), int8: Some(242.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("l40s", "NVIDIA L40S"),
        &[],
        Peaks { memory_gb: 48.0, bandwidth_gb_s: 864.0, link_gb_s: 64.0, watts: Some(350.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(91.6), bf16: 362.0, fp8: Some(733.0), int8: Some(733.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("h100-pcie", "NVIDIA H100 PCIe"),
        &[],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 2000.0, link_gb_s: 128.0, watts: Some(350.0) },
        "PCIe 5.0 x16",
        Tera { fp32: Some(51.0), bf16: 756.0, fp8: Some(1513.0), int8: Some(1513.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("h100-sxm", "NVIDIA H100 SXM"),
        &["h100", "h100-80gb", "NVIDIA H100 80GB HBM3"],
        Peaks { memory_gb: 80.0, bandwidth_gb_s: 3350.0, link_gb_s: 900.0, watts: Some(700.0) },
        "NVLink 4",
        Tera { fp32: Some(67.0), bf16: 989.0, fp8: Some(1979.0), int8: Some(1979.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("gh200-96gb", "NVIDIA GH200 96GB"),
        &["gh200", "NVIDIA GH200 480GB"],
        Peaks { memory_gb: 96.0, bandwidth_gb_s: 4000.0, link_gb_s: 900.0, watts: None },
        "NVLink 4",
        Tera { fp32: Some(67.0), bf16: 989.0, fp8: Some(1979.0), int8: Some(1979.0), fp4: None },
        Source(
            "ML Engineering (S. Bekman), compute/accelerator, 2026-08; the link is that of an H100 and was not read",
            false,
        ),
    ),
    row(
        ("h200-sxm", "NVIDIA H200 SXM"),
        &["h200", "NVIDIA H200"],
        Peaks { memory_gb: 141.0, bandwidth_gb_s: 4800.0, link_gb_s: 900.0, watts: Some(700.0) },
        "NVLink 4",
        Tera { fp32: Some(67.0), bf16: 989.0, fp8: Some(1979.0), int8: Some(1979.0), fp4: None },
        Source(AIC, true),
    ),
    row(
        ("h20", "NVIDIA H20"),
        &["NVIDIA H20"],
        Peaks { memory_gb: 96.0, bandwidth_gb_s: 4000.0, link_gb_s: 900.0, watts: Some(400.0) },
        "NVLink 4",
        Tera { fp32: Some(44.0), bf16: 148.0, fp8: Some(296.0), int8: Some(296.0), fp4: None },
        Source("willitrunai.com/gpus/h20-96gb; the figure for fp8 was not read", false),
    ),
    row(
        ("b200", "NVIDIA B200"),
        &["b200-sxm", "NVIDIA B200"],
        Peaks { memory_gb: 180.0, bandwidth_gb_s: 8000.0, link_gb_s: 1800.0, watts: Some(1000.0) },
        "NVLink 5",
        Tera {
            fp32: Some(80.0),
            bf16: 2250.0,
            fp8: Some(4500.0),
            int8: Some(4500.0),
            fp4: Some(9000.0),
        },
        Source(ML_ENGINEERING, true),
    ),
    row(
        ("gb200", "NVIDIA GB200, one GPU"),
        &["NVIDIA GB200"],
        Peaks { memory_gb: 186.0, bandwidth_gb_s: 8000.0, link_gb_s: 1800.0, watts: Some(1200.0) },
        "NVLink 5",
        Tera {
            fp32: Some(80.0),
            bf16: 2500.0,
            fp8: Some(5000.0),
            int8: Some(5000.0),
            fp4: Some(10000.0),
        },
        Source(ML_ENGINEERING, true),
    ),
    row(
        ("b300", "NVIDIA B300"),
        &["b300-sxm", "NVIDIA B300 SXM6 AC"],
        Peaks { memory_gb: 288.0, bandwidth_gb_s: 8000.0, link_gb_s: 1800.0, watts: Some(1000.0) },
        "NVLink 5",
        Tera { fp32: Some(80.0), bf16: 2250.0, fp8: Some(4500.0), int8: None, fp4: Some(12600.0) },
        Source(
            "ML Engineering (S. Bekman), compute/accelerator, 2026-08; sources give 12.6 to 15 PFLOP/s for fp4, and differ on int8 and power",
            false,
        ),
    ),
    row(
        ("rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server"),
        &["NVIDIA RTX PRO 6000 Blackwell Server Edition"],
        Peaks { memory_gb: 96.0, bandwidth_gb_s: 1792.0, link_gb_s: 128.0, watts: Some(600.0) },
        "PCIe 5.0 x16",
        Tera { fp32: None, bf16: 467.8, fp8: Some(935.6), int8: Some(935.6), fp4: Some(1871.2) },
        Source(
            "aiconfigurator-core 0.12 (NVIDIA), at the clock of 2430 MHz that its authors met",
            true,
        ),
    ),
    // NVIDIA, desktop; tensor cores with sums in fp32.
    row(
        ("rtx-3090", "NVIDIA GeForce RTX 3090"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 936.2, link_gb_s: 64.0, watts: Some(350.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(35.6), bf16: 71.0, fp8: None, int8: None, fp4: None },
        Source("pages of GPU tables (topcpu.net); 71 TFLOP/s as public MFU tables have it", false),
    ),
    row(
        ("rtx-4090", "NVIDIA GeForce RTX 4090"),
        &[],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 1008.0, link_gb_s: 64.0, watts: Some(450.0) },
        "PCIe 4.0 x16",
        Tera { fp32: Some(82.6), bf16: 165.2, fp8: Some(330.3), int8: Some(660.6), fp4: None },
        Source("hmc-tech.com, GeForce RTX 4090, full specifications", true),
    ),
    row(
        ("rtx-5090", "NVIDIA GeForce RTX 5090"),
        &[],
        Peaks { memory_gb: 32.0, bandwidth_gb_s: 1792.0, link_gb_s: 128.0, watts: Some(575.0) },
        "PCIe 5.0 x16",
        Tera {
            fp32: Some(104.8),
            bf16: 209.5,
            fp8: Some(419.0),
            int8: Some(838.0),
            fp4: Some(1676.0),
        },
        Source(
            "spheron.network, RTX 5090 specifications; rates with sums in fp32 are a quarter of those stated with sparsity and were not read",
            false,
        ),
    ),
    // AMD.
    row(
        ("mi300x", "AMD Instinct MI300X"),
        &["AMD Instinct MI300X OAM"],
        Peaks { memory_gb: 192.0, bandwidth_gb_s: 5300.0, link_gb_s: 896.0, watts: Some(750.0) },
        "Infinity Fabric, 7 links",
        Tera { fp32: Some(163.4), bf16: 1307.0, fp8: Some(2615.0), int8: Some(2600.0), fp4: None },
        Source(AMD, true),
    ),
    row(
        ("mi325x", "AMD Instinct MI325X"),
        &[],
        Peaks { memory_gb: 256.0, bandwidth_gb_s: 6000.0, link_gb_s: 896.0, watts: Some(1000.0) },
        "Infinity Fabric, 7 links",
        Tera { fp32: Some(163.4), bf16: 1307.0, fp8: Some(2615.0), int8: Some(2600.0), fp4: None },
        Source(AMD, true),
    ),
    row(
        ("mi355x", "AMD Instinct MI355X"),
        &[],
        Peaks { memory_gb: 288.0, bandwidth_gb_s: 8000.0, link_gb_s: 1075.0, watts: Some(1400.0) },
        "Infinity Fabric, 7 links",
        Tera {
            fp32: Some(157.3),
            bf16: 2500.0,
            fp8: Some(5000.0),
            int8: Some(5000.0),
            fp4: Some(10100.0),
        },
        Source(AMD, true),
    ),
    // Intel.
    row(
        ("gaudi-2", "Intel Gaudi 2"),
        &["HL-225", "gaudi2"],
        Peaks { memory_gb: 96.0, bandwidth_gb_s: 2460.0, link_gb_s: 525.0, watts: Some(600.0) },
        "21 × 100 Gb Ethernet",
        Tera { fp32: None, bf16: 432.0, fp8: Some(865.0), int8: None, fp4: None },
        Source("ML Engineering (S. Bekman), compute/accelerator, after Intel's white paper", true),
    ),
    row(
        ("gaudi-3", "Intel Gaudi 3"),
        &["HL-325L", "gaudi3"],
        Peaks { memory_gb: 128.0, bandwidth_gb_s: 3700.0, link_gb_s: 1050.0, watts: Some(900.0) },
        "21 × 200 Gb Ethernet",
        Tera { fp32: None, bf16: 1677.0, fp8: Some(1677.0), int8: None, fp4: None },
        Source(
            "ML Engineering (S. Bekman), compute/accelerator, 2026-08, at 1600 MHz; link: IBM Cloud documentation",
            true,
        ),
    ),
    row(
        ("arc-pro-b60", "Intel Arc Pro B60"),
        &["b60"],
        Peaks { memory_gb: 24.0, bandwidth_gb_s: 456.0, link_gb_s: 64.0, watts: Some(200.0) },
        "PCIe 5.0 x8",
        Tera { fp32: Some(12.28), bf16: 98.3, fp8: None, int8: Some(197.0), fp4: None },
        Source(AIC, true),
    ),
    // Google.
    row(
        ("tpu-v5e", "Google TPU v5e"),
        &["v5e", "v5litepod"],
        Peaks { memory_gb: 16.0, bandwidth_gb_s: 819.0, link_gb_s: 400.0, watts: None },
        "ICI",
        Tera { fp32: None, bf16: 197.0, fp8: None, int8: Some(393.0), fp4: None },
        Source(TPU, true),
    ),
    row(
        ("tpu-v6e", "Google TPU v6e"),
        &["v6e", "trillium"],
        Peaks { memory_gb: 32.0, bandwidth_gb_s: 1638.0, link_gb_s: 800.0, watts: None },
        "ICI",
        Tera { fp32: None, bf16: 918.0, fp8: Some(918.0), int8: Some(1836.0), fp4: None },
        Source(TPU, true),
    ),
];
