# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the kit's own code beside other libraries; `make bench` runs the scripts of this folder."""
