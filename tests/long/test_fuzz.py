"""Everything that reads what people or the network give, against random and damaged input.

FUZZ_MINUTES=10 python -m pytest tests/long/test_fuzz.py
FUZZ_SEED=text: another series of inputs; FUZZ_TARGETS=train.py,evaluate.py: these alone

Each target gets the same time. An input is drawn from a seed that a failure names; what a target
may raise is exactly what cli.py turns into a message. At the end a table says how many inputs each
target had, how many it refused, and how much memory the process took at its peak.
"""

import gzip
import json
import logging
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import hostile
import pytest
import torch
import toy
import yaml

import cli
from data.archive import unpack, unpacked_limit
from data.corpus import normalise, read_parallel, read_tsv, source_key
from data.sources import Files
from data.text import read_lines
from data.tokenizer import BOS, EOS, PAD, TYPES, UNK, Tokenizer, learn
from decoding.run import Run
from evaluation.bleu import sentence_statistics
from evaluation.gold import is_json_lines, read_gold, read_json_lines, read_words
from evaluation.links import draw_links, score_links
from models import checkpoint
from scripts.plot_bleu_by_length import read_evaluation
from training.trainer import Trainer

MINUTES = float(os.environ.get("FUZZ_MINUTES", "10"))
SERIES = os.environ.get("FUZZ_SEED", "0")
ONLY = os.environ.get("FUZZ_TARGETS", "")  # names between commas
SECONDS = 60  # that one input may take
MEMORY = 3 << 30  # bytes of the process at its peak
ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("rnn", "bahdanau", "transformer")
TEXT = [f"{src} {tgt}, l'école où été — ." for src, tgt in toy.pairs(60)]
TINY = ["width=16", "threads=1", "precision=fp32", "tokenizer=word", "training.max_steps=2",
        "training.validate_every=2", "training.batch_tokens=200", "name=a"]  # fmt: skip


class TooSlow(BaseException):
    """An input took more than SECONDS; no `except Exception` hides it."""


@dataclass
class Target:
    """Something that reads input, how input for it is made, and what came of it."""

    make: Callable[[random.Random], Any]
    check: Callable[[Any], None]  # raises what cli.py expects, or nothing
    seconds: float = 0.0
    inputs: int = 0
    refused: int = 0
    faults: dict[str, str] = field(default_factory=dict)  # by place of the fault: what and how

    def attempt(self, content: Any) -> BaseException | None:
        """The exception that should not be, if there is one."""
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            self.check(content)
        except cli.EXPECTED as error:
            self.refused += 1
            return None if str(error) else error  # a message that says something
        except (Exception, TooSlow) as error:
            return error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None

    def one(self, seed: str) -> None:
        content = self.make(random.Random(seed))
        error = self.attempt(content)
        self.inputs += 1
        if error is None:
            return
        place = str(traceback.extract_tb(error.__traceback__)[-1]) + type(error).__name__
        if place in self.faults:
            return
        if isinstance(content, bytes | str) and not isinstance(error, TooSlow):
            kind = type(error)
            content = hostile.smaller(content, lambda c: type(self.attempt(c)) is kind)
        told = "".join(traceback.format_exception(error))[-1500:]
        self.faults[place] = f"seed {seed!r}, input {content!r:.600}:\n{told}"


