//! What is done to one image, from its random numbers. `cuda/image_augmentation.cu` does the same.

use super::{Augmentation, NUMBERS};

/// How places of the result are found in the image, and what becomes of the values.
pub(super) struct Alteration<'a> {
    a: &'a Augmentation,
    /// Rows: of x, of y; from distances to the middle of the result.
    turn: [[f64; 2]; 2],
    /// Where the middle of the result, y and x, lies in the image.
    middle: [f64; 2],
    distortion: f64,
    flips: [bool; 2],
    pub noise: f64,
    per_channel: &'a [f64],
}

impl<'a> Alteration<'a> {
    pub(super) fn new(a: &'a Augmentation, u: &'a [f64]) -> Alteration<'a> {
        let within = |range: f64, u: f64| range * (2.0 * u - 1.0);
        let scale = a.scale[0] * ((a.scale[1] / a.scale[0]).ln() * u[0]).exp();
        let stretch = (a.aspect_ratio.ln() * (u[1] - 0.5)).exp();
        let scales = [scale / stretch, scale * stretch];
        let (sine, cosine) = within(a.angle, u[2]).sin_cos();
        let middle = |axis: usize, u: f64| {
            let room = a.size[axis] as f64 * scales[axis] + 2.0 * a.pad[axis] as f64 - a.out[axis] as f64;
            ((a.out[axis] as f64 - 1.0) * 0.5 + room * u - a.pad[axis] as f64) / scales[axis]
        };
        Alteration {
            a,
            turn: [[cosine / scales[1], -sine / scales[0]], [sine / scales[1], cosine / scales[0]]],
            middle: [middle(0, u[4]), middle(1, u[3])],
            distortion: within(a.distortion, u[5]).exp() - 1.0,
            flips: [a.flip_ud && u[7] < 0.5, a.flip_lr && u[6] < 0.5],
            noise: a.noise * u[8],
            per_channel: &u[NUMBERS..],
        }
    }

    pub(super) fn is_distorted(&self) -> bool {
        self.distortion != 0.0
    }

    /// The place in the image, y and x, within its borders; with the flag for images that are distorted.
    #[inline(always)]
    pub(super) fn place<const DISTORTED: bool>(&self, y: usize, x: usize) -> [f64; 2] {
        let out = self.a.out;
        let flipped = |axis: usize, i: usize| (if self.flips[axis] { out[axis] - 1 - i } else { i }) as f64;
        let mut at = [flipped(0, y), flipped(1, x)];
        if DISTORTED {
            let half = out.map(|n| n as f64 * 0.5);
            let part = [0, 1].map(|axis| (at[axis] - half[axis]) / half[axis]);
            let square = part[0] * part[0] + part[1] * part[1];
            let factor = (1.0 + self.distortion * square) / (1.0 + self.distortion);
            at = [0, 1].map(|axis| half[axis] + part[axis] * factor * half[axis]);
        }
        let [dy, dx] = [0, 1].map(|axis| at[axis] - (out[axis] as f64 - 1.0) * 0.5);
        let found = [self.turn[1][0] * dx + self.turn[1][1] * dy, self.turn[0][0] * dx + self.turn[0][1] * dy];
        let inside = |axis: usize| {
            let (v, last) = (self.middle[axis] + found[axis], self.a.size[axis] as f64 - 1.0);
            let v = if v < 0.0 { 0.0 } else { v };
            if v > last { last } else { v }
        };
        [inside(0), inside(1)]
    }

    /// What is added to a channel's values, and what their distance to the contrast's centre is multiplied by.
    pub(super) fn values(&self, channel: usize) -> [f64; 2] {
        let a = self.a;
        let brightness = self.per_channel[if a.brightness_each { channel } else { 0 }];
        let contrast = self.per_channel[a.channels + if a.contrast_each { channel } else { 0 }];
        [a.brightness * (2.0 * brightness - 1.0), (a.contrast.ln() * (2.0 * contrast - 1.0)).exp()]
    }
}
