//! Draws of captured runs. Their random numbers are others in each replay, so kernels read key and number from device memory.
//! Before each replay the host makes the draws as an ordinary run does, in the same order, and sends them all at once.

use super::Gpu;
use crate::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::random::DrawPolicy;
use crate::saved::Saved;
use std::cell::RefCell;

/// Draws that are sent together.
const TOGETHER: usize = 512;
/// Bytes of one: key and number.
const DRAW: usize = 16;

/// The draws of a captured run, in order.
#[derive(Default)]
pub(super) struct Draws {
    /// How to come by each, and which node's it is.
    sources: Vec<(DrawPolicy, Option<usize>)>,
    memory: Vec<DeviceMemory>,
}

/// A run that is being captured on this thread.
struct Recording {
    gpu: &'static Gpu,
    /// What the plan's nodes keep.
    nodes: Vec<*const Saved>,
    draws: Draws,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// From now on draws of this thread are noted, not made.
pub(super) fn record(gpu: &'static Gpu, nodes: &[&Saved]) {
    let nodes = nodes.iter().map(|&s| s as *const Saved).collect();
    RECORDING.set(Some(Recording { gpu, nodes, draws: Draws::default() }));
}

/// Ends what `record` began.
pub(super) fn recorded() -> Draws {
    RECORDING.take().map(|r| r.draws).unwrap_or_default()
}

/// Where the kernels of a captured run find the draw of `source`, for the node that keeps `saved`; `None` in other runs.
pub fn in_memory(source: &DrawPolicy, saved: &Saved) -> Result<Option<u64>> {
    RECORDING.with_borrow_mut(|r| r.as_mut().map(|r| r.note(source.twin(), saved)).transpose())
}

impl Recording {
    fn note(&mut self, source: DrawPolicy, saved: &Saved) -> Result<u64> {
        let node = self.nodes.iter().position(|n| std::ptr::eq(*n, saved));
        if node.is_none() && !matches!(source, DrawPolicy::Last(_)) {
            return Err(Error::graph("a function that is not of the plan draws random numbers"));
        }
        let number = self.draws.sources.len() % TOGETHER;
        if number == 0 {
            self.draws.memory.push(self.gpu.alloc_apart(TOGETHER * DRAW)?);
        }
        self.draws.sources.push((source, node));
        let memory = &self.draws.memory[self.draws.memory.len() - 1];
        Ok(memory.address() + (number * DRAW) as u64)
    }
}

impl Draws {
    /// Makes the draws of a replay, for nodes that keep `saved`, and sends them.
    pub(super) fn make(&self, saved: &[&Saved]) -> Result<()> {
        let none = Saved::default();
        for (sources, memory) in self.sources.chunks(TOGETHER).zip(&self.memory) {
            let mut bytes = Vec::with_capacity(sources.len() * DRAW);
            for (source, node) in sources {
                let draw = source.draw(node.map_or(&none, |n| saved[n]))?;
                bytes.extend([draw.key, draw.number].iter().flat_map(|v| v.to_le_bytes()));
            }
            // SAFETY: the memory has room for `TOGETHER` draws.
            unsafe { memory.upload(bytes.as_ptr(), bytes.len())? };
        }
        Ok(())
    }
}
