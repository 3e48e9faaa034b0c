# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/gpu-check: packing, building, steps, measuring, and evaluation."""
