//! `onnx_resize`: all axes of an array resampled, as ONNX's Resize does.

use super::resampled::{self, Line};
use crate::function;
use crate::function::array::List;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, with_defaults};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::resample::{Forward, Sampling, Way};
use nnrs_kernels::shape::Shape;

/// The usual coefficient of the cubic polynomial.
const CUBIC: f64 = -0.75;

/// How an element's place in the input may be reckoned.
const PLACES: &str = "'half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric', 'tf_half_pixel_for_nn' or \
                      'tf_crop_and_resize'";

function! {
    /// Resamples axes to other sizes, as the operator Resize of ONNX (https://onnx.ai/onnx/operators/onnx__Resize.html).
    ONNXResize onnx_resize in Signal, any_device
    inputs { x: "N-D array." }
    args {
        roi: Vec<f64> = vec![], "For 'tf_crop_and_resize': where each axis begins, then where each ends; 1 is the last element.";
        scales: Vec<f64> = vec![], "Factors of all sizes; these or sizes are given.";
        sizes: List = List::default(), "New sizes of all axes.";
        mode: String = "nearest".to_string(), "'nearest', 'linear' or 'cubic'.";
        coordinate_transformation_mode: String = "half_pixel".to_string(),
            "'half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric', 'tf_half_pixel_for_nn' or 'tf_crop_and_resize'.";
        cubic_coeff_a: Option<f64> = None, "Coefficient of the cubic polynomial; None: -0.75.";
        exclude_outside: Option<i64> = None, "Not 0: cubic interpolation leaves out what is beyond the ends; None: 0.";
        extrapolation_value: Option<f64> = None, "Value beyond the ends for 'tf_crop_and_resize'; None: 0.";
        nearest_mode: String = "round_prefer_floor".to_string(), "'round_prefer_floor', 'round_prefer_ceil', 'floor' or 'ceil'."
    }
    outputs { y: "N-D array of the new sizes." }
}

impl ONNXResize {
    fn way(&self) -> Result<Way> {
        let names = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"];
        let ways = [Way::Floor, Way::Ceil, Way::NearestFirst, Way::NearestSecond];
        let Some(nearest) = names.iter().position(|n| *n == self.nearest_mode) else {
            let expected = "'round_prefer_floor', 'round_prefer_ceil', 'floor' or 'ceil'";
            return Err(Error::arg("nearest_mode", expected).actual(format!("'{}'", self.nearest_mode)));
        };
        match (&*self.mode, self.exclude_outside.unwrap_or(0)) {
            ("nearest", _) => Ok(ways[nearest]),
            ("linear", _) => Ok(Way::Linear),
            ("cubic", 0) => Ok(Way::Cubic),
            ("cubic", _) => Ok(Way::CubicInside),
            (mode, _) => Err(Error::arg("mode", "'nearest', 'linear' or 'cubic'").actual(format!("'{mode}'"))),
        }
    }

    /// For each axis its new size and the factor that it was made by.
    fn new_sizes(&self, x: &Shape) -> Result<Vec<(usize, f64)>> {
        let (sizes, scales) = (&self.sizes.0, &self.scales);
        let n = x.ndim();
        match (sizes.is_empty(), scales.is_empty()) {
            (false, true) if sizes.len() == n => {
                let sizes = resampled::sizes("sizes", sizes)?;
                Ok(sizes.iter().zip(x.iter()).map(|(&m, &n)| (m, m as f64 / n as f64)).collect())
            }
            (true, false) if scales.len() == n => {
                let size = |(&s, &n): (&f64, &usize)| (s * n as f64).floor().clamp(-1.0, 1e18) as i64;
                let sizes: Vec<i64> = scales.iter().zip(x.iter()).map(size).collect();
                let whole = resampled::sizes("scales", &sizes).map_err(|e| e.hint(format!("scales {scales:?}")))?;
                Ok(whole.into_iter().zip(scales.iter().copied()).collect())
            }
            (false, false) | (true, true) => {
                let e = Error::arg("sizes", "numbers in sizes or in scales");
                Err(e.actual(if sizes.is_empty() { "neither" } else { "both" }))
            }
            (false, true) => {
                Err(Error::arg("sizes", format!("{n} numbers, one for each axis")).actual(format!("{sizes:?}")))
            }
            (true, false) => {
                Err(Error::arg("scales", format!("{n} numbers, one for each axis")).actual(format!("{scales:?}")))
            }
        }
    }

    /// Where axis `a` of an array of `axes` axes begins and ends, in single precision, as NNabla has it.
    fn crop(&self, a: usize, axes: usize) -> Result<(f32, f32)> {
        if self.roi.len() != 2 * axes || self.roi.iter().any(|v| !(*v as f32).is_finite()) {
            let expected = format!("{} numbers, where each axis begins and then where each ends", 2 * axes);
            return Err(Error::arg("roi", expected).actual(format!("{:?}", self.roi)));
        }
        Ok((self.roi[a] as f32, self.roi[axes + a] as f32))
    }

    fn line(&self, a: usize, axes: usize, n: usize, (m, factor): (usize, f64)) -> Result<Line> {
        let whole = self.scales.is_empty();
        let middles = if whole { Line::middles(n, m) } else { Line::new(2.0, 1.0 - factor, 2.0 * factor) };
        match &*self.coordinate_transformation_mode {
            "half_pixel" => Ok(middles),
            "pytorch_half_pixel" => Ok(if m > 1 { middles } else { Line::START }),
            "align_corners" => Ok(Line::corners(n, m)),
            "asymmetric" if whole => Ok(Line::new(n as f64, 0.0, m as f64)),
            "asymmetric" => Ok(Line::new(1.0, 0.0, factor)),
            // An axis that keeps its size stays as it is, as in NNabla, and would in all other modes.
            "tf_half_pixel_for_nn" if factor == 1.0 => Ok(Line::new(1.0, 0.0, 1.0)),
            "tf_half_pixel_for_nn" if whole => Ok(Line::new(2.0 * n as f64, n as f64, 2.0 * m as f64)),
            "tf_half_pixel_for_nn" => Ok(Line::new(2.0, 1.0, 2.0 * factor)),
            "tf_crop_and_resize" => {
                let (first, end) = self.crop(a, axes)?;
                Ok(match m {
                    1 => Line::new(0.0, (0.5 * (first + end)).into(), 1.0),
                    m => Line::new((end - first).into(), first.into(), m as f64 - 1.0),
                })
            }
            mode => Err(Error::arg("coordinate_transformation_mode", PLACES).actual(format!("'{mode}'"))),
        }
    }
}

impl Function for ONNXResize {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (way, new) = (self.way()?, self.new_sizes(&x[0])?);
        let cubic = self.cubic_coeff_a.unwrap_or(CUBIC);
        let cut = self.coordinate_transformation_mode == "tf_crop_and_resize";
        let axes = new.into_iter().enumerate().map(|(a, size)| {
            let n = x[0][a];
            Ok(Sampling { cubic, cut, ..self.line(a, x[0].ndim(), n, size)?.sampling(n, size.0, way) })
        });
        let axes = axes.collect::<Result<_>>()?;
        let (y, call) = resampled::resample(&x[0], 0, axes, self.extrapolation_value.unwrap_or(0.0))?;
        Ok(Resolved::one(y, Forward(call)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let cubic = ("cubic_coeff_a", ArgValue::Float(CUBIC));
        let (inside, beyond) = (("exclude_outside", ArgValue::Int(0)), ("extrapolation_value", ArgValue::Float(0.0)));
        with_defaults(self, &[cubic, inside, beyond])
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        resampled::gradient(g, 0)
    }
}
