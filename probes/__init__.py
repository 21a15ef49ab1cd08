# SPDX-License-Identifier: Apache-2.0
"""Facts and measurements of one board: pure parsers over a root path, thin readers, the C probes run in children."""
