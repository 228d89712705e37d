//! Tests of the readers on small inline data: valid input, and every error.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use volary_actors::base::{Feature, JobId, Span, Time};

use super::super::{Format, Outcome, Trace, WorkloadError};
use super::{ColumnNames, Features, Reading};

mod graphs;
mod options;

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
fn a_stated_mean_that_differs_from_the_durations_is_noted() {
    let notes = |text: &str| parse("a.tr", text).unwrap().notes().to_vec();
    assert_eq!(notes("0 2 8.67 8 9.333\n1 2 2 1 2\n2 2 99 100 99\n"), [""; 0], "means are rounded");
    let one = "a.tr:2: states a mean of 9.5 s, but its durations have a mean of 1.500 s";
    assert_eq!(
        notes("0 1 1 1\n1 2 9.5 1 2\n"),
        [format!("{one}; estimates of policies are the stated means")]
    );
    let more = notes("0 1 1 1\n1 2 9.5 1 2\n2 1 4 9\n3 1 0 7\n");
    assert_eq!(more, [format!("{one} (3 lines are like this); estimates of policies are the stated means")]);
}

#[test]
fn errors_of_tr_files_name_line_field_and_remedy() {
    for (text, parts) in [
        ("1 1 1 1\nx 1 1 1", &["a.tr:2", "field 1 (arrival_s)", "`x`"][..]),
        ("1 2.5 1 1 1", &["a.tr:1", "field 2 (num_tasks)", "whole number"]),
        ("1 0 1", &["field 2", "from 1 to"]),
        ("1 -3 1", &["field 2", "`-3`"]),
        ("1 1 -2 1", &["field 3 (mean_task_duration_s)", "negative"]),
        ("1 1 1 NaN", &["field 4 (task duration)", "finite"]),
        ("1 1 1 inf", &["field 4", "finite"]),
        ("1e30 1 1 1", &["field 1", "584 years"]),
        ("1 2 1 1 1,5", &["field 5", "`1,5`"]),
        ("1 3 1 1 1", &["a.tr:1", "3 tasks", "2 durations", "one duration per task"]),
        ("1 1 1 1 1", &["1 tasks", "2 durations"]),
        ("1 1 1 1\n2 1", &["a.tr:2", "field 3", "missing", "cut off"]),
        ("submit_ms,run_ms\n1,2\n", &["a.tr:1", "field 1", "mean_s dur_1", "end its name in .csv or .swf"]),
        ("", &["holds no usable data", "right file"]),
        ("\n# nothing\n", &["holds no usable data"]),
    ] {
        let error = complaint("a.tr", text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
    assert!(
        complaint("a.tr", b"1 1 1 \xff\n".to_vec()).contains("field 4 (task duration): `�` is not a number")
    );
}

#[test]
fn a_trace_of_too_many_jobs_is_refused() {
    let read = |jobs, most| {
        let reading = Reading { jobs, ..Reading::default() };
        Trace::parse_bounded(Path::new("a.tr"), Cursor::new(TR), &reading, Vec::new(), most)
    };
    assert_eq!(read(None, 2).unwrap().jobs().len(), 2);
    assert!(read(None, 1).unwrap_err().to_string().contains("more than 1 jobs; split it"));
    assert_eq!(read(Some(1), 1).unwrap().jobs().len(), 1);
}

#[test]
fn jobs_out_of_order_are_sorted_and_reported() {
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
    5 40 5 50 -1 -1 -1 -1 -1 -1 1 2 1 -1 -1 -1 -1 -1\n\
    6 50 5 50 4 -1 -1 4 -1 -1 2 2 1 -1 -1 -1 -1 -1\n\
    7 -1 5 50 4 -1 -1 4 -1 -1 0 2 1 -1 -1 -1 -1 -1\n\
    8 60 5 0 4 -1 -1 4 -1 -1 5 2 1 -1 -1 -1 -1 -1\n";

#[test]
fn swf_rows_become_rigid_jobs() {
    let trace = parse("a.swf", SWF).unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (3, 136));
    assert_eq!((trace.run(JobId(2)), trace.outcome(JobId(2))), (Span::from_secs(50), Some(Outcome::Killed)));
    assert_eq!(trace.jobs()[1].arrival, Time(10_000_000_000));
    assert_eq!(trace.duration(JobId(1).task(3)), Span::from_secs(100));
    assert_eq!(trace.durations(JobId(1)), None);
    // Users 1 and 2 are numbered as they appear; −1 stands for unknown.
    let user = |job| trace.feature(JobId(job), Feature::User);
    assert_eq!((user(0), user(1), trace.feature(JobId(0), Feature::Queue)), (1, 2, 0));
    assert_eq!(
        trace.features(),
        [Feature::User, Feature::Class, Feature::Size, Feature::Hour, Feature::Cores]
    );
    assert_eq!([0, 1].map(|job| trace.wait(JobId(job))), [None, Some(Span::from_secs(5))]);
    assert_eq!((trace.outcome(JobId(0)), trace.cores(JobId(0))), (None, Some(128.0)));
    assert_eq!(trace.outcome(JobId(1)), Some(Outcome::Finished));
    let note = &trace.notes()[0];
    for part in [
        "5 rows skipped",
        "1 cancelled before they ran",
        "1 without a run",
        "1 without a number",
        "1 partial",
        "1 without a submit",
    ] {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn swf_jobs_without_used_processors_have_the_requested_processors() {
    let trace = parse("a.swf", "1 0 -1 10 -1 -1 -1 4 -1 -1 1 1 1 -1 -1 -1 -1 -1\n").unwrap();
    assert_eq!(trace.jobs()[0].tasks, 4);
}

#[test]
fn swf_jobs_have_the_requested_time_if_it_is_above_zero() {
    let row = |time: &str| format!("1 0 -1 10 4 -1 -1 4 {time} -1 1 1 1 -1 -1 -1 -1 -1\n");
    let trace = parse("a.swf", [row("3600.5"), row("-1"), row("0")].concat()).unwrap();
    let requested = [0, 1, 2].map(|job| trace.requested(JobId(job)));
    assert_eq!(requested, [Some(Span::from_millis(3_600_500)), None, None]);
}

#[test]
fn errors_of_swf_files_name_line_and_reason() {
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
fn csv_files_without_a_required_column_are_refused() {
    let trace =
        parse("a.csv", "job,arrival_s,mean_s,ntasks_SYNTHETIC\n1,12.5,86.9,80\n2,,3,1\n3,20,4,2\n").unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 82));
    assert_eq!(trace.duration(JobId(0).task(79)), Span(86_900_000_000));
    assert!(trace.notes().iter().any(|note| note.contains("1 with a blank cell")), "{:?}", trace.notes());
    assert!(trace.notes().iter().any(|note| note.contains("job-level")));
    for (text, parts) in [
        ("job,arrival_s,mean_s\n1,2,3\n", &["a.csv:1", "`ntasks`"][..]),
        ("arrival_s,ntasks,mean_s\n1,two,3\n", &["a.csv:2", "field 2 (ntasks)", "`two`"]),
        ("arrival_s,ntasks,mean_s\n1,1,3,\n1,1,3,,x\n", &["a.csv:3", "the 3 fields of the header", "quotes"]),
        ("arrival_s,ntasks,mean_s\n1,1,3\n2,1", &["a.csv:3", "2 of the 3 fields", "cut off"]),
        (
            "# by hand\narrival_s,ntasks,mean_s\n1,1,3\n# 2,1,3\n",
            &["a.csv:4", "field 1 (arrival_s)", "`# 2`"],
        ),
        (
            "arrival_s,ntasks,mean_s,run_ms\n",
            &[
                "a.csv:1",
                "fields 3 (`mean_s`) and 4 (`run_ms`) both give the `run`",
                "--columns",
                "run=COLUMN",
            ],
        ),
        ("user,arrival_s,ntasks,mean_s,user\n", &["fields 1 (`user`) and 5 (`user`)"]),
        ("arrival_s,ntasks,mean_s,hour\n1,1,3,24\n", &["a.csv:2", "field 4 (hour)", "from 0 to 23"]),
        ("arrival_s,ntasks,mean_s,size\n1,1,3,big\n", &["field 4 (size)", "`big`", "whole number"]),
        ("arrival_s,ntasks,mean_s\n1,2,-3\n", &["field 3 (mean_s)", "negative"]),
        ("arrival_s,ntasks,mean_s\n", &["no usable data"]),
    ] {
        let error = complaint("a.csv", text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
}

#[test]
fn a_file_without_a_known_suffix_is_recognised_by_its_content() {
    assert_eq!(parse("yahoo", TR).unwrap().jobs().len(), 2);
    assert_eq!(parse("log.txt", SWF).unwrap().format(), Format::Swf);
    assert_eq!(parse("x", "arrival_s,ntasks,mean_s\n1,2,3\n").unwrap().format(), Format::Csv);
    assert_eq!(Format::of(Path::new("a/b.tr.xz")), Some(Format::Tr));
    assert_eq!(Format::of(Path::new("b.swf.gz")), Some(Format::Swf));
    assert_eq!(Format::of(Path::new("b.xz")), None);
}

#[test]
fn reading_stops_after_the_requested_jobs() {
    let data = Cursor::new(b"1 1 1 1\n2 1 1 1\nbroken".to_vec());
    let trace = Trace::parse(Path::new("a.tr"), data, Some(2)).unwrap();
    assert_eq!(trace.jobs().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic_a_parser(
        start in prop::sample::select(vec![&b""[..], b"1 1 1 1\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        name in prop::sample::select(vec!["a.tr", "a.swf", "a.csv", "a"]),
    ) {
        let _ = parse(name, [start, &bytes].concat());
    }

    #[test]
    fn nearly_valid_text_never_panics_a_parser(
        words in prop::collection::vec("[-0-9.eEna,; \n\t#]{0,8}", 0..60),
        name in prop::sample::select(vec!["a.tr", "a.swf", "a.csv", "a"]),
    ) {
        let header = if name == "a.csv" { "arrival_s,ntasks,mean_s\n" } else { "" };
        let _ = parse(name, format!("{header}{}", words.join(" ")));
    }
}

const DERIVED: &str = "submit_ms,delay_ms,run_ms,end,user,class,name,lname\n\
    5000,10,1500,F,17,0,n1,l1\n\
    3000,,250,K,3,2,n2,l1\n\
    7000,,,,3,2,n2,l1\n\
    9000,0,1,X,,2,n1,\n";

#[test]
fn tables_derived_from_google_have_features_and_outcomes() {
    let trace = parse("g.csv", DERIVED).unwrap();
    assert_eq!((trace.jobs().len(), trace.counts_tasks()), (3, false));
    // Sorted by arrival, with everything that belongs to a job.
    let [first, second, third] = [0, 1, 2].map(JobId);
    assert_eq!((trace.jobs()[0].arrival, trace.jobs()[0].mean), (Time(3_000_000_000), Span(250_000_000)));
    assert_eq!((trace.wait(first), trace.wait(second)), (None, Some(Span(10_000_000))));
    assert_eq!(trace.outcome(first), Some(Outcome::Killed));
    assert_eq!(trace.outcome(third), Some(Outcome::Failed));
    let values = |feature| [first, second, third].map(|job| trace.feature(job, feature));
    assert_eq!(values(Feature::User), [2, 1, 0]);
    assert_eq!(values(Feature::Class), [2, 1, 2]);
    assert_eq!(values(Feature::Name), [2, 1, 1]);
    assert_eq!(values(Feature::LogicalName), [1, 1, 0]);
    assert_eq!((values(Feature::Size), values(Feature::Hour)), ([0; 3], [1; 3]));
    // A job that was there when the trace began has the time zero.
    let early = parse("g.csv", DERIVED.replace("3000,,", "0,,")).unwrap();
    assert_eq!((trace.is_google(), trace.early(), early.early(), trace.zone()), (true, 0, 1, None));
    let notes = trace.notes().join("; ");
    for part in ["1 without a run time", "each job counts as one", "sorted by arrival"] {
        assert!(notes.contains(part), "{notes}");
    }
}

const MUSTANG: &str = "user_ID,group_ID,submit_time,start_time,end_time,wallclock_limit,job_status,node_count,tasks_requested\n\
    11,2,2016-02-02 06:53:00-07:00,2016-02-02 06:54:00-07:00,2016-02-02 07:54:30-07:00,16:00:00,COMPLETED,2,48\n\
    12,2,2016-02-02 14:00:00+00:00,2016-02-02 14:00:00+00:00,2016-02-02 15:00:00+00:00,16:00:00,TIMEOUT,1,24\n\
    12,2,2016-02-02 08:00:00-07:00,,2016-02-02 15:00:00+00:00,16:00:00,CANCELLED,1,24\n";
const TRINITY: &str = "user_ID,group_ID,submit_time,start_time,dispatch_time,queue_time,end_time,wallclock_limit,\
    job_status,node_count,tasks_requested\n\
    1,1,2017-02-02 00:00:00-07:00,2017-02-02 00:10:00-07:00,2017-02-02 00:09:00-07:00,2017-02-02 00:00:01-07:00,\
    2017-02-02 00:20:00-07:00,01:00:00,JOBEND,4,128\n";

#[test]
fn atlas_files_have_dates_and_outcomes() {
    let trace = parse("mustang.csv", MUSTANG).unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 72));
    assert_eq!(
        (trace.jobs()[0].mean, trace.wait(JobId(0))),
        (Span::from_secs(3630), Some(Span::from_secs(60)))
    );
    let gap = trace.jobs()[1].arrival - trace.jobs()[0].arrival;
    assert_eq!(gap, Span::from_secs(420), "06:53 and 07:00 by one clock");
    assert_eq!((trace.zone(), trace.is_google()), (Some(-7 * 3600), false));
    // The hours of the cluster, not of Greenwich: 06 and 07.
    assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::Hour)), [7, 8]);
    assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::Requested)), [1, 1]);
    assert_eq!(
        [0, 1].map(|job| trace.outcome(JobId(job))),
        [Some(Outcome::Finished), Some(Outcome::TimedOut)]
    );
    assert!(trace.notes().iter().any(|note| note.contains("1 without a start")), "{:?}", trace.notes());
    let trace = parse("trinity.csv", TRINITY).unwrap();
    assert_eq!(
        (trace.jobs()[0].mean, trace.wait(JobId(0))),
        (Span::from_secs(600), Some(Span::from_secs(600)))
    );
}

