"""`python -m volary` is `volary`."""

import os
import subprocess
import sys

from volary._program import program

if __name__ == "__main__":
    command = [program(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.run(command, check=False).returncode)
