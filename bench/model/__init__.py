# SPDX-License-Identifier: Apache-2.0
"""What tutti-sim says of whole sets of calls: figures of a model, the same on every machine."""
