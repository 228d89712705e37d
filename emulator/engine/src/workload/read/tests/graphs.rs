//! Tables whose rows are tasks that name the tasks that they wait for, and tables with the stages of jobs.

use std::io::Cursor;
use std::path::Path;

use volary_actors::base::{JobId, Span, Time};

use super::super::Reading;
use crate::workload::details::Outcome;
use crate::workload::work::Share;
use crate::workload::{Features, Trace, WorkloadError};

const HEADER: &str = "submit,run,tasks,cores,job,task,after\n";

fn table(rows: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let text = format!("{HEADER}{rows}");
    Trace::parse_with(Path::new("t.csv"), Cursor::new(text), reading, Vec::new())
}

/// The first job of a table.
fn first(rows: &str) -> Option<String> {
    let trace = table(rows, &Reading::default()).unwrap_or_else(|error| panic!("{error}"));
    trace.stages_text(JobId(0))
}

#[test]
fn rows_that_name_the_tasks_they_wait_for_are_stages_of_a_job() {
    let rows = "20,5,1,1,j,last,\"a, b\"\n9,7,2,4,k,a,\n12,5,3,2,j,a,\n11,6,1,1,j,b,a\n";
    let trace = table(rows, &Reading::default()).unwrap();
    let [k, j] = [0, 1].map(JobId);
    assert_eq!((trace.jobs().len(), trace.tasks(), trace.stages_text(k)), (2, 7, None));
    assert_eq!(trace.stages_text(j).as_deref(), Some("3 1_1 1_2_1"));
    assert_eq!(trace.durations(j), Some(&[5.0f32, 5.0, 5.0, 6.0, 5.0][..]));
    assert_eq!((trace.jobs()[1].arrival, trace.cores(j)), (Time(Span::from_secs(11).0), Some(4.0)));
    assert_eq!(trace.jobs()[1].mean, Span::from_secs_f64(5.2));
    assert!(trace.counts_tasks() && trace.notes().iter().any(|note| note.starts_with("a row is a task")));
    let one = table(rows, &Reading { jobs: Some(1), ..Reading::default() }).unwrap();
    assert_eq!((one.jobs().len(), one.tasks()), (1, 2), "the first job to arrive, with all its tasks");
    for separated in ["a b", "a;b", "a|b", "b a"] {
        let rows = format!("0,5,1,,j,a,\n0,5,1,,j,b,\n0,5,1,,j,c,{separated}\n");
        assert_eq!(first(&rows).as_deref(), Some("2 1_1"), "{separated}");
    }
}

#[test]
fn lists_of_json_rows_name_the_tasks_they_wait_for() {
    let row = |task: &str, after: &str| {
        format!("{{\"submit\": 0, \"run\": 5, \"job\": 1, \"task\": {task}, \"after\": {after}}}\n")
    };
    let read = |third: &str| {
        let rows = [row("1", "[]"), row("2", "[1]"), row("3", third)].concat();
        Trace::parse(Path::new("t.jsonl"), Cursor::new(rows), None)
    };
    assert_eq!(read("[1, \"2\"]").unwrap().stages_text(JobId(0)).as_deref(), Some("1 1_1 1_2_1"));
    for refused in ["{\"on\": 1}", "[[1]]", "[{}]"] {
        let error = read(refused).unwrap_err().to_string();
        assert!(
            error.contains("t.jsonl:3: ") && error.contains("(after): is an object"),
            "{refused}: {error}"
        );
    }
}

#[test]
fn a_row_that_is_left_out_counts_as_ended_for_those_that_wait_for_it() {
    let rows = "0,5,1,,j,a,\n0,,1,,j,b,a\n0,5,1,,j,c,a b\n0,5,1,,j,d,b\n";
    let bad = "0,x,1,,j,e,\n0,5,1,,j,f,c e\n";
    let tolerant = Reading { skip_bad: Share::ALL, ..Reading::default() };
    for (rows, reading, stages, ended) in [
        (rows.to_owned(), &Reading::default(), "1 1 1_1", 1),
        (format!("{rows}{bad}"), &tolerant, "1 1 1_1 1_3", 2),
    ] {
        let trace = table(&rows, reading).unwrap_or_else(|error| panic!("{rows}: {error}"));
        assert_eq!(trace.stages_text(JobId(0)).as_deref(), Some(stages), "{:?}", trace.notes());
        let told = format!("whose rows were left out, so that they count as ended before the job: {ended}");
        assert!(trace.notes().iter().any(|note| note.contains(&told)), "{:?}", trace.notes());
    }
}

