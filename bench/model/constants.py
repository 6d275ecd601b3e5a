"""What the model of the tree is made of: every number with where it comes from.

Measured: with the benchmarks of this repository, on a virtual machine with 2 cores (EPYC), over
loopback, level 2, one sample a second, 430 series. Assumed: properties of the cluster, which no
benchmark here can tell; docs/scaling.md discusses them.
"""

US, MS, KB, MB = 1e-6, 1e-3, 1e3, 1e6

# --- Measured: CPU time of a daemon, in seconds -------------------------------------------------

# scripts/bench tree, 1024 daemons, `leaf`: sampling, the wake-up itself, one frame sent.
LEAF_TICK = 185 * US
# scripts/bench merge, `leaf_frame` and `inner_frame`, for 300 metrics: here there are 430, at most
# ticks 130 of them empty.
TAKE_LEAF_FRAME = 7.0 * US
TAKE_INNER_FRAME = 10.2 * US
# scripts/bench tree, 272 daemons: `head_median` less 16 frames of inner nodes: the row for store,
# footprint and live view, the loop's wake-ups.
HEAD_ROW = (385 - 16 * 10.2) * US
# scripts/bench tree, the same: (`head` - `head_median`) over the blocks of that time: take a block of
# one node, check it, write it into LevelDB, acknowledge it.
HEAD_BLOCK = 44 * US
# The same difference for inner nodes: a child's block is passed on, and its acknowledgement.
PASS_BLOCK = 9 * US
# scripts/bench tree, 1024 daemons: CPU time of the head until all are up, each: a connection,
# handshake, registration, schema.
HEAD_REGISTER = 0.45 * MS
# tests/unit/tree_test under perf: two HMACs, the endpoints' system calls.
HANDSHAKE = 90 * US
# scripts/bench links, `cpu_per_4k_message` and half a round trip: any small message.
SMALL_MESSAGE = 4 * US

# --- Measured: bytes ----------------------------------------------------------------------------

# scripts/bench tree: `head_bytes_median` over 16 children, which are leaves (16 daemons) or inner
# nodes (272 and more).
LEAF_FRAME_BYTES = 800
INNER_FRAME_BYTES = 1900
# scripts/bench tree, (`head_bytes` - `head_bytes_median`) over nodes: a node's blocks, a second of
# its series.
BLOCK_BYTES_PER_SECOND = 650
# An acknowledgement, a heartbeat, a request for a parent with its answer: with headers of TCP/IP.
SMALL_BYTES = 120

# --- Measured: memory, in bytes -----------------------------------------------------------------

# scripts/bench tree: private memory of a leaf; of the head of 1024 nodes less that of 16, over nodes.
LEAF_MEMORY = 1.75 * MB
HEAD_MEMORY_PER_NODE = 40 * KB
HEAD_MEMORY = 10.7 * MB

# facts of docs/archive.md: what LevelDB takes from one thread, in bytes a second.
ARCHIVE_RATE = 200 * MB

# --- Decided: the tree's own rules --------------------------------------------------------------

FANOUT = 16
PERIOD = 1.0
MERGE_WINDOW = 0.25  # how long an inner node waits for a child's part
HEAD_WINDOW = 2.0
HEARTBEAT_LOST = 2.5  # nothing was heard for so long: the peer is gone
PROFILE_LIMIT = 64 * MB  # sonde.conf, profile_limit: all nodes together
FINISH_LIMIT = 1.5  # a node's daemon has to be gone by then
FIRST_BLOCK_ROWS, LAST_BLOCK_ROWS = 16, 128

# --- Assumed ------------------------------------------------------------------------------------

LATENCY = 30 * US  # one way, through the switches of a cluster, over TCP
NODE_BANDWIDTH = 10e9 / 8  # of a compute node
HEAD_BANDWIDTH = 1e9 / 8  # of the login node where srun runs; its disk is faster
CLOCK_SKEW = 1 * MS  # standard deviation between nodes, NTP
WAKE_UP = 0.1 * MS  # mean delay of a timer on a node whose processors are free
# On nodes whose processors are all taken by the application a woken daemon now and then waits for
# a slice of the scheduler's: so often, so long at most.
BUSY_WAKE_UPS, SLICE = 0.05, 4 * MS
HEAD_CORES_FOR_LOOP = 1
SHARE_LOST = 0.01
