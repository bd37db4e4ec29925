"""Writes a page for each public name and a page for each group of them, before a build."""

import inspect
from pathlib import Path

import jaxbandits as jb

INTRODUCTIONS = {
    "simulation": "Runs of algorithms on instances, their results, and live runs.",
    "types": "What algorithms, environments and instances are made of.",
    "algorithms": "Constructors of algorithms. [One table of all](../algorithms/index.md) has"
    " settings, guarantees and measured figures.",
    "instances": "Constructors of problems.",
    "design": "Optimal designs, each with a certificate.",
    "rounding": "From weights of a design to whole numbers of draws.",
    "fitting": "Maximum likelihood in generalised linear models.",
    "theory": "Lower bounds, and proved upper bounds of some algorithms.",
    "plot": "Figures of runs, of comparisons and of sweeps, by matplotlib.",
}
SIMULATION = ("simulate", "compare", "sweep", "Live", "Runs", "Comparison", "load")
TYPES = ("Algorithm", "Move", "Env", "Run", "Instance")


def groups():
    """`{group: [dotted name]}`, every public name in one of them."""
    rooms = {name for name in jb.__all__ if inspect.ismodule(getattr(jb, name))}
    found = {
        "simulation": list(SIMULATION),
        "types": list(TYPES),
        "algorithms": sorted(jb.algorithms.__all__),
        "fitting": ["fit_glm"],
    }
    for room in sorted(rooms):
        names = getattr(jb, room).__all__
        found[room] = [f"{room}.{n}" for n in sorted(names, key=str.lower) if n != "Instance"]
    missing = set(jb.__all__) - rooms - {name for names in found.values() for name in names}
    if missing or set(found) != set(INTRODUCTIONS):
        raise ValueError(f"public names without a page in the reference: {sorted(missing)}")
    return {group: found[group] for group in INTRODUCTIONS}


def page_of(name):
    """The page of one name, such as `design.d_optimal`."""
    value = jb
    for part in name.split("."):
        value = getattr(value, part)
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    kind = kind if callable(value) else "autodata"
    return f"# {name}\n\n```{{eval-rst}}\n.. {kind}:: jaxbandits.{name}\n```\n"


def page_of_group(group, names):
    """A table of the names of a group with the first line of each, and the tree of pages."""
    rows = "\n".join(f"   jaxbandits.{name}" for name in names)
    tree = "\n".join(f"{name.split('.')[-1]} <api/{name}>" for name in names)
    table = f"```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{rows}\n```"
    toctree = f"```{{toctree}}\n:hidden:\n\n{tree}\n```"
    return f"# {group.capitalize()}\n\n{INTRODUCTIONS[group]}\n\n{table}\n\n{toctree}\n"


def pages():
    """`{path below docs/reference: text}` of all pages."""
    found = {}
    for group, names in groups().items():
        found[f"{group}.md"] = page_of_group(group, names)
        found |= {f"api/{name}.md": page_of(name) for name in names}
    return found


def write(app):
    folder = Path(app.srcdir) / "reference"
    (folder / "api").mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in folder.glob("api/*.md"):
        if f"api/{old.name}" not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app):
    app.connect("builder-inited", write, priority=100)  # before autosummary looks for names
    return {"parallel_read_safe": True, "parallel_write_safe": True}