fn with_columns(columns: &ColumnNames, text: &str) -> Result<Trace, WorkloadError> {
    let reading = Reading { columns: Some(columns.clone()), ..Reading::default() };
    Trace::parse_with(Path::new("a.csv"), Cursor::new(text.to_owned()), &reading, Vec::new())
}

#[test]
fn columns_of_csv_files_can_be_named_by_the_user() {
    let text = "id,who,at_ms,took,how many\n1,\"ann, b\",2500,3.5,4\n2,ann,3000,1,1\n";
    let trace =
        with_columns(&"user=who,submit=at_ms,run=took,tasks=how many".parse().unwrap(), text).unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 5));
    assert_eq!((trace.jobs()[0].arrival, trace.jobs()[0].mean), (Time(2_500_000_000), Span(3_500_000_000)));
    assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::User)), [1, 2]);
    let error =
        with_columns(&"user=whom,submit=at_ms,run=took".parse().unwrap(), text).unwrap_err().to_string();
    for part in ["a.csv:1", "no column `whom`", "id, who, at_ms, took, how many"] {
        assert!(error.contains(part), "{error}");
    }
    let error = with_columns(&"user=who,submit=at_ms".parse().unwrap(), text).unwrap_err().to_string();
    assert!(
        error.contains("run_ms") && error.contains("--columns submit=COLUMN,run=COLUMN,tasks=COLUMN"),
        "{error}"
    );
    let twice = with_columns(&"submit=at,run=took".parse().unwrap(), "at,took,at\n1,2,3\n").unwrap_err();
    assert!(twice.to_string().contains("fields 1 and 3 are both called `at`"), "{twice}");
}

