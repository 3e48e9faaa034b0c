# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check, in parts: what is packed, built, tried, measured, and made of it."""
