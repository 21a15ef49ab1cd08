# SPDX-License-Identifier: Apache-2.0
"""Tests of the tokenizers and of chat templates, on vocabularies written key by key and on one real model."""
