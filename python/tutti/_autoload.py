# SPDX-License-Identifier: Apache-2.0
"""What PyTorch calls when it is imported: makes the backend "tutti" known."""


def register() -> None:
    import torch.distributed

    if torch.distributed.is_available():
        from tutti import torch as tutti_torch

        tutti_torch.register()
