# SPDX-License-Identifier: Apache-2.0
"""Evaluates the figures: limits, targets, and tables for readers."""
import json
import statistics

LARGE = 64 << 20


def size_text(size):
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def of(results, name, **wanted):
    """The rows of a kind of result whose fields have the wanted values."""
    return [row for row in results.get(name, [])
            if all(row.get(key) == value for key, value in wanted.items())]


def copy_gbps(results, size):
    """The bandwidth of the driver's copies: the median for this size, or for the nearest that was
    copied."""
    rows = results.get("copy", [])
    if not rows:
        return None
    nearest = min({row["bytes"] for row in rows}, key=lambda other: abs(other - size))
    return statistics.median(row["copy_gbps"] for row in rows if row["bytes"] == nearest)


def limit_us(results, ranks, size):
    """The time to read all inputs and write all outputs, at the bandwidth of a copy of as many
    bytes."""
    rate = copy_gbps(results, ranks * size)
    return 2 * ranks * size / rate * 1e-3 if rate else None


def empty(results, threads, what):
    """The figure `what` of empty kernels, launched by so many threads."""
    rows = of(results, "empty", threads=threads)
    return rows[-1][what] if rows else None


def targets(results, ranks):
    """[(what, figure, "at least" or "at most", target)]; a figure of None was not measured."""
    sums = [row["of_copy"] for row in of(results, "reduce", type="float32", sources=2)
            if row["bytes"] >= LARGE]
    shares = [limit / row["us"] for row in results.get("all_reduce", [])
              for limit in [limit_us(results, ranks, row["bytes"])]
              if row["bytes"] >= LARGE and limit]
    def ratio(name, what):
        rows = of(results, name, bytes=8)
        beside = empty(results, 1, what)
        return rows[0]["us"] / beside if rows and beside else None
    load = (results.get("load") or [None])[-1]
    return [
        ("sum of 2 float32 sources from 64 MiB on, of a copy's bandwidth, the worst",
         min(sums, default=None), "at least", 0.95),
        (f"all-reduce of {ranks} ranks from 64 MiB on, of the limit, the worst",
         min(shares, default=None), "at least", 0.85),
        ("all-reduce of 8 B, each waited for, in empty launches",
         ratio("all_reduce_waited_for", "launch_us"), "at most", 2.0),
        ("all-reduce of 8 B in a graph, in empty nodes",
         ratio("all_reduce_graph", "node_us"), "at most", 1.3),
        ("kernels' image, MiB", load and load["image_bytes"] / (1 << 20), "at most", 16.0),
        ("kernels' load, ms", load and load["load_ms"], "at most", 300.0),
    ]


def is_reached(figure, kind, target):
    if figure is None:
        return None
    return figure >= target if kind == "at least" else figure <= target


def number(value):
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows] + [""]


def targets_table(results, ranks):
    words = {None: "not measured", True: "reached", False: "missed"}
    return table(("what", "figure", "target", ""),
                 [(what, number(figure), f"{kind} {target}",
                   words[is_reached(figure, kind, target)])
                  for what, figure, kind, target in targets(results, ranks)])


def reduce_table(results):
    return table(("type", "sources", "size", "µs", "GB/s", "driver's copy, GB/s",
                  "our copy, GB/s", "of the driver's"),
                 [(row["type"], row["sources"], size_text(row["bytes"]), number(row["us"]),
                   number(row["gbps"]), number(row["copy_gbps"]), number(row["own_copy_gbps"]),
                   number(row["of_copy"])) for row in results.get("reduce", [])])


def all_reduce_table(results, ranks):
    """A row for each size: back to back on streams, waited for, in a graph, NCCL, the limit."""
    names = ("all_reduce", "all_reduce_waited_for", "all_reduce_no_stream", "all_reduce_graph")
    columns = [{row["bytes"]: row["us"] for row in results.get(name, [])} for name in names]
    peers = [{row["bytes"]: row[key] for row in results.get("nccl", [])}
             for key in ("stream_us", "sync_us")]
    rows = []
    for size in sorted(set().union(*columns, *peers)):
        limit = limit_us(results, ranks, size)
        time = columns[0].get(size)
        rows.append((size_text(size), *(number(column.get(size)) for column in columns + peers),
                     number(limit) if size >= LARGE else "-",
                     number(limit / time) if limit and time and size >= LARGE else "-"))
    peer = results.get("nccl", [{}])[0].get("ranks")
    nccl = f"NCCL, {peer} ranks" if peer else "NCCL"
    return table(("size", "µs on a stream", "waited for", "without a stream", "in a graph", nccl,
                  f"{nccl}, waited for", "limit", "of the limit"), rows)


def markdown(results, ranks):
    """The page of a run."""
    machine = results.get("machine", {})
    lines = [f"# {machine.get('gpu', 'GPU')}", "",
             f"Driver {machine.get('driver', '?')}, compute capability "
             f"{machine.get('compute_capability', '?')}, {results.get('when', '')}, "
             f"commit {results.get('commit', '?')}. Made by `scripts/gpu-check`; "
             "docs/gpu-measuring.md says how.", ""]
    lines += targets_table(results, ranks)
    for row in results.get("empty", []):
        lines.append(f"* Empty kernel, threads: {row['threads']}; launch and synchronize "
                     f"{row['launch_us']:.2f} µs, node of a graph {row['node_us']:.2f} µs.")
    lines += ["", f"## All-reduce of {ranks} ranks, threads that share the GPU, float32", ""]
    lines += all_reduce_table(results, ranks)
    lines += [f"* NCCL: {reason}" for reason in results.get("nccl_refused", [])]
    lines += ["", "## Local kernels against copies", ""] + reduce_table(results)
    lines += ["## Steps", ""]
    lines += table(("step", "", "s", "why"), [(entry["step"], entry["outcome"], entry["seconds"],
                                                entry["why"]) for entry in results["steps"]])
    return "\n".join(lines)


def as_json(results):
    """A line for each row."""
    parts = []
    for key, value in results.items():
        if isinstance(value, list):
            rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f' "{key}": [\n  {rows}]' if rows else f' "{key}": []')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def wrong_results(results, ranks):
    """A line for each measurement whose result was wrong."""
    lines = [f"reduction of {row['sources']} {row['type']}, {size_text(row['bytes'])}"
             for row in results.get("reduce", []) if not row["right"]]
    for name in ("all_reduce", "all_reduce_waited_for", "all_reduce_no_stream", "all_reduce_graph"):
        lines += [f"{name} of {ranks} ranks, {size_text(row['bytes'])}"
                  for row in results.get(name, []) if row["wrong"]]
    return lines
