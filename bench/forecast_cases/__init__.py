# SPDX-License-Identifier: Apache-2.0
"""Published figures and model dimensions that forecasts are held against."""
