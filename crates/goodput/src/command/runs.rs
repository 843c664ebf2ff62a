//! `runs`: list run directories, move one to the trash.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

pub(crate) fn list(runs_dir: Option<&str>) -> Result<Exit, Failure> {
    let runs = store::list_runs(&output::runs_dir(runs_dir))?;
    if runs.is_empty() {
        crate::say("no runs yet; make one with: goodput bench");
        return Ok(Exit::Ok);
    }
    for run in runs {
        // A run that cannot be read is still listed: it takes up room.
        let line = std::fs::read(run.path.join("summary.json"))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .map_or_else(|| "no summary".to_owned(), |summary| line(&summary));
        let name = run.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        crate::print(&format!("{name}  {line}"));
    }
    Ok(Exit::Ok)
}

fn line(summary: &serde_json::Value) -> String {
    let text = |pointer: &str| summary.pointer(pointer).and_then(|v| v.as_str()).unwrap_or("?");
    let number = |pointer: &str| {
        summary
            .pointer(pointer)
            .and_then(serde_json::Value::as_f64)
            .map_or("n/a".to_owned(), report::number::short)
    };
    format!(
        "{:<8}  {}  {}  {} ok  TTFT P99 {} ms  output {} tok/s",
        text("/validity/verdict"),
        text("/target"),
        text("/load/kind"),
        summary.pointer("/outcomes/ok").and_then(serde_json::Value::as_u64).unwrap_or(0),
        number("/metrics/ttft_ms/p99"),
        number("/throughput/output_tok_s"),
    )
}

pub(crate) fn remove(run: &str, runs_dir: Option<&str>) -> Result<Exit, Failure> {
    let moved = store::remove_run(run, &output::runs_dir(runs_dir))?;
    crate::print(&format!("moved to {}", moved.display()));
    Ok(Exit::Ok)
}
