# SPDX-License-Identifier: Apache-2.0
"""Development tools; nothing here is needed to use the kit."""
