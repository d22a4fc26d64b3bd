"""A draft: what was considered, and the part of it that the target verifies."""

from __future__ import annotations

import pytest
import torch

from explorer.config import Sampling
from explorer.errors import SettingError
from explorer.methods.base import Draft, Method, check_acceptance
from explorer.tree import DraftTree

TREE = DraftTree.from_lists([5, 6, 7, 8, 9], [-1, 0, 0, 1, 2])


def test_without_a_cut_everything_is_verified() -> None:
    draft = Draft(TREE)
    assert draft.kept_rows() == [0, 1, 2, 3, 4]
    assert draft.tree() is TREE


def test_a_cut_keeps_rows_and_their_parents() -> None:
    draft = Draft(TREE, kept=torch.tensor([0, 2, 4]))
    assert draft.kept_rows() == [0, 2, 4]
    assert draft.tree().token_list == [5, 7, 9]
    assert draft.tree().parent_list == [-1, 0, 1]


def test_a_cut_that_orphans_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="parent"):
        Draft(TREE, kept=torch.tensor([0, 4])).tree()


def test_distributions_follow_their_rows_through_a_cut() -> None:
    dists = torch.tensor([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])
    draft = Draft(TREE, draft_dists=dists, dist_rows=(0, 1, 2))
    assert {row: dist.tolist() for row, dist in draft.dists().items()} == dict(enumerate(dists.tolist()))
    cut = draft._replace(kept=torch.tensor([0, 2, 4]))
    assert {row: dist.tolist() for row, dist in cut.dists().items()} == {0: [0.5, 0.5], 1: [1.0, 0.0]}
    assert Draft(TREE).dists() == {}


def test_a_rule_that_a_method_lacks_is_refused_with_those_it_has() -> None:
    class Lossless(Method):
        name = "lossless"

    typical = Sampling(0.7, acceptance="typical")
    with pytest.raises(SettingError, match="lossless has no typical acceptance: choose greedy or rejection"):
        check_acceptance(Lossless, typical)
    check_acceptance(Lossless, Sampling(0.7))
    Lossless.acceptances = ("typical",)
    check_acceptance(Lossless, typical)


def test_a_method_needs_all_three_calls() -> None:
    class Half(Method):
        name = "half"

        def draft(self, root: int) -> Draft:
            return Draft(DraftTree.root_only(root))

    with pytest.raises(TypeError, match="abstract"):
        Half(None, None, None)  # type: ignore[abstract,arg-type]
