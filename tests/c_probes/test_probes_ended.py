# SPDX-License-Identifier: Apache-2.0
"""What is left when a probe is ended from outside, and what it makes of senseless arguments."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c_probes.probe_runs import Probes

StandIn = Callable[..., Path]


def start(probes: Probes, program: str, library: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [str(probes.build / "bin" / program), "--json", "--library", str(library), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children_of(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_sigterm_leaves_the_step_on_stderr_and_the_lines_so_far(probes: Probes, stand_in: StandIn) -> None:
    process = start(probes, "mm_peak", stand_in("HANG_IN_RUN"), "--shape", "1x32x32")
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while "cold run" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], "the probe ended before its cold run"
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert "ended by SIGTERM during step: cold run type=2" in err


def test_no_child_survives_its_killed_parent(probes: Probes, stand_in: StandIn) -> None:
    process = start(probes, "mm_dtypes", stand_in("HANG_IN_CREATE"), "--type", "2", "--deadline", "600")
    assert process.stdout is not None
    while '"header"' not in process.stdout.readline():
        assert process.poll() is None
    assert wait_for(lambda: len(children_of(process.pid)) == 1)
    (child,) = children_of(process.pid)
    process.kill()
    process.communicate(timeout=30)
    assert wait_for(lambda: gone(child))


WORDS = """--json --quick --seconds --shape --type --layout --quant --cores --masks --seed --core-mask --deadline
    --help --library= 1x32x32 2 1,2 norm 0.01 -1 = x"""
words = st.sampled_from([*WORDS.split(), ""])
texts = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    arguments=st.lists(words | texts, max_size=6), program=st.sampled_from(["mm_peak", "mm_concurrent", "mm_dtypes"])
)
def test_no_arguments_crash_a_probe(
    sanitized_probes: Probes, stand_in: StandIn, arguments: list[str], program: str
) -> None:
    run = sanitized_probes.run(program, *arguments, library=stand_in("CREATE_REFUSED"))
    assert run.code in (0, 2, 3), (arguments, run)
    assert "Sanitizer" not in run.err and "runtime error" not in run.err
    if run.code == 2:
        assert run.err.startswith(f"{program}: error: ")
