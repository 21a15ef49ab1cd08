# SPDX-License-Identifier: Apache-2.0
"""Which levers pay on a measured board. Each verdict names the measurement that decided it, or says "not measured".

The list is that of the published RK3588 campaign (marfrit/rk-llama.cpp, docs/rknpu2-campaign-results.md); its outcomes
stand beside each verdict as the campaign's, never in place of one.
"""
