# SPDX-License-Identifier: Apache-2.0
# A wheel into a virtual environment, then into the system, and out again
PATH=/usr/bin:/bin
wheel=/packages/greeter-1.0-py3-none-any.whl
system="--break-system-packages --root-user-action=ignore -q"
python3 -m venv venv
venv/bin/pip install --no-index -q $wheel
venv/bin/python -c 'import greeter; print("venv:", greeter.greet(), greeter.__file__)'
cd /
! python3 -c 'import greeter' 2>/dev/null
python3 -m pip install --no-index $system $wheel
python3 -c 'import greeter; print("system:", greeter.greet(), greeter.__file__)'
python3 -m pip uninstall -y $system greeter
! python3 -c 'import greeter' 2>/dev/null
