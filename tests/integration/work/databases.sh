# SPDX-License-Identifier: Apache-2.0
# SQLite with shared memory beside its file, from two programs; Perl with a child
sqlite3 a.db 'PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1), (2), (39); SELECT sum(x) FROM t;'
sqlite3 a.db 'PRAGMA integrity_check;'
/usr/bin/python3 - <<'END'
import sqlite3
db = sqlite3.connect("a.db")
db.execute("INSERT INTO t VALUES (8)")
db.commit()
print(db.execute("SELECT sum(x) FROM t").fetchone()[0])
END
perl - <<'END'
print "perl\n", `echo sub`;
my $pid = fork // die;
exit 7 unless $pid;
waitpid $pid, 0;
print $? >> 8, "\n";
END
