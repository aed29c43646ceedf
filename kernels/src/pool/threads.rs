//! How many threads the pool uses: what the machine offers, the environment says, or the user has set.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

const MAX_THREADS: usize = 1024;

/// Threads that a run may use, the caller's included.
///
/// By default the CPUs that this process may use (affinity, cgroup quota), at most one a physical core;
/// the environment variables `NNRS_NUM_THREADS`, then `OMP_NUM_THREADS`, override it.
pub fn num_threads() -> usize {
    match THREADS.load(Relaxed) {
        0 => {
            let n = default_threads();
            // Another thread may have set the number meanwhile: that one stands.
            THREADS.compare_exchange(0, n, Relaxed, Relaxed).map_or_else(|set| set, |_| n)
        }
        n => n,
    }
}

/// Sets the threads of later runs; the number is brought into `1..=1024`.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.clamp(1, MAX_THREADS), Relaxed);
}

/// 0 until it is first asked for.
static THREADS: AtomicUsize = AtomicUsize::new(0);
fn default_threads() -> usize {
    let cpus = available_cpus().min(physical_cores().unwrap_or(usize::MAX));
    let asked =
        ["NNRS_NUM_THREADS", "OMP_NUM_THREADS"].iter().find_map(|name| parse_threads(&std::env::var(name).ok()?));
    asked.unwrap_or(cpus).clamp(1, MAX_THREADS)
}

/// OpenMP's variable may be a list, one number for each level of nesting: the first one counts.
fn parse_threads(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&n| n > 0)
}

/// CPUs by affinity and cgroup quota (versions 1 and 2): the standard library looks at both.
pub(super) fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Physical cores among the CPUs that this process may run on, where the system tells.
#[cfg(target_os = "linux")]
fn physical_cores() -> Option<usize> {
    // SAFETY: a cpu_set_t of zeros is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as said; 0 is this thread.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return None;
    }
    // SAFETY: every number asked for is inside the set.
    let allowed = (0..libc::CPU_SETSIZE as usize).filter(|&i| unsafe { libc::CPU_ISSET(i, &set) });
    let siblings = |i| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{i}/topology/thread_siblings_list"));
    // CPUs of one core have the same list of siblings.
    let cores: Result<std::collections::HashSet<String>, _> = allowed.map(siblings).collect();
    cores.ok().map(|c| c.len()).filter(|&n| n > 0)
}

#[cfg(not(target_os = "linux"))]
fn physical_cores() -> Option<usize> {
    None
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(thread_counts);
    fn thread_counts() {
        assert_eq!(parse_threads(" 4,2"), Some(4));
        assert_eq!(parse_threads("many"), None);
        assert!((1..=MAX_THREADS).contains(&default_threads()));
    }
}
