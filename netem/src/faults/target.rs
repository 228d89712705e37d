//! Targets of faults and settings: `"node:3"`, `"nodes:10-19"`, `"schedulers"`, `"rack:2"`, `"all"`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use volary_actors::base::Endpoint;

use crate::error::Error;
use crate::units::as_string;

/// A named set of endpoints, not yet resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// All endpoints.
    All,
    /// Every member of a kind: `"schedulers"`.
    Kind(String),
    /// Members of a kind by number, both ends included: `"node:3"`, `"nodes:10-19"`.
    Range {
        /// The kind, in the singular.
        kind: String,
        /// First member.
        first: u32,
        /// Last member.
        last: u32,
    },
    /// One member of a kind by name: `"region:virginia"`.
    Named {
        /// The kind, in the singular.
        kind: String,
        /// The member's name.
        name: String,
    },
}

impl FromStr for Target {
    type Err = String;

    /// Parses `all`, `kind`, `kind:number`, `kind:first-last` or `kind:name`; a kind may be plural.
    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed == "all" {
            return Ok(Self::All);
        }
        let (kind, member) =
            trimmed.split_once(':').map_or((trimmed, None), |(k, m)| (k.trim(), Some(m.trim())));
        let kind = kind.strip_suffix('s').unwrap_or(kind).to_owned();
        if kind.is_empty() || !kind.chars().all(|c| c.is_ascii_lowercase() || c == '-') || member == Some("")
        {
            return Err(format!(
                "`{text}` is not a target; write for example \"node:3\", \"nodes:10-19\", \"schedulers\" or \"all\""
            ));
        }
        let Some(member) = member else { return Ok(Self::Kind(kind)) };
        if !member.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Self::Named { kind, name: member.to_owned() });
        }
        let (first, last) = member.split_once('-').unwrap_or((member, member));
        let parse = |digits: &str| {
            digits.trim().parse::<u32>().map_err(|_| {
                format!("`{text}`: `{digits}` is not a number; write for example \"{kind}s:10-19\"")
            })
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first > last {
            return Err(format!("`{text}`: the range runs backwards; write \"{kind}s:{last}-{first}\""));
        }
        Ok(Self::Range { kind, first, last })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Kind(kind) => write!(f, "{kind}s"),
            Self::Range { kind, first, last } if first == last => write!(f, "{kind}:{first}"),
            Self::Range { kind, first, last } => write!(f, "{kind}s:{first}-{last}"),
            Self::Named { kind, name } => write!(f, "{kind}:{name}"),
        }
    }
}

impl Target {
    /// The kind of the target, in the singular; `None` for all endpoints.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Kind(kind) | Self::Range { kind, .. } | Self::Named { kind, .. } => Some(kind),
        }
    }
}

as_string! {
    Target, "targets: \"node:3\", \"nodes:10-19\", \"schedulers\", \"rack:2\", \"all\", or actors that a policy \
        adds, such as \"master:3\"",
        r"^\s*[a-z-]+(:.+)?\s*$", ["node:3", "nodes:10-19", "schedulers", "rack:2", "all"];
}

/// A table of kinds and their members, each member with its endpoints. The caller defines the kinds: nodes, schedulers,
/// racks, regions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Groups {
    endpoints: u32,
    kinds: BTreeMap<String, Kind>,
}

/// The members of a kind, in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Members without names, with consecutive endpoints from the first on, so that a million nodes take two numbers.
    Run(Endpoint, u32),
    /// Members in a list, with their names and endpoints.
    Listed(Vec<Member>),
    /// Like `Run`, but higher numbers are not an error: other policies of the experiment have members with them.
    Open(Endpoint, u32),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Member {
    name: String,
    endpoints: Vec<Endpoint>,
}

impl Kind {
    fn len(&self) -> u32 {
        match self {
            Self::Run(_, count) | Self::Open(_, count) => *count,
            Self::Listed(members) => members.len() as u32,
        }
    }

    /// The endpoints of members `first..=last`, which exist.
    fn range(&self, first: u32, last: u32) -> Vec<Endpoint> {
        match self {
            Self::Run(start, _) | Self::Open(start, _) => {
                (first..=last).map(|i| Endpoint(start.0 + i)).collect()
            }
            Self::Listed(members) => {
                let chosen = &members[first as usize..=last as usize];
                chosen.iter().flat_map(|member| member.endpoints.iter().copied()).collect()
            }
        }
    }

