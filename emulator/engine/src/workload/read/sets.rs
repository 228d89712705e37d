//! Column sets of published tables: the meanings of the columns of each known table, in the words of `--columns`. A set
//! applies to a header that has all its columns, and where `--columns` gives its name; one set applies only by its
//! name.

use std::path::Path;
use std::str::FromStr;

use super::columns::{ColumnNames, ColumnSet, Named};

const NO_SET: ColumnSet = ColumnSet {
    name: "",
    required: "",
    optional: "",
    note: "",
    begins_earlier: false,
    by_name_only: false,
    bare: None,
};

/// The sets. If several fit, the first applies.
static SETS: [ColumnSet; 11] = [
    // GPU jobs of Microsoft's Philly, as the simulators of Sia and ElasticFlow hold them.
    ColumnSet {
        name: "philly",
        required: "submit=timestamp,run=duration,gpus=num_gpus",
        optional: "queue=cluster",
        ..NO_SET
    },
    // SenseTime's Helios, `cluster_log.csv`: `queue` is the wait.
    ColumnSet {
        name: "helios",
        required: "user=user,submit=submit_time,run=duration,wait=queue,gpus=gpu_num,cores=cpu_num,nodes=node_num,\
                   outcome=state",
        optional: "class=vc,name=jobname",
        ..NO_SET
    },
    // SLURM's accounting: `sacct --allusers --parsable2 --format=JobID,Submit,Start,End,State,…`.
    ColumnSet {
        name: "sacct",
        required: "job=JobID,submit=Submit,start=Start,end=End,outcome=State",
        optional: "user=User,class=Account,queue=Partition,name=JobName,nodes=NNodes,nodes=AllocNodes,cores=AllocCPUS,\
                   cores=NCPUS,requested=Timelimit",
        ..NO_SET
    },
    // Alibaba's cluster-trace-gpu-v2023: pods.
    ColumnSet {
        name: "openb",
        required: "submit=creation_time,start=scheduled_time,end=deletion_time,cores=cpu_milli,memory=memory_mib,\
                   gpus=num_gpu",
        optional: "class=qos",
        note: "fractions of a GPU (`gpu_milli`) are not read: a pod counts its whole GPUs",
        ..NO_SET
    },
    // Alibaba's cluster-trace-gpu-v2025: instances of models for recommendations.
    ColumnSet {
        name: "alibaba-2025",
        required: "submit=creation_time,start=scheduled_time,end=deletion_time,cores=cpu_request,memory=memory_request,\
                   gpus=gpu_request",
        optional: "class=role,application=app_name",
        ..NO_SET
    },
    // Table `vm` of Azure's traces for packing of 2020; times are days.
    ColumnSet {
        name: "azure-packing",
        required: "user=tenantId,submit=starttime:d,start=starttime:d,end=endtime:d",
        optional: "class=vmTypeId,priority=priority",
        note: "virtual machines arrive when they start",
        begins_earlier: true,
        ..NO_SET
    },
    // Requests to language models: Azure's of 2023 and 2024, and Mooncake's. They state tokens, not times.
    ColumnSet {
        name: "azure-llm",
        required: "submit=TIMESTAMP,run=GeneratedTokens:30ms",
        note: PER_TOKEN,
        ..NO_SET
    },
    ColumnSet {
        name: "mooncake",
        required: "submit=timestamp:ms,run=output_length:30ms",
        note: PER_TOKEN,
        ..NO_SET
    },
    // Alibaba's cluster-trace-gpu-v2020: tasks of jobs of its platform for machine learning.
    ColumnSet {
        name: "alibaba-2020",
        required: "submit=start_time,start=start_time,end=end_time,tasks=inst_num,outcome=status,\
                   cores=plan_cpu:percent/task,memory=plan_mem:gib/task,gpus=plan_gpu:percent/task",
        optional: "class=gpu_type,name=task_name",
        note: "each row of tasks is a job, which arrives when it starts: the table does not say when it was submitted",
        bare: Some((
            "pai_task_table",
            "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
        )),
        ..NO_SET
    },
    // The same jobs as the simulator beside that trace reads them.
    ColumnSet {
        name: "pai",
        required: "submit=submit_time,run=duration,tasks=num_inst,cores=num_cpu:cores/task,gpus=num_gpu:gpus/task",
        optional: "user=user,class=gpu_type,name=group",
        ..NO_SET
    },
    // LANL's Mustang, and other traces, as the simulator GAIA holds them: its files of 100,000 jobs count in hours, and
    // its excerpts such as `pai_1k.csv` in seconds under the same headings.
    ColumnSet {
        name: "mustang",
        required: "submit=arrival_time:h,run=length:h,cores=cpus",
        by_name_only: true,
        ..NO_SET
    },
];

const PER_TOKEN: &str = "run times are assumed: 30 ms for each token that was generated; \
    --columns submit=COLUMN,run=COLUMN:10ms states another time";