/// Only a column with the exact name `arrival_s` gives the arrivals of a simulator's trace.
#[test]
fn a_heading_that_only_contains_a_known_name_is_ignored() {
    let columns: ColumnNames = "submit=job_arrival_stamp,run=elapsed".parse().unwrap();
    let trace = with_columns(&columns, "job_arrival_stamp,elapsed\n1,2\n").unwrap();
    assert_eq!((trace.jobs().len(), trace.counts_tasks()), (1, false));
    assert!(complaint("a.csv", "arrival_s,mean_s\n1,2\n").contains("`ntasks`"));
}

#[test]
fn a_start_before_the_submission_gives_an_unknown_wait() {
    let trace = parse("a.csv", "submit,start,end\n10,5,20\n10,12,20\n").unwrap();
    let waits = [0, 1].map(|job| trace.wait(JobId(job)));
    assert_eq!(waits, [None, Some(Span::from_secs(2))]);
    assert!(
        trace.notes().iter().any(|note| note.starts_with("jobs that start before") && note.contains(": 1;")),
        "{:?}",
        trace.notes()
    );
}

/// `run_ID` numbers executions and is not a run time. OpenTrinity's `queue_time` counts only if no other column states
/// submission times.
#[test]
fn similar_headings_are_not_confused() {
    let text = "run_ID,user_ID,queue_time,start_time,end_time\n77,#1,5,10,12\n78,u2,6,10,13\n";
    let trace = parse("a.csv", text).unwrap();
    assert_eq!([0, 1].map(|job| trace.run(JobId(job)).0), [2_000_000_000, 3_000_000_000]);
    assert_eq!(trace.wait(JobId(0)), Some(Span::from_secs(5)));
    let text = "submit_ms,run_ms,size,hour,tasks\n1,2,512,0,4\n2,2,7,23,4\n";
    let trace = parse("a.csv", text).unwrap();
    let of = |feature| [0, 1].map(|job| trace.feature(JobId(job), feature));
    assert_eq!((of(Feature::Size), of(Feature::Hour)), ([512, 7], [1, 24]));
}

