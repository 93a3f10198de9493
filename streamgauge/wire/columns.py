"""Columns: one metric over the subtasks of one vertex or operator."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from streamgauge.errors import MalformedFrame

# Made once: NumPy takes longer to parse a type's name than to make the view.
_INT64 = np.dtype("<i8")
_FLOAT64 = np.dtype("<f8")

Array = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class Column(msgspec.Struct, frozen=True, array_like=True):
    """
    One metric over the subtasks of one vertex or operator.

    Args:
        metric: Flink's name, without subtask and operator.
        dtype: 'i8' int64 or 'f8' float64, little-endian. Booleans travel as 0 and 1; the catalogue
            knows their type.
        data: 8 bytes a subtask, subtask 0 first.
        present: None where every subtask has a value; else a bitmap, bit i of byte i // 8 (least
            significant first) set where subtask i has one. What is not known is absent.
    """

    metric: str
    dtype: Literal["i8", "f8"]
    data: bytes
    present: bytes | None = None

    def values(self) -> Array:
        """
        Return the column's values, shape (subtasks,), a read-only view of `data`.

        Raises:
            MalformedFrame: `data` is not a whole number of 8-byte values.
        """
        if len(self.data) % 8:
            raise MalformedFrame(f"column {self.metric!r}: {len(self.data)} bytes are no whole number of 8-byte values")
        if self.dtype == "i8":
            return np.frombuffer(self.data, dtype=_INT64)
        return np.frombuffer(self.data, dtype=_FLOAT64)

    def mask(self, subtasks: int) -> npt.NDArray[np.bool_] | None:
        """
        Return which of `subtasks` subtasks have a value, shape (subtasks,), or None for all.

        Raises:
            MalformedFrame: the bitmap is not ceil(subtasks / 8) bytes long.
        """
        if self.present is None:
            return None
        if len(self.present) != math.ceil(subtasks / 8):
            raise MalformedFrame(
                f"column {self.metric!r}: a bitmap of {len(self.present)} bytes cannot tell {subtasks} subtasks"
            )
        bits = np.unpackbits(np.frombuffer(self.present, dtype=np.uint8), count=subtasks, bitorder="little")
        return bits.astype(np.bool_)


def column(metric: str, values: Array, present: npt.NDArray[np.bool_] | None = None) -> Column:
    """
    Build a column from values of shape (subtasks,), integers as int64 and the rest as float64.

    Args:
        metric: Flink's name, without subtask and operator.
        values: Integer or floating point, any width.
        present: Same shape; None, or all true, where every subtask has a value.
    """
    whole = np.issubdtype(values.dtype, np.integer)
    bitmap = None
    if present is not None and not present.all():
        bitmap = np.packbits(present, bitorder="little").tobytes()
    return Column(metric, "i8" if whole else "f8", values.astype("<i8" if whole else "<f8").tobytes(), bitmap)
