#!/usr/bin/env python3
"""Checks the rooms of the source tree (scripts/rooms.py): their includes, and the picture in docs/pictures/rooms.svg.

The rules are tried on a small made-up tree first: each wrong include and each wrong list must be refused, by its line.
"""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import rooms  # noqa: E402
import rooms_picture  # noqa: E402

TREE = {
    "CMakeLists.txt": "add_subdirectory(src/base)\nadd_subdirectory(src/net)\nadd_subdirectory(src/job)\nadd_subdirectory(tools/app)\n",
    "include/lockstep/error.h": "#pragma once\n#include <string>\n",
    "src/base/CMakeLists.txt": "lockstep_room(base SOURCES file.cpp PRIVATE fmt::fmt)\n",
    "src/base/file.h": '#include "lockstep/error.h"\n',
    "src/base/file.cpp": '#include "base/file.h"\n#include <fmt/format.h>\n#include <sys/stat.h>\n',
    "src/net/CMakeLists.txt": "lockstep_room(net\n  SOURCES net.cpp\n  PUBLIC lockstep::base  # for its errors\n  PRIVATE ZLIB::ZLIB Threads::Threads)\n",
    "src/net/net.h": '#include "base/file.h"\n',
    "src/net/net.cpp": '#include "net/net.h"\n#include <zlib.h>\n',
    "src/job/CMakeLists.txt": "lockstep_room(job SOURCES job.cpp PRIVATE lockstep::net)\n",
    "src/job/job.h": "#pragma once\n",
    "src/job/job.cpp": '#include "job/job.h"\n#include "net/net.h"\n',
    "tools/app/CMakeLists.txt": "configure_file(version.h.in version.h)\nlockstep_room(app SOURCES main.cpp PRIVATE lockstep::job)\n",
    "tools/app/version.h.in": "\n",
    "tools/app/app.h": '#include "job/job.h"\n',
    "tools/app/main.cpp": '#include "app.h"\n#include "version.h"\n',
}


def problems(**changes):
    """Writes the made-up tree with some files replaced or extended, and returns what `check` says of it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**TREE, **changes.get("files", {})}.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, line in changes.get("more", {}).items():
            path = pathlib.Path(folder) / name
            path.write_text(path.read_text() + line)
        return rooms.Tree(folder).check()


class Rules(unittest.TestCase):
    def refused(self, expected, **changes):
        found = problems(**changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_a_right_tree_passes(self):
        self.assertEqual(problems(), [])

    def test_a_source_includes_an_undeclared_room(self):
        self.refused("src/job/job.cpp: includes base/file.h of lockstep::base", more={"src/job/job.cpp": '#include "base/file.h"\n'})

    def test_a_private_room_is_not_for_headers(self):
        self.refused("src/job/job.h: includes net/net.h of lockstep::net, which src/job/CMakeLists.txt does not name under PUBLIC of job",
                     more={"src/job/job.h": '#include "net/net.h"\n'})

    def test_a_public_header_counts_as_its_room(self):
        self.refused("src/job/job.cpp: includes lockstep/error.h of lockstep::base", more={"src/job/job.cpp": '#include "lockstep/error.h"\n'})

    def test_a_public_header_without_a_room(self):
        self.refused("include/lockstep/new.h: no room", files={"include/lockstep/new.h": "\n"})

    def test_a_library_is_declared(self):
        self.refused("includes fmt/format.h of fmt::fmt", more={"src/job/job.cpp": "#include <fmt/format.h>\n"})

    def test_a_library_of_an_exported_header_is_public(self):
        self.refused("src/net/net.h: includes zlib.h of ZLIB::ZLIB, which src/net/CMakeLists.txt does not name under PUBLIC of net",
                     more={"src/net/net.h": "#include <zlib.h>\n"})

    def test_an_inner_header_may_use_private_libraries(self):
        self.assertEqual(problems(files={"src/net/inner.h": "#include <zlib.h>\n"}, more={"src/net/net.cpp": '#include "net/inner.h"\n'}), [])

    def test_an_unused_room_is_not_declared(self):
        self.refused("job names lockstep::base, but includes nothing of it",
                     files={"src/job/CMakeLists.txt": "lockstep_room(job SOURCES job.cpp PRIVATE lockstep::net lockstep::base)\n"})

    def test_public_is_for_headers(self):
        self.refused("job names lockstep::net under PUBLIC, but only sources use it",
                     files={"src/job/CMakeLists.txt": "lockstep_room(job SOURCES job.cpp PUBLIC lockstep::net)\n"})

    def test_a_header_that_is_not_there(self):
        self.refused('#include "net/gone.h" is no header of the tree', more={"src/job/job.cpp": '#include "net/gone.h"\n'})

    def test_a_circle_and_the_order(self):
        found = problems(files={"src/base/CMakeLists.txt": "lockstep_room(base SOURCES file.cpp PRIVATE lockstep::net fmt::fmt)\n"},
                         more={"src/base/file.cpp": '#include "net/net.h"\n'})
        self.assertEqual(found, ["rooms use each other in a circle: base -> net -> base",
                                 "CMakeLists.txt: base uses net, which comes later in the list"])


class Picture(unittest.TestCase):
    def test_edges_that_others_imply_are_left_out(self):
        uses = {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"a", "c"}}
        self.assertEqual(rooms_picture.reduce(uses), {"a": set(), "b": {"a"}, "c": {"b"}, "d": {"c"}})

    def test_a_new_edge_changes_the_picture(self):
        tree = rooms.Tree(ROOT)
        before = rooms_picture.draw(tree.rooms)
        for room in tree.rooms.values():
            room.declared["PRIVATE"] = [d for d in room.declared["PRIVATE"] if d != "lockstep::dash"]
        self.assertNotEqual(rooms_picture.draw(tree.rooms), before)


class SourceTree(unittest.TestCase):
    def test_rooms_include_what_they_declare(self):
        self.assertEqual(rooms.Tree(ROOT).check(), [])

    def test_the_picture_is_up_to_date(self):
        drawn = rooms_picture.draw(rooms.Tree(ROOT).rooms)
        self.assertTrue((ROOT / "docs/pictures/rooms.svg").read_text() == drawn,
                        "stale: run scripts/rooms.py draw > docs/pictures/rooms.svg")

    def test_the_table_has_every_room(self):
        table = (ROOT / "docs/architecture.md").read_text()
        missing = [room.folder for room in rooms.Tree(ROOT).rooms.values() if f"| `{room.folder}/` |" not in table]
        self.assertEqual(missing, [], "docs/architecture.md has no line for these rooms")


if __name__ == "__main__":
    unittest.main()
