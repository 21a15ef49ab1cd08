# SPDX-License-Identifier: Apache-2.0
"""The privilege note: which facts could not be read, and whether root would help. The kit itself never asks "
"for root."""

from __future__ import annotations

from dataclasses import dataclass

from probes.answers import Refusal
from probes.facts.sheet import FactSheet, Pen
from probes.system import System


@dataclass(frozen=True)
class PrivilegeNote:
    """``facts`` are null for want of rights; ``paths`` were refused; ``text`` says it in one or two sentences."""

    facts: tuple[str, ...]
    paths: tuple[str, ...]
    as_root: bool
    text: str


def privilege_note(system: System, sheet: FactSheet) -> PrivilegeNote:
    """The note for one run. ``as_root``: the run had uid 0, so nothing is left for root to add."""
    as_root = system.live.uid == 0
    facts = tuple(key for key, fact in sheet.items() if fact.value is None and fact.needs_root)
    paths = tuple(
        sorted(
            {
                path
                for (_, path), answer in system.answers.items()
                if answer.refusal is Refusal.PERMISSION and path.startswith("/")
            }
        )
    )
    incomplete = sheet.flag("tenants.scan_complete") is False
    if as_root and facts:
        text = f"{len(facts)} facts are closed even to root here (a container, or a locked-down kernel)."
    elif not facts and not incomplete:
        text = "Nothing was closed to this user: root would add no fact."
    else:
        parts = [f"{len(facts)} facts need root: {', '.join(facts)}."] if facts else []
        if incomplete:
            parts.append("Programs of other users that hold the NPU are visible to root alone.")
        parts.append("To have them, run the same command as root; everything else is complete.")
        text = " ".join(parts)
    return PrivilegeNote(facts, paths, as_root, text)


def put_note(pen: Pen) -> None:
    """``privilege.note`` and ``privilege.closed_facts``, after all other facts."""
    note = privilege_note(pen.system, pen.sheet)
    pen.put("privilege.note", note.text, "answers of this run")
    pen.put("privilege.closed_facts", list(note.facts), "answers of this run")
