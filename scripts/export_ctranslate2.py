"""Writes a trained Transformer in CTranslate2's format: scripts.export_ctranslate2 RUN --output DIR

CTranslate2 (a package of its own, not among this project's requirements) translates faster and
needs no torch. Its translations are those of this project, to rounding, where scores are the sum of
log-probabilities (length_penalty=0, since its penalty is another formula than Wu et al.'s) and
where an empty translation is allowed (min_decoding_length=0).
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cli import command
from decoding.run import Run
from decoding.translator import MAX_SOURCE_TOKENS, Translator
from models.attention import MultiHeadAttention, sinusoids
from models.transformer import DecoderLayer, EncoderLayer, Transformer

PACKAGE = "ctranslate2==4.8.5"
POSITIONS = 2 * (MAX_SOURCE_TOKENS + 1) + 10  # the longest translation that a Translator makes
QUANTIZATIONS = ("int8", "int8_float32", "int16", "float16", "bfloat16", "float32")
USAGE = """
import ctranslate2, sentencepiece as sp
translator = ctranslate2.Translator("{folder}")
src, tgt = (sp.SentencePieceProcessor(model_file=f"{folder}/{{side}}.model") for side in ("src", "tgt"))
found = translator.translate_batch([src.encode("The red house.", out_type=str)], beam_size=5, length_penalty=0)
print(tgt.decode(found[0].hypotheses[0]))
"""  # noqa: E501


@command
def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.output.exists():
        raise ValueError(f"{options.output} exists and is not overwritten: give another --output")
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        raise ValueError(f"this needs CTranslate2: .venv/bin/pip install {PACKAGE}") from error
    translator = Translator.from_run(Run(options.run), "cpu", options.checkpoint)
    export(translator, options.output, options.quantization)
    print(f"written to {options.output}, with its vocabularies; in Python:")
    print(USAGE.format(folder=options.output))
    print("sentences are expected as data.corpus.normalise leaves them")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.export_ctranslate2",
        description="Writes a trained Transformer in CTranslate2's format.",
    )
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="a new folder")
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        default=["best"],
        help="best, last, kept or files; several: averaged",
    )
    parser.add_argument(
        "--quantization", choices=QUANTIZATIONS, help="of the weights (default: as they are)"
    )
    return parser


def export(translator: Translator, folder: Path, quantization: str | None = None) -> None:
    """Writes the translator's model and vocabularies to a new folder, all or nothing."""
    spec = specification(translator)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        spec.save(str(temporary))
        (temporary / "src.model").write_bytes(translator.src_tokenizer.model)
        (temporary / "tgt.model").write_bytes(translator.tgt_tokenizer.model)
        temporary.chmod(0o755)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def specification(translator: Translator) -> Any:
    """CTranslate2's description of the model, filled with its weights; ValueError if there is none.

    Only its public specifications are used: https://opennmt.net/CTranslate2/python/overview.html
    """
    from ctranslate2.specs import TransformerSpec

    model = translator.model
    if type(model) is not Transformer:
        name = type(model).__name__
        raise ValueError(f"only a Transformer (model=transformer) can be exported, not {name}")
    spec = TransformerSpec.from_config(
        (len(model.encoder), len(model.decoder)),
        model.encoder[0].attention.heads,
        pre_norm=model.encoder[0].around[0].pre,
    )
    _linear(spec.decoder.projection, model.output.weight, model.output.bias)
    spec.encoder.embeddings[0].weight = _array(model.src_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.tgt_embedding.weight)
    for stack in (spec.encoder, spec.decoder):
        # written out, since CTranslate2's own have all the sines before all the cosines
        positions = sinusoids(0, POSITIONS, model.src_embedding.weight)
        stack.position_encodings.encodings = _array(positions)
    for stack, norm in ((spec.encoder, model.encoder_norm), (spec.decoder, model.decoder_norm)):
        if isinstance(norm, nn.LayerNorm):
            _norm(stack.layer_norm, norm)
    for part, encoder_layer in zip(spec.encoder.layer, model.encoder, strict=True):
        _encoder_layer(part, encoder_layer)
    for part, decoder_layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _decoder_layer(part, decoder_layer)
    for register, tokenizer in (
        (spec.register_source_vocabulary, translator.src_tokenizer),
        (spec.register_target_vocabulary, translator.tgt_tokenizer),
    ):
        register(tokenizer.pieces(range(tokenizer.size)))
    spec.config.add_source_eos = True
    return spec


def _encoder_layer(part: Any, layer: EncoderLayer) -> None:
    _self_attention(part.self_attention, layer.attention)
    _feed_forward(part.ffn, layer.feed_forward)
    for place, around in zip((part.self_attention, part.ffn), layer.around, strict=True):
        _norm(place.layer_norm, around.norm)


def _decoder_layer(part: Any, layer: DecoderLayer) -> None:
    _self_attention(part.self_attention, layer.self_attention)
    cross = layer.cross_attention
    for place, linear in zip(
        part.attention.linear, (cross.W_q, cross.W_kv, cross.W_o), strict=True
    ):
        _linear(place, linear.weight, linear.bias)
    _feed_forward(part.ffn, layer.feed_forward)
    places = (part.self_attention, part.attention, part.ffn)
    for place, around in zip(places, layer.around, strict=True):
        _norm(place.layer_norm, around.norm)


def _self_attention(part: Any, attention: MultiHeadAttention) -> None:
    """CTranslate2 has the projections to queries, keys and values in one matrix."""
    projections = (attention.W_q, attention.W_kv)
    _linear(
        part.linear[0],
        torch.cat([projection.weight for projection in projections]),
        torch.cat([projection.bias for projection in projections]),
    )
    _linear(part.linear[1], attention.W_o.weight, attention.W_o.bias)


def _feed_forward(part: Any, feed_forward: nn.Sequential) -> None:
    for place, linear in ((part.linear_0, feed_forward[0]), (part.linear_1, feed_forward[2])):
        _linear(place, linear.weight, linear.bias)


def _linear(part: Any, weight: Tensor, bias: Tensor) -> None:
    part.weight, part.bias = _array(weight), _array(bias)


def _norm(part: Any, norm: nn.LayerNorm) -> None:
    part.gamma, part.beta = _array(norm.weight), _array(norm.bias)


def _array(weight: Tensor) -> Any:
    return weight.detach().float().numpy()


if __name__ == "__main__":
    main()
