"""Bitwise numerics: a row of a tree pass has the bits of plain one-row passes along its path, or is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from explorer.bitwise import BitwiseTarget
from explorer.errors import DeviceError
from explorer.loading import ModelStore, check_placement
from explorer.runner_events import RunRequest, drain
from explorer.target import Target
from explorer.tree import DraftTree
from tests.support.tiny import VOCAB, tiny_bitwise_target, tiny_model

DTYPES = (torch.float32, torch.bfloat16)


def plain_rows(target: Target, tree: DraftTree) -> list[Tensor]:
    """Logits [V] after every row by plain steps along its path: the slow twin. Rows of a path share its steps."""
    length, depths, found = target.length, tree.depths.tolist(), [torch.empty(0)] * len(tree)
    rows = [0]
    while rows:
        row = rows.pop()
        target.roll_back(length + depths[row])
        found[row] = target.forward(DraftTree.root_only(tree.token_list[row])).logits[0]
        target.commit([0])
        rows += tree.children(row)
    return found


def some_tree(num_rows: int) -> DraftTree:
    generator = torch.Generator().manual_seed(num_rows)
    tokens = torch.randint(VOCAB, (num_rows,), generator=generator).tolist()
    parents = [-1, *(int(torch.randint(row, (), generator=generator)) for row in range(1, num_rows))]
    return DraftTree.from_lists(tokens, parents)


@pytest.mark.parametrize("num_rows", [1, 2, 7, 60])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_row_has_the_bits_of_plain_decoding(dtype: torch.dtype, num_rows: int) -> None:
    target, tree = tiny_bitwise_target(dtype), some_tree(num_rows)
    target.prefill([3, 1, 4, 1, 5])
    logits = target.forward(tree).logits
    for row, plain in enumerate(plain_rows(target, tree)):
        assert torch.equal(logits[row], plain), f"row {row}"


def test_products_that_depend_on_company_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Target._logits
    monkeypatch.setattr(Target, "_logits", lambda self, hidden: honest(self, hidden) + 1e-6 * len(hidden))
    with pytest.raises(DeviceError, match="row 0 of 3 other bits than the row alone; choose --numerics fast"):
        BitwiseTarget(tiny_model(), None, "tiny", frozenset(), "naive")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"numerics": "exact"}, "unknown numerics 'exact'"), ({"numerics": "bitwise", "backend": "triton"}, "row by row")],
)
def test_words_and_combinations_that_mean_nothing(changes: dict[str, str], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        check_placement(RunRequest("autoregressive", prompt="?", **changes))


@pytest.mark.default_target
def test_the_default_target_in_bfloat16() -> None:
    request = RunRequest("autoregressive", prompt="?", dtype="bfloat16", numerics="bitwise")
    try:
        target = drain(ModelStore().models(request)).target
    except DeviceError as error:
        pytest.skip(str(error))
    tree = some_tree(12)
    target.prefill(list(range(40)))
    logits = target.forward(tree).logits
    for row, plain in enumerate(plain_rows(target, tree)):
        assert torch.equal(logits[row], plain), f"row {row}"
