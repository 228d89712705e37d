//! The faults of a seed. All faults heal, except that one node or scheduler may stay down while others live. If the
//! policy adds actors of its own, half of the faults concern these actors, and any of them may stay down.

use std::fmt::Write as _;

use super::draw::{Dice, Site, span};

/// Appends some faults within `horizon` seconds.
pub(crate) fn faults(dice: &mut Dice, text: &mut String, site: &Site, horizon: f64) {
    let mut permanent = dice.chance(25);
    let mut at = 0.0;
    for _ in 0..1 + dice.below(6) {
        // Some faults begin at the same instant.
        if dice.chance(75) {
            at = horizon * dice.unit();
        }
        let lasting = dice.scale(0.02, 20.0);
        match dice.below(5) {
            0 if std::mem::replace(&mut permanent, false) => permanent_crash(dice, text, site, at),
            0 | 1 => crash(dice, text, site, at, lasting),
            2 => {
                let who = if dice.chance(15) { "\"all\"".to_owned() } else { anyone(dice, site) };
                fault(text, "pause", &format!("who = [{who}]"), at, Some(lasting), "");
            }
            3 => {
                let one_way = if dice.chance(30) { ", one_way = true" } else { "" };
                fault(text, "partition", &sides(dice, site), at, Some(lasting), one_way);
            }
            _ => {
                let how =
                    format!(", delay_factor = {:.2}, loss = {:.3}", dice.scale(0.1, 50.0), 0.6 * dice.unit());
                fault(text, "degrade", &sides(dice, site), at, Some(lasting), &how);
            }
        }
    }
}

fn fault(text: &mut String, kind: &str, whom: &str, at: f64, lasting: Option<f64>, how: &str) {
    let lasting = lasting.map_or_else(String::new, |lasting| format!(", for = {}", span(lasting)));
    writeln!(text, "[[network.fault]]\n{kind} = {{ {whom}, at = {}{lasting}{how} }}", span(at)).unwrap();
}

/// A crash without end: of a node, of a scheduler if there is another scheduler, or of auxiliary actors.
fn permanent_crash(dice: &mut Dice, text: &mut String, site: &Site, at: f64) {
    let who = if let Some(extras) = extras(dice, site) {
        extras
    } else if site.schedulers > 1 && dice.chance(40) {
        scheduler(dice, site)
    } else if site.nodes() > 1 {
        node(dice, site)
    } else {
        return;
    };
    fault(text, "crash", &format!("who = [{who}]"), at, None, "");
}

/// A crash, sometimes of an actor that is paused before, during or after the crash.
fn crash(dice: &mut Dice, text: &mut String, site: &Site, at: f64, lasting: f64) {
    let who = match dice.below(4) {
        0 => format!("\"{}\"", dice.pick(site.nodes_at)),
        _ => anyone(dice, site),
    };
    let whom = format!("who = [{who}]");
    fault(text, "crash", &whom, at, Some(lasting), "");
    if dice.chance(35) {
        let from = (at + 4.0 * dice.unit() - 2.0).max(0.0);
        let lasting = dice.scale(0.05, 8.0);
        fault(text, "pause", &whom, from, Some(lasting), "");
    }
}

fn node(dice: &mut Dice, site: &Site) -> String {
    format!("\"node:{}\"", dice.below(site.nodes()))
}

fn scheduler(dice: &mut Dice, site: &Site) -> String {
    format!("\"scheduler:{}\"", dice.below(site.schedulers))
}

/// Some auxiliary actors, sometimes with another target; `None` half of the time, and if there are none.
fn extras(dice: &mut Dice, site: &Site) -> Option<String> {
    let (kind, count) = site.extras;
    if count == 0 || dice.chance(50) {
        return None;
    }
    let first = dice.below(count);
    let last = first + dice.below(count - first);
    Some(match dice.below(5) {
        0 => format!("\"{kind}s\""),
        1 => format!("\"{kind}:{first}\", {}", node(dice, site)),
        2 => format!("\"{kind}s:{first}-{last}\""),
        _ => format!("\"{kind}:{first}\""),
    })
}

/// Auxiliary actors, nodes, schedulers, or some of both: actors that can crash.
fn anyone(dice: &mut Dice, site: &Site) -> String {
    if let Some(extras) = extras(dice, site) {
        return extras;
    }
    match dice.below(10) {
        0..5 => node(dice, site),
        5 | 6 => scheduler(dice, site),
        7 => format!("{}, {}", node(dice, site), scheduler(dice, site)),
        8 => {
            let first = dice.below(site.nodes());
            format!("\"nodes:{first}-{}\"", first + dice.below(site.nodes() - first))
        }
        _ => dice.pick(&["\"nodes\"", "\"schedulers\"", "\"nodes\", \"schedulers\""]).to_owned(),
    }
}

/// The two sides of a cut or of bad links.
fn sides(dice: &mut Dice, site: &Site) -> String {
    if let Some(extras) = extras(dice, site) {
        // Only the auxiliary actors: a node beside them might be on the other side as well.
        let whom = extras.split(", ").next().unwrap_or_default();
        return match dice.below(3) {
            0 => format!("a = [{whom}], b = [{}]", node(dice, site)),
            1 => format!("a = [\"schedulers\"], b = [{whom}]"),
            _ => format!("a = [{whom}]"),
        };
    }
    match dice.below(6) {
        0..3 => format!("a = [\"schedulers\"], b = [{}]", node(dice, site)),
        3 => "a = [\"nodes\"], b = [\"schedulers\", \"clients\"]".to_owned(),
        4 => format!("a = [\"{}\"]", dice.pick(site.places)),
        _ => format!("a = [{}]", anyone(dice, site)),
    }
}
