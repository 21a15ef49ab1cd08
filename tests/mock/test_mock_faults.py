# SPDX-License-Identifier: Apache-2.0
"""Each fault of the catalogue does what it says, and nothing does it without being asked."""

from __future__ import annotations

import ctypes as c
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from c_probes import mock
from tests.mock import mock_reference as ref
from tests.mock.mock_client import BUILD, NATIVE, NORM, PER_CHANNEL, PER_GROUP, ROOT, Matmul, load

M, K, N = 6, 128, 64
CASES: dict[str, Callable[..., None]] = {}


def case(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers the check of one fault. It gets capfd."""

    def add(check: Callable[..., None]) -> Callable[..., None]:
        CASES[name] = check
        return check

    return add


class Setup:
    """One matmul with seeded data, bound; ``run`` gives C, ``want`` what it should be."""

    def __init__(self, library: c.CDLL, code: int = 2, shape: tuple[int, int, int] = (M, K, N), **options: Any) -> None:
        self.library, self.kind, self.shape = library, ref.KINDS[code], shape
        self.ac = options.get("ac_layout", NORM)
        self.b = options.get("b_layout", NORM)
        self.matmul = Matmul(library, code, *shape, **options)
        assert self.matmul.code == 0
        self.fill(1)

    def fill(self, seed: int, names: str = "AB") -> None:
        a, b = ref.data(self.kind, *self.shape, seed, small=self.kind.a == "f16" or self.kind.c in {"i8", "i16"})
        if "A" in names:
            self.a_values = a
            self.matmul.write("A", ref.pack_a(a, self.kind.a, self.ac == NATIVE))
        if "B" in names:
            self.b_values = b
            self.matmul.write("B", ref.pack_b(b, self.kind.b, self.b))
        self.matmul.bytes("C")[:] = 0x5C
        assert self.matmul.bind() == [0, 0, 0]

    def run(self) -> ref.Array:
        assert self.matmul.run() == 0
        return self.seen()

    def seen(self) -> ref.Array:
        size = self.matmul.io.C.size
        raw = self.matmul.bytes("C")[:size].copy()
        return ref.unpack_c(raw, self.kind.c, self.shape[0], self.shape[2], self.ac == NATIVE)

    @property
    def want(self) -> ref.Array:
        return ref.expected(self.kind, ref.product(self.a_values, self.b_values))


UNTOUCHED = np.frombuffer(b"\x5c" * 4, np.int32)[0]


def start_child(fault: str, body: str, **environment: str) -> subprocess.Popen[str]:
    """Starts statements with ``m``, an int8 matmul, in a process of its own."""
    program = """
        import sys
        sys.path.insert(0, {root!r})
        from tests.mock.mock_client import Matmul, load
        library = load()
        m = Matmul(library, 2, 2, 32, 32)
    """
    text = textwrap.dedent(program.format(root=str(ROOT))) + textwrap.dedent(body)
    env = {**os.environ, "RKNN_MOCK_FAULTS": fault, **environment}
    return subprocess.Popen(
        [sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def in_child(fault: str, body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs such statements to their end."""
    with start_child(fault, body, **environment) as child:
        try:
            out, err = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


@case("c-untouched")
def _(capfd: Any) -> None:
    assert np.all(Setup(load(faults="c-untouched")).run() == UNTOUCHED)


@case("c-zero")
def _(capfd: Any) -> None:
    assert not Setup(load(faults="c-zero")).run().any()


@case("stale-a")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="stale-a"), b_layout=NATIVE, ac_layout=NATIVE)
    first = setup.run()
    assert np.array_equal(first, setup.want)
    setup.fill(2, "A")
    assert np.array_equal(setup.run(), first)
    setup.fill(3, "B")
    old_a, _ = ref.data(setup.kind, M, K, N, 1)
    assert np.array_equal(setup.run(), ref.product(old_a, setup.b_values))


