"""What a power cut takes back of a directory, by what breaking_disk.cc has told of it.

Every file is cut to what was synced of it, or somewhere behind. A file that was made and never synced
may be gone. A file that was renamed, neither itself nor its directory being synced since, may have its
old name again, and the one that it replaced is back. What was deleted stays deleted, and directories
keep their names.
"""

import os
import pathlib


class Told:
    """The lines of all processes since the last look."""

    def __init__(self, lines):
        self.sizes = {}  # of the inodes that were made or synced: what of them is safe
        self.unnamed = set()  # inodes that were made, and neither synced nor named since
        self.renamed = []
        for line in lines:
            kind, *words = line.split()
            if kind == "made":
                self.sizes[int(words[0])] = 0
                self.unnamed.add(int(words[0]))
            elif kind == "synced":
                inode, size = int(words[0]), int(words[1])
                self.sizes[inode] = size
                self.unnamed.discard(inode)
                self.renamed = [one for one in self.renamed if one[0] != inode]
            elif kind == "renamed":
                self.renamed.append((int(words[0]), words[1], words[2], words[3]))
            elif kind == "names":
                self._named(words[0])

    def _named(self, directory):
        self.renamed = [one for one in self.renamed if os.path.dirname(one[2]) != directory]
        for entry in os.scandir(directory) if os.path.isdir(directory) else ():
            self.unnamed.discard(entry.inode())


def _inode(path):
    try:
        return os.lstat(path).st_ino
    except OSError:
        return None


def cut(root: pathlib.Path, lines, random):
    """Leaves what is left of `root`; nobody uses it."""
    told = Told(lines)
    for inode, old, new, kept in reversed(told.renamed):
        if random.random() < 0.5 or _inode(new) != inode or not os.path.isdir(os.path.dirname(old)):
            continue
        os.rename(new, old)
        if kept != "-" and os.path.exists(kept):
            os.rename(kept, new)
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            safe = told.sizes.get(info.st_ino)
            if safe is None:
                continue
            if info.st_ino in told.unnamed and random.random() < 0.5:
                os.unlink(path)
            elif info.st_size > safe:
                os.truncate(path, random.choice((safe, random.randint(safe, info.st_size))))
