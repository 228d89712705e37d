#!/usr/bin/env python3
"""Run the headline figures of each paper and print the verdicts on their claims.

    experiments/reproduce.py                 # all papers, nine minutes on two cores
    experiments/reproduce.py kairos pigeon   # these papers
    experiments/reproduce.py kairos/fig4     # this experiment

Needs Python 3.9 and volary: the program that VOLARY names, or else target/release/volary, which
`cargo build --release` makes. Studies are written to runs/reproduce; a second call runs only what
is missing. Traces that do not come with volary are read from the folders in VOLARY_TRACES; without
them a generator replaces them, and claims say what they give on its jobs.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# Paper and where it appeared, then for each experiment: figure, options for a short run, what to
# compare, and the beginnings of its headline claims.
PAPERS = {
    "latin-square": ("Latin square", "Exton and Rodriguez, *Latin Square Job Scheduling for Distributed "
                     "Data Processing on Warehouse-Scale Computers*", [
        ("latin-square/fig4", "Fig. 4", [],
         "`response_s.mean` of `latin-square` over the arrival rate with the curve of the closed form",
         ["the delay of the latin square is the closed form at λ = 0.5", "latin square is shorter than round-robin"]),
        ("latin-square/fig5-6", "Figs. 5 and 6", [],
         "the distributions of response times (`volary plot`) with the four panels of each figure",
         ["latin square is shortest at every quantile", "the latin square is the most consistent"]),
        ("latin-square/fig7", "Fig. 7", [],
         "the distribution of response times under the mixture",
         ["latin square has the shortest schedule under the mixture"]),
    ]),
    "murmuration": ("Murmuration", "Vijayakumar, Madhavapeddy and Kalyvianaki, *Scheduling for Reduced Tail Task "
                    "Latencies in Highly Utilized Datacenters*, SoCC 2024", [
        ("murmuration/fig9-10", "Figs. 9 and 10", ["--repeat", "1"],
         "the medians and 99th percentiles of patterns A to D with the bars",
         ["pattern A: Murmuration's median", "its tail is smaller than or comparable"]),
        ("murmuration/fig12", "Fig. 12", ["--repeat", "1"],
         "`response_s.p50` of `srjf-thinks`, `sparrow`, `eagle` and `yaq-d-8s` over the number of nodes",
         ["SRJF has the shortest median", "with decision time, the median of SRJF"]),
        ("murmuration/fig16", "Fig. 16", [],
         "percentiles with and without a late scheduler",
         ["performance with and without a late scheduler"]),
    ]),
    "pigeon": ("Pigeon", "Wang et al., *Pigeon: an Effective Distributed, Hierarchical Datacenter Job Scheduler*, "
               "SoCC 2019", [
        ("pigeon/example", "section 4.1, example", [],
         "the ends of the three jobs with the text",
         ["two groups finish the jobs", "one group after 20, 12 and 13"]),
        ("pigeon/fig6-7", "Figs. 6a and 7a", [],
         "percentiles of `response_s` over those of the longest task, of short and long jobs of `pigeon` "
         "and `eagle`, over the number of workers",
         ["at 3,000 workers short jobs are far slower under Eagle", "Pigeon's short jobs take 1.3, 1.5 and 5.3"]),
        ("pigeon/fig6-7-google", "Figs. 6c and 7c", [],
         "the same on the Google trace",
         ["at 15,000 workers Pigeon's short jobs", "as workers are added"]),
    ]),
    "kairos": ("Kairos", "Delgado, Didona, Dinu and Zwaenepoel, *Kairos: Preemptive Data Center Scheduling Without "
               "Runtime Estimates*, SoCC 2018", [
        ("kairos/fig4", "Fig. 4", [],
         "the distribution of completion times with the curves of Kairos, Big-C and FIFO",
         ["Kairos has shorter completion times", "the median is 73 % below that of FIFO",
          "the 99th percentile is 57 % below that of Big-C"]),
        ("kairos/fig8", "Fig. 8", [],
         "percentiles of short and long jobs of `kairos-2` over those of `eagle`",
         ["at high load Kairos shortens short jobs", "the longest jobs pay for it"]),
    ]),
    "park": ("Park's thesis: 3Sigma and DistSched", "Park, *Distribution-Based Cluster Scheduling*, PhD thesis, "
             "Carnegie Mellon University, CMU-CS-19-107, 2019", [
        ("3sigma/fig4-5", "Fig. 4.5", [],
         "which job starts first with the two schedules",
         ["run times that may take all of the slack", "run times that cannot"]),
        ("3sigma/e2e", "Figs. 4.1 and 4.6", [],
         "the share of missed deadlines and the completed work with the bars",
         ["point estimates miss 18 %", "priorities miss 12 %"]),
        ("distsched/fig5-5", "Figs. 5.5 and 5.6", [],
         "the share of missed deadlines and the completed work with the bars",
         ["points miss 2.15 to 2.2 times", "requests complete the least work"]),
        ("distsched/fig5-7", "Figs. 5.7 and 5.8", [],
         "the bars of each part left out with those of all parts",
         ["without distributions it misses 18 %", "and it is the part that contributes most"]),
    ]),
}
# Folders of the experiments of each paper.
FOLDERS = {"park": ["3sigma", "distsched"]}


def volary():
    """The program, which must exist."""
    named = os.environ.get("VOLARY", str(ROOT / "target/release/volary"))
    found = shutil.which(named)
    if found is None:
        sys.exit(f"error: there is no program {named}: run `cargo build --release`, or name one in VOLARY")
    return os.path.abspath(found)


def row_verdicts(table, experiment):
    """The claims of an experiment in a table of `volary report --markdown`, as (claim, verdict)."""
    rows, inside = [], False
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5:
            if cells[0]:
                inside = cells[0].startswith(f"[`{experiment}`]")
            if inside:
                rows.append((cells[3], cells[4]))
    return rows


def verdict(table, experiment, beginning):
    found = [row for row in row_verdicts(table, experiment) if row[0].startswith(beginning)]
    if len(found) != 1:
        sys.exit(f"error: {experiment} has {len(found)} claims that begin with \"{beginning}\"")
    return found[0]


def run(program, experiment, options):
    """Runs an experiment; returns its claims as a table and as values, CPU-seconds and peak memory in bytes."""
    out = ROOT / "runs/reproduce" / experiment.replace("/", "-")
    file = f"experiments/{experiment}.toml"
    command = [program, "run", file, *options, "--resume=auto", "--no-report", "--quiet", "--out", str(out)]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit(f"error: `volary run {file}` failed; its message is above")
    table = subprocess.run([program, "report", str(out), "--markdown"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout
    engines = [run["engine"] for run in json_lines(out / "summary.jsonl")]
    return (table, json_lines(out / "claims.jsonl"), sum(engine["cpu_s"] for engine in engines),
            max(engine["peak_rss_bytes"] for engine in engines))


def json_lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


# Limit on the comparisons of a claim that are shown.
SHOWN = 3


def measured(claims, says):
    """The numbers of a claim: those that it compares with published ones, or else the sides of its checks."""
    claim = next(claim for claim in claims if claim["says"] == says.replace("\\|", "|"))
    found = [value for value in claim["measured"].values()
             if all(isinstance(value.get(side), (int, float)) for side in ("left", "right"))]
    sized = [value for value in found if value.get("size")]
    texts = []
    for value in sized or found:
        scale, unit = {"s": (1, " s"), "share": (100, " %")}.get(value.get("unit"), (1, ""))
        left, right = (digits(value[side] * scale) + unit for side in ("left", "right"))
        texts.append(f"{left}, published {right}" if sized else f"{left} against {right}")
    more = [f"and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return "; ".join([*texts[:SHOWN], *more])


def digits(number):
    """Three significant digits, or all digits of a whole number."""
    places = 2 - math.floor(math.log10(abs(number))) if number else 0
    return f"{number:,.{max(places, 0)}f}"


def trace_of(experiment):
    """The entry of the trace that an experiment reads and that does not come with volary, or None."""
    text = (HERE / f"{experiment}.toml").read_text()
    return re.search(r'^fallback = "(.*)"', text, re.M) and re.search(r'^file = "(.*)"', text, re.M)[1]


def cost(cpu_s):
    return f"{cpu_s / 60:.0f} CPU-minutes" if cpu_s >= 100 else f"{max(cpu_s, 1):.0f} CPU-s"


HEAD = """# Reproducing the papers

