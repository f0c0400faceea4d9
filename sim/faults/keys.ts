/** The keys `faults.*` of a scenario. */
import * as z from 'zod'

const share = z.number().min(0).max(1).default(0)
const duration = (virtualMs: number) => z.number().positive().default(virtualMs)

export const PARTITION_MODES = ['random', 'uniform', 'isolate', 'split'] as const

/** Shares of time are averages; lengths are in virtual milliseconds. */
export const faultKeys = z.strictObject({
  /** Share of time that each node is down. */
  crashShare: share,
  /** Mean downtime after a crash. */
  downtime: duration(50),
  /** Share of crashes that lose the disk. */
  diskLossShare: share,
  /** Share of crashes that do not close sessions: the machine is down, not only the process. */
  silentShare: share,
  /** Share of time that each node's process is paused, and the mean length of a pause. */
  pauseShare: share,
  pauseTime: duration(50),
  /** Share of time that each node has left, and the mean time until it joins again. */
  awayShare: share,
  awayTime: duration(200),
  /** Share of time that the network is partitioned in two. */
  partitionShare: share,
  /** Mean length of a partition. */
  partitionTime: duration(200),
  /** Minimum length of a partition; the rest is exponential. @default all partitions have the mean length */
  partitionMin: z.number().min(0).optional(),
  /**
   * Sides of a partition. `random`: each node at random. `uniform`: a uniformly distributed number of nodes on one side.
   * `isolate`: a single node on one side. `split`: the nodes below an edge of the tree.
   */
  partitionMode: z.enum(PARTITION_MODES).default('random'),
  /** Share of partitions that block one direction only. */
  oneWayShare: share,
  /** Share of time that each direction of a link is clogged, and the mean length of a clog. */
  clogShare: share,
  clogTime: duration(50)
})

export type Faults = z.infer<typeof faultKeys>
