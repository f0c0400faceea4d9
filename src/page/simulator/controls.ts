/** The controls of the simulator: keys of scenarios that a visitor changes. */
import { formatCount } from '../format.js'

interface Control {
  /** Key of a scenario, nested ones with a dot. */
  readonly key: string
  readonly label: string
  /** What it means; one or two sentences. */
  readonly help: string
  /** Ascending. A scenario's own value is added where it is missing. */
  readonly stops: readonly number[]
  readonly unit: 'count' | 'ms' | 'share'
}

const SHARES = [0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5]

export const CONTROLS: readonly Control[] = [
  {
    key: 'nodes',
    label: 'Nodes',
    help: 'How many learners there are. Each has a stream of inputs of its own.',
    stops: [2, 4, 8, 16, 24, 32, 48, 64, 96, 128],
    unit: 'count'
  },
  {
    key: 'batch',
    label: 'b, the batch size',
    help: 'A node that holds b gradients, its own and those of its neighbours, makes the next predictor. A small b updates often, and several nodes may do so at once. With a large b, each update needs more inputs.',
    stops: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
    unit: 'count'
  },
  {
    key: 'period',
    label: 'T, the period',
    help: 'After each T, a node sends the sum of its gradients to its neighbours. Each node receives one input per millisecond.',
    stops: [0.5, 1, 2, 5, 10, 20, 50],
    unit: 'ms'
  },
  {
    key: 'latency',
    label: 'Latency',
    help: 'How long a message takes from one node to the next. Gradients that arrive after an update belong to an older predictor.',
    stops: [0.1, 0.5, 1, 2, 5, 10, 20, 50],
    unit: 'ms'
  },
  {
    key: 'loss',
    label: 'Lost messages',
    help: 'The share of messages that never arrive. Later ones contain what they contained.',
    stops: SHARES,
    unit: 'share'
  },
  {
    key: 'faults.crashShare',
    label: 'Crashed nodes',
    help: 'The share of time that a node is down. It then restarts with the predictor on its disk.',
    stops: SHARES,
    unit: 'share'
  },
  {
    key: 'faults.partitionShare',
    label: 'Partitions',
    help: 'The share of time that the network is split. Each side learns on; afterwards, the predictor with more updates remains.',
    stops: SHARES,
    unit: 'share'
  },
  {
    key: 'inputs',
    label: 'Inputs',
    help: 'How many inputs all nodes together receive; the length of the run.',
    stops: [2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000],
    unit: 'count'
  },
  {
    key: 'seed',
    label: 'Seed',
    help: 'Another seed gives other inputs, delays and faults. The same seed gives the same run on every machine.',
    stops: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    unit: 'count'
  }
]

/** Inputs of a run on the page, so that it takes a few seconds. */
export const INPUTS_SHOWN = 20_000

export function formatValue(value: number, unit: Control['unit']): string {
  if (unit === 'share') return `${Number((100 * value).toPrecision(3))} %`
  return unit === 'ms' ? `${value} ms` : formatCount(value)
}

/** The stops of a control with a value among them. */
export function stopsWith(stops: readonly number[], value: number): number[] {
  return [...new Set([...stops, value])].sort((a, b) => a - b)
}

/** A built-in scenario. */
export interface BuiltIn {
  readonly name: string
  readonly about: string
  /** Its keys, as in its file. */
  readonly values: Readonly<Record<string, unknown>>
  /** Values of the controls, in their order. */
  readonly settings: readonly number[]
}

/** The values of a scenario with the changed controls. */
export function withSettings(values: Readonly<Record<string, unknown>>, changes: ReadonlyMap<string, number>) {
  const result: Record<string, unknown> = structuredClone(values)
  for (const [key, value] of changes) {
    const [outer, inner] = key.split('.')
    result[outer] = inner === undefined ? value : { ...(result[outer] as object | undefined), [inner]: value }
  }
  return result
}

/** The command that makes the same run. */
export function commandOf(name: string, changes: ReadonlyMap<string, number>): string {
  const set = [...changes].map(([key, value]) => `${key}=${value}`).join(' ')
  return `npx admb sim run ${name}${set === '' ? '' : ` --set ${set}`}`
}
