# SPDX-License-Identifier: Apache-2.0
"""Checks on what turns floats into the integers of an NPU pipeline, against an oracle in exact integers."""
