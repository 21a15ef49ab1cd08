# SPDX-License-Identifier: Apache-2.0
"""How the tiny trained models of ``reference_engine/tiny`` were made: torch, tokenizers and gguf (extra ``train``)."""
