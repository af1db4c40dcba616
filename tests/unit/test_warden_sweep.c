/* SPDX-License-Identifier: Apache-2.0 */
/* test_warden_sweep.c - What is an orphan, what is not, and that a sweep takes the one and leaves the other
 *
 * Runs on a run directory and a store of its own. The groups are those of the machine, so only our own ids are looked for there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/store.h"
#include "layers/tree.h"
#include "test.h"
#include "warden/slot.h"
#include "warden/sweep.h"

static char place[] = "/tmp/carrel-sweep-XXXXXX";
static int rundir = -EBADF, store = -EBADF;

static int setup(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(place))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/run", place);
	(void)setenv("CARREL_RUN_DIR", path, 1);
	(void)snprintf(path, sizeof(path), "%s/store", place);
	(void)setenv("CARREL_STORE", path, 1);
	rundir = rundir_open(STORE_CREATE, NULL);
	store = store_open(STORE_CREATE, NULL);
	return rundir < 0 || store < 0 || mkdirat(store, "images", 0700) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY);

	(void)state;
	(void)close(rundir);
	(void)close(store);
	return tree_remove_at(tmp, strrchr(place, '/') + 1, NULL) + close(tmp);
}

static const struct orphan *find(const struct orphans *o, enum orphan_kind kind, const char *name)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->list[i].kind == kind && strcmp(o->list[i].name, name) == 0)
			return &o->list[i];
	return NULL;
}

/* The id of a sandbox that has been and is no more; its slot is not that of @alive, which may be "". */
static void dead_id(char id[SLOT_ID_SIZE + 1], const char *alive)
{
	struct slot slot;

	do {
		assert_int_equal(slot_take(rundir, id, &slot, NULL), 0);
		slot_release(&slot);
	} while (strncmp(id, alive, 3) == 0); /* the first three characters are the slot */
}

TEST(run_directory_of_the_dead_is_an_orphan_and_of_the_living_is_not)
{
	char dead[SLOT_ID_SIZE + 1], alive[SLOT_ID_SIZE + 1];
	auto_(orphans_done) struct orphans found = ORPHANS_INIT, after = ORPHANS_INIT;
	struct slot slot;

	assert_int_equal(slot_take(rundir, alive, &slot, NULL), 0);
	dead_id(dead, alive);
	assert_int_equal(mkdirat(rundir, dead, 0700) | mkdirat(rundir, alive, 0700) | mkdirat(rundir, "notes", 0700), 0);
	assert_int_equal(sweep_find(rundir, store, &found, NULL), 0);
	assert_non_null(find(&found, ORPHAN_DIRECTORY, dead));
	assert_null(find(&found, ORPHAN_DIRECTORY, alive));
	assert_null(find(&found, ORPHAN_DIRECTORY, "notes"));

	assert_int_equal(sweep_orphan(rundir, store, find(&found, ORPHAN_DIRECTORY, dead), NULL), 0);
	assert_int_equal(sweep_sandbox(rundir, store, dead, NULL), 0); /* again */
	assert_int_equal(sweep_sandbox(rundir, store, alive, NULL), -EBUSY);
	assert_int_equal(sweep_sandbox(rundir, store, "../../etc/passwd", NULL), -EINVAL);
	assert_int_equal(sweep_find(rundir, store, &after, NULL), 0);
	assert_null(find(&after, ORPHAN_DIRECTORY, dead));
	assert_int_equal(faccessat(rundir, alive, F_OK, 0), 0);
	slot_release(&slot);
	assert_int_equal(sweep_sandbox(rundir, store, alive, NULL), 0);
}

TEST(scratch_without_its_builder_is_an_orphan)
{
	auto_(orphans_done) struct orphans found = ORPHANS_INIT, after = ORPHANS_INIT;
	auto_close int images = openat(store, "images", O_RDONLY | O_DIRECTORY);
	auto_close int builder = -EBADF;
	const struct orphan *o;

	assert_int_equal(mkdirat(images, ".tmp-dead", 0700) | mkdirat(images, ".tmp-alive", 0700) | mkdirat(images, "done", 0700), 0);
	builder = openat(images, ".tmp-alive", O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(builder, LOCK_EX), 0);
	assert_int_equal(sweep_find(rundir, store, &found, NULL), 0);
	o = find(&found, ORPHAN_SCRATCH, "images/.tmp-dead");
	assert_non_null(o);
	assert_null(find(&found, ORPHAN_SCRATCH, "images/.tmp-alive"));
	assert_int_equal(sweep_orphan(rundir, store, o, NULL), 0);
	assert_int_equal(sweep_find(rundir, store, &after, NULL), 0);
	assert_null(find(&after, ORPHAN_SCRATCH, "images/.tmp-dead"));
	assert_int_equal(faccessat(images, ".tmp-alive", F_OK, 0), 0);
	assert_int_equal(faccessat(images, "done", F_OK, 0), 0);
}

/* The groups of sandboxes of every run directory are in one place. */
TEST(groups_of_another_run_directory_are_asked_of_its_table)
{
	char path[128], other_path[64], dead[SLOT_ID_SIZE + 1], alive[SLOT_ID_SIZE + 1];
	auto_(orphans_done) struct orphans found = ORPHANS_INIT;
	auto_close int other = -EBADF;
	struct slot slot;

	if (geteuid() != 0 || access("/sys/fs/cgroup/pids/carrel", W_OK) < 0)
		skip(); /* needs root and cgroup v1, with a sandbox started before */
	(void)snprintf(other_path, sizeof(other_path), "%s/other", place);
	assert_int_equal(mkdir(other_path, 0700), 0);
	other = open(other_path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(slot_take(other, alive, &slot, NULL), 0);
	dead_id(dead, alive);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/pids/carrel/%s", alive);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup/pids/carrel/%s", dead);
	assert_int_equal(mkdir(path, 0755), 0);

	assert_int_equal(sweep_find(rundir, store, &found, NULL), 0);
	assert_non_null(find(&found, ORPHAN_CGROUP, dead));
	assert_null(find(&found, ORPHAN_CGROUP, alive));
	assert_int_equal(sweep_orphan(rundir, store, find(&found, ORPHAN_CGROUP, dead), NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	slot_release(&slot);
	assert_int_equal(sweep_sandbox(rundir, store, alive, NULL), 0);
}

TEST(without_a_run_directory_nothing_is_called_dead)
{
	auto_(orphans_done) struct orphans found = ORPHANS_INIT;
	char dead[SLOT_ID_SIZE + 1];

	dead_id(dead, "");
	assert_int_equal(sweep_sandbox(-EBADF, store, dead, NULL), -EBUSY);
	assert_int_equal(sweep_find(-EBADF, -ENOENT, &found, NULL), 0);
	for (size_t i = 0; i < found.count; i++)
		assert_int_not_equal(found.list[i].kind, ORPHAN_CGROUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_directory_of_the_dead_is_an_orphan_and_of_the_living_is_not),
		cmocka_unit_test(scratch_without_its_builder_is_an_orphan),
		cmocka_unit_test(groups_of_another_run_directory_are_asked_of_its_table),
		cmocka_unit_test(without_a_run_directory_nothing_is_called_dead),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
