#!/usr/bin/env python3
"""Fits classes of jobs to the Google excerpt, for the mix of e2e.toml.

    fit-classes.py google2011_first19h.tr.xz google2011_first19h_features.csv.xz > ../mixes/google.toml
    fit-classes.py google2011_first19h.tr.xz google2011_first19h_features.csv.xz 0.1 all > ../mixes/google-repeated.toml

The first file has a job a line: arrival, number of tasks, mean, and the duration of each task, in s; the second has its
user, name and logical name in the same order. As in Park's thesis (section 4.4.1) jobs with more than 256 tasks are left
out, and the others are clustered by k-means on their run times, here on their logarithms. Jobs of more than an hour are
left out as well: what remains needs 1.26 node-hours a job, as many as the thesis' 600 jobs in two hours at a load of 1.4.

A class has the share of its jobs; a log-normal distribution of run times; numbers of tasks in 50 parts of equal probability, each
with its mean; and names. A name of the mix is a logical name of the trace, which is the feature that predicts best
there. Names recur as often as in the trace, as many jobs to a name, and jobs of a name vary as in it. With a third
argument jobs of a name vary by that part of what they vary by in the trace, and with "all" every job has a name that
recurs.
"""

import collections
import csv
import lzma
import math
import statistics
import sys

CLASSES = 8
NODES = 256  # of the cluster
LONGEST = 3600.0  # s
PARTS = 50  # values of a distribution of numbers of tasks
JOBS = 3_600  # of the experiment, with history


def jobs(trace, features):
    """(run time, tasks, logical name, user) of the jobs that fit."""
    with lzma.open(trace, "rt") as text:
        shapes = [(max(map(float, line.split()[3:])), int(line.split()[1])) for line in text]
    with lzma.open(features, "rt") as text:
        who = [(row["lname"], row["user"]) for row in csv.DictReader(text)]
    return [(run, tasks, *of) for (run, tasks), of in zip(shapes, who) if tasks <= NODES and run <= LONGEST]


def clusters(values, k):
    """The boundaries between the clusters of Lloyd's algorithm, begun at quantiles."""
    values = sorted(values)
    centres = [values[(2 * i + 1) * len(values) // (2 * k)] for i in range(k)]
    while True:
        bounds = [(a + b) / 2 for a, b in zip(centres, centres[1:])]
        parts, at = [[] for _ in range(k)], 0
        for value in values:
            while at < k - 1 and value >= bounds[at]:
                at += 1
            parts[at].append(value)
        moved = [statistics.fmean(part) if part else centre for part, centre in zip(parts, centres)]
        if moved == centres:
            return bounds
        centres = moved


def in_parts(values):
    """The means of equal parts of the sorted values."""
    values = sorted(values)
    edge = [i * len(values) // PARTS for i in range(PARTS + 1)]
    return [max(1, round(statistics.fmean(values[a:b]))) for a, b in zip(edge, edge[1:])]


def main(trace, features, variation="1", recurring="as in the trace"):
    kept = jobs(trace, features)
    by_name = collections.defaultdict(list)
    for run, _, name, _ in kept:
        by_name[name].append(run)
    bounds = clusters([math.log(run) for run, *_ in kept], CLASSES)
    classes = collections.defaultdict(list)
    for job in kept:
        classes[sum(math.log(job[0]) >= bound for bound in bounds)].append(job)
    hours = sum(run * tasks for run, tasks, *_ in kept) / 3600 / len(kept)
    print("# Classes of jobs like those of the Google excerpt of 2011: printed by fit-classes.py from")
    print(f"# {len(kept)} jobs of at most {NODES} tasks and an hour, which need {hours:.3f} node-hours on average.")
    if (variation, recurring) != ("1", "as in the trace"):
        who = "All jobs recur" if recurring == "all" else "Jobs recur as in the excerpt"
        print(f"# {who}, and those of a name vary by {variation} of what they vary by there.")
    for at in sorted(classes):
        some = classes[at]
        logs = [math.log(run) for run, *_ in some]
        known = [(name, user) for _, _, name, user in some if len(by_name[name]) > 1]
        names = len({name for name, _ in known})
        # Of those, with as many jobs of the mix to a name as there are jobs of the trace.
        ours = max(1, round(names * JOBS / len(kept)))
        users = min(ours, len({user for _, user in known}))
        # Weighted by jobs: a job meets the variation of its own name.
        spreads = [statistics.pstdev(by_name[name]) / statistics.fmean(by_name[name]) for name, _ in known]
        median, sigma = math.exp(statistics.fmean(logs)), statistics.pstdev(logs)
        distribution = f'{{ lognormal = {{ median = "{median:.1f}s", sigma = {sigma:.3f} }} }}'
        tasks = f"{{ empirical = {{ values = {in_parts([tasks for _, tasks, *_ in some])} }} }}"
        print(f'\n[[class]]\nname = "about-{median:.0f}s"\nweight = {len(some) / len(kept):.4f}')
        recurrence = 1.0 if recurring == "all" else len(known) / len(some)
        print(f"names = {ours}\nusers = {users}\nrecurrence = {recurrence:.3f}")
        print(f"spread = {statistics.fmean(spreads) * float(variation):.3f}")
        print(f"stages = [{{ tasks = {tasks}, demand = {distribution} }}]")


if __name__ == "__main__":
    main(*sys.argv[1:])
