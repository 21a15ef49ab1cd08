# SPDX-License-Identifier: Apache-2.0
"""The privilege note: which facts could not be read, and whether root would help. The kit never asks for root."""

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
    if as_root and (facts or incomplete):
        parts = [f"{len(facts)} facts"] if facts else []
        parts += ["the open files of some processes"] if incomplete else []
        text = f"Closed even to root here (a container, or a locked-down kernel): {' and '.join(parts)}."
    elif not facts and not incomplete:
        text = "Nothing was closed to this user: root would add no fact."
    else:
        parts = [f"{len(facts)} facts need root: {', '.join(facts)}."] if facts else []
        if incomplete:
            parts.append("Programs of other users that hold the NPU are visible to root alone.")
        parts.append("To have them, run the same command as root; nothing else is closed to this user.")
        if sheet.text("container.kind") not in (None, "none"):
            parts.append("A container may refuse them to root as well: then run it on the host.")
        text = " ".join(parts)
    return PrivilegeNote(facts, paths, as_root, text)


def put_note(pen: Pen) -> None:
    """``privilege.note`` and ``privilege.closed_facts``, after all other facts."""
    note = privilege_note(pen.system, pen.sheet)
    pen.put("privilege.note", note.text, "answers of this run")
    pen.put("privilege.closed_facts", list(note.facts), "answers of this run")
