# SPDX-License-Identifier: Apache-2.0
tmux -f /dev/null new-session -d -x 80 -y 24 -s work 'bash --norc'
tmux send-keys -t work 'echo answer=$((6 * 7))' Enter
for _ in $(seq 100); do
	tmux capture-pane -p -t work | grep -q '^answer=42' && break
	sleep 0.1
done
tmux capture-pane -p -t work
tmux split-window -t work
echo "panes: $(tmux list-panes -t work | wc -l)"
tmux kill-server
