"""The table: a row for each case and number of threads, ratios beside the most that each may be."""

from __future__ import annotations

from typing import Any

HEAD = (
    "case",
    "threads",
    "nnrs",
    "torch",
    "NNabla",
    "nnrs / torch",
    "at most",
    "nnrs / NNabla",
    "at most",
    "of the limit",
    "",
)
SCALES = {"ms": (1e3, "ms"), "MiB": (2**-20, "MiB"), "MB": (1e-6, "MB"), "times": (1, "times"), "faults": (1, "faults")}
OTHERS = ("torch", "nnabla")


def seconds(value: float) -> str:
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def shown(row: dict[str, Any], engine: str) -> str:
    found = row["values"].get(engine)
    if found is None:
        return "-"
    if "error" in found:
        return "error"
    if row["unit"] == "s":
        return seconds(found["value"])
    scale, unit = SCALES[row["unit"]]
    return f"{found['value'] * scale:.3g} {unit}"


def value(row: dict[str, Any], engine: str) -> float | None:
    return row["values"].get(engine, {}).get("value")


def ratio(row: dict[str, Any], other: str) -> float | None:
    ours, theirs = value(row, "nnrs"), value(row, other)
    return ours / theirs if ours is not None and theirs else None


def verdict(row: dict[str, Any]) -> str:
    """ok or MISS where all that can be judged was measured; nothing where a row has no limit."""
    judged = [(ratio(row, other), limit) for other, limit in row["limits"].items()]
    if row["ceiling"] is not None:
        judged.append((value(row, "nnrs"), row["ceiling"]))
    if row["share"]:
        found = reached(row)
        judged.append((found and -found, -row["share"]))
    if any(found is not None and found > limit for found, limit in judged):
        return "MISS"
    if any(found is None for found, _ in judged):
        return "?"
    return "ok" if judged else ""


def reached(row: dict[str, Any]) -> float | None:
    """How much of what the machine can do nnrs does; above 1 where it needs fewer operations than are counted."""
    found, least = value(row, "nnrs"), row["least"]
    return least / found if found and least else None


def share(row: dict[str, Any]) -> str:
    found = reached(row)
    wanted = f" (at least {100 * row['share']:.0f})" if row["share"] else ""
    return "" if found is None else f"{100 * found:.0f} %{wanted}"


def spread(row: dict[str, Any], other: str) -> str:
    """The least and the largest ratio of three parts of the rounds."""
    rounds = [row["values"].get(engine, {}).get("rounds", []) for engine in ("nnrs", other)]
    count = min(map(len, rounds)) // 3
    if not count:
        return ""
    thirds = [[min(times[i * count : (i + 1) * count]) for i in range(3)] for times in rounds]
    ratios = [ours / theirs for ours, theirs in zip(*thirds, strict=True)]
    return f" ({min(ratios):.2f}-{max(ratios):.2f})"


def ratio_cells(row: dict[str, Any], other: str) -> list[str]:
    found, limit = ratio(row, other), row["limits"].get(other)
    return ["-" if found is None else f"{found:.3g}{spread(row, other)}", "" if limit is None else f"{limit:g}"]


def cells(row: dict[str, Any]) -> list[str]:
    ours = shown(row, "nnrs")
    if row["ceiling"] is not None:
        scale, unit = SCALES[row["unit"]]
        ours += f" (at most {row['ceiling'] * scale:g} {unit})"
    compared = [cell for other in OTHERS for cell in ratio_cells(row, other)]
    return [
        row["title"],
        str(row["threads"]),
        ours,
        *(shown(row, e) for e in OTHERS),
        *compared,
        share(row),
        verdict(row),
    ]


def line(texts: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(texts) + " |"


def header() -> str:
    return line(HEAD) + "\n|" + "---|" * len(HEAD)


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What a cell has no room for: errors and remarks."""
    found = []
    for row in rows:
        for engine, entry in row["values"].items():
            text = entry.get("error") or entry.get("note")
            if text:
                found.append(f"- {row['name']}, {row['threads']} threads, {engine}: {text}")
    return found


def document(rows: list[dict[str, Any]], heading: list[str]) -> str:
    parts = [*heading, "", header(), *(line(cells(row)) for row in rows)]
    remarks = notes(rows)
    return "\n".join([*parts, "", *remarks] if remarks else parts) + "\n"
