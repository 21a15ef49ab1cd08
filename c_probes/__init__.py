# SPDX-License-Identifier: Apache-2.0
"""Everything that speaks the librknnrt ABI: the header, the binding, the C probes and the mock."""
