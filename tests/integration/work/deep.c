/* SPDX-License-Identifier: Apache-2.0 */
/* deep.c - What a debugger is shown; with an argument it waits to be attached to */
#include <stdio.h>
#include <unistd.h>

int deep(int x)
{
	return x + 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		sleep(60);
	printf("%d\n", deep(41));
	return 0;
}
