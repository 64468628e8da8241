//! From relevance to the served order: recency, then diversity.

/// The recency of an item that is `age_days` old, from 0 to 1: the formula of the memory-proxy design. A future item
/// counts as new.
pub(super) fn recency(age_days: f32) -> f32 {
    (-age_days.max(0.0) / 30.0).exp()
}

/// Relevance and recency combined: the formula of the memory-proxy design, with `weight` from 0 to 1.
pub(super) fn with_recency(relevance: f32, age_days: f32, weight: f32) -> f32 {
    (1.0 - weight) * relevance + weight * recency(age_days)
}

/// Maximal marginal relevance: up to `limit` positions of `scores`, in an order that prefers items that are relevant
/// and unlike the items before them. With `lambda` 1 the order is by score. `similarity` gets pairs of positions.
///
/// Ties go to the earlier position, so the result depends on the input alone.
pub(super) fn mmr(
    scores: &[f32],
    limit: usize,
    lambda: f32,
    similarity: impl Fn(usize, usize) -> f32,
) -> Vec<usize> {
    let mut open: Vec<usize> = (0..scores.len()).collect();
    let mut nearest = vec![0.0_f32; scores.len()];
    let mut chosen = Vec::with_capacity(limit.min(scores.len()));
    while chosen.len() < limit && !open.is_empty() {
        let value = |place: usize| lambda * scores[place] - (1.0 - lambda) * nearest[place];
        let mut best = 0;
        for at in 1..open.len() {
            if value(open[at]) > value(open[best]) {
                best = at;
            }
        }
        let place = open.remove(best);
        for &other in &open {
            nearest[other] = nearest[other].max(similarity(place, other));
        }
        chosen.push(place);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn recency_halves_in_about_three_weeks() {
        assert_eq!(recency(0.0), 1.0);
        assert!((recency(30.0) - 0.367_879).abs() < 1e-5);
        assert_eq!(recency(-5.0), 1.0);
        assert!((with_recency(0.5, 0.0, 0.2) - 0.6).abs() < 1e-6);
    }

    #[test]
    fn similar_items_come_later() {
        // 0 and 1 say the same; 2 is less relevant and says something else.
        let similar = |a: usize, b: usize| if a + b == 1 { 1.0 } else { 0.0 };
        assert_eq!(mmr(&[0.9, 0.89, 0.6], 3, 0.7, similar), [0, 2, 1]);
        assert_eq!(mmr(&[0.9, 0.89, 0.6], 3, 1.0, similar), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn every_place_at_most_once_and_the_best_first(
            scores in proptest::collection::vec(0.0_f32..1.0, 0..40),
            limit in 0_usize..50,
            lambda in 0.0_f32..=1.0,
            seed in any::<u64>(),
        ) {
            let similarity = |a: usize, b: usize| {
                let mix = (a.min(b) as u64 * 31 + a.max(b) as u64).wrapping_mul(seed | 1);
                (mix >> 40) as f32 / (1_u64 << 24) as f32
            };
            let order = mmr(&scores, limit, lambda, similarity);
            prop_assert_eq!(order.len(), limit.min(scores.len()));
            let mut seen = order.clone();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), order.len());
            if let Some(first) = order.first() && lambda > 0.0 {
                prop_assert!(scores.iter().all(|score| *score <= scores[*first]));
            }
        }
    }
}
