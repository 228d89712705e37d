//! Tests of the options for reading (zones, sizes, units, skipped rows) and of rows in JSON.

use std::io::Cursor;
use std::path::Path;

use volary_actors::base::{Feature, JobId, Span};

use super::super::{Reading, SizeBy};
use super::{SWF, TR, complaint, parse, with_columns};
use crate::workload::work::Share;
use crate::workload::{Trace, WorkloadError};

#[test]
fn json_objects_are_rows() {
    let text = "{\"submit\": 1, \"run\": 2.5, \"tasks\": 3.0, \"user\": \"ann, b\", \"cores\": null, \"tags\": [1]}\n\
        {\"run\": 4, \"submit\": 2, \"tasks\": 1, \"user\": \"bob\"}\n\
        {\"run\": 4, \"tasks\": 1}\n";
    for name in ["a.jsonl", "a.csv", "a"] {
        let trace = parse(name, text).unwrap();
        assert_eq!((trace.jobs().len(), trace.tasks(), trace.run(JobId(0))), (2, 4, Span::from_millis(2500)));
        assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::User)), [1, 2]);
        let notes = trace.notes().join("; ");
        assert!(notes.contains("1 row skipped: 1 with a blank cell"), "{notes}");
    }
    for (text, part) in [
        ("[{\"submit\": 1}]\n", "`jq -c .[]`"),
        ("[\n{\"submit\": 1}]\n", "`jq -c .[]`"),
        (
            "{\"submit\": 1, \"run\": 2}\n{\"submit\": 1, \"run\": 2, \"user\": \"a\"}\n",
            "a.jsonl:2: has the key `user`",
        ),
        ("{\"submit\": 1, \"run\": 2}\n{\"submit\": 1,\n", "a.jsonl:2: is not a JSON object"),
        ("{\"submit\": 1, \"run\": 2}\n[1]\n", "`jq -c .[]`"),
        ("{\"submit\": 1, \"run\": true}\n", "a.jsonl:1: field 1 (run): `true` is not a number"),
        ("{\"at\": 1}\n", "it has at"),
    ] {
        let error = complaint("a.jsonl", text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

fn with_reading(name: &str, text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    Trace::parse_with(Path::new(name), Cursor::new(text.to_owned()), reading, Vec::new())
}

#[test]
fn malformed_rows_are_left_out_up_to_a_share() {
    let skip = |share| Reading { skip_bad: Share::new(share).unwrap(), ..Reading::default() };
    let swf: String = SWF
        .lines()
        .flat_map(|line| [line, "\n"])
        .chain(["1 2 3\n", "9 x -1 1 1 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"])
        .collect();
    let csv = "submit,run\n1,2\n2,3\nx,4\n5,-6\n";
    let tr = "1 1 1 1\n2 1 1\n3 1 1 1\n4 x 1\n";
    for (name, text, jobs, places) in [
        ("a.swf", &*swf, 3, ["a.swf:10: has 3 of the 18", "a.swf:11: field 2 (submit time)"]),
        ("a.csv", csv, 2, ["a.csv:4: field 1 (submit)", "a.csv:5: field 2 (run)"]),
        ("a.tr", tr, 2, ["a.tr:2: says 1 tasks", "a.tr:4: field 2 (num_tasks)"]),
    ] {
        let trace = with_reading(name, text, &skip(0.5)).unwrap();
        assert_eq!(trace.jobs().len(), jobs, "{name}");
        let notes = trace.notes().join("; ");
        assert!(notes.contains("left out as --skip-bad allows"), "{notes}");
        assert!(places.iter().all(|place| notes.contains(place)), "{notes}");
        let error = with_reading(name, text, &skip(0.1)).unwrap_err().to_string();
        assert!(error.contains("more than --skip-bad 10 %") && error.contains(places[0]), "{error}");
        let error = complaint(name, text);
        assert!(error.contains("skip_bad = 0.01") && error.contains(places[0]), "{error}");
    }
    let many = format!("submit,run\n1,2\n{}", "x,1\n".repeat(20));
    let notes = with_reading("a.csv", &many, &skip(1.0)).unwrap().notes().join("; ");
    assert!(
        notes.contains("malformed rows, of 21: 20 (")
            && notes.contains("a.csv:12: ")
            && notes.contains("; …)")
    );
    assert!(!notes.contains("a.csv:13: "), "{notes}");
}

#[test]
fn lines_of_tr_files_with_unknown_times_are_skipped_and_counted() {
    let trace = parse("a.tr", "1 1 -1 1\n2 2 3 3 -1\n3 1 4 4\n").unwrap();
    assert_eq!(trace.jobs().len(), 1);
    assert_eq!(trace.notes(), ["2 rows skipped: 2 without a run time"]);
}

#[test]
fn features_of_lines_that_make_no_job_are_left_out() {
    let users = |rows: &'static str, skip_bad| {
        let reading = Reading { skip_bad, ..Reading::default() };
        let features: Box<dyn std::io::BufRead> = Box::new(Cursor::new(rows));
        let text = "1 1 -1 1\n2 1 1 1\n3 x 1 1\n4 1 1 1\n5 1 1 -1\n";
        Trace::parse_with(
            Path::new("a.tr"),
            Cursor::new(text),
            &reading,
            vec![("a.features.csv".into(), features)],
        )
    };
    let half = Share::new(0.5).unwrap();
    let trace = users("user,priority\na,1\nb,2\nc,3\nb,2\ne,5\n", half).unwrap();
    assert_eq!([0, 1].map(|job| trace.feature(JobId(job), Feature::User)), [1, 1]);
    let numbered = users("line,user\n1,a\n2,b\n3,c\n4,b\n5,e\n", half).unwrap();
    assert_eq!([0, 1].map(|job| numbered.feature(JobId(job), Feature::User)), [1, 1]);
    for (rows, part) in
        [("user\na\nb\nc\n", "has 3 rows for the 2 jobs"), ("user\na\nb\nc\nd\ne\nf\n", "has more rows than")]
    {
        let error = users(rows, half).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// Clocks go back from 03:00 to 02:00 on this day, so that 02:10 to 02:50 occur twice.
#[test]
fn a_repeated_date_has_its_second_time_if_the_first_would_be_too_early() {
    let stockholm = Reading { zone: Some("Europe/Stockholm".parse().unwrap()), ..Reading::default() };
    for (submit, start, end, wait, run) in [
        ("02:40", "02:50", "02:10", 10, 20),
        ("02:50", "02:10", "02:20", 20, 10),
        ("01:00", "02:10", "02:20", 70, 10),
    ] {
        let day = |clock| format!("2021-10-31 {clock}:00");
        let text = format!("submit,start,end\n{},{},{}\n", day(submit), day(start), day(end));
        let trace = with_reading("a.csv", &text, &stockholm).unwrap();
        let found = (trace.wait(JobId(0)), trace.run(JobId(0)));
        assert_eq!(found, (Some(Span::from_secs(wait * 60)), Span::from_secs(run * 60)), "{text}");
    }
    let text = "submit,start,end\n2021-10-31 01:00:00,2021-10-31 03:10:00,2021-10-31 02:20:00\n";
    let error = with_reading("a.csv", text, &stockholm).unwrap_err().to_string();
    assert!(error.contains("ends before it starts") && error.contains("clocks were set back"), "{error}");
}

#[test]
fn the_first_usable_row_fixes_the_form_of_times() {
    let reading = Reading { skip_bad: Share::new(0.5).unwrap(), ..Reading::default() };
    let text = "submit,run\n2021-10-31 01:30:00Z,x\n1,2\n2,3\n";
    assert_eq!(with_reading("a.csv", text, &reading).unwrap().jobs().len(), 2);
}

#[test]
fn words_for_unknown_give_no_feature_and_job_names_with_a_point_are_not_steps() {
    let trace =
        parse("a.csv", "submit,run,job,user\n1,2,17.0,ann\n1,2,train.py,Unknown\n1,2,3,-1\n").unwrap();
    assert_eq!([0, 1, 2].map(|job| trace.feature(JobId(job), Feature::User)), [1, 0, 0]);
}

#[test]
fn an_unknown_zone_of_a_header_is_quoted() {
    let text = format!("; UnixStartTime: 1\n; TimeZoneString: Middle/Earth\n{SWF}");
    let notes = parse("a.swf", text).unwrap().notes().join("; ");
    assert!(notes.contains("the TimeZoneString `Middle/Earth`"), "{notes}");
}

#[test]
fn a_zone_applies_only_to_dates_without_a_zone() {
    let stockholm = Reading { zone: Some("Europe/Stockholm".parse().unwrap()), ..Reading::default() };
    let text = "submit,run\n2021-10-31 01:30:00,5\n2021-10-31 02:30:00,5\n2021-10-31T01:30:00Z,5\n";
    let trace = with_reading("a.csv", text, &stockholm).unwrap();
    let gaps: Vec<_> = trace.jobs().windows(2).map(|pair| pair[1].arrival - pair[0].arrival).collect();
    assert_eq!((trace.zone(), gaps), (Some(7200), vec![Span::from_secs(3600); 2]));
    let notes = trace.notes().join("; ");
    assert!(notes.contains("in Europe/Stockholm; 1 of them occur twice"), "{notes}");
    let error = complaint("a.csv", text);
    assert!(error.contains("a.csv:2") && error.contains("--zone UTC"), "{error}");
    let own = "submit,run\n2021-10-31T01:30:00Z,5\n";
    for (name, text) in [("a.csv", "submit,run\n1,2\n"), ("a.csv", own), ("a.swf", SWF), ("a.tr", TR)] {
        let notes = with_reading(name, text, &stockholm).unwrap().notes().join("; ");
        assert!(notes.contains("the zone Europe/Stockholm is not used"), "{notes}");
    }
}

#[test]
fn gpus_and_cores_can_be_the_tasks_of_a_job() {
    let text = "submit,run,gpus,cores,tasks\n1,2,0.5,4,1\n2,2,8,,1\n3,2,0,1,1\n";
    let by = |size| {
        let reading = Reading { size: Some(size), ..Reading::default() };
        let trace = with_reading("a.csv", text, &reading).unwrap();
        (trace.jobs().iter().map(|job| job.tasks).collect::<Vec<_>>(), trace.notes().join("; "))
    };
    let (tasks, notes) = by(SizeBy::Gpus);
    assert_eq!(tasks, [1, 8]);
    assert!(notes.contains("1 of jobs without GPUs") && notes.contains("as many tasks as gpus"), "{notes}");
    assert_eq!(by(SizeBy::Cores).0, [4, 1]);
    let plain = parse("a.csv", text).unwrap();
    assert_eq!([0, 1, 2].map(|job| plain.gpus(JobId(job))), [Some(0.5), Some(8.0), None]);
    let feature = |feature| [0, 1, 2].map(|job| plain.feature(JobId(job), feature));
    assert_eq!((feature(Feature::Gpus), feature(Feature::Cores)), ([500, 8000, 0], [4000, 0, 1000]));
    assert_eq!(plain.features(), [Feature::Size, Feature::Hour, Feature::Cores, Feature::Gpus]);
    let reading = Reading { size: Some(SizeBy::Gpus), ..Reading::default() };
    let error = with_reading("a.csv", "submit,run\n1,2\n", &reading).unwrap_err().to_string();
    assert!(error.contains("names no column `gpus`"), "{error}");
    let error = with_reading("a.tr", TR, &reading).unwrap_err().to_string();
    assert!(error.contains("--size is for .csv files"), "{error}");
}

#[test]
fn memory_and_cores_are_read_in_the_unit_of_their_column() {
    let stated = |columns: &str, header: &str, value: &str| {
        let text = format!("submit,run,tasks,{header}\n1,2,4,{value}\n");
        let trace =
            with_columns(&format!("submit=submit,run=run,tasks=tasks,{columns}").parse().unwrap(), &text)?;
        Ok::<_, WorkloadError>((trace.cores(JobId(0)), trace.memory(JobId(0)), trace.gpus(JobId(0))))
    };
    for (columns, header, value, found) in [
        ("memory=m", "m", "2", (None, Some(2.0), None)),
        ("memory=memory_mib", "memory_mib", "2048", (None, Some(2.0), None)),
        ("memory=m:kib/task", "m", "1048576", (None, Some(4.0), None)),
        ("memory=memory_MiB", "memory_MiB", "2048", (None, Some(2.0), None)),
        ("memory=RAM (kB)", "RAM (kB)", "8388608", (None, Some(7.8125), None)),
        ("memory=memTiB", "memTiB", "2", (None, Some(2048.0), None)),
        ("memory=KiB", "KiB", "1048576", (None, Some(1.0), None)),
        ("memory=m:MiB", "m", "2048", (None, Some(2.0), None)),
        ("cores=cpu_milliCores", "cpu_milliCores", "1500", (Some(1.5), None, None)),
        ("cores=AllocCPUS", "AllocCPUS", "2", (Some(2.0), None, None)),
        ("memory=mem_pages:kib", "mem_pages", "1048576", (None, Some(1.0), None)),
        ("cores=cpu_milli", "cpu_milli", "1500", (Some(1.5), None, None)),
        ("cores=cpu:percent/task", "cpu", "50", (Some(2.0), None, None)),
        ("gpus=g", "g", "0.5", (None, None, Some(0.5))),
    ] {
        assert_eq!(stated(columns, header, value).unwrap(), found, "{columns}");
    }
    let error = stated("memory=mem_pages", "mem_pages", "1").unwrap_err().to_string();
    assert!(error.contains("ends in `pages`") && error.contains("memory=mem_pages:UNIT"), "{error}");
    assert!(!error.contains("--skip-bad"), "{error}");
    let error = stated("memory=m:min", "m", "1").unwrap_err().to_string();
    assert!(
        error.contains("--columns memory=m:min: `min` is not a unit of `memory`; units are bytes, kib"),
        "{error}"
    );
}
