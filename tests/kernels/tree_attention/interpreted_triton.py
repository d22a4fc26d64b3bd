"""The Triton attention against the reference in float64. Run by test_triton.py, in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels.tree_attention import triton as subject
from kernels.tree_attention.inputs import KeyLayout
from tests.support.attention import NAN, TOLERANCE, Case, make_inputs

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
CASES = [
    *(Case(dim=dim, dtype=dtype, heads=(3, 1)) for dim in (64, 80, 96, 128, 256) for dtype in (F32, F16, BF16)),
    *(Case(rows=rows, prefix=3, heads=(1, 1)) for rows in (1, 2, 31, 32, 33, 60, 63, 64, 65, 129)),
    *(Case(prefix=prefix, keys=keys) for prefix in (0, 1, 31, 32, 33, 130) for keys in ("order", "slots", "device")),
    *(Case(rows=rows, prefix=prefix, mask=mask) for mask in ("causal", "bool", "wide") for rows in (1, 6, 40)
      for prefix in (0, 9)),
    *(Case(prefix=20, mask="wide", keys=keys) for keys in ("slots", "device")),
    *(Case(heads=heads, rows=9, dim=32) for heads in ((1, 1), (9, 3), (8, 2), (6, 1))),
    *(Case(rows=rows, prefix=40, keys=keys, dtype=F16, dim=16, mask="causal") for rows in (1, 40)
      for keys in ("slots", "device")),
]  # fmt: skip


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """New tensors hold nan: what a kernel leaves unwritten, or reads before, shows."""
    empty = torch.empty

    def poisoned(*args: Any, **options: Any) -> torch.Tensor:
        made = empty(*args, **options)
        return made.fill_(NAN) if made.is_floating_point() else made

    monkeypatch.setattr(torch, "empty", poisoned)


@pytest.fixture(params=["one part", "many parts"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Prefixes are long enough to be split from 256 keys on; here from 16."""
    if request.param == "many parts":
        monkeypatch.setattr(subject, "_MIN_KEYS_A_PART", 16)
    return str(request.param)


def assert_equal_to_reference(case: Case, scale: float = 0.2, tolerance: float = 0.0) -> None:
    inputs = make_inputs(case)
    query, key, value = inputs.query, inputs.key, inputs.value
    got = subject.tree_attention(query, key, value, inputs.mask, scale, inputs.layout)
    assert got.dtype == case.dtype
    assert got.shape == query.shape
    tolerance = tolerance or TOLERANCE[case.dtype]
    torch.testing.assert_close(got.double(), inputs.reference(scale), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_reference(case: Case) -> None:
    assert_equal_to_reference(case)


@pytest.mark.parametrize("prefix", [0, 15, 17, 64, 100, 200])
@pytest.mark.parametrize("keys", ["order", "slots", "device"])
@pytest.mark.usefixtures("parts")
def test_parts_merge_to_the_whole(prefix: int, keys: str) -> None:
    assert_equal_to_reference(Case(prefix=prefix, rows=3, heads=(2, 1), keys=keys))


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_halves_merge_too(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_MIN_KEYS_A_PART", 16)
    assert_equal_to_reference(Case(prefix=150, rows=4, heads=(4, 1), dtype=dtype, dim=80, keys="slots"))


def test_a_long_prefix_is_split_by_itself() -> None:
    assert_equal_to_reference(Case(prefix=700, rows=2, heads=(2, 1)))


def test_scores_far_apart_stay_finite() -> None:
    """Weights underflow and shifts are large; scores near 3000 are themselves known to 2e-4 in float32."""
    assert_equal_to_reference(Case(prefix=40, rows=4), scale=90.0, tolerance=2e-3)


def test_a_length_on_the_device_leaves_the_rest_unread() -> None:
    """One storage and one launch for every length, as a captured pass needs it; slots longer than what is used."""
    for prefix in (0, 5, 33):
        inputs = make_inputs(Case(rows=3, prefix=prefix, keys="device"), seed=prefix)
        capacity = inputs.key.shape[2]
        slots = torch.arange(capacity - 1, -1, -1)
        layout = KeyLayout(slots, inputs.layout.prefix_len)
        key, value = inputs.key.flip(2).contiguous(), inputs.value.flip(2).contiguous()
        got = subject.tree_attention(inputs.query, key, value, inputs.mask, 0.2, layout)
        torch.testing.assert_close(got.double(), inputs.reference(0.2), atol=1e-5, rtol=1e-5)


def test_offsets_beyond_32_bits() -> None:
    """Slots whose elements lie beyond 2^31: untouched memory costs nothing, so the storage need not be small."""
    num_slots, dim = 2**25 + 3, 64
    pool = torch.tensor([], dtype=F16).set_(torch.UntypedStorage(num_slots * dim * 2)).view(1, 1, num_slots, dim)
    slots = torch.tensor([num_slots - 1, 2, num_slots - 2])
    pool[:, :, slots] = torch.randn(1, 1, 3, dim, generator=torch.Generator().manual_seed(0)).half()
    query = torch.ones(1, 1, 1, dim, dtype=F16)
    got = subject.tree_attention(query, pool, pool, None, 0.1, KeyLayout(slots))
    few = pool[:, :, slots]
    expected = subject.tree_attention(query, few, few, None, 0.1)
    assert torch.equal(got, expected)
    assert got.abs().max() > 0


def test_a_row_that_may_look_at_nothing_gives_zeros() -> None:
    inputs = make_inputs(Case(rows=2, prefix=0, mask="bool"))
    assert inputs.mask is not None
    inputs.mask[1] = False
    got = subject.tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, 0.2)
    assert (got[:, :, 1] == 0).all()
    assert got[:, :, 0].isfinite().all()


@pytest.mark.parametrize(
    ("shapes", "dtypes", "match"),
    [
        (((1, 4, 2, 64), (1, 3, 9, 64)), (F32, F32), "go together"),
        (((2, 4, 2, 64), (2, 2, 9, 64)), (F32, F32), "go together"),
        (((1, 4, 2, 264), (1, 2, 9, 264)), (F32, F32), "head size 264"),
        (((1, 4, 2, 64), (1, 2, 9, 64)), (F32, F16), "one float dtype"),
        (((1, 4, 2, 64), (1, 2, 9, 64)), (torch.float64, torch.float64), "one float dtype"),
    ],
)
def test_what_cannot_be_computed_is_refused(shapes: Any, dtypes: Any, match: str) -> None:
    query, key = (torch.zeros(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    with pytest.raises(ValueError, match=match):
        subject.tree_attention(query, key, key, None, 1.0)
