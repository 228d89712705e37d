//! One job under one policy: a row for each core that executed a task of the job, with the executions, the slow
//! stretches of the core behind them, the time until the first execution, and the end of the job.

use std::collections::{BTreeMap, BTreeSet};

use volary_engine::results::{CopyEnd, CopyRow, SlowRow};
use volary_experiment::number;
use volary_experiment::storage::tables::end_name;

use super::frame::{Frame, LegendEntry, burst, framed};
use super::scale::{AxisScale, Scale, TickUnit};
use super::svg::{Anchor, Mark, Picture, line, rect, text};
use super::timeline::{bars, during, says, words};

/// Maximum number of tasks shown: the tasks that end last.
const TASKS: usize = 30;

const LEFT: f64 = 126.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 52.0;
const ROW: f64 = 15.0;

/// The course of a job under a policy.
#[derive(Clone, Copy, Debug)]
pub struct JobCourse<'a> {
    /// Arrival, s.
    pub arrival: f64,
    /// Response time, s; NaN if the job did not finish.
    pub response: f64,
    /// The executions of the job's tasks.
    pub copies: &'a [CopyRow],
    /// Slow stretches of the cores, at the times of the executions.
    pub slow: &'a [SlowRow],
}

impl JobCourse<'_> {
    /// Time from the arrival to the last event of the course, s.
    pub fn length(&self) -> f64 {
        let ends = self.copies.iter().map(|copy| copy.end - self.arrival);
        ends.fold(self.response, f64::max)
    }

    /// The executions by task and core, of the tasks that end last.
    fn rows(&self) -> BTreeMap<(u32, u32), Vec<&CopyRow>> {
        let mut ends: BTreeMap<u32, f64> = BTreeMap::new();
        for copy in self.copies {
            let end = ends.entry(copy.task).or_insert(0.0);
            *end = end.max(copy.end);
        }
        let mut last: Vec<(u32, f64)> = ends.into_iter().collect();
        last.sort_by(|a, b| b.1.total_cmp(&a.1));
        let drawn: BTreeSet<u32> = last.into_iter().take(TASKS).map(|(task, _)| task).collect();
        let mut rows: BTreeMap<(u32, u32), Vec<&CopyRow>> = BTreeMap::new();
        for copy in self.copies.iter().filter(|copy| drawn.contains(&copy.task)) {
            rows.entry((copy.task, copy.core)).or_default().push(copy);
        }
        rows
    }
}

/// The picture of a course over `end` seconds from the arrival, `wide` px wide.
pub fn job(title: &str, course: JobCourse<'_>, end: f64, wide: f64) -> Picture {
    let rows = course.rows();
    let tasks = course.copies.iter().map(|copy| copy.task).collect::<BTreeSet<u32>>().len();
    let of = if tasks > TASKS { format!(", last {TASKS} of {tasks} tasks") } else { String::new() };
    let bottom = TOP + ROW * rows.len() as f64;
    let frame = Frame { left: LEFT, right: wide - RIGHT, top: TOP, bottom, edge: wide };
    let x = Scale::new(AxisScale::Linear, (0.0, end), (frame.left, frame.right));
    let at = |time: f64| x.at((time - course.arrival).clamp(0.0, end));
    let mut marks = frame.x_axis(&x, TickUnit::Seconds, ((frame.right - frame.left) / 6.0).min(80.0));
    for ((&(task, core), copies), y) in rows.iter().zip((0..).map(|row| TOP + ROW * f64::from(row))) {
        let label = format!("task {task}, core {core}");
        marks.push(text("", (LEFT - 7.0, y + 11.0), Anchor::End, &label));
        let first = copies.iter().map(|copy| copy.start).fold(f64::INFINITY, f64::min);
        let wait = format!("{} from job arrival to start of task", number::seconds(first - course.arrival));
        marks.push(rect("idle", (LEFT, y + 6.5), (at(first) - LEFT, 2.0), &wait));
        let within = |slow: &&SlowRow| {
            slow.core == core && copies.iter().any(|copy| copy.start < slow.end && slow.start < copy.end)
        };
        marks.extend(course.slow.iter().filter(within).map(|slow| {
            let factor = number::short(slow.slowdown);
            let title = format!("slowed down ×{factor} {}", during(slow.start, slow.end));
            let left = at(slow.start);
            burst((left, y), (at(slow.end) - left, ROW), slow.slowdown, title)
        }));
        let stretches =
            copies.iter().map(|copy| (at(copy.start), at(copy.end), end_name(copy.end_kind), says(copy)));
        marks.extend(bars(stretches, (y + 4.0, ROW - 8.0)));
    }
    let (said, place) = if course.response.is_finite() {
        (format!("response {}", number::seconds(course.response)), x.at(course.response))
    } else {
        ("did not finish".to_owned(), frame.right)
    };
    let side = if place > f64::midpoint(frame.left, frame.right) { Anchor::End } else { Anchor::Start };
    marks.extend([
        line("axis", (place, TOP - 14.0), (place, bottom)),
        text("name", (place, TOP - 17.0), side, &said),
    ]);
    let is_slow = marks.iter().any(|mark| matches!(mark, Mark::Rect { class: "burst", .. }));
    let legend = legend(&rows, is_slow);
    framed((wide, bottom + 26.0), (8.0, &format!("{title}{of}")), marks, &legend)
}

