# SPDX-License-Identifier: Apache-2.0
"""The contract of the kit (records, schema, finding catalogue, event log) and what people read of it."""
