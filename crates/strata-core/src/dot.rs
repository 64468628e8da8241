//! The inner product of eight-bit vectors. Recall spends most of its time in this loop.

/// The inner product of two vectors. If the lengths differ, the shorter length counts.
///
/// With AVX2 a product of 256 components takes about 7 ns; the portable loop takes 16 ns as compiled.
#[inline]
pub fn dot(a: &[i8], b: &[i8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the condition above checks that the processor has the one feature that the function needs.
        #[allow(unsafe_code, reason = "a function compiled for a processor feature can only be called so")]
        return unsafe { dot_avx2(a, b) };
    }
    dot_portable(a, b)
}

/// Writes the inner product of `vector` with each row of a table to `products`. All rows are as long as the vector.
///
/// Four rows at a time share the loads of the vector and the sum across a register's lanes.
pub fn dots(rows: &[i8], vector: &[i8], products: &mut [i32]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if vector.len().is_multiple_of(64) && has!("avx512f") && has!("avx512vnni") {
            // SAFETY: the condition above checks that the processor has the features that the function needs.
            #[allow(
                unsafe_code,
                reason = "a function compiled for a processor feature can only be called so"
            )]
            return unsafe { dots_vnni(rows, vector, products) };
        }
        if vector.len().is_multiple_of(16) && has!("avx2") {
            // SAFETY: the condition above checks that the processor has the one feature that the function needs.
            #[allow(
                unsafe_code,
                reason = "a function compiled for a processor feature can only be called so"
            )]
            return unsafe { dots_avx2(rows, vector, products) };
        }
    }
    dots_portable(rows, vector, products);
}

/// Like [`dots`] for two vectors. They share the loads of the rows if the processor has enough registers.
pub fn dots_of_two(rows: &[i8], vectors: [&[i8]; 2], products: [&mut [i32]; 2]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let fit = vectors[0].len() == vectors[1].len() && vectors[0].len().is_multiple_of(64);
        if fit && has!("avx512f") && has!("avx512vnni") {
            // SAFETY: the condition above checks that the processor has the features that the function needs.
            #[allow(
                unsafe_code,
                reason = "a function compiled for a processor feature can only be called so"
            )]
            return unsafe { dots_of_two_vnni(rows, vectors, products) };
        }
    }
    for (vector, products) in vectors.into_iter().zip(products) {
        dots(rows, vector, products);
    }
}

fn dots_portable(rows: &[i8], vector: &[i8], products: &mut [i32]) {
    for (row, product) in rows.chunks_exact(vector.len().max(1)).zip(products) {
        *product = dot_portable(row, vector);
    }
}

/// Loads sixty-four components and adds 128 to each: the instruction multiplies unsigned bytes with signed bytes. This
/// adds the same amount to the product of every row; [`store_sums`] subtracts it again.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn load_unsigned(bytes: &[i8; 64]) -> std::arch::x86_64::__m512i {
    use std::arch::x86_64::{_mm512_set1_epi8, _mm512_xor_si512};
    _mm512_xor_si512(load(bytes), _mm512_set1_epi8(i8::MIN))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[i8; 64]) -> std::arch::x86_64::__m512i {
    // SAFETY: an unaligned load of the sixty-four bytes that the reference points to.
    #[allow(unsafe_code, reason = "a load into a register takes a pointer")]
    unsafe {
        std::arch::x86_64::_mm512_loadu_si512(bytes.as_ptr().cast())
    }
}

/// Writes the sums across the lanes of four registers, minus the amount that the offset of 128 added.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
fn store_sums([a, b, c, d]: [std::arch::x86_64::__m512i; 4], excess: i32, products: &mut [i32; 4]) {
    use std::arch::x86_64::{
        _mm_add_epi32, _mm_set1_epi32, _mm_storeu_si128, _mm_sub_epi32, _mm512_add_epi32,
        _mm512_extracti32x4_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
        _mm512_unpacklo_epi64,
    };
    // Adds pairs until each quarter holds a part of each row, then adds the quarters.
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    let abcd = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let low = _mm_add_epi32(_mm512_extracti32x4_epi32::<0>(abcd), _mm512_extracti32x4_epi32::<1>(abcd));
    let high = _mm_add_epi32(_mm512_extracti32x4_epi32::<2>(abcd), _mm512_extracti32x4_epi32::<3>(abcd));
    let sum = _mm_sub_epi32(_mm_add_epi32(low, high), _mm_set1_epi32(excess));
    // SAFETY: an unaligned store into the sixteen bytes of the array.
    #[allow(unsafe_code, reason = "a store from a register takes a pointer")]
    unsafe {
        _mm_storeu_si128(products.as_mut_ptr().cast(), sum);
    }
}

