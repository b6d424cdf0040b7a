#!/usr/bin/env python3
"""Reads the rooms of the source tree from its CMake lists, checks their includes and draws them.

  scripts/rooms.py check [--root TREE]           refuse includes that a room's CMake target does not declare
  scripts/rooms.py draw [--root TREE]            print the picture of the rooms as SVG
  scripts/rooms.py uses [--root TREE]            print the rooms and libraries that each room should declare

Rules of `check`:
- A source may include headers of its own room and of rooms under PUBLIC or PRIVATE of its lockstep_room(...).
- A header may include headers of its own room and of rooms under PUBLIC. The command line (tools/) is a room that no other
  room can include, so all its files count as sources.
- A header of include/lockstep counts as a header of the room that defines its functions (PUBLIC_HEADERS below), or of the
  lowest room that its types need if it defines none.
- A header of another project needs its library in the target; under PUBLIC if the including header is one that other
  rooms include, directly or through headers of its own room.
- Declared rooms and libraries are used, and stand under PUBLIC only if a header uses them.
- The graph of the rooms has no cycle, and a room stands below the rooms it uses in the list of the root CMakeLists.txt.
"""

import argparse
import pathlib
import re
import sys

PUBLIC_HEADERS = {
    "error.h": "base",
    "run_types.h": "base",
    "train_events.h": "base",
    "shape.h": "tensor",
    "graph.h": "graph",
    "ops.h": "ops",
    "nn.h": "nn",
    "train.h": "role",
    "program.h": "cli",
}

# Libraries of other projects, and how the names of their headers begin.
LIBRARIES = {
    "fmt::fmt": ["fmt/"],
    "nlohmann_json::nlohmann_json": ["nlohmann/"],
    "yaml-cpp": ["yaml-cpp/"],
    "hwy::hwy": ["hwy/"],
    "DNNL::dnnl": ["dnnl.h", "dnnl.hpp", "oneapi/"],
    "OpenMP::OpenMP_CXX": ["omp.h"],
    "ZLIB::ZLIB": ["zlib.h"],
    "PNG::PNG": ["png.h"],
    "JPEG::JPEG": ["jpeglib.h", "jerror.h"],
    "OpenSSL::Crypto": ["openssl/"],
    "PkgConfig::GRPC": ["grpc/", "grpcpp/"],
    "PkgConfig::RE2": ["re2/"],
    "protobuf::libprotobuf-lite": ["google/protobuf/"],
    "SQLite::SQLite3": ["sqlite3.h"],
    "CLI11::CLI11": ["CLI/"],
    "PkgConfig::OPEN_MPI": ["mpi.h"],
    "gloo": ["gloo/"],
    "${LOCKSTEP_HTTPLIB}": ["httplib.h"],
}
# Libraries without their own headers that a room names: threads, and parts of a library that another part needs.
LINKED_ONLY = {"Threads::Threads", "${CMAKE_DL_LIBS}", "OpenSSL::SSL", "lockstep_flags"}
ALIASES = {"${gloo_library}": "gloo"}  # empty where Gloo is not installed
KEYWORDS = {"SOURCES", "APART", "PUBLIC", "PRIVATE", "COLD"}
SYSTEM = ("sys/", "linux/", "netinet/", "arpa/")  # headers of the system, which need no library
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.M)


