//! What functions keep from their forward pass, beside the graph's data.

use std::any::Any;
use std::sync::{Arc, Mutex};

/// What a forward pass keeps for the backward pass and for running again.
#[derive(Default)]
pub struct Saved(Mutex<Option<Saving>>);

/// A value, and the number of the shapes that it was made for; 0 if it is good for any.
pub type Saving = (u64, Arc<dyn Any + Send + Sync>);

impl Saved {
    #[inline]
    pub fn get(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.kept().map(|(_, value)| value)
    }

    /// What was kept, if it was for the shapes of number `call`, or is for any.
    #[inline]
    pub fn of_call(&self, call: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        self.kept().filter(|(of, _)| *of == 0 || *of == call).map(|(_, value)| value)
    }

    #[inline]
    pub fn kept(&self) -> Option<Saving> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Puts back what `kept` gave.
    #[inline]
    pub fn restore(&self, v: Option<Saving>) {
        let old = std::mem::replace(&mut *self.0.lock().unwrap_or_else(|e| e.into_inner()), v);
        drop(old);
    }

    /// Frees what was kept.
    #[inline]
    pub fn clear(&self) {
        self.restore(None);
    }

    /// Keeps a value that is good for any shapes.
    #[inline]
    pub fn keep<T: Any + Send + Sync>(&self, value: T) {
        self.restore(Some((0, Arc::new(value))));
    }

    /// A copy of what was kept.
    #[inline]
    pub fn value<T: Any + Copy>(&self) -> Option<T> {
        self.get().and_then(|v| v.downcast_ref().copied())
    }
}
