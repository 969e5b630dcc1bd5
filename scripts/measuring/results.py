"""Results of measurements: one JSON file per machine and measurement below docs/results, read and written here.

A file holds what a stranger needs to judge the numbers (machine, date, version, commands, the program's own output) and
`values`, the numbers that pages show: a list of records, each with the fields that name it and the numbers themselves. A
number that was measured several times is an object with `median`, `low`, `high` and `runs`.
"""

import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "docs" / "results"


def summary(values):
    """One number as it is, several as their median and extent."""
    if len(values) == 1 or not all(isinstance(value, (int, float)) for value in values):
        return values[0]
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "runs": len(values)}


def middle(value):
    return value["median"] if isinstance(value, dict) else value


def spread(value):
    """How far the runs of a number lie from their median, as a share of it; None if there was one run."""
    if not isinstance(value, dict) or not value["median"]:
        return None
    return max(value["high"] - value["median"], value["median"] - value["low"]) / abs(value["median"])


def path_of(machine, measurement):
    return RESULTS / machine / f"{measurement}.json"


def load(machine, measurement):
    path = path_of(machine, measurement)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def machines():
    """The folders of docs/results, in the order of their names."""
    return sorted(path.name for path in RESULTS.iterdir() if path.is_dir()) if RESULTS.exists() else []


def write(path, result):
    """Writes a result with one line for each run and each value, so that differences are read line by line."""
    lines = ["{"]
    last = list(result)[-1]
    for key, value in result.items():
        end = "" if key == last else ","
        if isinstance(value, list) and value:
            lines.append(f" {json.dumps(key)}: [")
            lines += [f"  {json.dumps(item, ensure_ascii=False)}," for item in value]
            lines[-1] = lines[-1][:-1]
            lines.append(f" ]{end}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}{end}")
    lines.append("}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    partial.replace(path)
