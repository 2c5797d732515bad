"""Prometheus can read the text, whatever names it contains."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headgate.insight.metrics.definitions import METRICS
from headgate.insight.metrics.samples import Histograms, Sample, Samples, text_of

HOSTILE = ['a"b', "a\\b", "a\nb", "ä🎈", "{}", 'x"} 1\nheadgate_running 7', " ", ""]


def read_back(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_label(name: str) -> None:
    samples = Samples(name)
    samples.add("running", True)
    samples.add("lag_batches", 2, table=name)
    assert read_back(text_of(tuple(samples), Histograms())) == {
        ("headgate_running", (("pipeline", name),)): 1.0,
        ("headgate_lag_batches", (("pipeline", name), ("table", name))): 2.0,
    }


def test_every_metric_can_be_rendered_and_is_found_well_by_promtool() -> None:
    histograms, samples = Histograms(), list[Sample]()
    for metric in METRICS.values():
        labels = tuple("x" for _ in metric.all_labels)
        if metric.type == "histogram":
            histograms.observe(metric.name.removeprefix("headgate_"), 1.5, *labels)
        else:
            samples.append(Sample(metric.name, labels, 1.5))
    text = text_of(samples, histograms)
    names = {family.name for family in text_string_to_metric_families(text.decode())}
    assert names == {name.removesuffix("_total") for name in METRICS}
    assert b"_created" not in text
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
