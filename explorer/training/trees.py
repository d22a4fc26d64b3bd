"""Static trees for Medusa, grown from measured head accuracies."""

import heapq
import json
from pathlib import Path

from explorer.training.storage import replace_file


def grow_tree(accuracy: list[list[float]], num_nodes: int) -> list[list[int]]:
    """The `num_nodes` child-rank paths most likely to be accepted, best first, without the root.

    accuracy[head][rank]: how often that guess is right. A path's probability is the product along it, as in
    `medusa/eval/gen_results.py`; growing from the root best-first keeps every node's parent in the tree, and ties go
    to the path that comes first in order.
    """
    frontier = [(-accuracy[0][0], [0])]
    chosen: list[list[int]] = []
    while frontier and len(chosen) < num_nodes:
        negative, path = heapq.heappop(frontier)
        chosen.append(path)
        depth, rank = len(path) - 1, path[-1]
        if rank + 1 < len(accuracy[depth]) and accuracy[depth][rank] > 0:
            sibling = negative / accuracy[depth][rank] * accuracy[depth][rank + 1]
            heapq.heappush(frontier, (sibling, [*path[:-1], rank + 1]))
        if depth + 1 < len(accuracy):
            heapq.heappush(frontier, (negative * accuracy[depth + 1][0], [*path, 0]))
    return chosen


def expected_length(accuracy: list[list[float]], tree: list[list[int]]) -> float:
    """Expected tokens per pass, the target's own included: 1 + the sum of path probabilities."""
    total = 1.0
    for path in tree:
        probability = 1.0
        for depth, rank in enumerate(path):
            probability *= accuracy[depth][rank]
        total += probability
    return total


def merge_trees(path: Path, trees: dict[str, list[list[int]]]) -> None:
    """Put named trees into a preset file, keeping the others; a line per tree."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = [f"  {json.dumps(name)}: {json.dumps(paths)}" for name, paths in (known | trees).items()]
    replace_file(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
