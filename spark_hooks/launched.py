"""Inside a driver that `streamgauge run` started: each application is attached to once, at its first session."""

from __future__ import annotations

import logging
from typing import Any

from spark_hooks import agent
from streamgauge.errors import SettingError

log = logging.getLogger("streamgauge")

_seen: str | None = None


def made(spark: Any) -> None:
    """
    Attach to the application of a new session, unless it was seen before: what the user has detached stays so.

    A setting that cannot be used costs one warning line. The thread that makes the session.
    """
    global _seen
    application = str(spark.sparkContext.applicationId)
    if application == _seen:
        return
    _seen = application
    try:
        agent.attach(spark)
    except SettingError as error:
        log.warning("streamgauge is not attached, the job runs on without it: %s", error)
