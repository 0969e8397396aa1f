"""The settings of a training: which of them a resumed one has changed."""

from omegaconf import OmegaConf

from training.settings import changes


def test_what_has_changed_is_told_as_overrides_that_make_one_the_other() -> None:
    before = {"a": {"b": 1, "c": None}, "d": [1, 2], "e": True, "f": 0.1, "same": {"x": "y"}}
    after = {
        "a": {"b": 2, "c": "text"},
        "d": [1],
        "e": False,
        "f": None,
        "same": {"x": "y"},
        "g": 5,
    }
    overrides = changes(before, after, given=["g"])
    assert sorted(o.split("=")[0] for o in overrides) == ["a.b", "a.c", "d", "e", "f", "g"]
    changed = OmegaConf.create(before)
    changed.merge_with_dotlist(overrides)
    assert OmegaConf.to_container(changed) == after
    assert changes(after, after) == []


def test_a_key_that_an_older_run_does_not_have_is_no_change_unless_it_is_given() -> None:
    before, after = {"data": {"a": 1}}, {"data": {"a": 1, "join": 4}, "new": {"x": 2}}
    assert changes(before, after) == []
    assert changes(before, after, given=["data.join", "data.a"]) == ["data.join=4"]
