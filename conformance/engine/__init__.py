# SPDX-License-Identifier: Apache-2.0
"""The suite ``engine``: is this kit's engine right, in its emulation of the NPU or on the device itself?"""
