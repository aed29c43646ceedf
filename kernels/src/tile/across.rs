//! Inputs that lie across: neighbours of the loop are far from each other in the array, and the array's neighbours are rows of
//! the loop. As many rows as a cache line has numbers are brought together, so that each line is read once and whole.

use super::Source;
use crate::array::scratch::Scratch;
use crate::simd::SimdReal;
use crate::simd::lanes::TransposeBlock;
use crate::simd::turn::turn;

/// Bytes of the rows that are brought together, at most: what a core's own cache has room for.
const MOST: usize = 1 << 19;
/// Rows of the array, and their distance, from which it pays.
const LEAST: usize = 16;

/// The rows of one input that were brought together last.
pub(super) struct CrossRows<T: Copy> {
    /// The input.
    pub slot: usize,
    rows: Scratch<T>,
    /// Which rows of the loop these are: their number divided by how many belong together.
    group: Option<usize>,
}

/// Numbers of a cache line.
const fn line<T>() -> usize {
    64 / size_of::<T>()
}

impl<T: SimdReal> CrossRows<T> {
    /// `None` for an input that is read well as it lies.
    pub fn new(slot: usize, s: &Source, axes: &[(usize, isize)]) -> Option<CrossRows<T>> {
        let &[.., (rows, 1), (inner, stride)] = axes else { return None };
        let pays = rows >= line::<T>() && inner >= LEAST && stride >= LEAST as isize && inner * 64 <= MOST;
        let same = s.dtype == T::DTYPE;
        (pays && same).then(|| CrossRows { slot, rows: Scratch::any(inner * line::<T>()), group: None })
    }

    /// Brings the loop's elements `at .. at + tile.len()` of the input into a tile.
    ///
    /// # Safety
    /// The walk from `first` over `axes` stays inside the input, and has these elements.
    pub unsafe fn load(&mut self, tile: &mut [T], s: &Source, first: isize, axes: &[(usize, isize)], at: usize) {
        let (rows, inner) = (axes[axes.len() - 2].0, axes[axes.len() - 1].0);
        let groups = rows.div_ceil(line::<T>());
        let mut done = 0;
        while done < tile.len() {
            let (row, i) = ((at + done) / inner, (at + done) % inner);
            let (outer, row) = (row / rows, row % rows);
            let (group, row) = (row / line::<T>(), row % line::<T>());
            if self.group != Some(outer * groups + group) {
                // SAFETY: the caller's promise.
                unsafe { self.bring(s, first, axes, outer, group) };
                self.group = Some(outer * groups + group);
            }
            let n = (inner - i).min(tile.len() - done);
            tile[done..done + n].copy_from_slice(&self.rows[row * inner + i..][..n]);
            done += n;
        }
    }

    unsafe fn bring(&mut self, s: &Source, first: isize, axes: &[(usize, isize)], outer: usize, group: usize) {
        let &[ref before @ .., (rows, _), (inner, stride)] = axes else { return };
        let (mut rest, mut offset) = (outer, first + (group * line::<T>()) as isize);
        for &(n, step) in before.iter().rev() {
            offset += (rest % n) as isize * step;
            rest /= n;
        }
        let cols = line::<T>().min(rows - group * line::<T>());
        let (dst, dst_stride, src_stride) = (self.rows.as_mut_ptr(), inner, stride as usize);
        // SAFETY: the offset stays inside the input, and the caller's walk; the rows have room for a group.
        unsafe {
            let src = (s.ptr as *const T).offset(offset);
            turn(TransposeBlock { src, src_stride, rows: inner, cols, dst, dst_stride }, false);
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::array::Walk;

    /// Each element by its own index, in pieces that begin and end anywhere.
    fn check<T: SimdReal>(outer: usize, rows: usize, inner: usize, stride: usize, first: usize) {
        let size = first + (outer - 1) * inner * stride + (inner - 1) * stride + rows;
        let x: Vec<T> = (0..size).map(|i| T::from_f64(i as f64)).collect();
        let axes = [(outer, (inner * stride) as isize), (rows, 1), (inner, stride as isize)];
        let s = Source { ptr: x.as_ptr().cast(), dtype: T::DTYPE, walk: Walk::Dense };
        let mut group = CrossRows::<T>::new(0, &s, &axes).expect("sizes that pay");
        let n = outer * rows * inner;
        let mut at = 0;
        for piece in [1, 300, 37, 1024].iter().cycle() {
            let len = *piece.min(&(n - at));
            let mut tile = vec![T::ZERO; len];
            // SAFETY: the array was made for this walk.
            unsafe { group.load(&mut tile, &s, first as isize, &axes, at) };
            for (i, v) in tile.iter().enumerate() {
                let (o, r, c) = ((at + i) / inner / rows, (at + i) / inner % rows, (at + i) % inner);
                assert_eq!(v.to_f64(), (first + o * inner * stride + r + c * stride) as f64, "{o} {r} {c}");
            }
            at += len;
            if at == n {
                return;
            }
        }
    }

    unit_test!(rows_are_found_where_they_lie);
    fn rows_are_found_where_they_lie() {
        for (outer, rows, inner, stride, first) in [(1, 40, 100, 40, 0), (3, 16, 17, 50, 5), (2, 33, 129, 33, 1)] {
            check::<f32>(outer, rows, inner, stride, first);
            check::<f64>(outer, rows, inner, stride, first);
        }
    }

    unit_test!(what_does_not_pay_is_left_to_others);
    fn what_does_not_pay_is_left_to_others() {
        let s = |dtype| Source { ptr: std::ptr::null(), dtype, walk: Walk::Dense };
        for axes in [[(64, 1), (64, 4)], [(4, 1), (64, 64)], [(64, 2), (64, 64)], [(64, 1), (1 << 20, 64)]] {
            assert!(CrossRows::<f32>::new(0, &s(crate::DType::F32), &axes).is_none(), "{axes:?}");
        }
        assert!(CrossRows::<f32>::new(0, &s(crate::DType::F16), &[(64, 1), (64, 64)]).is_none());
    }
}
