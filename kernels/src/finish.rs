//! What is done to the numbers of a result where a kernel has just written them, while they are in its cache: a normalization
//! by given statistics, then the program of an element-wise unit. The bits are those of the functions one after the other.

use crate::dtype::{DType, Real};
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::tile::{AnyProgram, Destination, Operands, Source, TileProgram};
use smallvec::SmallVec;

/// Numbers of a channel that go through all of it at a time, and of a task.
const PIECE: usize = 1 << 12;
const TASK: usize = 1 << 15;

/// For each channel `minus`, `times` and `plus`: `y = (x - minus) * times + plus`.
pub struct ChannelScaling(pub Vec<[f64; 3]>);

/// What is to be done to a result of which the engine has no other use.
pub struct Finish<'a> {
    pub scaling: Option<ChannelScaling>,
    /// It reads the result where it lies, and writes it there.
    pub program: Option<(&'a AnyProgram, &'a Operands)>,
}

/// The same for a result of images of channels (channels first) in its type.
pub(crate) struct Finisher<'a, T: 'static> {
    y: SendPtr<T>,
    channels: usize,
    points: usize,
    /// None, or one for each channel.
    scaling: Vec<[T; 3]>,
    program: Option<RowProgram<'a, T>>,
}

struct RowProgram<'a, T: 'static> {
    program: &'a TileProgram<T>,
    run: unsafe fn(&TileProgram<T>, [usize; 4], &[Source], &[Destination]),
    sources: SmallVec<[Source; 4]>,
    sink: Destination,
}

// SAFETY: the program's pointers are to arrays that are only read meanwhile, or are the result, of which each task has a part.
unsafe impl<T: Sync> Sync for Finisher<'_, T> {}

impl<'a, T: Real> Finisher<'a, T> {
    /// For `y`, whose channels have `points` numbers each.
    ///
    /// # Panics
    /// If the program is not one of `T` with one result, or there is a scaling of another number of channels.
    pub fn new(finish: &Finish<'a>, y: &mut [T], channels: usize, points: usize) -> Finisher<'a, T>
    where
        T: SimdReal,
    {
        let y = SendPtr(y.as_mut_ptr());
        let scaling: Vec<_> =
            finish.scaling.iter().flat_map(|s| s.0.iter().map(|each| each.map(T::from_f64))).collect();
        assert!(scaling.is_empty() || scaling.len() == channels, "a scaling of each channel");
        let program = finish.program.map(|(program, operands)| {
            let (sources, sinks) = operands.arrays();
            let [sink] = sinks else { panic!("a program with one result") };
            let program = program.of_type::<T>().expect("a program of the result's type");
            let own = |s: &Source| {
                let ptr = if std::ptr::eq(s.ptr, sink.ptr) { y.0.cast_const().cast() } else { s.ptr };
                Source { ptr, ..s.clone() }
            };
            let (run, sink) = (TileProgram::run_rows as _, Destination { ptr: y.0.cast(), ..*sink });
            RowProgram { program, run, sources: sources.iter().map(own).collect(), sink }
        });
        Finisher { y, channels, points, scaling, program }
    }

    /// Itself, of floats.
    pub fn of_floats(&self) -> &Finisher<'a, f32> {
        assert!(T::DTYPE == DType::F32, "only float32 goes this way");
        // SAFETY: T is f32.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    /// The same `n` neighbours of `count` channels side by side, the first of which is `first`.
    ///
    /// # Safety
    /// They are in one image of the result, and this thread's.
    pub unsafe fn rows(&self, first: *const T, count: usize, n: usize) {
        let at = (first.addr() - self.y.0.addr()) / size_of::<T>();
        if !self.scaling.is_empty() {
            let channel = at / self.points % self.channels;
            let scaling = &self.scaling[channel..channel + count];
            dispatch(ScaleRows { y: self.y.add(at), apart: self.points, n, scaling });
        }
        if let Some(p) = &self.program {
            // SAFETY: the caller's promise.
            unsafe { (p.run)(p.program, [at, self.points, count, n], &p.sources, &[p.sink]) }
        }
    }

    /// All numbers of some images, by all threads.
    ///
    /// # Safety
    /// They are of the result, and the caller's.
    pub unsafe fn images(&self, y: &mut [T]) {
        let (first, points, channels) = (SendPtr(y.as_mut_ptr()), self.points, self.channels);
        // Pieces of a channel, or channels at a time.
        let pieces = points.div_ceil(PIECE).max(1);
        let some = (TASK / points.max(1)).clamp(1, channels.max(1));
        let groups = channels.div_ceil(some);
        pool::run(y.len() / (points * channels).max(1) * groups, &|t| {
            let (image, from) = (t / groups, t % groups * some);
            let count = some.min(channels - from);
            for piece in 0..pieces {
                let at = (image * channels + from) * points + piece * PIECE;
                // SAFETY: the caller's promise; each task has channels of its own.
                unsafe { self.rows(first.add(at).0, count, PIECE.min(points - piece * PIECE)) }
            }
        });
    }
}

/// `y = (y - minus) * times + plus`, each step rounded.
#[inline(always)]
pub(crate) fn scale<T: Real>(y: &mut [T], minus: T, times: T, plus: T) {
    for y in y {
        *y = (*y - minus) * times + plus;
    }
}

/// Scales the first `n` numbers of rows that are `apart`.
struct ScaleRows<'a, T> {
    y: SendPtr<T>,
    apart: usize,
    n: usize,
    scaling: &'a [[T; 3]],
}

impl<T: Real> Choose<T> for ScaleRows<'_, T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: the machine has what `dispatch` chose.
        unsafe { L::enter(self) }
    }
}

impl<T: Real> WithLanes<T> for ScaleRows<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for (i, &[minus, times, plus]) in self.scaling.iter().enumerate() {
            // SAFETY: the caller's promise.
            scale(unsafe { self.y.slice(i * self.apart, self.n) }, minus, times, plus);
        }
    }
}
