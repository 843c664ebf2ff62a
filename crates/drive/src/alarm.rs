//! Many waits on one timer: pauses between the turns of conversations, of which
//! thousands may run at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use measure::At;
use tokio::sync::{Notify, oneshot};

use crate::clock::{Clock, duration};
use crate::timer::{MODEST, Timer};

/// Waits for instants on behalf of any number of tasks.
pub(crate) struct Alarm {
    clock: Clock,
    waiting: RefCell<BTreeMap<(At, u64), oneshot::Sender<()>>>,
    earlier: Notify,
}

impl Alarm {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, waiting: RefCell::new(BTreeMap::new()), earlier: Notify::new() }
    }

    /// Returns at `at`, never before, at once when it has passed.
    pub(crate) async fn until(&self, at: At) {
        if self.clock.now() >= at {
            return;
        }
        let (ring, rung) = oneshot::channel();
        {
            let mut waiting = self.waiting.borrow_mut();
            let next = waiting.keys().next().map(|(first, _)| *first);
            let number = waiting.range((at, 0)..=(at, u64::MAX)).next_back();
            let number = number.map_or(0, |((_, number), _)| number + 1);
            waiting.insert((at, number), ring);
            if next.is_none_or(|next| at < next) {
                self.earlier.notify_one();
            }
        }
        // A sender that is gone means that the worker ends.
        let _ = rung.await;
    }

    /// Rings for those who wait, for as long as it is polled.
    pub(crate) async fn run(&self) {
        // Without a descriptor for a timer the runtime's own has to do.
        let timer = Timer::new(self.clock, MODEST).ok();
        loop {
            let next = self.waiting.borrow().keys().next().map(|(at, _)| *at);
            let Some(next) = next else {
                self.earlier.notified().await;
                continue;
            };
            tokio::select! {
                biased;
                () = self.earlier.notified() => continue,
                () = wait(timer.as_ref(), next, self.clock) => {}
            }
            let now = self.clock.now();
            let mut waiting = self.waiting.borrow_mut();
            while let Some(first) = waiting.first_entry().filter(|first| first.key().0 <= now) {
                let _ = first.remove().send(());
            }
        }
    }
}

async fn wait(timer: Option<&Timer>, at: At, clock: Clock) {
    match timer {
        Some(timer) => timer.until(at).await,
        None => tokio::time::sleep(duration(at - clock.now())).await,
    }
}
