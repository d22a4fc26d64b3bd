"""The queue: one at a time, in order of arrival, and places that are given up."""

import threading

from explorer.device_queue import DeviceQueue


def test_first_come_first_served():
    queue = DeviceQueue()
    first, second, third = (object() for _ in range(3))
    assert list(queue.enter(first)) == []
    waiting = {name: queue.enter(name) for name in (second, third)}
    assert [next(waiting[second]), next(waiting[third])] == [1, 2]
    queue.leave(first)
    assert next(waiting[third]) == 1
    assert list(waiting[second]) == []
    queue.leave(second)
    assert list(waiting[third]) == []


def test_a_place_in_the_queue_can_be_given_up():
    queue = DeviceQueue()
    first, second, third = (object() for _ in range(3))
    list(queue.enter(first))
    next(queue.enter(second))
    last = queue.enter(third)
    assert next(last) == 2
    queue.leave(second)
    assert next(last) == 1
    queue.leave(first)
    assert list(last) == []


def test_leaving_twice_or_without_entering_does_nothing():
    queue, ticket = DeviceQueue(), object()
    queue.leave(ticket)
    list(queue.enter(ticket))
    queue.leave(ticket)
    queue.leave(ticket)
    assert list(queue.enter(object())) == []


def test_threads_never_hold_it_together():
    queue, inside, most = DeviceQueue(), [], []

    def work():
        for _ in range(20):
            ticket = object()
            for _ in queue.enter(ticket):
                pass
            inside.append(ticket)
            most.append(len(inside))
            inside.remove(ticket)
            queue.leave(ticket)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(most) == 80 and max(most) == 1


def test_its_length_is_the_run_on_the_device_and_those_behind_it():
    queue = DeviceQueue()
    first, second = object(), object()
    assert len(queue) == 0
    list(queue.enter(first))
    waiting = queue.enter(second)
    next(waiting)
    assert len(queue) == 2
    queue.leave(first)
    queue.leave(second)
    assert len(queue) == 0
