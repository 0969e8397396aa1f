"""SentencePiece vocabularies: sentences to tokens and back.

Text is normalised once, by `data.corpus.normalise`, before it comes here; SentencePiece itself
changes nothing more (identity rule), so that pieces are exactly the sentence's characters.
"""

import hashlib
import io
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import sentencepiece

from data import notes
from data.text import SPACE, TextFile, digest_of, write_whole

PAD, UNK, BOS, EOS = 0, 1, 2, 3
TYPES = ("bpe", "unigram", "char", "word")
# Lines that take no part in learning the vocabulary; they are counted:
MAX_LINE_BYTES = 16_384  # longer ones,
MAX_WORD_BYTES = 4_096  # for type word those with a longer word,
RESERVED = "\u2585"  # and those with this character, by which SentencePiece marks the unknown
VERSION = sentencepiece.__version__
MAX_SENTENCES = 1_000_000  # that a vocabulary is learnt from; of more, an even sample
MAX_SIZE = 1_000_000  # pieces; SentencePiece does not come to an end on sizes near 2^31

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
            tokenizer = cls(path.read_bytes())
            sound = tokenizer._is_sound()
        except (RuntimeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a SentencePiece model ({error})") from error
        if not sound:
            raise ValueError(f"{path}: damaged, or not a vocabulary of this project")
        return tokenizer

    def _is_sound(self) -> bool:
        """Whether the special ids are ours and no piece has white space, as in no text of ours."""
        model = self._processor
        special = [model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id()]
        pieces = self.pieces(range(self.size))
        return special == [PAD, UNK, BOS, EOS] and all(p.split() == [p] for p in pieces)

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

    def resample(
        self, sentences: Sequence[Sequence[int]], seed: int, *, alpha: float
    ) -> list[list[int]]:
        """The same sentences in other pieces, drawn at random: subword regularisation.

        A unigram vocabulary draws a segmentation by its probability to the power of alpha (Kudo
        2018, section 3.3, all segmentations); of a BPE vocabulary each merge is left out with
        probability alpha (Provilkov et al. 2020, section 3). Sentences with UNK stay as they are.
        """
        texts = self._processor.decode([list(map(int, sentence)) for sentence in sentences])
        # SentencePiece seeds the random numbers of a thread once, when it first draws some
        with ThreadPoolExecutor(1) as fresh:
            sentencepiece.set_random_generator_seed(seed)
            drawn = fresh.submit(
                self._processor.encode,
                texts,
                enable_sampling=True,
                alpha=alpha,
                nbest_size=-1,
                num_threads=1,
            ).result()
        return [list(old) if UNK in old else new for old, new in zip(sentences, drawn, strict=True)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The sentence that tokens spell; PAD, BOS and EOS spell nothing, UNK spells "⁇"."""
        return self._processor.decode([t for t in tokens if t not in (PAD, BOS, EOS)]).strip()

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The subword strings of tokens; "▁" stands for the space before a word."""
        return [self._processor.id_to_piece(token) for token in tokens]


def learn(*texts: Sequence[str] | TextFile, type: str, size: int) -> Tokenizer:
    """Learns a vocabulary of `size` pieces; ValueError says which sizes the text supports.

    Of more than 1,000,000 sentences it is learnt from an even `sample`, the same each time.
    """
    if type not in TYPES:
        raise ValueError(f"tokenizer.type must be one of {', '.join(TYPES)}, not {type!r}")
    if not 1 <= size <= MAX_SIZE:
        bound = "at least 1" if size < 1 else f"at most {MAX_SIZE:,}"
        raise ValueError(f"tokenizer.size must be {bound}, not {size}")
    model = io.BytesIO()
    text = _learnable(sample(*texts), type)
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
        return Tokenizer(model.getvalue())
    except RuntimeError as error:
        raise ValueError(_explain(str(error), size, text)) from error


def sample(*texts: Sequence[str] | TextFile) -> Iterator[str]:
    """All sentences of the texts; of more than MAX_SENTENCES, so many, evenly spaced."""
    count = sum(map(len, texts))
    if count > MAX_SENTENCES:
        log.info("vocabulary: learnt from %d of %d sentences, evenly spaced", MAX_SENTENCES, count)
    for number, sentence in enumerate(chain(*texts)):
        if number * MAX_SENTENCES % count < MAX_SENTENCES:
            yield sentence


def _learnable(sentences: Iterable[str], type: str) -> list[str]:
    """The lines that SentencePiece can learn from; the others are counted in a warning."""
    text, too_long, reserved = [], 0, 0
    for line in sentences:
        longest = max(map(len, map(str.encode, line.split())), default=0) if type == "word" else 0
        if len(line.encode()) > MAX_LINE_BYTES or longest > MAX_WORD_BYTES:
            too_long += 1
        elif RESERVED in line:
            reserved += 1
        else:
            text.append(line)
    if too_long:
        words = f" or with words over {MAX_WORD_BYTES}" if type == "word" else ""
        log.warning(
            "vocabulary: %d lines over %d bytes%s are left out", too_long, MAX_LINE_BYTES, words
        )
    if reserved:
        log.warning("vocabulary: %d lines with %r are left out", reserved, RESERVED)
    return text


def learn_pair(
    src: Sequence[str] | TextFile,
    tgt: Sequence[str] | TextFile,
    *,
    type: str,
    size: int,
    shared: bool,
    cache: Path,
) -> tuple[Tokenizer, Tokenizer]:
    """Source and target vocabularies of `size` pieces each, or one for both if `shared`."""
    if shared:
        both = learn_cached(src, tgt, type=type, size=size, cache=cache)
        return both, both
    return (
        learn_cached(src, type=type, size=size, cache=cache),
        learn_cached(tgt, type=type, size=size, cache=cache),
    )


def learn_cached(*texts: Sequence[str] | TextFile, type: str, size: int, cache: Path) -> Tokenizer:
    """`learn`, remembered in the folder `cache` under a hash of the text and the settings."""
    settings = [VERSION, type, size, MAX_LINE_BYTES, MAX_SENTENCES]
    key = hashlib.sha256(repr([*settings, *map(digest_of, texts)]).encode())
    path = cache / f"{key.hexdigest()[:32]}.model"
    if path.is_file():
        notes.say(notes.read(path.with_suffix(".json")))
        return Tokenizer.load(path)
    said: notes.Said = []
    with notes.Listener(said):
        tokenizer = learn(*texts, type=type, size=size)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_whole(path.with_suffix(".json"), json.dumps(said))
        write_whole(path, tokenizer.model)  # where it is, so is what was said
    except OSError as error:  # it is learnt again the next time
        log.warning("%s: the vocabulary could not be kept there (%s)", cache, error)
    return tokenizer


def _at_most(size: int, text: list[str], type: str) -> int:
    """The size, or all there is: a set of characters or words is no larger than the text's."""
    lines = (line.replace(SPACE, " ") for line in text)
    units = {unit for line in lines for unit in (line.split() if type == "word" else line)}
    available = len(units - {" "}) + 5  # and PAD, UNK, BOS, EOS, the mark of a word's beginning
    if type == "word":
        available -= 1  # each word carries its mark
    if available < size:
        log.info("vocabulary: the text has %d %s units, fewer than %d", available, type, size)
    return min(size, available)


def _explain(error: str, size: int, text: list[str]) -> str:
    most = re.search(r"value <= (\d+)", error)
    least = re.search(r"required_chars\. \d+ vs (\d+)", error)
    if not any(line.replace(SPACE, " ").strip() for line in text):
        return "the corpus has no text to learn a vocabulary from"
    if size < 5:
        return f"tokenizer.size={size} is less than any text needs: at least 5"
    if most:
        return f"tokenizer.size={size} is more than this text supports: at most {most[1]}"
    if least:
        return f"tokenizer.size={size} is less than the characters need: at least {least[1]}"
    return f"tokenizer.size={size}: {' '.join(error.split())}"
