//! Enums that people, stores and clients write by name.
//!
//! `strum` derives the names from the variants, with the same rule as serde if an enum has both. This module words the error
//! for an unknown name.

use crate::error::{Error, shown};

/// An enum whose values are parsed from names.
pub trait Named: strum::VariantArray + Copy + Into<&'static str> {
    /// How an error calls one of its values, for instance `role`.
    const WHAT: &'static str;
}

/// The error for a name that the enum does not have. It lists the names that the enum has.
pub fn unknown<T: Named>(name: &str) -> Error {
    let names: Vec<String> = T::VARIANTS.iter().map(|value| format!("`{}`", (*value).into())).collect();
    let known = match names.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    };
    Error::invalid(format!("{} `{}` is unknown; use {known}", T::WHAT, shown(name)))
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::str::FromStr;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::job::JobStatus;
    use crate::summary::{Strategy, SummaryStatus};
    use crate::turn::HiddenReason;
    use crate::{MemoryKind, Role};

    fn refused<T: FromStr<Err = Error>>(name: &str, expected: &str) {
        assert_eq!(name.parse::<T>().map(|_| ()).unwrap_err().message(), expected);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        refused::<Role>("king", "role `king` is unknown; use `user`, `assistant`, `system` or `tool`");
        let shown = "好".repeat(64);
        let expected = format!("strategy `{shown}` is unknown; use `rolling`, `window` or `tree`");
        refused::<Strategy>(&"好".repeat(65), &expected);
    }

    fn agree<T>()
    where
        T: Named + FromStr<Err = Error> + PartialEq + Debug + Serialize + DeserializeOwned,
    {
        for value in T::VARIANTS {
            let name: &str = (*value).into();
            assert_eq!(name.parse::<T>().unwrap(), *value);
            assert_eq!(serde_json::to_value(value).unwrap(), name);
            assert_eq!(serde_json::from_value::<T>(name.into()).unwrap(), *value);
        }
    }

    #[test]
    fn serde_and_strum_use_the_same_names() {
        agree::<Role>();
        agree::<HiddenReason>();
        agree::<JobStatus>();
        agree::<MemoryKind>();
        agree::<Strategy>();
        agree::<SummaryStatus>();
    }
}
