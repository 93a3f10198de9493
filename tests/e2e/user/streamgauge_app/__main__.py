"""A user's job, whose packages are called as Streamgauge's own: streams, forks, streams again in a second session."""

import multiprocessing
import os
import sys

from pyspark.sql import SparkSession

import collector
import service
import tests


def stream(spark, folder, name):
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(folder)
    query = lines.writeStream.format("noop").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    print(name, sum(progress["numInputRows"] for progress in query.recentProgress), flush=True)


def session():
    return SparkSession.builder.appName("guest").getOrCreate()


def say(words):
    print(words, flush=True)


def main(folder):
    print(collector.NAME, "|", service.NAME, "|", tests.NAME)
    print(__name__, [os.path.basename(entry) for entry in sys.path[:1]], sys.argv[1:] == [folder], flush=True)
    spark = session()
    stream(spark, folder, "guest first")
    child = os.fork()
    if child == 0:
        say("the child ends")
        sys.exit(5)
    say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    worker = multiprocessing.get_context("fork").Process(target=say, args=("the worker ends",))
    worker.start()
    worker.join()
    stream(spark, folder, "guest after forks")
    spark.stop()
    stream(session(), folder, "guest again")
    sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
