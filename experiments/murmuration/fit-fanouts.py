#!/usr/bin/env python3
"""Fits the numbers of tasks of the Cloudera trace's long jobs to waits in the authors' outputs.

    fit-fanouts.py TRACE.csv.xz OUTPUT... > FITTED.csv

TRACE has the columns job, arrival_s, mean_s and a number of tasks; OUTPUT are runs of csesmita/kubernetes-helper, in
results/simulation/rebuttal/1000X_CCc/run[2-5]/m.10000J.1000X.1000N.1000S.CCc: first come, first served on 1,000 nodes,
where all jobs arrive within 123 s and the work takes 1.7 million seconds. The mean wait of a job's tasks is then the
work ahead of the job and half its own, over the nodes. The tasks of a long job are as many as make the work of all
jobs up to the next long one that of the outputs; short jobs keep those of the trace.
docs/src/findings/murmuration.md says under fig13.toml what that trace shows.
"""

import csv
import lzma
import re
import statistics
import sys

NODES = 1000
CUTOFF = 272.783  # s, as in fig13.toml
MOST = 51_834  # tasks of the largest job (Pigeon paper, Table 1)


def waits(path):
    """Mean wait of the tasks of each job, in s."""
    line = re.compile(r"job_id:\s+(\d+).*average w2x\s+(\S+)")
    with open(path, encoding="utf-8") as text:
        return {int(found[1]): float(found[2]) for found in map(line.search, text) if found}


def main(trace, *outputs):
    with lzma.open(trace, "rt") as text:
        rows = [(int(job), arrival, float(mean), int(tasks)) for job, arrival, mean, tasks in list(csv.reader(text))[1:]]
    runs = [waits(path) for path in outputs]
    ahead = {job: NODES * statistics.fmean(run[job] for run in runs) for job, *_ in rows}
    long = [at for at, (_, _, mean, _) in enumerate(rows) if mean >= CUTOFF]
    done, fitted, begin = 0.0, {}, 0
    for at, following in zip(long, long[1:] + [len(rows)]):
        done += sum(mean * tasks for _, _, mean, tasks in rows[begin:at])
        # The work up to this job, as each short job before the next long one tells it.
        told, since = [], 0.0
        for job, _, mean, tasks in rows[at + 1 : following]:
            told.append(ahead[job] - since - mean * tasks / 2)
            since += mean * tasks
        job, _, mean, _ = rows[at]
        target = statistics.median(told) if told else 2 * ahead[job] - done
        fitted[at] = min(MOST, max(1, round((target - done) / mean)))
        done += mean * fitted[at]
        begin = at + 1
    out = csv.writer(sys.stdout)
    out.writerow(["job", "arrival_s", "mean_s", "ntasks"])
    out.writerows([job, arrival, mean, fitted.get(at, tasks)] for at, (job, arrival, mean, tasks) in enumerate(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
