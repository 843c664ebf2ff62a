//! Adapters on an engine: few can be in a step, and one that is not there has
//! to be loaded first.

/// The places for adapters.
#[derive(Debug)]
pub(crate) struct Adapters {
    /// Places; 0 where adapters cost nothing.
    places: usize,
    /// Those that are there. Of those that nobody uses, the one that was left
    /// longest ago comes first.
    here: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    adapter: u64,
    /// Sequences that run with it.
    users: u32,
}

impl Adapters {
    pub(crate) fn new(places: u32) -> Self {
        Self { places: places as usize, here: Vec::new() }
    }

    /// Whether a sequence with this adapter can join those that run.
    pub(crate) fn admits(&self, adapter: Option<u64>) -> bool {
        let Some(adapter) = adapter.filter(|_| self.places > 0) else { return true };
        self.here.len() < self.places
            || self.here.iter().any(|place| place.adapter == adapter || place.users == 0)
    }

    /// A sequence joins; true where its adapter has to be loaded, in the place
    /// of the one that was unused for longest.
    pub(crate) fn join(&mut self, adapter: Option<u64>) -> bool {
        let Some(adapter) = adapter.filter(|_| self.places > 0) else { return false };
        if let Some(at) = self.here.iter().position(|place| place.adapter == adapter) {
            let mut place = self.here.remove(at);
            place.users += 1;
            self.here.push(place);
            return false;
        }
        if self.here.len() == self.places {
            let unused = self.here.iter().position(|place| place.users == 0);
            self.here.remove(unused.expect("a sequence joins only where it is admitted"));
        }
        self.here.push(Place { adapter, users: 1 });
        true
    }

    /// A sequence leaves those that run.
    pub(crate) fn leave(&mut self, adapter: Option<u64>) {
        let Some(adapter) = adapter else { return };
        let Some(at) = self.here.iter().position(|place| place.adapter == adapter) else { return };
        self.here[at].users -= 1;
        if self.here[at].users == 0 {
            // From now on it is unused.
            let place = self.here.remove(at);
            self.here.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adapter_unused_for_longest_makes_room() {
        let mut adapters = Adapters::new(2);
        assert!(adapters.join(Some(1)) && adapters.join(Some(2)));
        assert!(!adapters.join(Some(1)), "it is there");
        assert!(!adapters.admits(Some(3)), "both are used");
        assert!(adapters.admits(Some(2)) && adapters.admits(None));
        adapters.leave(Some(1));
        assert!(!adapters.admits(Some(3)), "one sequence still runs with 1");
        adapters.leave(Some(2));
        adapters.leave(Some(1));
        // 2 was left before 1, though 1 came before 2.
        assert!(adapters.admits(Some(3)) && adapters.join(Some(3)));
        assert!(!adapters.join(Some(1)));
        assert!(!adapters.admits(Some(2)));
    }

    #[test]
    fn without_places_adapters_cost_nothing() {
        let mut adapters = Adapters::new(0);
        for adapter in 0..10 {
            assert!(adapters.admits(Some(adapter)) && !adapters.join(Some(adapter)));
        }
        adapters.leave(Some(3));
    }
}
