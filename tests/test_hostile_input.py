"""What comes from elsewhere is used or refused in words: text, archives, models, runs, settings.

Nothing is written outside its folder, nothing that a file names is run, and memory and time have
bounds. tests/long/test_fuzz.py goes on with random input for as long as one likes.
"""

import ast
import gzip
import importlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import hostile
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import data.sources
from cli import EXPECTED, check_overrides, command
from data import archive, corpus
from data.archive import unpack
from data.corpus import normalise, read_tsv
from data.sources import Tatoeba
from data.text import MAX_LINE_BYTES, read_lines
from data.tokenizer import BOS, EOS, MAX_SIZE, PAD, TYPES, UNK, Tokenizer, learn
from decoding.run import Run
from decoding.translator import MAX_SOURCE_TOKENS, search_with
from evaluation.gold import read_gold, read_json_lines
from evaluation.links import crossing_links
from models import checkpoint
from scripts.plot_bleu_by_length import read_evaluation

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
bounded = settings(
    derandomize=True,
    deadline=2_000,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
pieces = st.lists(st.sampled_from(hostile.PIECES) | st.text(max_size=4), max_size=12).map("".join)
seeds = st.integers(0, 2**32).map(random.Random)


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def refused_or(use: Callable[[], object]) -> object:
    """What use gives, or None where it is refused with a message; nothing else may be raised."""
    try:
        return use()
    except EXPECTED as error:
        assert str(error)
        return None


# Text


@bounded
@given(text=pieces)
def test_any_text_has_one_normal_form_that_is_plain_utf8(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once == " ".join(once.split()) == once.encode("utf-8").decode("utf-8")
    apart = unicodedata.normalize("NFD", text)
    heaps = [
        len(heap) for heap in "".join(c if unicodedata.combining(c) else " " for c in apart).split()
    ]
    # of a heap too high, other marks are kept where they stand in another order
    assert normalise(apart) == once or max(heaps) > corpus.MAX_MARKS


def test_a_heap_of_combining_marks_takes_no_time() -> None:
    begun = time.process_time()
    for heap in ("\u0300\u0323" * 100_000, "\u0300\u200d" * 100_000, "\u0300" * 99 + "\u0323" * 99):
        made = normalise("a" + heap + " b")
        marks = max(len(word) for word in unicodedata.normalize("NFD", made).split()) - 1
        assert marks - corpus.MAX_MARKS in (0, 1) and made.endswith(" b")  # one may be composed
    assert time.process_time() - begun < 5  # sorting so many takes minutes


@bounded
@given(content=st.binary(max_size=60) | seeds.map(hostile.lines))
def test_the_lines_of_a_file_are_its_bytes_between_line_feeds(tmp_path, content: bytes) -> None:
    found = refused_or(lambda: list(read_lines(write(tmp_path / "a.txt", content))))
    if found is None:
        with pytest.raises(UnicodeDecodeError):
            content.decode("utf-8")
        return
    expected = content.decode("utf-8-sig").split("\n")
    expected = expected[:-1] if expected[-1] == "" else expected
    assert found == [line.replace("\r", "") for line in expected]


@bounded
@given(content=seeds.map(hostile.lines))
def test_cells_of_a_table_hold_no_tab_or_line_feed(tmp_path, content: bytes) -> None:
    pairs = refused_or(lambda: list(read_tsv(write(tmp_path / "a.tsv", content))))
    assert not any(char in side for pair in pairs or () for side in pair[:2] for char in "\t\n")


def test_a_line_of_ten_megabytes_is_read_and_one_without_end_refused(tmp_path: Path) -> None:
    long = write(tmp_path / "long.txt", b"the cat " * (10 * MIB // 8) + b"\nb\n")
    assert [len(line) for line in read_lines(long)] == [10 * MIB, 1]
    endless = write(tmp_path / "endless.txt", b"a\n" + bytes(MAX_LINE_BYTES + 1))
    with pytest.raises(ValueError, match=r"endless\.txt, line 2: over 16,777,216 bytes"):
        list(read_lines(endless))


def limited(code: str, *arguments: str) -> tuple[str, int]:
    """What Python code prints that may use 1.5 GiB of addresses, and how many MiB it used."""
    # not by getrusage, whose maximum begins with that of the process that started this one
    told = "\nwith open('/proc/self/status') as f: status = f.read()"
    told += "\nprint(int(status.split('VmHWM:')[1].split()[0]) >> 10)"
    limit = (3 * MIB << 9, 3 * MIB << 9)
    ended = subprocess.run(
        [sys.executable, "-c", code + told, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        capture_output=True,
        encoding="utf-8",
    )
    assert ended.returncode == 0, ended.stderr
    *said, used = ended.stdout.splitlines()
    return "\n".join(said), int(used)


def test_bombs_are_refused_in_little_memory(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(16 * MIB)) * 20  # 320 MiB in one line
    write(tmp_path / "line.gz", packed)
    write(tmp_path / "rows.gz", gzip.compress((b"a" * 999 + b"\tb\n") * 20_000) * 9)
    write(tmp_path / "bomb.tgz", gzip.compress(tarred("fra.txt", b"", size=1 << 40)) + packed)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("fra.txt", bytes(64 * MIB))
    name_of_a_gibibyte = tarred("x", b"", size=1 << 30, kind=tarfile.GNUTYPE_LONGNAME)
    write(tmp_path / "name.tgz", gzip.compress(name_of_a_gibibyte) + packed)
    said, used = limited(
        """if True:
        import sys
        from collections import deque
        from pathlib import Path
        from data.archive import unpack
        from data.corpus import read_tsv
        from data.text import read_lines
        wanted = lambda name: name == "fra.txt"
        folder = Path(sys.argv[1])
        for use in (
            lambda: deque(read_lines(folder / "line.gz"), 0),
            lambda: deque(read_tsv(folder / "rows.gz"), 0),
            lambda: unpack(folder / "bomb.tgz", folder / "1", wanted, "fra.txt", 1 << 30),
            lambda: unpack(folder / "bomb.zip", folder / "2", wanted, "fra.txt", 1 << 30),
            lambda: unpack(folder / "name.tgz", folder / "3", wanted, "fra.txt", 1 << 30),
        ):
            try:
                use()
            except ValueError as error:
                print(error)
        """,
        str(tmp_path),
    )
    reasons = [line.split(": ", 1)[1] for line in said.splitlines()]
    assert [reason.split(" ")[0] for reason in reasons] == [
        *("over", "unpacks", "unpacks", "unpacks", "damaged,"),
    ]
    assert used < 300
    assert sum(path.stat().st_size for path in tmp_path.rglob("fra.txt")) < 50 * MIB


@pytest.mark.parametrize("path", ["/..", "/%2e%2e", "/.", "/", "/a%2F..%2F..%2Fb", "/a\\..\\b"])
def test_a_url_names_no_file_outside_the_folder(tmp_path, monkeypatch, path: str) -> None:
    monkeypatch.setenv("SEQ2SEQ_CORPORA", str(tmp_path))
    asked = []
    monkeypatch.setattr(data.sources, "fetch", lambda url, to, sha256: asked.append(to))
    tatoeba = Tatoeba(source=f"http://host{path}", max_pairs=None, max_train_words=None)
    with pytest.raises(OSError):
        tatoeba.folder()  # what was not fetched is not there
    (target,) = asked
    assert target.resolve().parent == target.parent and target.is_relative_to(tmp_path)
    assert target.parent.parent == tmp_path / "supplied/.incoming"


# Archives


def tarred(name: str, content: bytes, *, size: int = -1, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that claims what one likes, and its content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, "../../outside", len(content) if size < 0 else size
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512) + bytes(1024)


def unpacked(folder: Path, content: bytes) -> dict[str, bytes | None]:
    """What lies in and around the folder of an archive after it was unpacked or refused."""
    write(folder / "a", content)
    write(folder / "outside", b"untouched")
    refused_or(
        lambda: unpack(folder / "a", folder / "in/out", "fra.txt".__eq__, "fra.txt", 1 << 20)
    )
    left = hostile.everything_below(folder)
    assert left.pop("a") == content and left.pop("outside") == b"untouched"
    return left


@pytest.mark.parametrize("kind", [*hostile.TAR_TYPES[3:], tarfile.XHDTYPE, b"?"], ids=repr)
def test_of_a_tar_only_files_are_written(tmp_path: Path, kind: bytes) -> None:
    left = unpacked(tmp_path, tarred("fra.txt", b"", kind=kind))
    assert left.keys() <= {"in", "in/out", "in/out/fra.txt"}
    assert left.get("in/out/fra.txt", b"") == b"" and not (tmp_path / "in/out/fra.txt").is_symlink()


@pytest.mark.parametrize("name", [*hostile.NAMES, "C:/fra.txt", "a\\..\\..\\fra.txt"], ids=ascii)
def test_whatever_a_member_is_called_it_is_written_in_the_folder_or_not(
    tmp_path: Path, name: str
) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as pack:
        pack.writestr(zipfile.ZipInfo(name or "x"), b"text")
    for number, content in enumerate((stream.getvalue(), tarred(name[:90], b"text"))):
        left = unpacked(tmp_path / str(number), content)
        assert left.keys() <= {"in", "in/out", "in/out/fra.txt"}
        climbs = ".." in name or name[:1] in ("/", "\\") or name[1:2] == ":"
        assert ("in/out/fra.txt" in left) <= (not climbs)


def test_headers_that_lie_do_not_hang_or_fill_the_memory(tmp_path: Path) -> None:
    back = tarred("fra.txt", b"text", size=0)
    header = bytearray(back[:512])
    header[124:136] = b"\xff" * 8 + (-1024).to_bytes(4, "big", signed=True)  # a size below zero
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 32)
    for content in (bytes(header) * 3, back * 3, gzip.compress(bytes(header)) * 50):
        left = unpacked(tmp_path, content)
        assert left.keys() <= {"in", "in/out", "in/out/fra.txt"}


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 10)
    one = tarred("x", b"")[:512]
    write(tmp_path / "a", one * 10 + bytes(1024))
    with pytest.raises(ValueError, match="holds no"):
        unpack(tmp_path / "a", tmp_path / "out", "fra.txt".__eq__, "fra.txt", 1 << 20)
    write(tmp_path / "a", one * 11 + bytes(1024))
    with pytest.raises(ValueError, match="over 10 files"):
        unpack(tmp_path / "a", tmp_path / "out", "fra.txt".__eq__, "fra.txt", 1 << 20)


def test_odd_and_damaged_archives_stay_in_their_folder(tmp_path: Path) -> None:
    for seed in range(150):
        left = unpacked(tmp_path / str(seed), hostile.archive(random.Random(seed)))
        assert left.keys() <= {"in", "in/out", "in/out/fra.txt"}, seed


# Vocabularies

TEXT = ["Où est l'école ?", "Là-bas, je crois.", "The old school is over there, I believe."] * 3


@pytest.fixture(scope="module")
def vocabularies() -> list[Tokenizer]:
    return [learn(TEXT, type=kind, size=34 if kind == "unigram" else 60) for kind in TYPES]


@bounded
@given(text=pieces)
def test_any_text_becomes_tokens_and_known_text_comes_back(vocabularies, text: str) -> None:
    sentence = normalise(text)
    for tokenizer in vocabularies:
        (tokens,) = tokenizer.encode([sentence])
        assert not {PAD, BOS, EOS} & set(tokens)
        if UNK not in tokens and "▁" not in sentence:
            assert tokenizer.decode(tokens) == sentence


@pytest.mark.parametrize("kind", TYPES)
def test_damaged_vocabularies_are_refused_or_work(vocabularies, tmp_path: Path, kind: str) -> None:
    whole = vocabularies[TYPES.index(kind)].model
    path = tmp_path / "src.model"
    for seed in range(100):
        write(path, hostile.damaged(random.Random(seed), whole))
        tokenizer = refused_or(lambda: Tokenizer.load(path))
        for tokens in tokenizer.encode(TEXT[:3]) if tokenizer else ():
            assert not {PAD, BOS, EOS} & set(tokens)
            assert "\n" not in tokenizer.decode(tokens) + "".join(tokenizer.pieces(tokens))


@pytest.mark.parametrize("kind", TYPES)
def test_a_vocabulary_is_learnt_from_any_text_or_refused_in_words(kind: str) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        text = [normalise(hostile.text(draw)) for _ in range(draw.choice([0, 1, 5, 20]))]
        size = draw.choice([4, 5, 20, 60])
        tokenizer = refused_or(lambda: learn(text, type=kind, size=size))  # noqa: B023
        assert tokenizer is None or tokenizer.size <= size


def test_impossible_sizes_end_at_once_and_text_that_cannot_be_learnt_from_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for size in (2**31 - 1, 2**40, MAX_SIZE + 1):  # near 2^31 SentencePiece would never end
        with pytest.raises(ValueError, match="at most 1,000,000"):
            learn(["a"], type="unigram", size=size)
    text = [*TEXT, "▅", "a▅", "x" * 5_000]
    assert learn(text, type="word", size=999).size == learn(TEXT, type="word", size=999).size
    assert "1 lines over 16384 bytes or with words over 4096" in caplog.text
    assert "2 lines with '▅' are left out" in caplog.text


# Checkpoints


CALLS = [  # what would make files if it were called
    {"_target_": "os.mkdir", "path": "made"},
    {"_target_": "models.checkpoint.save", "path": "made", "content": {}},
    {"_target_": "models.checkpoint.os.mkdir", "path": "made"},
    {"_target_": "data.archive.shutil.copytree", "src": str(ROOT / "configs"), "dst": "made"},
    {"_target_": "models.seq2seq.Seq2Seq"},
    {"_target_": "models.rnn"},
    {"_target_": "models...os.mkdir"},
    {"_target_": ["os.mkdir"]},
    {},
]


@pytest.mark.parametrize("settings", CALLS, ids=str)
def test_settings_call_nothing_but_architectures(tmp_path, monkeypatch, settings: dict) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"embedding": 4, "hidden": 4, "layers": 1, "cell": "gru", "dropout": 0.0}
    rnn = {"_target_": "models.rnn.RNN", "reverse_source": False, **sizes}
    assert checkpoint.build(rnn, 5, 5)
    for model in (settings, rnn | {"hidden": settings}, rnn | {"odd": settings}):
        with pytest.raises(ValueError, match="model"):
            checkpoint.build(model, 5, 5)
    assert not list(tmp_path.iterdir())


def test_numbers_that_would_fill_the_memory_are_refused() -> None:
    sizes = {"embedding": 4, "hidden": 4, "layers": 10**9, "cell": "gru", "dropout": 0.0}
    with pytest.raises(ValueError, match=r"model\.layers must be from 1 to 100,000, not 1000"):
        checkpoint.build({"_target_": "models.rnn.RNN", "reverse_source": False, **sizes}, 5, 5)


def same(first: object, second: object) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    return first == second


def test_a_changed_bit_of_a_checkpoint_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    weights = {"a": torch.arange(12.0).view(3, 4), "b": torch.ones(5, dtype=torch.bfloat16)}
    content = {"model": {}, "vocabularies": [5, 6], "digests": ["x", "y"], "weights": weights}
    checkpoint.save(tmp_path / "best.pt", content)
    whole, noticed = (tmp_path / "best.pt").read_bytes(), 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        found = refused_or(lambda: checkpoint.load(write(tmp_path / "d.pt", bytes(damaged))))  # noqa: B023
        noticed += found is None
        assert found is None or same(found, content), place
    for end in range(0, len(whole), 97):
        with pytest.raises(ValueError, match=r"d\.pt: damaged"):
            checkpoint.load(write(tmp_path / "d.pt", whole[:end]))
    assert noticed > len(whole) / 7 / 4  # the rest is filling between the records


def test_nothing_in_the_project_runs_what_a_file_holds() -> None:
    """Every loader that could: pickle, torch.load without weights_only, yaml.load, eval, ..."""
    calls = {}
    for path in [*ROOT.glob("*.py"), *(p for r in ROOMS for p in (ROOT / r).rglob("*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                calls.setdefault(ast.unparse(node.func), []).append((path.name, node))
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & set(names), path
    never = {"eval", "exec", "compile", "os.system", "yaml.load", "yaml.unsafe_load"}
    assert not (never | {"torch.serialization.add_safe_globals"}) & set(calls)
    for path, node in calls.get("torch.load", ()):
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        assert given.get("weights_only") == "True", path
    for path, node in calls.get("np.load", ()):
        assert not {word.arg for word in node.keywords} & {"allow_pickle"}, path
    assert "instantiate" not in calls
    for path, node in [
        call for name, found in calls.items() if "subprocess" in name for call in found
    ]:
        assert "shell" not in {word.arg for word in node.keywords}, path


ROOMS = ("data", "models", "decoding", "evaluation", "training", "scripts")


# Run folders


RUN = {
    "chosen": {"data": "files", "model": "rnn"},
    "data": {"_target_": "data.sources.Tatoeba", "source": None, "max_pairs": None,
             "max_train_words": None},
    "tokenizer": {}, "model": {}, "training": {}, "search": {},
}  # fmt: skip


def settings_of(folder: Path, content: bytes | dict) -> str:
    """What Run says of a config.yaml."""
    text = content if isinstance(content, bytes) else yaml.safe_dump(content).encode()
    run = Run(write(folder / "config.yaml", text).parent)
    try:
        return f"{run.name} {type(run.corpus()).__name__}"
    except ValueError as error:
        assert "\n" not in " ".join(str(error).split())
        return f"refused: {error}"


@pytest.mark.parametrize(
    "content, said",
    [
        (RUN, "files/rnn/run Tatoeba"),
        (b"", "not the settings"),
        (b"[1, 2]", "not the settings"),
        (b"chosen: 5", "'chosen'"),
        (b"\xff\xfe", "not YAML"),
        (b"a: [", "not YAML"),
        (b"!!python/object/apply:os.mkdir [made]", "not YAML"),
        (b"a: !!int ''", "not YAML"),
        (b"a: !!timestamp x", "not YAML"),
        (b"[" * 20_000, "too large"),
        (b"[" * 990, "not YAML"),
        (b"- " * 9_000, "not YAML"),
        (b"a: " + b"9" * 5_000, "not YAML"),
        (b"x" * 70_000, "too large"),
        (b"a: &a [*a]\n" + yaml.safe_dump(RUN).encode(), "too large"),
        (RUN | {"seed": "${oc.env:HOME}"}, "not resolved"),
        (RUN | {5: 6}, "a key is not a text"),
        (RUN | {"chosen": {}}, "lacks data or model"),
        (RUN | {"data": {}}, "not a corpus of data/"),
        (RUN | {"data": {"_target_": "data.download.fetch", "url": "x"}}, "not a corpus of data/"),
        (RUN | {"data": {"_target_": "os.mkdir", "path": "made"}}, "not a corpus of data/"),
        (RUN | {"data": RUN["data"] | {"odd": 1}}, "unexpected keyword argument 'odd'"),
        (RUN | {"data": RUN["data"] | {"max_pairs": [1]}}, "max_pairs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_or_foreign_settings_of_a_run_are_refused(
    tmp_path, monkeypatch, content: bytes | dict, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in settings_of(tmp_path / "run", content)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_references_that_multiply_are_not_followed(tmp_path: Path) -> None:
    laughs = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)
    )
    begun = time.process_time()
    assert "too large" in settings_of(
        tmp_path / "run", laughs.encode() + yaml.safe_dump(RUN).encode()
    )
    assert time.process_time() - begun < 5


# Gold links


@bounded
@given(
    lines=st.lists(st.lists(st.from_regex(r"-?\d{0,3}[-p]\d{0,2}") | pieces).map(" ".join)),
    one_based=st.booleans(),
)
def test_gold_links_are_read_or_refused_with_their_line(lines: list[str], one_based: bool) -> None:
    gold = refused_or(lambda: read_gold(lines, one_based=one_based, lengths=[(99, 9)] * len(lines)))
    for sentence in gold or ():
        assert sentence.sure <= sentence.possible
        assert all(0 <= i < 99 and 0 <= j < 9 for i, j in sentence.possible)


@pytest.mark.parametrize(
    "line", ["[" * 99_999, '{"src_words":' * 9_999, '{"a": ' + "9" * 9_999 + "}"]
)
def test_json_that_is_deep_or_long_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match="gold, line 2"):
        read_json_lines(["", line])


def test_links_that_cross_are_found_in_no_time(tmp_path: Path) -> None:
    for seed in range(200):
        draw = random.Random(seed)
        links = {(draw.randrange(6), draw.randrange(6)) for _ in range(draw.randrange(12))}
        by_definition = {(i, j) for i, j in links if any((i - k) * (j - m) < 0 for k, m in links)}
        assert crossing_links(links) == by_definition
    begun = time.process_time()
    assert len(crossing_links((i, j) for i in range(200) for j in range(200))) == 200 * 200 - 2
    assert time.process_time() - begun < 5


# Settings from the command line


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["training.max_steps=${nope}"], "'nope' not found"),
        (["training.max_steps=${training.learning_rate}"], "must be a whole number"),
        (["training.max_steps=null"], "must be a whole number"),
        (["training.max_steps=1e3"], "must be a whole number"),
        (["training.max_steps=true"], "must be a whole number"),
        (["training.max_steps=???"], "training.max_steps"),
        (["training.learning_rate=nan"], "must be a finite number"),
        (["width=1e999"], "must be a finite number"),
        (["seed=" + "9" * 30], "at most 64 bits"),
        (["seed=" + "9" * 5_000], "seed"),
        (["training.length_edges=5"], "must be a list"),
        (["training.length_edges=[1,[2]]"], "training.length_edges.1"),
        (["training.optimizer=5"], "must be a group of keys"),
        (["training.muon=fast"], "must be a number"),
        (["training=[1]"], "no such choice"),
        (["data={a:1}"], "no such choice"),
        (["model=../data/files"], "no such choice"),
        (["precision={a:1}"], "must be a text"),
        (["threads=many"], "must be a whole number"),
        (["data.source=[a]"], "must be a text"),
        (["~training.max_steps"], "no key can be left out"),
        (["~data"], "no key can be left out"),
        (["seed=1,2"], "a sweep (-m)"),
        (["-m", "seed=1,two"], "seed=two: must be a whole number"),
        (["-m", "seed=1,2", "width=x"], "width=x: must be a whole number"),
        (["-m", "model=rnn,luong", "seed=1,2", "name=a"], "'name=a-${seed}'"),
        (["+training.max_step=5"], "did you mean 'training.max_steps'"),
        (["+tokenizer.sized=5"], "did you mean 'tokenizer.size'"),
        (["=5"], "'=5' has no key before the ="),
        (["+=${oc.env:NOPE}"], "has no key before the ="),
        (["é=5"], "'é=5' cannot be read"),
        (["seed={"], "'seed={' cannot be read"),
        (["seed='"], "cannot be read"),
        (["name=a\x00b"], "cannot be read"),
        (["name=\udcff"], "cannot be read"),
        (["name=" + "[" * 3_000], "cannot be read"),
        (["../x=5"], "../x"),
        (["x" * 99_999], "not of the form"),
    ],
    ids=lambda value: (
        " ".join(value)[:40].encode("unicode_escape").decode() if isinstance(value, list) else ""
    ),
)
def test_overrides_are_refused_in_one_line(capsys, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        command(check_overrides)("train", arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 1 and error.startswith("error: ") and said in error
    assert error.count("\n") == 1 and len(error) < 2_100 and error.strip().isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        ["training.patience=null", "seed=9223372036854775807", "training.dropout=0"],
        ["+experiment=demo", "threads=null"],
        ["+experiment=multi30k_transformer", "model.tied=null", "+training.optimizer.eps=1e-4"],
        ["-m", "model=rnn,bahdanau", "name=a"],
        ["-m", "seed=1,2", "name='a-${seed}'"],
        ["name='é ${width}'", "width=${seed}", "data.max_train_words=5", "+a.b=[1,{c: 2}]"],
        ["-m", "seed=1,2", "model=rnn,bahdanau", "training.dropout=0.1,0"],
    ],
)
def test_overrides_that_are_sound_pass(arguments: list[str]) -> None:
    check_overrides("train", arguments)


def test_numbers_that_no_search_can_use_are_refused() -> None:
    for beam, penalty in ((0, 1.0), (10**9, 1.0), (5, -1.0), (5, float("nan")), (5, 1e300)):
        with pytest.raises(ValueError, match=r"search\.(beam_size|length_penalty) must be"):
            search_with(beam, penalty)


# The commands, from end to end

WORDS = {
    "the": "le",
    "café": "café",
    "l'ours": "ours",
    "sees": "voit",
    "été": "summer",
    "and": "et",
}
TINY = ["width=16", "threads=1", "precision=fp32", "tokenizer=word", "training.max_steps=60",
        "training.validate_every=60", "training.batch_tokens=300", "training.warmup_steps=5",
        "training.learning_rate=0.02"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small trained run, in whose parent folder commands run."""
    folder = tmp_path_factory.mktemp("hostile")
    draw = random.Random(0)
    sides: dict[str, list[str]] = {"src": [], "tgt": []}
    for _ in range(150):
        sentence = draw.choices(list(WORDS), k=draw.randint(2, 7))
        sides["src"].append(" ".join(sentence))
        sides["tgt"].append(" ".join(WORDS[word] for word in sentence))
    overrides = ["data=files"]
    for split, part in (("train", slice(110)), ("dev", slice(110, 130)), ("test", slice(130, 150))):
        for side, lines in sides.items():
            path = write(folder / f"{split}.{side}", "\n".join(lines[part]).encode())
            overrides.append(f"data.{split}_{side}={path}")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("SEQ2SEQ_CORPORA", str(folder / "corpora"))
    said = hostile.spoken("train", *overrides, *TINY, "model=rnn", "name=a")
    assert said.status == 0, said.err
    yield Path("runs/files/rnn/a")
    patch.undo()


def translated(run: Path, text: str | bytes, *options: str) -> hostile.Spoken:
    content = text if isinstance(text, bytes) else text.encode()
    return hostile.spoken(
        "scripts.translate", str(run), "--beam-size", "2", *options, stdin=content
    )


def test_lines_out_are_lines_in_whatever_they_hold(run: Path) -> None:
    for seed in range(12):
        content = hostile.lines(random.Random(seed), 30, valid=True)
        said = translated(run, content)
        given = content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))
        assert said.status == 0 and said.out.count(b"\n") == given, said.err


@pytest.mark.parametrize(
    "line", [b"\xff", "été".encode("latin-1"), b"a" * 3 * MIB + b"\xc3", b"\xed\xa0\x80"]
)
def test_a_line_that_is_not_utf8_is_named_however_long(run: Path, line: bytes) -> None:
    said = translated(run, b"the\n" + line + b"\nthe\n")
    assert said.status == 1 and "error: standard input, line 2: not UTF-8" in said.err
    assert said.is_clear and said.out == b""


def test_long_lines_leave_their_neighbours_alone_and_are_cut_by_the_rule(run: Path) -> None:
    """Of a line beyond 1,000 tokens so many are read; of one beyond 1 MiB so much is looked at."""
    short = ["the café sees l'ours", "été and été", "l'ours and the café"]
    alone = translated(run, "\n".join(short)).out.decode().split("\n")
    long = "the café sees " * 500  # 1,500 tokens
    longer = "the café sees " * 90_000  # over 1 MiB
    said = translated(run, "\n".join([short[0], long, short[1], longer, short[2], ""]))
    out = said.out.decode().split("\n")
    assert [out[0], out[2], out[4]] == alone[:3]
    first = " ".join(long.split()[:MAX_SOURCE_TOKENS])
    assert out[1] == out[3] == translated(run, first).out.decode().strip("\n")
    size = len(longer.encode())
    assert f"line 2 has 1500 tokens: only the first {MAX_SOURCE_TOKENS} are read" in said.err
    assert f"line 4 has {size} bytes: only the first {MIB} are looked at" in said.err


def test_memory_does_not_grow_with_the_length_of_lines(run: Path) -> None:
    peaks = []
    for lines in ("1", "8"):
        peaks.append(limited(TRANSLATE_LONG_LINES, str(run), lines)[1])
    assert peaks[1] < peaks[0] + 100, peaks


TRANSLATE_LONG_LINES = """if True:
    import os, sys
    lines = int(sys.argv.pop())
    sys.argv += ["--beam-size", "1"]
    pipe, end = os.pipe()
    if os.fork() == 0:
        os.close(pipe)
        with os.fdopen(end, "wb") as stream:
            for _ in range(lines):
                stream.write("the café ".encode() * 120_000 + b"\\n")  # over 1 MiB
        os._exit(0)
    os.close(end)
    sys.stdin = os.fdopen(pipe)
    from scripts.translate import main
    main()
    """


def doctored(run: Path, name: str, **shifts: float) -> str:
    """A checkpoint whose model likes some tokens more or less than it has learnt to."""
    content = checkpoint.load(run / "checkpoints/best.pt")
    bias = content["weights"]["output.W_o.bias"]
    for token, shift in shifts.items():
        bias[{"eos": EOS, "unk": UNK}[token]] += shift
    checkpoint.save(run / f"checkpoints/{name}.pt", content)
    return name


def limit(source: str) -> int:
    """The most words of a translation: twice the source's tokens, </s> counted, and ten more."""
    return 2 * (len(source.split()) + 1) + 10


@pytest.mark.parametrize("shift", [0.0, -1.5, -3.0, -1e4])
def test_cut_off_translations_are_counted_right_from_end_to_end(run: Path, shift: float) -> None:
    """With words as tokens, one that is cut off has exactly `limit` words, and no other has."""
    name = doctored(run, "endless", eos=shift)
    said = hostile.spoken(
        "evaluate", f"run={run}", f"checkpoint={name}", "search=greedy", "ter=false", "threads=1"
    )
    folder = run / "evaluation/test"
    sources, hypotheses = (
        (folder / file).read_text("utf-8").split("\n")[:-1]
        for file in ("sources.en", "hypotheses.fr")
    )
    lengths = [len(hypothesis.split()) for hypothesis in hypotheses]
    limits = [limit(source) for source in sources]
    assert all(length <= most for length, most in zip(lengths, limits, strict=True))
    capped = sum(length == most for length, most in zip(lengths, limits, strict=True))
    assert json.loads((folder / "scores.json").read_text())["length_capped"] == capped
    assert (f"{capped} translations were cut off" in said.err) == (capped > 0)
    assert capped == 20 if shift == -1e4 else 0 <= capped <= 20
    said = translated(run, "\n".join(["", *sources, ""]), "--checkpoint", name, "--beam-size", "1")
    assert (f"{capped} of 21 translations were cut off" in said.err) == (capped > 0)


def test_unknown_tokens_are_counted_right_from_end_to_end(run: Path) -> None:
    seen = set()
    for shift in (0.0, 4.0, 1e4):
        name = doctored(run, "unsure", unk=shift)
        said = hostile.spoken(
            "evaluate", f"run={run}", f"checkpoint={name}", "search=greedy", "ter=false"
        )
        folder = run / "evaluation/test"
        marks = (folder / "hypotheses.fr").read_text("utf-8").count("⁇")
        assert json.loads((folder / "scores.json").read_text())["unknown_tokens"] == marks
        assert (f"{marks} unknown tokens are in the output" in said.err) == (marks > 0)
        sources = (folder / "sources.en").read_bytes()
        said = translated(run, sources, "--checkpoint", name, "--beam-size", "1")
        assert said.out.decode().count("⁇") == marks
        assert (f"{marks} unknown tokens are in the output" in said.err) == (marks > 0)
        said = translated(run, sources, "--checkpoint", name, "--beam-size", "3", "--n-best", "3")
        several = said.out.decode().count("⁇")
        assert several >= marks
        assert (f"{several} unknown tokens are in the output" in said.err) == (several > 0)
        seen.add(marks)
    assert len(seen) > 1 and max(seen) > 20


SPELLINGS = {
    "composed": str,
    "decomposed": lambda s: unicodedata.normalize("NFD", s),
    "no-break spaces": lambda s: s.replace(" ", "\u00a0"),
    "narrow and wide spaces": lambda s: s.replace(" ", "\u202f\u3000\t"),
    "line separators": lambda s: s.replace(" ", "\u2028\x85\x1c"),
    "typographic apostrophes": lambda s: s.replace("'", "\u2019"),
    "modifier apostrophes": lambda s: s.replace("'", "\u02bc"),
    "marks of order and zero width": lambda s: "\ufeff\u200b" + "\u200d".join(s) + "\u202c\r",
    "controls": lambda s: "\x00" + s.replace("e", "\x07e") + "\x1b",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_a_sentence_have_one_translation(run: Path, spelling: Callable) -> None:
    sentences = ["l'ours sees the café", "été and l'ours", "the café sees été and l'ours"]
    plain = translated(run, "\n".join(sentences), "--n-best", "2")
    assert plain.status == 0 and plain.out.count(b"\n") == 6
    assert translated(run, "\n".join(map(spelling, sentences)), "--n-best", "2").out == plain.out
    other = translated(run, "\n".join(s.replace("é", "e") for s in sentences), "--n-best", "2")
    assert other.out != plain.out  # a letter less is another sentence


def test_spellings_of_test_files_have_one_score(run: Path) -> None:
    said = {}
    for name, spelling in (("plain", str), ("odd", SPELLINGS["marks of order and zero width"])):
        for side in ("src", "tgt"):
            text = Path(f"test.{side}").read_text("utf-8").split("\n")
            write(Path(f"{name}.{side}"), "\n".join(map(spelling, text)).encode())
        settings = yaml.safe_load((run / "config.yaml").read_text("utf-8"))
        settings["data"] |= {"test_src": f"{name}.src", "test_tgt": f"{name}.tgt"}
        copy = Path("spelt") / name
        for part in ("tokenizers", "checkpoints"):
            for file in (run / part).iterdir():
                write(copy / part / file.name, file.read_bytes())
        write(copy / "config.yaml", yaml.safe_dump(settings).encode())
        said_of = hostile.spoken("evaluate", f"run={copy}", "search=greedy", "ter=false")
        assert said_of.status == 0
        scores = json.loads((copy / "evaluation/test/scores.json").read_text())
        said[name] = {key: scores[key] for key in ("bleu", "chrf", "by_length")}
    assert said["odd"] == said["plain"] and said["plain"]["bleu"]["score"] > 0


@pytest.mark.parametrize(
    "options, said",
    [
        (["--n-best", "0"], "--n-best must be at least 1"),
        (["--n-best", "-1"], "--n-best must be at least 1"),
        (["--length-penalty", "nan"], "search.length_penalty"),
        (["--length-penalty", "1e308"], "search.length_penalty"),
        (["--beam-size", "999999999999"], "search.beam_size must be at most"),
        (["--beam-size", "x"], "invalid int value"),
        (["--device", "meta"], "device=meta"),
        (["--device", "\udcff"], "device="),
        (["--checkpoint", "\udcff"], "no checkpoint"),
        (["--checkpoint", "a\x00b"], "no checkpoint"),
        (["--checkpoint", "../config.yaml"], "damaged, or not a checkpoint"),
    ],
    ids=lambda value: ascii(value) if isinstance(value, list) else "",
)
def test_translation_refuses_impossible_options(run: Path, options: list[str], said: str) -> None:
    spoken = hostile.spoken("scripts.translate", str(run), *options, stdin=b"the\n")
    assert spoken.status and spoken.is_clear and said in spoken.err and spoken.out == b""


def test_closed_or_full_streams_are_told(run: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["translate", str(run)])
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of <&-
    with pytest.raises(SystemExit):
        importlib.import_module("scripts.translate").main()
    assert capsys.readouterr().err.startswith("error: standard input or output is closed")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the\n\nthe\n")))
    monkeypatch.setattr(sys, "stderr", None)
    importlib.import_module("scripts.translate").main()
    assert capsys.readouterr().out.count("\n") == 3
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "scripts.translate", str(run), "--beam-size", "1"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        streams = {"input": b"the\n", "stdout": full, "stderr": subprocess.PIPE}
        ended = subprocess.run(command, env=environment, **streams)
    said = ended.stderr.decode().strip().split("\n")
    assert ended.returncode and said == ["error: [Errno 28] No space left on device"]


def test_weights_that_are_no_numbers_are_told(run: Path) -> None:
    content = checkpoint.load(run / "checkpoints/best.pt")
    for name, factor in (("nan", float("nan")), ("huge", 1e38)):
        changed = {key: weight * factor for key, weight in content["weights"].items()}
        checkpoint.save(run / f"checkpoints/{name}.pt", content | {"weights": changed})
        said = translated(run, "the café\n", "--checkpoint", name)
        assert said.is_clear and (said.status == 0 or "scores are not numbers" in said.err)
    assert translated(run, "the café\n", "--checkpoint", "nan").status == 1


def test_weights_of_another_architecture_are_told(run: Path) -> None:
    content = checkpoint.load(run / "checkpoints/best.pt")
    for name, changed in (
        ("smaller", content["model"] | {"hidden": 8}),
        ("other", content["model"] | {"_target_": "models.seq2seq.Seq2Seq"}),
    ):
        checkpoint.save(run / f"checkpoints/{name}.pt", content | {"model": changed})
        said = translated(run, "the\n", "--checkpoint", name)
        assert said.status == 1 and said.is_clear


@pytest.mark.parametrize(
    "scores",
    [
        b"",
        b"[]",
        b"null",
        b'{"parameters": "many"}',
        b'{"parameters": 1e999}',
        b"\xff",
        b"[" * 99_999,
    ],
)
def test_damaged_scores_cost_only_the_number_of_parameters(run, tmp_path, scores: bytes) -> None:
    evaluation = tmp_path / "run/evaluation/test"
    for name in ("sources.en", "references.fr", "hypotheses.fr"):
        write(evaluation / name, b"a\nb\n")
    write(tmp_path / "run/config.yaml", (run / "config.yaml").read_bytes())
    write(evaluation / "scores.json", scores)
    found = read_evaluation(Run(tmp_path / "run"), "test")
    assert found.parameters is None and found.hypotheses == ["a", "b"]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"search": {"_target_": "os.mkdir", "path": "made"}}, "search._target_"),
        ({"training": {"optimizer": {"_target_": "os.mkdir", "path": "made"}}}, "no optimiser"),
        ({"training": {"optimizer": {"_target_": "torch.optim.lr_scheduler"}}}, "no optimiser"),
        ({"training": {"optimizer": {"_target_": "torch.optim.SGD", "odd": 1}}}, "odd"),
        ({"model": {"_target_": "os.mkdir", "path": "made"}}, "not an architecture"),
        ({"data": {"_target_": "os.mkdir", "path": "made"}}, "not a corpus"),
        ({"training": {"max_steps": "many"}}, "config.yaml: training.max_steps=many: must be"),
        ({"seed": [1]}, "config.yaml: seed=[1]: must be"),
    ],
    ids=str,
)
def test_resuming_a_foreign_run_calls_nothing_that_it_names(
    run: Path, tmp_path: Path, settings: dict, said: str
) -> None:
    whole = yaml.safe_load((run / "config.yaml").read_text("utf-8"))
    for key, value in settings.items():
        whole[key] = (
            whole[key] | value if isinstance(value, dict) and "_target_" not in value else value
        )
    for part in ("tokenizers", "checkpoints"):
        for file in (run / part).glob("[lst]*.*"):
            write(tmp_path / part / file.name, file.read_bytes())
    write(tmp_path / "config.yaml", yaml.safe_dump(whole).encode())
    spoken = hostile.spoken("train", f"resume={tmp_path}", "training.max_steps=61")
    if "max_steps" in str(settings):
        spoken = hostile.spoken("train", f"resume={tmp_path}")
    assert spoken.status == 1 and spoken.is_clear and said in spoken.err, spoken.err
    assert not Path("made").exists() and not (tmp_path / "made").exists()


def test_dev_sentences_of_any_length_are_validated(run: Path) -> None:
    """Their loss is of as many tokens as are read in translating."""
    overrides = yaml.safe_load((run / "overrides.yaml").read_text("utf-8"))
    overrides = [o for o in overrides if not o.startswith(("name=", "data.dev_"))]
    for side in ("src", "tgt"):
        text = Path(f"dev.{side}").read_text("utf-8") + "\n" + "the café " * 600
        write(Path(f"long.{side}"), text.encode())
    long = ["data.dev_src=long.src", "data.dev_tgt=long.tgt", "training.max_steps=2"]
    said = hostile.spoken("train", *overrides, *long, "name=long", "training.validate_every=2")
    assert said.status == 0, said.err
    assert said.err.count("dev loss: of 1 sentences only the first 1000 tokens count") == 2
