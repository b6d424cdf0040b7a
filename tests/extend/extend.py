#!/usr/bin/env python3
"""Adds one of each thing that people add (additions/*.add) to a copy of the sources, and checks that it works.

  extend.py quick BUILD     every addition applies, touches the files that docs/architecture.md lists, and compiles
  extend.py build BUILD     all additions together are built in a copy of the tree, and used

The copy is in BUILD/extend. Rooms that no addition touches, not even through a header, are not compiled there: they
consist of the objects of BUILD.

An addition is a text file: `name: NAME`, then for each file `=== PATH`, then edits of it, each with the lines to insert:
  --- new                          the whole file is new
  --- after `TEXT`                 below the line that has TEXT
  --- before `TEXT`                above it
  --- replace `TEXT` `OTHER`       within the line; without lines of its own
and for the first three optionally ` below `TEXT``: the first such line after the line that has this text. Every TEXT must
occur in exactly one line, or in exactly one after `below`. NAME in a path is the addition's name.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import rooms  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COPIED = ["CMakeLists.txt", "CMakePresets.json", "cmake", "include", "proto", "src", "tools"]
EDIT = re.compile(r"--- (new|after|before|replace)(?: `(.*?)`)?(?: below `(.*)`| `(.*)`)?$")


class Addition:
    """One file of additions/: a list of (path, verb, text, below, other, lines)."""

    def __init__(self, path):
        self.kind = path.stem
        self.edits = []
        for line in path.read_text().splitlines():
            edit = EDIT.match(line)
            if line.startswith("name: ") and not self.edits:
                self.name = line[len("name: "):]
            elif line.startswith("=== "):
                file = line[4:].replace("NAME", self.name)
            elif edit:
                self.edits.append((file, *edit.groups(), []))
            elif line.startswith("--- "):
                sys.exit(f"{path}: '{line}' is no edit")
            else:
                self.edits[-1][-1].append(line)

    def files(self):
        return sorted({edit[0] for edit in self.edits})

    def documented_files(self):
        """The paths as the documentation writes them."""
        return sorted(file.replace(self.name, "NAME") if new_file(self, file) else file for file in self.files())

    def apply(self, source, target):
        """Writes the changed files below `target`; reads them from there if an earlier addition has changed them."""
        for file, verb, text, below, other, lines in self.edits:
            path = target / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if verb == "new":
                if (source / file).exists():
                    sys.exit(f"additions/{self.kind}.add: {file} exists already")
                path.write_text("\n".join(lines) + "\n")
                continue
            old = (path if path.exists() else source / file).read_text().splitlines()
            at = find_line(self.kind, file, old, text, below)
            if verb == "replace":
                old[at] = old[at].replace(text, other)
            else:
                old[at + (verb == "after"):at + (verb == "after")] = lines
            path.write_text("\n".join(old) + "\n")


def new_file(addition, file):
    return any(edit[0] == file and edit[1] == "new" for edit in addition.edits)


def find_line(kind, file, lines, text, below):
    first = 0
    if below:
        first = find_line(kind, file, lines, below, None)
    found = [i for i, line in enumerate(lines) if i >= first and text in line]
    if not found or len(found) > 1 and not below:
        sys.exit(f"additions/{kind}.add: `{text}` is in {len(found)} lines of {file}; it must be in one")
    return found[0]


def additions():
    return [Addition(path) for path in sorted((HERE / "additions").glob("*.add"))]


def listed_files(kind):
    """The files in the list below the heading of docs/architecture.md that names this kind of thing."""
    text = (ROOT / "docs/architecture.md").read_text()
    heading = kind.replace("_", " ")
    part = re.search(r"^### An? " + heading + r"$(.*?)(?=^##)", text + "\n##", re.M | re.S)
    if not part:
        sys.exit(f"docs/architecture.md has no heading '### A {heading}'")
    return sorted(re.findall(r"^- `([^`]+)`", part[1], re.M))


def compare_lists(all_additions):
    wrong = []
    for addition in all_additions:
        listed, touched = listed_files(addition.kind), addition.documented_files()
        if listed != touched:
            too_many = ", ".join(sorted(set(listed) - set(touched))) or "nothing"
            lacking = ", ".join(sorted(set(touched) - set(listed))) or "nothing"
            wrong.append(f"docs/architecture.md, {addition.kind.replace('_', ' ')}: {too_many} too much, {lacking} missing")
    if wrong:
        sys.exit("\n".join(wrong))


def commands_by_folder(build):
    """Returns folder -> a compiler call of a source of the target in that folder, without source and output."""
    result = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        folder = re.search(r"(\S+)/CMakeFiles/lockstep_", entry.get("output") or entry["command"])
        if not folder:
            continue
        words = shlex.split(entry["command"])
        start = next(i for i, word in enumerate(words) if re.search(r"(g\+\+|clang\+\+|c\+\+)[-\d.]*$", word))
        words = words[start:words.index("-o")]
        name = re.search(r"((?:src|tools|tests)/\S+)$", folder[1])
        if name:
            result.setdefault(name[1], (words, entry["directory"]))
    return result


def compile_sources(build, overlay, sources):
    """Compiles the changed sources of each room without output, as one source, with changed headers in front."""
    commands = commands_by_folder(build)
    rooms = {}
    for source in sources:
        folder = next(f for f in [source.rsplit("/", n)[0] for n in range(1, 6)] if f in commands)
        alone = "foreach_target" in (overlay / source).read_text()  # includes itself
        rooms.setdefault((folder, source if alone else ""), []).append(source)
    for (folder, _), members in sorted(rooms.items()):
        words, directory = commands[folder]
        front = [f"-I{overlay / top}" for top in ("include", "src", folder)] + [f"-I{ROOT / folder}"]
        text = "".join(f'#include "{overlay / member}"\n' for member in members)
        call = [words[0], *front, *words[1:], "-fsyntax-only", "-x", "c++", "-"]
        if "clang" not in words[0]:
            call.insert(-3, "-Wno-subobject-linkage")  # gcc takes included sources for headers
        done = subprocess.run(call, input=text, text=True, cwd=directory)
        if done.returncode != 0:
            sys.exit(f"the additions to {', '.join(members)} do not compile")


def check_refusals():
    """Tries an edit without a place, one with two places, and a file that the documentation does not list."""
    def refused(call, *arguments):
        try:
            call(*arguments)
        except SystemExit:
            return
        sys.exit(f"{call.__name__} accepts {arguments[1:]}")

    refused(find_line, "op", "a.h", ["a", "b"], "c", None)
    refused(find_line, "op", "a.h", ["a", "b", "a"], "a", None)
    setting = Addition(HERE / "additions/setting.add")
    setting.edits.append(("src/base/file.h", "after", "", None, None, []))
    refused(compare_lists, [setting])


def quick(build):
    """Checks lists, places and syntax. Sources of tests compile in the full check of the tree alone."""
    every = additions()
    check_refusals()
    compare_lists(every)
    overlay = build / "extend_quick"
    shutil.rmtree(overlay, ignore_errors=True)
    for addition in every:
        addition.apply(ROOT, overlay)
    sources = sorted({f for addition in every for f in addition.files() if f.endswith(".cpp") and not f.startswith("tests/")})
    compile_sources(build, overlay, sources)
    print(f"{len(every)} additions apply, and their {len(sources)} sources compile")


def untouched_rooms(tree, changed):
    """Returns the rooms without a file that is changed or includes a changed one, directly or not."""
    touched = {ROOT / file for file in changed}
    while True:
        more = {path for path, includes in tree.includes.items() if any(found in touched for _, _, found in includes)}
        if more <= touched:
            break
        touched |= more
    rooms_touched = {tree.files[path] for path in touched if path in tree.files}
    rooms_touched |= {room.name for room in tree.rooms.values() if ROOT / room.folder / "CMakeLists.txt" in touched}
    return [room for name, room in tree.rooms.items() if name not in rooms_touched]


def use_objects(room, build, listing):
    """Replaces the list of a room by one that takes the room's objects from another build."""
    own = f"{room.folder}/CMakeFiles/lockstep_{room.name}.dir/"
    outputs = {word for entry in json.loads((build / "compile_commands.json").read_text())
               for word in entry["command"].split() if own in word and word.endswith(".o")}
    objects = sorted(build / output for output in outputs)
    missing = [path for path in objects if not path.exists()]
    if missing or not objects:
        sys.exit(f"{build} lacks objects of the room {room.name}; build lockstep_{room.name} first")
    optional = {name: f"$<TARGET_NAME_IF_EXISTS:{name}>" for name in ("gloo", "PkgConfig::OPEN_MPI")}
    lines = [f"lockstep_room({room.name}", "  SOURCES"] + [f"    {path}" for path in objects]
    lines += [f"  {kind} {' '.join(optional.get(name, name) for name in names)}"
              for kind, names in room.declared.items() if names]
    lines += [")", f"set_target_properties(lockstep_{room.name} PROPERTIES LINKER_LANGUAGE CXX UNITY_BUILD OFF)",
              f"target_include_directories(lockstep_{room.name} SYSTEM PUBLIC $<BUILD_INTERFACE:{build / room.folder}>)"]
    listing.write_text("\n".join(lines) + "\n")


