/**
 * The effect of carry-over and look-ahead, in virtual time and therefore without noise: five ADMB nodes on a tree, inputs of MNIST
 * at a fixed rate, links with a latency and one frame in flight in each direction.
 */
import { AdmbNode, startingPredictor } from '../../src/admb/index.js'
import type { Blocks, Examples, Learner } from '../../src/learner/index.js'
import { type LinearSpec, linearParts, type PeerPredictWith } from '../../src/peer/index.js'

/** Edges of the tree: two inner nodes, three leaves. */
const TREE: readonly (readonly [number, number])[] = [
  [0, 1],
  [0, 2],
  [1, 3],
  [1, 4]
]
const PEERS = 5
/** Step of the virtual clock. */
const STEP_MS = 5

export interface VirtualCase {
  readonly carry: number
  readonly predictWith: PeerPredictWith
  readonly passes: number
  /** Inputs per second and node. */
  readonly rate: number
  /** T in milliseconds, a multiple of 5. */
  readonly period: number
  /** One way, in milliseconds. */
  readonly latency: number
  /** Time at the start without links, in milliseconds, a multiple of 5. */
  readonly isolation: number
}

interface InFlightFrame {
  readonly arrival: number
  readonly bytes: Uint8Array
}

/** A node with its progressive loss. */
class VirtualPeer {
  readonly node: AdmbNode
  inputs = 0
  readonly score = { loss: 0, hits: 0 }
  readonly #learner: Learner
  readonly #predictWith: PeerPredictWith
  #serving: Blocks

  constructor(spec: LinearSpec, self: string, { carry, predictWith }: VirtualCase) {
    const { learner, recipe } = linearParts(spec, false)
    const initial = startingPredictor(learner.initial(), recipe)
    const { layout } = learner
    this.node = new AdmbNode({ ...recipe, self, incarnation: 1, layout, initial, batch: spec.batch, carry })
    this.#learner = learner
    this.#predictWith = predictWith
    this.#serving = initial.average
  }

  learn(examples: Examples, row: number): void {
    const { predictor, accumulator } = this.node
    this.#learner.score(this.#serving, examples, row, row + 1, this.score)
    this.#learner.addGradient(predictor.parameters, examples, row, row + 1, accumulator)
    this.inputs++
    this.node.added(1)
    this.applyEffects()
  }

  tick(): void {
    this.node.tick()
    if (this.#predictWith === 'ahead') this.#serve()
    this.applyEffects()
  }

  applyEffects(): void {
    if (this.node.takeEffects().length > 0) this.#serve()
  }

  #serve(): void {
    const { predictor } = this.node
    if (this.#predictWith === 'ahead') this.#serving = this.node.lookAhead()
    else this.#serving = this.#predictWith === 'average' ? predictor.average : predictor.parameters
  }
}

/** @returns mean progressive loss of all inputs, share of gradients not discarded, and number of updates */
export function runVirtualCase(
  spec: LinearSpec,
  examples: Examples,
  options: VirtualCase
): { loss: number; used: number; updates: number } {
  const peers = Array.from({ length: PEERS }, (_, i) => new VirtualPeer(spec, `${i}`, options))
  const links = TREE.flatMap(([a, b], edge) => [
    { edge, from: a, to: b, inFlight: undefined as InFlightFrame | undefined },
    { edge, from: b, to: a, inFlight: undefined as InFlightFrame | undefined }
  ])
  const total = examples.size * options.passes
  for (let served = 0, now = 0; served < total; now += STEP_MS) {
    if (now === options.isolation) {
      for (const { edge, from, to } of links) peers[from].node.connect(edge, 0, `${to}`)
    }
    for (const [i, peer] of peers.entries()) {
      const due = Math.floor((now * options.rate) / 1000)
      for (; peer.inputs < due && served < total; served++)
        peer.learn(examples, (peer.inputs * PEERS + i) % examples.size)
      if ((now + 10 * i) % options.period === 0) peer.tick()
    }
    for (const link of links) {
      if (link.inFlight && link.inFlight.arrival <= now) {
        peers[link.to].node.receive(link.edge, link.inFlight.bytes)
        peers[link.to].applyEffects()
        link.inFlight = undefined
      }
      if (link.inFlight) continue
      const bytes = peers[link.from].node.frame(link.edge)
      if (bytes) link.inFlight = { arrival: now + options.latency, bytes }
    }
  }
  const sum = (value: (peer: VirtualPeer) => number) => peers.reduce((total, peer) => total + value(peer), 0)
  const inputs = sum(peer => peer.inputs)
  const updates = Math.max(...peers.map(peer => peer.node.predictor.id.updates))
  return { loss: sum(peer => peer.score.loss) / inputs, used: 1 - sum(peer => peer.node.discarded) / inputs, updates }
}
