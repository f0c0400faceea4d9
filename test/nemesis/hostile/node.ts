/** What a hostile peer imports in place of `src/admb`: its node does what the adversary named in `ADMB_ADVERSARY` does. */

import { type AdversaryName, adversaries } from '../../../sim/adversaries/index.js'
import { Random } from '../../../sim/engine/random.js'
import { type AdmbOptions, AdmbNode as CorrectNode } from '../../../src/admb/index.js'

export * from '../../../src/admb/index.js'

const { create } = adversaries[process.env.ADMB_ADVERSARY as AdversaryName]

/** Takes the place of the class of the same name. */
export const AdmbNode = new Proxy(CorrectNode, {
  construct: (_target, [options]: [AdmbOptions]) => {
    const setting = { random: new Random(options.nonce ?? 0, 'hostile peer'), isActive: () => true }
    return create?.(options, setting) ?? new CorrectNode(options)
  }
})
