#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# static-library.sh ARCHIVE OUTPUT CC... - One archive of one object whose hidden symbols are local: what is in carrel.h stays visible
set -eu
archive=$1
output=$2
shift 2
object=${output%.a}-whole.o
rm -f "$output"
"$@" -r -nostdlib -o "$object" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive
"$("$@" -print-prog-name=objcopy)" --localize-hidden "$object"
"$("$@" -print-prog-name=ar)" rcs "$output" "$object"
rm -f "$object"
