#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check.sh - What the compiler does not check: headers stand alone, and no folder includes upward (src/*/README.md say who may use whom)
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# Lower folders first; a folder may include what is before it in its own row only.
declare -A may=(
	[base]="base"
	[wire]="base wire"
	[jail]="base jail"
	[layers]="base layers"
	[unpack]="base unpack"
	[init]="base wire jail/seccomp_program.h init"
	[warden]="base wire jail layers warden"
	[cli]="base cli"
)

for dir in "${!may[@]}"; do
	while IFS=: read -r file line text; do
		path=$(sed -E 's/.*"([^"]+)".*/\1/' <<<"$text")
		[[ $path == */* ]] || continue
		ok=
		for allowed in ${may[$dir]}; do
			[[ $path == "$allowed" || ${path%%/*} == "$allowed" ]] && ok=1
		done
		if [ -z "$ok" ]; then
			echo "$file:$line: src/$dir may not include \"$path\""
			status=1
		fi
	done < <(grep -nE '^#include "' -r "src/$dir" --include='*.[ch]' || true)
done

for header in include/*.h $(find src -name '*.h'); do
	if ! gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -fsyntax-only -Isrc -Iinclude -x c "$header" 2>/tmp/carrel-check.$$; then
		cat /tmp/carrel-check.$$
		echo "$header: does not stand alone"
		status=1
	fi
done
rm -f /tmp/carrel-check.$$

if git grep -nE '\b(TODO|FIXME|XXX)\b' -- '*.c' '*.h' '*.py' >/dev/null 2>&1; then
	git grep -nE '\b(TODO|FIXME|XXX)\b' -- '*.c' '*.h' '*.py'
	status=1
fi
exit $status