#[test]
fn jobs_that_had_not_ended_are_skipped() {
    let text = "submit,start,end,outcome\n1,2,Unknown,RUNNING\n1,Unknown,Unknown,PENDING\n1,2,5,CANCELLED by 17\n\
        1,2,4,DEADLINE\n";
    let trace = parse("a.csv", text).unwrap();
    assert_eq!([0, 1].map(|job| trace.outcome(JobId(job))), [Some(Outcome::Killed), Some(Outcome::TimedOut)]);
    assert!(trace.notes().iter().any(|note| note.contains("2 of jobs that had not ended")));
}

/// Spreadsheets write whole numbers with decimals in columns that have gaps. The wait follows from the end.
#[test]
fn times_in_milliseconds_may_have_decimals() {
    let trace = parse("a.csv", "submit_ms,end_time,run_ms\n1454421180000.0,1454421190.5,2500.5\n").unwrap();
    assert_eq!(trace.jobs()[0].arrival, Time(1_454_421_180_000_000_000));
    assert_eq!(trace.run(JobId(0)), Span(2_500_500_000));
    assert_eq!((trace.wait(JobId(0)), trace.unknown_waits()), (Some(Span(7_999_500_000)), 0));
    let why = complaint("a.csv", "submit_ms,run_ms\n-1.5,2\n");
    assert!(why.contains("a.csv:2") && why.contains("times are milliseconds from zero on"), "{why}");
}