#[test]
fn a_job_has_the_worst_outcome_of_its_tasks_and_waits_until_the_first_start() {
    let of = |rows: &str| {
        let text = format!("submit_time,start_time,end_time,outcome,job,task,after\n{rows}");
        let trace = Trace::parse(Path::new("t.csv"), Cursor::new(text), None).unwrap();
        (trace.outcome(JobId(0)), trace.wait(JobId(0)))
    };
    let wait = |seconds| Some(Span::from_secs(seconds));
    assert_eq!(of("3,9,10,COMPLETED,j,b,a\n2,6,7,FAILED,j,a,\n"), (Some(Outcome::Failed), wait(4)));
    assert_eq!(of("2,5,6,CANCELLED,j,a,\n2,6,7,COMPLETED,j,b,a\n"), (Some(Outcome::Killed), wait(3)));
    assert_eq!(of("2,5,6,,j,a,\n2,6,7,COMPLETED,j,b,a\n"), (None, wait(3)));
    assert_eq!(of("2,5,6,COMPLETED,j,a,\n2,6,7,COMPLETED,j,b,a\n"), (Some(Outcome::Finished), wait(3)));
}

#[test]
fn rows_that_can_never_begin_are_refused_with_line_and_remedy() {
    for (rows, line, part) in [
        ("0,5,1,,j,a,a\n", 2, "waits for itself, so that"),
        ("0,5,1,,j,a,b\n0,5,1,,j,b,a\n", 2, "waits for itself through other tasks"),
        ("0,5,1,,j,a,\n0,5,1,,j,b,c\n0,5,1,,j,c,b\n0,5,1,,j,d,c\n", 3, "waits for itself through"),
        ("0,5,1,,j,a,\n0,5,1,,j,b,z\n", 3, "waits for task `z`, which its job does not have, or"),
        ("0,5,1,,j,a,\n0,5,1,,k,b,a\n", 3, "waits for task `a`, which its job does not have"),
        ("0,5,1,,j,a,\n0,5,1,,j,a,\n", 3, "another task `a`; give one of them another name"),
        ("0,5,1,,j,a,\n0,5,1,,j,b,a a\n", 3, "field 7 (after): `a` is named twice"),
        ("0,5,1,,,a,\n", 2, "the job of the row is blank"),
        ("0,5,1,,j,,\n", 2, "the task of the row is blank"),
        ("0,5,16777216,,j,a,\n0,5,1,,j,b,a\n", 2, "has 16777217 tasks, above the limit"),
    ] {
        let error = table(rows, &Reading::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("t.csv:{line}: ")) && error.contains(part), "{rows}: {error}");
        let reading = Reading { skip_bad: Share::ALL, ..Reading::default() };
        let more = format!("{rows}7,5,1,,other,a,\n");
        let trace = table(&more, &reading).unwrap_or_else(|error| panic!("{rows}: {error}"));
        assert_eq!(trace.jobs()[trace.jobs().len() - 1].arrival, Time(Span::from_secs(7).0), "{rows}");
        let told = format!("malformed rows, of {}: ", more.lines().count());
        let is_told = |note: &String| note.contains(part) && note.contains(&told);
        assert!(trace.notes().iter().any(is_told), "{rows}: {:?}", trace.notes());
    }
    for (header, part) in [
        ("submit,run,after\n", "`job` and `task` beside `after`"),
        ("submit,run,job,after\n", "`job` and `task` beside `after`"),
        ("submit,run,job,task,after,stages\n", "both `after`, of tables with a row per task, and `stages`"),
    ] {
        let error = Trace::parse(Path::new("t.csv"), Cursor::new(format!("{header}0,1,,,\n")), None);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

fn beside(stages: &str) -> Result<Trace, WorkloadError> {
    let text = format!("stages\n{stages}\n");
    let features: Features = ("t.features.csv".into(), Box::new(Cursor::new(text)));
    let jobs = Cursor::new("0 4 2.5 1 2 3 4\n");
    Trace::parse_with(Path::new("t.tr"), jobs, &Reading::default(), vec![features])
}

#[test]
fn a_column_of_stages_divides_the_tasks_of_a_trace() {
    for stages in ["1 3_1", "1 1 2_2_1"] {
        assert_eq!(beside(stages).unwrap().stages_text(JobId(0)).as_deref(), Some(stages));
    }
    assert_eq!(beside("4").unwrap().stages_text(JobId(0)), None, "one stage is no graph");
    assert_eq!(beside("\"\"").unwrap().stages_text(JobId(0)), None);
    for (stages, part) in [
        ("1 2_1", "the stages have 3 tasks, and the job has 4"),
        ("4_1", "`4_1` waits for a stage that is not above it"),
        ("1 3_0", "waits for a stage that is not above it"),
        ("1 3_x", "waits for a stage that is not above it"),
        ("1 3_1_1", "waits for a stage twice"),
        ("x", "`x` states no number of tasks"),
        ("0 4_1", "`0` states no number of tasks"),
    ] {
        let error = beside(stages).unwrap_err().to_string();
        assert!(error.starts_with("t.features.csv:2: field 1 (stages)") && error.contains(part), "{error}");
    }
}
