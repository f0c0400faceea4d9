/**
 * A year of churn in virtual time: 100 nodes in a tree, each of which restarts every hour. Memory, frames and state of a node must
 * not grow. Optional arguments after `--`: nodes, hours.
 */
import { AdmbNode, startingPredictor } from '../../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../../src/learner/index.js'
import type { Row } from './row.js'

const NODES = Number(process.env.CHURN_NODES ?? 100)
const HOURS = Number(process.env.CHURN_HOURS ?? 365 * 24)
/** Periods in an hour; a share of the nodes restarts in each. */
const PERIODS = 12
const REPORTS = 6

export async function* bench(): AsyncGenerator<Row> {
  const network = new Tree(NODES)
  const first = Math.min(24, HOURS / 10)
  network.pass(first)
  const start = network.measure()
  yield row(first, start)
  for (let report = 1; report <= REPORTS; report++) {
    network.pass((HOURS - first) / REPORTS)
    const now = network.measure()
    const hours = Math.round(first + ((HOURS - first) * report) / REPORTS)
    yield row(hours, now)
  }
}

interface Measured {
  readonly contributors: number
  readonly frame: number
  readonly state: number
  readonly heap: number
  readonly refused: number
  readonly updates: number
}

function row(hours: number, { contributors, frame, state, heap, refused, updates }: Measured): Row {
  return {
    name: `${NODES} nodes that restart hourly, after ${Math.round(hours / 24)} days: contributors known to a node`,
    value: contributors,
    unit: '',
    target: { most: 40 * NODES },
    details: { 'mean frame, bytes': frame, 'state, bytes': state, 'heap, MB': heap, refused, updates }
  }
}

/** Nodes of a binary tree; each frame arrives at once. */
class Tree {
  readonly #options
  readonly #nodes: AdmbNode[] = []
  #sessions = 0
  #edges: { readonly ends: readonly [number, number]; readonly session: number }[] = []
  #runs = 0
  #frames = 0
  #bytes = 0
  #refused = 0
  #period = 0

  constructor(nodes: number) {
    const learner = createLearner({ model: 'logistic', dimension: 8 })
    const recipe = { rule: createRule(), averaging: createAveraging(), digest }
    const initial = startingPredictor(learner.initial(), recipe)
    this.#options = { ...recipe, layout: learner.layout, initial, batch: nodes, carry: 16, lineage: 64 }
    for (let i = 0; i < nodes; i++) this.#nodes.push(this.#create(i))
    for (let i = 1; i < nodes; i++) this.#link(i, (i - 1) >> 1)
  }

  pass(hours: number): void {
    this.#frames = this.#bytes = 0
    for (let period = 0; period < Math.round(hours * PERIODS); period++) {
      this.#period++
      for (let i = this.#period % PERIODS; i < this.#nodes.length; i += PERIODS) this.#restart(i)
      for (const [i, node] of this.#nodes.entries()) {
        node.accumulator[0][i % 8] += Math.sin(this.#period * 7 + i)
        node.added(1)
        node.tick()
      }
      this.#deliver()
    }
  }

  measure(): Measured {
    globalThis.gc?.()
    const bytes = this.#nodes[0].storage.save().length
    return {
      contributors: Math.max(...this.#nodes.map(({ contributors }) => contributors)),
      frame: this.#bytes / this.#frames,
      state: bytes,
      heap: process.memoryUsage().heapUsed / 1e6,
      refused: this.#refused,
      updates: this.#nodes[0].predictor.id.updates
    }
  }

  #create(i: number): AdmbNode {
    return new AdmbNode({ ...this.#options, self: `n${i}`, incarnation: 1, nonce: this.#runs++ })
  }

  #link(a: number, b: number): void {
    const session = ++this.#sessions
    this.#edges.push({ ends: [a, b], session })
    this.#nodes[a].connect(b, session, `n${b}`)
    this.#nodes[b].connect(a, session, `n${a}`)
  }

  #restart(i: number): void {
    const state = this.#nodes[i].storage.save()
    const lost = this.#edges.filter(({ ends }) => ends.includes(i))
    this.#edges = this.#edges.filter(edge => !lost.includes(edge))
    this.#nodes[i] = this.#create(i)
    this.#nodes[i].restore(state)
    for (const { ends } of lost) {
      const other = ends[0] === i ? ends[1] : ends[0]
      this.#nodes[other].disconnect(i)
      this.#link(i, other)
    }
  }

  #deliver(): void {
    for (let isBusy = true; isBusy; ) {
      isBusy = false
      for (const { ends } of this.#edges) {
        for (const [from, to] of [ends, [ends[1], ends[0]]]) {
          const frame = this.#nodes[from].frame(to)
          if (frame === undefined) continue
          isBusy = true
          this.#frames++
          this.#bytes += frame.length
          this.#nodes[to].receive(from, frame)
          for (const effect of this.#nodes[to].takeEffects()) if (effect.kind === 'refused') this.#refused++
        }
      }
    }
    for (const node of this.#nodes) node.takeEffects()
  }
}