<!-- Generated: experiments/reproduce.py --page -->

Each paper's headline figures from a fresh clone, one command each, with the claims they are about and the verdicts. All
of them together take nine minutes on two cores, about {memory} of memory and 2.5 GB in `runs/reproduce`:

```sh
cargo build --release
experiments/reproduce.py          # or with names: {names}, or kairos/fig4
```

It needs Python 3.9; the build takes three minutes on two cores. A second call runs only what is missing, and takes half
a minute for the tables. `VOLARY` may name another program than `target/release/volary`, which the commands below, one
for each figure, call `volary`. The script prints the verdicts; `volary report FOLDER` then shows a study of
`runs/reproduce`, with a report for the browser. Warnings about loads above 1 are expected: some figures have them.

The Google trace of `pigeon/fig6-7-google` and `kairos/fig8` comes with volary. Yahoo's trace may not be redistributed:
without it ([where it is](../docs/src/trace-sources.md)) a generator with its measured distributions replaces it, claims
of papers are *not tested*, and the verdict says what they give on the generator's jobs.

Verdicts "with all seeds and its trace" are those of [the results](README.md), and the findings of each paper say why
claims fail. The last column has measured numbers, each beside the published one or, in a claim about an order, beside
the number that it is compared with. CPU times are those of the runs without their tables, on one machine. In virtual
time equal seeds give equal results, so the verdicts must be the same on yours: the script says where one differs, and
ends with status 1.
"""


def figures_of(name):
    """All experiments of a paper as a table: figure, cost and trace, by the heads of their files."""
    rows = ["All experiments on this paper:\n", "| experiment | of | cost | trace |", "|---|---|---|---|"]
    for folder in FOLDERS.get(name, [name]):
        for file in sorted((HERE / folder).glob("**/*.toml")):
            experiment, text = str(file.relative_to(HERE).with_suffix("")), file.read_text()
            found = re.search(r"^# .*volary run .*?# (.*)", text, re.M)
            source = re.search(r'^source = "(.*)"', text, re.M)
            rows.append(f"| [`{experiment}`]({experiment}.toml) | {source[1] if source else ''} | "
                        f"{found[1] if found else ''} | {trace_of(experiment) or ''} |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"a paper ({', '.join(PAPERS)}) or an experiment; all if absent")
    parser.add_argument("--page", action="store_true", help="write experiments/REPRODUCE.md; without names")
    args = parser.parse_args()
    page = args.page
    names = PAPERS.keys() | {figure[0] for *_, figures in PAPERS.values() for figure in figures}
    unknown = [name for name in args.names if name not in names]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose {', '.join(PAPERS)}, or an experiment of REPRODUCE.md")
    if page and args.names:
        parser.error("--page takes all papers: leave out the names")
    if page:
        os.environ.pop("VOLARY_TRACES", None)
    program, results = volary(), (HERE / "README.md").read_text()
    known = "" if page else (HERE / "REPRODUCE.md").read_text()
    differ = 0
    sections, largest = [], 0
    for name, (title, cited, all_figures) in PAPERS.items():
        figures = [figure for figure in all_figures if not args.names or {name, figure[0]} & set(args.names)]
        if not figures:
            continue
        print(f"\n{title}", flush=True)
        pages = [f"[{page}](../docs/src/findings/{page}.md)" for page in FOLDERS.get(name, [name])]
        section = [f"## {title}\n", f"{cited}. Findings: {', '.join(pages)}.\n"]
        for experiment, figure, options, compare, claims in figures:
            table, checked, cpu_s, memory = run(program, experiment, options)
            largest = max(largest, memory)
            trace = trace_of(experiment)
            print(f"  {figure}: {experiment} ({cost(cpu_s)})")
            command = " ".join(["volary run", f"experiments/{experiment}.toml", *options])
            section += [f"### {figure}\n", f"```sh\n{command}\n```\n",
                        f"[`{experiment}`]({experiment}.toml): {cost(cpu_s)}, {memory / 2**20:.0f} MiB. Compare {compare}."
                        + (f" Its trace is `{trace}` in VOLARY_TRACES." if trace else "") + "\n",
                        f"{len(claims)} of its {len(checked)} claims; `volary report` shows all:\n",
                        "| claim | with all seeds and its trace | from a fresh clone | measured |",
                        "|---|---|---|---|"]
            for beginning in claims:
                says, here = verdict(table, experiment, beginning)
                numbers = measured(checked, says)
                print(f"    {here.replace('*', '')}: {says}" + (f"\n      {numbers}" if numbers else ""), flush=True)
                whole = verdict(results, experiment, beginning)[1]
                if not page and f"| {says} | {whole} | {here} |" not in known and here != whole:
                    print("      differs from REPRODUCE.md")
                    differ += 1
                section.append(f"| {says} | {whole} | {here} | {numbers} |")
            section.append("")
        sections.append("\n".join([*section, figures_of(name)]))
    if page:
        head = HEAD.format(memory=f"{largest / 2**30 + 0.05:.1f} GiB", names=", ".join(PAPERS))
        (HERE / "REPRODUCE.md").write_text("\n".join([head, *sections]))
    print(f"\nStudies are in {ROOT / 'runs/reproduce'}; `volary report FOLDER` shows one and writes its report.")
    if differ:
        sys.exit(f"error: {differ} verdicts differ from those of REPRODUCE.md")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command continues")