@contextmanager
def bounded() -> Iterator[None]:
    """Alarms for what is slow; a limit of memory, above which a MemoryError is a fault."""

    def alarm(*_: object) -> None:
        raise TooSlow

    before, limits = signal.signal(signal.SIGALRM, alarm), resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2 * MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a toy corpus and a small evaluated run of each architecture."""
    folder = tmp_path_factory.mktemp("fuzz")
    pairs = toy.pairs(120)
    files = toy.write(folder, train=pairs[:80], dev=pairs[80:100], test=pairs[100:])
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.setenv("SEQ2SEQ_CORPORA", str(folder / "corpora"))
    for name in ARCHITECTURES:
        assert hostile.spoken("train", *files, *TINY, f"model={name}").status == 0
        run = f"run=runs/files/{name}/a"
        assert hostile.spoken("evaluate", run, "search=greedy", "ter=false").status == 0
    (folder / "files").write_text("\n".join(files))
    yield folder
    patch.undo()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# Text and corpora


def check_normalise(content: str) -> None:
    once = normalise(content)
    assert normalise(once) == once and once.split() == [w for w in once.split(" ") if w]
    assert once.encode("utf-8").decode("utf-8") == once
    source_key(content)


def check_lines(folder: Path, content: bytes) -> None:
    found = list(read_lines(write(folder / "lines.txt", content)))
    expected = content.decode("utf-8-sig").split("\n")
    expected = expected[:-1] if expected[-1] == "" else expected
    assert found == [line.replace("\r", "") for line in expected]


def check_packed_lines(folder: Path, content: bytes) -> None:
    for line in read_lines(write(folder / "lines.txt.gz", content)):
        assert "\n" not in line


def check_tsv(folder: Path, content: bytes) -> None:
    for pair in read_tsv(write(folder / "lines.tsv", content)):
        assert "\t" not in pair.src + pair.tgt


def check_corpus(folder: Path, content: bytes) -> None:
    """One content is cut into source and target at its middle line."""
    rows = content.split(b"\n")
    half = len(rows) // 2
    src = write(folder / "c.src", b"\n".join(rows[:half]))
    tgt = write(folder / "c.tgt", b"\n".join(rows[half : 2 * half]))
    shares = {"dev_share": 0.3, "test_share": 0.0}
    keys = dict.fromkeys(("dev_src", "dev_tgt", "test_src", "test_tgt", "tsv", "source"))
    limits = {"max_pairs": None, "max_train_words": 50}
    files = Files(train_src=str(src), train_tgt=str(tgt), **keys, **shares, **limits)
    loaded = [files.load(split) for split in ("train", "dev")]
    assert all(corpus.src and len(corpus.src) == len(corpus.tgt) for corpus in loaded)
    assert sum(map(len, loaded)) <= sum(1 for _ in read_parallel(src, tgt))


def check_archive(folder: Path, content: bytes) -> None:
    shutil.rmtree(folder / "in", ignore_errors=True)
    packed = write(folder / "in" / "a", content)
    (folder / "in" / "deep").mkdir()
    try:
        unpack(packed, folder / "in/deep/out", lambda name: name == "fra.txt", "fra.txt", 1 << 20)
    finally:
        left = hostile.everything_below(folder / "in")
        assert left.keys() <= {"a", "deep", "deep/out", "deep/out/fra.txt"}, left.keys()
        assert len(left.get("deep/out/fra.txt") or b"") <= unpacked_limit(len(content))


# Vocabularies


def check_encoding(tokenizers: list[Tokenizer], content: str) -> None:
    sentence = normalise(content)
    for tokenizer in tokenizers:
        (tokens,) = tokenizer.encode([sentence])
        assert not {PAD, BOS, EOS} & set(tokens)
        assert "\n" not in tokenizer.decode(tokens)
        if UNK not in tokens and "▁" not in sentence:
            assert tokenizer.decode(tokens) == sentence


def check_learning(content: str) -> None:
    kind, size, *text = content.split("\n")
    tokenizer = learn([normalise(line) for line in text], type=kind, size=int(size))
    assert tokenizer.size <= int(size) and tokenizer.pieces([0, 1, 2, 3])[1] == "<unk>"
    assert tokenizer.digest == Tokenizer(tokenizer.model).digest


def make_learning(draw: random.Random) -> str:
    size = draw.choice([-1, 0, 4, 5, 9, 20, 60, 10**5, 2**31 - 1, 2**31, 10**20])
    text = [hostile.text(draw) for _ in range(draw.choice([0, 1, 3, 30]))]
    return "\n".join([draw.choice(TYPES), str(size), *text])


def check_vocabulary(folder: Path, content: bytes) -> None:
    tokenizer = Tokenizer.load(write(folder / "src.model", content))
    for tokens in tokenizer.encode([*TEXT[:2], "☃ <s> x", ""]):
        assert "\n" not in tokenizer.decode(tokens)
        tokenizer.pieces(tokens)


# Checkpoints and run folders


def same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def check_checkpoint(folder: Path, whole: dict[str, Any], content: bytes) -> None:
    assert same(checkpoint.load(write(folder / "best.pt", content)), whole)


TARGETS = [
    *("os.system", "shutil.copyfile", "models.rnn.RNN", "models.rnn", "models.seq2seq.Seq2Seq"),
    *("models.checkpoint.save", "models.checkpoint.torch.load", "a.b.c", "", 5, None),
]
MADE = {"_target_": "os.mkdir", "path": "made"}
ODD = [
    None,
    True,
    0,
    -1,
    3,
    10**30,
    0.5,
    float("nan"),
    "",
    "x",
    [],
    {},
    [1],
    "${a}",
    MADE,
    "\udcff",
]


def spoilt(draw: random.Random, node: Any) -> Any:
    """Settings with some values, keys or whole groups of another kind."""
    if draw.random() < 0.04:
        return draw.choice(ODD)
    if not isinstance(node, dict):
        return node
    made = {key: spoilt(draw, value) for key, value in node.items() if draw.random() > 0.02}
    if "_target_" in made and draw.random() < 0.1:
        made["_target_"] = draw.choice(TARGETS)
    if draw.random() < 0.03:
        made[draw.choice([5, None, "odd", "_args_"])] = draw.choice(ODD)
    return made


def check_model(settings: Any) -> None:
    if isinstance(settings, dict):
        checkpoint.build(settings, 9, 9)
    assert not Path("made").exists()


def check_run(folder: Path, content: bytes) -> None:
    write(folder / "run/config.yaml", content)
    run = Run(folder / "run")
    assert run.name.count("/") >= 2
    run.corpus()
    assert not Path("made").exists()


def check_evaluation(folder: Path, content: tuple[str, bytes]) -> None:
    name, damage = content
    copy = folder / "evaluated"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree("runs/files/rnn/a", copy)
    write(copy / "evaluation/test" / name, damage)
    found = read_evaluation(Run(copy), "test")
    sentence_statistics(found.hypotheses, found.references)


def check_links(content: bytes) -> None:
    text = content.decode("utf-8", "replace").split("\n")
    if is_json_lines(text):
        gold = read_json_lines(text)[1]
    else:
        gold = read_gold(text[: len(text) // 2])
        read_words(text[len(text) // 2 :])
    score_links([set(sentence.possible) for sentence in gold], gold)
    draw_links(torch.rand(3, 4).numpy(), "balanced")


def make_links(draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        items = [
            "0-0",
            "1-2",
            "2p1",
            "0p0",
            "7-3",
            "-1-0",
            "0-",
            "９-1",
            "1" * 5000 + "-1",
            "\t",
        ]
        made = "\n".join(" ".join(draw.choices(items, k=draw.randrange(6))) for _ in range(4))
        return damaged_or(draw, made.encode())
    sentence = {"src_words": ["a", "\ud800"], "tgt_words": ["b", ""], "alignment": [[0, 0], [1, 1]]}
    made = json.dumps(spoilt(draw, sentence), ensure_ascii=draw.random() < 0.5)
    made = draw.choice([made, "[" * 100_000, "{" + '"a":{' * 50_000, made + "\n" + made])
    return damaged_or(draw, made.encode("utf-8", "surrogatepass"))


def damaged_or(draw: random.Random, content: bytes) -> bytes:
    return hostile.damaged(draw, content) if draw.random() < 0.5 else content


# Commands


def check_overrides(arguments: list[str]) -> None:
    said = StringIO()
    try:
        with redirect_stderr(said):
            cli.command(cli.check_overrides)(*arguments[:1], arguments[1:])
    except SystemExit as ended:
        assert ended.code == 1 and said.getvalue().startswith("error: "), said.getvalue()
        raise ValueError("refused") from None


def check_spoken(said: hostile.Spoken) -> None:
    assert said.is_clear, said.err
    if said.status:
        raise ValueError("refused")


def check_training(files: list[str], arguments: list[str]) -> None:
    try:
        check_spoken(hostile.spoken("train", *files, *TINY[:-1], "name=new", *arguments))
    finally:
        for folder in Path("runs/files").glob("*/*"):
            if folder.name != "a":
                shutil.rmtree(folder)
        assert {path.name for path in Path().iterdir()} <= KNOWN, list(Path().iterdir())
        assert {path.name for path in Path("runs").iterdir()} == {"files"}


def check_resuming(folder: Path, content: tuple[str, bytes]) -> None:
    name, damage = content
    copy = folder / "resumed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree("runs/files/bahdanau/a", copy)
    write(copy / name, damage)
    check_spoken(hostile.spoken("train", f"resume={copy}", "training.max_steps=3"))


def check_evaluating(arguments: list[str]) -> None:
    check_spoken(hostile.spoken("evaluate", "search=greedy", "ter=false", *arguments))


def check_translating(content: bytes) -> None:
    name = ARCHITECTURES[len(content) % len(ARCHITECTURES)]
    options = ["--beam-size", "2"] if len(content) % 2 else ["--beam-size", "1"]
    said = hostile.spoken("scripts.translate", f"runs/files/{name}/a", *options, stdin=content)
    if said.status == 0:
        given = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
        assert said.out.count(b"\n") == given and said.out.decode("utf-8") is not None
    else:
        with pytest.raises(UnicodeDecodeError):
            content.decode("utf-8")
    check_spoken(said)


def check_scoring(folder: Path, content: bytes) -> None:
    gold = write(folder / "gold.jsonl", content)
    options = ["--gold", str(gold)]
    if not content.lstrip().startswith(b"{"):
        options += ["--text", str(write(folder / "gold.text", b"the cat ||| le chat\n" * 3))]
    check_spoken(hostile.spoken("scripts.score_alignments", "runs/files/bahdanau/a", *options))


def check_process(content: bytes) -> None:
    """The real command, through a pipe."""
    command = [sys.executable, "-m", "scripts.translate", "runs/files/rnn/a", "--beam-size", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    ended = subprocess.run(command, input=content, capture_output=True, env=environment)
    said = hostile.Spoken(ended.returncode, ended.stdout, ended.stderr.decode("utf-8", "replace"))
    if said.status == 0:
        given = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
        assert said.out.count(b"\n") == given
    check_spoken(said)


KNOWN = {"runs", "corpora", "files", "scratch"} | {
    f"{split}.{side}" for split in ("train", "dev", "test") for side in ("src", "tgt")
}


def keys_of(config_name: str) -> list[str]:
    """The keys of a command that may be given at random: all but those that only take long."""
    folder = ROOT / "configs"
    keys = [*yaml.safe_load((folder / f"{config_name}.yaml").read_text()), "search.beam_size"]
    if config_name == "train":
        for group, name in (("model", "rnn"), ("training", "default"), ("data", "files")):
            settings = yaml.safe_load((folder / group / f"{name}.yaml").read_text())
            keys += [f"{group}.{key}" for key in settings] + [group]
        keys += ["training.optimizer.lr", "tokenizer.size", "tokenizer.type", "tokenizer.shared"]
    return [key for key in keys if key not in ("defaults", "hydra", "resume")]


SOUND = {  # overrides with nothing wrong in them
    "train": ["seed=3", "width=8", "model=rnn", "model=transformer", "training.patience=null",
              "training.dropout=0", "threads=2", "tokenizer=char", "search=beam", "name='été'",
              "training.schedule=constant", "data.max_pairs=9", "device=cpu", "+a.b=1"],
    "evaluate": ["split=dev", "search=beam", "checkpoint=last", "checkpoint=[best,last]",
                 "threads=1", "length_edges=[3,5]", "length_minimum=1", "ter=true"],
}  # fmt: skip


def arguments(config_name: str) -> Callable[[random.Random], list[str]]:
    keys = keys_of(config_name)

    def make(draw: random.Random) -> list[str]:
        odd = [hostile.override(draw, keys) for _ in range(draw.choice([0, 1, 1, 1, 2]))]
        return [*odd, *draw.sample(SOUND[config_name], draw.randrange(3))]

    return make


def targets(place: Path) -> dict[str, Target]:
    """All of them, by name."""
    scratch = place / "scratch"
    scratch.mkdir()
    files = (place / "files").read_text().split("\n")
    run = Path("runs/files/bahdanau/a")
    vocabularies = [
        learn(TEXT, type=kind, size=40 if kind in ("bpe", "unigram") else 900) for kind in TYPES
    ]
    whole = checkpoint.load(run / "checkpoints/last.pt")
    last, config = ((run / name).read_bytes() for name in ("checkpoints/last.pt", "config.yaml"))
    settings = yaml.safe_load(config)
    parts = {
        name: (run / name).read_bytes()
        for name in ("config.yaml", "tokenizers/src.model", "checkpoints/last.pt")
    }
    written = {path.name: path.read_bytes() for path in (run / "evaluation/test").glob("*.*")}

    def spoilt_config(draw: random.Random) -> bytes:
        made = yaml.safe_dump(spoilt(draw, settings), allow_unicode=True)
        return damaged_or(draw, made.encode("utf-8", "surrogatepass"))

    def part(draw: random.Random, of: dict[str, bytes]) -> tuple[str, bytes]:
        name = draw.choice(list(of))
        odd = draw.choice([b"", b"[]", b"null", b'{"parameters": {}}', hostile.lines(draw)])
        if name == "config.yaml" and draw.random() < 0.6:
            return name, spoilt_config(draw)
        return name, odd if draw.random() < 0.3 else hostile.damaged(draw, of[name])

    def packed(draw: random.Random) -> bytes:
        return damaged_or(draw, gzip.compress(hostile.lines(draw)))

    overrides = {name: arguments(name) for name in ("train", "evaluate")}
    made: dict[str, tuple[Callable[[random.Random], Any], Callable[[Any], None]]] = {
        "text rule": (lambda d: hostile.text(d, 40), check_normalise),
        "text files": (hostile.lines, lambda c: check_lines(scratch, c)),
        "packed text files": (packed, lambda c: check_packed_lines(scratch, c)),
        "tables": (hostile.lines, lambda c: check_tsv(scratch, c)),
        "corpora": (
            lambda d: hostile.lines(d, 30, valid=d.random() < 0.9),
            lambda c: check_corpus(scratch, c),
        ),
        "archives": (hostile.archive, lambda c: check_archive(scratch, c)),
        "encoding": (lambda d: hostile.text(d, 40), lambda c: check_encoding(vocabularies, c)),
        "learning vocabularies": (make_learning, check_learning),
        "vocabulary files": (
            lambda d: hostile.damaged(d, d.choice(vocabularies).model),
            lambda c: check_vocabulary(scratch, c),
        ),
        "checkpoint files": (
            lambda d: hostile.damaged(d, last),
            lambda c: check_checkpoint(scratch, whole, c),
        ),
        "settings of models": (lambda d: spoilt(d, settings["model"]), check_model),
        "settings of runs": (spoilt_config, lambda c: check_run(scratch, c)),
        "evaluation folders": (
            lambda d: part(d, written),
            lambda c: check_evaluation(scratch, c),
        ),
        "gold alignments": (make_links, check_links),
        "overrides": (lambda d: ["train", *overrides["train"](d)], check_overrides),
        "train.py": (overrides["train"], lambda c: check_training(files, c)),
        "train.py resume=": (lambda d: part(d, parts), lambda c: check_resuming(scratch, c)),
        "evaluate.py": (
            lambda d: [
                f"run={d.choice([run, run, run, '.'])}",
                *overrides["evaluate"](d),
            ],
            check_evaluating,
        ),
        "scripts.translate": (
            lambda d: hostile.lines(d, 20, valid=d.random() < 0.8),
            check_translating,
        ),
        "scripts.score_alignments": (make_links, lambda c: check_scoring(scratch, c)),
        "scripts.translate in a process": (
            lambda d: hostile.lines(d, 20, valid=d.random() < 0.8),
            check_process,
        ),
    }
    return {name: Target(make, check) for name, (make, check) in made.items()}


def report(all_targets: dict[str, Target]) -> str:
    rows = [f"{'target':<32}{'inputs':>9}{'refused':>9}{'faults':>8}{'seconds':>9}"]
    for name, t in all_targets.items():
        rows.append(f"{name:<32}{t.inputs:>9,}{t.refused:>9,}{len(t.faults):>8}{t.seconds:>9.0f}")
    total = sum(target.inputs for target in all_targets.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    faults = [f"\n{n}: {f}" for n, t in all_targets.items() for f in t.faults.values()]
    return "\n".join(
        [*rows, f"{total:,} inputs, series {SERIES}, {peak:,} MiB at the peak", *faults]
    )


def test_whatever_is_read_is_used_or_refused_in_words(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    fit = Trainer.fit

    def short(trainer: Trainer) -> Any:
        trainer.max_steps = min(trainer.max_steps, 3)
        return fit(trainer)

    monkeypatch.setattr(Trainer, "fit", short)
    all_targets = {n: t for n, t in targets(place).items() if not ONLY or n in ONLY.split(",")}
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    ends = time.monotonic() + 60 * MINUTES
    with bounded():
        while time.monotonic() < ends:
            name = min(all_targets, key=lambda name: all_targets[name].seconds)
            target, begun = all_targets[name], time.monotonic()
            for _ in range(20):
                target.one(f"{SERIES} {name} {target.inputs}")
                if time.monotonic() - begun > 1:
                    break
            target.seconds += time.monotonic() - begun
    with capsys.disabled():
        print(f"\n{report(all_targets)}")
    assert not any(target.faults for target in all_targets.values())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < MEMORY
