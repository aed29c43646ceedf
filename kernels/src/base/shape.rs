//! Shapes: sizes of the axes of a dense, row-major array.

use crate::error::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The sizes of an array's axes. `()` is a single value. Reads as a slice of `usize`.
///
/// ```
/// use nnrs_kernels::Shape;
/// let s = Shape::from([2, 3, 4]);
/// assert_eq!((s.size(), s.ndim(), s[1], s.size_from(1)), (24, 3, 3, 12));
/// assert_eq!(s.to_string(), "(2, 3, 4)");
/// assert_eq!(s.broadcast(&[4].into()), Some(s.clone()));
/// assert_eq!(s.axis(-1, "axis")?, 2);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

impl Shape {
    /// Number of elements; 1 for `()`. `usize::MAX` if they cannot be counted.
    ///
    /// ```
    /// assert_eq!((nnrs_kernels::Shape::from([2, 3]).size(), nnrs_kernels::Shape::from([1 << 40, 1 << 40]).size()), (6, usize::MAX));
    /// ```
    #[inline]
    pub fn size(&self) -> usize {
        product(&self.0)
    }

    /// Number of axes.
    ///
    /// ```
    /// assert_eq!((nnrs_kernels::Shape::from([2, 3]).ndim(), nnrs_kernels::Shape::default().ndim()), (2, 0));
    /// ```
    #[inline]
    pub fn ndim(&self) -> usize {
        self.0.len()
    }

    /// Elements from `axis` to the end.
    ///
    /// ```
    /// let s = nnrs_kernels::Shape::from([2, 3, 4]);
    /// assert_eq!((s.size_from(1), s.size_from(3)), (12, 1));
    /// ```
    #[inline]
    pub fn size_from(&self, axis: usize) -> usize {
        product(&self.0[axis.min(self.0.len())..])
    }

    /// Elements before `axis`.
    ///
    /// ```
    /// let s = nnrs_kernels::Shape::from([2, 3, 4]);
    /// assert_eq!((s.size_to(2), s.size_to(0)), (6, 1));
    /// ```
    #[inline]
    pub fn size_to(&self, axis: usize) -> usize {
        product(&self.0[..axis.min(self.0.len())])
    }

    /// Row-major strides, in elements.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Shape::from([2, 3, 4]).strides().as_slice(), [12, 4, 1]);
    /// ```
    #[inline]
    pub fn strides(&self) -> SmallVec<[usize; 6]> {
        let mut strides: SmallVec<[usize; 6]> = SmallVec::from_elem(1, self.0.len());
        for i in (1..self.0.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(self.0[i]);
        }
        strides
    }

    /// This shape.
    ///
    /// # Errors
    /// Its byte count would not fit an address.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Shape::from([2, 3]).checked()?, [2, 3].into());
    /// assert!(nnrs_kernels::Shape::from([1 << 40, 1 << 40]).checked().is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn checked(self) -> Result<Shape> {
        self.check().map(|()| self)
    }

    /// The axis meant by `axis`, which may count from the end (-1 is the last); `arg` is what the error calls it.
    ///
    /// # Errors
    /// There is no such axis.
    ///
    /// ```
    /// let s = nnrs_kernels::Shape::from([2, 3]);
    /// assert_eq!((s.axis(1, "axis")?, s.axis(-2, "axis")?), (1, 0));
    /// assert!(s.axis(2, "axis").unwrap_err().to_string().starts_with("argument 'axis'"));
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn axis(&self, axis: i64, arg: &str) -> Result<usize> {
        let n = self.ndim() as i64;
        let a = if axis < 0 { axis + n } else { axis };
        if (0..n).contains(&a) {
            return Ok(a as usize);
        }
        if n == 0 {
            return Err(Error::arg(arg, format!("the array has no axes, so there is no axis {axis}")));
        }
        Err(Error::arg(arg, format!("an axis between {} and {}", -n, n - 1)).actual(axis))
    }

    /// Adds an axis of size `d` at the end.
    ///
    /// ```
    /// let mut s = nnrs_kernels::Shape::from([2]);
    /// s.push(3);
    /// assert_eq!(s, [2, 3].into());
    /// ```
    #[inline]
    pub fn push(&mut self, d: usize) {
        self.0.push(d);
    }

    /// The sizes, to be changed.
    ///
    /// ```
    /// let mut s = nnrs_kernels::Shape::from([2, 3]);
    /// s.as_mut_slice()[0] = 5;
    /// assert_eq!(s, [5, 3].into());
    /// ```
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [usize] {
        &mut self.0
    }

    /// NumPy's broadcasting of two shapes; `None` if they do not fit.
    ///
    /// ```
    /// let s = nnrs_kernels::Shape::from([2, 1, 3]);
    /// assert_eq!((s.broadcast(&[4, 1].into()), s.broadcast(&[2].into())), (Some([2, 4, 3].into()), None));
    /// ```
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let n = self.ndim().max(other.ndim());
        let at = |s: &Shape, i: usize| if i + s.ndim() < n { 1 } else { s[i + s.ndim() - n] };
        (0..n)
            .map(|i| match (at(self, i), at(other, i)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect()
    }
}

/// For the engine.
#[doc(hidden)]
impl Shape {
    /// An error if the byte count would not fit an address.
    #[inline]
    pub fn check(&self) -> Result<()> {
        let bytes = self.0.iter().try_fold(8usize, |n, &d| n.checked_mul(d.max(1)));
        match bytes {
            Some(n) if n <= isize::MAX as usize => Ok(()),
            _ => {
                let hint = "an array of this shape has more bytes than there are addresses";
                Err(Error::new(ErrorKind::Shape, FITS).actual(self).hint(hint))
            }
        }
    }
}

/// What [`Shape::check`] expects.
pub(super) const FITS: &str = "a size that fits into memory";

fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<&[usize]> for Shape {
    fn from(s: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(s))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(s: Vec<usize>) -> Shape {
        Shape(SmallVec::from_vec(s))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(s: [usize; N]) -> Shape {
        Shape(SmallVec::from_slice(&s))
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Shape {
        Shape(iter.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    /// As Python prints a tuple.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(broadcasting_follows_numpy);
    fn broadcasting_follows_numpy() {
        let s = |v: &[usize]| Shape::from(v);
        assert_eq!(s(&[2, 1, 3]).broadcast(&s(&[4, 1])), Some(s(&[2, 4, 3])));
        assert_eq!(s(&[]).broadcast(&s(&[5])), Some(s(&[5])));
        assert_eq!(s(&[2]).broadcast(&s(&[3])), None);
        assert_eq!(s(&[0]).broadcast(&s(&[1])), Some(s(&[0])));
    }

    unit_test!(huge_shapes_are_refused);
    fn huge_shapes_are_refused() {
        assert!(Shape::from([1 << 40, 1 << 40]).checked().is_err());
        assert!(Shape::from([0, 1 << 62]).checked().is_err());
        assert!(Shape::from([3, 4]).checked().is_ok());
    }
}
