"""Checks of an installed wheel, with pandas and pyarrow: wheel.py EXPERIMENT FOLDER."""

import sys
from pathlib import Path

import pandas
import volary

experiment, folder = sys.argv[1], Path(sys.argv[2])


def refused(status, call):
    try:
        call()
    except volary.VolaryError as error:
        assert error.status == status, error
    else:
        raise AssertionError(f"not refused with {status}")


lines = volary.run(experiment, out=folder)
assert {line["policy"] for line in lines} >= {"latin-square", "sparrow"}, lines
assert all(claim["verdict"] == "holds" for claim in volary.claims(folder))

# The frames agree with the results: one row per run, and the quantiles of jobs are those of the summary.
run = volary.load(folder)
p99 = {line["policy"]: line["response_s"]["p99"] for line in lines}
assert run.runs.set_index("policy")["response_s.p99"].to_dict() == p99
of_jobs = run.jobs.groupby("policy")["response_s"].quantile(0.99)
pandas.testing.assert_series_equal(of_jobs, pandas.Series(p99), check_names=False, check_like=True, rtol=1e-9)
assert set(run.tasks["run"]) == set(run.runs["run"])
assert list(run.claims["verdict"]) == ["holds"] * 3
assert len(run.staleness) == 0 and "age_of_information_s" in run.staleness.columns

# Figures are drawn by the program.
assert "sparrow" in run.plot("cdf", policy="sparrow").svg
figure = run.plot("cdf", policy=["sparrow", "random"], width="double")
assert figure._repr_svg_() == figure.svg and "sparrow" in figure.svg and "latin-square" not in figure.svg
for suffix, begins in ((".svg", b"<svg"), (".pdf", b"%PDF"), (".png", b"\x89PNG")):
    file = folder / f"figure{suffix}"
    figure.save(file)
    assert file.read_bytes().startswith(begins), file



# A policy in Python, served by this process.
@volary.policy
def two_choices(task, cluster):
    return min(cluster.sample(2), key=lambda node: node.load, default=None)


served = volary.run(experiment, "--policy", "two-choices", policies={"two-choices": two_choices})
assert list(served.runs["jobs.finished"]) == [lines[0]["jobs"]["finished"]]

refused(2, lambda: run.plot("nothing"))
refused(2, lambda: volary.run("missing.toml", out=folder / "none"))
print(run.runs[["policy", "response_s.p50", "response_s.p99"]].to_string(index=False))
