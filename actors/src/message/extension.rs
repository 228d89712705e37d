//! The trait of the messages of a policy in another crate, and the macro that defines them.

use super::custom::{Custom, CustomKind};
use super::registry::Message;

/// The messages of a policy in another crate. Implemented by [`custom_messages!`](crate::custom_messages).
pub trait CustomProtocol: Copy + Into<Message> {
    /// Number of the first kind; the other kinds follow it.
    const FIRST: u8;
    /// The kinds.
    const KINDS: &'static [CustomKind];
    /// Decodes a message; `None` if it is not of these kinds or its payload is invalid.
    fn decode(custom: &Custom) -> Option<Self>;

    /// The custom message in `msg`, if it is one of these kinds.
    fn of(msg: &Message) -> Option<Self> {
        if let Message::Custom(custom) = msg { Self::decode(custom) } else { None }
    }
}

/// Defines the messages of a policy in another crate: an enum whose variants have at most 24 bytes of
/// [fields](crate::message::Field). Each variant has a row with its name, class and the roles between which it passes.
///
/// ```
/// use volary_actors::base::TaskId;
/// use volary_actors::message::{CustomProtocol as _, Message};
///
/// volary_actors::custom_messages! {
///     /// Places that a node keeps for tasks.
///     pub enum Hold from 0 {
///         /// Keep a place for a task.
///         Keep {
///             /// The task.
///             task: TaskId,
///             /// Number of cores that it needs, at least one.
///             cores: u32,
///         } = "hold.keep", Datagram, Scheduler -> Node if cores > 0;
///         /// There is no place.
///         Full {} = "hold.full", Datagram, Node -> Scheduler;
///     }
/// }
///
/// let full = Message::from(Hold::Full {});
/// assert_eq!(Hold::of(&full), Some(Hold::Full {}));
/// ```
///
/// `from 0` numbers the kinds. The numbers of a program are below 16, and those of its policies are disjoint. A
/// message from another process is rejected if it names a job or task that does not exist, or if the condition after
/// `if` is false.
#[macro_export]
macro_rules! custom_messages {
    (
        $(#[$about:meta])*
        $visible:vis enum $name:ident from $first:literal {
            $(
                $(#[$doc:meta])*
                $label:ident { $($(#[$of:meta])* $field:ident: $type:ty),* $(,)? }
                    = $wire:literal, $class:ident, $($from:ident -> $to:ident)|+ $(if $bounds:expr)?;
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visible enum $name {
            $($(#[$doc])* $label { $($(#[$of])* $field: $type),* },)+
        }

        const _: () = {
            use $crate::base::Class;
            use $crate::layout::Role;
            use $crate::message::{
                Custom, CustomKind, CustomProtocol, Field, HEAD, Message, PAYLOAD, PayloadWriter,
            };

            enum KindNumber { $($label),+ }

            $(assert!(
                0 $(+ <$type as Field>::BYTES)* <= PAYLOAD,
                concat!(stringify!($label), " has more than 24 bytes of fields"),
            );)+

            impl $name {
                #[allow(unused_variables, reason = "the bounds use what the pattern binds")]
                fn is_within(self, run: &$crate::message::Run<'_>) -> bool {
                    match self {
                        $(Self::$label { $($field),* } => {
                            true $(&& Field::is_within(&$field, run))* $(&& $bounds)?
                        })+
                    }
                }

                fn about(self) -> Option<$crate::base::JobId> {
                    match self {
                        $(Self::$label { $($field),* } => None $(.or(Field::job($field)))*,)+
                    }
                }
            }

            impl CustomProtocol for $name {
                const FIRST: u8 = $first;

                const KINDS: &'static [CustomKind] = &[$(CustomKind {
                    name: $wire,
                    class: Class::$class,
                    bytes: HEAD + (0 $(+ <$type as Field>::BYTES)*) as u32,
                    check: |custom, run| {
                        matches!((run.from, run.to), $((Role::$from { .. }, Role::$to { .. }))|+)
                            && $name::decode(custom).is_some_and(|msg| msg.is_within(run))
                    },
                    job: |custom| $name::decode(custom).and_then($name::about),
                }),+];

                fn decode(custom: &Custom) -> Option<Self> {
                    $(if custom.is(Self::FIRST + KindNumber::$label as u8, Class::$class) {
                        let mut fields = custom.fields();
                        let found = Self::$label { $($field: fields.take()?),* };
                        return fields.is_blank().then_some(found);
                    })+
                    None
                }
            }

            impl From<$name> for Message {
                fn from(msg: $name) -> Self {
                    match msg {
                        $($name::$label { $($field),* } => {
                            let fields = PayloadWriter::default() $(.put($field))*;
                            let number = <$name as CustomProtocol>::FIRST + KindNumber::$label as u8;
                            Custom::new(number, Class::$class, fields).into()
                        })+
                    }
                }
            }
        };
    };
}
