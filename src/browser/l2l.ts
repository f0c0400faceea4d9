/** In place of the execution of networks, which needs Node.js: `#l2l` in `package.json`. */
import type { Learner } from '../learner/index.js'
import { PlatformError } from '../platform/browser/index.js'

/** @throws PlatformError */
export async function networkLearner(..._given: readonly unknown[]): Promise<Learner> {
  throw new PlatformError('a peer in a browser learns linear models only: start a peer of this network with Node.js')
}
