# SPDX-License-Identifier: Apache-2.0
"""Registers the backend "tutti". PyTorch calls register() while PyTorch is imported."""


def register() -> None:
    import torch.distributed

    if torch.distributed.is_available():
        from tutti import torch as tutti_torch

        # If a program imports tutti.torch before torch, this function runs while tutti.torch is imported only
        # partly. tutti.torch then registers the backend at its end.
        if hasattr(tutti_torch, "register"):
            tutti_torch.register()
