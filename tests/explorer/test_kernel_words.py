"""Tables and sentences on tree attention and commits."""

from __future__ import annotations

from dataclasses import replace

from explorer.kernel_words import AttentionTime, CommitTime, KernelCost, commit_sentence, kernel_tables

COST = KernelCost(
    num_rows=60,
    num_committed=5,
    prefix_len=256,
    attention=[AttentionTime("naive", 0.1234, 3e-7)],
    commits=[CommitTime("rows, naive", 32.0, 40.0, 0.6), CommitTime("slots", 4.3, 4.4, 10.04)],
)


def test_each_operation_is_a_table() -> None:
    attention, commits = kernel_tables(COST)
    assert attention.title == "Tree attention, 60 rows behind 256 tokens"
    assert attention.rows == [["naive", "0.123", "3.0e-07"]]
    assert commits.title == "Committing 5 of 60 rows"
    assert commits.rows == [["rows, naive", "32.0", "40.0", "0.6"], ["slots", "4.3", "4.4", "10.0"]]


def test_what_could_not_run_is_said_where_it_is_missed() -> None:
    assert "Not measured" not in kernel_tables(COST)[0].note
    note = kernel_tables(replace(COST, missing="it needs a GPU"))[0].note
    assert note.endswith("Not measured: it needs a GPU.")


def test_the_cheapest_commit_is_told_with_what_it_leaves_to_the_next_pass() -> None:
    assert commit_sentence(COST).startswith("The cheapest commit here is that of slots: 4.3 µs of host time, 14.3 µs")
