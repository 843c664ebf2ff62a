//! A table of things under way, each known by a key.
//!
//! Its entries never move and lie side by side, many to a page of memory. A
//! thousand streams are read in turn, and with a page or more for each the
//! processor's table of pages is too small: looking one up again costs more
//! than what is done with it.

/// Entries that lie side by side.
const BLOCK: usize = 64;

/// Names an entry. The generation tells it from earlier ones in its place: what
/// is meant for an entry that has left must not reach the next one there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    /// The key as one number.
    pub(crate) const fn number(self) -> u64 {
        (self.generation as u64) << 32 | self.place as u64
    }

    /// The key of this number.
    pub(crate) const fn of(number: u64) -> Self {
        Self { place: number as u32, generation: (number >> 32) as u32 }
    }
}

/// The table.
pub(crate) struct Places<T> {
    blocks: Vec<Vec<Place<T>>>,
    free: Vec<u32>,
}

struct Place<T> {
    generation: u32,
    content: Option<T>,
}

impl<T> Places<T> {
    pub(crate) const fn new() -> Self {
        Self { blocks: Vec::new(), free: Vec::new() }
    }

    /// Puts something in, in the place that was left last.
    pub(crate) fn put(&mut self, content: T) -> Key {
        let place = self.free.pop().unwrap_or_else(|| self.add());
        let entry = &mut self.blocks[place as usize / BLOCK][place as usize % BLOCK];
        entry.content = Some(content);
        Key { place, generation: entry.generation }
    }

    /// A new place.
    fn add(&mut self) -> u32 {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let before = (self.blocks.len() - 1) * BLOCK;
        let block = &mut self.blocks[before / BLOCK];
        block.push(Place { generation: 0, content: None });
        (before + block.len() - 1) as u32
    }

    fn place(&mut self, key: Key) -> Option<&mut Place<T>> {
        let place = key.place as usize;
        let entry = self.blocks.get_mut(place / BLOCK)?.get_mut(place % BLOCK)?;
        (entry.generation == key.generation).then_some(entry)
    }

    /// What is there, if it has not left.
    #[inline]
    pub(crate) fn get(&mut self, key: Key) -> Option<&mut T> {
        self.place(key)?.content.as_mut()
    }

    /// Takes it out, if it has not left.
    pub(crate) fn take(&mut self, key: Key) -> Option<T> {
        let entry = self.place(key)?;
        let content = entry.content.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(key.place);
        Some(content)
    }

    /// Everything in the table.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.blocks.iter_mut().flatten().zip(0u32..).filter_map(|(entry, place)| {
            let key = Key { place, generation: entry.generation };
            Some((key, entry.content.as_mut()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_what_has_left_leads_nowhere() {
        let mut places = Places::new();
        let keys: Vec<Key> = (0..200).map(|n| places.put(n)).collect();
        assert!(keys.iter().enumerate().all(|(n, key)| places.get(*key) == Some(&mut n.clone())));
        assert_eq!(Key::of(keys[150].number()), keys[150]);

        assert_eq!(places.take(keys[150]), Some(150));
        assert_eq!((places.take(keys[150]), places.get(keys[150])), (None, None));
        assert_eq!(places.iter_mut().count(), 199);

        let next = places.put(7);
        assert_eq!(next.place, keys[150].place, "the free place is used again");
        assert_eq!(places.get(keys[150]), None);
        assert!(places.iter_mut().any(|(key, content)| key == next && *content == 7));
    }
}
