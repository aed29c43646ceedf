//! `nms_detection2d` and `onnx_non_max_suppression`: boxes that overlap better ones are suppressed.

use crate::function;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::nms as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Suppresses boxes of a detector that overlap better ones (Redmon and Farhadi, YOLO9000, 2016). Probabilities become scores, their
    /// products with the objectness; what is below `thresh`, objectness too, and what is suppressed becomes 0.
    ///
    /// As in NNabla there is no gradient.
    NmsDetection2d nms_detection2d in Special, forward_on_any_device
    inputs { x: "Boxes of shape (B, N, 5 + C): center x and y, width, height, objectness, and the probabilities of C classes." }
    args {
        thresh: Option<f64> = None, "The least score; None: 0.5.";
        nms: Option<f64> = None, "A box is suppressed by a better one if the area of both together is more than this part of that of either; None: 0.45.";
        nms_per_class: Option<bool> = None, "Compare the scores of each class. If not, compare boxes by their objectness; that of suppressed ones becomes 0, too. None: True."
    }
    outputs { y: "Array of x's shape." }
}

impl NmsDetection2d {
    fn given(&self) -> (f64, f64, bool) {
        (self.thresh.unwrap_or(0.5), self.nms.unwrap_or(0.45), self.nms_per_class.unwrap_or(true))
    }
}

impl Function for NmsDetection2d {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let &[_, boxes, row] = &x[0][..] else {
            return Err(Error::shape("x", "shape (B, N, 5 + C)").actual(&x[0]));
        };
        if row < 6 {
            return Err(Error::shape("x", "shape (B, N, 5 + C) with a class at least").actual(&x[0]));
        }
        let (thresh, nms, per_class) = self.given();
        let call = kernel::NmsDetection2d { boxes, classes: row - 5, thresh, nms, per_class };
        Ok(Resolved::one(x[0].clone(), call))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let (thresh, nms, per_class) = self.given();
        vec![
            ("thresh", ArgValue::Float(thresh)),
            ("nms", ArgValue::Float(nms)),
            ("nms_per_class", ArgValue::Bool(per_class)),
        ]
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}

function! {
    /// The boxes that are left of each class when those that overlap better ones are suppressed, from the best on. No gradient.
    ONNXNonMaxSuppression onnx_non_max_suppression in Special, forward_on_any_device
    inputs { boxes: "Boxes of shape (B, N, 4).", scores: "Scores of shape (B, C, N)." }
    args {
        center_point_box: Option<i64> = None, "0: boxes are two corners, y1, x1, y2, x2; 1: center and size, x, y, w, h. None: 0.";
        max_output_boxes_per_class: Option<i64> = None, "How many are left of a class at most; None: 0.";
        iou_threshold: Option<f64> = None, "A box is suppressed if the area of both together is more than this part of that of either; None: 0.";
        score_threshold: Option<f64> = None, "The least score; None: 0.";
        rows: i64 = 0, "How many are left; -1: as many as there may be."
    }
    outputs { y: "Rows of batch, class and box: of shape (boxes that are left, 3)." }
}

impl ONNXNonMaxSuppression {
    fn call(&self, boxes: &Shape, scores: &Shape) -> Result<kernel::OnnxNms> {
        let &[b, n, 4] = &boxes[..] else {
            return Err(Error::shape("boxes", "shape (B, N, 4)").actual(boxes));
        };
        let &[_, classes, _] = &scores[..] else {
            return Err(Error::shape("scores", "shape (B, C, N)").actual(scores));
        };
        if scores[0] != b || scores[2] != n {
            return Err(Error::shape("scores", format!("shape ({b}, C, {n}), as boxes are {boxes}")).actual(scores));
        }
        let form = self.center_point_box.unwrap_or(0);
        if !(0..=1).contains(&form) {
            return Err(Error::arg("center_point_box", "0 or 1").actual(form));
        }
        let most = self.max_output_boxes_per_class.unwrap_or(0);
        let wrong = || Error::arg("max_output_boxes_per_class", "0 or more").actual(most);
        Ok(kernel::OnnxNms {
            boxes: n,
            classes,
            centers: form == 1,
            most: usize::try_from(most).map_err(|_| wrong())?,
            iou_threshold: self.iou_threshold.unwrap_or(0.0),
            score_threshold: self.score_threshold.unwrap_or(0.0),
            rows: usize::try_from(self.rows).ok(),
        })
    }
}

impl Function for ONNXNonMaxSuppression {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let call = self.call(&x[0], &x[1])?;
        let rows = call.rows.unwrap_or_else(|| x[1].size_to(2) * call.most.min(call.boxes));
        Ok(Resolved::one(Shape::from([rows, 3]).checked()?, call))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let fill = |(name, v)| match (name, v) {
            ("iou_threshold" | "score_threshold", ArgValue::None) => (name, ArgValue::Float(0.0)),
            (_, ArgValue::None) => (name, ArgValue::Int(0)),
            other => other,
        };
        self.arguments().into_iter().filter(|(name, _)| *name != "rows").map(fill).collect()
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::U64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
