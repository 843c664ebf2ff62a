//! KV memory: blocks with reference counts, the prefix cache over them, and the
//! order in which they are given again.
//!
//! The rules are those of vLLM 0.27's block pool: a block with a hash stays
//! findable after its last user left, until it is given to somebody else; free
//! blocks without one are given first, the others in the order in which they
//! were freed, and a sequence frees its tail first, so that what many share is
//! evicted last.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::content::BlockHash;

/// The number of a block.
pub(crate) type BlockId = u32;

const NONE: u32 = u32::MAX;

/// Hashes of blocks are mixed already; hashing them again costs time only.
#[derive(Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[derive(Clone, Copy, Debug)]
struct Block {
    users: u32,
    /// Neighbours in the list of free blocks.
    before: u32,
    after: u32,
    /// The next block with the same hash.
    twin: u32,
    hash: Option<BlockHash>,
}

/// All blocks of one replica.
#[derive(Debug)]
pub(crate) struct Pool {
    blocks: Vec<Block>,
    /// Ends of the list of free blocks: the first is given next.
    first: u32,
    last: u32,
    free: u32,
    /// The first and the last block of each hash.
    known: HashMap<BlockHash, (BlockId, BlockId), BuildHasherDefault<Mixed>>,
    caches: bool,
}

impl Pool {
    pub(crate) fn new(blocks: u32, caches: bool) -> Self {
        let mut pool = Self {
            blocks: vec![
                Block { users: 0, before: NONE, after: NONE, twin: NONE, hash: None };
                blocks as usize
            ],
            first: NONE,
            last: NONE,
            free: 0,
            known: HashMap::default(),
            caches,
        };
        (0..blocks).for_each(|id| pool.append(id));
        pool
    }

    /// All blocks.
    pub(crate) fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Blocks that nobody uses, whether they can be found or not.
    pub(crate) const fn free(&self) -> u32 {
        self.free
    }

    /// The share of blocks in use, 0 to 1.
    pub(crate) fn usage(&self) -> f64 {
        1.0 - f64::from(self.free) / f64::from(self.len().max(1))
    }

    /// A block of these tokens, if there is one: of several the one that has had
    /// them for longest.
    pub(crate) fn find(&self, hash: BlockHash) -> Option<BlockId> {
        self.known.get(&hash).map(|(first, _)| *first)
    }

    /// True when nobody uses the block, so that using it takes a free one.
    pub(crate) fn is_free(&self, id: BlockId) -> bool {
        self.blocks[id as usize].users == 0
    }

    /// One more user of a block.
    pub(crate) fn share(&mut self, id: BlockId) {
        if self.is_free(id) {
            self.unlink(id);
        }
        self.blocks[id as usize].users += 1;
    }

    /// The free block that is due to be given, to one user; what it held is
    /// forgotten.
    ///
    /// # Panics
    /// When none is free: whoever asks has looked.
    pub(crate) fn take(&mut self) -> BlockId {
        let id = self.first;
        assert!(id != NONE, "no free block: ask free() first");
        self.unlink(id);
        self.forget(id);
        self.blocks[id as usize].users = 1;
        id
    }

    /// Makes a full block findable.
    pub(crate) fn name(&mut self, id: BlockId, hash: BlockHash) {
        if !self.caches || self.blocks[id as usize].hash.is_some() {
            return;
        }
        let block = &mut self.blocks[id as usize];
        (block.hash, block.twin) = (Some(hash), NONE);
        let (_, last) = self.known.entry(hash).or_insert((id, id));
        if *last != id {
            self.blocks[*last as usize].twin = id;
            *last = id;
        }
    }

    /// One user less of each of these blocks, given from the sequence's first
    /// to its last.
    pub(crate) fn release(&mut self, blocks: &[BlockId]) {
        // What cannot be found again goes to the front, the others to the end,
        // both with the tail of the sequence first.
        for &id in blocks.iter().rev() {
            let block = &mut self.blocks[id as usize];
            block.users -= 1;
            if block.users == 0 && (block.hash.is_some() || !self.caches) {
                self.append(id);
            }
        }
        if self.caches {
            for &id in blocks {
                let block = self.blocks[id as usize];
                if block.users == 0 && block.hash.is_none() {
                    self.prepend(id);
                }
            }
        }
    }

    /// Forgets all that could be found; false, and nothing is done, while a
    /// block is in use.
    pub(crate) fn reset(&mut self) -> bool {
        if self.free != self.len() {
            return false;
        }
        self.known.clear();
        for block in &mut self.blocks {
            (block.hash, block.twin) = (None, NONE);
        }
        true
    }

    /// Makes a block unfindable; nothing happens where it is so.
    pub(crate) fn forget(&mut self, id: BlockId) {
        let Some(hash) = self.blocks[id as usize].hash.take() else { return };
        let next = std::mem::replace(&mut self.blocks[id as usize].twin, NONE);
        let (first, last) = self.known[&hash];
        if first == id {
            if next == NONE {
                self.known.remove(&hash);
            } else {
                self.known.insert(hash, (next, last));
            }
            return;
        }
        let mut before = first;
        while self.blocks[before as usize].twin != id {
            before = self.blocks[before as usize].twin;
        }
        self.blocks[before as usize].twin = next;
        if last == id {
            self.known.insert(hash, (first, before));
        }
    }

