#!/usr/bin/env python3
"""Writes azure-cpu.toml and azure-cache.toml from Azure's VM noise data set.

    azure.py FOLDER    # with d8s_v5_westus2_cpu.csv and d8s_v5_westus2_cache.csv, plain or .xz

The files are in vm-noise-data of https://github.com/Azure/AzurePublicDataset (CC-BY-4.0).
"""

import csv
import datetime
import hashlib
import lzma
import pathlib
import statistics
import sys

# A value for each 0.2 % of the samples: the first stands for the slowest 0.2 %, whose middle is p0.1.
VALUES = 500

HEAD = """\
# Machines of Azure: {what} on three long-lived virtual machines, as measured.
# Source: {name}.csv of vm-noise-data in Azure/AzurePublicDataset (CC-BY-4.0; TUNA,
# EuroSys 2025), SHA-256 {sum}, by azure.py.
# Measured: {count} runs of stress-ng's {kind} stressor for 30 s, each relative to the median of its machine:
# {quantiles}; below 0.9: {below:.4f}.
# A healthy core is the 99th percentile, since nothing is faster than healthy: the median has a slowdown of {top:.4f}.
# Assumed: a sample lasts 30 s and says nothing about the next. Samples are {apart:.0f} minutes apart on average, and hardly
# correlated ({correlation:.2f} from one to the next); what happens in between is not in the data. Machines are alike.
# It cannot say: bursts shorter than the 30 s of which a sample is the mean, what other sizes and regions do, and which
# neighbour is to blame.
"""


def speeds(path):
    """The speeds of all samples relative to the median of their machine, sorted, their mean distance in minutes, and their mean correlation."""
    packed = path.with_suffix(".csv.xz")
    content = lzma.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    machines = {}
    for row in csv.DictReader(content.decode().splitlines()):
        machines.setdefault(row["VM_id"], []).append((row["starttime"], float(row["value"])))
    pooled, distances, correlations = [], [], []
    for samples in machines.values():
        times, values = zip(*sorted(samples))
        first, last = (datetime.datetime.fromisoformat(time) for time in (times[0], times[-1]))
        distances.append((last - first).total_seconds() / 60 / (len(times) - 1))
        median = statistics.median(values)
        pooled += [value / median for value in values]
        correlations.append(statistics.correlation(values[:-1], values[1:]))
    means = statistics.mean(distances), statistics.mean(correlations)
    return hashlib.sha256(content).hexdigest(), sorted(pooled), *means


def quantile(values, share):
    """The quantile of sorted values, interpolated."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def main():
    folder = pathlib.Path(sys.argv[1])
    for preset, kind, what in [("azure-cpu", "CPU", "arithmetic"), ("azure-cache", "cache", "cache accesses")]:
        name = f"d8s_v5_westus2_{kind.lower()}"
        checksum, pooled, apart, correlation = speeds(folder / f"{name}.csv")
        top = quantile(pooled, 0.99)
        quantiles = ", ".join(f"p{share:g} {quantile(pooled, share / 100):.4f}" for share in (0.1, 1, 10, 50, 90, 99))
        below = sum(speed < 0.9 for speed in pooled) / len(pooled)
        head = HEAD.format(
            name=name, sum=checksum, kind=kind, what=what, count=f"{len(pooled):,}", quantiles=quantiles, below=below,
            apart=apart, correlation=correlation, top=top,
        )
        middles = ((index + 0.5) / VALUES for index in range(VALUES))
        values = [max(1.0, top / quantile(pooled, share)) for share in middles]
        rows = [", ".join(f"{value:.4f}" for value in values[at:at + 14]) for at in range(0, VALUES, 14)]
        table = "\n".join(f"  {row}," for row in rows)
        text = (
            f'{head}\nscope = "node"\nkind = "{kind.lower()}"\n\n[bernoulli]\nslot = "30s"\nprobability = 1.0\n'
            f"slowdown.empirical.values = [\n{table}\n]\n"
        )
        (pathlib.Path(__file__).parent / f"{preset}.toml").write_text(text)


main()
