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
        code="NPU-D011",
        severity=Severity.ERROR,
        what="librknnrt contradicts itself on the smallest matmul: {detail}.",
        why="Return code and result disagree before anything was computed, so nothing it says can be measured.",
        fix=(
            "cat /sys/module/rknpu/version    # does the driver fit this runtime?",
            "Try another librknnrt for this SoC with --library PATH.",
        ),
        rank=27,
    ),
    Entry(
        code="NPU-S002",
        severity=Severity.ERROR,
        what="Another run of this kit holds the NPU: {holder}.",
        why="Two users of the NPU at once distort every number, and on some drivers end in a kernel panic.",
        fix=(
            "Wait for it to end, or stop it, and run again.",
            "Runs on the mock may overlap: give each a lock of its own with RKNPU_KIT_LOCK=FILE.",
        ),
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
        fix=("Split K into segments of at most {k_limit} and add the partial results; int32 sums stay the same.",),
        rank=311,
    ),
    Entry(
        code="NPU-P023",
        severity=Severity.WARNING,
        what="Core mask {mask} is accepted, but a context on it runs at {ratio:.2f} times the rate of one core.",
        why="A mask of several cores that falls back to one is reported as success; figures labelled with it are "
        "those of one core.",
        fix=(
            "Use one context per core, each with a mask of one bit and a thread of its own, and split N between them.",
            "cat /sys/kernel/debug/rknpu/load    # as root, during a run: which cores work?",
        ),
        rank=312,
    ),
    Entry(
        code="NPU-P024",
        severity=Severity.WARNING,
        what="A and C in normal layout run {ratio:.0f} times slower than in native layout (type {type_name}).",
        why="The runtime rearranges normal operands on the CPU at every run; for some types this takes far longer than "
        "the product.",
        fix=("Create contexts of this type with AC_layout = native, and keep A and C in that layout between layers.",),
        rank=313,
    ),
    Entry(
        code="NPU-P025",
        severity=Severity.WARNING,
        what="The speed falls by {fall:.0f} % while it is measured ({row}).",
        why="A rate that sinks under load is that of a board that heats up; a short measurement would have shown the "
        "first figure only.",
        fix=(
            "cat /sys/class/thermal/thermal_zone*/temp    # during a run",
            "Cool the board, or take the sustained figure of --level long for planning.",
        ),
        rank=305,
    ),
    Entry(
        code="NPU-P026",
        severity=Severity.WARNING,
        what="Run times do not hold still: they scatter by {spread:.1f} % around their median.",
        why="Long runs on an idle NPU repeat within 1 %; scatter points to a clock that moves, to heat, or to another "
        "user of the NPU or the memory.",
        fix=(
            "cat /sys/kernel/debug/rknpu/load    # as root: is somebody else using the NPU?",
            "cat /sys/class/devfreq/*.npu/governor    # a governor other than performance moves the clock",
        ),
        rank=306,
    ),
    Entry(
        code="NPU-P027",
        severity=Severity.WARNING,
        what="The best rate of one core is {share:.0f} % of the rated figure.",
        why="A healthy board reaches about a third of it with this runtime; much less is what an NPU shows that was "
        "left at the clock of the boot loader.",
        fix=(
            "cat /sys/class/devfreq/*.npu/cur_freq    # during a run",
            "grep -A1 npu /sys/kernel/debug/clk/clk_summary    # as root: the clock that is really set",
        ),
        rank=304,
    ),
    Entry(
        code="NPU-P028",
        severity=Severity.WARNING,
        what="{dimension} above {limit} runs {ratio:.1f} times slower per MAC (type {type_name}).",
        why="Above a limit the runtime answers right but very slowly instead of refusing.",
        fix=("Split {dimension} into parts of at most {limit}.",),
        rank=314,
    ),
    Entry(
        code="NPU-L050",
        severity=Severity.INFO,
        what="{dimension} above {limit} is refused (type {type_name}).",
        why="A limit of this runtime; found by trying, and worth knowing before a model is cut into products.",
        fix=("Split {dimension} into parts of at most {limit}.",),
        rank=900,
    ),
    Entry(
        code="NPU-L051",
        severity=Severity.ERROR,
        what="{dimension} above {limit} is accepted and gives wrong results (type {type_name}).",
        why="Neither create nor run refuses it; a program that trusts them computes with wrong numbers.",
        fix=("Split {dimension} into parts of at most {limit}.",),
        rank=403,
    ),
    Entry(
        code="NPU-R040",
        severity=Severity.ERROR,
        what="librknnrt leaves {slope:.2g} file descriptors open per {over}.",
        why="At the limit on open files nothing can be created any more (rknn-toolkit2 issue 532: after 1,020 calls).",
        fix=(
            "Create buffers and contexts once and reuse them for the life of the process.",
            "ulimit -n    # how many are left",
        ),
        rank=405,
    ),
    Entry(
        code="NPU-R041",
        severity=Severity.ERROR,
        what="Memory grows by {slope:.0f} bytes per {over}.",
        why="A program that runs for days ends in the out-of-memory killer (rknn-toolkit2 issue 42).",
        fix=("Use another version of librknnrt, or restart the process that uses it now and then.",),
        rank=406,
    ),
    Entry(
        code="NPU-R042",
        severity=Severity.ERROR,
        what="After contexts were created to the limit and destroyed, no new one works: {detail}.",
        why="Handles do not come back; a program that makes contexts as it goes stops after a while.",
        fix=("Create contexts once and reuse them; restart the process when creation fails.",),
        rank=407,
    ),
    Entry(
        code="NPU-R043",
        severity=Severity.WARNING,
        what="IOMMU domain 1 does not work: {detail}.",
        why="Models of more than one address space of 4 GiB need further domains.",
        fix=("cat /sys/module/rknpu/version    # domains are switched from driver 0.9.6 on",),
        rank=408,
    ),
)
