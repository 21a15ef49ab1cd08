# SPDX-License-Identifier: Apache-2.0
"""Mutation test of the oracles and comparers: are their tests able to see a wrong oracle?

``python -m tools.oracle_mutants`` copies them and their test to a scratch folder, lets mutmut (3.8 or later,
``pip install mutmut``) make its mutants there, runs the test on each, and writes ``conformance/ORACLE_MUTANTS.md``:
how many were killed, and each survivor with the reason why it is none to worry about. Reasons stand in
``tools/oracle_mutants.json`` by the changed line; exit code 1 where one is missing or fewer than 90 % were killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JUDGED = ("conformance/oracles.py", "conformance/oracles_compare.py")
TEST = "tests/conformance/test_oracles.py"
TABLE = ROOT / "conformance/ORACLE_MUTANTS.md"
REASONS = Path(__file__).with_suffix(".json")
LEAST = 0.90
CONFIG = """[mutmut]
paths_to_mutate=
    {paths}
tests_dir=tests/

[tool:pytest]
filterwarnings = error
"""
_RESULT = re.compile(r"^\s*(?P<name>[\w.ǁ]+): (?P<status>[\w ]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test saw: the function, its line before and after."""

    function: str
    was: str
    now: str

    @property
    def key(self) -> str:
        """How the table of reasons names it."""
        return f"{self.was} -> {self.now}"


def digest() -> str:
    """sha256 over what is judged, so that a table of other sources is noticed."""
    return hashlib.sha256(b"".join((ROOT / path).read_bytes() for path in JUDGED)).hexdigest()


def run(folder: Path, children: int) -> tuple[Counter[str], list[Survivor]]:
    """Mutants by how they ended, and the survivors. Raises ``OSError`` with what mutmut said when it cannot run."""
    for path in (*JUDGED, TEST):
        target = folder / (path if path != TEST else "tests/test_oracles.py")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, target)
    (folder / "conformance/__init__.py").write_text("", "utf-8")
    (folder / "setup.cfg").write_text(CONFIG.format(paths="\n    ".join(JUDGED)), "utf-8")
    _mutmut(folder, "run", "--max-children", str(children))
    ended = {match["name"]: match["status"] for match in _RESULT.finditer(_mutmut(folder, "results", "--all", "true"))}
    survivors = [changed(name, _mutmut(folder, "show", name)) for name, status in ended.items() if status == "survived"]
    return Counter(ended.values()), survivors


def _mutmut(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"mutmut {arguments[0]} ended with code {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
    return done.stdout


def changed(name: str, diff: str) -> Survivor:
    """The changed line of a unified diff, which has one."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    was, now = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    function = name.rpartition(".")[2].partition("__mutmut")[0].removeprefix("x_")
    return Survivor(function, " ".join(was), " ".join(now))


def render(ended: Mapping[str, int], survivors: Sequence[Survivor], reasons: Mapping[str, str]) -> str:
    """The page."""
    total, killed = sum(ended.values()), ended.get("killed", 0)
    lines = [
        "# Mutants of the oracles that their tests let live",
        "",
        "Made by `python -m tools.oracle_mutants` with mutmut: every operator, constant and argument of",
        f"`{JUDGED[0]}` and `{JUDGED[1]}` is changed, one at a time, and",
        f"`{TEST}` has to fail.",
        "",
        f"{total} mutants, {killed} killed ({killed / total:.1%}), {len(survivors)} survived.",
        f"Sources: sha256 `{digest()}`.",
        "",
        "| Function | Line | Mutant | Why it lives |",
        "|---|---|---|---|",
    ]
    for each in survivors:
        reason = reasons.get(each.key, "NO REASON YET")
        lines.append(f"| `{each.function}` | `{_cell(each.was)}` | `{_cell(each.now)}` | {reason} |")
    return "\n".join(lines) + "\n"


def _cell(code: str) -> str:
    return code.replace("|", "\\|")


def main(argv: list[str] | None = None) -> int:
    """Exit code 1: too few killed, or a survivor without a reason. 3: mutmut could not run."""
    parser = argparse.ArgumentParser(prog="python -m tools.oracle_mutants", description="Mutation test of the oracles.")
    parser.add_argument("--children", type=int, default=2, metavar="N", help="processes at a time (default: 2)")
    options = parser.parse_args(argv)
    reasons = json.loads(REASONS.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended, survivors = run(Path(folder), options.children)
        except OSError as error:
            sys.stderr.write(f"{error}\nmutmut is needed: pip install mutmut\n")
            return 3
    TABLE.write_text(render(ended, survivors, reasons), "utf-8")
    missing = [each for each in survivors if each.key not in reasons]
    unused = set(reasons) - {each.key for each in survivors}
    killed, total = ended["killed"], sum(ended.values())
    sys.stdout.write(f"{killed} of {total} killed; {dict(ended)}; written: {TABLE}\n")
    sys.stdout.writelines(f"no reason: {each.function}: {each.key}\n" for each in missing)
    sys.stdout.writelines(f"reason for no survivor: {key}\n" for key in sorted(unused))
    return 1 if missing or unused or killed < LEAST * total else 0


if __name__ == "__main__":
    sys.exit(main())
