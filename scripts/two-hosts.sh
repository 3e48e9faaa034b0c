# SPDX-License-Identifier: Apache-2.0
# Makes two hosts of network namespaces, for the scripts that source this file. It sets `left` and
# `right` to the names of the namespaces, `tag` to a text that no other run has, and `logs` to a
# folder for files. All is removed when the script ends. If namespaces cannot be created, the script
# prints the reason and exits with 77.
tag=t$$x$RANDOM
left=${tag}l right=${tag}r
logs=$(mktemp -d)

clean_up()
{
    # All processes in these namespaces were started by this script.
    for space in "$left" "$right"; do
        ip netns pids "$space" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    done
    wait 2>/dev/null || true
    ip netns del "$left" 2>/dev/null || true
    ip netns del "$right" 2>/dev/null || true
    rm -rf "$logs"
}

skip()
{
    echo "SKIPPED: $(basename "$0"): $*"
    exit 77
}

# join_by WIRE SUBNET: joins the hosts by a veth pair, whose ends are SUBNET.1 and SUBNET.2. Both
# ends have the name WIRE, because an interface name is local to its namespace.
join_by()
{
    local host=0 space
    ip -n "$left" link add "$1" type veth peer name "$1" netns "$right" 2>"$logs/why" ||
        skip "ip link add veth: $(cat "$logs/why")"
    for space in "$left" "$right"; do
        host=$((host + 1))
        ip -n "$space" link set lo up
        ip -n "$space" address add "$2.$host/24" dev "$1"
        ip -n "$space" link set "$1" up
    done
}

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
command -v ip >/dev/null || skip "no ip command (package iproute2)"
ip netns add "$left" 2>"$logs/why" || skip "ip netns add: $(cat "$logs/why")"
ip netns add "$right"