#[test]
fn headers_and_words_above_the_maximum_length_are_refused() {
    let why = complaint("a.csv", ",".repeat(5000));
    assert!(why.contains("a.csv:1") && why.contains("more than 4096 columns"), "{why}");
    let why = complaint("a.csv", format!("submit_ms,run_ms,user\n1,2,{}\n", "x".repeat(2000)));
    assert!(why.contains("field 3 (user)") && why.contains("longer than 1024 bytes"), "{why}");
}

#[test]
fn errors_of_tables_name_line_field_and_reason() {
    let mustang = |from, to: &str| MUSTANG.replacen(from, to, 1);
    for (text, parts) in [
        (DERIVED.replace("250,K", "-250,K"), &["a.csv:3", "field 3 (run_ms)", "negative"][..]),
        (DERIVED.replace(",K,", ",Q,"), &["a.csv:3", "field 4 (end)", "`Q` is not an outcome", "CANCELLED"]),
        (DERIVED.replace("3000,", "soon,"), &["field 1 (submit_ms)", "`soon`"]),
        (DERIVED.replace("submit_ms", "at"), &["a.csv:1", "`submit_ms`", "--columns", "at, delay_ms"]),
        (
            mustang("06:53:00-07:00", "06:53:00"),
            &["a.csv:2", "field 3 (submit_time)", "no time zone", "--zone UTC"],
        ),
        (
            mustang("2016-02-02 07:54:30-07:00", "2016-02-02 06:00:00-07:00"),
            &["a.csv:2", "negative run time"],
        ),
        (mustang("2016-02-02 14:00:00+00:00", "1454421180"), &["a.csv:3", "mixes dates and numbers"]),
        (mustang(",48", ",0"), &["a.csv:2", "field 9 (tasks_requested)", "`0`"]),
        ("submit_ms,run_ms\n\0\0\0".to_owned(), &["a.csv:2", "zero byte"]),
    ] {
        let error = complaint("a.csv", text.clone());
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
    }
    let columns: ColumnNames = "user=u".parse().unwrap();
    let reading = Reading { columns: Some(columns), ..Reading::default() };
    let error =
        Trace::parse_with(Path::new("a.tr"), Cursor::new(TR), &reading, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("--columns is for .csv"), "{error}");
}

