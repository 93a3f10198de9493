"""Event logs that lie where Hadoop's file systems reach and Python does not: copied here by Spark's own JVM."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from streamgauge.errors import ReplayError


def is_remote(path: str) -> bool:
    """Whether a path is a URL, as hdfs://…, s3a://… or file://…, and none of this machine's own names."""
    return "://" in path


def fetch(url: str, folder: Path) -> list[Path]:
    """
    Copy what a URL names, which may have wildcards.

    Args:
        url: Of a file system that this machine's Spark knows.
        folder: There, and empty; the copies keep their names.

    Returns:
        The copies: files, and folders of rolled logs or of logs.

    Raises:
        ReplayError: pyspark is not installed, there is nothing, or it cannot be read.
    """
    shown = _without_user(url)
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark import SparkContext
    except ModuleNotFoundError:
        raise ReplayError(
            f"{shown}: Spark reads such paths, and it is not installed: pip install pyspark, or copy the log here first"
        ) from None
    try:
        SparkContext._ensure_initialized()
        jvm = SparkContext._jvm
        spark = jvm.org.apache.spark
        conf = spark.deploy.SparkHadoopUtil.get().newConfiguration(spark.SparkConf(True))
        path = jvm.org.apache.hadoop.fs.Path(url)
        system = path.getFileSystem(conf)
        found = system.globStatus(path)
        # None where nothing is there and the path has no wildcards.
        names = [status.getPath() for status in found or ()]
        copies = []
        for number, name in enumerate(names):
            # Two folders may have logs of one name.
            copy = folder / str(number) / name.getName()
            copy.parent.mkdir()
            system.copyToLocalFile(False, name, jvm.org.apache.hadoop.fs.Path(copy.as_uri()), True)
            copies.append(copy)
    except Py4JJavaError as error:
        raise ReplayError(f"{shown} cannot be read: {error.java_exception}") from None
    except (Py4JError, RuntimeError, OSError) as error:
        raise ReplayError(f"{shown} cannot be read, for Spark does not start: {error}") from error
    if not copies:
        raise ReplayError(f"{shown}: there is no such file or folder; name an event log, or a folder of such")
    return copies


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
