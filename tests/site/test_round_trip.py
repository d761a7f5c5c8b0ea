"""The pages of the site, read as published pages, say what the store holds."""

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext
from perfdb.record import Figures
from tests.site.conftest import DFM, Site

pytestmark = pytest.mark.slow


def test_a_built_page_says_what_the_page_it_was_read_from_says(site: Site) -> None:
    """Every case and every figure of DFM's page, through the store and the site and back."""
    context = PageContext(framework="dfm", release="main")
    source = reader.read("source", DFM.read_text(), context)
    built = (site.html / "performance" / "dfm" / "main.html").read_text()
    read = reader.read("built", built, context)
    assert () == read.problems
    known = {
        (one.case.system, one.case.num_gpus, one.case.model, one.case.tensor_parallel): one
        for one in source.results
    }
    assert len(source.results) == len(known) == len(read.results)
    for one in read.results:
        case = one.case
        wanted = known[(case.system, case.num_gpus, case.model, case.tensor_parallel)]
        assert wanted.case.model_copy(update={"kernels": case.kernels}) == case
        assert wanted.figures == one.figures


def test_a_built_page_of_measured_runs_gives_the_rates_it_prints(site: Site) -> None:
    """Step time, tokens, TFLOPs and MFU are there; the first two agree with the batch."""
    built = (site.html / "performance" / "megatron-core" / "0.16.0.html").read_text()
    context = PageContext(framework="megatron-core", release="0.16.0")
    read = reader.read("built", built, context)
    rated = [one for one in read.results if one.figures != Figures()]
    assert rated
    assert all(one.figures.step_time_s for one in rated)
    assert any(one.figures.model_tflops_per_sec_per_gpu for one in rated)
    assert any(one.figures.mfu for one in rated)
    for one in rated:
        tokens = one.figures.tokens_per_sec_per_gpu
        batch = one.case.global_batch_size * one.case.sequence_length
        expected = batch / (one.figures.step_time_s or 1) / one.case.num_gpus
        assert tokens == pytest.approx(expected, rel=0.01)
