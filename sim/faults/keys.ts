/** The keys of a scenario that say what fails, and how often. */
import { z } from 'zod'

const share = z.number().min(0).max(1).default(0)
const duration = (virtualMs: number) => z.number().positive().default(virtualMs)

export const PARTITION_MODES = ['random', 'uniform', 'isolate', 'split'] as const

/** Shares of time are averages; all lengths are in virtual milliseconds. */
export const faultKeys = z.strictObject({
  /** Share of the time for which each node is down. */
  crashShare: share,
  /** Mean length of such a time. */
  downtime: duration(50),
  /** Share of crashes that lose the disk. */
  diskLossShare: share,
  /** Share of crashes of which no session tells: the machine is gone, not only the process. */
  silentShare: share,
  /** Share of the time for which each node's process is stopped, and the mean length of a stop. */
  pauseShare: share,
  pauseTime: duration(50),
  /** Share of the time for which each node has left, and the mean time until it joins again. */
  awayShare: share,
  awayTime: duration(200),
  /** Share of the time for which the network is in two. */
  partitionShare: share,
  /** Mean length of such a time. */
  partitionTime: duration(200),
  /** Least length of it; above this least it is exponential. Without it all last equally long. */
  partitionMin: z.number().min(0).optional(),
  /** Who is on which side: `random`: each node a coin; `uniform`: as many as a uniform number says; `isolate`: one node against
   * the rest; `split`: what hangs below one edge of the tree. */
  partitionMode: z.enum(PARTITION_MODES).default('random'),
  /** Share of partitions that cut one direction only. */
  oneWayShare: share,
  /** Share of the time for which each direction of a link is clogged, and the mean length of a clog. */
  clogShare: share,
  clogTime: duration(50)
})

export type Faults = z.infer<typeof faultKeys>