@case("stale-b")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="stale-b"))
    first = setup.run()
    setup.fill(2, "B")
    assert np.array_equal(setup.run(), first)


@case("stale-c")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="stale-c"))
    first = setup.run()
    setup.fill(2, "A")
    setup.matmul.write("C", first)
    assert np.array_equal(setup.run(), first)
    assert np.array_equal(setup.run(), setup.want)


@case("wrap")
def _(capfd: Any) -> None:
    for code in (3, 10):
        setup = Setup(load(faults="wrap"), code, (4, 2048, 64))
        setup.matmul.bytes("A")[:] = 0x77 if code == 10 else 7
        setup.matmul.bytes("B")[:] = 0x77 if code == 10 else 7
        setup.matmul.bind()
        total = np.int64(2048 * 49)
        assert np.all(setup.run() == total.astype(ref.STORED[setup.kind.c])), code


@case("slice0-only")
def _(capfd: Any) -> None:
    for layout in (NORM, NATIVE):
        setup = Setup(load(faults="slice0-only:slices=3"), ac_layout=layout)
        got = setup.run()
        assert np.array_equal(got[:2], setup.want[:2])
        assert np.all(got[2:] == UNTOUCHED)


@case("rows-swapped")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="rows-swapped:row=2"))
    assert np.array_equal(setup.run(), setup.want[[0, 1, 3, 2, 4, 5]])


@case("k-tail-dropped")
def _(capfd: Any) -> None:
    for code in (1, 2):
        setup = Setup(load(faults="k-tail-dropped:block=64"), code)
        assert np.array_equal(
            setup.run(), ref.expected(setup.kind, ref.product(setup.a_values[:, :64], setup.b_values[:64]))
        )


@case("off-by-one")
def _(capfd: Any) -> None:
    for code in sorted(ref.KINDS):
        setup = Setup(load(persona="any", faults="off-by-one"), code, b_layout=NATIVE, ac_layout=NATIVE)
        got, want = setup.run(), setup.want
        different = np.argwhere(got != want)
        assert different.tolist() == [[M - 1, N - 1]], code
    setup = Setup(load(faults="off-by-one:row=1:col=2"))
    difference = setup.run() - setup.want
    assert difference[1, 2] == 1
    assert np.abs(difference).sum() == 1


@case("nan")
def _(capfd: Any) -> None:
    got = Setup(load(faults="nan:row=-1:col=3"), 1).run()
    assert np.argwhere(np.isnan(got)).tolist() == [[M - 1, 3]]
    assert Setup(load(faults="nan"), 2).run()[0, 0] == np.iinfo(np.int32).min


@case("nibble-order")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="nibble-order"), 10)
    a = setup.a_values.reshape(M, -1, 2)[:, :, ::-1].reshape(M, K)
    b = setup.b_values.reshape(K, -1, 2)[:, :, ::-1].reshape(K, N)
    assert np.array_equal(setup.run(), ref.expected(setup.kind, ref.product(a, b)))
    assert np.array_equal(Setup(load(faults="nibble-order"), 2).run(), Setup(load(), 2).run())


@case("int4-positive-half")
def _(capfd: Any) -> None:
    setup = Setup(load(persona="rk3576", faults="int4-positive-half"), 7)
    b = setup.b_values.astype(np.float64)
    want = setup.a_values.astype(np.float64) @ np.where(b > 0, b / 2, b)
    assert np.array_equal(setup.run(), want.astype(np.float32))


@case("f16-accumulate")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="f16-accumulate"), 1, (1, 4096, 16))
    setup.matmul.write("A", np.full((1, 4096), 0.1, np.float16))
    setup.matmul.write("B", np.full((4096, 16), 1, np.float16))
    setup.matmul.bind()
    exact = 4096 * float(np.float16(0.1))
    assert np.all(np.abs(setup.run() - exact) > 1e-3 * exact)


@case("per-channel-zero")
def _(capfd: Any) -> None:
    library = load(faults="per-channel-zero")
    assert not Setup(library, b_quant=PER_CHANNEL).run().any()
    assert Setup(library).run().any()


