# SPDX-License-Identifier: Apache-2.0
"""What a check of the engine gets: back ends and models of the engine that is judged, closed at the end."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.bench import BaseBench, CannotOpen, NotServed
from conformance.engine.faults import Fault
from conformance.engine.targets import N_CTX, Target, targets_for
from conformance.quantiser.subject import Subject
from reference_engine.backends import make_backend
from reference_engine.backends.device import DeviceError, make_device_backend
from reference_engine.backends.device_library import NoLibrary, find_device_library
from reference_engine.backends.interface import Backend
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.presets import parse_pipeline
from reference_engine.gguf_file import open_gguf
from reference_engine.gguf_hparams import load_hparams
from reference_engine.kernels.library import KernelLibrary, load_library
from reference_engine.model import KvOptions, Model
from reference_engine.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from reference_engine.gguf_file import GgufFile

ENGINES = ("npu", "device")


@dataclass(kw_only=True)
class EngineBench(BaseBench):
    """``engine`` is npu or device; ``model`` a GGUF file or None for the kit's own; ``library`` of the device."""

    engine: str
    model_path: Path | None = None
    library: Path | None = None
    fault: Fault | None = None
    threads: int = 2
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _device: NpuBackend | None = None
    _subjects: list[Subject] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernels: KernelLibrary | None = load_library()
        self.targets: tuple[Target, ...] = targets_for(self.model_path)
        if self.fault is not None and self.fault.process is not None:
            self.fault.process()

    def backend(
        self, pipeline: str, *, kernels: KernelLibrary | str | None = "auto", judged: bool = True
    ) -> NpuBackend:
        """A back end of the judged engine. On the device one at a time: the one before is closed.

        ``judged`` off: the emulation without a fault, to be held against.
        """
        library = self.kernels if isinstance(kernels, str) else kernels
        if not judged:
            return NpuBackend(parse_pipeline(pipeline), library, self.threads)
        made = self._on_device(pipeline) if self.engine == "device" else None
        backend = made or NpuBackend(parse_pipeline(pipeline), library, self.threads)
        if self.fault is not None and self.fault.backend is not None:
            self.fault.backend(backend)
        return backend

    def float_backend(self) -> Backend:
        """The reference in float32."""
        return make_backend("float", threads=self.threads, kernels=self.kernels)

    def subjects(self) -> list[Subject]:
        """The judged quantiser: in C and in numpy for the emulation; on the device as it is. Made once."""
        preset = "w8a8-per-channel"
        if not self._subjects and self.engine == "device":
            self._subjects.append(Subject(self.backend(preset), "the device back end"))
        elif not self._subjects:
            if self.kernels is not None:
                self._subjects.append(Subject(self.backend(preset), f"C kernels ({self.kernels.path})"))
            self._subjects.append(Subject(self.backend(preset, kernels=None), "numpy"))
        return self._subjects

    def named(self, subjects: Iterable[Subject]) -> str:
        """Subjects in words."""
        return " and ".join(subject.label for subject in subjects)

    def model(
        self, target: Target, backend: Backend, *, n_ctx: int = 0, kv: KvOptions | None = None, most_layers: int = 0
    ) -> Model:
        """A model of the judged engine on one of its back ends (or on float); closed with the bench.

        ``most_layers``: of a model that is none of the kit's, only so many are loaded and run (0: all).
        """
        file = self._file(target)
        n_ctx = n_ctx or min(N_CTX, context_length(file))
        count = load_hparams(file).n_layer
        layers = range(min(count, most_layers)) if most_layers and not target.embedded else None
        loaded = Model.load(file, backend, n_ctx=n_ctx, layers=layers, kv=kv, threads=self.threads)
        self._open.callback(loaded.close)
        if self.fault is not None and self.fault.model is not None:
            self.fault.model(loaded)
        return loaded

    def plain_model(self, target: Target, backend: Backend, *, n_ctx: int = 0) -> Model:
        """A model that no fault is put into."""
        fault, self.fault = self.fault, None
        try:
            return self.model(target, backend, n_ctx=n_ctx)
        finally:
            self.fault = fault

    def prompt(self, target: Target, name: str) -> list[int]:
        """Token ids of one of the target's prompts."""
        return self.tokens(target, target.prompts[name])

    def tokens(self, target: Target, text: str) -> list[int]:
        """Token ids of a text in the target's own vocabulary."""
        return load_tokenizer(self._file(target)).encode(text)

    @property
    def brief(self) -> bool:
        """Level quick on the device: each product goes to another process, so fewer of them."""
        return self.level == "quick" and self.engine == "device"

    def close(self) -> None:
        self._open.close()
        if self._device is not None:
            self._device.close()

    def _file(self, target: Target) -> GgufFile:
        file = open_gguf(target.path)
        self._open.callback(file.close)
        return file

    def _on_device(self, pipeline: str) -> NpuBackend:
        if self._device is not None:
            self._device.close()
        try:
            found = find_device_library(self.library)
        except NoLibrary as error:
            raise NotServed(str(error)) from error
        env = dict(os.environ)
        if found.is_mock:
            # A mock is no shared device: every check may have its own.
            folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="rknpu-kit-engine-"))
            env["RKNPU_KIT_LOCK"] = str(Path(folder) / "lock")
        try:
            self._device = make_device_backend(
                f"{pipeline},library={found.path}", kernels=self.kernels, threads=self.threads, env=env
            )
        except DeviceError as error:
            raise CannotOpen(str(error)) from error
        return self._device


def context_length(file: GgufFile) -> int:
    """What the model was trained for."""
    return load_hparams(file).integer("context_length")
