# SPDX-License-Identifier: Apache-2.0
# gdb on a program that it starts and on one that runs already; strace on a shell and its children
cc -g -O0 -o deep /tests/deep.c
gdb -q -nx -batch -ex 'break deep' -ex run -ex bt -ex finish -ex continue ./deep
./deep wait &
sleep 0.3
gdb -q -nx -batch -p $! -ex 'info proc' -ex 'print deep' -ex detach
kill $!
strace -f -e trace=execve sh -c '/bin/true; exit 0'