@case("per-group-zero")
def _(capfd: Any) -> None:
    library = load(faults="per-group-zero")
    options: dict[str, Any] = {"b_layout": NATIVE, "ac_layout": NATIVE}
    assert not Setup(library, 9, b_quant=PER_GROUP, group_size=32, **options).run().any()
    assert Setup(library, 9, **options).run().any()


@case("small-f16-zero")
def _(capfd: Any) -> None:
    library = load(faults="small-f16-zero")
    assert not Setup(library, 1, (1, 32, 16)).run().any()
    assert Setup(library, 1, (2, 32, 16)).run().any()


@case("c-needs-sync")
def _(capfd: Any) -> None:
    library = load(faults="c-needs-sync")
    setup = Setup(library)
    assert np.all(setup.run() == UNTOUCHED)
    assert library.rknn_mem_sync(setup.matmul.ctx, setup.matmul.memory["C"], 1) == 0
    assert np.all(setup.seen() == UNTOUCHED)
    assert library.rknn_mem_sync(setup.matmul.ctx, setup.matmul.memory["C"], 2) == 0
    assert np.array_equal(setup.seen(), setup.want)


@case("oob-write")
def _(capfd: Any) -> None:
    for fault, touched in (("oob-write:bytes=8", 8), ("c-zero:type=3", 0)):
        setup = Setup(load(faults=fault), slack=64)
        assert np.array_equal(setup.run(), setup.want)
        behind = setup.matmul.bytes("C")[setup.matmul.io.C.size :]
        assert np.argwhere(behind != 0x5C).size == touched


@case("fd-offset-ignored")
def _(capfd: Any) -> None:
    library = load(faults="fd-offset-ignored")
    setup = Setup(library)
    size = setup.matmul.io.B.size
    whole = library.rknn_create_mem(setup.matmul.ctx, 2 * size)
    base, fd = whole.contents.virt_addr, whole.contents.fd
    c.memset(base, 1, size)
    c.memset(base + size, 2, size)
    view = library.rknn_create_mem_from_fd(setup.matmul.ctx, fd, base, size, size)
    assert library.rknn_matmul_set_io_mem(setup.matmul.ctx, view, c.byref(setup.matmul.io.B)) == 0
    assert np.array_equal(setup.run(), ref.product(setup.a_values, np.ones((K, N), np.int8)))


@case("mask-ignored")
def _(capfd: Any) -> None:
    library = load(faults="mask-ignored")
    matmul = Setup(library).matmul
    assert [library.rknn_matmul_set_core_mask(matmul.ctx, mask) for mask in (3, 7, 8)] == [0, 0, -1]
    assert "fall back to RKNN_NPU_CORE_AUTO mode" in capfd.readouterr().err


def seconds(fault: str, shape: tuple[int, int, int] = (M, K, N), runs: int = 3, **options: Any) -> float:
    """Fastest of some runs of 4 ms each, in seconds. Noise only ever adds, so lower bounds are sharp."""
    setup = Setup(load(timing="fixed_us=4000", faults=fault), 2, shape, **options)
    times = []
    for _ in range(runs):
        start = time.monotonic()
        setup.matmul.run()
        times.append(time.monotonic() - start)
    return min(times)


@case("contexts-serialised")
def _(capfd: Any) -> None:
    library = load(timing="fixed_us=20000,share2=1", faults="contexts-serialised")
    matmuls = [Setup(library).matmul for _ in range(2)]
    for matmul, mask in zip(matmuls, (1, 2), strict=True):
        assert library.rknn_matmul_set_core_mask(matmul.ctx, mask) == 0
    threads = [threading.Thread(target=matmul.run) for matmul in matmuls]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - start >= 0.04


@case("slow-k")
def _(capfd: Any) -> None:
    assert seconds("slow-k:limit=64:factor=5") >= 0.02
    assert seconds("slow-k:limit=128:factor=5000") < 20


