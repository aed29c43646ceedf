"""`python -m calls SEED COUNT`, in tests/: COUNT random calls in processes of 2,000, and what was wrong with them.

`python -m calls graphs SEED COUNT`: random graphs instead, which hooks, threads and shapes change at any time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

EACH = 2000


def run(first: int, count: int, script: str = "caller") -> list[str]:
    """What was wrong with `count` calls or graphs; after a crash it goes on behind it."""
    found: list[str] = []
    end = first + count
    while first < end:
        n = min(EACH, end - first)
        with tempfile.TemporaryDirectory() as folder:  # what saves something saves it here
            command = [sys.executable, str(Path(__file__).parent / f"{script}.py"), str(first), str(n)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=folder)
        lines = done.stdout.splitlines()
        found += [line for line in lines if " " in line]
        first += n
        if done.returncode:
            last = int(lines[-1].split()[0]) if lines else first - n
            error = done.stderr.strip().splitlines()[-1:]
            found.append(f"{last} the process ended with {done.returncode}: {' '.join(error)}")
            first = last + 1
    return found


def main() -> None:
    script = "graphs" if sys.argv[1] == "graphs" else "caller"
    first, count = int(sys.argv[-2]), int(sys.argv[-1])
    found = run(first, count, script)
    print("\n".join(found))
    print(f"{count} {'graphs' if script == 'graphs' else 'calls'}, {len(found)} wrong")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
