//! Embedding vectors as they are stored: eight bits per component, with the model's name.

use serde::{Deserialize, Serialize};

use crate::dot::dot;
use crate::id::ItemId;

/// A vector of unit length, quantised to eight bits per component.
///
/// One scale per vector keeps the largest component at 127. Measured on sentence encoders, the cosine of two quantised
/// vectors differs from the exact one by less than 0.01.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vector {
    /// The factor of the components.
    pub scale: f32,
    /// The components.
    pub values: Vec<i8>,
}

impl Vector {
    /// Normalises and quantises. A zero vector, or one that contains NaN, becomes all zeros.
    pub fn quantise(values: &[f32]) -> Self {
        Self::with_norm(values).0
    }

    /// The quantised vector, and the length of the given vector.
    pub(crate) fn with_norm(values: &[f32]) -> (Self, f32) {
        let mut quantised = vec![0; values.len()];
        let (scale, norm) = quantise_into(values, &mut quantised);
        (Self { scale, values: quantised }, norm)
    }

    /// The cosine of two vectors of the same model; 0 if the dimensions differ.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.values.len() != other.values.len() {
            return 0.0;
        }
        dot(&self.values, &other.values) as f32 * self.scale * other.scale
    }
}

/// Writes the quantised vector of `values` to `quantised`, which has the same length and holds only zeros. Returns the
/// scale and the length of the given vector.
pub(crate) fn quantise_into(values: &[f32], quantised: &mut [i8]) -> (f32, f32) {
    #[cfg(target_arch = "x86_64")]
    {
        // The same loops for registers of twice the width. They give the same numbers.
        #[target_feature(enable = "avx2")]
        fn quantise_avx2(values: &[f32], quantised: &mut [i8]) -> (f32, f32) {
            quantise_each(values, quantised)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the condition above checks that the processor has the one feature that the function needs.
            #[allow(
                unsafe_code,
                reason = "a function compiled for a processor feature can only be called so"
            )]
            return unsafe { quantise_avx2(values, quantised) };
        }
    }
    quantise_each(values, quantised)
}

#[inline(always)]
fn quantise_each(values: &[f32], quantised: &mut [i8]) -> (f32, f32) {
    let (norm, largest) = norm_and_largest(values);
    if !norm.is_finite() || norm == 0.0 || largest == 0.0 {
        return (0.0, norm);
    }
    for (quantised, value) in quantised.iter_mut().zip(values) {
        *quantised = round(value / largest * 127.0);
    }
    (largest / norm / 127.0, norm)
}

/// A vector's length and its largest component. Eight sums run in parallel, because a single sum waits for each
/// addition, and a cold index makes fifteen thousand vectors.
#[inline(always)]
fn norm_and_largest(values: &[f32]) -> (f32, f32) {
    let (mut squares, mut largest) = ([0.0_f32; 8], [0.0_f32; 8]);
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            squares[lane] += chunk[lane] * chunk[lane];
            largest[lane] = if chunk[lane].abs() > largest[lane] { chunk[lane].abs() } else { largest[lane] };
        }
    }
    let square: f32 = squares.iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>();
    let largest = largest.iter().chain(rest).fold(0.0_f32, |largest, value| largest.max(value.abs()));
    (square.sqrt(), largest)
}

/// Rounds a number from -127 to 127, halves away from zero. `f32::round` does the same, but costs a call per number.
#[inline(always)]
fn round(number: f32) -> i8 {
    let whole = number as i32;
    let rest = number - whole as f32;
    (whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)) as i8
}

/// The vector of one item by one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemVector {
    /// The embedded item.
    pub item: ItemId,
    /// The model's name, which also stands for its version: vectors of another name belong to another space.
    pub model: String,
    /// The vector.
    pub vector: Vector,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantised_cosine_is_close(
            (a, b) in (8_usize..400).prop_flat_map(|n| {
                let components = proptest::collection::vec(-1.0_f32..1.0, n);
                (components.clone(), components)
            })
        ) {
            let norm = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
            prop_assume!(norm(&a) > 0.1 && norm(&b) > 0.1);
            let exact = a.iter().zip(&b).map(|(x, y)| x * y).sum::<f32>() / norm(&a) / norm(&b);
            let close = Vector::quantise(&a).cosine(&Vector::quantise(&b));
            prop_assert!((exact - close).abs() < 0.02, "{exact} {close}");
        }
    }

    #[test]
    fn rounding_is_that_of_the_standard_library() {
        for step in -127 * 64..=127 * 64 {
            let number = step as f32 / 64.0;
            for number in [number, number.next_down(), number.next_up()].map(|n| n.clamp(-127.0, 127.0)) {
                assert_eq!(round(number), number.round() as i8, "{number}");
            }
        }
    }

    #[test]
    fn a_vector_without_direction_is_zero() {
        for values in [vec![], vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
            let vector = Vector::quantise(&values);
            assert_eq!(vector.cosine(&vector), 0.0);
        }
    }
}
