"""Policies of a scenario by name, and digests of their sources."""

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
"""Congestion controls by name: classes, or callables that return an object of one."""
Schedulers = Mapping[str, Callable[[], Scheduler]]
"""Schedulers by name."""
Stripings = Mapping[str, Callable[[], Striping]]
"""Striping policies by name."""

Brought = tuple[str, str, Callable[..., Any], str]
"""Kind, name, class or callable, and a digest of its source."""

_BASES = {"congestion": Controller, "scheduler": Scheduler, "striping": Striping}


def brought(
    before: Iterable[Brought],
    congestion: Controllers | None = None,
    schedulers: Schedulers | None = None,
    striping: Stripings | None = None,
) -> tuple[Brought, ...]:
    """Adds policies to those of ``before``; a name that exists is replaced."""
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
    """Raises ``KeyboardInterrupt`` in threads that run Python, by their identifiers in
    :mod:`threading`.
    """
    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def digest(make: object) -> str:
    """SHA-256 over the source of a policy, as far as it can be determined: classes with their
    bases, and the variables that functions enclose. Other code of their module is not included.
    """
    parts: list[str] = []
    _describe(make, parts)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


def _describe(make: object, parts: list[str]) -> None:
    if isinstance(make, functools.partial):
        _describe(make.func, parts)
        _value((make.args, make.keywords), parts)
    elif isinstance(make, type):
        for cls in make.__mro__:
            if cls is not object and not cls.__module__.startswith("anabranch."):
                parts.append(f"{cls.__module__}.{cls.__qualname__}")
                parts.append(_source(cls))
                for name, member in sorted(vars(cls).items()):
                    if name not in _OWN_OF_CLASSES:
                        parts.append(name)
                        _value(member, parts)
    elif isinstance(make, FunctionType):
        parts.append(f"{make.__module__}.{make.__qualname__}")
        parts.append(_source(make))
        _code(make, parts)
    else:
        _describe(type(make), parts)
        _value(vars(make) if hasattr(make, "__dict__") else repr(make), parts)


# Attributes that Python adds to each class; they do not describe its behaviour.
_OWN_OF_CLASSES = {"__dict__", "__doc__", "__firstlineno__", "__module__", "__static_attributes__", "__weakref__"}


def _value(value: object, parts: list[str]) -> None:
    """Describes a value by its content and never by its address, so that all processes agree."""
    parts.append(type(value).__qualname__)
    if isinstance(value, FunctionType):
        _code(value, parts)
    elif isinstance(value, (staticmethod, classmethod)):
        _value(value.__func__, parts)
    elif isinstance(value, property):
        _value((value.fget, value.fset, value.fdel), parts)
    elif isinstance(value, (type, functools.partial)):
        # A method that uses `super()` encloses its class, which is being described already.
        if f"{value!r}" not in parts:
            parts.append(f"{value!r}" if isinstance(value, type) else "")
            _describe(value, parts)
    elif isinstance(value, CodeType):
        parts.extend((value.co_name, value.co_code.hex(), repr(value.co_names), repr(value.co_varnames)))
        _value(value.co_consts, parts)
    elif isinstance(value, (tuple, list)):
        parts.append(str(len(value)))
        for item in value:
            _value(item, parts)
    elif isinstance(value, (set, frozenset)):
        parts.extend(sorted(repr(item) for item in value))
    elif isinstance(value, dict):
        parts.append(str(len(value)))
        for key in sorted(value, key=repr):
            parts.append(repr(key))
            _value(value[key], parts)
    elif isinstance(value, (str, bytes, int, float, complex, type(None), type(...))):
        parts.append(repr(value))
    elif hasattr(value, "tobytes"):
        parts.extend((repr(getattr(value, "shape", "")), repr(getattr(value, "dtype", "")), value.tobytes().hex()))


def _source(of: Any) -> str:
    try:
        return inspect.getsource(of)
    except (OSError, TypeError):
        return ""


def _code(function: FunctionType, parts: list[str]) -> None:
    """Describes a function by its code and its enclosed variables. The source is not sufficient: it
    may be that of another class of the same name.
    """
    _value(function.__code__, parts)
    _value((function.__defaults__, function.__kwdefaults__), parts)
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        _value(content, parts)
