"""SentencePiece vocabularies: sentences to tokens and back.

Text is normalised once, by `data.corpus.normalise`, before it comes here; SentencePiece itself
changes nothing more (identity rule), so that pieces are exactly the sentence's characters.
"""

import hashlib
import io
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece

PAD, UNK, BOS, EOS = 0, 1, 2, 3
TYPES = ("bpe", "unigram", "char", "word")
MAX_LINE_BYTES = 16_384  # longer lines take no part in learning the vocabulary; they are counted

log = logging.getLogger(__name__)


class Tokenizer:
    """A learnt vocabulary. Ids 0 to 3 are PAD, UNK, BOS, EOS and never arise from text but UNK,
    which stands for characters (or words, for type word) that the training text does not have."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Reads a saved vocabulary; FileNotFoundError or ValueError naming the file."""
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such vocabulary; is the run folder complete?")
        try:
            return cls(path.read_bytes())
        except RuntimeError as error:
            raise ValueError(f"{path}: not a SentencePiece model ({error})") from error

    @property
    def digest(self) -> str:
        """A hash of the vocabulary, by which a checkpoint knows the one it was trained with."""
        return hashlib.sha256(self.model).hexdigest()

    @property
    def size(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Token ids of each sentence, without BOS and EOS."""
        return self._processor.encode(list(sentences))

    def decode(self, tokens: Sequence[int]) -> str:
        """The sentence that tokens spell; PAD, BOS and EOS spell nothing, UNK spells "⁇"."""
        return self._processor.decode([t for t in tokens if t not in (PAD, BOS, EOS)]).strip()

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The subword strings of tokens; "▁" stands for the space before a word."""
        return [self._processor.id_to_piece(token) for token in tokens]


def learn(sentences: Iterable[str], *, type: str, size: int) -> Tokenizer:
    """Learns a vocabulary of `size` pieces; ValueError says which sizes the text supports."""
    if type not in TYPES:
        raise ValueError(f"tokenizer.type must be one of {', '.join(TYPES)}, not {type!r}")
    if size < 1:
        raise ValueError(f"tokenizer.size must be at least 1, not {size}")
    model = io.BytesIO()
    text = list(sentences)
    too_long = sum(len(line.encode()) > MAX_LINE_BYTES for line in text)
    if too_long:
        log.warning("vocabulary: %d lines over %d bytes are left out", too_long, MAX_LINE_BYTES)
    if type in ("char", "word"):
        size = _at_most(size, text, type)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type=type,
            vocab_size=size,
            character_coverage=1.0,
            normalization_rule_name="identity",
            max_sentence_length=MAX_LINE_BYTES,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), size, text)) from error
    return Tokenizer(model.getvalue())


def learn_pair(
    src: Sequence[str], tgt: Sequence[str], *, type: str, size: int, shared: bool, cache: Path
) -> tuple[Tokenizer, Tokenizer]:
    """Source and target vocabularies of `size` pieces each, or one for both if `shared`."""
    if shared:
        both = learn_cached([*src, *tgt], type=type, size=size, cache=cache)
        return both, both
    return (
        learn_cached(src, type=type, size=size, cache=cache),
        learn_cached(tgt, type=type, size=size, cache=cache),
    )


def learn_cached(sentences: Sequence[str], *, type: str, size: int, cache: Path) -> Tokenizer:
    """`learn`, remembered in the folder `cache` under a hash of the text and the settings."""
    version = sentencepiece.__version__
    key = hashlib.sha256(f"{version} {type} {size} {MAX_LINE_BYTES}\n".encode())
    for sentence in sentences:
        key.update(sentence.encode() + b"\n")
    path = cache / f"{key.hexdigest()[:32]}.model"
    if path.is_file():
        return Tokenizer.load(path)
    tokenizer = learn(sentences, type=type, size=size)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
        file.write(tokenizer.model)
    os.replace(file.name, path)
    return tokenizer


def _at_most(size: int, text: list[str], type: str) -> int:
    """The size, or all there is: a set of characters or words is no larger than the text's."""
    units = {unit for line in text for unit in (line.split() if type == "word" else line)}
    available = len(units - {" "}) + 5  # and PAD, UNK, BOS, EOS, the mark of a word's beginning
    if type == "word":
        available -= 1  # each word carries its mark
    if available < size:
        log.info("vocabulary: the text has %d %s units, fewer than %d", available, type, size)
    return min(size, available)


def _explain(error: str, size: int, text: list[str]) -> str:
    most = re.search(r"value <= (\d+)", error)
    least = re.search(r"required_chars\. \d+ vs (\d+)", error)
    if not any(line.strip() for line in text):
        return "the corpus has no text to learn a vocabulary from"
    if most:
        return f"tokenizer.size={size} is more than this text supports: at most {most[1]}"
    if least:
        return f"tokenizer.size={size} is less than the characters need: at least {least[1]}"
    return f"tokenizer.size={size}: {' '.join(error.split())}"
