//! How a set is run.

use strata_engine::recall::Order;

/// How a set is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The orders in which each question is asked.
    pub orders: Vec<Order>,
    /// The maximum number of items by relevance.
    pub relevance_limit: u32,
    /// The maximum number of items in the served order.
    pub served_limit: u32,
    /// Whether Strata learns from all turns before the questions, so that memories and summaries are recalled too.
    pub learn: bool,
    /// Whether each question is also asked with a cross-encoder.
    pub rerank: bool,
    /// Whether each question is also asked of another conversation, which cannot answer it.
    pub foreign: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            orders: vec![Order::Relevance, Order::Served],
            relevance_limit: 50,
            served_limit: 10,
            learn: false,
            rerank: false,
            foreign: false,
        }
    }
}

impl Options {
    /// The orders in which each question is asked, each without a cross-encoder and, if wanted, with it.
    pub(crate) fn variants(&self) -> Vec<(Order, bool)> {
        let reranks: &[bool] = if self.rerank { &[false, true] } else { &[false] };
        self.orders.iter().flat_map(|order| reranks.iter().map(|rerank| (*order, *rerank))).collect()
    }
}
