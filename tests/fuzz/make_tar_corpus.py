#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seed archives of fuzz_tar, which tests/unit/test_layers_unpack.c unpacks by name as well.

Usage: make_tar_corpus.py DIRECTORY. The output is the same on every run, so that it can be compared with what is in the repository.
A file name says what is in the archive; names that begin with `bad_` are archives that must be refused.
"""
import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile

TIME = 1700000000


def entry(name, kind=tarfile.REGTYPE, **fields):
    t = tarfile.TarInfo(name)
    t.type, t.mtime, t.mode = kind, TIME, 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in fields.items():
        setattr(t, key, value)
    return t


def archive(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for e in entries:
            info, data = e if isinstance(e, tuple) else (e, b"")
            info.size = len(data) if info.isreg() else info.size
            tar.addfile(info, io.BytesIO(data))
        end = tar.offset
    # Two blocks of zeroes end an archive; the padding to 10 KiB would only make the corpus large.
    return out.getvalue()[:end] + bytes(1024)


D, L, H = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
DEV = entry("dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3)

root = archive(
    entry("./", D), entry("./bin", L, linkname="usr/bin"), entry("./usr", D), entry("./usr/bin", D),
    (entry("./usr/bin/tool", mode=0o755), b"#!/bin/sh\n"), entry("./usr/bin/alias", H, linkname="./usr/bin/tool"),
    (entry("./etc/motd", uid=1000, gid=1000), b"hello\n"), entry("./tmp", D, mode=0o1777),
    entry("./run/pipe", tarfile.FIFOTYPE),
)

sparse_map = ["2", "0", "5", "1048576", "3"]  # GNU.sparse 0.1: offset, size, ...
zstd = subprocess.run(["zstd", "-q", "-c"], input=root, stdout=subprocess.PIPE, check=True).stdout

files = {
    "root.tar": root,
    "root_gz": gzip.compress(root, mtime=0),
    "root_xz": lzma.compress(root),
    "root_bz2": bz2.compress(root),
    "root_zst": zstd,
    "gnu.tar": archive(entry("usr", D), (entry("usr/" + "n" * 120), b"x"), form=tarfile.GNU_FORMAT),
    "ustar.tar": archive(entry("usr", D), (entry("usr/" + "p" * 90 + "/" + "q" * 90), b"x"), form=tarfile.USTAR_FORMAT),
    "long_names.tar": archive((entry("/".join(["d" * 200] * 10) + "/f"), b"x"), entry("l", L, linkname="t" * 3000)),
    "utf8.tar": archive((entry("usr/\u00e9t\u00e9-\u65e5\u672c"), b"x")),
    "implied_dirs.tar": archive((entry("a/b/c/d/e/f"), b"x"), (entry("a/b/g"), b"y")),
    "dots.tar": archive((entry("././a//./b"), b"x"), entry(".", D, mode=0o711)),
    "twice.tar": archive((entry("f"), b"first, longer"), (entry("f"), b"second"), entry("d", L, linkname="f"), entry("d", D),
                         (entry("d/x"), b"in a directory"), entry("e", D), (entry("e"), b"was a directory")),
    "devices.tar": archive(entry("dev", D), DEV, entry("dev/sda", tarfile.BLKTYPE, devmajor=8), (entry("f"), b"x")),
    "setuid.tar": archive((entry("su", mode=0o4755), b"x"), (entry("sg", mode=0o2755), b"x"), entry("d", D, mode=0o2775)),
    "closed_dir.tar": archive(entry("d", D, mode=0o000), (entry("d/f", mode=0o000), b"x"), entry("d/e", D, mode=0o555),
                              (entry("d/e/f"), b"x")),
    "xattrs.tar": archive((entry("f", pax_headers={
        "SCHILY.xattr.user.kept": "yes", "SCHILY.xattr.user.overlay.redirect": "/etc",
        "SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.security.capability": "x"}), b"x"),
        entry("d", D, pax_headers={"SCHILY.xattr.trusted.overlay.opaque": "y", "SCHILY.xattr.user.kept": "yes"})),
    "zeroes.tar": archive((entry("z"), bytes(20000)), (entry("m"), b"a" + bytes(12000) + b"b")),
    "sparse.tar": archive((entry("s", pax_headers={
        "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "s", "GNU.sparse.size": "2097152",
        "GNU.sparse.numblocks": "2", "GNU.sparse.map": ",".join(sparse_map[1:])}), b"firstend")),
    "loop_links.tar": archive(entry("a", L, linkname="b"), entry("b", L, linkname="a"), entry("c", L, linkname="/etc/passwd")),
    "self_link.tar": archive((entry("f"), b"x"), entry("f", H, linkname="f")),
    "link_to_link.tar": archive(entry("l", L, linkname="/etc/passwd"), entry("h", H, linkname="l")),
    "times.tar": archive(entry("d", D), (entry("d/f", mtime=TIME + 0.5), b"x"), (entry("old", mtime=-5), b"x")),
    "two_layers.tar": archive((entry("manifest.json"), b"[]"), entry("blobs", D)),
    "control_name.tar": archive((entry("a\nb\x1b[31m"), b"x")),
    "docker_dev.tar": archive((entry(".dockerenv", mode=0o755), b""), entry("dev", D), entry("dev/console", D)),

    "bad_dotdot.tar": archive((entry("../evil"), b"x")),
    "bad_dotdot_inside.tar": archive(entry("a", D), (entry("a/../../evil"), b"x")),
    "bad_dotdot_end.tar": archive(entry("a/..", D)),
    "bad_absolute.tar": archive((entry("/evil"), b"x")),
    "bad_through_link.tar": archive(entry("a", L, linkname="../outside"), (entry("a/evil"), b"x")),
    "bad_through_absolute_link.tar": archive(entry("a", L, linkname="/"), (entry("a/evil"), b"x")),
    "bad_through_own_link.tar": archive(entry("real", D), entry("a", L, linkname="real"), (entry("a/f"), b"x")),
    "bad_dir_below_link.tar": archive(entry("a", L, linkname="../outside"), entry("a/d", D)),
    "bad_hardlink_dotdot.tar": archive(entry("h", H, linkname="../outside/canary")),
    "bad_hardlink_absolute.tar": archive(entry("h", H, linkname="/etc/passwd")),
    "bad_hardlink_through_link.tar": archive(entry("a", L, linkname="../outside"), entry("h", H, linkname="a/canary")),
    "bad_hardlink_missing.tar": archive(entry("h", H, linkname="nothing")),
    "bad_hardlink_to_dir.tar": archive(entry("d", D), entry("h", H, linkname="d")),
    "bad_hardlink_to_root.tar": archive(entry("h", H, linkname="./")),
    "bad_symlink_at_root.tar": archive(entry("./", L, linkname="/etc")),
    "bad_file_at_root.tar": archive((entry("."), b"x")),
    "bad_below_file.tar": archive((entry("f"), b"x"), (entry("f/g"), b"x")),
    "bad_replaces_full_dir.tar": archive((entry("d/f"), b"x"), (entry("d"), b"x")),
    "bad_whiteout.tar": archive(entry("usr", tarfile.CHRTYPE, devmajor=0, devminor=0)),
    "bad_owner.tar": archive((entry("f", uid=70000), b"x")),
    "bad_group.tar": archive((entry("f", gid=4294967295), b"x")),
    "bad_negative_owner.tar": archive((entry("f", uid=-2), b"x"), form=tarfile.GNU_FORMAT),
    "bad_long_component.tar": archive((entry("n" * 256), b"x")),
    "bad_long_path.tar": archive((entry("/".join(["d" * 250] * 17)), b"x")),
    "bad_deep.tar": archive((entry("d/" * 300 + "f"), b"x")),
    "bad_huge_size.tar": archive((entry("f", pax_headers={"size": "9000000000000000000"}), b"x")),
    "bad_huge_sparse.tar": archive((entry("s", pax_headers={
        "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "s", "GNU.sparse.size": "4000000000000",
        "GNU.sparse.numblocks": "1", "GNU.sparse.map": "0,1"}), b"x")),
    "bad_cut.tar": archive((entry("f"), b"x" * 5000))[:2000],
    "bad_cut_gz": gzip.compress(root, mtime=0)[:-40],
    "bad_empty": b"",
    "bad_zeroes": bytes(1024),
    "bad_text": b"this is not an archive, whatever its name says\n" * 20,
    "bad_zip": b"PK\x03\x04" + bytes(200),
    "bad_cpio": b"070701" + b"0" * 104 + b"TRAILER!!!\0",
}

if __name__ == "__main__":
    target = sys.argv[1]
    os.makedirs(target, exist_ok=True)
    for name, data in sorted(files.items()):
        with open(os.path.join(target, name), "wb") as f:
            f.write(data)
    print(f"{len(files)} archives")
