//! Messages that a program declares: their names and fields, packed into custom messages.

use serde::Deserialize;
use serde_json::{Value, json};

use super::names::{actor_name, actor_named, seconds, task_named, time_named};
use crate::base::{ActorId, Class, JobId, TaskId, Time};
use crate::catalog::Catalog;
use crate::layout::Layout;
use crate::message::{Custom, Field, Message, PAYLOAD, PayloadReader, PayloadWriter, first_unused};

/// A message as a program declares it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    name: String,
    class: Class,
    fields: Vec<FieldType>,
}

/// The type of a field.
#[derive(Clone, Copy, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum FieldType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    Bool,
    Job,
    Task,
    Actor,
    Time,
}

impl FieldType {
    const fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::Job | Self::Actor => 4,
            Self::U64 | Self::I64 | Self::Task | Self::Time => 8,
        }
    }
}

/// The messages of a program. The number of a message is its index among those of its class.
#[derive(Clone, Default, Debug)]
pub(super) struct Vocabulary(Vec<DeclaredKind>);

#[derive(Clone, Debug)]
struct DeclaredKind {
    name: String,
    class: Class,
    number: u8,
    fields: Vec<FieldType>,
}

/// The actors and jobs of a run. Values that name any other actor or job are invalid.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) layout: &'a Layout,
    pub(super) catalog: &'a dyn Catalog,
}

impl Vocabulary {
    /// Checks and numbers the messages.
    pub(super) fn new(declared: Vec<Declaration>) -> Result<Self, String> {
        let mut kinds: Vec<DeclaredKind> = Vec::new();
        for Declaration { name, class, fields } in declared {
            let bytes: usize = fields.iter().map(|field| field.bytes()).sum();
            if bytes > PAYLOAD {
                return Err(format!(
                    "the fields of its message `{name}` have {bytes} bytes, above {PAYLOAD}; split it"
                ));
            }
            if kinds.iter().any(|kind| kind.name == name) {
                return Err(format!("it declares two messages `{name}`: rename one"));
            }
            let before = kinds.iter().filter(|kind| kind.class == class).count();
            let number = first_unused(class).and_then(|first| u8::try_from(before).ok().map(|n| first + n));
            let number = number.filter(|number| Custom::has_number(*number)).ok_or_else(|| {
                format!("it declares more messages than a program can have, from `{name}` on")
            })?;
            kinds.push(DeclaredKind { name, class, number, fields });
        }
        Ok(Self(kinds))
    }

    /// A message from the values that a program gives.
    pub(super) fn write(&self, name: &str, values: &[Value], bounds: Bounds<'_>) -> Result<Message, String> {
        let kind = self.0.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| format!("its greeting declares no message `{name}`"))?;
        if values.len() != kind.fields.len() {
            let (given, due) = (values.len(), kind.fields.len());
            return Err(format!(
                "its message `{name}` has {due} fields, and {given} values were given; give one for each field"
            ));
        }
        let mut payload = PayloadWriter::default();
        for (field, value) in kind.fields.iter().zip(values) {
            payload = put(*field, value, payload, bounds)
                .map_err(|why| format!("in its message `{name}`: {value} is not a valid {field:?}{why}"))?;
        }
        Ok(Custom::new(kind.number, kind.class, payload).into())
    }

    /// Name and values of a message; `None` if it is not one of the program's, or not within bounds.
    pub(super) fn read(&self, msg: &Message, bounds: Bounds<'_>) -> Option<(String, Vec<Value>)> {
        let Message::Custom(custom) = msg else { return None };
        let kind = self.0.iter().find(|kind| custom.is(kind.number, kind.class))?;
        let mut fields = custom.fields();
        let values =
            kind.fields.iter().map(|field| take(*field, &mut fields, bounds)).collect::<Option<_>>()?;
        fields.is_blank().then(|| (kind.name.clone(), values))
    }
}

/// Adds a value to a payload.
fn put(
    field: FieldType,
    value: &Value,
    to: PayloadWriter,
    bounds: Bounds<'_>,
) -> Result<PayloadWriter, String> {
    fn number<T: Field + TryFrom<i128>>(value: &Value, to: PayloadWriter) -> Result<PayloadWriter, String> {
        let wide = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        let number = wide.and_then(|wide| T::try_from(wide).ok());
        number.map(|number| to.put(number)).ok_or_else(String::new)
    }
    let small =
        |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(String::new);
    Ok(match field {
        FieldType::U8 => number::<u8>(value, to)?,
        FieldType::U16 => number::<u16>(value, to)?,
        FieldType::U32 => number::<u32>(value, to)?,
        FieldType::U64 => number::<u64>(value, to)?,
        FieldType::I8 => number::<i8>(value, to)?,
        FieldType::I16 => number::<i16>(value, to)?,
        FieldType::I32 => number::<i32>(value, to)?,
        FieldType::I64 => number::<i64>(value, to)?,
        FieldType::Bool => to.put(value.as_bool().ok_or_else(String::new)?),
        FieldType::Job => to.put(task_named(small(value)?, 0, bounds.catalog).map_err(because)?.job),
        FieldType::Task => match value.as_array().map(Vec::as_slice) {
            Some([job, task]) => {
                to.put(task_named(small(job)?, small(task)?, bounds.catalog).map_err(because)?)
            }
            _ => return Err(", which is written [job, index]".into()),
        },
        FieldType::Actor => {
            to.put(actor_named(value.as_str().unwrap_or_default(), bounds.layout).map_err(because)?)
        }
        FieldType::Time => to.put(time_named(value.as_f64().ok_or_else(String::new)?).map_err(because)?),
    })
}

fn because(why: String) -> String {
    format!(": {why}")
}

/// Reads a value of a payload.
fn take(field: FieldType, from: &mut PayloadReader<'_>, bounds: Bounds<'_>) -> Option<Value> {
    let Bounds { layout, catalog } = bounds;
    Some(match field {
        FieldType::U8 => json!(from.take::<u8>()?),
        FieldType::U16 => json!(from.take::<u16>()?),
        FieldType::U32 => json!(from.take::<u32>()?),
        FieldType::U64 => json!(from.take::<u64>()?),
        FieldType::I8 => json!(from.take::<i8>()?),
        FieldType::I16 => json!(from.take::<i16>()?),
        FieldType::I32 => json!(from.take::<i32>()?),
        FieldType::I64 => json!(from.take::<i64>()?),
        FieldType::Bool => json!(from.take::<bool>()?),
        FieldType::Job => {
            let job: JobId = from.take()?;
            json!(task_named(job.0, 0, catalog).ok()?.job.0)
        }
        FieldType::Task => {
            let TaskId { job, index } = from.take()?;
            task_named(job.0, index, catalog).ok()?;
            json!([job.0, index])
        }
        FieldType::Actor => {
            let actor: ActorId = from.take()?;
            (actor.0 < layout.endpoints()).then(|| json!(actor_name(actor, layout)))?
        }
        FieldType::Time => json!(seconds(from.take::<Time>()?.0)),
    })
}
