/** Simulated networks that differ in latency, period, degree, speeds and rate of inputs, in which settings of ADMB are compared. */
import { parseScenario, type RunResult, simulate } from '../../sim/index.js'

const SEEDS = [1, 2, 3]
const COMMON = { topology: 'tree', nodes: 16, degree: 3, dimension: 20, inputs: 20_000, checks: false }
const WIDE = { nodes: 32 }
const UNEVEN = { phases: 'spread' }

export const CASES: Readonly<Record<string, object>> = {
  'latency 1': { carry: 64 },
  'latency 2': { carry: 64, latency: 2 },
  'latency 4': { carry: 64, latency: 4 },
  'latency 8': { carry: 64, latency: 8 },
  'T 2': { period: 2 },
  'T 4': { period: 4 },
  'T 8': { period: 8 },
  'degree 2, 32 nodes': { ...WIDE, degree: 2 },
  'degree 3, 32 nodes': { ...WIDE, degree: 3 },
  'degree 5, 32 nodes': { ...WIDE, degree: 5 },
  'degree 9, 32 nodes': { ...WIDE, degree: 9 },
  'speeds differ by a factor of 1.6': { ...UNEVEN, speedSpread: 0.5 },
  'speeds differ by a factor of 2.7': { ...UNEVEN, speedSpread: 1 },
  'speeds differ by a factor of 7.4': { ...UNEVEN, speedSpread: 2 },
  'ten times the inputs': { interval: 0.1, inputs: 80_000 },
  'an eighth of the inputs': { interval: 8, inputs: 8000 }
}

/** Mean regret and traffic in MB over three seeds. All runs of a case get the same inputs. */
export function mean(settings: object, others: object): { readonly regret: number; readonly megabytes: number } {
  const runs = SEEDS.map(seed => run({ ...COMMON, ...settings, ...others, seed }))
  const meanOf = (value: (result: RunResult) => number) =>
    runs.reduce((sum, each) => sum + value(each), 0) / runs.length
  return { regret: meanOf(({ regret }) => regret), megabytes: meanOf(({ bytes }) => bytes / 1e6) }
}

function run(settings: object): RunResult {
  return simulate(parseScenario(settings, 'benchmark'))
}
