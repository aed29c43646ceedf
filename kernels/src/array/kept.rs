//! Forms of arrays that kernels read in place of them: weights packed or transformed, kept beside the memory from one run to the next,
//! until somebody takes that to write it.
//!
//! A form is made when it is asked for a second time with nobody having taken the memory for writing in between: weights in training
//! are read once between updates, and have none.

use super::alloc::Block;
use super::data::Data;
use crate::base::switch::Switch;
use crate::device::Place;
use crate::dtype::AnyBits;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::atomic::{Ordering::Acquire, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

static KEEP: Switch = Switch::new("NNRS_KEEP_WEIGHTS", true);

/// What a form is: the kernel that reads it, and all that it depends on but the elements.
#[derive(PartialEq, Eq)]
pub struct FormName {
    pub kernel: &'static str,
    pub sizes: Vec<usize>,
}

/// A form, and of which elements.
#[derive(PartialEq, Eq)]
struct FormKey {
    name: FormName,
    elements: Range<usize>,
}

/// The form of one block of memory.
#[derive(Default)]
pub(super) struct KeptForm(OnceLock<Box<Mutex<KeptState>>>);

#[derive(Default)]
struct KeptState {
    /// What was asked for last, and its form.
    asked: Option<FormKey>,
    form: Option<Arc<Block>>,
    /// How often the memory was taken to be written.
    writes: u64,
}

impl KeptForm {
    fn state(&self) -> Option<MutexGuard<'_, KeptState>> {
        self.0.get().map(|state| state.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Somebody takes the memory to write it.
    #[inline]
    pub(super) fn forget(&self) {
        let Some(mut state) = self.state() else { return };
        state.writes += 1;
        let old = (state.asked.take(), state.form.take());
        drop(state);
        drop(old);
    }
}

/// Numbers that stand for those of an array.
pub struct FormElements<T> {
    block: Arc<Block>,
    len: usize,
    of: PhantomData<T>,
}

impl<T: AnyBits> Deref for FormElements<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block has this many numbers, which are not written any more; any bytes are one.
        unsafe { std::slice::from_raw_parts(self.block.ptr().cast(), self.len) }
    }
}