def copy_tree(tree, build):
    """Brings the copy up to date. Files that stay as they were keep their times, so that only changes are built."""
    fresh = tree.parent / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, fresh / name)
    for addition in additions():
        addition.apply(ROOT, fresh)
    untouched = untouched_rooms(rooms.Tree(ROOT), {file for addition in additions() for file in addition.files()})
    for room in untouched:
        use_objects(room, build, fresh / room.folder / "CMakeLists.txt")
    shutil.copy2(HERE / "use_additions.cpp", fresh / "use_additions.cpp")
    with (fresh / "CMakeLists.txt").open("a") as listing:
        listing.write("add_executable(use_additions use_additions.cpp)\n"
                      "target_link_libraries(use_additions PRIVATE lockstep::cli lockstep::chart lockstep::transport lockstep::role)\n")
    wanted = {path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()}
    for path in list(tree.rglob("*")) if tree.exists() else []:
        if path.is_file() and path.relative_to(tree) not in wanted:
            path.unlink()
    for name in wanted:
        new, old = fresh / name, tree / name
        if old.exists() and old.read_bytes() == new.read_bytes():
            continue
        old.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(new, old)
    shutil.rmtree(fresh)


def run(*call, **options):
    done = subprocess.run([str(word) for word in call], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in call)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def expect(text, part):
    if part not in text:
        sys.exit(f"'{part}' is not in:\n{text[-2000:]}")


