"""What translating costs: time and memory of a Translator, also of an untrained one.

The length of an untrained model's translations says nothing, so that it is fixed: the model never
ends a sentence, and the search stops at a limit.
"""

import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from data.tokenizer import EOS, Tokenizer
from decoding.search import Hypothesis, beam_search
from decoding.translator import Search, Translator
from models import checkpoint as checkpoints
from models.seq2seq import DecoderState, Decoding, Seq2Seq


class Speed(NamedTuple):
    """How fast sentences were translated, from raw text to raw text."""

    mean_length: float  # tokens of a translation, EOS counted
    seconds: float
    tgt_tokens_per_s: float  # of the one translation returned, not of the whole beam
    sentences_per_s: float
    cores_used: float  # processor seconds a second


class Endless(Seq2Seq):
    """A model that never ends a sentence by itself."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def encode(self, src: Tensor, src_mask: Tensor) -> DecoderState:
        return self.model.encode(src, src_mask)

    def decode(self, tgt: Tensor, state: DecoderState) -> Decoding:
        decoding = self.model.decode(tgt, state)
        decoding.logits[..., EOS] = -torch.inf
        return decoding


def untrained(
    config: Any, tokenizers: Sequence[Tokenizer], device: torch.device, bf16: bool = False
) -> Translator:
    """The translator of a `model` config, with random weights, which never ends a sentence."""
    model = checkpoints.build(config, *(tokenizer.size for tokenizer in tokenizers))
    return Translator(Endless(model), *tokenizers, device, bf16)


def search_in_batches(beam_size: int, sentences: int, length: int | None) -> Search:
    """Beam search of at most so many sentences at once, for exactly `length` tokens if given."""

    def search(
        model: Seq2Seq, src: Tensor, src_mask: Tensor, *, max_len: Tensor
    ) -> list[list[Hypothesis]]:
        limits = max_len if length is None else torch.full_like(max_len, length)
        found = []
        for part, mask, limit in zip(
            *(whole.split(sentences) for whole in (src, src_mask, limits)), strict=True
        ):
            found += beam_search(
                model, part, mask, beam_size=beam_size, length_penalty=1.0, max_len=limit
            )
        return found

    return search


def speed(
    translator: Translator, sentences: Sequence[str], search: Search, *, alone: bool, seconds: float
) -> Speed:
    """The speed of all translations that begin within so many seconds, after a warm-up.

    alone: one sentence after the other, and not all of them at once, again and again.
    """
    groups = [[sentence] for sentence in sentences] if alone else [sentences]
    translator.translate(sentences[:3], search)
    done, tokens, calls = 0, 0, 0
    begun, processor = time.perf_counter(), time.process_time()
    while (passed := time.perf_counter() - begun) < seconds or calls == 0:
        found = translator.translate(groups[calls % len(groups)], search)
        calls += 1
        done += len(found)
        tokens += sum(len(t.tokens) + (not t.length_capped) for t in found)
    used = time.process_time() - processor
    return Speed(tokens / done, passed, tokens / passed, done / passed, used / passed)


def peak_memory_mb(device: torch.device) -> dict[str, float | None]:
    """The most memory that this process has had, and the most that its tensors had on a GPU."""
    status = Path("/proc/self/status")
    if status.is_file():  # Linux, where ru_maxrss would begin at what the parent process had
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        resident = int(line.split()[1]) / 2**10
    else:
        unit = 2**20 if sys.platform == "darwin" else 2**10
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    on_gpu = torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else None
    return {"peak_rss_mb": resident, "peak_gpu_mb": on_gpu}
