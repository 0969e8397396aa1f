"""What every command shares: errors as one line, logging, overrides checked before Hydra runs."""

import ctypes
import difflib
import functools
import io
import logging
import math
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import CompactHydraException, HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

CONFIGS = Path(__file__).resolve().parent / "configs"
MAX_MESSAGE = 2_000  # characters of an error
MAX_SWEPT = 1_000  # values of a sweep whose types are checked beforehand
TRACEBACK = "HYDRA_FULL_ERROR"  # the environment variable that asks for tracebacks


def scaled(number: int, budget: float) -> int:
    """In configs/, ${scaled:6000,${experiment.budget}}: a number of updates times a budget."""
    if type(budget) not in (int, float) or not 0 < budget < math.inf:
        raise ValueError(f"experiment.budget must be a number above 0, not {budget!r}")
    return max(1, round(number * budget))


def keep_freed_memory() -> None:
    """Lets glibc keep memory that is freed, here and in the processes started from here.

    It would give large tensors back to the system and ask for them again at each step, which costs
    a tenth of the time. What the user has set in MALLOC_... stays.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone
    for variable, (option, value) in _MALLOC.items():
        if variable not in os.environ and set_option is not None:
            set_option(option, value)
            os.environ[variable] = str(value)


_MALLOC = {  # environment variables, and malloc.h's numbers of the same options
    "MALLOC_TRIM_THRESHOLD_": (-1, 1 << 30),
    "MALLOC_MMAP_MAX_": (-4, 0),
}


OmegaConf.register_new_resolver("scaled", scaled, replace=True)


def command(main: Callable[..., None]) -> Callable[..., None]:
    """A main function of which what the user did wrong becomes one line on stderr and status 1.

    That is ValueError, OSError, what Hydra and OmegaConf raise, and want of memory. Anything else
    is a bug and keeps its traceback.
    """

    @functools.wraps(main)
    def wrapped(*args: object) -> None:
        keep_freed_memory()
        if sys.stderr is None:  # closed, as 2>&- does
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):  # a terminal may know less than the text holds
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        if not logging.getLogger().handlers:
            logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        try:
            main(*args)
        except BrokenPipeError:  # the reader of our output has gone, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except EXPECTED as error:
            if os.environ.get(TRACEBACK):
                raise
            fail(str(error) or type(error).__name__)
        except (MemoryError, RuntimeError) as error:
            wanting = ("allocate memory", "out of memory")  # of torch, on the CPU and on the GPU
            if not isinstance(error, MemoryError) and not any(w in str(error) for w in wanting):
                raise
            fail(f"not enough memory ({error or 'MemoryError'}); try smaller batches or sizes")
        except KeyboardInterrupt:
            fail("interrupted", status=130)

    return wrapped


EXPECTED = (ValueError, OSError, HydraException, OmegaConfBaseException)


def number_or(*names: str) -> Callable[[str], int | str]:
    """An argparse type: a whole number from 1 on, or one of the names."""

    def parse(text: str) -> int | str:
        if text in names:
            return text
        if text.isascii() and text.isdigit() and int(text) >= 1:
            return int(text)
        raise ArgumentTypeError(f"{text!r} is not a number from 1 on, nor {' or '.join(names)}")

    return parse


def fail(message: str, status: int = 1) -> None:
    """Ends the program with one line on stderr; of several processes, the first one writes it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or os.environ.get("RANK") == "0":
        line = " ".join(message.split())
        line = line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]} ..."
        # no escape sequence of a file or a name reaches the terminal
        plain = (c if c.isprintable() else ascii(c)[1:-1] for c in line)
        print(f"error: {''.join(plain)}", file=sys.stderr)
    sys.exit(status)


def hydra_command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """`hydra.main` for configs/, with overrides checked first and errors as one line."""

    def decorate(main: Callable[[DictConfig], None]) -> Callable[[], None]:
        def run() -> None:
            command(check_overrides)(config_name, sys.argv[1:])
            jobs = hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)
            command(jobs(_one_of_several(command(main))))()

        return run

    return decorate


def _one_of_several(main: Callable[[DictConfig], None]) -> Callable[[DictConfig], None]:
    """In a sweep, a job that fails does not keep the others from running; the sweep fails after.

    For that a launcher has to see an exception: it lets a SystemExit through at once.
    """

    @functools.wraps(main)
    def job(config: DictConfig) -> None:
        try:
            main(config)
        except SystemExit as end:
            if HydraConfig.get().mode != RunMode.MULTIRUN or end.code != 1:  # or it was stopped
                raise
            raise CompactHydraException("error: this job failed, as was said above") from None

    return job


def check_overrides(config_name: str, arguments: list[str]) -> None:
    """Refuses unknown choices and keys, with the nearest valid name, and values of a wrong type."""
    overrides = [a for a in arguments if not a.startswith("-") and ("=" in a or a[:1] == "~")]
    for stray in (a for a in arguments if "=" not in a and not a.startswith(("-", "~"))):
        if arguments[max(0, arguments.index(stray) - 1)] not in _WITH_VALUE:
            fail(f"{_short(stray)} is not of the form key=value (see --help)")
    chosen = list(filter(None, map(_choice, overrides)))
    try:
        parsed = list(map(_parsed, overrides))
        for nameless in (override for override in parsed if not override.key_or_group):
            fail(f"{_short(nameless.input_line)} has no key before the =")
        swept = [override for override in parsed if override.is_sweep_override()]
        if swept and not {"-m", "--multirun"} & set(arguments):
            fail(f"{swept[0].input_line}: several values are a sweep (-m); a comma needs quotes")
        _check_names(swept, parsed)
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            defaults = _plain(compose(config_name, chosen))
            for override in parsed:
                _check_key(override, defaults)
            fixed = [o.input_line for o in parsed if not o.is_sweep_override()]
            config = _plain(compose(config_name, fixed))
        values, kinds = flat(config), flat(defaults)
        for key in (o.key_or_group for o in parsed):  # first, to name what was given
            check_types({key: values[key]} if key in values else {}, kinds)
        check_types(config, defaults)
        for override in (o for o in swept if _choice(o.input_line) is None):
            for value in islice(override.sweep_iterator(), MAX_SWEPT):
                check_types({override.key_or_group: value}, kinds)
    except RecursionError:
        fail("an override is nested too deeply")


