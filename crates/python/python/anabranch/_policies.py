"""Policies that a scenario brings along, by name, and digests of their sources."""

from __future__ import annotations

import ctypes
import difflib
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType
from typing import Any

from ._error import Error
from .policy import Controller, Scheduler, Start, Striping

Controllers = Mapping[str, Callable[[Start], Controller]]
"""Congestion controls by name: classes, or whatever makes an object of one."""
Schedulers = Mapping[str, Callable[[], Scheduler]]
"""Schedulers by name."""
Stripings = Mapping[str, Callable[[], Striping]]
"""Striping policies by name."""

Brought = tuple[str, str, Callable[..., Any], str]
"""Kind, name, what makes one, and a digest of its source."""

_BASES = {"congestion": Controller, "scheduler": Scheduler, "striping": Striping}


def brought(
    before: Iterable[Brought],
    congestion: Controllers | None = None,
    schedulers: Schedulers | None = None,
    striping: Stripings | None = None,
) -> tuple[Brought, ...]:
    """What was brought before and these; a name that is there already gets a new meaning."""
    found = {(kind, name): (kind, name, make, digest) for kind, name, make, digest in before}
    kinds: list[tuple[str, Mapping[str, Callable[..., Any]] | None]] = [
        ("congestion", congestion),
        ("scheduler", schedulers),
        ("striping", striping),
    ]
    for kind, policies in kinds:
        for name, make in (policies or {}).items():
            _check(kind, name, make)
            found[kind, name] = kind, name, make, digest(make)
    return tuple(found.values())


def _check(kind: str, name: str, make: object) -> None:
    base = _BASES[kind]
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", name):
        raise Error(f"{name!r} is no name of a policy", hint="1 to 32 letters, digits, `-`, `_` and `.`")
    made = make.func if isinstance(make, functools.partial) else make
    if not callable(made) or (isinstance(made, type) and not issubclass(made, base)):
        raise Error(f"`{name}` is {made!r}, which makes no anabranch.{base.__name__}", hint=f"derive a class from anabranch.{base.__name__}")
    if isinstance(made, type):
        known = [method for method in dir(base) if method.startswith("on_")]
        for method in dir(made):
            if known and method.startswith("on_") and method not in known:
                near = difflib.get_close_matches(method, known, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"it is told of {', '.join(known)}"
                raise Error(f"`{made.__qualname__}.{method}` would never be called", hint=hint)


def interrupt(threads: Iterable[int]) -> None:
    """Raises ``KeyboardInterrupt`` in threads where Python runs, by the identifiers that :mod:`threading` gives them."""
    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def digest(make: object) -> str:
    """SHA-256 over the source of what makes a policy, as far as that can be told: classes with their bases, and what functions
    enclose. What they use of their module is not part of it."""
    parts: list[str] = []
    _describe(make, parts)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _describe(make: object, parts: list[str]) -> None:
    if isinstance(make, functools.partial):
        _describe(make.func, parts)
        parts.append(repr((make.args, sorted(make.keywords.items()))))
    elif isinstance(make, type):
        for cls in make.__mro__:
            if cls is not object and not cls.__module__.startswith("anabranch."):
                parts.append(f"{cls.__module__}.{cls.__qualname__}")
                parts.append(_source(cls))
                for _, member in sorted(vars(cls).items()):
                    if isinstance(member, FunctionType):
                        _code(member, parts)
    elif isinstance(make, FunctionType):
        parts.append(f"{make.__module__}.{make.__qualname__}")
        parts.append(_source(make))
        _code(make, parts)
    else:
        _describe(type(make), parts)
        parts.append(repr(make))


def _source(of: Any) -> str:
    try:
        return inspect.getsource(of)
    except (OSError, TypeError):
        return ""


def _code(function: FunctionType, parts: list[str]) -> None:
    """A function by its code, since a source may be that of another class of the same name, and with what it encloses."""
    parts.append(repr(_plain(function.__code__)))
    parts.append(repr((function.__defaults__, function.__kwdefaults__)))
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        # The class itself, for `super()`.
        if not isinstance(content, type):
            parts.append(repr(content))


def _plain(code: CodeType) -> tuple[Any, ...]:
    constants = [_plain(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return code.co_name, code.co_code.hex(), constants, code.co_names, code.co_varnames
