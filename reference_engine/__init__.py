# SPDX-License-Identifier: Apache-2.0
"""Runs a GGUF model on the CPU and says what the right answer is; ``gguf_file.open_gguf`` is the door to the file."""
