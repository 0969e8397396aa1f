"""The settings of a training: which of them a resumed one has changed."""

from training.settings import changed_overrides, changes


def test_what_has_changed_is_told_by_name() -> None:
    before = {"a": {"b": 1, "c": None}, "d": [1, 2], "e": True, "f": 0.1, "same": {"x": "y"}}
    after = {
        "a": {"b": 2, "c": "text"},
        "d": [1],
        "e": False,
        "f": None,
        "same": {"x": "y"},
        "g": 5,
    }
    assert sorted(changes(before, after, given=["g"])) == ["a.b", "a.c", "d", "e", "f", "g"]
    assert changes(after, after) == []


def test_overrides_of_a_resumed_training_say_what_holds_now() -> None:
    before = {"threads": 2, "seed": 1, "training": {"max_steps": 20, "patience": 10}}
    after = {"threads": None, "seed": 1, "training": {"max_steps": 40, "patience": 10}}
    begun = ["+experiment=demo", "training.max_steps=20", "seed=1", "++threads=2"]
    assert changed_overrides(begun, before, after) == [
        "+experiment=demo",
        "seed=1",
        "threads=null",
        "training.max_steps=40",
    ]
    assert changed_overrides(begun, before, before) == begun


def test_a_key_that_an_older_run_does_not_have_is_no_change_unless_it_is_given() -> None:
    before, after = {"data": {"a": 1}}, {"data": {"a": 1, "join": 4}, "new": {"x": 2}}
    assert changes(before, after) == []
    assert changes(before, after, given=["data.join", "data.a"]) == ["data.join"]