impl FromStr for ColumnNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(set) = SETS.iter().find(|set| set.name == text.trim()) {
            return set
                .columns()
                .ok_or_else(|| format!("the columns of `{text}` are wrong; this is a bug in volary"));
        }
        if text.contains('=') {
            return Self::of_pairs(text);
        }
        let known: Vec<_> = SETS.iter().map(|set| set.name).collect();
        let pairs = "write pairs such as user=user_ID,submit=submit_time";
        Err(format!("no table is called `{text}`: {}; or {pairs}", known.join(", ")))
    }
}

/// The set of a table with these columns.
pub(super) fn of_header(cells: &[String]) -> Option<ColumnNames> {
    SETS.iter()
        .filter(|set| !set.by_name_only)
        .filter_map(ColumnSet::columns)
        .find(|columns| columns.fit(cells))
}

/// The header of a published file that has none.
pub(super) fn bare_header(file: &Path) -> Option<&'static str> {
    let stem = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next())?;
    SETS.iter().filter_map(|set| set.bare).find(|(file, _)| *file == stem).map(|(_, header)| header)
}

impl TryFrom<String> for ColumnNames {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl ColumnSet {
    fn columns(&'static self) -> Option<ColumnNames> {
        let named = |list: &str, is_optional| -> Option<Vec<Named>> {
            let parts = list.split(',').filter(|part| !part.is_empty());
            parts.map(|part| Named::new(part, is_optional).ok()).collect()
        };
        let mut all = named(self.required, false)?;
        all.extend(named(self.optional, true)?);
        Some(ColumnNames::of_set(all, self))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use volary_actors::base::{Feature, JobId, Span};

    use super::super::Reading;
    use super::*;
    use crate::workload::{Outcome, Trace};

    #[test]
    fn every_set_is_written_as_the_option_is() {
        let all: Vec<_> = SETS.iter().filter_map(ColumnSet::columns).collect();
        assert_eq!(all.len(), SETS.len());
        for set in &SETS {
            assert!(set.required.parse::<ColumnNames>().is_ok(), "{}", set.name);
        }
        let error = "phily".parse::<ColumnNames>().unwrap_err();
        assert!(
            error.contains("called `phily`: philly, helios, sacct") && error.contains("user=user_ID"),
            "{error}"
        );
    }

    #[test]
    fn names_on_the_command_line_are_checked() {
        for text in ["user=user_ID,submit=at,run=took:min", "philly"] {
            assert_eq!(String::from(text.parse::<ColumnNames>().unwrap()), text);
        }
        let error = "usr=user_ID".parse::<ColumnNames>().unwrap_err();
        assert!(error.contains("`usr`") && error.contains("lname"), "{error}");
        assert!("user=a,b".parse::<ColumnNames>().unwrap_err().contains("`b` is not a pair"));
        let error = "user=a,submit=b,user=c".parse::<ColumnNames>().unwrap_err();
        assert!(error.contains("`user` is given twice, as `a` and `c`"), "{error}");
    }

    fn read(name: &str, text: &str) -> Trace {
        // The one table that is not recognised has this name.
        let columns = name.strip_suffix(".named.csv").map(|set| set.parse().unwrap());
        let reading = Reading { zone: Some("UTC".parse().unwrap()), columns, ..Reading::default() };
        Trace::parse_with(Path::new(name), Cursor::new(text.to_owned()), &reading, Vec::new())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// An excerpt of a table as published, and the expected first job.
    struct Excerpt {
        set: &'static str,
        file: &'static str,
        text: &'static str,
        /// Run time and wait, s.
        times: (f64, Option<u64>),
        tasks: u32,
        /// Cores, GPUs, and memory in GiB.
        amounts: [Option<f32>; 3],
    }

    const EXCERPTS: [Excerpt; 11] = [
        Excerpt {
            set: "philly",
            file: "p.csv",
            text: "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,11cb48\n",
            times: (66.0, None),
            tasks: 1,
            amounts: [None, Some(2.0), None],
        },
        Excerpt {
            set: "helios",
            file: "cluster_log.csv",
            text: "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                 7,uX,vcJ,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:36,246,3\n\
                 8,uX,vcJ,1,4,1,RUNNING,2020-06-09 18:41:27,,,,\n",
            times: (246.0, Some(3)),
            tasks: 2,
            amounts: [Some(64.0), Some(16.0), None],
        },
        Excerpt {
            set: "sacct",
            file: "jobs.txt",
            text: "JobID|User|Account|Partition|Submit|Start|End|State|NNodes|AllocCPUS|Timelimit|\n\
                 17|ann|a|gpu|2024-01-02T03:00:00|2024-01-02T03:00:05|2024-01-02T04:00:05|COMPLETED|2|8|02:00:00|\n\
                 17.batch||a||2024-01-02T03:00:05|2024-01-02T03:00:05|2024-01-02T04:00:05|COMPLETED|1|4||\n\
                 18|bob|a|gpu|2024-01-02T03:00:00|Unknown|Unknown|PENDING|2|8|02:00:00|\n\
                 19|bob|a|gpu|2024-01-02T03:00:00|None|2024-01-02T03:00:09|CANCELLED by 5|2|0|02:00:00|\n",
            times: (3600.0, Some(5)),
            tasks: 2,
            amounts: [Some(8.0), None, None],
        },
        Excerpt {
            set: "openb",
            file: "openb.csv",
            text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
                 scheduled_time\np0,12500,16384,1,460,,LS,Running,0,120,20\np1,1000,1024,0,0,,BE,Pending,5,120,\n",
            times: (100.0, Some(20)),
            tasks: 1,
            amounts: [Some(12.5), Some(1.0), Some(16.0)],
        },
        Excerpt {
            set: "alibaba-2025",
            file: "dlrm.csv",
            text: "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,scheduled_time,\
                 deletion_time\ni0,HN,app_0,12,1,120.0,,,\ni1,CN,app_0,12,0,120.0,5,6,10\n",
            times: (4.0, Some(1)),
            tasks: 1,
            amounts: [Some(12.0), None, Some(120.0)],
        },
        Excerpt {
            set: "azure-packing",
            file: "vm.csv",
            text: "vmId,tenantId,vmTypeId,priority,starttime,endtime\n0,5,3,1,-2.5,0.5\n1,5,3,1,0.25,0.5\n2,5,3,1,0.3,\n",
            times: (21_600.0, Some(0)),
            tasks: 1,
            amounts: [None; 3],
        },
        Excerpt {
            set: "azure-llm",
            file: "conv.csv",
            text: "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n",
            times: (1.32, None),
            tasks: 1,
            amounts: [None; 3],
        },
        Excerpt {
            set: "mooncake",
            file: "conversation_trace.jsonl",
            text: "{\"timestamp\": 27, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1]}\n",
            times: (15.0, None),
            tasks: 1,
            amounts: [None; 3],
        },
        Excerpt {
            set: "alibaba-2020",
            file: "pai_task_table.csv",
            text: "aaa,worker,3,Terminated,10.0,110.0,600.0,29.5,50.0,T4\nbbb,ps,1,Running,10.0,,600.0,29.5,,\n",
            times: (100.0, Some(0)),
            tasks: 3,
            amounts: [Some(18.0), Some(1.5), Some(88.5)],
        },
        Excerpt {
            set: "pai",
            file: "pai_job_no_estimate_100K.csv",
            text: "job_id,user,gpu_type,num_inst,submit_time,num_gpu,duration,num_cpu\n0,u,V100,2,0,0.5,30,4\n",
            times: (30.0, None),
            tasks: 2,
            amounts: [Some(8.0), Some(1.0), None],
        },
        Excerpt {
            set: "mustang",
            file: "mustang.named.csv",
            text: "arrival_time,length,cpus\n0.0,0.5,128\n",
            times: (1800.0, None),
            tasks: 1,
            amounts: [Some(128.0), None, None],
        },
    ];

    #[test]
    fn published_tables_need_no_options_but_a_zone() {
        assert!(
            EXCERPTS.iter().map(|excerpt| excerpt.set).eq(SETS.iter().map(|set| set.name)),
            "each set has an excerpt"
        );
        for Excerpt { set, file, text, times: (run, wait), tasks, amounts } in EXCERPTS {
            let (trace, first) = (read(file, text), JobId(0));
            let told = format!("the columns are those of `{set}`");
            assert!(trace.notes().iter().any(|note| note.starts_with(&told)), "{set}: {:?}", trace.notes());
            assert_eq!((trace.jobs().len(), trace.jobs()[0].tasks), (1, tasks), "{set}");
            assert_eq!(trace.run(first), Span::from_secs_f64(run), "{set}");
            assert_eq!(trace.wait(first), wait.map(Span::from_secs), "{set}");
            assert_eq!([trace.cores(first), trace.gpus(first), trace.memory(first)], amounts, "{set}");
        }
    }

    #[test]
    fn rows_of_known_tables_that_are_no_jobs_are_counted() {
        let sacct =
            "JobID|Submit|Start|End|State\n17|1|2|3|COMPLETED\n17.0|1|2|3|COMPLETED\n17_3|1|2|3|FAILED\n";
        let trace = read("s.csv", sacct);
        assert!(trace.notes().iter().any(|note| note == "1 row skipped: 1 of steps of a job"));
        assert_eq!(trace.outcome(JobId(1)), Some(Outcome::Failed));
        let packing = read("v.csv", "tenantId,starttime,endtime\n1,-1.5,2\n1,-1,2\n1,1,2\n");
        let notes = packing.notes().join("; ");
        assert!(notes.contains("1 of jobs from before the table began, 1 with a blank cell"), "{notes}");
    }

    /// `--columns` with the name of a table reads a file that has all its columns.
    #[test]
    fn the_name_of_a_known_table_selects_its_columns() {
        let columns = Some("philly".parse().unwrap());
        let reading = Reading { columns, ..Reading::default() };
        let parse = |text: &'static str| {
            Trace::parse_with(Path::new("a.csv"), Cursor::new(text), &reading, Vec::new())
        };
        let trace = parse("num_gpus,timestamp,duration,cluster\n1,5,6,a\n").unwrap();
        assert!(trace.states(Feature::Queue));
        let error = parse("timestamp,duration\n5,6\n").unwrap_err().to_string();
        assert!(error.contains("there is no column `num_gpus`"), "{error}");
    }
}
