//! Who watches that the collectives of a group come to an end: a device that waits for another one's waits for ever, and with
//! it whoever waits for the device.

use super::Gpu;
use super::group::DeviceGroup;
use crate::error::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Between two looks.
const POLL: Duration = Duration::from_millis(20);

/// The collectives of a group that are not known to be over.
pub(super) struct GroupWatch {
    /// Whose they are, for errors: rank and group.
    whose: String,
    timeout: Duration,
    /// The device, where there is one.
    gpu: Option<&'static Gpu>,
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchState {
    asked: VecDeque<String>,
    /// Since when the first of them is waited for.
    since: Option<Instant>,
    /// How many calls have not come back: the device does not know of these.
    busy: usize,
    /// How many have been asked for.
    count: u64,
    failed: Option<String>,
    is_watched: bool,
    is_idle: bool,
    is_closed: bool,
    /// Nobody looks any more.
    has_watched: bool,
}

/// A call that has not come back.
pub(super) struct Asking<'a>(&'a GroupWatch);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
    }
}

impl GroupWatch {
    pub(super) fn new(whose: String, timeout: Duration, gpu: Option<&'static Gpu>) -> GroupWatch {
        GroupWatch { whose, timeout, gpu, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A collective is about to be asked for; `what` says which.
    ///
    /// # Errors
    /// The group has failed.
    pub(super) fn begin(self: &Arc<Self>, group: &Arc<dyn DeviceGroup>, what: &str) -> Result<Asking<'_>> {
        let mut state = self.lock();
        if let Some(why) = &state.failed {
            return Err(self.error(&format!("this group has ended: {why}")));
        }
        if !state.is_watched {
            self.start(group)?;
            state.is_watched = true;
        }
        if state.is_idle {
            self.changed.notify_all();
        }
        state.count += 1;
        let text = format!("{what} (call {})", state.count);
        state.asked.push_back(text);
        state.since.get_or_insert_with(Instant::now);
        state.busy += 1;
        Ok(Asking(self))
    }

    fn start(self: &Arc<Self>, group: &Arc<dyn DeviceGroup>) -> Result<()> {
        let (own, group) = (self.clone(), group.clone());
        let watcher = std::thread::Builder::new().name("nnrs group".into());
        let started = watcher.spawn(move || own.watch(&*group));
        started.map(drop).map_err(|e| self.error(&format!("no thread to watch it: {e}")))
    }

    fn error(&self, what: &str) -> Error {
        Error::new(ErrorKind::Device, format!("{}: {what}", self.whose))
    }

    /// The error of a collective that is asked for behind the end.
    pub(super) fn has_left(&self, what: &str) -> Error {
        self.error(&format!("{what}: it has left the group"))
    }

    fn watch(&self, group: &dyn DeviceGroup) {
        if let Some(why) = self.look_on(group) {
            self.fail(group, why);
        }
        self.lock().has_watched = true;
        self.changed.notify_all();
    }

    /// Looks until the group is closed, or has failed: of what, is given.
    fn look_on(&self, group: &dyn DeviceGroup) -> Option<String> {
        loop {
            let mut state = self.lock();
            while state.asked.is_empty() && !state.is_closed {
                state.is_idle = true;
                state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
            }
            state.is_idle = false;
            if state.is_closed {
                return None;
            }
            drop(state);
            let failed = self.look(group);
            if failed.is_some() {
                return failed;
            }
            let state = self.lock();
            drop(self.changed.wait_timeout(state, POLL));
        }
    }

    /// Notes what is over. Gives why the group has failed, if so.
    fn look(&self, group: &dyn DeviceGroup) -> Option<String> {
        let found = group.check().and_then(|()| group.pending());
        let mut state = self.lock();
        let name = |state: &WatchState| state.asked.front().cloned().unwrap_or_default();
        let pending = match found {
            Ok(pending) => pending,
            Err(e) => return Some(format!("{}: {e}", name(&state))),
        };
        while state.asked.len() > pending + state.busy {
            state.asked.pop_front();
            state.since = (!state.asked.is_empty()).then(Instant::now);
        }
        let late = state.since.is_some_and(|since| since.elapsed() > self.timeout);
        late.then(|| format!("{}: not over after {} s", name(&state), self.timeout.as_secs_f64()))
    }

    /// Ends all. Who waits for the device goes on then, and is told.
    fn fail(&self, group: &dyn DeviceGroup, why: String) {
        let trouble = self.error(&why);
        let mut state = self.lock();
        state.failed = Some(why);
        state.asked.clear();
        drop(state);
        let Some(gpu) = self.gpu else { return group.abort() };
        gpu.set_trouble(trouble);
        // What fails here has failed before.
        let _ = gpu.driver.inside(&mut || {
            group.abort();
            Ok(())
        });
    }

    /// What the group has failed of, if so: for who asked, and need not be told by the device too.
    pub(super) fn failure(&self) -> Option<Error> {
        let why = self.lock().failed.clone()?;
        drop(self.gpu.map(Gpu::trouble));
        Some(self.error(&why))
    }

    fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// No more will be asked for. Waits until all is over; false if the group has failed instead.
    pub(super) fn close(&self, group: &dyn DeviceGroup) -> bool {
        if !self.has_failed() && group.pending().is_ok_and(|n| n > 0) {
            // Where it never comes, the watching thread ends it.
            let _ = self.gpu.map(|gpu| gpu.driver.synchronize());
        }
        let mut state = self.lock();
        state.is_closed = true;
        self.changed.notify_all();
        while state.is_watched && !state.has_watched {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state.failed.is_none()
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::super::group::DeviceCollective;
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    /// A group whose collectives end when the test says so.
    #[derive(Default)]
    struct SlowGroup {
        pending: AtomicUsize,
        was_aborted: AtomicBool,
        is_broken: AtomicBool,
    }

    impl DeviceGroup for SlowGroup {
        unsafe fn perform(self: Arc<Self>, _: &DeviceCollective, _: u64, _: u64) -> Result<()> {
            Ok(())
        }

        fn pending(&self) -> Result<usize> {
            Ok(self.pending.load(SeqCst))
        }

        fn check(&self) -> Result<()> {
            if self.is_broken.load(SeqCst) { Err(Error::graph("a cable is out")) } else { Ok(()) }
        }

        fn leave(&self) {}

        fn abort(&self) {
            self.was_aborted.store(true, SeqCst);
            self.pending.store(0, SeqCst);
        }
    }

    fn slow(seconds: f64) -> (Arc<SlowGroup>, Arc<dyn DeviceGroup>, Arc<GroupWatch>) {
        let slow = Arc::new(SlowGroup::default());
        let watch = GroupWatch::new("rank 1 of 2 in group 'world'".into(), Duration::from_secs_f64(seconds), None);
        (slow.clone(), slow, Arc::new(watch))
    }

    fn until(done: impl Fn() -> bool) {
        let begin = Instant::now();
        while !done() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    unit_test!(a_collective_that_does_not_end_is_ended);
    fn a_collective_that_does_not_end_is_ended() {
        let (slow, group, watch) = slow(0.1);
        slow.pending.store(1, SeqCst);
        drop(watch.begin(&group, "AllReduce of 3 float32").unwrap());
        until(|| slow.was_aborted.load(SeqCst));
        let error = watch.begin(&group, "AllGather of 1 bool").err().unwrap().to_string();
        let why =
            "rank 1 of 2 in group 'world': this group has ended: AllReduce of 3 float32 (call 1): not over after 0.1 s";
        assert_eq!(error, why);
        assert!(!watch.close(&*group));
    }

    unit_test!(an_error_of_the_library_ends_the_group);
    fn an_error_of_the_library_ends_the_group() {
        let (slow, group, watch) = slow(100.0);
        slow.pending.store(1, SeqCst);
        slow.is_broken.store(true, SeqCst);
        drop(watch.begin(&group, "Broadcast").unwrap());
        until(|| slow.was_aborted.load(SeqCst));
        let error = watch.begin(&group, "Broadcast").err().unwrap().to_string();
        assert!(error.ends_with("Broadcast (call 1): a cable is out"), "{error}");
    }

    unit_test!(what_is_over_is_not_waited_for);
    fn what_is_over_is_not_waited_for() {
        let (slow, group, watch) = slow(100.0);
        slow.pending.store(2, SeqCst);
        for _ in 0..2 {
            drop(watch.begin(&group, "AllReduce").unwrap());
        }
        slow.pending.store(0, SeqCst);
        until(|| watch.lock().asked.is_empty());
        assert!(watch.lock().since.is_none() && watch.close(&*group));
        assert!(!slow.was_aborted.load(SeqCst));
    }
}