/// The amount that the offset of 128 adds to each product.
#[cfg(target_arch = "x86_64")]
fn excess(vector: &[i8]) -> i32 {
    128 * vector.iter().map(|value| i32::from(*value)).sum::<i32>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn dots_vnni(rows: &[i8], vector: &[i8], products: &mut [i32]) {
    use std::arch::x86_64::{_mm512_dpbusd_epi32, _mm512_setzero_si512};
    let (length, excess) = (vector.len().max(1), excess(vector));
    let parts = vector.as_chunks::<64>().0;
    let (fours, rest) = products.as_chunks_mut::<4>();
    for (rows, products) in rows.chunks_exact(4 * length).zip(&mut *fours) {
        let rows = rows.as_chunks::<64>().0;
        let (first, second) = rows.split_at(2 * parts.len());
        let ((a, b), (c, d)) = (first.split_at(parts.len()), second.split_at(parts.len()));
        let mut sums = [_mm512_setzero_si512(); 4];
        for ((((part, a), b), c), d) in parts.iter().zip(a).zip(b).zip(c).zip(d) {
            let part = load(part);
            sums[0] = _mm512_dpbusd_epi32(sums[0], load_unsigned(a), part);
            sums[1] = _mm512_dpbusd_epi32(sums[1], load_unsigned(b), part);
            sums[2] = _mm512_dpbusd_epi32(sums[2], load_unsigned(c), part);
            sums[3] = _mm512_dpbusd_epi32(sums[3], load_unsigned(d), part);
        }
        store_sums(sums, excess, products);
    }
    dots_portable(rows.get(fours.len() * 4 * length..).unwrap_or_default(), vector, rest);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn dots_of_two_vnni(rows: &[i8], [one, other]: [&[i8]; 2], [of_one, of_other]: [&mut [i32]; 2]) {
    use std::arch::x86_64::{_mm512_dpbusd_epi32, _mm512_setzero_si512};
    let (length, excesses) = (one.len().max(1), (excess(one), excess(other)));
    let parts = one.as_chunks::<64>().0.iter().zip(other.as_chunks::<64>().0);
    let ((fours, rest), (other_fours, other_rest)) =
        (of_one.as_chunks_mut::<4>(), of_other.as_chunks_mut::<4>());
    for ((rows, of_one), of_other) in rows.chunks_exact(4 * length).zip(&mut *fours).zip(other_fours) {
        let rows = rows.as_chunks::<64>().0;
        let (first, second) = rows.split_at(rows.len() / 2);
        let ((a, b), (c, d)) = (first.split_at(first.len() / 2), second.split_at(second.len() / 2));
        let (mut sums, mut others) = ([_mm512_setzero_si512(); 4], [_mm512_setzero_si512(); 4]);
        for (((((one, other), a), b), c), d) in parts.clone().zip(a).zip(b).zip(c).zip(d) {
            let (one, other) = (load(one), load(other));
            let row = load_unsigned(a);
            sums[0] = _mm512_dpbusd_epi32(sums[0], row, one);
            others[0] = _mm512_dpbusd_epi32(others[0], row, other);
            let row = load_unsigned(b);
            sums[1] = _mm512_dpbusd_epi32(sums[1], row, one);
            others[1] = _mm512_dpbusd_epi32(others[1], row, other);
            let row = load_unsigned(c);
            sums[2] = _mm512_dpbusd_epi32(sums[2], row, one);
            others[2] = _mm512_dpbusd_epi32(others[2], row, other);
            let row = load_unsigned(d);
            sums[3] = _mm512_dpbusd_epi32(sums[3], row, one);
            others[3] = _mm512_dpbusd_epi32(others[3], row, other);
        }
        store_sums(sums, excesses.0, of_one);
        store_sums(others, excesses.1, of_other);
    }
    let left = rows.get(fours.len() * 4 * length..).unwrap_or_default();
    dots_portable(left, one, rest);
    dots_portable(left, other, other_rest);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dots_avx2(rows: &[i8], vector: &[i8], products: &mut [i32]) {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128,
        _mm256_cvtepi8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_madd_epi16,
        _mm256_setzero_si256,
    };
    /// Sixteen components, widened to sixteen bits.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[i8; 16]) -> __m256i {
        // SAFETY: an unaligned load of the sixteen bytes that the reference points to.
        #[allow(unsafe_code, reason = "a load into a register takes a pointer")]
        unsafe {
            _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes.as_ptr().cast()))
        }
    }
    let length = vector.len().max(1);
    let parts = vector.as_chunks::<16>().0;
    let (fours, rest) = products.as_chunks_mut::<4>();
    for (rows, products) in rows.chunks_exact(4 * length).zip(&mut *fours) {
        let rows = rows.as_chunks::<16>().0;
        let (first, second) = rows.split_at(2 * parts.len());
        let ((a, b), (c, d)) = (first.split_at(parts.len()), second.split_at(parts.len()));
        let mut sums = [_mm256_setzero_si256(); 4];
        for ((((part, a), b), c), d) in parts.iter().zip(a).zip(b).zip(c).zip(d) {
            let part = load(part);
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(load(a), part));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(load(b), part));
            sums[2] = _mm256_add_epi32(sums[2], _mm256_madd_epi16(load(c), part));
            sums[3] = _mm256_add_epi32(sums[3], _mm256_madd_epi16(load(d), part));
        }
        let [a, b, c, d] = sums;
        let abcd = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let sum = _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256::<1>(abcd));
        // SAFETY: an unaligned store into the sixteen bytes of the array.
        #[allow(unsafe_code, reason = "a store from a register takes a pointer")]
        unsafe {
            _mm_storeu_si128(products.as_mut_ptr().cast(), sum);
        }
    }
    dots_portable(rows.get(fours.len() * 4 * length..).unwrap_or_default(), vector, rest);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn dot_avx2(a: &[i8], b: &[i8]) -> i32 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16, _mm256_setzero_si256,
        _mm256_storeu_si256,
    };
    let length = a.len().min(b.len());
    let ((a, a_rest), (b, b_rest)) = (a[..length].as_chunks::<16>(), b[..length].as_chunks::<16>());
    let mut sum = _mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        // SAFETY: an unaligned load of the sixteen bytes that each of the two references points to.
        #[allow(unsafe_code, reason = "a load into a register takes a pointer")]
        let (a, b) = unsafe { (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast())) };
        let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
        sum = _mm256_add_epi32(sum, products);
    }
    let mut lanes = [0_i32; 8];
    // SAFETY: an unaligned store into the thirty-two bytes of the array.
    #[allow(unsafe_code, reason = "a store from a register takes a pointer")]
    unsafe {
        _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum);
    }
    lanes.iter().sum::<i32>() + dot_portable(a_rest, b_rest)
}