def build_and_use(ready):
    folder = ready / "extend"
    tree, build, runs = folder / "tree", folder / "build", folder / "runs"
    copy_tree(tree, ready)
    run("cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DLOCKSTEP_TESTS=OFF",
        "-DLOCKSTEP_BENCH=OFF", "-DLOCKSTEP_TOGETHER=ON")
    run("ninja", "-C", build, "-j", os.environ.get("LOCKSTEP_EXTEND_JOBS", os.cpu_count()), "lockstep_tool",
        "use_additions")
    shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir()
    print(run(build / "use_additions", cwd=runs), end="")
    program = build / "lockstep"
    expect(run(program, "hello"), "hello")
    expect(run(program, "docs", "ops"), "`cube`")
    expect(run(program, "docs", "layers"), "`leaky`")
    expect(run(program, "models"), "two-layers")
    expect(run(program, "data", "list"), "stripes")
    run(program, "train", "two-layers", "--dataset", "stripes", "--optimizer", "sign", "--lr", "0.001", "--pulse", "3", "--steps", "5",
        "--runs-dir", runs, "--name", "all", cwd=runs)
    expect((runs / "all-1/config.yaml").read_text(), "pulse: 3")
    (runs / "leaky.yaml").write_text("name: leaky-one\nimage: [1, 28, 28]\nlayers:\n  - flatten\n  - dense: 16\n  - leaky: 0.1\n"
                                     "  - dense: 10\n")
    expect(run(program, "describe", runs / "leaky.yaml"), "leaky")
    print("every addition works")


if __name__ == "__main__":
    {"quick": quick, "build": build_and_use}[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve())
