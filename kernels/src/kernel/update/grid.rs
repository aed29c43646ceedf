//! The elements of several arrays, cut into parts by their sizes alone, so that results are the same bits for any number of
//! threads.

use crate::pool;

/// Elements of one task.
const CHUNK: usize = 1 << 15;
/// Loops times elements below which the calling thread does all.
const MIN_PARALLEL: usize = 1 << 17;

/// Elements `from .. to` of one array.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub array: usize,
    pub from: usize,
    pub to: usize,
    /// Number of the part among all.
    pub index: usize,
}

/// The elements of several arrays as parts of one size (the last of each array may be shorter).
pub struct ChunkList {
    parts: Vec<Chunk>,
    elements: usize,
}

impl ChunkList {
    pub fn new(sizes: impl Iterator<Item = usize>) -> ChunkList {
        let (mut parts, mut elements) = (Vec::new(), 0);
        for (array, n) in sizes.enumerate() {
            for from in (0..n).step_by(CHUNK) {
                parts.push(Chunk { array, from, to: n.min(from + CHUNK), index: parts.len() });
            }
            elements += n;
        }
        ChunkList { parts, elements }
    }

    pub fn parts(&self) -> &[Chunk] {
        &self.parts
    }

    /// Calls `f` for each part, in parallel if the work (`loops` an element) is worth it.
    pub fn run(&self, loops: usize, f: &(dyn Fn(Chunk) + Sync)) {
        if self.elements.saturating_mul(loops) < MIN_PARALLEL {
            return self.parts.iter().for_each(|&part| f(part));
        }
        pool::run(self.parts.len(), &|i| f(self.parts[i]));
    }
}