/// The legend of the marks in `rows`.
fn legend(rows: &BTreeMap<(u32, u32), Vec<&CopyRow>>, is_slow: bool) -> Vec<LegendEntry<'static>> {
    let ends: Vec<CopyEnd> = rows.values().flatten().map(|copy| copy.end_kind).collect();
    let shown = CopyEnd::ALL.into_iter().filter(|kind| ends.contains(kind));
    let mut legend: Vec<_> = shown.map(|kind| (end_name(kind), words(kind))).collect();
    legend.push(("idle", "wait since arrival"));
    legend.extend(is_slow.then_some(("burst", "core slowed down")));
    legend.into_iter().map(|(mark, name)| LegendEntry { hue: None, mark, name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(task: u32, core: u32, start: f64, end: f64) -> CopyRow {
        CopyRow { job: 1, task, attempt: 0, core, start, end, end_kind: CopyEnd::First }
    }

    #[test]
    fn rows_have_waits_executions_and_slow_stretches_from_the_arrival_on() {
        let copies = [copy(0, 3, 12.0, 15.0), copy(1, 9, 10.0, 20.0)];
        let slow = [
            SlowRow { core: 9, start: 15.0, end: 20.0, slowdown: 10.0 },
            SlowRow { core: 3, start: 15.0, end: 20.0, slowdown: 10.0 },
        ];
        let course = JobCourse { arrival: 10.0, response: 10.0, copies: &copies, slow: &slow };
        assert_eq!(course.length(), 10.0);
        // 1,000 px show 10 s.
        let svg = job("t", course, 10.0, 1_140.0).in_page().into_string();
        for mark in [
            "class=\"idle\" x=\"126\" y=\"58.5\" width=\"200\"",
            "class=\"first\" x=\"326\" y=\"56\" width=\"299.4\"",
            "class=\"first\" x=\"126\" y=\"71\" width=\"999.4\"",
            "class=\"burst\" x=\"626\" y=\"67\" width=\"500\" height=\"15\" fill-opacity=\"0.50\"",
            "task 1, core 9",
        ] {
            assert!(svg.contains(mark), "{mark}: {svg}");
        }
        assert_eq!(svg.matches("slowed down ×").count(), 1, "core 3 was slow after the execution: {svg}");
        assert!(svg.contains("response 10.0"), "{svg}");
    }

    #[test]
    fn the_tasks_that_end_last_are_drawn() {
        let copies: Vec<CopyRow> =
            (0..100).map(|task| copy(task, task, 0.0, f64::from(100 - task))).collect();
        let course = JobCourse { arrival: 0.0, response: f64::NAN, copies: &copies, slow: &[] };
        let rows = course.rows();
        assert_eq!(rows.len(), TASKS);
        assert!(rows.keys().all(|(task, _)| *task < TASKS as u32), "{rows:?}");
        assert!(job("t", course, course.length(), 500.0).in_page().into_string().contains("did not finish"));
    }
}
