//! Recall over a real store, with a lexicon made for the purpose.
