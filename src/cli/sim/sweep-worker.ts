/** A thread of a sweep: takes scenarios, one at a time, and answers with results. */
import { parentPort } from 'node:worker_threads'
import { type RunResult, type Scenario, simulate } from '../../../sim/index.js'
import { readData } from './data.js'

export type SweepWorkerMessage =
  | { readonly kind: 'served'; readonly inputs: number }
  | { readonly kind: 'result'; readonly result: RunResult }

/** News of its progress that a run sends. */
const PROGRESS_MESSAGES = 50

parentPort?.on('message', async (scenario: Scenario) => {
  const stride = Math.ceil(scenario.inputs / PROGRESS_MESSAGES)
  const tell = (message: SweepWorkerMessage) => parentPort?.postMessage(message)
  const served = (inputs: number) => {
    if (inputs % stride === 0) tell({ kind: 'served', inputs })
  }
  const data = await readData(scenario)
  tell({ kind: 'result', result: simulate(scenario, { observer: { onInput: served }, data }) })
})
