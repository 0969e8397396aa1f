"""Where a model computes, and in which precision."""

import logging

import pytest
import torch

from decoding import device

CPU = torch.device("cpu")


@pytest.mark.parametrize("units", [True, False])
def test_bf16_is_chosen_where_the_processor_has_units_for_it(units, monkeypatch, caplog):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": units})
    assert device.wants_bf16("auto", CPU) == units
    assert not device.wants_bf16("fp32", CPU)
    assert not caplog.records


@pytest.mark.parametrize("units", [True, False])
def test_bf16_where_it_is_emulated_is_given_with_a_warning(units, monkeypatch, caplog):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": units})
    with caplog.at_level(logging.WARNING):
        assert device.wants_bf16("bf16", CPU)
    said = "precision=bf16: the cpu has no units for it and emulates them slowly"
    assert caplog.messages == ([] if units else [said])


def test_other_precisions_are_refused():
    with pytest.raises(ValueError, match="precision must be auto, fp32 or bf16, not 'fp16'"):
        device.wants_bf16("fp16", CPU)


def test_a_device_that_is_not_there_is_refused():
    assert device.device_of("cpu") == CPU
    with pytest.raises(ValueError, match="device=mps: not available here; use auto or cpu"):
        device.device_of("mps")
