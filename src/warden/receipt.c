/* SPDX-License-Identifier: Apache-2.0 */
/* receipt.c - What isolates a process, as the kernel tells it
 *
 * Theory of operation. Runs in the caller's process, outside of the sandbox, on an exec that lives; best on one that is held, which has every
 * restriction in force and has not executed anything yet. Nothing here looks at the spec or the plan: a receipt that repeats what was asked
 * for proves nothing. One row of layer_kinds[] (receipt_layers.c) reads one layer; a row that cannot be read says so and counts as missing.
 *
 * The process is found by its pid inside, among the children of init, and held by its /proc directory (procfs.c). Its root is looked at with
 * statfs() and by names of one component that are never followed: what is behind a path belongs to the sandbox. Two facts have no file in
 * /proc. Landlock is what init answers, and its evidence says that it is init's word. What image files belong to is asked of one of them. */
#include "warden/receipt.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"

struct carrel_receipt {
	size_t count;
	struct carrel_layer *layers;
	struct line *lines;
};

/* --- Ways to say it --------------------------------------------------------------------------------------------------------- */

void line_say(struct line *l, const char *fmt, ...)
{
	size_t len = strlen(l->evidence);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(l->evidence + len, sizeof(l->evidence) - len, fmt, ap);
	va_end(ap);
}

void line_lacks(struct line *l, enum carrel_layer_state state, const char *fmt, ...)
{
	va_list ap;

	l->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
}

void line_unreadable(struct line *l, const char *what, int r)
{
	line_lacks(l, CARREL_LAYER_MISSING, "cannot read %s: %s", what, err_errno_text(-r));
}

void line_leave_out(struct line *l)
{
	l->name = NULL;
}

int line_read_file(int dir, const char *file, struct buf *out, struct line *l)
{
	int r = procfs_read(dir, file, out);

	if (r < 0)
		line_unreadable(l, file, r);
	return r;
}

/* Names of processes and devices are the only bytes here that a sandbox may have chosen; a terminal must not obey them. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			*text = '?';
}

/* --- Finding the process ---------------------------------------------------------------------------------------------------- */

/** struct search - For one process by its pid inside */
struct search {
	int init;
	pid_t inside;
	int found; /* its directory below /proc */
};

static bool is_searched(const struct search *w, int dir)
{
	char status[PROCFS_STATUS_MAX], theirs[64], inits[64];

	return fd_read_file_at(dir, "status", status, sizeof(status)) > 0 && procfs_namespaced_pid(status) == w->inside &&
	       procfs_link(dir, "ns/pid", theirs, sizeof(theirs)) == 0 &&
	       procfs_link(w->init, "ns/pid", inits, sizeof(inits)) == 0 && str_eq(theirs, inits);
}

static int search_visit(pid_t pid, int dir, void *data)
{
	struct search *w = data;

	if (!is_searched(w, dir))
		return 0;
	w->found = procfs_open(pid);
	if (w->found >= 0 && is_searched(w, w->found)) /* the number may have gone to another since */
		return 1;
	close_p(&w->found);
	w->found = -EBADF;
	return 0;
}

/* Leaders of execs are children of init, of which the kernel has a list (CONFIG_PROC_CHILDREN); without it every process is looked at. */
static int find_process(pid_t init_pid, struct search *w)
{
	auto_buf struct buf text = BUF_INIT(MIB(1)); /* the children that PID_MAX_LIMIT allows a small sandbox, many times */
	char file[48];
	const char *at;

	(void)snprintf(file, sizeof(file), "task/%d/children", (int)init_pid);
	if (procfs_read(w->init, file, &text) == 0) {
		for (at = buf_text(&text); *at; at += strcspn(at, " "), at += strspn(at, " ")) {
			auto_close int dir = -EBADF;
			char word[16];
			uint64_t pid;

			(void)snprintf(word, sizeof(word), "%.*s", (int)MIN(strcspn(at, " "), sizeof(word) - 1), at);
			if (str_to_u64(word, &pid) < 0 || pid > INT32_MAX)
				continue;
			dir = procfs_open((pid_t)pid);
			if (dir >= 0 && search_visit((pid_t)pid, dir, w) == 1)
				return 0;
		}
	}
	return procfs_each(search_visit, w) == 1 ? 0 : -ESRCH;
}

static int parse_mounts(struct subject *s)
{
	size_t lines = 1;
	char *at;

	for (const char *p = buf_text(&s->mountinfo); *p; p++)
		lines += *p == '\n';
	s->mounts = calloc(lines, sizeof(*s->mounts));
	if (!s->mounts)
		return -ENOMEM;
	at = s->mountinfo.p;
	while (s->num_mounts < lines && procfs_mount_next(&at, &s->mounts[s->num_mounts]))
		s->num_mounts++;
	return 0;
}

