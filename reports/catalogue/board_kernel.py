# SPDX-License-Identifier: Apache-2.0
"""Kernel, driver flavour, device tree, and what the kernel log says went wrong."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

_REBOOT = "sudo reboot    # the state does not clear by itself"
_LOG = "sudo dmesg | grep -iE 'rknpu|\\.npu|rk_iommu' | tail -40"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        code="NPU-K001",
        severity=Severity.WARNING,
        what="The NPU runs on the mainline driver rocket, which librknnrt cannot use.",
        why="librknnrt and librkllmrt speak to the vendor driver rknpu alone. With rocket run: Mesa Teflon (TFLite "
        "delegate, Mesa 25.3 or later) and programs that issue rocket jobs themselves.",
        fix=(
            "For librknnrt: boot a vendor kernel (5.10 or 6.1), or an out-of-tree rknpu with its device-tree overlay.",
            "For TFLite: apt-get install mesa-teflon-delegate    # where the distribution has it",
        ),
        rank=20,
    ),
    Entry(
        code="NPU-K002",
        severity=Severity.ERROR,
        what="The NPU is disabled in the device tree: {nodes}.",
        why="A disabled node gets no driver, no device node and no line in the kernel log.",
        fix=("{command}", "Reboot, then check: cat {first}/status    # must say okay"),
        rank=21,
    ),
    Entry(
        code="NPU-K003",
        severity=Severity.ERROR,
        what="This kernel ({release}) has no NPU driver at all.",
        why="Neither the vendor driver (CONFIG_ROCKCHIP_RKNPU) nor rocket (CONFIG_DRM_ACCEL_ROCKET) is built; "
        "no permission "
        "and no library can change that.",
        fix=(
            "Boot a kernel with one: a vendor kernel (5.10 or 6.1) for librknnrt, or 6.18 and later with rocket.",
            "zcat /proc/config.gz | grep -E 'RKNPU|ACCEL_ROCKET'    # to check",
        ),
        rank=26,
    ),
    Entry(
        code="NPU-K004",
        severity=Severity.ERROR,
        what="No driver is bound to the NPU.",
        why="The kernel has a driver ({drivers}), but it is not running on the device.",
        fix=("{command}", _LOG),
        rank=28,
    ),
    Entry(
        code="NPU-K005",
        severity=Severity.ERROR,
        what="The NPU waits for a supplier: {supplier}.",
        why="The driver is not started before its regulator, clock or power domain is there; mostly the NPU's "
        "regulator "
        "(vdd_npu) or the I2C controller in front of it is missing.",
        fix=("sudo cat /sys/kernel/debug/devices_deferred", "ls /sys/class/regulator/*/name | xargs grep -l vdd_npu"),
        rank=23,
    ),
    Entry(
        code="NPU-K006",
        severity=Severity.ERROR,
        what="The device tree has no NPU node.",
        why="The driver binds to that node; this kernel's device tree for the board leaves it out.",
        fix=("Use the device tree of the board vendor's kernel, or an overlay that adds the NPU.",),
        rank=27,
    ),
    Entry(
        code="NPU-K007",
        severity=Severity.WARNING,
        what="Kernel {release}: this 5.10 release (rkr6) can deadlock in the NPU's interrupt handler.",
        why="The board then hangs in the middle of a job; fixed in rkr7.1.",
        fix=("sudo apt-get update && sudo apt-get dist-upgrade    # to a kernel from rkr7.1 on",),
        rank=130,
    ),
    Entry(
        code="NPU-K008",
        severity=Severity.ERROR,
        what="Driver {driver} on kernel {release} crashes at the first inference.",
        why="Drivers before 0.9.5 do not work on 6.1 kernels.",
        fix=("sudo apt-get update && sudo apt-get dist-upgrade    # to a kernel with driver 0.9.8",),
        rank=102,
    ),
    Entry(
        code="NPU-K009",
        severity=Severity.ERROR,
        what="The NPU's power domain does not come up.",
        why="The regulator of the NPU is off or not wired in the device tree; jobs then stall the IOMMU.",
        fix=(
            "cat /sys/class/regulator/*/name | grep -n vdd_npu",
            "Mark vdd_npu as regulator-always-on in the device tree.",
            _REBOOT,
        ),
        rank=30,
    ),
    Entry(
        code="NPU-K010",
        severity=Severity.ERROR,
        what="The power domain of the NPU gives no acknowledgement.",
        why="Seen on RK356x where the boot loader leaves the NPU regulator off: the kernel can hang or panic at "
        "this point.",
        fix=("Update the boot loader of the board, or disable the NPU node until it is.",),
        rank=31,
    ),
    Entry(
        code="NPU-K011",
        severity=Severity.ERROR,
        what="The clock firmware refuses the voltage setting of the NPU.",
        why="Programs crash in rknn_run after a warm reboot on boards with this line; the cause is open upstream.",
        fix=(
            "Switch the board off and on again (a warm reboot is not enough).",
            "Update boot loader and kernel together.",
        ),
        rank=34,
    ),
    Entry(
        code="NPU-K012",
        severity=Severity.ERROR,
        what="The driver failed to start on the NPU.",
        why="The code at the end of the line tells why; -22 is a device tree that does not fit (such as the "
        "number of "
        "interrupt cells), -517 a missing supplier.",
        fix=(_LOG,),
        rank=24,
    ),
    Entry(
        code="NPU-K013",
        severity=Severity.WARNING,
        what="Out-of-tree rknpu on the mainline device tree with split nodes.",
        why="Boards with this layout have locked up whole when the IOMMU clock was gated during a job, without "
        "a trace.",
        fix=("Save work before NPU jobs; prefer the merged node by overlay, or a vendor kernel.",),
        rank=140,
    ),
    Entry(
        code="NPU-K014",
        severity=Severity.INFO,
        what="No regulator of the NPU is listed on this {soc}.",
        why="RK356x boards hang at boot when the boot loader leaves the NPU regulator off; this kit never pokes "
        "clocks to find out.",
        fix=("cat /sys/class/regulator/*/name    # vdd_npu should be among them",),
        rank=920,
    ),
    Entry(
        code="NPU-K015",
        severity=Severity.ERROR,
        what="The kernel switched the NPU's regulator off before a driver claimed it.",
        why="Unused regulators are cut about 31 s after boot; a driver that is loaded later finds no power.",
        fix=(
            "Load the driver at boot: echo rocket | sudo tee /etc/modules-load.d/npu.conf    # or rknpu",
            "Or mark vdd_npu as regulator-always-on in the device tree.",
        ),
        rank=22,
    ),
    Entry(
        code="NPU-K016",
        severity=Severity.ERROR,
        what="The NPU driver is on a blacklist: {line}.",
        why="modprobe then never loads it by itself.",
        fix=("sudo sed -i '/{driver}/d' {file} && sudo modprobe {driver}",),
        rank=25,
    ),
    Entry(
        code="NPU-K020",
        severity=Severity.ERROR,
        what="NPU jobs timed out since boot ({count} in the kernel log).",
        why="The NPU did not finish or its interrupt was lost. {status}",
        fix=(_LOG, _REBOOT),
        rank=60,
    ),
    Entry(
        code="NPU-K021",
        severity=Severity.ERROR,
        what="The IOMMU of the NPU reported page faults: {count}.",
        why="A job read or wrote an address that is not mapped: a stale buffer, a broken model, or two programs "
        "at once.",
        fix=(_LOG, _REBOOT),
        rank=50,
    ),
    Entry(
        code="NPU-K022",
        severity=Severity.ERROR,
        what="The IOMMU of the NPU does not answer.",
        why="After a stall request times out, later jobs hang or return garbage until the board is restarted.",
        fix=(_REBOOT,),
        rank=40,
    ),
    Entry(
        code="NPU-K023",
        severity=Severity.ERROR,
        what="The driver could not switch the IOMMU domain.",
        why="A job that died holds its domain for ever; every later switch waits six seconds and fails.",
        fix=(_REBOOT, "Update to driver 0.9.8, and never kill -9 a program in the middle of a job."),
        rank=45,
    ),
    Entry(
        code="NPU-K024",
        severity=Severity.ERROR,
        what="The driver found itself in another IOMMU domain than it had set.",
        why="Addresses of one program may then point into another's memory.",
        fix=(_REBOOT, "Update to driver 0.9.8."),
        rank=46,
    ),
    Entry(
        code="NPU-K025",
        severity=Severity.ERROR,
        what="The NPU may be wedged: faults in the kernel log, and no load although it is held or was used.",
        why="A wedged NPU looks idle in its load file; measurements would hang or lie.",
        fix=(_REBOOT,),
        rank=38,
    ),
    Entry(
        code="NPU-K026",
        severity=Severity.ERROR,
        what="NPU jobs were aborted since boot: {count}.",
        why="The driver gave a job up; its output is not valid.",
        fix=(_LOG,),
        rank=62,
    ),
    Entry(
        code="NPU-K090",
        severity=Severity.INFO,
        what="{count} lines of the kernel log look alarming and are harmless.",
        why="They stand in the logs of healthy boards: register regions shared by two drivers, and optional "
        "power models.",
        fix=("Nothing to do.",),
        rank=990,
    ),
)
