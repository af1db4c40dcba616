/* SPDX-License-Identifier: Apache-2.0 */
/* gen-seccomp.c - Turn src/jail/seccomp.policy into the filters that a sandbox loads
 *
 * Theory of operation. Runs on the build machine, for the architecture given by --arch, and writes one C file: the programs and a table of
 * the policy for people. libseccomp knows the numbers of the names on every architecture. It does not make the programs: it has no way to
 * say "allow ioctl unless the low half of its second argument is TIOCSTI" in a list of what is allowed (its NE compares 64 bits, which the
 * kernel does not), and it spends an instruction on every call, where most calls are neighbours with the same verdict.
 *
 * A program is: the architecture, a binary search over ranges of numbers with one verdict, blocks that look at arguments, and the
 * returns. It is emitted from its end towards its start, so that every jump's target is known when the jump is written; a jump that is
 * too far for its 8 bits goes through an unconditional one behind it.
 *
 * Before anything is written, each program runs here, in a small interpreter, for every number and for every argument value around
 * the constants of the policy, and must answer what the policy says. The policy is evaluated for that by other code than emits it. */

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Bounds of the input, an order above what the policy needs; each is checked. */
#define RULES_MAX 1024 /* system calls */
#define TESTS_MAX 8    /* tests of one condition */
#define VALUES_MAX 16  /* values of one test */
#define RETURNS_MAX 16 /* different verdicts */
#define ARGS_MAX 3     /* arguments that conditions may look at: arguments_check() tries the pairs of so many */
#define NUMBERS 1024   /* system call numbers that are looked at one by one; Linux 6.18 ends at 470 */
#define INSNS_MAX BPF_MAXINSNS

enum kind { KIND_ALLOW, KIND_DENY, KIND_NESTED };

/* One comparison of the low half of an argument: masked and equal to a value, or, without values, any bit of the mask set. */
struct test {
	bool starts_alternative; /* "or" stands before it; else "and" */
	unsigned arg;
	uint32_t mask;
	uint32_t value[VALUES_MAX];
	size_t num_values;
};

struct condition {
	bool unless;
	struct test test[TESTS_MAX];
	size_t num_tests; /* 0: no condition */
};

struct rule {
	enum kind kind;
	const char *name, *verdict, *text, *reason; /* text is the condition's, reason may be NULL */
	int error;
	int number; /* negative: the architecture does not have it */
	struct condition condition;
	unsigned line;
};

struct policy {
	const char *path;
	unsigned line; /* being read */
	uint32_t arch; /* of libseccomp, which is AUDIT_ARCH_* */
	struct rule rule[RULES_MAX];
	size_t num_rules;
	const struct rule *by_number[NUMBERS];
};

/* What a filter does with a call: a return value, or, where rule is set, what its condition decides. */
struct verdict {
	uint32_t ret;
	const struct rule *rule;
};

enum flavour { NESTED = 1 << 0, LOG = 1 << 1, GATE = 1 << 2 };

struct program {
	const char *id; /* enum seccomp_program_id */
	unsigned flavour;
	struct sock_filter insn[INSNS_MAX]; /* used from `start` to the end */
	size_t start;
	struct { uint32_t ret; size_t at; } ret[RETURNS_MAX];
	size_t num_rets;
	size_t block[NUMBERS]; /* where the conditions of a number are looked at */
};

static const struct { const char *name; uint32_t arch; } archs[] = {
	{ "x86_64", SCMP_ARCH_X86_64 },
	{ "aarch64", SCMP_ARCH_AARCH64 },
};

#define E(x) { #x, x }
static const struct { const char *name; int value; } errors[] = {
	E(EPERM), E(ENOSYS), E(EAFNOSUPPORT), E(ENOPROTOOPT), E(EOPNOTSUPP), E(EACCES), E(EINVAL),
};

/* The same on both architectures. The table replacements are all XT_BASE_CTL + n of headers that cannot be included together. */
static const struct { const char *name; uint32_t value; } constants[] = {
	E(AF_UNIX), E(AF_INET), E(AF_INET6), E(AF_NETLINK), E(NETLINK_ROUTE),
	E(IPPROTO_ICMP), E(IPPROTO_TCP), E(IPPROTO_UDP), E(IPPROTO_ICMPV6), E(IPPROTO_RAW),
	E(SOL_IP), E(SOL_IPV6), E(SOL_TCP), E(TCP_ULP),
	{ "IPT_SO_SET_REPLACE", 64 }, { "ARPT_SO_SET_REPLACE", 96 }, { "EBT_SO_SET_ENTRIES", 128 },
	E(TIOCSTI), E(TIOCLINUX), E(TIOCSETD), E(PER_LINUX32), E(ADDR_NO_RANDOMIZE),
	E(CLONE_NEWTIME), E(CLONE_NEWNS), E(CLONE_NEWCGROUP), E(CLONE_NEWUTS), E(CLONE_NEWIPC), E(CLONE_NEWUSER),
	E(CLONE_NEWPID), E(CLONE_NEWNET),
};
#undef E

