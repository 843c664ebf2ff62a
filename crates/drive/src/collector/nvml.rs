//! The NVIDIA accelerators of this machine, by the driver's own library. It is
//! loaded when it is asked for: where there is none, there is a reason and no
//! error.
//!
//! Readings are told under the names and in the units that NVIDIA's exporter has
//! for the same quantities, so that nothing else needs to know where they come
//! from.

use std::ffi::OsStr;
use std::fmt::{Display, Write};

use nvml_wrapper::enum_wrappers::device::{Clock, PerformancePolicy, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::{Tell, Trouble};

/// The library's name where only the driver is installed and no tools to build
/// with.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The accelerators of this machine.
pub(super) struct Devices {
    nvml: Nvml,
    count: u32,
}

impl Devices {
    /// Loads the library; the reason where it cannot be.
    pub(super) fn open() -> Result<Self, String> {
        let nvml = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init();
        let nvml = nvml.map_err(|error| match error {
            NvmlError::LibloadingError(_) => {
                format!("this machine has no {LIBRARY}, so it has no NVIDIA driver")
            }
            other => format!("NVML cannot be used: {other}"),
        })?;
        let count = nvml.device_count().map_err(|error| format!("NVML cannot be used: {error}"))?;
        if count == 0 {
            Err("NVML knows of no accelerator here".to_owned())
        } else {
            Ok(Self { nvml, count })
        }
    }
}

impl Tell for Devices {
    fn tell(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut text = String::new();
        for index in 0..self.count {
            let device = self.nvml.device_by_index(index).map_err(Trouble::passing)?;
            add(&mut text, index, &device);
        }
        Ok(text.into_bytes())
    }
}

/// Adds the readings of a device that it has; a virtual one lacks some.
fn add(text: &mut String, index: u32, device: &Device<'_>) {
    let uuid = device.uuid().unwrap_or_default();
    let mut tell = |name: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            let _ = writeln!(text, "DCGM_FI_{name}{{gpu=\"{index}\",UUID=\"{uuid}\"}} {value}");
        }
    };
    let mib = |bytes: u64| bytes >> 20;
    let busy = device.utilization_rates().ok().map(|rates| rates.gpu);
    tell("DEV_GPU_UTIL", busy.as_ref().map(|value| value as _));
    let memory = device.memory_info().ok().map(|memory| (mib(memory.used), mib(memory.free)));
    tell("DEV_FB_USED", memory.as_ref().map(|(used, _)| used as _));
    tell("DEV_FB_FREE", memory.as_ref().map(|(_, free)| free as _));
    let power_w = device.power_usage().ok().map(|mw| f64::from(mw) / 1e3);
    tell("DEV_POWER_USAGE", power_w.as_ref().map(|value| value as _));
    let energy_mj = device.total_energy_consumption().ok();
    tell("DEV_TOTAL_ENERGY_CONSUMPTION", energy_mj.as_ref().map(|value| value as _));
    let clock_mhz = device.clock_info(Clock::SM).ok();
    tell("DEV_SM_CLOCK", clock_mhz.as_ref().map(|value| value as _));
    let celsius = device.temperature(TemperatureSensor::Gpu).ok();
    tell("DEV_GPU_TEMP", celsius.as_ref().map(|value| value as _));
    let bits = device.current_throttle_reasons().ok().map(|reasons| reasons.bits());
    tell("DEV_CLOCK_THROTTLE_REASONS", bits.as_ref().map(|value| value as _));
    for (policy, name) in [
        (PerformancePolicy::Power, "DEV_POWER_VIOLATION"),
        (PerformancePolicy::Thermal, "DEV_THERMAL_VIOLATION"),
    ] {
        let ns = device.violation_status(policy).ok().map(|status| status.violation_time);
        tell(name, ns.as_ref().map(|value| value as _));
    }
}
