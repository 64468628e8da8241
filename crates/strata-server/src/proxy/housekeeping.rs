//! Recognises the prompts that chat programs send for themselves.

use crate::compat::chat::ChatBody;

pub(crate) fn is_housekeeping(_body: &ChatBody<'_>) -> bool {
    false
}
