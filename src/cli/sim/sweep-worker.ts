/** A worker thread of a sweep: runs one scenario at a time and posts its result. */
import { parentPort } from 'node:worker_threads'
import { type RunResult, type Scenario, simulate } from '../../../sim/index.js'
import { readData } from './scenarios.js'

export type SweepWorkerMessage =
  | { readonly kind: 'served'; readonly inputs: number }
  | { readonly kind: 'result'; readonly result: RunResult }

/** Number of progress messages per run. */
const PROGRESS_MESSAGES = 50

parentPort?.on('message', async (scenario: Scenario) => {
  const stride = Math.ceil(scenario.inputs / PROGRESS_MESSAGES)
  const post = (message: SweepWorkerMessage) => parentPort?.postMessage(message)
  const onInput = (inputs: number) => {
    if (inputs % stride === 0) post({ kind: 'served', inputs })
  }
  const data = await readData(scenario)
  post({ kind: 'result', result: simulate(scenario, { observer: { onInput }, data }) })
})
