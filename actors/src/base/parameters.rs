//! The macro that defines the parameters of a policy.

use std::ops::RangeInclusive;

/// Defines parameters that experiment files write as a table in which every key may be absent, each with its default
/// and, after `=>`, its range; or a choice that is one of them, written in kebab case.
macro_rules! parameters {
    (
        $(#[$about:meta])* struct $name:ident {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr
                $(=> $min:literal..=$max:literal)?,)*
        }
        $($rest:tt)*
    ) => {
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $(#[$about])*
        pub struct $name {
            $($(#[$attribute])* $(#[schemars(range(min = $min, max = $max))])? pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        impl $name {
            /// Checks that numbers lie within their ranges.
            #[allow(clippy::unnecessary_cast, reason = "bounds are integers or not")]
            pub(crate) fn check_ranges(&self) -> Result<(), String> {
                $($(
                    let range = $min as f64..=$max as f64;
                    $crate::base::within(stringify!($field), f64::from(self.$field), range)?;
                )?)*
                Ok(())
            }
        }

        parameters! { $($rest)* }
    };
    ($(#[$about:meta])* enum $name:ident { $($variants:tt)* } $($rest:tt)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($variants)* }

        parameters! { $($rest)* }
    };
    () => {};
}
pub(crate) use parameters;

/// The error for a number outside a range; it reads "key: reason".
pub(crate) fn within(key: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: must be between {} and {}, not {value}", range.start(), range.end()))
}