    /// The number of the member with a name; the error lists the known members of `kind`.
    fn find(&self, kind: &str, name: &str) -> Result<u32, String> {
        let members = match self {
            Self::Run(..) | Self::Open(..) => &[],
            Self::Listed(members) => &members[..],
        };
        members.iter().position(|member| member.name == name).map(|at| at as u32).ok_or_else(|| {
            let names = members.iter().map(|m| m.name.as_str()).filter(|n| !n.is_empty());
            let known: Vec<_> = names.take(20).collect();
            if known.is_empty() {
                format!("{kind}s have numbers, not names")
            } else {
                format!("known {kind}s are {}", known.join(", "))
            }
        })
    }
}

impl Groups {
    /// An empty table; `all` is every endpoint below `endpoints`.
    pub const fn new(endpoints: u32) -> Self {
        Self { endpoints, kinds: BTreeMap::new() }
    }

    /// Adds the next member of `kind` (singular), called `name`; an empty `name` gives no name. Its number is the
    /// number of previous members.
    ///
    /// # Panics
    /// If the members of this kind were set by [`Groups::number`].
    pub fn add(&mut self, kind: &str, name: &str, endpoints: impl IntoIterator<Item = Endpoint>) {
        let member = Member { name: name.to_owned(), endpoints: endpoints.into_iter().collect() };
        match self.kinds.entry(kind.to_owned()).or_insert_with(|| Kind::Listed(Vec::new())) {
            Kind::Listed(members) => members.push(member),
            Kind::Run(..) | Kind::Open(..) => panic!("{kind}s are numbered already"),
        }
    }

    /// Defines `count` members of `kind` (singular), without names and with one endpoint each, from `first` on.
    pub fn number(&mut self, kind: &str, first: Endpoint, count: u32) {
        self.kinds.insert(kind.to_owned(), Kind::Run(first, count));
    }

    /// Defines `count` members of `kind` (singular) in this run, with one endpoint each from `first` on. Other runs
    /// have members with higher numbers, whose targets have no endpoints in this run.
    pub fn number_some(&mut self, kind: &str, first: Endpoint, count: u32) {
        self.kinds.insert(kind.to_owned(), Kind::Open(first, count));
    }

    /// The valid targets of the kind as text, if `target` names members beyond those of this run.
    pub fn exceeded(&self, target: &Target) -> Option<String> {
        let Target::Range { kind: name, last, .. } = target else { return None };
        let count = self.kinds.get(name)?.len();
        (*last >= count).then(|| numbers(name, count))
    }

