#!/bin/bash
# alone.sh COMMAND...: runs a command with mounts, a network, names and processes of its own, which all end with it.
# The computer stays as it is.
exec unshare --mount --net --uts --pid --fork --kill-child --mount-proc bash -c 'ip link set lo up && "$@"; exit $?' alone "$@"
