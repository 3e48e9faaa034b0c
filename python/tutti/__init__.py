# SPDX-License-Identifier: Apache-2.0
"""Tutti: collective communication between threads, processes and hosts.

    import numpy, tutti

    with tutti.Communicator.init_from_env() as comm:
        array = numpy.full(4, comm.rank + 1.0)
        comm.all_reduce(array)

Names are those of tutti.h in snake case. Arrays are NumPy's, or any with DLPack, the CUDA array interface
or a writable buffer. They must be contiguous, and results are written in place.
"""
from ._communicator import (ANY_RANK, ANY_TAG, Communicator, HostStream, Mailbox, RankPlace, Request,
                            empty, get_unique_id, get_version_string, group)
from ._library import InvalidArgument, InvalidUsage, RemoteError, Timeout, TuttiError

__version__ = "0.1.0"
__all__ = ["ANY_RANK", "ANY_TAG", "Communicator", "HostStream", "InvalidArgument", "InvalidUsage",
           "Mailbox", "RankPlace", "RemoteError", "Request", "Timeout", "TuttiError", "empty", "get_unique_id",
           "get_version_string", "group"]
