/** What the parts of a learner share: those that read its stream, repeat inputs, and answer requests. */
import type { AdmbNode, Driver } from '../admb/index.js'
import type { InputLog } from './input-log.js'
import type { LearnedKeys } from './learned-keys.js'
import type { PrivacyBudget } from './privacy-budget.js'
import type { StreamProgress } from './stream-progress.js'
import type { TestThenTrain } from './test-then-train.js'
import type { FromLearner, LearnerInit } from './thread-messages.js'

/** Milliseconds of learning or predicting between two turns of the event loop. */
export const SLICE_MS = 4

export interface LearnerContext {
  readonly init: LearnerInit
  readonly node: AdmbNode
  readonly driver: Driver
  readonly training: TestThenTrain
  readonly progress: StreamProgress
  /** The inputs for the journal; undefined without one. */
  readonly inputs: InputLog | undefined
  readonly keys: LearnedKeys
  readonly budget: PrivacyBudget | undefined
  readonly post: (message: FromLearner, transfer?: readonly ArrayBuffer[]) => void
  /** A monotonic clock in milliseconds. */
  readonly now: () => number
  readonly isStopping: () => boolean
  /** Handles the effects of what has been learned. */
  readonly flush: () => void
  /** Resolves when the node takes inputs: at once, except with DMB. */
  readonly room: () => Promise<void>
  readonly notice: (line: string) => void
  readonly warn: (reason: string) => void
}
