//! The names that users gave to variables, for reports on memory.

use super::variable::Core;
use nnrs_kernels::array::alloc;
use nnrs_kernels::fork::at_fork;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

static NAMED: Mutex<Vec<(Weak<Core>, Arc<str>)>> = Mutex::new(Vec::new());

at_fork!(Hold, NAMED.lock().unwrap_or_else(|e| e.into_inner()));

/// Remembers a variable's name; the list sheds dead variables as it grows.
pub(super) fn note(core: &Arc<Core>, name: Arc<str>) {
    alloc::set_names(blocks);
    let mut named = NAMED.lock().unwrap_or_else(|e| e.into_inner());
    named.retain(|(c, _)| !std::ptr::eq(c.as_ptr(), Arc::as_ptr(core)));
    if named.len() >= 64 && named.len().is_power_of_two() {
        named.retain(|(c, _)| c.strong_count() > 0);
    }
    named.push((Arc::downgrade(core), name));
}

/// Addresses of named variables' memory, and what they are. Asked for when an allocation fails, so it must not wait:
/// what another thread is just changing is left out.
fn blocks() -> BTreeMap<usize, String> {
    let Ok(named) = NAMED.try_lock() else { return BTreeMap::new() };
    let alive: Vec<(Arc<Core>, Arc<str>)> =
        named.iter().filter_map(|(c, name)| Some((c.upgrade()?, name.clone()))).collect();
    drop(named);
    alive.iter().flat_map(|(core, name)| core.blocks(name)).collect()
}