/* --- Reading the policy ----------------------------------------------------------------------------------------------------- */

_Noreturn __attribute__((format(printf, 2, 3))) static void refuse(const struct policy *p, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%u: ", p->path, p->line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static char *copy(const char *s)
{
	char *c = strdup(s);

	if (!c)
		abort(); /* a build tool without memory has nothing to clean up */
	return c;
}

/* Decimal or 0x hexadecimal with nothing behind it. */
static bool number_read(const char *s, uint32_t *ret)
{
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, s[1] == 'x' ? 16 : 10);
	if (errno || *end || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static uint32_t constant_read(const struct policy *p, const char *s)
{
	uint32_t v;

	if (number_read(s, &v))
		return v;
	for (size_t i = 0; i < COUNT(constants); i++) {
		if (!strcmp(constants[i].name, s))
			return constants[i].value;
	}
	refuse(p, "'%s' is neither a number nor a constant that gen-seccomp knows", s);
}

/* "argN=V|V", "argN&MASK|MASK", "argN&MASK=V|V" */
static void test_read(const struct policy *p, char *s, struct test *ret)
{
	char *values = strchr(s, '='), *mask = strchr(s, '&'), *word;

	if (values)
		*values++ = '\0';
	if (mask)
		*mask++ = '\0';
	if (strlen(s) != strlen("argN") || strncmp(s, "arg", 3) || s[3] < '0' || s[3] >= '0' + ARGS_MAX || (!values && !mask))
		refuse(p, "'%s' is not a test: argN=V|V, argN&MASK or argN&MASK=V|V, N from 0 to %d", s,
		       ARGS_MAX - 1);
	ret->arg = (unsigned)(s[3] - '0');
	ret->mask = mask ? 0 : UINT32_MAX;
	while (mask && (word = strsep(&mask, "|")))
		ret->mask |= constant_read(p, word);
	while (values && (word = strsep(&values, "|"))) {
		uint32_t v = constant_read(p, word);

		if (ret->num_values == VALUES_MAX)
			refuse(p, "more than %d values in one test", VALUES_MAX);
		if (v & ~ret->mask)
			refuse(p, "value '%s' has bits outside of the mask: the test would never hold", word);
		ret->value[ret->num_values++] = v;
	}
}

static void condition_read(const struct policy *p, const char *text, struct condition *ret)
{
	char *copied = copy(text), *s = copied, *word = strsep(&s, " ");
	bool starts_alternative = true;

	ret->unless = !strcmp(word, "unless");
	if (!ret->unless && strcmp(word, "if"))
		refuse(p, "a condition starts with 'if' or 'unless', not with '%s'", word);
	while ((word = strsep(&s, " "))) {
		if (ret->num_tests == TESTS_MAX)
			refuse(p, "more than %d tests in one condition", TESTS_MAX);
		ret->test[ret->num_tests].starts_alternative = starts_alternative;
		test_read(p, word, &ret->test[ret->num_tests++]);
		word = strsep(&s, " ");
		if (!word)
			break;
		starts_alternative = !strcmp(word, "or");
		if ((!starts_alternative && strcmp(word, "and")) || !s)
			refuse(p, "between two tests stands 'and' or 'or', not '%s'", word);
	}
	if (!ret->num_tests)
		refuse(p, "a condition without a test");
	free(copied);
}

static void verdict_read(const struct policy *p, const char *s, struct rule *ret)
{
	ret->verdict = copy(s);
	if (!strcmp(s, "allow")) {
		ret->kind = KIND_ALLOW;
		return;
	}
	ret->kind = KIND_NESTED;
	ret->error = EPERM;
	if (!strcmp(s, "nested"))
		return;
	ret->kind = KIND_DENY;
	for (size_t i = 0; i < COUNT(errors); i++) {
		if (!strncmp(s, "deny:", 5) && !strcmp(errors[i].name, s + 5)) {
			ret->error = errors[i].value;
			ret->verdict = errors[i].name;
			return;
		}
	}
	refuse(p, "verdict '%s' is not allow, nested or deny:ERRNO with an errno that gen-seccomp knows", s);
}

/* The number of @name on the target, negative if it does not have it. @only: the one architecture that has the name, 0 if all have. */
static int number_resolve(const struct policy *p, const char *name, const char *given, uint32_t only)
{
	int number = seccomp_syscall_resolve_name_arch(p->arch, name);
	uint32_t n = 0;

	if (given) {
		if (!number_read(given, &n) || n >= NUMBERS)
			refuse(p, "'%s' is not the number of a system call", given);
		if (number != __NR_SCMP_ERROR && (!only || only == p->arch) && number != (int)n)
			refuse(p, "'%s' is number %d on this architecture, not %u", name, number, n);
		return !only || only == p->arch ? (int)n : -1;
	}
	if (number == __NR_SCMP_ERROR)
		refuse(p, "libseccomp does not know '%s': if it is newer, write %s=NUMBER", name, name);
	for (size_t i = 0; i < COUNT(archs); i++) {
		bool has = seccomp_syscall_resolve_name_arch(archs[i].arch, name) >= 0;

		if (has != (!only || only == archs[i].arch))
			refuse(p, "'%s' %s on %s: mark the verdict with @ARCH where only one has it", name,
			       has ? "exists" : "does not exist", archs[i].name);
	}
	return number < 0 ? -1 : number;
}

static void rule_add(struct policy *p, const struct rule *shared, char *name, uint32_t only)
{
	char *given = strchr(name, '=');
	struct rule *r = &p->rule[p->num_rules];

	if (p->num_rules == RULES_MAX)
		refuse(p, "more than %d system calls", RULES_MAX);
	if (given)
		*given++ = '\0';
	for (size_t i = 0; i < p->num_rules; i++) {
		if (!strcmp(p->rule[i].name, name))
			refuse(p, "'%s' has a rule already, in line %u", name, p->rule[i].line);
	}
	*r = *shared;
	r->name = copy(name);
	r->number = number_resolve(p, name, given, only);
	p->num_rules++;
	if (r->number < 0)
		return;
	if (r->number >= NUMBERS)
		refuse(p, "'%s' has number %d, beyond the %d that are looked at", name, r->number, NUMBERS);
	if (p->by_number[r->number])
		refuse(p, "'%s' and '%s' have the same number %d", name, p->by_number[r->number]->name, r->number);
	p->by_number[r->number] = r;
}

static uint32_t arch_read(const char *name)
{
	for (size_t i = 0; i < COUNT(archs); i++) {
		if (!strcmp(archs[i].name, name))
			return archs[i].arch;
	}
	return 0;
}

/* verdict[@arch] names [condition] [reason] */
static void line_read(struct policy *p, char *s)
{
	struct rule r = { .line = p->line };
	char *column[4] = { NULL }, *arch, *name;
	size_t n = 0;
	uint32_t only = 0;

	while (s && n < COUNT(column))
		column[n++] = strsep(&s, "\t");
	if (s || n < 2)
		refuse(p, "a rule has 2 to 4 columns, separated by one tab: verdict, names, condition, reason");
	arch = strchr(column[0], '@');
	if (arch) {
		*arch++ = '\0';
		only = arch_read(arch);
		if (!only)
			refuse(p, "architecture '%s' is not x86_64 or aarch64", arch);
	}
	verdict_read(p, column[0], &r);
	if (n == 4) {
		r.text = copy(column[2]);
		condition_read(p, r.text, &r.condition);
	}
	if (n > 2)
		r.reason = copy(column[n - 1]);
	if (r.kind != KIND_ALLOW && (!r.reason || strlen(r.reason) < 3))
		refuse(p, "a line that denies says why in its last column");
	if (r.kind == KIND_ALLOW && r.text)
		refuse(p, "a line that allows has no condition: write deny:ERRNO with 'unless'");
	while ((name = strsep(&column[1], " "))) {
		if (!*name)
			refuse(p, "two blanks between names, or one at an end");
		rule_add(p, &r, name, only);
	}
}

static void policy_read(struct policy *p)
{
	FILE *f = fopen(p->path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	if (!f)
		refuse(p, "open: %s", strerror(errno));
	while ((len = getline(&line, &size, f)) >= 0) {
		p->line++;
		if (len && line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (*line && *line != '#')
			line_read(p, line);
	}
	if (ferror(f))
		refuse(p, "read: %s", strerror(errno));
	free(line);
	fclose(f);
}

/* --- What the policy says --------------------------------------------------------------------------------------------------- */

static uint32_t ret_denied(const struct program *g, int error)
{
	return g->flavour & LOG ? SECCOMP_RET_LOG : SECCOMP_RET_ERRNO | (uint32_t)error;
}

static struct verdict verdict_of(const struct program *g, const struct policy *p, size_t number)
{
	const struct rule *r = number < NUMBERS ? p->by_number[number] : NULL;

	if (g->flavour & GATE) {
		bool hidden = r && !strcmp(r->name, "clone3");

		return (struct verdict){ .ret = hidden ? ret_denied(g, ENOSYS) : SECCOMP_RET_ALLOW };
	}
	if (!r)
		return (struct verdict){ .ret = ret_denied(g, ENOSYS) };
	if (r->kind == KIND_ALLOW || (r->kind == KIND_NESTED && g->flavour & NESTED))
		return (struct verdict){ .ret = SECCOMP_RET_ALLOW };
	return (struct verdict){ .ret = ret_denied(g, r->error), .rule = r->condition.num_tests ? r : NULL };
}

static bool test_holds(const struct test *t, const struct seccomp_data *d)
{
	uint32_t v = (uint32_t)d->args[t->arg] & t->mask;

	for (size_t i = 0; i < t->num_values; i++) {
		if (v == t->value[i])
			return true;
	}
	return !t->num_values && v;
}

static uint32_t policy_answer(const struct program *g, const struct policy *p, const struct seccomp_data *d)
{
	struct verdict v;
	bool holds = false, alternative = false;

	if (d->arch != p->arch)
		return SECCOMP_RET_KILL_PROCESS;
	v = verdict_of(g, p, (uint32_t)d->nr);
	if (!v.rule)
		return v.ret;
	for (size_t i = 0; i < v.rule->condition.num_tests; i++) {
		const struct test *t = &v.rule->condition.test[i];

		if (t->starts_alternative) {
			holds |= alternative;
			alternative = true;
		}
		alternative &= test_holds(t, d);
	}
	holds |= alternative;
	return holds != v.rule->condition.unless ? v.ret : SECCOMP_RET_ALLOW;
}

/* --- Emitting, from the end ------------------------------------------------------------------------------------------------- */

static size_t emit(struct program *g, uint16_t code, uint32_t k)
{
	if (!g->start) {
		fprintf(stderr, "gen-seccomp: %s has more than %d instructions\n", g->id, INSNS_MAX);
		exit(1);
	}
	g->insn[--g->start] = (struct sock_filter){ .code = code, .k = k };
	return g->start;
}

/* The conditional jump with the comparison @op, to @yes or @no: instructions already emitted. */
static size_t emit_jump(struct program *g, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	size_t at;

	/* One to be placed for the other may push it further by one, hence 2 less than the 255 that fit. */
	if (no - g->start > UINT8_MAX - 2)
		no = emit(g, BPF_JMP | BPF_JA, (uint32_t)(no - g->start));
	if (yes - g->start > UINT8_MAX - 2)
		yes = emit(g, BPF_JMP | BPF_JA, (uint32_t)(yes - g->start));
	at = emit(g, BPF_JMP | op | BPF_K, k);
	g->insn[at].jt = (uint8_t)(yes - at - 1);
	g->insn[at].jf = (uint8_t)(no - at - 1);
	return at;
}

static size_t emit_load(struct program *g, size_t offset)
{
	return emit(g, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* The one return of @ret that all jumps share. */
static size_t ret_at(struct program *g, uint32_t ret)
{
	for (size_t i = 0; i < g->num_rets; i++) {
		if (g->ret[i].ret == ret)
			return g->ret[i].at;
	}
	assert(g->num_rets < RETURNS_MAX);
	g->ret[g->num_rets].ret = ret;
	g->ret[g->num_rets].at = emit(g, BPF_RET | BPF_K, ret);
	return g->ret[g->num_rets++].at;
}

static size_t emit_test(struct program *g, const struct test *t, size_t yes, size_t no)
{
	for (size_t i = t->num_values; i-- > 0;)
		no = emit_jump(g, BPF_JEQ, t->value[i], yes, no);
	if (!t->num_values)
		emit_jump(g, BPF_JSET, t->mask, yes, no);
	else if (t->mask != UINT32_MAX)
		emit(g, BPF_ALU | BPF_AND | BPF_K, t->mask);
	/* Both architectures are little-endian: the low half comes first. */
	return emit_load(g, offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t));
}

static void emit_block(struct program *g, const struct verdict *v)
{
	const struct condition *c = &v->rule->condition;
	size_t denied = ret_at(g, v->ret), allowed = ret_at(g, SECCOMP_RET_ALLOW);
	size_t holds = c->unless ? allowed : denied, fails = c->unless ? denied : allowed;
	size_t yes = holds, no = fails, at = fails;

	for (size_t i = c->num_tests; i-- > 0;) {
		at = emit_test(g, &c->test[i], yes, no);
		yes = at;
		if (c->test[i].starts_alternative) { /* the alternative before this one goes on here when it fails */
			yes = holds;
			no = at;
		}
	}
	g->block[v->rule->number] = at;
}

static bool verdict_same(const struct verdict *a, const struct verdict *b)
{
	return a->ret == b->ret && a->rule == b->rule;
}

/* The search between the ranges that start at first[0] and first[n - 1]. A range alone needs no instruction: it is its verdict. */
static size_t emit_search(struct program *g, const struct policy *p, const size_t *first, size_t n)
{
	size_t half = n / 2, above, below;
	struct verdict v;

	if (n > 1) {
		above = emit_search(g, p, first + half, n - half);
		below = emit_search(g, p, first, half);
		return emit_jump(g, BPF_JGE, (uint32_t)first[half], above, below);
	}
	v = verdict_of(g, p, first[0]);
	return v.rule ? g->block[v.rule->number] : ret_at(g, v.ret);
}

static void program_build(struct program *g, const struct policy *p)
{
	size_t first[NUMBERS + 1], n = 0, search, at;

	g->start = INSNS_MAX;
	g->num_rets = 0;
	/* Number NUMBERS stands for all beyond it, x32 calls among them. */
	for (size_t i = 0; i <= NUMBERS; i++) {
		struct verdict v = verdict_of(g, p, i), before = { 0 };

		if (!v.rule)
			(void)ret_at(g, v.ret);
		if (i)
			before = verdict_of(g, p, i - 1);
		if (!i || !verdict_same(&v, &before))
			first[n++] = i;
	}
	for (size_t i = 0; i < NUMBERS; i++) {
		struct verdict v = verdict_of(g, p, i);

		if (v.rule)
			emit_block(g, &v);
	}
	search = emit_search(g, p, first, n);
	if (search != g->start)
		emit(g, BPF_JMP | BPF_JA, (uint32_t)(search - g->start));
	search = emit_load(g, offsetof(struct seccomp_data, nr));
	at = emit(g, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	emit_jump(g, BPF_JEQ, p->arch, search, at);
	emit_load(g, offsetof(struct seccomp_data, arch));
}

/* --- Checking --------------------------------------------------------------------------------------------------------------- */

/* What the kernel would answer; the opcodes that emit() is called with and no others. */
static uint32_t program_answer(const struct program *g, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = g->start; pc < INSNS_MAX; pc++) {
		const struct sock_filter *i = &g->insn[pc];
		bool yes = false;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)d + i->k, sizeof(a));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = a & i->k;
			break;
		default:
			abort();
		}
		pc += yes ? i->jt : i->jf;
	}
	abort(); /* ran off the end: the kernel would refuse the program */
}

static void answer_check(const struct program *g, const struct policy *p, const struct seccomp_data *d)
{
	uint32_t is = program_answer(g, d), should = policy_answer(g, p, d);

	if (is == should)
		return;
	fprintf(stderr, "gen-seccomp: %s answers %#x and not %#x to call %#x of %#x with %#llx, %#llx, %#llx\n", g->id, is, should,
		(unsigned)d->nr, d->arch, (unsigned long long)d->args[0], (unsigned long long)d->args[1],
		(unsigned long long)d->args[2]);
	exit(1);
}

/* Every pair of interesting values in every pair of arguments. */
static void arguments_check(const struct program *g, const struct policy *p, int number)
{
	static const uint64_t extra[] = { 0, 1, 0x40008, 0xb702, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 32 };
	uint64_t value[COUNT(extra) + 3 * COUNT(constants)];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(extra); i++)
		value[n++] = extra[i];
	for (size_t i = 0; i < COUNT(constants); i++) {
		value[n++] = constants[i].value;
		value[n++] = constants[i].value | UINT64_C(0x5a5a5a5a00000000);
		value[n++] = constants[i].value + 1;
	}
	for (size_t at = 0; at < ARGS_MAX; at++) {
		for (size_t i = 0; i < n * n; i++) {
			struct seccomp_data d = { .nr = number, .arch = p->arch };

			d.args[at] = value[i / n];
			d.args[(at + 1) % ARGS_MAX] = value[i % n];
			answer_check(g, p, &d);
		}
	}
}

static void program_check(const struct program *g, const struct policy *p)
{
	static const int beyond[] = { NUMBERS, NUMBERS + 1, 0x40000000, 0x40000000 + 59, 0x400001b3, -1, INT32_MIN };

	for (int i = 0; i < NUMBERS + (int)COUNT(beyond); i++) {
		int number = i < NUMBERS ? i : beyond[i - NUMBERS];
		struct seccomp_data d = { .nr = number, .arch = AUDIT_ARCH_I386 };

		answer_check(g, p, &d);
		d.arch = p->arch;
		answer_check(g, p, &d);
		if (verdict_of(g, p, (uint32_t)number).rule)
			arguments_check(g, p, number);
	}
}

/* --- Writing ---------------------------------------------------------------------------------------------------------------- */

static void text_write(FILE *f, const char *s)
{
	if (!s) {
		fputs("NULL", f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	fputc('"', f);
}

static void program_write(FILE *f, const struct program *g)
{
	fprintf(f, "\nstatic const struct sock_filter program_%s[] = {\n", g->id);
	for (size_t i = g->start; i < INSNS_MAX; i++)
		fprintf(f, "\t{ %#04x, %u, %u, %#x },\n", g->insn[i].code, g->insn[i].jt, g->insn[i].jf, g->insn[i].k);
	fputs("};\n", f);
}

static void rules_write(FILE *f, const struct policy *p)
{
	fputs("\nconst struct seccomp_rule seccomp_rules[] = {\n", f);
	for (size_t i = 0; i < p->num_rules; i++) {
		const struct rule *r = &p->rule[i];

		if (r->number < 0)
			continue;
		fprintf(f, "\t{ .number = %d, .name = \"%s\", .verdict = \"%s\", .condition = ", r->number, r->name, r->verdict);
		text_write(f, r->text);
		fputs(", .reason = ", f);
		text_write(f, r->reason);
		fputs(" },\n", f);
	}
	fputs("};\nconst size_t seccomp_num_rules = ARRAY_SIZE(seccomp_rules);\n", f);
}

static int usage(void)
{
	fputs("usage: gen-seccomp --arch x86_64|aarch64 --policy FILE --output FILE\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static struct program programs[] = {
		{ .id = "SECCOMP_WORK" },
		{ .id = "SECCOMP_WORK_NESTED", .flavour = NESTED },
		{ .id = "SECCOMP_WORK_LOG", .flavour = LOG },
		{ .id = "SECCOMP_WORK_NESTED_LOG", .flavour = NESTED | LOG },
		{ .id = "SECCOMP_EXEC_GATE", .flavour = GATE },
	};
	static struct policy policy;
	FILE *f;

	if (argc != 7 || strcmp(argv[1], "--arch") || strcmp(argv[3], "--policy") || strcmp(argv[5], "--output"))
		return usage();
	policy.arch = arch_read(argv[2]);
	if (!policy.arch)
		return usage();
	policy.path = argv[4];
	policy_read(&policy);
	for (size_t i = 0; i < COUNT(programs); i++) {
		program_build(&programs[i], &policy);
		program_check(&programs[i], &policy);
	}

	f = fopen(argv[6], "we");
	if (!f) {
		fprintf(stderr, "gen-seccomp: open '%s': %s\n", argv[6], strerror(errno));
		return 1;
	}
	fputs("/* Made by tools/gen-seccomp from src/jail/seccomp.policy. */\n#include \"jail/seccomp_program.h\"\n", f);
	for (size_t i = 0; i < COUNT(programs); i++)
		program_write(f, &programs[i]);
	fputs("\nconst struct seccomp_program seccomp_programs[SECCOMP_NUM_PROGRAMS] = {\n", f);
	for (size_t i = 0; i < COUNT(programs); i++)
		fprintf(f, "\t[%s] = { ARRAY_SIZE(program_%s), program_%s },\n", programs[i].id, programs[i].id, programs[i].id);
	fputs("};\n", f);
	rules_write(f, &policy);
	if (fflush(f) || ferror(f) || fclose(f)) {
		fprintf(stderr, "gen-seccomp: write '%s': %s\n", argv[6], strerror(errno));
		(void)remove(argv[6]);
		return 1;
	}
	return 0;
}
