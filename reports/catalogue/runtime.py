# SPDX-License-Identifier: Apache-2.0
"""Findings about librknnrt, the programs that call it, and the numbers they returned."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

ENTRIES: tuple[Entry, ...] = (
    Entry(
        code="NPU-D001",
        severity=Severity.ERROR,
        what="{path} cannot be loaded as librknnrt.",
        why="Every NPU call goes through this library; nothing can be measured without it.",
        fix=(
            "file {path}    # is it an ELF library for this machine, and whole?",
            "Name the right file with --library PATH.",
        ),
        rank=20,
    ),
    Entry(
        code="NPU-D002",
        severity=Severity.ERROR,
        what="{path} lacks {symbols}: it has no matmul API.",
        why="The matmul functions came with librknnrt 1.5; older runtimes, and the mini runtime librknnmrt of RV1103 "
        "and RV1106, do not have them.",
        fix=("Install librknnrt 2.3.2 or later for this SoC, or name another file with --library PATH.",),
        rank=21,
    ),
    Entry(
        code="NPU-D003",
        severity=Severity.ERROR,
        what="librknnrt ended the process with {signal} during: {step}.",
        why="A crash inside the library takes every program that calls it the same way; the numbers after this step "
        "are missing.",
        fix=(
            "dmesg | grep -iE 'rknpu|iommu' | tail -20",
            "Run again with RKNN_LOG_LEVEL=3 in the environment and compare librknnrt's version with the driver's.",
        ),
        rank=22,
    ),
    Entry(
        code="NPU-D004",
        severity=Severity.ERROR,
        what="librknnrt did not return within {deadline_s:.0f} s from: {step}.",
        why="A call that never returns usually waits for an interrupt that does not come: a wedged NPU, a power "
        "domain that is off, or a driver fault.",
        fix=(
            "dmesg | grep -iE 'rknpu|iommu' | tail -20",
            "Reboot the board if the lines show a job timeout; an NPU that hangs once tends to hang again.",
        ),
        rank=23,
    ),
    Entry(
        code="NPU-D005",
        severity=Severity.WARNING,
        what="The C probes are not built, so nothing was measured.",
        why="The timing loops are C programs; facts and findings do not need them.",
        fix=("apt-get install gcc libc6-dev make && make build",),
        rank=24,
    ),
    Entry(
        code="NPU-D006",
        severity=Severity.ERROR,
        what="{probe} ended without a whole answer ({detail}).",
        why="Its rows cannot be trusted; this is a fault of the kit or of the machine, not a property of the NPU.",
        fix=("Run {probe} --json alone and report its output.",),
        rank=25,
    ),
    Entry(
        code="NPU-D007",
        severity=Severity.ERROR,
        what="librknnrt refuses to create even a small matmul: {detail}.",
        why="The device cannot be opened, or driver and runtime do not fit each other: nothing can be measured.",
        fix=(
            "ls -l /dev/dri /dev/rknpu    # is there a node of the NPU, and may this user open it?",
            "cat /sys/module/rknpu/version    # 0.9.8 or later is what runtime 2.3 expects",
        ),
        rank=26,
    ),
    Entry(
        code="NPU-D008",
        severity=Severity.ERROR,
        what="No librknnrt was found on this board.",
        why="Every NPU call goes through this library; nothing can be measured without it.",
        fix=("Copy librknnrt.so for this SoC to /usr/lib and run ldconfig, or name a file with --library PATH.",),
        rank=19,
    ),
    Entry(
        code="NPU-D009",
        severity=Severity.WARNING,
        what="{function} says success but {detail}.",
        why="Return code, result and log are three signals; where they disagree the return code is not to be trusted.",
        fix=("Check the context handle and the library's log in your own code too, not the return code alone.",),
        rank=420,
    ),
    Entry(
        code="NPU-D010",
        severity=Severity.ERROR,
        what="A context failed while {contexts} ran together: {detail}.",
        why="The row is void: work of a failed context must not be counted.",
        fix=("dmesg | grep -iE 'rknpu|iommu' | tail -20",),
        rank=410,
    ),
    Entry(
        code="NPU-S002",
        severity=Severity.ERROR,
        what="Another run of this kit holds the NPU: {holder}.",
        why="Two users of the NPU at once distort every number, and on some drivers end in a kernel panic.",
        fix=("Wait for it to end, or stop it, and run again.",),
        rank=10,
    ),
    Entry(
        code="NPU-S003",
        severity=Severity.WARNING,
        what="The previous run was cut short at: {step}.",
        why="If the board hung or restarted there, that step is what did it.",
        fix=("dmesg | grep -iE 'rknpu|iommu' | tail -20    # or the log of the boot before: journalctl -k -b -1",),
        rank=30,
    ),
    Entry(
        code="NPU-C030",
        severity=Severity.ERROR,
        what="Success, but the output was never written: {row}.",
        why="The run returned 0 and left C as it was. A program that trusts the return code computes with old memory.",
        fix=("Do not use this combination of type, layout and quantisation on this runtime.",),
        rank=400,
    ),
    Entry(
        code="NPU-C031",
        severity=Severity.ERROR,
        what="Success, but the output is all zeros: {row}.",
        why="The run returned 0 and wrote zeros where the exact result is not zero (known of per-channel and per-group "
        "quantisation on librknnrt 2.3.2).",
        fix=("Do not use this combination of type, layout and quantisation on this runtime.",),
        rank=401,
    ),
    Entry(
        code="NPU-C033",
        severity=Severity.WARNING,
        what="Matmul type {type} ends the process ({signal}) where a refusal was due.",
        why="A back end that tries this type dies with it; the other types are not affected.",
        fix=("Do not create matmul type {type} on this runtime; try unknown types in a child process.",),
        rank=421,
    ),
    Entry(
        code="NPU-C034",
        severity=Severity.ERROR,
        what="Wrong result: {row}.",
        why="Compared with the exact product of the same integers, element for element. A model computed with this "
        "gives wrong tokens.",
        fix=(
            "Run it again: a fault that moves points to memory, clock or voltage; one that stays, to the runtime.",
            "dmesg | grep -iE 'rknpu|iommu' | tail -20",
        ),
        rank=402,
    ),
    Entry(
        code="NPU-P021",
        severity=Severity.WARNING,
        what="{contexts} contexts on {contexts} cores give {ratio:.2f} times one: the cores do not run side by side.",
        why="Contexts bound to separate cores should overlap; a factor near one means they are queued one after the "
        "other, or the core mask is accepted and ignored.",
        fix=(
            "cat /sys/kernel/debug/rknpu/load    # as root, during a run: which cores work?",
            "cat /sys/module/rknpu/version    # multi-core submission was unreliable before 0.9.6",
        ),
        rank=310,
    ),
    Entry(
        code="NPU-P022",
        severity=Severity.WARNING,
        what="K = {k} runs {ratio:.1f} times slower per MAC than K = {k_ref} (type {type_name}).",
        why="Above a limit of K the runtime answers right but very slowly instead of refusing.",
        fix=("Split K into segments of at most {k_limit} and add the int32 results: the sum is an integer identity.",),
        rank=311,
    ),
)