def _parsed(override: str) -> Override:
    try:
        return OverridesParser.create().parse_override(override)
    except (HydraException, ValueError) as error:
        reason = _short(str(error).split("\nSee https")[0])
        raise ValueError(
            f"{_short(override)} cannot be read as key=value: {reason}; characters other than"
            " letters, digits and -_./ need quotes within quotes: 'key=\"value\"'"
        ) from error


_WITH_VALUE = {  # options of Hydra whose value may follow as an argument of its own
    *("--config-dir", "-cd", "--config-name", "-cn", "--config-path", "-cp", "--package", "-p"),
    *("--cfg", "-c", "--info", "-i"),
}


def _short(text: str) -> str:
    """The text quoted, or its beginning."""
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}..."


def _choice(override: str) -> str | None:
    """The override of a group of configs/ with its (first) choice, which must be there."""
    key, _, value = override.partition("=")
    group = key.lstrip("+").split("@")[0]
    if not value or group not in {path.name for path in CONFIGS.iterdir() if path.is_dir()}:
        return None
    names = sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))
    for name in value.split(","):
        if name.strip() not in names:
            fail(f"{key.lstrip('+')}={name}: no such choice{_nearest(name, names)}")
    return override.split(",")[0]


def _plain(config: DictConfig) -> dict:
    """The settings with all references resolved."""
    return OmegaConf.to_container(config, resolve=True, throw_on_missing=True)  # type: ignore


def _check_key(override: Override, defaults: dict) -> None:
    key, known = override.key_or_group, flat(defaults)
    added = override.is_add() or override.is_force_add()
    # with + a group of its own may be noted down, and options that an optimiser has
    free = added and (key.split(".")[0] not in known or key.startswith("training.optimizer."))
    if override.is_delete():
        fail(f"~{key}: no key can be left out; give it another value")
    if key not in known and not (free or key.startswith("hydra") or _choice(override.input_line)):
        fail(f"unknown key {key!r}{_nearest(key, list(known))}")


def _check_names(swept: list[Override], overrides: list[Override]) -> None:
    """Refuses a sweep of which several jobs would be called alike, before the first one begins."""
    apart = {"data", "model", "experiment", "name"}  # of what a run's folder is made
    for override in overrides:
        fixed = override.key_or_group == "name" and not override.is_sweep_override()
        if fixed and override.value() is not None and "${" not in override.input_line:
            for other in (o.key_or_group for o in swept if o.key_or_group not in apart):
                fail(
                    f"{override.input_line}: several jobs of this sweep would be called so; leave "
                    f"it out, or let it tell them apart, as 'name=a-${{{other}}}' does"
                )


def check_types(settings: dict, defaults: dict, prefix: str = "") -> None:
    """Raises ValueError for a value that is not of the kind of its default."""
    for key in [key for key in settings if key in defaults]:
        value, default, name = settings[key], defaults[key], f"{prefix}{key}"
        wanted = _wanted(value, default, _ALSO.get(name, ()))
        if wanted:
            shown = "null" if value is None else value
            like = "" if isinstance(default, dict) else f", like {default}"
            raise ValueError(f"{name}={shown}: must be {wanted}{like}")
        if isinstance(value, dict) and isinstance(default, dict):
            check_types(value, default, f"{name}.")
        if isinstance(value, list) and isinstance(default, list) and default:
            items = dict(enumerate(value))
            check_types(items, dict.fromkeys(items, default[0]), f"{name}.")


def _wanted(value: object, default: object, also: tuple[type, ...]) -> str | None:
    """What a value must be and is not."""
    kind = type(default)
    if isinstance(value, float) and not math.isfinite(value):
        return "a finite number"
    if type(value) is int and not -(2**63) <= value < 2**63:
        return "a number of at most 64 bits"
    if default is None:
        kind = also[0] if also else str
    if value is default or type(value) in (kind, *also):
        return None
    if kind is float and type(value) is int:
        return None
    if kind is str and isinstance(value, int | float):  # a name may look like a number
        return None
    return _KINDS[kind]


_ALSO = {  # what a key may be that its default is not
    "training.patience": (int, type(None)),
    "data.max_pairs": (int, type(None)),
    "data.max_train_words": (int, type(None)),
    "training.muon": (float, type(None)),
    "model.tied": (str, type(None)),
    "threads": (int, type(None)),
    "checkpoint": (list,),
}
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a group of keys",
}


def flat(node: dict, prefix: str = "") -> dict:
    """The settings, and the groups of them, by their dotted names."""
    names = {}
    for name, value in node.items():
        names[f"{prefix}{name}"] = value
        if isinstance(value, dict):
            names |= flat(value, f"{prefix}{name}.")
    return names


def _nearest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f" (there are: {', '.join(names)})" if len(names) <= 20 else " (see --help)"
