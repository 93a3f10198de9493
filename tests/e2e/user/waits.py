"""A job that runs until a signal ends it."""

import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("waits").getOrCreate()
stream = spark.readStream.format("rate").load()
stream.writeStream.format("noop").queryName("guest waits").start()
print("up", flush=True)
time.sleep(600)
