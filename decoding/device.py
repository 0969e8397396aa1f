"""On what a model computes: the device, the threads, the numbers' precision."""

import logging

import torch

log = logging.getLogger(__name__)
MAX_THREADS = 1_024


def device_of(name: str) -> torch.device:
    """The torch device called `name`; auto: the GPU if there is one. ValueError if there is not."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=str(name)).item()  # which only a device that computes can give
        return torch.device(str(name))
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"device={name}: not available here; use auto or cpu") from error


def use_threads(threads: int | None) -> None:
    """Sets the number of CPU threads; None leaves it to torch. ValueError below 1."""
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        bound = "at least 1, or null" if threads < 1 else f"at most {MAX_THREADS}"
        raise ValueError(f"threads must be {bound}, not {threads}")
    if threads is not None:
        torch.set_num_threads(threads)


def wants_bf16(precision: str, device: torch.device) -> bool:
    """Whether matrix products run in bfloat16; auto: where the hardware has units for it.

    A warning says where bf16 was asked for and there are none. ValueError for any other precision.
    """
    if precision not in ("auto", "fp32", "bf16"):
        raise ValueError(f"precision must be auto, fp32 or bf16, not {precision!r}")
    if precision == "fp32":
        return False
    units = has_bf16_units(device)
    if precision == "bf16" and not units:
        log.warning("precision=bf16: the %s has no units for it and emulates them slowly", device)
    return units or precision == "bf16"


def has_bf16_units(device: torch.device) -> bool:
    """Whether the processor or the GPU multiplies in bfloat16 itself."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))
