//! Ctrl-C and SIGTERM: stop sending, keep what there is.

use tokio::sync::watch;

/// Tells workers to stop, and whether a signal was the reason.
#[derive(Clone, Debug)]
pub struct Control {
    stop: watch::Sender<bool>,
    signalled: watch::Sender<bool>,
}

impl Default for Control {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), signalled: watch::Sender::new(false) }
    }
}

impl Control {
    /// Asks every worker to stop: nothing more is sent, what is in flight is
    /// cancelled.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// True once a signal came.
    pub fn is_interrupted(&self) -> bool {
        *self.signalled.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Stops the run at SIGINT or SIGTERM. A second signal ends the process
    /// at once, for the case that writing hangs.
    pub fn stop_on_signals(&self) -> std::io::Result<()> {
        let control = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            use tokio::signal::unix::{SignalKind, signal};
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                for round in 0.. {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    if round > 0 {
                        std::process::exit(130);
                    }
                    control.signalled.send_replace(true);
                    control.stop();
                }
            });
        })?;
        Ok(())
    }
}
