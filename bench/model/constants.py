"""What the model of the tree is made of: every number with where it comes from.

Measured: with the benchmarks of this repository, on a virtual machine with 2 cores (EPYC), over
loopback, level 2, one sample a second, 344 series. Derived: how a measured sum is split among its
parts, by reasoning and not by measurement. Assumed: properties of the cluster, which no
benchmark here can tell; docs/scaling.md discusses them.
"""

US, MS, KB, MB = 1e-6, 1e-3, 1e3, 1e6

# --- Measured or derived: CPU time of a daemon, in seconds --------------------------------------

# scripts/bench tree, 1024 daemons, `leaf`: all of a second's work of a node without children.
LEAF_TICK = 170 * US
# Derived. Of LEAF_TICK, what comes before the frame is sent; the rest are acknowledgements and the
# like, later in the second.
SAMPLE = 135 * US
# Derived from scripts/bench tree, `head_quiet`: 13 leaves and 3 inner nodes as children, 19 frames,
# take 650 us, 16 inner nodes, 32 frames, 753 us (mean of 256 and 1024 daemons). scripts/bench merge
# says the same of a frame alone.
TAKE_LEAF_FRAME = 6.5 * US
# scripts/bench merge: `inner_frame` costs 1.36 times what `leaf_frame` does.
TAKE_INNER_FRAME = 9 * US
# Derived. The rest of these 650 us: the row for store, footprint, alarms and live view, waking up
# for each child, and acknowledgements.
HEAD_ROW = 515 * US
# Derived. scripts/bench tree, 1024 daemons, `inner_quiet`, less LEAF_TICK and 16 frames of leaves:
# waking up for each child, its second frame, 16 acknowledgements. Over loopback these pay for the
# receiver's side, too.
INNER_EXTRA = 370 * US
# The head of 1024 daemons while their first blocks come, 32 a second, less what it needs before:
# take a block of one node, check it, write it into LevelDB, acknowledge it. 6 us of it are the
# loop's; LevelDB alone takes as much as the rest for blocks of 5 kB.
HEAD_BLOCK = 36 * US
# scripts/bench backfill, 100,000 nodes, joined: 5.0 us of a node with two blocks; 5.3 of 10,000.
HEAD_JOINED_BLOCK = 2.6 * US
# The same, at the node right below the head that joins 12,500 blocks in 0.39 s of its CPU.
JOIN_BLOCK = 31 * US
# Derived. The same difference for inner nodes: a child's block is passed on, and its
# acknowledgement.
PASS_BLOCK = 12 * US
# scripts/bench tree, 1024 daemons, `head_cpu_until_up`: a connection, handshake, registration,
# schema; taken for the handshake with any parent or gateway, too.
REGISTER = 200 * US
# scripts/bench registration: of the head, for a node of 10,000 that comes by itself, and of 100,000
# that come through gateways; with all that the system does for the connection.
HEAD_DIRECT_NODE = 73 * US
HEAD_GATEWAY_NODE = 25 * US
# scripts/bench links, `socket.cpu_per_4k_message`: any small message.
SMALL_MESSAGE = 4 * US

# --- Measured or derived: bytes -----------------------------------------------------------------

# Derived from scripts/bench tree, `head_bytes_quiet`: 16 leaves send 4.5 kB a tick, 16 inner nodes
# 24.2 kB. scripts/bench frame_bytes: what is of more than some tens of nodes grows no more.
LEAF_FRAME_BYTES = 280
INNER_FRAME_BYTES = 1230
# 16 daemons for 135 s: bytes of their blocks in the archive, a second of a node.
BLOCK_BYTES_PER_SECOND = 120
# scripts/bench backfill, 100,000 nodes: the least that two blocks of a node take, one row of each of
# its groups; and how much less they take joined.
LEAST_BLOCKS_BYTES = 1690
JOINED_SHARE = 573 / 1690
# BlockJoiner: of so many blocks one is made.
JOINED_TOGETHER = 50
# An acknowledgement, a heartbeat, a request for a parent with its answer: with headers of TCP/IP.
SMALL_BYTES = 120

# --- Measured: memory, in bytes -----------------------------------------------------------------

# scripts/bench tree: private memory of the head of 16 nodes; of 1024 less that, over nodes.
HEAD_MEMORY = 11.5 * MB
HEAD_MEMORY_PER_NODE = 6.7 * KB

# --- Decided: the tree's own rules --------------------------------------------------------------

FANOUT = 16
DIRECT_NODES = 1024  # sonde.conf, direct_nodes: steps of more have gateways
PERIOD = 1.0
MERGE_WINDOW = 0.25  # Relay: how long an inner node waits for a child's part
HEAD_WINDOW = 2.0  # RowPath::MergeWindow
PULSE, SILENCE = 1.2, 2.0  # Node: a parent says something so often; silent so long, it is left
PROFILE_LIMIT = 64 * 2**20  # sonde.conf, profile_limit: all nodes together
END_RATE = 32 * 2**20  # BlockIntake::kEndRate: what the archive takes at the end, bytes a second
BLOCKS_LIMIT = 1.1  # Node::kBlocksLimit: time for blocks at the end
LAST_BLOCK_ROWS = 128
JOIN_FROM = 4096  # BlockIntake::kJoinFrom: nodes, from which on blocks are joined

# --- Assumed ------------------------------------------------------------------------------------

# What the archive's thread and its disk take, bytes a second. No benchmark tells it: it is far
# more than END_RATE lets come.
ARCHIVE_RATE = 200 * MB
LATENCY = 30 * US  # one way, through the switches of a cluster, over TCP
NODE_BANDWIDTH = 10e9 / 8  # of a compute node
HEAD_BANDWIDTH = 1e9 / 8  # of the host where srun runs
CLOCK_SKEW = 1 * MS  # standard deviation between nodes, NTP
WAKE_UP = 0.1 * MS  # mean delay of a timer on a node whose processors are free
# On nodes whose processors are all taken by the application a woken daemon now and then waits for
# a slice of the scheduler's: so often, so long at most.
BUSY_WAKE_UPS, SLICE = 0.05, 4 * MS
SHARE_LOST = 0.01