fn with_features(features: &'static str, jobs: Option<u32>) -> Result<Trace, WorkloadError> {
    let reading = Reading { jobs, ..Reading::default() };
    let features: Features = ("a.features.csv".into(), Box::new(Cursor::new(features)));
    Trace::parse_with(Path::new("a.tr"), Cursor::new("5 2 1 1 1\n3 1 2 2\n"), &reading, vec![features])
}

#[test]
fn features_of_a_tr_file_are_read_from_a_second_file() {
    let trace = with_features("line,user,cpu_req,job_end\n1,u5,0.25,KILL\n2,u3,0.5,FINISH\n", None).unwrap();
    // The second line arrives first.
    assert_eq!(trace.jobs()[0].arrival, Time(3_000_000_000));
    assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::User)), [2, 1]);
    assert_eq!([0, 1].map(|job| trace.cores(JobId(job))), [Some(8.0), Some(8.0)]);
    assert_eq!(trace.outcome(JobId(1)), Some(Outcome::Killed));
    assert_eq!(with_features("user\na\nb\n", Some(1)).unwrap().jobs().len(), 1);
    let waits = with_features("wait,outcome,cores\n1.5,,2\n,finished,\n", None).unwrap();
    assert_eq!((waits.wait(JobId(1)), waits.unknown_waits()), (Some(Span(1_500_000_000)), 1));
    for (text, part) in [
        ("line,user\n1,a\n", "has 1 rows for the 2 jobs"),
        ("line,user\n1,a\n2,a\n3,a\n", "more rows than `a.tr` has jobs (2)"),
        ("line,user\n2,a\n1,a\n", "is about job 2"),
        ("line,colour\n1,a\n2,a\n", "none of the features"),
        ("", "is empty"),
    ] {
        let error = with_features(text, None).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("a.features.csv"), "{text:?}: {error}");
    }
}

