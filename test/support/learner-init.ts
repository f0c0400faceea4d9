/** What the tests of a learner loop start it with. */
import type { LearnerLoop } from '../../src/peer/learner-loop.js'
import type { CheckpointBlocks, LearnerInit } from '../../src/peer/thread-messages.js'

/** A new peer `a` with an empty journal, of which tests give the model and the stream. */
export function learnerInit(given: Pick<LearnerInit, 'spec' | 'stream'> & Partial<LearnerInit>): LearnerInit {
  return {
    plugins: [],
    execution: undefined,
    self: 'a',
    incarnation: 1,
    nonce: 0,
    period: 50,
    carry: 0,
    predictWith: 'average',
    labelDelay: undefined,
    rate: undefined,
    saved: undefined,
    progress: undefined,
    journal: { records: [], pending: [], tail: undefined },
    ...given
  }
}

/** The blocks of a checkpoint. Asks the loop for blocks that are not in it. */
export function blocksOf(loop: LearnerLoop, stored: CheckpointBlocks): readonly Uint8Array[] {
  if ('blocks' in stored) return stored.blocks
  const { checkpoint, count } = stored
  return Array.from({ length: count }, (_, index) => loop.block(checkpoint, index))
}
