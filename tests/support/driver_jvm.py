"""The JVM of a Spark session in this process: what Python has no name for."""

from __future__ import annotations

from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession


def jvm(spark: SparkSession) -> JVMView:
    view = spark._jvm
    assert view is not None, "the session has ended"
    return view
