//! Random functions. Their numbers come from [`crate::random`].

mod choice;
mod dropout;
mod erase;
mod image_augmentation;
mod moves;
mod rand;
mod seed;
mod shaped;

use super::Def;
pub use choice::*;
pub use dropout::*;
pub use erase::*;
pub use image_augmentation::*;
pub use moves::*;
pub use rand::*;
pub use shaped::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Dropout::DEF,
    Rand::DEF,
    Randn::DEF,
    Randint::DEF,
    RandBinomial::DEF,
    RandBeta::DEF,
    RandGamma::DEF,
    RandomChoice::DEF,
    RandomCrop::DEF,
    RandomFlip::DEF,
    RandomShift::DEF,
    RandomErase::DEF,
    ImageAugmentation::DEF,
];