#[test]
fn times_of_a_csv_file_count_in_the_unit_of_their_column() {
    let run = |columns: &str, header: &str| {
        let trace = with_columns(&columns.parse().unwrap(), &format!("at_s,{header}\n5,90\n"))?;
        Ok::<_, WorkloadError>((trace.run(JobId(0)), trace.notes().join("; ")))
    };
    for (columns, header, span) in [
        ("submit=at_s,run=duration_min", "duration_min", Span::from_secs(5400)),
        ("submit=at_s,run=hours", "hours", Span::from_secs(324_000)),
        ("submit=at_s,run=run_ns", "run_ns", Span(90)),
        ("submit=at_s,run=took", "took", Span::from_secs(90)),
        ("submit=at_s,run=took:min", "took", Span::from_secs(5400)),
        ("submit=at_s,run=run_ticks:ms", "run_ticks", Span::from_millis(90)),
        ("submit=at_s,run=run_min:s", "run_min", Span::from_secs(90)),
        // A column may be called like another one with a unit.
        ("submit=at_s,run=took:min", "took:min", Span::from_secs(5400)),
        ("submit=at_s,run=job:elapsed", "job:elapsed", Span::from_secs(90)),
    ] {
        let (found, notes) = run(columns, header).unwrap();
        assert_eq!(found, span, "{columns}, {header}");
        assert_eq!(notes.contains("read by the units"), span > Span::from_secs(90), "{notes}");
    }
    let error = run("submit=at_s,run=run_ticks", "run_ticks").unwrap_err().to_string();
    for part in
        ["a.csv:2", "field 2 (run_ticks)", "ends in `ticks`", "run=run_ticks:UNIT", "trace convert --columns"]
    {
        assert!(error.contains(part), "{error}");
    }
    let error = run("submit=at_s,run=took,user=at_s:min", "took").unwrap_err().to_string();
    assert!(error.contains("--columns user=at_s:min: `min` is not a unit of `user`; leave it"), "{error}");
    // Dates have no unit, whatever their column is called.
    let text = "submit,end_utc,start\n2016-02-02 07:00:00Z,2016-02-02 07:01:00Z,2016-02-02 07:00:00Z\n";
    let trace = with_columns(&"submit=submit,start=start,end=end_utc".parse().unwrap(), text).unwrap();
    assert_eq!(trace.run(JobId(0)), Span::from_secs(60));
}

#[test]
fn a_note_names_the_separator_that_was_found() {
    let plain = parse("a.csv", "arrival_s,ntasks,mean_s\n1,2,3\n").unwrap();
    for (separator, name) in [(";", "`;`"), ("|", "`|`"), ("\t", "tabs")] {
        let text = "arrival_s,ntasks,mean_s,user\n1,2,3,\n".replace(',', separator);
        let trace = parse("a.csv", text).unwrap();
        assert_eq!(trace.jobs(), plain.jobs(), "{separator}");
        let told = format!("cells are separated by {name}");
        assert!(trace.notes().contains(&told), "{:?}", trace.notes());
    }
    assert!(plain.notes().iter().all(|note| !note.contains("separated")), "{:?}", plain.notes());
    let error = complaint("a.csv", "arrival_s|ntasks|mean_s\n1|2|3|x\n");
    assert!(error.contains("a.csv:2") && error.contains("a cell that holds `|`"), "{error}");
}

/// Archives write −1 for unknown values, in tables as in SWF.
#[test]
fn minus_one_means_unknown_in_tables() {
    let trace =
        parse("a.csv", "submit,start,run,tasks,cores\n5,-1,3,2,-1\n6,7,-1,2,1\n7,8,9,-1,1\n8,9,-1.0,1,1\n")
            .unwrap();
    assert_eq!((trace.jobs().len(), trace.wait(JobId(0)), trace.cores(JobId(0))), (1, None, None));
    let notes = trace.notes().join("; ");
    assert!(notes.contains("3 rows skipped: 1 with a blank cell, 2 without a run time"), "{notes}");
    assert!(complaint("a.csv", "submit,run\n5,-2\n").contains("negative"));
}

