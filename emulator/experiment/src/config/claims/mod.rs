//! Claims: checkable statements from papers.
//!
//! A check compares numbers of the results within each cell of the sweep:
//!
#![doc = concat!("```text\n", include_str!("grammar.txt"), "```")]
//!
//! `path` is a number in a line of results, such as `response_s.p50`, `classes.short.slowdown.p99` or
//! `messages.by_kind.probe.reserve`. Labels and paths are checked when the experiment is planned. Both sides are taken
//! from the same cell, unless a metric names the values of other cells in brackets:
//! `a.wait_s.p50[service.correlated=true]`. `when` restricts the cells. Replications enter as the mean over the seeds
//! under which every metric of the check was measured.
//!
//! The verdict compares means. With two seeds or more, each comparison also says whether it is `within_noise`: whether
//! the 95 % interval of the difference, paired by seed, contains zero, so that other seeds could have decided
//! otherwise. There is no correction for multiple comparisons: of twenty comparisons of equal policies, about one will
//! seem significant.

mod check;
mod expression;
mod form;
mod judge;
mod unmeasured;

pub use check::{Axes, BY_KIND, Check, Claim, GRAMMAR, Names, is_comparable};
pub use expression::Expression;
pub use form::{ParseError, is_label};
pub use judge::{NOT_RUN, judge};
pub(super) use unmeasured::unmeasured;
