"""A Transformer written for CTranslate2 translates there as it does here."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import toy
import yaml
from architectures import config
from torch import Tensor, nn

from data.batching import collate
from data.tokenizer import BOS, EOS, PAD, Tokenizer, learn
from decoding.run import Run
from decoding.translator import Translation, Translator, search_with
from models import checkpoint as checkpoints
from models.seq2seq import Seq2Seq
from scripts import export_ctranslate2

ctranslate2 = pytest.importorskip("ctranslate2")

CPU = torch.device("cpu")
SENTENCES = [src for src, _ in toy.pairs(60, seed=3, longest=6)]
NEVER = -1e4  # a score that makes a token impossible


def tokenizers(shared: bool) -> tuple[Tokenizer, Tokenizer]:
    src, tgt = ([pair[side] for pair in toy.pairs(100)] for side in (0, 1))
    if shared:
        both = learn(src + tgt, type="word", size=100)
        return both, both
    return learn(src, type="word", size=100), learn([*tgt, "zut"], type="word", size=100)


def translator(name: str = "transformer", **options: object) -> Translator:
    """A model with random weights, which tell sentences apart; it never ends one."""
    pair = tokenizers(shared=options.get("tied") == "all")
    torch.manual_seed(5)
    model = checkpoints.build(config(name, **options), *(t.size for t in pair)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        if name == "transformer":
            model.output.bias[[PAD, BOS, EOS]] = NEVER
    return Translator(model, *pair, CPU)


@pytest.fixture(scope="module")
def trained() -> Translator:
    """A model that translates the toy language."""
    made = translator()
    src, tgt = ([pair[side] for pair in toy.pairs(64)] for side in (0, 1))
    batch = collate(made.src_tokenizer.encode(src), made.tgt_tokenizer.encode(tgt))
    model = made.model.train()
    model.output.bias.data.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        logits = model(batch.src, batch.src_mask, batch.tgt_in).logits
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    # neither is ever produced, so neither may take a share of the probability
    model.output.bias.data[[PAD, BOS]] = NEVER
    return made


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"norm": "post"},
        {"tied": "output"},
        {"tied": "all"},
        {"encoder_layers": 3, "decoder_layers": 1, "alignment_layer": 1, "expansion": 4},
        {"heads": 4, "d_model": 24},
    ],
    ids=lambda variant: "-".join(f"{k}={v}" for k, v in variant.items()) or "default",
)
def test_both_translate_alike(variant: dict[str, object], tmp_path: Path) -> None:
    here = translator(**variant)
    assert here.src_tokenizer.size != here.tgt_tokenizer.size or variant.get("tied") == "all"
    for beam_size in (1, 4):
        ours, theirs = both(here, tmp_path / f"beam {beam_size}", beam_size, limit=12)
        assert all(a.length_capped and len(a.tokens) == 12 for a in ours)
        alike(ours, theirs)


def test_both_end_alike(trained: Translator, tmp_path: Path) -> None:
    for beam_size in (1, 5):
        ours, theirs = both(trained, tmp_path / f"beam {beam_size}", beam_size, limit=40)
        assert not any(a.length_capped for a in ours)
        assert len({tuple(a.tokens) for a in ours}) > 30
        alike(ours, theirs)


def both(
    here: Translator, folder: Path, beam_size: int, limit: int
) -> tuple[list[Translation], list[Any]]:
    """The translations of SENTENCES here, and those of the exported model in CTranslate2."""
    export_ctranslate2.export(here, folder)
    there = ctranslate2.Translator(str(folder), intra_threads=1)
    theirs = there.translate_batch(
        [here.src_tokenizer.pieces(t) for t in here.src_tokenizer.encode(SENTENCES)],
        beam_size=beam_size,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=limit,
        return_scores=True,
    )

    def search(model: Seq2Seq, src: Tensor, src_mask: Tensor, *, max_len: Tensor) -> list:
        limits = torch.full_like(max_len, limit)
        return search_with(beam_size, length_penalty=0.0)(model, src, src_mask, max_len=limits)

    return here.translate(SENTENCES, search), theirs


def alike(ours: Sequence[Translation], theirs: Sequence[Any]) -> None:
    assert len({round(a.log_prob, 3) for a in ours}) > 30  # they depend on the source
    assert [a.pieces for a in ours] == [b.hypotheses[0] for b in theirs]
    scores = [b.scores[0] for b in theirs]
    assert scores == pytest.approx([a.log_prob for a in ours], abs=1e-4)


def test_the_longest_source_and_target_have_positions(tmp_path: Path) -> None:
    here = translator()
    export_ctranslate2.export(here, tmp_path / "exported")
    there = ctranslate2.Translator(str(tmp_path / "exported"), intra_threads=1)
    words = ["▁cat"] * 1000
    ends = 2 * 1001 + 10
    found = there.translate_batch([words], beam_size=1, max_decoding_length=ends)
    assert len(found[0].hypotheses[0]) == ends


def write_run(folder: Path, made: Translator) -> Path:
    """A run folder with this model, as training leaves it."""
    pair = (made.src_tokenizer, made.tgt_tokenizer)
    name = type(made.model).__name__.lower()
    settings = {"chosen": {"data": "files", "model": name}}
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "tokenizers").mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    for side, tokenizer in zip(("src", "tgt"), pair, strict=True):
        (folder / "tokenizers" / f"{side}.model").write_bytes(tokenizer.model)
    content = {
        "model": config(name),
        "vocabularies": [tokenizer.size for tokenizer in pair],
        "digests": [tokenizer.digest for tokenizer in pair],
        "weights": made.model.state_dict(),
    }
    checkpoints.save(folder / "checkpoints" / "best.pt", content)
    return folder


def fails(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        export_ctranslate2.main(list(arguments))
    assert ended.value.code == 1
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_the_example_that_is_printed_translates(
    trained: Translator, tmp_path: Path, capsys
) -> None:
    run = write_run(tmp_path / "run", trained)
    output = tmp_path / "exported"
    export_ctranslate2.main([str(run), "--output", str(output)])
    printed = capsys.readouterr().out.split("\n\n")[1].replace("The red house.", SENTENCES[0])
    exec(printed, {})
    expected = Translator.from_run(Run(run), "cpu").translate(SENTENCES[:1], search_with(5, 0.0))
    assert capsys.readouterr().out.strip() == expected[0].text
    assert "exists and is not overwritten" in fails(capsys, str(run), "--output", str(output))


def test_smaller_numbers_make_a_smaller_file(tmp_path: Path) -> None:
    here = translator()
    export_ctranslate2.export(here, tmp_path / "whole")
    export_ctranslate2.export(here, tmp_path / "int8", "int8")
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("whole", "int8")]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("name", ["rnn", "bahdanau"])
def test_only_a_transformer_is_exported(name: str, tmp_path: Path, capsys) -> None:
    run = write_run(tmp_path / "run", translator(name))
    last = fails(capsys, str(run), "--output", str(tmp_path / "exported"))
    assert last.startswith("error: only a Transformer (model=transformer) can be exported, not")
    assert not (tmp_path / "exported").exists()


def test_what_fails_halfway_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    here = translator()
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        export_ctranslate2.export(here, tmp_path / "exported")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_said_with_how_to_install_it(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    run = write_run(tmp_path / "run", translator())
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    last = fails(capsys, str(run), "--output", str(tmp_path / "exported"))
    assert last == "error: this needs CTranslate2: .venv/bin/pip install ctranslate2==4.8.5"