static void subject_done(struct subject *s)
{
	close_p(&s->proc);
	close_p(&s->init);
	close_p(&s->root);
	buf_done(&s->mountinfo);
	free(s->mounts);
}

static int ended(const struct carrel_exec *x, struct err *e)
{
	int r = err_set(e, ERR_UNAVAILABLE, "read what isolates exec %" PRIu64 ": its process has ended", x->number);

	return err_hint(e, r, "read it while the exec is held (hold=true)");
}

static int subject_open(struct subject *s, const struct carrel_exec *x, struct err *e)
{
	struct search w = { .inside = x->pid, .found = -EBADF };
	int r;

	s->init = w.init = procfs_open(s->sb->init.pid);
	if (s->init < 0 || s->sb->init.pidfd < 0 || sys_pidfd_send_signal(s->sb->init.pidfd, 0) < 0)
		return err_set(e, ERR_UNAVAILABLE, "read what isolates exec %" PRIu64 ": init is gone", x->number);
	if (find_process(s->sb->init.pid, &w) < 0)
		return ended(x, e);
	s->proc = w.found;
	s->root = sys_openat(s->init, "root", O_PATH | O_DIRECTORY, 0);
	if (s->root < 0)
		return err_sys(e, s->root, "open the root of sandbox '%s'", s->sb->id);
	r = (int)fd_read_file_at(s->proc, "status", s->status, sizeof(s->status));
	if (r >= 0)
		r = (int)fd_read_file_at(s->proc, "cgroup", s->cgroups, sizeof(s->cgroups));
	if (r >= 0)
		r = procfs_read(s->proc, "mountinfo", &s->mountinfo);
	if (r >= 0)
		r = parse_mounts(s);
	if (r == -ESRCH)
		return ended(x, e);
	return r < 0 ? err_sys(e, r, "read what isolates exec %" PRIu64, x->number) : 0;
}

/* A process that ended half way would leave a receipt of missing layers. */
static bool lives(const struct subject *s)
{
	char status[PROCFS_STATUS_MAX], state[32];

	return fd_read_file_at(s->proc, "status", status, sizeof(status)) > 0 &&
	       procfs_field(status, "State:", state, sizeof(state)) == 0 && state[0] != 'Z' && state[0] != 'X';
}

static struct carrel_receipt *receipt_new(void)
{
	struct carrel_receipt *receipt = calloc(1, sizeof(*receipt));

	if (!receipt)
		return NULL;
	receipt->lines = calloc(num_layer_kinds, sizeof(*receipt->lines));
	receipt->layers = calloc(num_layer_kinds, sizeof(*receipt->layers));
	if (receipt->lines && receipt->layers)
		return receipt;
	carrel_receipt_free(receipt);
	return NULL;
}

static void read_layers(const struct subject *s, struct carrel_receipt *receipt)
{
	for (size_t i = 0; i < num_layer_kinds; i++) {
		struct line *l = &receipt->lines[receipt->count];

		*l = (struct line){ .name = layer_kinds[i].name, .state = CARREL_LAYER_ON };
		layer_kinds[i].read(s, &layer_kinds[i], l);
		if (!l->name)
			continue;
		make_printable(l->evidence);
		make_printable(l->why);
		receipt->layers[receipt->count++] = (struct carrel_layer){ l->name, l->state, l->evidence, l->why };
	}
}

static int receipt_read(struct carrel_exec *x, struct carrel_receipt **ret, struct err *e)
{
	auto_(subject_done) struct subject s = { .proc = -EBADF, .init = -EBADF, .root = -EBADF };
	struct carrel_receipt *receipt;
	int r;

	s.mountinfo = BUF_INIT(PROCFS_MOUNTS_MAX);
	s.sb = x->sandbox;
	if (!s.sb || x->ended || x->pid <= 0)
		return ended(x, e);
	r = subject_open(&s, x, e);
	if (r < 0)
		return r;
	receipt = receipt_new();
	if (!receipt)
		return -ENOMEM;
	read_layers(&s, receipt);
	if (!lives(&s)) {
		carrel_receipt_free(receipt);
		return ended(x, e);
	}
	*ret = receipt;
	return 0;
}

int carrel_receipt_read(struct carrel_exec *exec, struct carrel_receipt **ret, struct carrel_error *ret_e)
{
	struct err e = { .code = ERR_NONE };

	return error_out(receipt_read(exec, ret, &e), &e, ret_e);
}

void carrel_receipt_free(struct carrel_receipt *receipt)
{
	if (!receipt)
		return;
	free(receipt->lines);
	free(receipt->layers);
	free(receipt);
}

size_t carrel_receipt_count(const struct carrel_receipt *receipt)
{
	return receipt->count;
}

const struct carrel_layer *carrel_receipt_layer(const struct carrel_receipt *receipt, size_t index)
{
	return index < receipt->count ? &receipt->layers[index] : NULL;
}
