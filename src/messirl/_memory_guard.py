"""Memory checks before large allocations."""

from __future__ import annotations

from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

LITTLE = 2**28  # bytes below which nothing is checked
ALWAYS = 2**27  # bytes that may be unpacked from any file
DENSEST = 100  # bytes that may be unpacked in addition, per byte of the file
JSON = 2**25  # maximum bytes of a JSON file: parsed, it takes some thirty times as many
INFO, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def check_memory(what: str, needed: float, remedy: str) -> None:
    """Raise a MemoryError with a remedy if `what` needs more bytes than are free.

    remedy : advice for the user; `{share:…}` in it is the share of the needed bytes that is free
    """
    if needed <= LITTLE:
        return
    there = available_memory()
    if there is not None and needed > there:
        raise MemoryError(
            f"{what} would take {needed / 1e9:.2g} GB of memory, and {there / 1e9:.2g} GB are free: "
            + remedy.format(share=there / needed)
        )


def unpacking_limit(size: float) -> float:
    """Return the bytes that may be unpacked from a compressed file of `size` bytes, against decompression bombs."""
    most, there = ALWAYS + DENSEST * size, available_memory()
    return most if there is None else min(most, there / 4)


def available_memory() -> float | None:
    """Return the bytes that this process may still allocate; None if the system does not tell."""
    limits = [_free(), _left_in_group(), _left_of_limit()]
    return min((limit for limit in limits if limit is not None), default=None)


def _free() -> float | None:
    for line in _lines(INFO):
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    return None


def _left_in_group() -> float | None:
    most, now = _lines(GROUP / "memory.max"), _lines(GROUP / "memory.current")
    return float(most[0]) - float(now[0]) if most and now and most[0].strip().isdigit() else None


def _left_of_limit() -> float | None:
    if resource is None:
        return None
    most, pages = resource.getrlimit(resource.RLIMIT_AS)[0], _lines(Path("/proc/self/statm"))
    if most == resource.RLIM_INFINITY or not pages:
        return None
    return float(most) - float(pages[0].split()[0]) * resource.getpagesize()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
