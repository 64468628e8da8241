//! Models Strata runs or calls: token counting, embedders, rerankers, chat