impl Data {
    /// The form `name` of these elements, of `len` numbers, which `make` writes: where it was asked for before, nobody has taken the
    /// memory to write it since, and nobody else has it now.
    pub fn form<T: AnyBits>(&self, name: FormName, len: usize, make: impl FnOnce(&mut [T])) -> Option<FormElements<T>> {
        let block = self.block();
        if self.place() != Place::Host || block.mirror.get().is_some() || block.views.any() || !KEEP.get() {
            return None;
        }
        let key = FormKey { name, elements: self.elements() };
        let of = PhantomData;
        block.kept.0.get_or_init(Box::default);
        let mut state = block.kept.state()?;
        if state.asked.as_ref() != Some(&key) {
            state.asked = Some(key);
            let old = state.form.take();
            drop(state);
            drop(old);
            return None;
        }
        if let Some(block) = state.form.clone() {
            return Some(FormElements { block, len, of });
        }
        // Its array has it, and who asks; a third one may be writing it. Whoever takes it from now on to write it counts.
        if Arc::strong_count(block) > 2 {
            return None;
        }
        fence(Acquire);
        let writes = state.writes;
        drop(state);
        let made = Arc::new(Block::new(len.checked_mul(size_of::<T>())?).ok()?);
        // SAFETY: the block has this many numbers and no other owner; any bytes are one.
        make(unsafe { std::slice::from_raw_parts_mut(made.ptr().cast(), len) });
        let mut state = block.kept.state()?;
        // Another thread may have asked for another form meanwhile.
        if state.writes == writes && state.asked.as_ref() == Some(&key) {
            state.form = Some(made.clone());
        }
        drop(state);
        Some(FormElements { block: made, len, of })
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::array::NdArray;
    use crate::dtype::DType;

    /// The sum of all as a form; with what is given, and not kept, it is -1.
    fn total(a: &NdArray, kernel: &'static str) -> f32 {
        let data = a.read(DType::F32).unwrap();
        let name = FormName { kernel, sizes: vec![a.size()] };
        let form = data.form(name, 1, |to: &mut [f32]| to[0] = data.as_slice::<f32>().iter().sum());
        form.map_or(-1.0, |form| form[0])
    }

    /// How many bytes are kept beside the array.
    fn is_kept(a: &NdArray) -> bool {
        a.read(DType::F32).unwrap().block().kept.state().is_some_and(|state| state.form.is_some())
    }

    unit_test!(a_form_is_made_when_it_is_asked_for_again);
    fn a_form_is_made_when_it_is_asked_for_again() {
        let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
        assert_eq!([total(&a, "sum"), total(&a, "sum"), total(&a, "sum")], [-1.0, 3.0, 3.0]);
        let b = NdArray::from_slice(&[5.0f32], [1].into()).unwrap();
        assert_eq!([total(&b, "sum"), total(&a, "other"), total(&a, "sum"), total(&a, "other")], [-1.0; 4]);
        assert!(!is_kept(&a));
        assert_eq!([total(&a, "other"), total(&b, "sum")], [3.0, 5.0]);
        let part = a.narrow(0, 1, 1).unwrap();
        assert_eq!([total(&part, "other"), total(&part, "other")], [-1.0, 2.0]);
    }

    unit_test!(who_takes_the_memory_to_write_it_ends_the_form);
    fn who_takes_the_memory_to_write_it_ends_the_form() {
        let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
        let write = |how: usize| match how {
            0 => a.modify(DType::F32).unwrap().as_mut_slice::<f32>().fill(2.0),
            1 => a.overwrite(DType::F32).unwrap().as_mut_slice::<f32>().fill(2.0),
            2 => a.fill(2.0).unwrap(),
            3 => a.narrow(0, 1, 1).unwrap().fill(2.0).unwrap(),
            _ => a.write(&[2.0f32, 2.0]).unwrap(),
        };
        for how in 0..5 {
            a.write(&[1.0f32, 2.0]).unwrap();
            assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0, 3.0], "{how}");
            write(how);
            assert!(!is_kept(&a), "{how}");
            let sum = if how == 3 { 3.0 } else { 4.0 };
            assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0, sum], "{how}");
        }
    }

    unit_test!(there_is_no_form_while_somebody_may_write);
    fn there_is_no_form_while_somebody_may_write() {
        let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
        total(&a, "sum");
        let writer = a.modify(DType::F32).unwrap();
        assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0; 2]);
        writer.as_mut_slice::<f32>()[0] = 4.0;
        drop(writer);
        assert_eq!([total(&a, "sum"), total(&a, "sum")], [6.0; 2]);
        let view = a.storage().export(a.modify(DType::F32).unwrap(), true);
        assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0; 2]);
        view.data().as_mut_slice::<f32>()[1] = 3.0;
        drop(view);
        assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0, 7.0]);
    }

    unit_test!(who_writes_while_it_is_made_is_seen);
    fn who_writes_while_it_is_made_is_seen() {
        let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
        total(&a, "sum");
        let data = a.read(DType::F32).unwrap();
        let name = FormName { kernel: "sum", sizes: vec![2] };
        let form = data.form(name, 1, |to: &mut [f32]| {
            to[0] = 3.0;
            a.modify(DType::F32).unwrap().as_mut_slice::<f32>()[0] = 5.0;
        });
        assert!(form.is_some_and(|form| form[0] == 3.0) && !is_kept(&a));
        drop(data);
        assert_eq!([total(&a, "sum"), total(&a, "sum")], [-1.0, 7.0]);
    }

    unit_test!(who_asks_for_another_form_while_one_is_made_does_not_get_that);
    fn who_asks_for_another_form_while_one_is_made_does_not_get_that() {
        let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
        total(&a, "sum");
        let data = a.read(DType::F32).unwrap();
        let name = FormName { kernel: "sum", sizes: vec![2] };
        let form = data.form(name, 1, |to: &mut [f32]| {
            to[0] = 100.0;
            assert_eq!(total(&a, "other"), -1.0);
        });
        assert!(form.is_some_and(|form| form[0] == 100.0) && !is_kept(&a));
        drop(data);
        assert_eq!([total(&a, "other"), total(&a, "other")], [3.0; 2]);
    }
}