@case("slow-norm")
def _(capfd: Any) -> None:
    assert seconds("slow-norm:factor=5") >= 0.02
    assert seconds("slow-norm:factor=5000", ac_layout=NATIVE) < 20


@case("thermal")
def _(capfd: Any) -> None:
    setup = Setup(load(timing="fixed_us=4000", faults="thermal:after_s=0:over_s=0:floor=0.1"))
    setup.run()
    start = time.monotonic()
    setup.run()
    assert time.monotonic() - start >= 0.04


@case("jitter")
def _(capfd: Any) -> None:
    """Twenty runs of 4 ms, each up to five times as long: less than twice in sum would be no jitter."""
    setup = Setup(load(timing="fixed_us=4000", faults="jitter:percent=400"))
    start = time.monotonic()
    for _ in range(20):
        setup.run()
    assert time.monotonic() - start >= 0.16


@case("clock-low")
def _(capfd: Any) -> None:
    assert seconds("clock-low:factor=0.2") >= 0.02


@case("k-refused")
def _(capfd: Any) -> None:
    library = load(faults="k-refused:limit=64")
    assert Matmul(library, 2, 1, 96, 32).code == -1
    assert "max K = 96, but limit to 64!" in capfd.readouterr().err
    assert Matmul(library, 2, 1, 64, 32).code == 0


@case("n-refused")
def _(capfd: Any) -> None:
    library = load(faults="n-refused:limit=64:code=-5")
    assert Matmul(library, 2, 1, 32, 96).code == -5
    assert "not support kernel tile currently!" in capfd.readouterr().err
    assert Matmul(library, 2, 1, 32, 64).code == 0


@case("type-refused")
def _(capfd: Any) -> None:
    library = load(faults="type-refused:type=2")
    assert Matmul(library, 2, 1, 32, 64).code == -5
    assert "unsupported matmul dtype" in capfd.readouterr().err
    assert Matmul(library, 1, 1, 32, 64).code == 0


@case("no-device")
def _(capfd: Any) -> None:
    library = load(faults="no-device")
    assert Matmul(library, 2, 1, 32, 64).code == -1
    assert library.rknn_init(c.byref(c.c_uint64()), None, 0, 0, None) == -1
    text = capfd.readouterr().err
    assert text.count("failed to open rknn device!") == 2
    assert "need to insmod rknpu dirver!" in text


@case("driver-old")
def _(capfd: Any) -> None:
    assert Matmul(load(faults="driver-old"), 2, 1, 32, 64).code == -10
    assert "Mismatch driver version" in capfd.readouterr().err


@case("fail")
def _(capfd: Any) -> None:
    library = load(faults="fail:call=rknn_matmul_run:n=2:code=-3,c-zero:type=1")
    setup = Setup(library)
    assert [setup.matmul.run() for _ in range(3)] == [0, -3, 0]
    library = load(faults="fail:call=rknn_matmul_set_io_mem:n=2:every=1:code=-4")
    matmul = Matmul(library, 2, 1, 32, 32)
    assert matmul.bind() == [0, -4, -4]
    library = load(faults="fail:call=rknn_create_mem:n=4")
    Matmul(library, 2, 1, 32, 32)
    assert not library.rknn_create_mem(matmul.ctx, 64)


@case("create-logs-error")
def _(capfd: Any) -> None:
    assert Setup(load(faults="create-logs-error")).matmul.code == 0
    assert "E RKNN:" in capfd.readouterr().err


@case("create-null-context")
def _(capfd: Any) -> None:
    matmul = Matmul(load(faults="create-null-context"), 2, 1, 32, 32)
    assert (matmul.code, matmul.ctx.value) == (0, 0)


@case("submit-failed")
def _(capfd: Any) -> None:
    setup = Setup(load(faults="submit-failed:n=2:every=0"))
    assert [setup.matmul.run() for _ in range(3)] == [0, -1, 0]
    text = capfd.readouterr().err
    assert "failed to submit, op id" in text
    assert "int status: 0x200" in text