    fn append(&mut self, id: BlockId) {
        let last = std::mem::replace(&mut self.last, id);
        let block = &mut self.blocks[id as usize];
        (block.before, block.after) = (last, NONE);
        match last {
            NONE => self.first = id,
            last => self.blocks[last as usize].after = id,
        }
        self.free += 1;
    }

    fn prepend(&mut self, id: BlockId) {
        let first = std::mem::replace(&mut self.first, id);
        let block = &mut self.blocks[id as usize];
        (block.before, block.after) = (NONE, first);
        match first {
            NONE => self.last = id,
            first => self.blocks[first as usize].before = id,
        }
        self.free += 1;
    }

    fn unlink(&mut self, id: BlockId) {
        let Block { before, after, .. } = self.blocks[id as usize];
        match before {
            NONE => self.first = after,
            before => self.blocks[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.blocks[after as usize].before = before,
        }
        self.free -= 1;
    }
}

/// What a block is to somebody who checks the pool.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) users: u32,
    pub(crate) hash: Option<BlockHash>,
}

#[cfg(test)]
impl Pool {
    /// All blocks, once lists and counts are found to say the same.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut free = Vec::new();
        let mut at = self.first;
        while at != NONE {
            assert_eq!(self.blocks[at as usize].before, free.last().copied().unwrap_or(NONE));
            free.push(at);
            at = self.blocks[at as usize].after;
        }
        assert_eq!(free.last().copied().unwrap_or(NONE), self.last);
        assert_eq!(free.len(), self.free as usize);
        let unused = (0..self.len()).filter(|id| self.is_free(*id)).count();
        assert_eq!(unused, free.len(), "what is in the list and what nobody uses");
        assert!(free.iter().all(|id| self.is_free(*id)), "a block in use is given away");
        let mut findable = 0;
        for (hash, (first, last)) in &self.known {
            let mut at = *first;
            loop {
                assert_eq!(self.blocks[at as usize].hash, Some(*hash));
                findable += 1;
                match self.blocks[at as usize].twin {
                    NONE => break,
                    twin => at = twin,
                }
            }
            assert_eq!(at, *last);
        }
        let named = self.blocks.iter().filter(|block| block.hash.is_some()).count();
        assert_eq!(findable, named, "each block with a hash is found by it");
        self.blocks.iter().map(|block| Seen { users: block.users, hash: block.hash }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many blocks and names each by its place.
    fn taken(pool: &mut Pool, count: u32, first_hash: u64) -> Vec<BlockId> {
        (0..count)
            .map(|place| {
                let id = pool.take();
                pool.name(id, first_hash + u64::from(place));
                id
            })
            .collect()
    }

    #[test]
    fn the_tail_is_evicted_first() {
        let mut pool = Pool::new(4, true);
        let blocks = taken(&mut pool, 4, 100);
        pool.release(&blocks);
        assert_eq!(pool.free(), 4);
        pool.take();
        assert_eq!(pool.find(103), None);
        assert_eq!(pool.find(100), Some(blocks[0]));
    }

    #[test]
    fn blocks_without_a_hash_are_given_first() {
        let mut pool = Pool::new(4, true);
        let named = taken(&mut pool, 2, 100);
        let (third, fourth) = (pool.take(), pool.take());
        pool.release(&named);
        pool.release(&[third, fourth]);
        assert_eq!([pool.take(), pool.take()], [fourth, third]);
        assert_eq!(pool.find(101), Some(named[1]));
    }

    #[test]
    fn a_shared_block_is_freed_by_its_last_user() {
        let mut pool = Pool::new(2, true);
        let blocks = taken(&mut pool, 1, 100);
        pool.share(blocks[0]);
        pool.release(&blocks);
        assert_eq!(pool.free(), 1);
        assert!(!pool.reset(), "a block is in use");
        pool.release(&blocks);
        assert_eq!(pool.free(), 2);
        pool.share(blocks[0]);
        assert_eq!(pool.free(), 1, "a found block leaves the list of free ones");
        pool.release(&blocks);
        assert!(pool.reset());
        assert_eq!(pool.find(100), None);
    }

    #[test]
    fn of_twins_the_oldest_is_found() {
        let mut pool = Pool::new(4, true);
        let twins: Vec<BlockId> = (0..4).map(|_| pool.take()).collect();
        twins.iter().for_each(|id| pool.name(*id, 7));
        assert_eq!(pool.find(7), Some(twins[0]));
        pool.release(&twins[1..2]);
        pool.take();
        assert_eq!(pool.find(7), Some(twins[0]), "another twin was evicted");
        pool.release(&twins[..1]);
        pool.take();
        assert_eq!(pool.find(7), Some(twins[2]));
        pool.forget(twins[3]);
        pool.forget(twins[2]);
        assert_eq!(pool.find(7), None);
        pool.name(twins[3], 7);
        assert_eq!(pool.find(7), Some(twins[3]));
    }

    #[test]
    fn without_a_cache_nothing_is_found() {
        let mut pool = Pool::new(2, false);
        let blocks = taken(&mut pool, 2, 100);
        assert_eq!(pool.find(100), None);
        pool.release(&blocks);
        assert_eq!(pool.take(), blocks[1], "what was used last lies nearest");
    }
}
