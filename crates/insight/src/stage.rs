//! The split of TTFT into stages.

use measure::said;
use measure::stage::Stages;

use crate::view::View;

/// Splits the mean TTFT of a run.
pub fn split(view: &View<'_>) -> Stages {
    let refused = view.signals().is_none().then(|| {
        said!(
            "the server's metrics were not read, so the wait inside it cannot be told apart",
            "没有读取服务端指标，无法区分服务端内部的等待"
        )
    });
    Stages { ttft_mean_ms: view.figure("ttft_ms", "mean"), refused, ..Stages::default() }
}
