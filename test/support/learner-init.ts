/** What the tests of a learner loop start it with. */
import type { LearnerLoop } from '../../src/peer/learner-loop.js'
import type { FromLearner, LearnerInit } from '../../src/peer/thread-messages.js'

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

/** Asks the loop for the blocks of a checkpoint. @param messages those that it has posted, from which the answers are taken */
export function blocksOf(
  loop: LearnerLoop,
  messages: FromLearner[],
  { checkpoint, count }: Extract<FromLearner, { kind: 'checkpoint' }>
): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => {
    loop.receive({ kind: 'get-block', id: 0, checkpoint, index })
    const at = messages.findLastIndex(({ kind }) => kind === 'block')
    const [answer] = messages.splice(at, 1) as [Extract<FromLearner, { kind: 'block' }>]
    return answer.bytes
  })
}