class Room:
    """One lockstep_room(...): its folder, sources, and what it declares to use."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.sources = []
        self.declared = {"PUBLIC": [], "PRIVATE": []}
        self.generated = set()  # headers that are made from .proto files

    def rooms(self, *kinds):
        declared = (d for kind in kinds or ("PUBLIC", "PRIVATE") for d in self.declared[kind])
        return {d.removeprefix("lockstep::") for d in declared if d.startswith("lockstep::")}


def calls(text, name):
    """Returns the arguments of every call of a CMake command, without comments."""
    text = re.sub(r"#[^\n]*", "", text)
    return [re.sub(r"\$<BUILD_INTERFACE:([^<>]*)>", r"\1", m.group(1)).split()
            for m in re.finditer(r"\b" + name + r"\s*\(([^()]*)\)", text)]


def folders(root, base=""):
    """Lists the folders with rooms in the order of add_subdirectory."""
    listing = root / base / "CMakeLists.txt"
    if not listing.exists():
        return
    if base:
        yield base
    for arguments in calls(listing.read_text(), "add_subdirectory"):
        child = f"{base}/{arguments[0]}".lstrip("/")
        if child.split("/")[0] in ("src", "tools"):
            yield from folders(root, child)


def read_rooms(root):
    """Reads all rooms, in the order of the CMake lists. A folder that is not a room belongs to the one above it."""
    rooms = {}
    texts = {folder: (root / folder / "CMakeLists.txt").read_text() for folder in folders(root)}
    for folder, text in texts.items():
        for arguments in calls(text, "lockstep_room"):
            room = rooms[arguments[0]] = Room(arguments[0], folder)
            keyword = ""
            for argument in arguments[1:]:
                if argument in KEYWORDS:
                    keyword = argument
                elif keyword in ("SOURCES", "APART"):
                    room.sources.append((root / folder / argument).resolve())
                else:
                    room.declared[keyword].append(ALIASES.get(argument, argument))
            for call in calls(text, "protobuf_generate_cpp"):
                room.generated |= {pathlib.Path(p).stem + ".pb.h" for p in call[2:]}
    for text in texts.values():
        for arguments in calls(text, "target_link_libraries"):
            room = rooms.get(arguments[0].removeprefix("lockstep_"))
            if room and len(arguments) > 2 and arguments[1] in room.declared:
                room.declared[arguments[1]] += arguments[2:]
    return rooms


def library_of(header):
    """Returns the library of another project that has this header."""
    for library, starts in LIBRARIES.items():
        if any(header.startswith(start) if start.endswith("/") else header == start for start in starts):
            return library
    return None


class Tree:
    """The rooms and their files."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.rooms = read_rooms(self.root)
        self.problems = []
        self.files = {}  # path from the root -> room
        by_folder = {room.folder: room.name for room in self.rooms.values()}
        listed = {source: room.name for room in self.rooms.values() for source in room.sources}
        stems = {source.with_suffix(""): name for source, name in listed.items()}
        for top in ("src", "tools"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in (".h", ".cpp"):
                    named = listed.get(path) or stems.get(path.with_suffix(""))
                    self.files[path] = named or self._room_above(path, by_folder)
        for path in sorted((self.root / "include" / "lockstep").glob("*.h")):
            self.files[path] = PUBLIC_HEADERS.get(path.name)
            if not self.files[path]:
                self.problems.append(f"{self._name(path)}: no room; name the room that defines its functions in PUBLIC_HEADERS "
                                     "of scripts/rooms.py")
        self.includes = {path: self._read_includes(path) for path, room in self.files.items() if room}
        self.exported = self._exported_headers()

    def _name(self, path):
        return str(path.relative_to(self.root))

    def _room_above(self, path, by_folder):
        folder = path.parent
        while folder != self.root:
            if self._name(folder) in by_folder:
                return by_folder[self._name(folder)]
            folder = folder.parent
        return None

    def _read_includes(self, path):
        """Returns pairs of a header's name and what it is: a path in the tree, a room that generates it, or None."""
        result = []
        for quote, name in INCLUDE.findall(path.read_text()):
            if quote == "<" and ("/" not in name and "." not in name or name.startswith(SYSTEM)):
                continue
            places = (self.root / "src" / name, self.root / "include" / name, (path.parent / name).resolve())
            found = next((place for place in places if place in self.files), None)
            if not found:
                found = next((room.name for room in self.rooms.values() if name in room.generated), None)
            if not found and (path.parent / (name + ".in")).exists():
                continue
            result.append((name, quote, found))
        return result

    def _exported_headers(self):
        """Headers that other rooms include, and the headers of the same room that those include."""
        todo = {found for path, includes in self.includes.items() for _, _, found in includes
                if isinstance(found, pathlib.Path) and self.files[found] != self.files[path]}
        todo |= {path for path in self.includes if self._name(path).startswith("include/")}
        result = set()
        while todo:
            header = todo.pop()
            result.add(header)
            todo |= {f for _, _, f in self.includes.get(header, []) if isinstance(f, pathlib.Path)} - result
        return result

    def uses(self):
        """Returns room -> {"PUBLIC": set, "PRIVATE": set}, with one file as the reason of each use; notes unknown headers."""
        result = {name: {"PUBLIC": {}, "PRIVATE": {}} for name in self.rooms}
        for path, includes in self.includes.items():
            room = self.files[path]
            inside = path.suffix != ".h" or self.rooms[room].folder.startswith("tools")
            for name, quote, found in includes:
                used = self.files[found] if isinstance(found, pathlib.Path) else found
                if used == room and not (isinstance(found, str)):
                    continue
                if used and used != room:
                    result[room]["PRIVATE" if inside else "PUBLIC"].setdefault(f"lockstep::{used}", (path, name))
                if isinstance(found, str):
                    used = "protobuf::libprotobuf-lite"
                elif not used:
                    used = library_of(name)
                    if not used and quote == '"':
                        self.problems.append(f'{self._name(path)}: #include "{name}" is no header of the tree')
                if used and "::" in used or used in LIBRARIES:
                    inner = path.suffix != ".h" or path not in self.exported
                    result[room]["PRIVATE" if inner else "PUBLIC"].setdefault(used, (path, name))
            if "#pragma omp" in path.read_text():
                result[room]["PRIVATE"].setdefault("OpenMP::OpenMP_CXX", (path, "#pragma omp"))
        for needed in result.values():
            for used in needed["PUBLIC"]:
                needed["PRIVATE"].pop(used, None)
        return result

    def check(self):
        """Returns all problems, one line each."""
        for name, needed in self.uses().items():
            room = self.rooms[name]
            listing = f"{room.folder}/CMakeLists.txt"
            for kind in ("PUBLIC", "PRIVATE"):
                for used, (path, header) in sorted(needed[kind].items()):
                    allowed = room.declared["PUBLIC"] + (room.declared["PRIVATE"] if kind == "PRIVATE" else [])
                    if used not in allowed:
                        below = "PUBLIC" if kind == "PUBLIC" else "PUBLIC or PRIVATE"
                        self.problems.append(f"{self._name(path)}: includes {header} of {used}, which {listing} does not name "
                                             f"under {below} of {name}")
                for declared in sorted(set(room.declared[kind])):
                    if declared.startswith("lockstep::") and declared[10:] not in self.rooms:
                        self.problems.append(f"{listing}: {name} names {declared}, which is no room")
                    elif declared in LINKED_ONLY or declared in needed[kind]:
                        continue
                    elif kind == "PUBLIC" and declared in needed["PRIVATE"]:
                        self.problems.append(f"{listing}: {name} names {declared} under PUBLIC, but only sources use it: "
                                             "PRIVATE")
                    elif declared not in needed["PUBLIC"]:
                        self.problems.append(f"{listing}: {name} names {declared}, but includes nothing of it")
            for declared in set(room.declared["PUBLIC"]) & set(room.declared["PRIVATE"]):
                self.problems.append(f"{listing}: {name} names {declared} under both PUBLIC and PRIVATE")
        self._check_order()
        return self.problems

    def _check_order(self):
        state = {}

        def visit(name, way):
            if state.get(name) == "done":
                return
            if name in way:
                self.problems.append("rooms use each other in a circle: " + " -> ".join(way[way.index(name):] + [name]))
                return
            for used in sorted(self.rooms[name].rooms() & self.rooms.keys()):
                visit(used, way + [name])
            state[name] = "done"

        for name in self.rooms:
            visit(name, [])
        order = [room.folder.split("/")[:2] for room in self.rooms.values()]
        place = {name: order.index(room.folder.split("/")[:2]) for name, room in self.rooms.items()}
        for name, room in self.rooms.items():
            for used in sorted(room.rooms() & self.rooms.keys()):
                if place[used] > place[name]:
                    self.problems.append(f"CMakeLists.txt: {name} uses {used}, which comes later in the list")


def print_uses(tree):
    for name, needed in tree.uses().items():
        kept = {k: sorted(set(v) | {d for d in tree.rooms[name].declared[k] if d in LINKED_ONLY}) for k, v in needed.items()}
        print(name, " PUBLIC", *kept["PUBLIC"], " PRIVATE", *kept["PRIVATE"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "draw", "uses"])
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parent.parent))
    options = parser.parse_args()
    tree = Tree(options.root)
    if options.command == "uses":
        print_uses(tree)
    elif options.command == "draw":
        import rooms_picture
        print(rooms_picture.draw(tree.rooms), end="")
    else:
        problems = tree.check()
        print("\n".join(problems) if problems else f"{len(tree.rooms)} rooms include only what they declare")
        sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
