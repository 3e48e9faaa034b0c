# SPDX-License-Identifier: Apache-2.0
"""Simulates whole sets of calls with tutti-sim. The figures are those of a model, and the same on
every machine."""