@case("bind-no-memory")
def _(capfd: Any) -> None:
    assert Matmul(load(faults="bind-no-memory"), 2, 1, 32, 32).bind() == [0, -4, 0]
    assert "to handle, errno" in capfd.readouterr().err


@case("int4-norm-b-refused")
def _(capfd: Any) -> None:
    library = load(faults="int4-norm-b-refused")
    assert Matmul(library, 10, 1, 32, 64).bind() == [0, -1, 0]
    assert "Unsupport type bits 0" in capfd.readouterr().err
    assert Matmul(library, 10, 1, 32, 64, b_layout=NATIVE).bind() == [0, 0, 0]


@case("handles-exhausted")
def _(capfd: Any) -> None:
    library = load(faults="handles-exhausted:contexts=3")
    codes = []
    for _ in range(5):
        matmul = Matmul(library, 2, 1, 32, 32)
        codes.append(matmul.code)
        if matmul.code == 0:
            matmul.close()
    assert codes == [0, 0, 0, -1, -1]


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@case("fd-leak")
def _(capfd: Any) -> None:
    for fault, leaked in (("fd-leak", 30), ("c-zero", 0)):
        library = load(faults=fault)
        before = open_fds()
        for _ in range(10):
            Matmul(library, 2, 1, 32, 32).close()
        assert open_fds() - before == leaked


@case("memory-leak")
def _(capfd: Any) -> None:
    body = """
        from pathlib import Path
        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4
        m.bind()
        m.run()
        before = resident()
        for _ in range(200):
            m.run()
        print(resident() - before)
    """
    assert int(in_child("memory-leak:bytes=200000", body).stdout) > 30_000
    assert int(in_child("c-zero", body).stdout) < 10_000


@case("hang")
def _(capfd: Any) -> None:
    body = "m.bind()\nprint(m.run(), flush=True)\nm.run()\nprint('returned', flush=True)"
    with start_child("hang:call=rknn_matmul_run:n=2", body) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "0\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.3)
        finally:
            child.kill()
        assert child.stdout.read() == ""


@case("crash")
def _(capfd: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    assert in_child("crash:call=rknn_matmul_create", "").returncode == -signal.SIGSEGV
    assert in_child("crash:call=rknn_matmul_create:n=2", "print('alive')").stdout == "alive\n"


@case("abort")
def _(capfd: Any) -> None:
    assert in_child("abort", "m.bind(); m.run()").returncode == -signal.SIGABRT


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_fault_shows_itself(name: str, capfd: Any) -> None:
    CASES[name](capfd)


def test_every_fault_of_the_catalogue_is_tested_and_there_are_28_at_least() -> None:
    listed = {fault.name for fault in mock.faults(BUILD / "mock" / "librknnrt.so")}
    assert listed == set(CASES)
    assert len(listed) >= 28


def test_faults_combine() -> None:
    setup = Setup(load(faults="rows-swapped,off-by-one:row=0:col=0,nan:row=5:col=5"))
    want = setup.want[[1, 0, 2, 3, 4, 5]]
    want[0, 0] += 1
    want[5, 5] = np.iinfo(np.int32).min
    assert np.array_equal(setup.run(), want)


def test_result_faults_can_be_limited_to_a_type_and_start_late() -> None:
    library = load(faults="c-zero:type=2:after=2")
    assert Setup(library, 1).run().any()
    setup = Setup(library)
    runs = [setup.run().any() for _ in range(4)]
    assert runs == [True, True, False, False]


def test_a_fault_spoils_one_run_and_not_the_memo() -> None:
    setup = Setup(load(faults="off-by-one:after=1"))
    assert np.array_equal(setup.run(), setup.want)
    assert not np.array_equal(setup.run(), setup.want)
    assert (setup.run() != setup.want).sum() == 1
