/** What the tests of a learner loop start it with. */
import type { LearnerInit } from '../../src/peer/thread-messages.js'

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
