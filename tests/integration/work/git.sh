# SPDX-License-Identifier: Apache-2.0
# Two branches, a merge, clones with hard links and by a transport, a worktree, a stash
git config --global user.email a@example.com
git config --global user.name A
git config --global init.defaultBranch main
git init -q one
cd one
for i in $(seq 100); do echo "$i" > "f$i"; done
git add .
git commit -qm first
git checkout -qb side
echo x >> f1
git commit -qam second
git checkout -q main
git merge -q --no-ff -m merged side
git gc -q
git fsck --strict
git clone -q . ../two
git clone -q file:///root/one ../three
cd ../three
git log --oneline | wc -l
git worktree add -q ../four
git -C ../four status --short | wc -l
echo y >> f2
git stash -q
git stash pop -q
git diff --stat
