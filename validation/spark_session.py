"""A session of Spark on this machine, which needs Java. A process has only one."""

import functools
import os
import sys


@functools.cache
def spark_session():
    from pyspark.sql import SparkSession

    # The workers run the Python of the tests, and reach the driver without a network.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.bindAddress": "localhost",
        "spark.driver.host": "localhost",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
