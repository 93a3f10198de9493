"""
Read by Python itself as it starts, in every Python that `streamgauge run` starts: attaches to the first session.

It waits for `pyspark.sql.session` and changes nothing else: the path and the user's own `sitecustomize` are as
without it. Any Python from 3.7 on may read this, also one that Streamgauge does not support or is not installed
in; every Python worker of Spark does, so what costs time to import is imported late.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - importing pathlib costs time
SESSION = "pyspark.sql.session"


class SessionFinder:
    """Finds SESSION as the finders after it do, once, and has its class watched as soon as it is there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of SESSION; None for all else. Called by the import system, in any thread."""
        if name != SESSION:
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    _watch_loading(spec.loader)
                return spec
        return None


def _watch_loading(loader: Any) -> None:
    def exec_module(module: Any) -> None:
        del loader.exec_module
        loader.exec_module(module)
        _watch_sessions(module.SparkSession)

    loader.exec_module = exec_module


def _watch_sessions(session_class: Any) -> None:
    import functools

    init = session_class.__init__

    @functools.wraps(init)
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        _attach(self)

    session_class.__init__ = made


def _attach(session: Any) -> None:
    global _told
    try:
        from spark_hooks import launched

        launched.made(session)
    except Exception as error:  # noqa: BLE001  whatever is wrong with ours, the user's session is made
        if not _told:
            _told = True
            remedy = f"; pip install streamgauge for {sys.executable}" if isinstance(error, ImportError) else ""
            words = f"{type(error).__name__}: {error}{remedy}"
            sys.stderr.write(f"streamgauge is not attached, the job runs on without it: {words}\n")


_told = False


def _hand_on() -> None:
    """Run the sitecustomize that this one stands in front of, if there is one, in its own name."""
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = sys.modules["sitecustomize"] = module_from_spec(spec)
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != FOLDER]  # noqa: PTH100
sys.meta_path.insert(0, SessionFinder())
_hand_on()
