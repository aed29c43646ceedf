"""Asks NNabla the questions of member_probes.py and truth_probes.py, and writes members.json for the tests.

    NNRS_TEST_MODULE=nnabla python tests/golden/make_members.py     # with nnabla 1.39

Each answer comes from a forked process of its own batch: what ends the process counts as "crash".
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("NNRS_TEST_MODULE", "nnabla")
sys.path.insert(0, str(Path(__file__).parent.parent))

import member_probes  # noqa: E402
import truth_probes  # noqa: E402

FORK = multiprocessing.get_context("fork")


def survived(questions: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """The answers; "crash" for a question that ends the process."""
    answers: dict[str, Any] = {}
    while left := [q for q in questions if q not in answers]:
        here, there = FORK.Pipe(False)
        child = FORK.Process(target=_work, args=(left, questions, there))
        child.start()
        there.close()
        try:
            while True:
                question, found = here.recv()
                answers[question] = found
        except EOFError:
            child.join()
        if child.exitcode:
            answers[next(q for q in left if q not in answers)] = "crash"
    return answers


def _work(left: list[str], questions: dict[str, Callable[[], Any]], to: Any) -> None:
    for question in left:
        to.send((question, questions[question]()))


def written(answers: dict[str, Any]) -> str:
    """One line a question."""
    return "{\n" + ",\n".join(f"{json.dumps(q)}: {json.dumps(found)}" for q, found in answers.items()) + "\n}"


def main(path: Path) -> None:
    parts = []
    for group, scripts in member_probes.GROUPS.items():
        parts.append((group, survived({s: partial(member_probes.answer, s) for s in scripts})))
    for member in truth_probes.MEMBERS:
        asked = {value: partial(truth_probes.taken_for, member, value) for value in truth_probes.VALUES}
        parts.append((f"truth of {member}", survived(asked)))
    path.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {written(found)}" for name, found in parts) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("members.json"))