#[inline(always)]
fn dot_portable(a: &[i8], b: &[i8]) -> i32 {
    let length = a.len().min(b.len());
    // A product of two eight-bit numbers fits sixteen bits; a sum of 65,536 such products fits thirty-two.
    a[..length].iter().zip(&b[..length]).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_way_gives_the_same(
            pairs in proptest::collection::vec((any::<i8>(), any::<i8>()), 0..700)
        ) {
            let (a, b): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            let exact: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            prop_assert_eq!(dot(&a, &b), exact);
            prop_assert_eq!(dot_portable(&a, &b), exact);
        }

        #[test]
        fn rows_are_multiplied_whatever_the_processor_has(
            parts in 0_usize..9,
            count in 0_usize..10,
            step in prop::sample::select(vec![1, 16, 64]),
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut components = |length: usize| -> Vec<i8> {
                let mut next = || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // The ends of the range are the values for which sums could overflow.
                    match state >> 60 { 0 | 1 => i8::MIN, 2 => i8::MAX, _ => (state >> 40) as i8 }
                };
                (0..length).map(|_| next()).collect()
            };
            let (vector, rows) = (components(parts * step), components(count * parts * step));
            let expected: Vec<i32> =
                rows.chunks_exact(vector.len().max(1)).map(|row| dot_portable(row, &vector)).collect();
            let mut products = vec![7; expected.len()];
            dots(&rows, &vector, &mut products);
            prop_assert_eq!(&products, &expected);
            let other: Vec<i8> = vector.iter().map(|value| value.wrapping_mul(3)).collect();
            let expected_other: Vec<i32> =
                rows.chunks_exact(other.len().max(1)).map(|row| dot_portable(row, &other)).collect();
            let mut products_other = vec![7; expected.len()];
            products.fill(7);
            dots_of_two(&rows, [&vector, &other], [&mut products, &mut products_other]);
            prop_assert_eq!((&products, &products_other), (&expected, &expected_other));
            #[cfg(target_arch = "x86_64")]
            if step >= 16 && std::arch::is_x86_feature_detected!("avx2") {
                products.fill(7);
                // SAFETY: the condition above checks that the processor has the feature.
                #[allow(unsafe_code, reason = "a function compiled for a processor feature can only be called so")]
                unsafe {
                    dots_avx2(&rows, &vector, &mut products);
                }
                prop_assert_eq!(&products, &expected);
            }
        }
    }
}
