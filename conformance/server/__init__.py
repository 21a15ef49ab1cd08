# SPDX-License-Identifier: Apache-2.0
"""Checks of a foreign engine over HTTP: any llama-server compatible service."""