    /// The kinds that have members in this run, in the singular.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().filter(|(_, kind)| !matches!(kind, Kind::Open(_, 0))).map(|(name, _)| name.as_str())
    }

    fn kind(&self, kind: &str) -> Result<&Kind, String> {
        self.kinds.get(kind).ok_or_else(|| {
            let known: Vec<_> = self.kinds().collect();
            format!("known kinds are all, {}", known.join(", "))
        })
    }

    /// Whether a target has members only in other runs of the experiment, so that naming it is not an error.
    pub fn is_absent(&self, target: &Target) -> bool {
        let Some(Kind::Open(_, count)) = target.kind().and_then(|kind| self.kinds.get(kind)) else {
            return false;
        };
        match target {
            Target::Range { first, .. } => first >= count,
            Target::All | Target::Kind(_) | Target::Named { .. } => *count == 0,
        }
    }

    /// The endpoints of a target, in ascending order and without repetition.
    ///
    /// # Errors
    /// A message if the target does not exist; it lists the valid targets.
    pub fn resolve(&self, target: &Target) -> Result<Vec<Endpoint>, String> {
        if self.is_absent(target) {
            return Ok(Vec::new());
        }
        let mut all = match target {
            Target::All => return Ok((0..self.endpoints).map(Endpoint).collect()),
            Target::Kind(name) => {
                let kind = self.kind(name)?;
                kind.len().checked_sub(1).map_or_else(Vec::new, |last| kind.range(0, last))
            }
            Target::Range { kind: name, first, last } => {
                let kind = self.kind(name)?;
                match (kind, kind.len()) {
                    (Kind::Open(..), count) => kind.range(*first, (*last).min(count - 1)),
                    (_, count) if *last >= count => return Err(numbers(name, count)),
                    _ => kind.range(*first, *last),
                }
            }
            Target::Named { kind: of, name } => {
                let kind = self.kind(of)?;
                let number = kind.find(of, name)?;
                kind.range(number, number)
            }
        };
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

/// The numbers of `count` members of a kind, as text.
fn numbers(kind: &str, count: u32) -> String {
    match count {
        0 => format!("there are no {kind}s"),
        1 => format!("there is one {kind}, number 0"),
        _ => format!("there are {count} {kind}s, 0 to {}", count - 1),
    }
}

/// The endpoints of several targets, in ascending order. An unknown target is an error at `key`. An empty result is an
/// error too, unless the targets name only absent kinds.
pub(crate) fn resolve_all(places: &Groups, targets: &[Target], key: &str) -> Result<Vec<Endpoint>, Error> {
    let mut all = Vec::new();
    for target in targets {
        all.extend(places.resolve(target).map_err(|known| Error::unknown(key, target, known))?);
    }
    all.sort_unstable();
    all.dedup();
    if all.is_empty() && !targets.iter().any(|target| places.is_absent(target)) {
        return Err(Error::at(key, "no endpoint is named", "write [\"node:3\"] or [\"schedulers\"]"));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_round_trip_through_text() {
        let range = |kind: &str, first, last| Target::Range { kind: kind.into(), first, last };
        for (text, target, printed) in [
            ("all", Target::All, "all"),
            ("schedulers", Target::Kind("scheduler".into()), "schedulers"),
            ("node:3", range("node", 3, 3), "node:3"),
            ("nodes:10-19", range("node", 10, 19), "nodes:10-19"),
            ("node:10-19", range("node", 10, 19), "nodes:10-19"),
            (" rack : 2 ", range("rack", 2, 2), "rack:2"),
            (
                "region:virginia",
                Target::Named { kind: "region".into(), name: "virginia".into() },
                "region:virginia",
            ),
        ] {
            assert_eq!(text.parse(), Ok(target.clone()), "{text}");
            assert_eq!(target.to_string(), printed);
        }
        for bad in ["", ":3", "node:", "Node:3", "nodes:9-3", "nodes:1-x", "node:99999999999", "no de"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_resolve_numbers_names_and_kinds() {
        let mut groups = Groups::new(8);
        groups.number("node", Endpoint(2), 4);
        groups.add("rack", "left", [Endpoint(3), Endpoint(2)]);
        groups.add("rack", "right", [Endpoint(4), Endpoint(5)]);
        let find =
            |text: &str| groups.resolve(&text.parse().unwrap()).map(|all| all.iter().map(|e| e.0).collect());
        assert_eq!(find("all"), Ok((0..8).collect::<Vec<_>>()));
        assert_eq!(find("nodes"), Ok(vec![2, 3, 4, 5]));
        assert_eq!(find("nodes:1-2"), Ok(vec![3, 4]));
        assert_eq!(find("rack:0"), Ok(vec![2, 3]));
        assert_eq!(find("rack:right"), Ok(vec![4, 5]));
        assert_eq!(find("node:4"), Err("there are 4 nodes, 0 to 3".into()));
        assert_eq!(find("rack:middle"), Err("known racks are left, right".into()));
        assert_eq!(find("pod:1"), Err("known kinds are all, node, rack".into()));
        groups.number_some("master", Endpoint(0), 0);
        let find =
            |text: &str| groups.resolve(&text.parse().unwrap()).map(|all| all.iter().map(|e| e.0).collect());
        assert_eq!([find("master:7"), find("masters")], [const { Ok(Vec::<u32>::new()) }; 2]);
        assert_eq!(
            find("pod:1"),
            Err("known kinds are all, node, rack".into()),
            "masters are not a known kind"
        );
        groups.number_some("master", Endpoint(6), 2);
        let find =
            |text: &str| groups.resolve(&text.parse().unwrap()).map(|all| all.iter().map(|e| e.0).collect());
        assert_eq!(find("masters:1-3"), Ok(vec![7]), "the other masters are in other runs");
        assert_eq!(find("master:2"), Ok(vec![]));
        let exceeded = |text: &str| groups.exceeded(&text.parse().unwrap());
        assert_eq!(exceeded("master:2"), Some("there are 2 masters, 0 to 1".into()));
        assert_eq!([exceeded("master:1"), exceeded("masters"), exceeded("all")], [None, None, None]);
    }
}
