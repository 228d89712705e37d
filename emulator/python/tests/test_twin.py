"""The Python twin of `emulator/examples/reserved` against the crate: equal runs in virtual time, event by event."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VOLARY = os.environ.get("VOLARY")
#: The program of the crate, which `cargo test --workspace` builds beside volary.
CRATE = Path(VOLARY).parent / "examples/reserved" if VOLARY else Path("missing")
#: Number of seeds with faults.
SEEDS = int(os.environ.get("VOLARY_TWIN_SEEDS", "10"))


@unittest.skipUnless(CRATE.exists(), "needs VOLARY and the example reserved beside it")
class TwinTest(unittest.TestCase):
    def run_of(self, program, file, policy, seeds):
        """Order hash and number of finished jobs of each run."""
        with tempfile.TemporaryDirectory() as folder:
            command = [program, "run", file, "--policy", policy, "--repeat", str(seeds), "--json", "--quiet"]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "emulator/python")}
            ran = subprocess.run(
                [*command, "--out", f"{folder}/r"], capture_output=True, text=True, env=environment, check=False
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        runs = [line for line in lines if "engine" in line]
        return [(run["seed"], run["engine"]["order_hash"], run["jobs"]["finished"]) for run in runs]

    def test_the_twin_has_the_order_of_events_of_the_crate(self):
        examples = ROOT / "emulator/examples"
        for name, seeds in (("experiment", 2), ("faults", SEEDS)):
            text = (examples / f"reserved/{name}.toml").read_text()
            twin = f'external = {{ command = ["python3", "{examples}/python/reserved.py"], level = "actor" }}'
            text = text.replace('"reserved.', '"external.').replace("reserved = {}", twin)
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
                file.write(text)
                file.flush()
                crate = self.run_of(CRATE, examples / f"reserved/{name}.toml", "reserved", seeds)
                self.assertEqual(self.run_of(VOLARY, file.name, "external", seeds), crate)


if __name__ == "__main__":
    unittest.main()
