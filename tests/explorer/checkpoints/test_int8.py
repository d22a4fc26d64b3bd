"""Weights as 8-bit integers: how far they move, what stays, and every file that is no such layout refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from explorer.checkpoints.files import Report, is_quantized, read_tensors
from explorer.checkpoints.int8 import dequantize, quantization_config, quantize
from explorer.errors import CheckpointError

FILE = "model.safetensors"
NAME, SCALE = "a.linear.weight", "a.linear.weight_scale"


def matrix(rows: int, columns: int, seed: int = 0, size: float = 0.05) -> Tensor:
    return size * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def read_back(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    report = Report("file")
    found = dequantize(stored, report)
    report.raise_if_any()
    return found


@given(
    rows=st.integers(1, 9),
    columns=st.sampled_from([1, 4, 63, 64, 65, 128, 192]),
    seed=st.integers(0, 99),
    size=st.sampled_from([1e-9, 1e-6, 1e-3, 0.05, 1.0, 1e4]),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32]),
)
def test_no_weight_moves_by_more_than_half_its_scale(
    rows: int, columns: int, seed: int, size: float, dtype: torch.dtype
) -> None:
    weights = matrix(rows, columns, seed, size).to(dtype)
    stored = quantize({NAME: weights})
    assert stored[NAME].dtype == torch.int8
    assert stored[NAME].min() >= -127
    count = 1 if columns % 64 else columns // 64
    assert stored[SCALE].dtype == torch.float16
    assert stored[SCALE].shape == (rows, count)
    found = read_back(stored)
    assert found.keys() == {NAME}
    assert found[NAME].dtype == torch.float16
    scales = stored[SCALE].double().repeat_interleave(columns // count, dim=1)
    # To the nearest float16: half of its last place, which below 2^-14 is 2^-24.
    rounding = (weights.double().abs() + scales) * 2**-11 + 2**-25
    assert ((found[NAME].double() - weights.double()).abs() <= scales / 2 + rounding).all()


def test_a_weight_is_integer_times_scale_rounded_once() -> None:
    integers, scale = torch.arange(-128, 128).view(2, 128).to(torch.int8), torch.tensor([[0.1, 7e-5], [3.3, 511.75]])
    found = read_back({NAME: integers, SCALE: scale.half()})[NAME]
    exact = integers.double().view(2, 2, 64) * scale.half().double()[..., None]
    assert torch.equal(found, exact.view(2, 128).half())


def test_zeros_stay_zeros_beside_other_rows() -> None:
    weights = matrix(3, 64)
    weights[1] = 0
    stored = quantize({NAME: weights})
    assert stored[SCALE][1] == 0
    assert (read_back(stored)[NAME][1] == 0).all()


def test_what_is_no_floating_matrix_stays_as_it_is() -> None:
    others = {
        "norm.weight": torch.ones(64, dtype=torch.float16),
        "fc.bias": torch.ones(3, dtype=torch.bfloat16),
        "d2t": torch.arange(9),
        "t2d": torch.ones(9, dtype=torch.bool),
        "model.embed_tokens.weight": torch.ones(9, 64),
        "empty.weight": torch.ones(0, 64),
        "map": torch.arange(8, dtype=torch.int8),
    }
    stored = quantize(others | {NAME: matrix(2, 64)})
    assert stored.keys() == others.keys() | {NAME, SCALE}
    assert all(stored[name] is tensor for name, tensor in others.items())
    found = read_back(stored)
    assert all(found[name] is tensor for name, tensor in others.items())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 70_000.0])
def test_weights_that_float16_does_not_have_are_refused(value: float) -> None:
    weights = matrix(2, 64)
    weights[1, 7] = value
    with pytest.raises(CheckpointError, match=rf"{NAME} has weights that are not finite, or too large"):
        quantize({NAME: weights})


def good() -> dict[str, Tensor]:
    return quantize({NAME: matrix(3, 128), "b.weight": matrix(3, 12, 1), "norm.weight": torch.ones(12)})


def replaced(name: str, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    tensors = good()
    return tensors | {name: change(tensors[name]).contiguous()}


def without(name: str) -> dict[str, Tensor]:
    return {key: tensor for key, tensor in good().items() if key != name}


def with_value(value: float) -> Callable[[Tensor], Tensor]:
    def change(scale: Tensor) -> Tensor:
        scale[2, 1] = value
        return scale

    return change


REFUSED: list[tuple[dict[str, Tensor], str]] = [
    (replaced(SCALE, lambda s: s[:, :1]), f"{SCALE} is float16 [3, 1], expected float16 [3, 2] for int8 [3, 128]"),
    (replaced(SCALE, lambda s: s.T), f"{SCALE} is float16 [2, 3], expected float16 [3, 2]"),
    (replaced(SCALE, lambda s: s[:, 0]), f"{SCALE} is float16 [3], expected float16 [3, 2]"),
    (replaced(SCALE, lambda s: s[0, 0]), f"{SCALE} is float16 [], expected float16 [3, 2]"),
    (replaced(SCALE, lambda s: s.float()), f"{SCALE} is float32 [3, 2], expected float16 [3, 2]"),
    (replaced(SCALE, lambda s: s.to(torch.int8)), f"{SCALE} is int8 [3, 2], expected float16 [3, 2]"),
    (replaced("b.weight_scale", lambda s: s.repeat(1, 2)), "b.weight_scale is float16 [3, 2], expected float16 [3, 1]"),
    (replaced(SCALE, with_value(math.nan)), f"{SCALE} must hold numbers from 0 to 511.75"),
    (replaced(SCALE, with_value(math.inf)), f"{SCALE} must hold numbers from 0 to 511.75"),
    (replaced(SCALE, with_value(-0.1)), f"{SCALE} must hold numbers from 0 to 511.75"),
    (replaced(SCALE, with_value(512.0)), f"{SCALE} must hold numbers from 0 to 511.75"),
    (without(SCALE), f"{NAME} is int8 without its scale: expected {SCALE}, float16 [3, 2]"),
    (without(NAME), f"{SCALE} is a scale, which only int8 matrices have, and '{NAME}' is not there"),
    (replaced(NAME, lambda t: t.half()), f"{SCALE} is a scale, which only int8 matrices have, and '{NAME}' is float16"),
    (replaced(NAME, lambda t: t[None]), f"{NAME} is int8 with a scale and has shape [1, 3, 128], expected a matrix"),
    (replaced(NAME, lambda t: t[0]), f"{NAME} is int8 with a scale and has shape [128], expected a matrix"),
    (good() | {"_scale": torch.ones(1)}, "_scale is a scale, which only int8 matrices have, and '' is not there"),
]


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_does_not_fit_is_one_error_that_names_it(tmp_path: Path, case: int, suffix: str) -> None:
    tensors, says = REFUSED[case]
    path = tmp_path / f"model{suffix}"
    save_file(tensors, path) if suffix == ".safetensors" else torch.save(tensors, path)
    with pytest.raises(CheckpointError) as caught:
        read_tensors([path])
    assert str(caught.value).startswith(f"{path} does not fit: ")
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_all_that_does_not_fit_is_listed() -> None:
    with pytest.raises(CheckpointError) as caught:
        read_back({NAME: good()[NAME], "b.weight_scale": good()["b.weight_scale"]})
    assert "a.linear.weight is int8 without" in str(caught.value) and "b.weight_scale is a scale" in str(caught.value)


def test_a_matrix_without_columns_takes_no_scale_apart() -> None:
    empty = {NAME: torch.zeros(3, 0, dtype=torch.int8), SCALE: torch.zeros(3, 0, dtype=torch.float16)}
    assert read_back(empty)[NAME].shape == (3, 0)


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_a_filter_takes_the_scale_along_and_nothing_else(tmp_path: Path, suffix: str) -> None:
    tensors = good() | {"orphan.weight_scale": torch.ones(1)}
    path = tmp_path / f"model{suffix}"
    save_file(tensors, path) if suffix == ".safetensors" else torch.save(tensors, path)
    found = read_tensors([path], wanted=lambda name: name == NAME)
    assert found.keys() == {NAME}
    assert torch.equal(found[NAME], read_back(good())[NAME])
    with pytest.raises(CheckpointError, match="'orphan.weight' is not there"):
        read_tensors([path], wanted=lambda name: name.startswith("orphan"))


def test_matrix_and_scale_may_lie_in_different_shards(tmp_path: Path) -> None:
    tensors = good()
    save_file({SCALE: tensors[SCALE]}, tmp_path / "1.safetensors")
    save_file({name: t for name, t in tensors.items() if name != SCALE}, tmp_path / "2.safetensors")
    found = read_tensors([tmp_path / "1.safetensors", tmp_path / "2.safetensors"])
    assert found.keys() == {NAME, "b.weight", "norm.weight"}
    with pytest.raises(CheckpointError, match=f"^{tmp_path / '2.safetensors'} does not fit"):
        read_tensors([tmp_path / "2.safetensors"])


def test_files_with_integers_are_known_without_reading_them(tmp_path: Path) -> None:
    save_file(good(), tmp_path / "a.safetensors")
    plain = read_back(good()) | {"d2t": torch.arange(3), "logit_scale": torch.ones(1)}
    save_file(plain, tmp_path / "b.safetensors")
    torch.save({NAME: good()[NAME]}, tmp_path / "a.bin")
    torch.save(plain, tmp_path / "b.bin")
    assert is_quantized([tmp_path / "b.safetensors", tmp_path / "a.safetensors"])
    assert is_quantized([tmp_path / "a.bin"])
    assert not is_quantized([tmp_path / "b.safetensors", tmp_path / "b.bin"])
    (tmp_path / "b.bin").write_bytes(b"PK")
    with pytest.raises(CheckpointError, match="cannot be read"):
        is_quantized([tmp_path / "b.bin"])


def groups_of(*columns: int) -> dict[str, tuple[list[str], str, int | None]]:
    stored = quantize({f"m{number}.weight": matrix(2, size) for number, size in enumerate(columns)})
    config = quantization_config(stored)
    assert (config["quant_method"], config["format"], config["ignore"]) == ("compressed-tensors", "int-quantized", [])
    found = {}
    for name, group in config["config_groups"].items():
        weights = group["weights"]
        assert group["input_activations"] is None
        assert (weights["num_bits"], weights["type"], weights["symmetric"]) == (8, "int", True)
        found[name] = (group["targets"], weights["strategy"], weights["group_size"])
    return found


def test_the_config_says_which_matrices_have_a_scale_a_row() -> None:
    assert groups_of(64, 128) == {"group_0": (["Linear"], "group", 64)}
    assert groups_of(65, 4) == {"group_0": (["Linear"], "channel", None)}
    assert groups_of(64, 65) == {"group_0": (["Linear"], "group", 64), "group_1": (["m1"], "channel", None)}


TYPES = [torch.int8, torch.uint8, torch.int64, torch.bool, torch.float16, torch.float32, torch.float64]
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 64, 128]), max_size=3)
NAMES = ["w", "w_scale", "w_scale_scale", "v", "v_scale", "_scale"]


@given(st.dictionaries(st.sampled_from(NAMES), st.tuples(SHAPES, st.sampled_from(TYPES), st.integers(0, 9))))
def test_any_tensors_become_plain_ones_or_one_error(described: dict[str, tuple[list[int], torch.dtype, int]]) -> None:
    tensors = {name: torch.full(shape, value).to(dtype) for name, (shape, dtype, value) in described.items()}
    report = Report("file")
    found = dequantize(tensors, report)
    scales = {name for name in tensors if name.endswith("_scale")}
    if report.num_problems:
        with pytest.raises(CheckpointError, match=r"^file does not fit: .*(w|v|_scale)"):
            report.raise_if_any()
        return
    assert found.keys() == tensors.keys() - scales
    assert {name.removesuffix("_scale") for name in scales} <= found.keys()
    for name, tensor in found.items():
        assert tensor.shape == tensors[name].shape
        assert tensor.dtype == torch.float16 if f"{name}_scale" in tensors else tensor is tensors[name]
