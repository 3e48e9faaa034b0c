# SPDX-License-Identifier: Apache-2.0
"""PyTorch calls this when it is imported. It registers the backend "tutti"."""


def register() -> None:
    import torch.distributed

    if torch.distributed.is_available():
        from tutti import torch as tutti_torch

        # Where a program imports tutti.torch before torch, this runs in the middle of it; it registers itself then.
        if hasattr(tutti_torch, "register"):
            tutti_torch.register()
