/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - A shared library */
int answer(void);

int answer(void)
{
	return 42;
}
