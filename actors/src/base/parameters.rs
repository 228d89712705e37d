//! The parameters of a policy: their trait, and the macro that defines them.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Span;

/// Parameters that experiment files write as a table in which every key may be absent. Implemented by
/// [`parameters!`](crate::parameters).
pub trait Parameters:
    Clone + PartialEq + fmt::Debug + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Returns an error if a number is outside the range of its key.
    ///
    /// # Errors
    /// Returns `"<key>: <reason>"` for the first number outside its range.
    fn check_ranges(&self) -> Result<(), String>;
}

/// Defines parameters that experiment files write as a table in which every key may be absent. Each key has a default
/// and, after `=>`, a range of numbers or the word `period`: see [`check_period`]. The macro also defines choices as
/// enums, written in kebab case. A crate that uses it depends on `serde` (with `derive`) and `schemars`.
///
/// ```
/// volary_actors::parameters! {
///     /// Parameters of hedging.
///     struct Hedging {
///         /// Quantile of the run times of tasks after which a second copy is sent.
///         quantile: f64 = 0.95 => 0.0..=1.0,
///         /// The node of the second copy.
///         place: Place = Place::Random,
///     }
///
///     /// The choice of a node for a second copy.
///     enum Place {
///         /// A uniformly sampled node.
///         #[default]
///         Random,
///     }
/// }
/// assert_eq!(Hedging::default().quantile, 0.95);
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$about:meta])* struct $name:ident {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr
                $(=> $period:ident)? $(=> $min:literal..=$max:literal)?,)*
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

        impl $crate::base::Parameters for $name {
            #[allow(clippy::unnecessary_cast, reason = "bounds are integers or not")]
            fn check_ranges(&self) -> Result<(), String> {
                $(
                    $($crate::base::check_period(stringify!($field), $crate::parameters!(@$period self.$field))?;)?
                    $(
                        let range = $min as f64..=$max as f64;
                        $crate::base::within(stringify!($field), f64::from(self.$field), range)?;
                    )?
                )*
                Ok(())
            }
        }

        $crate::parameters! { $($rest)* }
    };
    ($(#[$about:meta])* enum $name:ident { $($variants:tt)* } $($rest:tt)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($variants)* }

        $crate::parameters! { $($rest)* }
    };
    (@period $value:expr) => {
        $value
    };
    () => {};
}
pub use parameters;

/// Shortest allowed period. A shorter period is shorter than any delay or task, and a run with it would make no
/// progress.
const SHORTEST: Span = Span(1_000);

/// Returns an error if a period is shorter than a microsecond.
///
/// # Errors
/// Returns `"<key>: <reason>"`.
pub fn check_period(key: &str, period: Span) -> Result<(), String> {
    if period < SHORTEST { Err(format!("{key}: must be {SHORTEST} or longer, not {period}")) } else { Ok(()) }
}

/// Returns an error if `value` is outside `range`.
///
/// # Errors
/// Returns `"<key>: <reason>"`.
pub fn within(key: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}: must be between {} and {}, not {value}", range.start(), range.end()))
}