#[test]
fn swf_waits_below_zero_are_unknown_and_counts_may_have_decimals() {
    let row = |submit: &str, wait: &str, run: &str, used: &str| {
        format!("1 {submit} {wait} {run} {used} -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n")
    };
    let text = row("10", "-7", "3", "2.0")
        + &row("11", "2", "-1", "2")
        + &row("-1.0", "2", "3", "2")
        + &row("12", "4", "5", "3.00");
    let trace = parse("a.swf", text).unwrap();
    assert_eq!((trace.jobs().len(), trace.tasks()), (2, 5));
    assert_eq!([0, 1].map(|job| trace.wait(JobId(job))), [None, Some(Span::from_secs(4))]);
    let notes = trace.notes().join("; ");
    assert!(notes.contains("1 without a run time, 1 without a submit time"), "{notes}");
    assert!(complaint("a.swf", row("10", "1", "3", "2.5")).contains("`2.5` is not a whole number"));
}

#[test]
fn a_note_states_the_extra_fields_of_swf_files() {
    let row = "1 0 -1 10 4 -1 -1 4 -1 -1 1 1 1 -1 -1 -1 -1 -1";
    let notes = |text: String| parse("a.swf", text).unwrap().notes().to_vec();
    let told = |text| notes(text).join("; ");
    let of_values = told(format!("{row}\n{row} {{7}} q_2w\n{row} x\n"));
    assert!(
        of_values.ends_with("not read: 2, with up to 20 fields (in the first such row {7} q_2w)"),
        "{of_values}"
    );
    let names =
        "id submit wait run cpus cpu mem req wall memreq status user group app queue part prec think DAG";
    let of_names = told(format!("{names}\n{row} d1\n"));
    assert!(of_names.ends_with("not read: 1, with up to 19 fields (DAG)"), "{of_names}");
}

#[test]
fn swf_headers_give_the_dates_of_jobs() {
    let row = "1 3600 2 3 2 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n";
    // 2002-11-23 22:00:00 in Greenwich.
    let with = |header: &str| parse("a.swf", format!("; Computer: x\n{header}{row}")).unwrap();
    let dated = with("; UnixStartTime: 1038088800\n;TimeZone: 3600\n");
    assert_eq!((dated.zone(), dated.jobs()[0].arrival), (Some(3600), Time(1_038_096_000_000_000_000)));
    assert_eq!(dated.feature(JobId(0), Feature::Hour), 1, "midnight");
    for header in ["", "; TimeZone: 3600\n", "; UnixStartTime: soon\n; TimeZone: 3600\n"] {
        let plain = with(header);
        assert_eq!((plain.zone(), plain.jobs()[0].arrival), (None, Time(3_600_000_000_000)), "{header}");
    }
    let named = with("; UnixStartTime: 1027839845\n; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm\n");
    assert_eq!(named.zone(), Some(7200), "the name counts, which knows that clocks are set forward in July");
    let unzoned = with("; UnixStartTime: 1038088800\n");
    assert_eq!((unzoned.zone(), unzoned.jobs()[0].arrival), (None, Time(3_600_000_000_000)));
    assert!(
        unzoned.notes().iter().any(|note| note.contains("UnixStartTime is not used")),
        "{:?}",
        unzoned.notes()
    );
}

#[test]
fn comments_may_be_in_another_encoding() {
    let latin =
        |comment: &str, rest: &str| [comment.as_bytes(), b" Universit\xe9\n", rest.as_bytes()].concat();
    assert_eq!(parse("a.swf", latin(";", SWF)).unwrap().jobs(), parse("a.swf", SWF).unwrap().jobs());
    assert_eq!(parse("log", latin(";", SWF)).unwrap().format(), Format::Swf);
    assert_eq!(parse("a.tr", latin("#", TR)).unwrap().jobs().len(), 2);
    let trace = parse("a.csv", latin("arrival_s,ntasks,mean_s,user\n1,2,3,", "")).unwrap();
    let notes = trace.notes().join("; ");
    assert!(notes.contains("read as `�`: 1, the first is line 2"), "{notes}");
}
