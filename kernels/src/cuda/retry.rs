//! What failed once may work later, when others have given their memory back; but asking each time is dear.

use std::sync::{Arc, Mutex, OnceLock};

/// Says when to try again: at the first, second, fourth, eighth time and so on.
#[derive(Default)]
pub(super) struct Tries(u64);

impl Tries {
    pub(super) fn again(&mut self) -> bool {
        self.0 += 1;
        self.0.is_power_of_two()
    }
}

/// Something of a device that is opened when it is first asked for. Only success is kept.
pub(super) struct Opening<T> {
    open: OnceLock<Arc<T>>,
    failed: Mutex<(Tries, String)>,
}

impl<T> Default for Opening<T> {
    fn default() -> Opening<T> {
        Opening { open: OnceLock::new(), failed: Mutex::default() }
    }
}

impl<T> Opening<T> {
    /// It, if it is open or `open` succeeds now; or why that failed the last time.
    pub(super) fn get(&self, open: impl FnOnce() -> Result<T, String>) -> Result<Arc<T>, String> {
        if let Some(open) = self.open.get() {
            return Ok(open.clone());
        }
        let mut failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(open) = self.open.get() {
            return Ok(open.clone()); // by another thread
        }
        if failed.0.again() {
            match open() {
                Ok(new) => return Ok(self.open.get_or_init(|| Arc::new(new)).clone()),
                Err(why) => failed.1 = why,
            }
        }
        Err(failed.1.clone())
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(only_success_is_kept);
    fn only_success_is_kept() {
        let (opening, mut asked) = (Opening::default(), 0);
        let mut found = Vec::new();
        for i in 1..=20 {
            let made = opening.get(|| {
                asked += 1;
                if i < 10 { Err(format!("failed at {i}")) } else { Ok(i) }
            });
            found.push(made.map(|v| *v));
        }
        assert_eq!(found[..3], [Err("failed at 1".into()), Err("failed at 2".into()), Err("failed at 2".into())]);
        assert_eq!(found[14], Err("failed at 8".into()));
        assert_eq!((&found[15..], asked), (&[Ok(16), Ok(16), Ok(16), Ok(16), Ok(16)][..], 5));
    }
}
