"""Operations that Flink runs in the background and lets clients poll: none is ever triggered here."""

from __future__ import annotations

from typing import NoReturn

from service.errors import NOT_FOUND, Missing
from service.flink.query import Query


def poll(query: Query) -> NoReturn:
    """
    Answer whatever ends in :triggerid: savepoints, checkpoints on demand, changes of parallelism, disposals.

    Raises:
        Missing: always; as in Flink, whether or not the job is known.

    Source: Flink's `AbstractAsynchronousOperationHandlers`, but for the name of a Java object in front of the id.
    """
    raise Missing(NOT_FOUND, f"Operation not found under key: {query.path['triggerid']}")
