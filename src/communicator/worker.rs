//! The thread of a communicator: it runs collectives, one after another, while the program computes.

use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

type Task = Box<dyn FnOnce() + Send>;

/// It begins with the first task, and ends with the communicator.
#[derive(Default)]
pub(super) struct Worker(Mutex<Option<Sender<Task>>>);

impl Worker {
    /// Lets `task` be run behind all others. Where the system has no thread to give, the caller runs it.
    pub(super) fn submit(&self, task: Task) {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            *sender = start();
        }
        match &*sender {
            Some(there) => {
                if let Err(refused) = there.send(task) {
                    (refused.0)();
                }
            }
            None => {
                drop(sender);
                task();
            }
        }
    }
}

fn start() -> Option<Sender<Task>> {
    let (sender, tasks) = channel::<Task>();
    let work = move || tasks.into_iter().for_each(|task| task());
    std::thread::Builder::new().name("nnrs communicator".into()).spawn(work).ok().map(|_| sender)
}

/// What has become of some tasks that belong together.
#[derive(Default)]
pub(super) struct TaskGroup {
    state: Mutex<TaskGroupState>,
    done: Condvar,
}

#[derive(Default)]
struct TaskGroupState {
    left: usize,
    /// Kind and text of the first error.
    failed: Option<(ErrorKind, String)>,
}

impl TaskGroup {
    fn lock(&self) -> MutexGuard<'_, TaskGroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `worker` run `work`; but for when an earlier one has failed. Then it is dropped, at its turn.
    pub(super) fn submit(self: &Arc<Self>, worker: &Worker, work: impl FnOnce() -> Result<()> + Send + 'static) {
        self.lock().left += 1;
        let group = self.clone();
        worker.submit(Box::new(move || {
            let result = match group.has_failed() {
                true => {
                    drop(work);
                    Ok(())
                }
                false => catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked())),
            };
            group.finish(result);
        }));
    }

    fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    fn finish(&self, result: Result<()>) {
        let mut state = self.lock();
        state.left -= 1;
        if let Err(e) = result {
            state.failed.get_or_insert((e.kind(), e.to_string()));
        }
        drop(state);
        self.done.notify_all();
    }

    /// Returns when all are over.
    pub(super) fn wait(&self) -> Result<()> {
        let mut state = self.lock();
        while state.left > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.failed {
            Some((kind, text)) => Err(Error::new(*kind, text.clone())),
            None => Ok(()),
        }
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Communicator, "a collective panicked on the communicator's thread")
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(tasks_run_in_their_order_until_one_fails);
    fn tasks_run_in_their_order_until_one_fails() {
        let (worker, group, seen) = (Worker::default(), Arc::new(TaskGroup::default()), Arc::new(Mutex::new(vec![])));
        for i in 0..4 {
            let seen = seen.clone();
            group.submit(&worker, move || {
                seen.lock().unwrap().push(i);
                if i == 1 { Err(Error::graph("two is enough")) } else { Ok(()) }
            });
        }
        assert_eq!(group.wait().unwrap_err().to_string(), "two is enough");
        assert_eq!(*seen.lock().unwrap(), [0, 1]);
    }

    nnrs_kernels::unit_test!(a_panic_is_an_error_and_the_thread_goes_on);
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        let (worker, first, second) =
            (Worker::default(), Arc::new(TaskGroup::default()), Arc::new(TaskGroup::default()));
        first.submit(&worker, || panic!("oh"));
        second.submit(&worker, || Ok(()));
        assert!(first.wait().unwrap_err().to_string().contains("panicked") && second.wait().is_ok());
    }
}
