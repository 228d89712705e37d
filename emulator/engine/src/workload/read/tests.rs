//! Tests of the readers on small inline data: valid input, and every error.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use volary_actors::base::{JobId, Span, Time};

use super::super::{Format, Trace, WorkloadError};

fn parse(name: &str, data: impl Into<Vec<u8>>) -> Result<Trace, WorkloadError> {
    Trace::parse(Path::new(name), Cursor::new(data.into()), None)
}

fn complaint(name: &str, data: impl Into<Vec<u8>>) -> String {
    parse(name, data).expect_err("accepted").to_string()
}

const TR: &str = "7.527 2 15.9 6.4 25.4\n# a comment\n\n15.092\t1 8.7  8.7 \r\n";

#[test]
fn tr_lines_become_jobs() {
    let trace = parse("a.tr", TR).unwrap();
    assert_eq!((trace.format(), trace.jobs().len(), trace.tasks()), (Format::Tr, 2, 3));
    assert_eq!(trace.jobs()[0].arrival, Time(7_527_000_000));
    assert_eq!(trace.jobs()[0].mean, Span(15_900_000_000));
    assert_eq!(trace.durations(JobId(0)), Some(&[6.4f32, 25.4][..]));
    assert!((trace.duration(JobId(1).task(0)).as_secs_f64() - 8.7).abs() < 1e-6);
    assert!(trace.notes().is_empty());
}

