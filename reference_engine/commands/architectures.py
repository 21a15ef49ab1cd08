# SPDX-License-Identifier: Apache-2.0
"""``architectures``: what the engine can run, and the keys it reads."""

from __future__ import annotations

import argparse

from reference_engine.gguf_hparam_table import ARCHITECTURES
from reports.contract import EXIT_OK

HELP = "the architectures and hyper-parameters that are known"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(values: argparse.Namespace) -> int:
    del values
    for architecture in ARCHITECTURES.values():
        print(architecture.name)
        for key in architecture.keys:
            print(f"  {architecture.name}.{key.suffix}: {key.kind}{', required' if key.required else ''}")
    return EXIT_OK
