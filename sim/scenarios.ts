/** The built-in scenarios, and scenarios from files, with `key=value` overrides. */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { oneOf, SCENARIO_KEYS, ScenarioError } from './scenario.js'

export function builtInScenarios(): { readonly name: string; readonly about: string }[] {
  return Object.entries(scenarios).map(([name, { about }]) => ({ name, about }))
}

/**
 * The values of a scenario, not yet validated by `parseScenario`.
 * @param name a built-in scenario or a YAML file; undefined for all defaults
 * @throws ScenarioError
 */
export function loadScenario(name: string | undefined): {
  readonly source: string
  readonly values: Record<string, unknown>
} {
  if (name === undefined) return { source: '--set', values: {} }
  if (Object.hasOwn(scenarios, name)) return { source: name, values: structuredClone(scenarios[name].values) }
  let text: string
  try {
    text = readFileSync(name, 'utf8')
  } catch (error) {
    const names = Object.keys(scenarios)
    const { code } = error as NodeJS.ErrnoException
    const isWord = /^[\w-]+$/.test(name)
    const what = isWord ? `unknown scenario '${name}'` : `cannot read ${name} (${code})`
    throw new ScenarioError(`${what}; ${oneOf(name, names, 'expected a YAML file or one of')}`)
  }
  let values: unknown
  try {
    values = parse(text)
  } catch (error) {
    throw new ScenarioError(`${name}: invalid YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  if (values !== null && (typeof values !== 'object' || Array.isArray(values))) {
    throw new ScenarioError(`${name}: expected lines of the form key: value`)
  }
  return { source: name, values: { ...(values as Record<string, unknown> | null) } }
}

/**
 * Applies `key=value` overrides to a scenario's values. Values are parsed as YAML; nested keys are written with a dot.
 * @param option the command-line option, named in errors
 * @throws ScenarioError for an unknown key or a malformed override
 */
export function applyOverrides(
  values: Record<string, unknown>,
  overrides: readonly string[],
  option = '--set'
): Record<string, unknown> {
  const result = structuredClone(values)
  for (const text of overrides) {
    const separator = text.indexOf('=')
    const key = text.slice(0, separator)
    if (separator < 1) throw new ScenarioError(`${option} ${text}: expected key=value`)
    if (!SCENARIO_KEYS.includes(key)) {
      throw new ScenarioError(`${option} ${text}: unknown key '${key}'; ${oneOf(key, SCENARIO_KEYS)}`)
    }
    // The end of a run is given by one of them.
    const other = key === 'duration' ? 'inputs' : key === 'inputs' ? 'duration' : undefined
    if (other !== undefined && !overrides.some(one => one.startsWith(`${other}=`))) delete result[other]
    const path = key.split('.')
    const last = path.pop() as string
    let target = result
    for (const step of path) {
      const inner = { ...(target[step] as object | undefined) }
      target[step] = inner
      target = inner as Record<string, unknown>
    }
    target[last] = parse(text.slice(separator + 1))
  }
  return result
}

interface BuiltInScenario {
  /** One sentence, for `admb sim list`. */
  readonly about: string
  /** The keys that are not by default. */
  readonly values: Readonly<Record<string, unknown>>
}

const BINARY_TREE = { topology: 'tree', nodes: 64, degree: 3, dimension: 20, inputs: 200_000, batch: 512 }
/** The overlay is complete before the first input. */
const OVERLAY = { topology: 'overlay', nodes: 48, degree: 4, inputs: 200_000, batch: 256, carry: 64, warmup: 400 }

const scenarios: Readonly<Record<string, BuiltInScenario>> = {
  'binary-tree': {
    about: '64 nodes on a binary tree without faults: ADMB compared with a serial learner.',
    values: BINARY_TREE
  },
  'by-the-letter': {
    about: 'The binary tree with ADMB as published: precedence by sender, no carry-over of unused gradients.',
    values: { ...BINARY_TREE, algorithm: 'admb-sender', carry: 0 }
  },
  churn: {
    about:
      'Nodes join and leave: each has left for a fifth of the time and is down for a twentieth; half of the crashes lose the disk.',
    values: {
      ...OVERLAY,
      faults: { awayShare: 0.2, awayTime: 400, crashShare: 0.05, downtime: 100, silentShare: 0.5, diskLossShare: 0.5 }
    }
  },
  clogs: {
    about:
      'Each direction of every link of the tree is clogged for a tenth of the time: messages are held, then delivered all at once.',
    values: {
      topology: 'tree',
      nodes: 32,
      degree: 4,
      inputs: 200_000,
      batch: 256,
      delay: 'exponential',
      reorder: 0.02,
      faults: { clogShare: 0.1, clogTime: 20 }
    }
  },
  contest: {
    about:
      'Eight nodes on a path, small batches, long latency: competing predictors (see the space-time view of --report).',
    values: { topology: 'path', nodes: 8, dimension: 10, inputs: 20_000, batch: 32, latency: 3 }
  },
  crashes: {
    about: 'The binary tree with a tenth of the nodes down at any time; they restart from their checkpoints.',
    values: { ...BINARY_TREE, faults: { crashShare: 0.1, downtime: 50 } }
  },
  'far-apart': {
    about:
      'Distant sites: log-normal latencies of 20 intervals on average, so that many inputs arrive while a message is in flight.',
    values: {
      topology: 'random',
      nodes: 24,
      degree: 4,
      dimension: 20,
      inputs: 200_000,
      batch: 512,
      latency: 20,
      delay: 'log-normal',
      carry: 64
    }
  },
  faulty: {
    about:
      'A tenth of the nodes down at any time, partitions for a fifth of the time, on the overlay: the benchmark for faults.',
    // Fragments of the tree need more time to fill a batch.
    values: {
      ...OVERLAY,
      nodes: 64,
      dimension: 20,
      inputs: 1_000_000,
      batch: 512,
      faults: {
        crashShare: 0.1,
        downtime: 50,
        silentShare: 0.5,
        partitionShare: 0.2,
        partitionTime: 200,
        partitionMode: 'uniform'
      }
    }
  },
  hub: {
    about: 'A star of 16 whose hub has the highest index: the slowest start with precedence by sender.',
    values: { topology: 'star', nodes: 16, labels: 'hub-highest', dimension: 20, inputs: 100_000, batch: 256 }
  },
  'long-path': {
    about: 'A path of 48 nodes: the largest diameter, so the longest path for sums and predictors.',
    values: { topology: 'path', nodes: 48, dimension: 20, inputs: 100_000, batch: 512 }
  },
  lossy: {
    about: 'Exponentially distributed delays; a tenth of the messages is lost, some are duplicated.',
    values: {
      topology: 'random',
      nodes: 32,
      degree: 4,
      inputs: 200_000,
      batch: 256,
      delay: 'exponential',
      latency: 2,
      loss: 0.1,
      duplicate: 0.05
    }
  },
  narrow: {
    about: 'Slow links: sending a sum takes four periods, so that nodes send rarely, and then their newest state.',
    values: {
      topology: 'tree',
      nodes: 32,
      degree: 3,
      dimension: 200,
      inputs: 100_000,
      batch: 512,
      bandwidth: 220,
      carry: 64
    }
  },
  overlay: {
    about:
      'The tree of the overlay protocol, built from a random graph of links; no faults, and inputs arrive from the start.',
    values: { topology: 'overlay', nodes: 64, degree: 3, dimension: 20, inputs: 200_000, batch: 512 }
  },
  partitions: {
    about: 'The binary tree, partitioned at random for a fifth of the time.',
    values: { ...BINARY_TREE, faults: { partitionShare: 0.2, partitionTime: 200 } }
  },
  pauses: {
    about:
      'Paused processes, as during a long garbage collection: their sessions stay open, and messages to them are queued.',
    values: { ...OVERLAY, nodes: 32, faults: { pauseShare: 0.1, pauseTime: 30 } }
  },
  prices: {
    about: 'Least squares with noise on a caterpillar tree: regression instead of classification.',
    values: {
      topology: 'caterpillar',
      nodes: 32,
      degree: 4,
      stream: 'least-squares',
      noise: 1,
      dimension: 30,
      inputs: 100_000,
      batch: 256,
      rule: 'adagrad'
    }
  },
  queries: {
    about: 'Sparse inputs like search queries: binary features with power-law frequencies.',
    values: {
      topology: 'tree',
      nodes: 32,
      stream: 'sparse',
      dimension: 2000,
      inputs: 200_000,
      batch: 512,
      rule: 'adagrad',
      average: 'tail'
    }
  },
  'slow-disks': {
    about: 'Crashes with slow disks: a checkpoint takes forty periods, so that restarted nodes have old state.',
    values: {
      topology: 'tree',
      nodes: 32,
      degree: 3,
      inputs: 200_000,
      batch: 256,
      checkpoint: 40,
      diskTime: 40,
      faults: { crashShare: 0.2, downtime: 100 }
    }
  },
  thousand: {
    about:
      'A random tree of 1,000 nodes: each node receives few inputs, so that nearly all gradients come from other nodes.',
    values: { topology: 'random', nodes: 1000, degree: 6, dimension: 20, inputs: 100_000, batch: 1024 }
  },
  uneven: {
    about: 'Fast and slow nodes and links, with random offsets: input rates and latencies differ by factors of ten.',
    values: {
      topology: 'random',
      nodes: 48,
      degree: 4,
      inputs: 200_000,
      batch: 256,
      latency: 2,
      delay: 'uniform',
      speedSpread: 1,
      linkSpread: 1,
      phases: 'spread',
      carry: 64
    }
  },
  uplink: {
    about:
      'A site loses its uplink for a fifth of the time: the nodes below an edge of the tree are cut off, half of the times in one direction only.',
    values: {
      ...OVERLAY,
      faults: { partitionShare: 0.2, partitionTime: 300, partitionMin: 100, partitionMode: 'split', oneWayShare: 0.5 }
    }
  }
}
