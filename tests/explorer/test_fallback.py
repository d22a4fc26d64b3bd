"""The policy rests exactly while speculation costs time, probes again, and keeps what it judged by."""

from __future__ import annotations

from explorer.fallback import FIRST_REST, LONGEST_REST, NUM_MEASURED, PROBE, WINDOW, FallbackPolicy


def speculate(policy: FallbackPolicy, count: int, num_tokens: int, step_ms: float) -> None:
    for _ in range(count):
        assert not policy.is_resting
        policy.observe(num_tokens, step_ms, is_plain=False)


def rest(policy: FallbackPolicy, plain_ms: float = 10.0) -> int:
    """Plain steps until it tries again."""
    count = 0
    while policy.is_resting:
        policy.observe(1, plain_ms, is_plain=True)
        count += 1
    return count


def test_it_goes_on_while_steps_pay() -> None:
    policy = FallbackPolicy(10.0)
    speculate(policy, 50, num_tokens=2, step_ms=20.0)  # exactly even: nothing is lost
    assert not policy.is_resting


def test_it_rests_after_a_window_that_does_not_pay_and_says_why() -> None:
    policy = FallbackPolicy(10.0)
    speculate(policy, WINDOW, num_tokens=1, step_ms=15.0)
    assert policy.is_resting
    assert policy.told() == {"tokens": 1.0, "needed": 1.5, "left": FIRST_REST}


def test_probes_that_fail_make_the_rests_longer_and_one_that_pays_ends_them() -> None:
    policy = FallbackPolicy(10.0)
    speculate(policy, WINDOW, 1, 15.0)
    rests = [rest(policy)]
    for _ in range(4):
        speculate(policy, PROBE, 1, 15.0)
        rests.append(rest(policy))
    assert rests == [FIRST_REST, 2 * FIRST_REST, 4 * FIRST_REST, LONGEST_REST, LONGEST_REST]
    speculate(policy, PROBE, 3, 15.0)
    assert not policy.is_resting
    speculate(policy, WINDOW - 1, 1, 15.0)  # the window slides: old good steps hold it up for a while
    assert policy.is_resting
    assert rest(policy) == FIRST_REST


def test_without_a_measurement_it_begins_with_plain_steps() -> None:
    policy = FallbackPolicy()
    assert policy.told() == {"tokens": None, "needed": None, "left": NUM_MEASURED}
    assert rest(policy, plain_ms=20.0) == NUM_MEASURED
    speculate(policy, WINDOW, num_tokens=1, step_ms=19.0)
    assert not policy.is_resting


def test_plain_passes_that_became_dearer_are_noticed() -> None:
    policy = FallbackPolicy(10.0)
    speculate(policy, WINDOW, 1, 15.0)
    rest(policy, plain_ms=30.0)  # another visitor's work, a hotter processor
    speculate(policy, PROBE, 1, 15.0)
    assert not policy.is_resting
