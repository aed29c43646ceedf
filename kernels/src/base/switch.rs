//! Settings that are on or off: as an environment variable says, until a program says otherwise.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// One setting, read from the environment when it is first asked for.
pub struct Switch {
    state: AtomicU8,
    variable: &'static str,
    default: bool,
}

const UNREAD: u8 = 2;

impl Switch {
    /// On unless the variable is 0 (`default` true), or off unless it is 1.
    #[inline]
    pub const fn new(variable: &'static str, default: bool) -> Switch {
        Switch { state: AtomicU8::new(UNREAD), variable, default }
    }

    pub fn get(&self) -> bool {
        match self.state.load(Relaxed) {
            UNREAD => {
                let other = if self.default { "0" } else { "1" };
                let on = self.default != std::env::var(self.variable).is_ok_and(|v| v == other);
                self.state.store(on as u8, Relaxed);
                on
            }
            state => state == 1,
        }
    }

    /// Gives the old setting.
    #[inline]
    pub fn set(&self, on: bool) -> bool {
        let old = self.get();
        self.state.store(on as u8, Relaxed);
        old
    }
}
