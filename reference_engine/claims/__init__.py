# SPDX-License-Identifier: Apache-2.0
"""Claims of a performance campaign on RK3588, each an experiment that this engine can do: it holds, or is refuted."""