#[test]
fn tr_mistakes_name_line_field_and_remedy() {
    for (text, parts) in [
        ("1 1 1 1\nx 1 1 1", &["a.tr:2", "field 1 (arrival_s)", "`x`"][..]),
        ("1 2.5 1 1 1", &["a.tr:1", "field 2 (num_tasks)", "whole number"]),
        ("1 0 1", &["field 2", "from 1 to"]),
        ("1 -3 1", &["field 2", "`-3`"]),
        ("1 1 -1 1", &["field 3 (mean_task_duration_s)", "negative"]),
        ("1 1 1 NaN", &["field 4 (task duration)", "finite"]),
        ("1 1 1 inf", &["field 4", "finite"]),
        ("1e30 1 1 1", &["field 1", "584 years"]),
        ("1 2 1 1 1,5", &["field 5", "`1,5`"]),
        ("1 3 1 1 1", &["a.tr:1", "3 tasks", "2 durations", "one duration per task"]),
        ("1 1 1 1 1", &["1 tasks", "2 durations"]),
        ("1 1 1 1\n2 1", &["a.tr:2", "field 3", "missing", "cut off"]),
        ("", &["holds no usable data", "right file"]),
        ("\n# nothing\n", &["holds no usable data"]),
    ] {
        let error = complaint("a.tr", text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
    assert!(complaint("a.tr", b"1 1 1 \xff\n".to_vec()).contains("not text"));
}

#[test]
fn a_trace_of_too_many_jobs_is_refused() {
    let read = |jobs, most| Trace::parse_bounded(Path::new("a.tr"), Cursor::new(TR), jobs, most);
    assert_eq!(read(None, 2).unwrap().jobs().len(), 2);
    assert!(read(None, 1).unwrap_err().to_string().contains("more than 1 jobs; split it"));
    assert_eq!(read(Some(1), 1).unwrap().jobs().len(), 1);
}

#[test]
fn jobs_out_of_order_are_sorted_and_said() {
    let trace = parse("a.tr", "5 1 1 1\n3 1 2 2\n3 1 4 4\n9 1 8 8\n").unwrap();
    let means: Vec<u64> = trace.jobs().iter().map(|job| job.mean.0 / 1_000_000_000).collect();
    assert_eq!(means, [2, 4, 1, 8]);
    assert_eq!(trace.durations(JobId(2)), Some(&[1.0f32][..]));
    assert!(trace.notes()[0].contains("out of order"));
}

const SWF: &str = "; Version: 2.2\n\
    1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n\
    2 10 5 100 4 -1 -1 4 -1 -1 1 2 1 -1 -1 -1 -1 -1\n\
    3 20 5 -1 4 -1 -1 4 -1 -1 1 2 1 -1 -1 -1 -1 -1\n\
    4 30 5 50 4 -1 -1 4 -1 -1 5 2 1 -1 -1 -1 -1 -1\n\
    5 40 5 50 -1 -1 -1 4 -1 -1 1 2 1 -1 -1 -1 -1 -1\n\
    6 50 5 50 4 -1 -1 4 -1 -1 2 2 1 -1 -1 -1 -1 -1\n\
    7 -1 5 50 4 -1 -1 4 -1 -1 0 2 1 -1 -1 -1 -1 -1\n";

#[test]
fn swf_rows_become_rigid_jobs() {
    let trace = parse("a.swf", SWF).unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 132));
    assert_eq!(trace.jobs()[1].arrival, Time(10_000_000_000));
    assert_eq!(trace.duration(JobId(1).task(3)), Span::from_secs(100));
    assert_eq!(trace.durations(JobId(1)), None);
    assert_eq!(trace.jobs()[1].user.map(std::num::NonZeroU32::get), Some(2));
    let note = &trace.notes()[0];
    for part in [
        "5 rows skipped",
        "1 cancelled",
        "1 without a run",
        "1 without a number",
        "1 partial",
        "1 without a submit",
    ] {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn swf_mistakes_are_told() {
    for (text, parts) in [
        ("1 0 -1 10 4\n", &["a.swf:1", "5 of the 18 columns"][..]),
        ("1 0 -1 ten 4 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", &["field 4 (run time)", "`ten`"]),
        ("1 0 -1 10 4.5 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", &["field 5 (processors used)", "`4.5`"]),
        ("1 0 -1 -7 4 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", &["field 4", "negative"]),
        ("1 0 -1 1 9999999999 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n", &["field 5", "too many"]),
        ("; only a header\n", &["no usable data"]),
        ("1 0 -1 -1 4 -1 -1 -1 -1 -1 5 1 1 -1 -1 -1 -1 -1\n", &["no usable data", "1 cancelled"]),
    ] {
        let error = complaint("a.swf", text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
}

#[test]
fn csv_needs_its_columns() {
    let trace =
        parse("a.csv", "job,arrival_s,mean_s,ntasks_SYNTHETIC\n1,12.5,86.9,80\n2,,3,1\n3,20,4,2\n").unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 82));
    assert_eq!(trace.duration(JobId(0).task(79)), Span(86_900_000_000));
    assert!(trace.notes().iter().any(|note| note.contains("1 with a blank cell")), "{:?}", trace.notes());
    assert!(trace.notes().iter().any(|note| note.contains("job-level")));
    for (text, parts) in [
        ("job,arrival_s,mean_s\n1,2,3\n", &["a.csv:1", "`ntasks`"][..]),
        ("arrival_s,ntasks,mean_s\n1,two,3\n", &["a.csv:2", "field 2 (ntasks)", "`two`"]),
        ("arrival_s,ntasks,mean_s\n1,2,-3\n", &["field 3 (mean_s)", "negative"]),
        ("arrival_s,ntasks,mean_s\n", &["no usable data"]),
    ] {
        let error = complaint("a.csv", text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
}

#[test]
fn a_name_that_says_nothing_is_no_obstacle() {
    assert_eq!(parse("yahoo", TR).unwrap().jobs().len(), 2);
    assert_eq!(parse("log.txt", SWF).unwrap().format(), Format::Swf);
    assert_eq!(parse("x", "arrival_s,ntasks,mean_s\n1,2,3\n").unwrap().format(), Format::Csv);
    assert_eq!(Format::of(Path::new("a/b.tr.xz")), Some(Format::Tr));
    assert_eq!(Format::of(Path::new("b.swf.gz")), Some(Format::Swf));
    assert_eq!(Format::of(Path::new("b.xz")), None);
}

#[test]
fn reading_stops_after_the_jobs_asked_for() {
    let data = Cursor::new(b"1 1 1 1\n2 1 1 1\nbroken".to_vec());
    let trace = Trace::parse(Path::new("a.tr"), data, Some(2)).unwrap();
    assert_eq!(trace.jobs().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(
        start in prop::sample::select(vec![&b""[..], b"1 1 1 1\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        name in prop::sample::select(vec!["a.tr", "a.swf", "a.csv", "a"]),
    ) {
        let _ = parse(name, [start, &bytes].concat());
    }

    #[test]
    fn nearly_right_text_never_panics(
        words in prop::collection::vec("[-0-9.eEna,; \n\t#]{0,8}", 0..60),
        name in prop::sample::select(vec!["a.tr", "a.swf", "a.csv", "a"]),
    ) {
        let header = if name == "a.csv" { "arrival_s,ntasks,mean_s\n" } else { "" };
        let _ = parse(name, format!("{header}{}", words.join(" ")));
    }
}
