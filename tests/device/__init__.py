# SPDX-License-Identifier: Apache-2.0
"""Tests of the device back end and of the plan of what goes to it."""
