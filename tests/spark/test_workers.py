"""The Python processes that Spark starts."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_workers_import_compiled_modules(spark: SparkSession) -> None:
    """Spark's own path begins with an archive that has no compiled modules."""

    def origin(_: int) -> str:
        import pyspark as found

        return str(found.__file__)

    assert spark.sparkContext.parallelize([0], 1).map(origin).collect() == [pyspark.__file__]
    assert Path(pyspark.__file__).is_file()
