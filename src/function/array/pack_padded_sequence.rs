//! `pack_padded_sequence`: sequences of several lengths without their padding, all first steps, all second ones and so on.
//! `pad_packed_sequence`: the way back, and each other's derivative.

use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::packed_sequence::{PackRows, PadRows, Sequences};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Packs sequences of several lengths: without padding, the first steps of all, then all second ones and so on.
    PackPaddedSequence pack_padded_sequence in Array, forward_on_any_device
    inputs {
        padded_sequence: "Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.",
        lengths [index]: "Their lengths, from the longest down: of shape (B,)."
    }
    args {
        batch_first: bool = false, "Whether the first axis is that of the sequences.";
        rows: i64 = 0, "The sum of the lengths."
    }
    outputs {
        pack_sequence: "Array of shape (sum of lengths, ..).",
        batch_sizes: "How many sequences have each step: of shape (T,)."
    }
}

function! {
    /// Undoes `pack_padded_sequence`.
    PadPackedSequence pad_packed_sequence in Array, forward_on_any_device
    inputs {
        packed_sequence: "Packed sequences, of shape (sum of batch_sizes, ..).",
        batch_sizes [index]: "How many sequences have each step, from the most down: of shape (T,)."
    }
    args {
        batch_first: bool = false, "Whether the first axis of the result is that of the sequences.";
        padding_value: Option<f64> = None, "What stands behind the end of a sequence; None: 0.";
        total_length: Option<i64> = None, "Steps of the result, if more than T.";
        sequences: i64 = 0, "How many sequences there are."
    }
    outputs {
        padded_sequence: "Sequences, of shape (T, B, ..), or (B, T, ..) if batch_first.",
        lengths: "Their lengths: of shape (B,)."
    }
}

fn one_axis(s: &Shape, name: &str, n: Option<usize>) -> Result<usize> {
    match (&s[..], n) {
        (&[own], None) => Ok(own),
        (&[own], Some(n)) if own == n => Ok(n),
        (_, Some(n)) => Err(Error::shape(name, format!("shape ({n},)")).actual(s)),
        _ => Err(Error::shape(name, "one axis").actual(s)),
    }
}

impl Function for PackPaddedSequence {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let &[first, second, ref width @ ..] = &x[0][..] else {
            return Err(Error::shape("padded_sequence", "two axes at least").actual(&x[0]));
        };
        let (batch, steps) = if self.batch_first { (first, second) } else { (second, first) };
        one_axis(&x[1], "lengths", Some(batch))?;
        let (rows, most) = (self.rows.max(0) as usize, first.saturating_mul(second));
        if rows > most {
            return Err(Error::arg("lengths", format!("{most} steps at most, those of padded_sequence")).actual(rows));
        }
        let y: Shape = [rows].iter().chain(width).copied().collect();
        let call = Sequences { batch, steps, rows, width: x[0].size_from(2), batch_first: self.batch_first };
        Ok(Resolved::new(smallvec![y, [steps].into()], PackRows(call)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        vec![("batch_first", ArgValue::Bool(self.batch_first))]
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1).then_some(DType::I32)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let call = &g.call::<PackRows>().0;
        let back = PadPackedSequence {
            batch_first: self.batch_first,
            total_length: Some(call.steps as i64),
            sequences: call.batch as i64,
            padding_value: None,
        };
        Ok(vec![Some(pad_packed_sequence(&g.gy[0], &g.y[1], back)?.swap_remove(0)), None])
    }
}

impl Function for PadPackedSequence {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let Some((&rows, width)) = x[0].split_first() else {
            return Err(Error::shape("packed_sequence", "one axis at least").actual(&x[0]));
        };
        let given = one_axis(&x[1], "batch_sizes", None)?;
        let steps = given.max(self.total_length.unwrap_or(-1).max(0) as usize);
        let batch = self.sequences.max(0) as usize;
        let axes = if self.batch_first { [batch, steps] } else { [steps, batch] };
        let y: Shape = axes.iter().chain(width).copied().collect();
        let sequences = Sequences { batch, steps, rows, width: x[0].size_from(1), batch_first: self.batch_first };
        let call = PadRows { sequences, given, value: self.padding_value.unwrap_or(0.0) };
        Ok(Resolved::new(smallvec![y.checked()?, [batch].into()], call))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        vec![
            ("batch_first", ArgValue::Bool(self.batch_first)),
            ("padding_value", ArgValue::Float(self.padding_value.unwrap_or(0.0))),
            ("total_length", ArgValue::Int(self.total_length.unwrap_or(-1))),
        ]
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1).then_some(DType::I32)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let rows = g.call::<PadRows>().sequences.rows as i64;
        let back = PackPaddedSequence { batch_first: self.batch_first, rows };
        Ok(vec![Some(pack_padded_sequence(&g.gy[0], &g.y[1], back)?.swap_remove(0)), None])
    }
}
