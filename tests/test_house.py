"""Who may import whom: no arrow upward, no circle, each library in its own room."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "data": {"data"},
    "models": {"models"},
    "evaluation": {"evaluation"},
    "decoding": {"decoding", "models", "data"},
    "training": {"training", "models", "data", "decoding", "evaluation"},
    "scripts": {"decoding", "evaluation", "data", "cli"},
    "train.py": {"training", "models", "data", "decoding", "cli"},
    "evaluate.py": {"decoding", "evaluation", "data", "cli"},
    "cli.py": set(),
}
# one command and its steps, which show what the models' own functions compute
TOUR = ("scripts/attention_tour.py", "scripts/tour/")
ALSO = {  # what a script needs besides, and why
    "scripts/benchmark.py": {"train", "training"},  # measures train.py's own updates
    "scripts/benchmark_growth.py": {"train", "training"},  # likewise, and its start
    "scripts/export_ctranslate2.py": {"models"},  # writes out the weights of one architecture
}
ONLY_IN = {
    "matplotlib": {
        "evaluation/figures.py",
        "evaluation/gallery.py",
        "evaluation/tour_figures.py",
    },
    "omegaconf": {"train.py", "evaluate.py", "cli.py", "models/checkpoint.py"},
    "sentencepiece": {"data/tokenizer.py"},
}
PAPERS = {path.stem for path in (ROOT / "models").glob("*.py")} - {
    "__init__",
    "seq2seq",
    "attention",
    "dropout",
    "recurrent",
    "checkpoint",
}
FILES = [
    path
    for place in MAY_IMPORT
    for path in ([ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")))
]


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_imports_only_what_its_room_may(path: Path) -> None:
    place = path.relative_to(ROOT).parts[0]
    rooms = {room.removesuffix(".py") for room in MAY_IMPORT}
    ours = {name.split(".")[0] for name in imports(path)} & rooms
    tour = str(path.relative_to(ROOT)).startswith(TOUR)
    also = ALSO.get(str(path.relative_to(ROOT)), set())
    shared = {"scripts"} if place == "scripts" else set()
    assert ours <= MAY_IMPORT[place] | also | shared | ({"models"} if tour else set())
    if place == "scripts":
        others = {name for name in imports(path) if name.startswith("scripts")}
        may = ("scripts.options.", "scripts.tour.") if tour else ("scripts.options.",)
        assert all(name.startswith(may) for name in others)
    if place == "models" and path.stem in PAPERS:
        others = {name.split(".")[1] for name in imports(path) if name.startswith("models.")}
        assert not others & PAPERS - {f"{path.stem}_fast"}
    if place in ("evaluation",):
        assert not any(name.startswith("torch") for name in imports(path))


@pytest.mark.parametrize("library", ONLY_IN)
def test_each_library_has_its_room(library: str) -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in FILES
        if any(name.split(".")[0] == library for name in imports(path))
    }
    assert users <= ONLY_IN[library]


def test_packages_hold_their_rule_and_nothing_else() -> None:
    for path in [*ROOT.glob("*/__init__.py"), *ROOT.glob("data/*/__init__.py")]:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assert len(body) == 1 and isinstance(body[0].value, ast.Constant), path


def test_every_test_that_the_requirements_name_is_there() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:long/)?test_\w+)(\.py)?`", text)
    assert len(named) > 200
    missing, file = [], ""
    for name, ending in named:
        if ending:
            file = (ROOT / "tests" / f"{name}.py").read_text(encoding="utf-8")
        elif f"def {name}(" not in file:
            missing.append(name)
    assert not missing
