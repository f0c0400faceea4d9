/** An engine that has learned, for tests that compare devices and schedules. */
import { networkModel } from '../../../src/l2l/execution.js'
import { L2LEngine, type L2LEngineOptions } from '../../../src/l2l/training/engine.js'
import type { Examples } from '../../../src/learning/index.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'

type Chosen = Pick<L2LEngineOptions, 'schedule' | 'workers' | 'serverThreads' | 'stash' | 'pipeline'>

/** Learns the rows with momentum, in minibatches of 8 and microbatches of 2, on the device `cpu`. */
export async function trainedEngine(network: NetworkSpec, rows: Examples, chosen: Chosen): Promise<L2LEngine> {
  const engine = new L2LEngine({
    model: networkModel(network),
    rule: { name: 'momentum' },
    averaging: { name: 'tail' },
    batch: 8,
    predictWith: 'current',
    microbatch: 2,
    ...chosen
  })
  await engine.startWorkers(network, 'cpu')
  engine.learn(rows)
  return engine
}
