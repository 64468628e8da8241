//! The layers around the routes. [`router`](crate::router()) lists them in their order.

pub(crate) mod admitted;
pub(crate) mod guarded;
pub(crate) mod limited;
pub(crate) mod observed;
pub(crate) mod translated;
