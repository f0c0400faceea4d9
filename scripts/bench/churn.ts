/**
 * A year of churn in virtual time: nodes in a tree (CHURN_NODES, 100), each of which restarts every hour (CHURN_HOURS, a year) as a
 * new contributor. Memory, frames and state of a node must not grow.
 */
import { AdmbNode, startingPredictor } from '../../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../../src/learner/index.js'
import type { Row } from './row.js'

const NODES = Number(process.env.CHURN_NODES ?? 100)
const HOURS = Number(process.env.CHURN_HOURS ?? 365 * 24)
/** Periods in an hour; half of the nodes restart in each. */
const PERIODS = 2
/** Inputs of a node in a period. A sum crosses one edge in a period, so a batch is from nodes near each other. */
const INPUTS = 8
const BATCH = 128
const LINEAGE = 16
const REPORTS = 12

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
    target: { most: (LINEAGE * BATCH) / INPUTS },
    details: { 'mean frame, bytes': frame, 'state, bytes': state, 'heap, MB': heap, refused, updates }
  }
}

/** Nodes of a binary tree; each frame arrives at once. */
class Tree {
  readonly #options
  readonly #nodes: AdmbNode[] = []
  readonly #neighbours: number[][] = []
  #sessions = 0
  #runs = 0
  #frames = 0
  #bytes = 0
  #refused = 0
  #period = 0

  constructor(nodes: number) {
    const learner = createLearner({ model: 'logistic', dimension: 8 })
    const recipe = { rule: createRule(), averaging: createAveraging(), digest }
    const initial = startingPredictor(learner.initial(), recipe)
    this.#options = { ...recipe, layout: learner.layout, initial, batch: BATCH, carry: 4, lineage: LINEAGE }
    for (let i = 0; i < nodes; i++) {
      this.#nodes.push(this.#create(i))
      this.#neighbours.push([])
    }
    for (let i = 1; i < nodes; i++) {
      const parent = (i - 1) >> 1
      this.#neighbours[i].push(parent)
      this.#neighbours[parent].push(i)
      this.#connect(i, parent)
    }
  }

  pass(hours: number): void {
    this.#frames = this.#bytes = 0
    for (let period = 0; period < Math.round(hours * PERIODS); period++) {
      this.#period++
      for (let i = this.#period % PERIODS; i < this.#nodes.length; i += PERIODS) this.#restart(i)
      for (const [i, node] of this.#nodes.entries()) {
        node.accumulator[0][i % 8] += Math.sin(this.#period * 7 + i)
        node.added(INPUTS)
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

  #connect(a: number, b: number): void {
    const session = ++this.#sessions
    this.#nodes[a].connect(b, session, `n${b}`)
    this.#nodes[b].connect(a, session, `n${a}`)
  }

  #restart(i: number): void {
    const state = this.#nodes[i].storage.save()
    this.#nodes[i] = this.#create(i)
    this.#nodes[i].restore(state)
    for (const neighbour of this.#neighbours[i]) {
      this.#nodes[neighbour].disconnect(i)
      this.#connect(i, neighbour)
    }
  }

  /** Delivers frames until no node has any. Only nodes that have sent or received a frame in a round can have one in the next. */
  #deliver(): void {
    let active = new Set(this.#nodes.keys())
    while (active.size > 0) {
      const next = new Set<number>()
      for (const from of active) {
        for (const to of this.#neighbours[from]) {
          const frame = this.#nodes[from].frame(to)
          if (frame === undefined) continue
          next.add(from).add(to)
          this.#frames++
          this.#bytes += frame.length
          this.#nodes[to].receive(from, frame)
          for (const effect of this.#nodes[to].takeEffects()) if (effect.kind === 'refused') this.#refused++
        }
      }
      active = next
    }
    for (const node of this.#nodes) node.takeEffects()
  }
}
