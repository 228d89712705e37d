//! The trait `Policy`, a factory of machines, the context they are built in, and the macro that defines parameters.

use crate::base::{ActorId, Span};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::roles::{Client, NodeManager};

/// The context in which a machine is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// Its address.
    pub me: ActorId,
    /// Its number within its role.
    pub index: u32,
    /// All actors of the run.
    pub layout: &'a Layout,
    /// Whether the experiment's network can lose datagrams: repairs that cost messages are armed only then.
    pub lossy: bool,
    /// Whether the staleness of its cache is recorded, if it has one. It changes nothing but the notes.
    pub watched: bool,
}

/// A scheduling system: a parsed configuration that is the factory of its machines.
pub trait Policy {
    /// The text of `volary policies`: a title with the source, then a description.
    const ABOUT: &'static str;

    /// Parameters with which randomised tests run this policy, as inline TOML tables; `#` stands for a number of
    /// servers that fits the cluster.
    const VARIANTS: &'static [&'static str];

    /// Whether this policy keeps all state in its only scheduler.
    const ONE_SCHEDULER: bool = false;

    /// Checks the parameters against a layout; the error reads "key: reason and remedy".
    fn check(&self, _layout: &Layout) -> Result<(), String> {
        Ok(())
    }

    /// How long a copy runs before this policy queries its progress; `None` if it never does.
    fn patience(&self) -> Option<Span> {
        None
    }

    /// A job source.
    fn client(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(Client::new(context.index))
    }

    /// A scheduler.
    fn scheduler(&self, context: BuildContext<'_>) -> Box<dyn Machine>;

    /// A node manager.
    fn node(&self, context: BuildContext<'_>) -> Box<dyn Machine> {
        Box::new(NodeManager::new(context.layout.cores(context.index)))
    }
}

/// Defines the parameters of a policy, each with its default, or a choice that is one of them. Experiment files write
/// the parameters as a table in which every key may be absent, and a choice as a string in kebab case.
macro_rules! parameters {
    (
        $(#[$about:meta])* struct $name:ident {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr,)*
        }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),* }
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
pub(super) use parameters;
