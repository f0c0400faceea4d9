/**
 * Simulated time beside gossipy, a simulator of gossip learning in Python, in turns in one run: CPU time of its two cases there,
 * and of gossip learning and ADMB with as many nodes, rows and faults here. `PYTHON` is an interpreter that imports gossipy
 * (see `scripts/reference/gossipy_run.py`):
 *
 *     PYTHONPATH=CLONE npm run -s bench -- gossipy PYTHON
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runAdmb } from './processes.js'
import { median, type Row } from './row.js'

const SCRIPT = fileURLToPath(new URL('../../../scripts/reference/gossipy_run.py', import.meta.url))
const RUNS = 3
const CASES = [
  { nodes: 100, rounds: 100 },
  { nodes: 1000, rounds: 10 }
] as const

/** @param python an interpreter that imports gossipy */
export async function* bench(python: string): AsyncGenerator<Row> {
  for (const { nodes, rounds } of CASES) {
    const seconds = { gossipy: [] as number[], gossip: [] as number[], admb: [] as number[] }
    for (let run = 0; run < RUNS; run++) {
      seconds.gossipy.push(await gossipySeconds(python, nodes, rounds))
      for (const algorithm of ['gossip', 'admb'] as const)
        seconds[algorithm].push(await ownSeconds(algorithm, nodes, rounds))
    }
    for (const [name, each] of Object.entries(seconds)) {
      yield {
        name: `${nodes.toLocaleString('en-US')} nodes × ${rounds} rounds: ${name === 'gossipy' ? name : `${name} here`}`,
        value: median(each),
        unit: 's',
        target: name === 'gossipy' ? undefined : { max: median(seconds.gossipy) },
        details: { runs: each, ratio: median(seconds.gossipy) / median(each) }
      }
    }
  }
}

/** CPU time of the simulation in its process, without the imports. */
async function gossipySeconds(python: string, nodes: number, rounds: number): Promise<number> {
  const env = { ...process.env, OMP_NUM_THREADS: '1' }
  const { stdout } = await promisify(execFile)(python, [SCRIPT, `${nodes}`, `${rounds}`], { env, maxBuffer: 2 ** 26 })
  return JSON.parse(stdout.trim().split('\n').at(-1) as string).seconds
}

/** CPU time of the whole process. */
async function ownSeconds(algorithm: string, nodes: number, rounds: number): Promise<number> {
  const keys = { algorithm, nodes, inputs: nodes * rounds, loss: 0.1, batch: 50, dimension: 20, checks: false }
  const faults = { 'faults.crashShare': 0.8, 'faults.downtime': 5 }
  const set = Object.entries({ ...keys, ...faults }).map(([key, value]) => `${key}=${value}`)
  return (await runAdmb(['sim', 'run', '--set', ...set])).cpu
}
