"""What every command shares: errors as one line, logging, overrides checked before Hydra runs."""

import difflib
import functools
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import hydra
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, InstantiationException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

CONFIGS = Path(__file__).resolve().parent / "configs"
TRACEBACK = "HYDRA_FULL_ERROR"  # the environment variable that asks for tracebacks


def command(main: Callable[..., None]) -> Callable[..., None]:
    """A main function whose ValueError or OSError becomes one line on stderr and exit status 1."""

    @functools.wraps(main)
    def wrapped(*args: object) -> None:
        if not logging.getLogger().handlers:
            logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
        try:
            main(*args)
        except BrokenPipeError:  # the reader of our output has gone, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (ValueError, OSError, InstantiationException) as error:
            if os.environ.get(TRACEBACK):
                raise
            if isinstance(error, InstantiationException):  # Hydra's wrapping of a constructor's
                if not isinstance(error.__cause__, ValueError | OSError | TypeError):
                    raise
                error = error.__cause__
            fail(str(error))
        except KeyboardInterrupt:
            fail("interrupted", status=130)

    return wrapped


def fail(message: str, status: int = 1) -> None:
    """Ends the program with one line on stderr."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


def hydra_command(config_name: str) -> Callable[[Callable[[DictConfig], None]], Callable[[], None]]:
    """`hydra.main` for configs/, with overrides checked first and errors as one line."""

    def decorate(main: Callable[[DictConfig], None]) -> Callable[[], None]:
        def run() -> None:
            check_overrides(config_name, sys.argv[1:])
            hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name=config_name)(
                command(main)
            )()

        return run

    return decorate


def check_overrides(config_name: str, arguments: list[str]) -> None:
    """Refuses unknown choices and keys, with the nearest valid name, and values of a wrong type."""
    overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
    for stray in (a for a in arguments if "=" not in a and not a.startswith(("-", "~"))):
        if arguments[max(0, arguments.index(stray) - 1)] not in _WITH_VALUE:
            fail(f"{stray!r} is not of the form key=value (see --help)")
    groups = {o.lstrip("+").split("=")[0]: o for o in overrides}
    chosen = []
    for key, override in groups.items():
        folder = CONFIGS / key.split("@")[0]
        if folder.is_dir():
            names = sorted(path.stem for path in folder.glob("*.yaml"))
            for value in override.split("=", 1)[1].split(","):
                if value.strip() not in names:
                    fail(f"{key}={value}: no such choice{_nearest(value, names)}")
            chosen.append(override.split(",")[0])
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        try:
            config = compose(config_name, chosen)
            for key, override in groups.items():
                if override not in chosen and not (CONFIGS / key).is_dir():
                    _check_value(config, config_name, chosen, key, override)
        except (HydraException, OmegaConfBaseException) as error:
            fail(str(error))


_WITH_VALUE = ("--config-dir", "-cd", "--config-name", "-cn", "--config-path", "-cp", "--package")


def _check_value(
    config: DictConfig, config_name: str, chosen: list[str], key: str, override: str
) -> None:
    if key.startswith("hydra") or override.startswith("+"):
        return
    known = _keys(OmegaConf.to_container(config, resolve=False))
    if key not in known:
        fail(f"unknown key {key!r}{_nearest(key, known)}")
    default = OmegaConf.select(config, key)
    value_text = override.split("=", 1)[1]
    if "," in value_text and not value_text.startswith(("[", "{", "'", '"')):
        return  # a sweep: each job checks its own
    value = OmegaConf.select(compose(config_name, [*chosen, override]), key)
    kinds = {bool: bool, int: int, float: (int, float)}
    for kind, accepted in kinds.items():
        if type(default) is kind:
            wrong = not isinstance(value, accepted) or (kind is not bool and type(value) is bool)
            if wrong and value is not None:
                name = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
                fail(f"{key}={value_text}: must be {name}, like {default}")


def _keys(node: dict, prefix: str = "") -> list[str]:
    keys = []
    for name, value in node.items():
        keys.append(f"{prefix}{name}")
        if isinstance(value, dict):
            keys += _keys(value, f"{prefix}{name}.")
    return keys


def _nearest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f" (there are: {', '.join(names)})" if len(names) <= 20 else " (see --help)"
