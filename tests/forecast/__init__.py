# SPDX-License-Identifier: Apache-2.0
"""Tests of forecast, levers and the cost model of speculation."""
